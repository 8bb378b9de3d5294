"""A greedy client in a process of its own: `python greedy.py ACT JSON`.

It acts for a bounded time and count, prints a line when it has everything in hand, and one with what it reached. What
holds something open lets go when its standard input ends.
"""

import asyncio
import itertools
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from greedy_site import Site
from greedy_wire import Address, Connection, frame

#: What is sent at once, and again when it was taken.
CHUNK_BYTES = 32_768
#: One that still tries after so many errors has learnt that there is no more.
REFUSED_ENOUGH = 20
#: A server that takes longer to let somebody in is not waited for.
CONNECT_SECONDS = 3.0
#: Connections that are opened together: a thousand would wait for each other.
AT_A_TIME = 50
#: Requests sent one after the other before the first answer.
PIPELINED = 50


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def let_go(seconds: float) -> None:
    """Holds what there is for so long, or until nobody wants it any more."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: sys.stdin.read(1) or ended.set())
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        pass
    finally:
        asyncio.get_running_loop().remove_reader(sys.stdin)


def counted(connections: Iterable[Connection]) -> dict[str, int]:
    """The answers of all together."""
    total: Counter[str] = Counter()
    for connection in connections:
        total.update(connection.answers)
    return dict(total.most_common(8))


async def connected(count: int, connect) -> list[Connection]:
    """As many as are let in, of those that are tried."""
    trying = (asyncio.wait_for(connect(number), CONNECT_SECONDS) for number in range(count))
    tried = await asyncio.gather(*trying, return_exceptions=True)
    return [each for each in tried if isinstance(each, Connection)]


# MARK: Floods


async def flood(router, token, texts, sessions, connections, seconds):
    """The same commands again and again over WebSockets, whose answers are read and thrown away."""
    address = Address(router, token)
    block = b"".join(frame(text.encode()) for text in texts)
    block *= max(1, CHUNK_BYTES // len(block))
    count = block.count(b'{"type"')
    opened = await connected(connections, lambda number: address.websocket(sessions[number % len(sessions)]))
    reading = [asyncio.create_task(each.drain()) for each in opened]
    say(ready=len(opened))
    until = time.monotonic() + seconds
    sent = await asyncio.gather(*(each.flood(block, until) for each in opened))
    await asyncio.wait(reading, timeout=0.2) if reading else None
    return {"connections": len(opened), "commands": sum(sent) * count, "answers": counted(opened)}


async def requests(router, token, method, path, body, connections, seconds, source=None):
    """The same request again and again over kept connections."""
    address = Address(router, token, source)
    block = address.request(method, path, body.encode()) * PIPELINED
    opened = await connected(connections, lambda _: address.connect())
    reading = [asyncio.create_task(each.drain()) for each in opened]
    say(ready=len(opened))
    until = time.monotonic() + seconds
    sent = await asyncio.gather(*(each.flood(block, until) for each in opened))
    await asyncio.wait(reading, timeout=0.2) if reading else None
    return {"connections": len(opened), "requests": sum(sent) * PIPELINED, "answers": counted(opened)}


async def each_once(router, token, wanted, connections, seconds, again=False):
    """Many requests (method, path, body, count), each as often as its count, the path's `N` being its number. `again`
    begins anew where all were sent."""
    address = Address(router, token)
    everything = []
    for method, path, body, count in wanted:
        everything += [address.request(method, path.replace("N", str(n)), body.encode()) for n in range(1, count + 1)]
    opened = await connected(connections, lambda _: address.connect())
    _reading = [asyncio.create_task(each.drain()) for each in opened]
    say(ready=len(opened))
    until = time.monotonic() + seconds

    async def send(number: int) -> None:
        mine = everything[number :: len(opened)]
        blocks = [b"".join(mine[place : place + PIPELINED]) for place in range(0, len(mine), PIPELINED)]
        for block in itertools.cycle(blocks) if again else blocks:
            if not await opened[number].flood(block, until, times=1):
                return

    await asyncio.gather(*(send(number) for number in range(len(opened))))
    while sum(each.answered for each in opened) < len(everything) and time.monotonic() < until:
        await asyncio.sleep(0.05)
    return {"asked": len(everything), "answers": counted(opened)}


async def fragments(router, token, session, connections, seconds):
    """A message in too many pieces, and further ones when it is being closed for that."""
    until = time.monotonic() + seconds
    address = Address(router, token)
    piece = frame(b"x", 0, is_last=False)
    block = piece * (CHUNK_BYTES // len(piece))

    async def one(_: int) -> int:
        sent = 0
        while time.monotonic() < until:
            try:
                connection = await address.websocket(session)
                await connection.send(frame(b"x", is_last=False))
            except OSError:
                await asyncio.sleep(0.1)
                continue
            sent += await connection.flood(block, until) * (CHUNK_BYTES // len(piece))
            connection.close()
        return sent

    say(ready=connections)
    return {"fragments": sum(await asyncio.gather(*map(one, range(connections))))}


async def frames(router, token, sessions, kind, connections, seconds):
    """Frames that are no command, over many WebSockets, whose answers are read and thrown away."""
    address = Address(router, token)
    pieces = frame(b"", is_last=False) + frame(b"", 0, is_last=False) * 30 + frame(b"", 0)
    block = {"pings": frame(b"x" * 4, 9), "fragments": pieces}[kind]
    block *= CHUNK_BYTES // len(block)
    opened = []
    for _ in range(0, connections, AT_A_TIME):
        opened += await connected(AT_A_TIME, lambda number: address.websocket(sessions[number % len(sessions)]))
    reading = [asyncio.create_task(each.drain()) for each in opened]
    until = time.monotonic() + seconds
    say(ready=len(opened))
    await asyncio.gather(*(each.flood(block, until) for each in opened))
    for task in reading:
        task.cancel()
    return {"connections": len(opened), "open": sum(each.is_open for each in opened)}


async def fill(router, token, sessions, entries, entry_bytes, seconds):
    """Long tracks into queues, as many as are taken, behind a hundred short ones: no answer shows a long one."""
    until = time.monotonic() + seconds
    address = Address(router, token)
    url = "https://example.com/" + "x" * (entry_bytes - 20)
    per_command = 60_000 // len(url)
    short, long = (
        frame(json.dumps({"type": "queue_add", "tracks": [{"url": each}] * count}).encode())
        for each, count in (("https://example.com/", 100), (url, per_command))
    )
    opened = await connected(len(sessions), lambda number: address.websocket(sessions[number]))
    reading = [asyncio.create_task(each.drain()) for each in opened]
    say(ready=len(opened))

    async def one(connection: Connection) -> int:
        await connection.flood(short, until, times=1)
        sent = 0
        for _ in range(entries // per_command + 2):
            sent += await connection.flood(long, until, times=1)
            if connection.answers.get("queue_full", 0) > REFUSED_ENOUGH:
                break
            # Who lets many answers wait is hung up on.
            while connection.is_open and connection.queue_answers < sent - 5 and time.monotonic() < until:
                await asyncio.sleep(0.002)
        return sent

    sent = await asyncio.gather(*map(one, opened))
    await asyncio.wait(reading, timeout=1) if reading else None
    return {"connections": len(opened), "entries": sum(sent) * per_command, "answers": counted(opened)}


# MARK: Holding things open


async def silent_websockets(router, token, session, count, seconds):
    """Listeners that read nothing."""
    address = Address(router, token)
    opened = []
    for _ in range(0, count, AT_A_TIME):
        opened += await connected(AT_A_TIME, lambda _: address.websocket(session, receive_buffer=4_096))
    say(ready=len(opened))
    await let_go(seconds)
    return {"connections": len(opened)}


async def silent_players(router, token, path, count, seconds):
    """Players that read nothing."""
    address = Address(router, token)

    async def one(_: int) -> Connection:
        connection = await address.connect(receive_buffer=4_096)
        await connection.send(address.head("GET", path))
        return connection

    opened = []
    for _ in range(0, count, AT_A_TIME):
        opened += await connected(AT_A_TIME, one)
    say(ready=len(opened))
    await let_go(seconds)
    return {"connections": len(opened)}


async def event_streams(router, token, repository, pieces, count, encoding, seconds):
    """Event streams that ask for what they missed, each from another place, and read nothing."""
    address = Address(router, token)

    async def one(number: int) -> Connection:
        connection = await address.connect(receive_buffer=4_096)
        path = f"/stream/{repository}?encoding={encoding}"
        await connection.send(address.head("GET", path, f"Last-Event-ID: {number % pieces}"))
        return connection

    opened = await connected(count, one)
    say(ready=len(opened))
    await let_go(seconds)
    return {"connections": len(opened)}


async def webhooks(router, source, count, first_bytes, seconds):
    """Deliveries that nobody signed: a good part of the body at once, and then a byte now and then."""
    address = Address(router, source=source)
    head = address.head(
        "POST",
        "/webhooks/github",
        "Content-Type: application/json",
        "Content-Length: 26214400",
        "X-GitHub-Event: push",
        "X-GitHub-Delivery: 00000000-0000-0000-0000-000000000000",
        f"X-Hub-Signature-256: sha256={'0' * 64}",
    )
    until = time.monotonic() + seconds
    opened = await connected(count, lambda _: address.connect())

    async def one(connection: Connection) -> None:
        await connection.flood(head + b" " * first_bytes, until, times=1)

    reading = [asyncio.create_task(each.drain()) for each in opened]
    await asyncio.wait([asyncio.create_task(one(each)) for each in opened], timeout=2)
    say(ready=len(opened))
    dripping = asyncio.create_task(drip(opened, b" "))
    await let_go(seconds)
    dripping.cancel()
    for task in reading:
        task.cancel()
    return {"connections": len(opened), "open": sum(each.is_open for each in opened), "answers": counted(opened)}


async def drip(connections: list[Connection], byte: bytes) -> None:
    while True:
        await asyncio.sleep(1)
        for each in connections:
            if each.is_open:
                await each.flood(byte, time.monotonic() + 0.01, times=1)


async def connections(address, path, token, source, counts, seconds):
    """Plain connections, bodies by drips and heads by drips; how long they are kept."""
    server = Address(address, token, source)
    lines = ("Content-Type: application/json", "Content-Length: 60000")
    begins = {"plain": b"", "bodies": server.head("POST", path, *lines), "heads": b"GET /health HTTP/1.1\r\nX-Drip: "}
    opened: dict[str, list[Connection]] = {}
    begun = time.monotonic()
    closed: dict[str, float] = {}

    async def keep(kind: str, connection: Connection) -> None:
        await connection.drain()
        closed[kind] = max(closed.get(kind, 0), time.monotonic() - begun)

    keeping = []
    for kind, count in counts.items():
        opened[kind] = await connected(count, lambda _: server.connect())
        for each in opened[kind]:
            await each.flood(begins[kind], time.monotonic() + 1, times=1)
        keeping += [asyncio.create_task(keep(kind, each)) for each in opened[kind]]
    say(ready=len(keeping))
    dripping = asyncio.create_task(drip([*opened["bodies"], *opened["heads"]], b"x"))
    _, left = await asyncio.wait(keeping, timeout=seconds)
    dripping.cancel()
    return {
        "connections": {kind: len(each) for kind, each in opened.items()},
        "open": {kind: sum(one.is_open for one in each) for kind, each in opened.items()},
        "closed_seconds": closed,
        "left": len(left),
    }


# MARK: Sources that never come


async def slow_streams(router, token, count, seconds):
    """Plays of streams that send a few bytes a second."""
    async with Site() as site:
        address = Address(router, token)
        opened = await connected(count, lambda _: address.connect())
        reading = [asyncio.create_task(each.drain()) for each in opened]
        for number, each in enumerate(opened):
            body = json.dumps({"url": f"{site.url}/slow/{number}.mp3"}).encode()
            await each.send(address.request("POST", f"/api/v1/sessions/a-slow{number}/play", body))
        await site.wait_asked(count, 1.5)
        say(ready=site.asked)
        await let_go(seconds)
        for task in reading:
            task.cancel()
        return {"asked": len(opened), "streams": site.asked, "answers": counted(opened)}


async def hanging_pages(router, token, count, seconds):
    """Pages that yt-dlp is asked for, and that never answer it."""
    async with Site() as site:
        address = Address(router, token)
        opened = await connected(count, lambda _: address.connect())
        reading = [asyncio.create_task(each.drain()) for each in opened]
        for number, each in enumerate(opened):
            page = f"{site.url}/page/{number}".replace(":", "%3A").replace("/", "%2F")
            await each.send(address.request("GET", f"/api/v1/resolve?query={page}"))
        await site.wait_asked(count, 2)
        say(ready=site.asked)
        await let_go(seconds)
        for task in reading:
            task.cancel()
        return {"asked": len(opened), "pages": site.asked, "answers": counted(opened)}


ACTS = {
    act.__name__: act
    for act in (flood, requests, each_once, fragments, frames, fill, silent_websockets, silent_players)
    + (event_streams, webhooks, connections, slow_streams, hanging_pages)
}


def main() -> None:
    # The machine has few cores, and what is measured is not how two processes share them.
    os.nice(10)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    reached = asyncio.run(ACTS[sys.argv[1]](**json.loads(sys.argv[2])))
    say(**reached)
    # What still waits to be closed is closed by the kernel, without a word about it.
    os._exit(0)


if __name__ == "__main__":
    main()

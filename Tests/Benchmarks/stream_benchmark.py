"""A thousand clients of one repository's `/stream`: from webhook to the last client, the Router's CPU, and memory."""

import multiprocessing
import select
import socket
import time

import harness
import services
from harness import point, progress, spread

#: Clients by encoding: of JSON, a piece has megabytes.
CLIENTS = {"opus": 1000, "pcm16": 100, "json-deflate": 100, "json": 20}
SLICE = 65536


def stream(bench):
    rounds = 3 if bench.quick else 10
    rows = []
    others = harness.OthersLoad()
    for encoding, count in CLIENTS.items():
        with services.antiphon(bench, bench.directory) as (_, router):
            rows.append(measure(bench, router, encoding, count, rounds))
    progress("")
    harness.table(
        f"Server-sent events: one repository, {rounds} pieces",
        ["encoding", "clients", "bytes per client and piece", "webhook to first client, ms", "to p50", "to p99", "to the last",
         "Router CPU per client and piece, µs", "bare sends, µs", "ratio", "memory per client, KiB"], rows)
    print(f"Other programs meanwhile: {others.cores():.2f} cores.\n")


def measure(bench, router, encoding, count, rounds):
    before, *_ = harness.memory(router.pid)
    clients = Clients(router.port, "bench", encoding, count)
    after, *_ = harness.memory(router.pid)
    arrivals, cpu, sizes = [], [], []
    for number in range(rounds + 1):
        progress(f"stream, {encoding}, piece {number} of {rounds}")
        started, asked = harness.cpu_seconds(router.pid), time.monotonic()
        router.request("POST", "/stream/bench/test", event="push", commits=5, title=f"Piece {number}")
        arrived, size = clients.wait_piece()
        if number > 0:  # the first finds everything cold
            arrivals.append(sorted(1000 * (each - asked) for each in arrived))
            cpu.append(1e6 * (harness.cpu_seconds(router.pid) - started) / count)
            sizes.append(size)
    clients.close()
    bare = bare_sends(count, round(sum(sizes) / len(sizes)), rounds)
    return [
        encoding, str(count), f"{sum(sizes) / len(sizes):,.0f}", spread([each[0] for each in arrivals]),
        spread([point(each, 0.5) for each in arrivals]), spread([point(each, 0.99) for each in arrivals]),
        spread([each[-1] for each in arrivals]), spread(cpu), f"{bare:.2f}",
        f"{sorted(cpu)[len(cpu) // 2] / bare:.2f}", f"{1024 * (after - before) / count:.1f}"]


class Clients:
    """Plain sockets that count what they get; the first one reads it."""

    def __init__(self, port, repository, encoding, count):
        self._poll = select.epoll()
        self._sockets = {}
        self._buffer = bytearray(4 * SLICE)
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(f"GET /stream/{repository}?encoding={encoding} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            received = b""
            while b'"type":"connected"' not in received or not received.endswith(b"\n\n\r\n"):
                received += client.recv(SLICE)
            client.setblocking(False)
            self._sockets[client.fileno()] = client
            self._poll.register(client, select.EPOLLIN)
        self._reader = next(iter(self._sockets))

    def wait_piece(self):
        """When each had the whole of the next piece, and its bytes."""
        counts, times = dict.fromkeys(self._sockets, 0), {}
        text, size = bytearray(), None
        while size is None or min(counts.values()) < size:
            ready = self._poll.poll(30)
            if not ready:
                raise harness.Failure("a piece did not come within 30 s")
            for number, _ in ready:
                try:
                    count = self._sockets[number].recv_into(self._buffer)
                except BlockingIOError:
                    continue
                if count == 0:
                    raise harness.Failure("the router closed a stream")
                counts[number] += count
                times[number] = time.monotonic()
                if number == self._reader:
                    text += self._buffer[:count]
                    if text.endswith(b"\n\n\r\n") and b'"type":"audio_buffer"' in text:
                        size = len(text)
        return list(times.values()), size

    def close(self):
        for client in self._sockets.values():
            client.close()


def bare_sends(count, size, rounds):
    """CPU a client, in µs, of a loop that does nothing but send that many bytes to so many sockets in slices."""
    pairs = [socket.create_server(("127.0.0.1", 0))]
    clients, servers = [], []
    for _ in range(count):
        clients.append(socket.create_connection(pairs[0].getsockname()))
        servers.append(pairs[0].accept()[0])
    reader = multiprocessing.get_context("fork").Process(target=read_all, args=(clients, size * rounds))
    reader.start()
    for each in clients:
        each.close()
    payload = memoryview(bytes(size))
    before = time.process_time()
    for _ in range(rounds):
        for start in range(0, size, SLICE):
            for server in servers:
                server.sendall(payload[start : start + SLICE])
    used = time.process_time() - before
    for each in [*servers, *pairs]:
        each.close()
    reader.join()
    return 1e6 * used / rounds / count


def read_all(clients, total):
    poll, buffer = select.epoll(), bytearray(4 * SLICE)
    counts = {each.fileno(): (each, 0) for each in clients}
    for each in clients:
        poll.register(each, select.EPOLLIN)
    while counts:
        for number, _ in poll.poll(30):
            client, count = counts[number]
            count += client.recv_into(buffer)
            counts[number] = (client, count)
            if count >= total:
                poll.unregister(client)
                del counts[number]

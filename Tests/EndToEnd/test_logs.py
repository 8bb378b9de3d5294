"""The logs of both processes: JSON a line, sessions named, and nothing that a stranger says gets out of its line."""

import asyncio
import json
import re
from datetime import datetime

import pytest

from client import connect_to_engine, listen
from inbox import PATIENCE_SECONDS
from media import OGG_OPUS, tone_clip
from processes import Antiphon, Server

SONG = tone_clip(440, 20, OGG_OPUS)
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


@pytest.fixture(params=["json", "text"])
def logging(request, tmp_path, media):
    """Both processes, with one log format, and that format."""
    form = request.param
    media.path(SONG)
    options = ("--log-format", form)
    with Antiphon(tmp_path, media.root, engine_options=options, router_options=options) as antiphon:
        yield antiphon, form


def lines(server: Server) -> list[str]:
    text = server.log.read_text()
    assert text.endswith("\n")
    return text.splitlines()


async def wait_line(server: Server, words: str) -> str:
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not (found := [line for line in lines(server) if words in line]):
        assert asyncio.get_running_loop().time() < deadline, f"no line with {words!r}:\n{server.tail()}"
        await asyncio.sleep(0.05)
    return found[0]


async def test_every_line_is_whole_and_says_what_it_concerns(logging, new_session):
    antiphon, form = logging
    session = new_session()
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(5)
        await listener.ask("play", url="media:nowhere\u2029session=forged.opus")
    async with connect_to_engine(antiphon.socket) as engine:
        await engine.write(b'{"type":"seek\\u001b[2J\\u2028x","session_id":"hostile"}\n')
        await engine.wait_event("error")
    refused = await wait_line(antiphon.engine, "refused command")
    failed = await wait_line(antiphon.engine, "session error")
    for server, process in ((antiphon.engine, "AudioEngine"), (antiphon.router, "Router")):
        raw = server.log.read_bytes()
        assert not any(mark.encode() in raw for mark in ("\x1b", "\u2028", "\u2029")), raw
        for line in lines(server):
            if form == "json":
                fields = json.loads(line)
                assert TIME.match(fields["ts"]) and datetime.fromisoformat(fields["ts"]), line
                assert fields["level"] in ("trace", "debug", "info", "notice", "warning", "error", "critical"), line
                assert fields["process"] == process and fields["message"], line
                assert all(isinstance(value, str) for value in fields.values()), line
            else:
                assert re.match(r"^\S+Z (TRACE|DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL) \S", line), line
                assert TIME.match(line.split(" ")[0]), line
    if form == "json":
        assert json.loads(refused)["session"] == "hostile", refused
        assert json.loads(failed)["session"] == session, failed
    else:
        assert refused.endswith(" session=hostile") and failed.endswith(f" session={session}"), (refused, failed)


async def test_each_session_begins_and_ends_with_a_line(logging, new_session):
    antiphon, form = logging
    session = new_session()

    def said() -> list[str]:
        """What the engine's log says of the session, errors aside."""
        if form == "json":
            fields = map(json.loads, lines(antiphon.engine))
            found = [each["message"] for each in fields if each.get("session") == session]
        else:
            found = re.findall(rf" INFO (.*) session={session}$", antiphon.engine.log.read_text(), re.MULTILINE)
        return [message for message in found if not message.startswith("session error")]

    def sent(packets: list) -> str:
        return f"{len(packets)} packets, {sum(len(packet.audio) for packet in packets)} bytes"

    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(20)
        await listener.play(SONG.url, volume=0.5)
        replaced = await listener.wait_event("ended")
        await listener.wait_packets(20, since=listener.index(replaced))
        await listener.command("stop")
        first, second = (listener.packets(until=listener.index(replaced)), listener.packets(listener.index(replaced)))
        await listener.ask("play", url="http://127.0.0.1:1/song.mp3?key=secret")
        expected = [
            f"begins {SONG.url}",
            f"replaced by another track: {sent(first)}",
            f"begins {SONG.url}",
            f"ended (stopped): {sent(second)}",
            "begins http://127.0.0.1:1/song.mp3",
            "ended (loadFailed): 0 packets, 0 bytes",
        ]
        await wait_line(antiphon.engine, "ended (loadFailed)")
        assert said() == expected


async def test_the_router_says_which_session_goes_on(logging, new_session):
    antiphon, form = logging
    session = new_session()
    async with listen(antiphon.router.url, session) as listener:
        await listener.play(SONG.url)
        await listener.wait_packets(5)
        antiphon.engine.kill()
        await listener.wait_event("engine")
        since = listener.mark()
        antiphon.engine.start()
        await listener.wait_event("playing", since)
    line = await wait_line(antiphon.router, "going on with")
    assert (json.loads(line)["session"] == session) if form == "json" else line.endswith(f" session={session}"), line

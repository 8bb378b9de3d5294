"""`why`: the answer to "why is it silent?"."""

from client import listen, request
from media import FLAC, WAV, tone_clip
from processes import Antiphon
from web_server import WebServer

CLIP = tone_clip(440, 20, FLAC)
OPENING = ["queue", "connect", "probe", "first_packet", "first_frame_out"]


async def test_a_session_nobody_knows(antiphon, new_session):
    why = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{new_session()}/why")
    assert why.status == 200 and why.body["state"] == "idle" and "nothing has been asked" in why.body["summary"], why


async def test_what_a_play_went_through(antiphon, media, new_session):
    media.path(CLIP)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(CLIP.url)
        await listener.wait_packets(10)
        why = await listener.command("why")
        assert why["type"] == "why" and why["state"] == "streaming", why
        assert [stage["stage"] for stage in why["stages"]] == OPENING, why["stages"]
        times = [stage["at_ms"] for stage in why["stages"]]
        assert times == sorted(times) and times[0] >= 0, times
        assert all(stage["ms"] >= 0 for stage in why["stages"][:4]), why["stages"]
        assert why["underruns"] == {"count": 0, "total_ms": 0, "longest_ms": 0} and why["restarts"] == 0, why
        assert "It plays" in why["summary"], why

        await listener.command("pause")
        assert "paused" in (await listener.command("why"))["summary"]
        await listener.command("resume")
        await listener.command("volume", level=0)
        assert "volume 0" in (await listener.command("why"))["summary"]

        engine = await request("GET", f"{antiphon.engine.url}/session/{listener.session}")
        assert engine.body["state"] == "streaming" and engine.body["why"]["state"] == "streaming", engine

        await listener.command("stop")
        ended = await listener.command("why")
        assert ended["state"] == "idle" and ended["ended"]["reason"] == "stopped", ended
        assert ended["ended"]["ago_ms"] >= 0 and "stopped" in ended["summary"], ended


async def test_what_has_gone_out_is_counted(antiphon, media, new_session):
    """Every packet, those of a fade too, and their own bytes."""
    media.path(CLIP)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(CLIP.url)
        await listener.wait_packets(30)
        await listener.command("pause")
        await listener.command("resume")
        await listener.wait_packets(60)
        assert (await listener.command("why"))["sent"]["packets"] >= 60
        await listener.command("stop")
        heard = [packet.audio for packet in listener.packets()]
        expected = {"packets": len(heard), "bytes": sum(map(len, heard))}
        assert (await listener.command("why"))["sent"] == expected
        await listener.play(CLIP.url)
        assert (await listener.command("why"))["sent"]["packets"] < len(heard)
        await listener.command("stop")


async def test_why_a_track_could_not_be_loaded(antiphon, new_session):
    async with listen(antiphon.router.url, new_session()) as listener:
        answer = await listener.ask("play", url="media:not-there.flac")
        assert answer["code"] == "source_not_found", answer
        why = await listener.command("why")
        assert why["ended"]["reason"] == "loadFailed", why
        assert why["last_error"]["code"] == "source_not_found" and why["last_error"]["hint"], why
        assert "not-there.flac" in why["summary"], why


async def test_why_goes_to_the_asker_alone(antiphon, media, new_session):
    media.path(CLIP)
    session = new_session()
    async with listen(antiphon.router.url, session) as one, listen(antiphon.router.url, session) as other:
        await one.play(CLIP.url)
        await one.command("why")
        await one.command("stop")
        await other.wait_event("ended")
        assert not other.events("why"), other.events("why")


async def test_an_idle_session_is_cleaned_up(tmp_path, media):
    """Paused for longer than it may be; one that plays stays, and the paused one is told why it ended."""
    media.path(CLIP)
    with Antiphon(tmp_path, media.root, engine_options=("--idle-timeout-seconds", "1")) as antiphon:
        async with listen(antiphon.router.url, "idle") as idle, listen(antiphon.router.url, "busy") as busy:
            await idle.play(CLIP.url)
            await busy.play(CLIP.url)
            paused = await idle.command("pause")
            ended = await idle.wait_event("ended")
            assert ended["reason"] == "cleanup" and ended["position_ms"] == paused["position_ms"], ended
            why = await idle.command("why")
            assert why["ended"]["reason"] == "cleanup" and "idle" in why["summary"], why
            await busy.wait_packets(20, since=busy.mark())
            assert not busy.events("ended"), busy.events("ended")
            # It can be begun anew where it was.
            await idle.play(CLIP.url, start_ms=ended["position_ms"])
            await idle.wait_packets(10, since=idle.mark())


async def test_a_source_that_says_nothing_more(tmp_path, media, new_session):
    """The first half is heard; then it is said that nothing comes, and after ten seconds said again."""
    clip = tone_clip(440, 4, WAV)
    media.path(clip)
    options = ("--source-timeout-seconds", "60")
    with (
        WebServer(media.root) as site,
        Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options) as antiphon,
    ):
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(f"{site.url}/stall/{clip.file}")
            buffering = await listener.wait_event("buffering")
            why = await listener.command("why")
            assert why["state"] == "streaming" and "waits for its source" in why["summary"], why
            stuck = await listener.wait_event("stuck")
            assert stuck["waited_ms"] >= 10_000 and stuck["position_ms"] == buffering["position_ms"], stuck
            # Anyone who goes back to what is there hears it, and nothing is waited for any more.
            seeked = await listener.command("seek", position_ms=0)
            await listener.wait_packets(5, since=listener.index(seeked))
            session = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{listener.session}")
            assert not session.body.get("buffering"), session
            await listener.command("stop")
            why = await listener.command("why")
            assert why["underruns"]["count"] == 1 and why["underruns"]["longest_ms"] >= 10_000, why
            assert "underrun" in [stage["stage"] for stage in why["stages"]], why

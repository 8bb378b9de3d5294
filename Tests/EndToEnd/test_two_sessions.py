"""The main job: two sessions at once, each listener hears its own and nothing else."""

import asyncio
import time

import pytest

from analysis import assert_unbroken_tone, dominant_frequency, tone_level_db
from client import OPUS, TIMED, listen
from inbox import Packet, assert_unbroken
from media import FLAC, MP3_CBR, OGG_OPUS, tone_clip
from opus import FRAME, decode
from signals import AMPLITUDE

LOW = tone_clip(440, 13, MP3_CBR, 44_100)
HIGH = tone_clip(880, 13, FLAC, 44_100)

#: The tone's beginning is a step that a codec smears a little; after 100 ms it is a plain tone.
ONSET = 5


def assert_only(frequency: int, other: int, packets: list[Packet], what: str) -> None:
    """The packets decode to one unbroken tone, and nothing of the other."""
    sound = decode(packet.audio for packet in packets)[ONSET * FRAME :, 0]
    measured = dominant_frequency(sound)
    assert abs(measured - frequency) < 1, f"{what}: heard {measured:.1f} Hz instead of {frequency} Hz"
    level, foreign = tone_level_db(sound, frequency), tone_level_db(sound, other)
    assert foreign < level - 60, f"{what}: {other} Hz is heard at {foreign:.1f} dB, the own tone at {level:.1f} dB"
    assert_unbroken_tone(sound, frequency, AMPLITUDE, what)


@pytest.mark.parametrize("protocol", [TIMED, OPUS])
async def test_each_hears_only_its_own(antiphon, media, new_session, protocol):
    media.make(LOW, HIGH)
    url = antiphon.router.url
    async with listen(url, new_session(), protocol) as low, listen(url, new_session(), protocol) as high:
        await asyncio.gather(low.play(LOW.url), high.play(HIGH.url))
        await asyncio.gather(low.wait_packets(500), high.wait_packets(500))
        for listener, frequency, other in ((low, 440, 880), (high, 880, 440)):
            packets = listener.packets()[:500]
            assert_only(frequency, other, packets, f"the {frequency} Hz listener")
            seconds = (packets[-1].arrived_ns - packets[0].arrived_ns) / 1e9
            # 499 steps of 20 ms. A busy machine may make it longer, nothing makes it shorter.
            assert seconds > 9.8, f"500 packets took {seconds:.2f} s instead of 9.98 s"
            if protocol == TIMED:
                assert_unbroken(packets, f"the {frequency} Hz listener")
                due = (packets[-1].due_ns - packets[0].due_ns) / 1e9
                if not listener.delays():
                    assert abs(due - 9.98) < 1e-6, f"500 packets are due over {due} s instead of 9.98 s"
        await asyncio.gather(low.command("stop"), high.command("stop"))


async def test_stopping_one_leaves_the_other_untouched(antiphon, media, new_session):
    media.make(LOW, HIGH)
    url = antiphon.router.url
    async with listen(url, new_session()) as low, listen(url, new_session()) as high:
        await asyncio.gather(low.play(LOW.url), high.play(HIGH.url))
        await asyncio.gather(low.wait_packets(50), high.wait_packets(50))

        stopped = await low.command("stop")
        assert stopped["type"] == "ended" and stopped["reason"] == "stopped", stopped
        after = low.index(stopped)
        await high.wait_packets(100, since=high.mark())

        assert not low.packets(since=after), f"{len(low.packets(since=after))} packets after `ended`"
        assert_unbroken(high.packets(), "the session that goes on")
        assert_only(880, 440, high.packets(), "the session that goes on")
        for kind in ("dropped", "ended", "error"):
            assert not high.events(kind), high.events(kind)
        await high.command("stop")


@pytest.mark.parametrize("encoding", [OGG_OPUS, FLAC], ids=["passthrough", "transcoded"])
async def test_playing_again_replaces_the_old_track(antiphon, media, new_session, encoding):
    old, new = tone_clip(440, 4, encoding), tone_clip(1_000, 4, encoding)
    media.make(old, new)
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(old.url)
        await listener.wait_packets(40)
        since = listener.mark()
        await listener.play(new.url)
        playing = await listener.wait_event("playing", since)
        await listener.wait_packets(60, since=listener.index(playing))

        ended = listener.events("ended", since)
        assert [event["reason"] for event in ended] == ["replaced"], ended
        end = listener.index(ended[0])
        kinds = listener.course(since=end)
        assert kinds == ["ended", "extracting", "ready", "playing"], kinds
        between = listener.packets(end, listener.index(playing))
        assert not between, f"{len(between)} packets between `ended` and `playing`"

        assert_only(440, 1_000, listener.packets(until=end), "the old track")
        # A fresh decoder, so that whatever is heard of the old track comes from these packets.
        packets = listener.packets(since=end)
        assert packets[0].position_ms == playing["position_ms"] == 0, (packets[0].position_ms, playing)
        sound = decode(packet.audio for packet in packets)[:, 0]
        foreign = tone_level_db(sound[: 10 * FRAME], 440)
        assert foreign < -45, f"440 Hz, the old track, is heard at {foreign:.1f} dB in the new one's first 200 ms"
        assert_only(1_000, 440, packets, "the new track")
        await listener.command("stop")


async def test_sixty_sessions_at_once(antiphon, media, new_session):
    """The seed's figure, of 60 files: each its own tone, and all of them at the same time."""
    frequencies = [300 + 100 * number for number in range(60)]
    clips = [tone_clip(each, 20, OGG_OPUS if number % 2 else FLAC) for number, each in enumerate(frequencies)]
    media.make(*clips)
    playing = asyncio.Barrier(len(clips))

    async def hear(number: int) -> None:
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(clips[number].url)
            await listener.wait_packets(1)
            await playing.wait()
            since = listener.mark()
            # On a slow machine a track may end before all play.
            if not listener.events("ended"):
                await listener.wait(
                    lambda: listener.mark() >= since + 100 or listener.events("ended", since), "100 packets"
                )
            packets = listener.packets()
            await playing.wait()
            await listener.ask("stop")
            # Only now, when nothing comes any more that has to be read meanwhile.
            assert_unbroken(packets, f"session {number}")
            measured = dominant_frequency(decode(packet.audio for packet in packets)[ONSET * FRAME :, 0])
            assert abs(measured - frequencies[number]) < 1, f"session {number}: heard {measured:.1f} Hz"

    await asyncio.gather(*(hear(number) for number in range(len(clips))))


async def test_the_state_machine_emits_every_event_once(antiphon, media, new_session):
    clip = tone_clip(440, 1, FLAC)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        begun = time.time()
        first = await listener.wait_event("session")
        assert listener.received[0] is first, listener.received[0]
        assert first["session"]["state"] == "idle" and first["engine"]["connected"] is True, first
        ready = await listener.play(clip.url)
        ended = await listener.wait_event("ended")
        kinds = listener.course()
        assert kinds == ["extracting", "ready", "playing", "ended"], kinds
        assert ended["reason"] == "finished" and time.time() - begun > 0.9, (ended, time.time() - begun)
        assert ready["url"] == clip.url and ready["codec"] == "flac" and ready["passthrough"] is False, ready
        assert abs(ready["duration_ms"] - 1_000) <= 40, ready
        assert {"queued", "connect", "probe", "first_packet", "total"} <= ready["timings_ms"].keys(), ready

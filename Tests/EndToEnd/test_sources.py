"""Every container, rate and channel layout plays from its first sample to its last."""

import asyncio

from analysis import heard_at, locate, tone_level_db
from client import listen
from inbox import assert_unbroken
from media import (
    FLAC,
    M4A,
    MP3_CBR,
    MP3_VBR,
    OGG_OPUS,
    OGG_OPUS_60,
    OGG_OPUS_SURROUND,
    SURROUND,
    TTA,
    VORBIS,
    WAV,
    WAV_24,
    WEBM_OPUS,
    glides_clip,
    surround_clip,
)
from opus import FRAME, LOOKAHEAD, decode
from signals import RATE, Glides

SONG = Glides(3.1, seed=7)
DURATION = 3_100

#: Encoding, rate, channels.
FILES = [
    (MP3_CBR, 44_100, 2),
    (MP3_CBR, 48_000, 1),
    (MP3_VBR, 32_000, 2),
    (MP3_VBR, 22_050, 1),
    (MP3_VBR, 11_025, 1),
    (M4A, 44_100, 2),
    (M4A, 48_000, 6),
    (M4A, 96_000, 2),
    (M4A, 16_000, 1),
    (FLAC, 8_000, 1),
    (FLAC, 44_100, 2),
    (FLAC, 88_200, 2),
    (FLAC, 192_000, 2),
    (FLAC, 48_000, 6),
    (WAV, 8_000, 1),
    (WAV, 44_100, 2),
    (WAV_24, 192_000, 2),
    (WAV, 48_000, 6),
    (TTA, 44_100, 2),
    (TTA, 48_000, 6),
    (VORBIS, 44_100, 2),
    (VORBIS, 22_050, 1),
    (VORBIS, 48_000, 6),
    (OGG_OPUS, 48_000, 2),
    (OGG_OPUS, 48_000, 1),
    (OGG_OPUS_60, 48_000, 2),
    (OGG_OPUS_SURROUND, 48_000, 6),
    (WEBM_OPUS, 48_000, 2),
    (WEBM_OPUS, 48_000, 1),
]

CLIPS = [
    glides_clip(
        f"whole-{encoding.name}-{rate}-{channels}",
        SONG,
        encoding,
        rate,
        channels,
    )
    for encoding, rate, channels in FILES
]


async def test_everything_plays_to_its_end(antiphon, media, new_session):
    media.make(*CLIPS)
    assert len({clip.file for clip in CLIPS}) == len(CLIPS)

    async def check(clip) -> list[str]:
        async with listen(antiphon.router.url, new_session()) as listener:
            ready = await listener.ask("play", url=clip.url)
            if ready["type"] == "error":
                return [f"{clip}: refused: {ready['code']} {ready['message']}"]
            ended = await listener.wait_event("ended")
            packets = listener.packets()
            wrong = []
            if ended["reason"] != "finished" or listener.events("error"):
                wrong.append(f"{clip}: {ended}, {listener.events('error')}")
            if listener.packets(since=listener.index(ended)):
                wrong.append(f"{clip}: packets after `ended`")
            assert_unbroken(packets, str(clip))
            if packets[0].position_ms != 0:
                wrong.append(f"{clip}: begins at {packets[0].position_ms} ms")
            sound = decode(packet.audio for packet in packets)[:, 0]
            # Of the last packet only a part may be sound, and the first begins with the codec's delay.
            seconds = (len(sound) - LOOKAHEAD) / RATE
            if not -0.040 <= seconds - DURATION / 1_000 <= 0.040:
                wrong.append(f"{clip}: {seconds * 1_000:.1f} ms decoded of {DURATION} ms")
            # An MP3's header counts whole frames, with the encoder's delay and padding.
            if abs(ready["duration_ms"] - DURATION) > 150:
                wrong.append(f"{clip}: `ready` says {ready['duration_ms']} ms of {DURATION} ms")
            for at in (0, 1_500, 2_860):
                place = heard_at(sound, at * RATE // 1_000, SONG)
                if place.likeness < 0.85 or abs(place.milliseconds - at) > 5:
                    wrong.append(f"{clip}: at {at} ms sounds like {place}")
            return wrong

    wrong = sum(await asyncio.gather(*(check(clip) for clip in CLIPS)), [])
    assert not wrong, "\n".join(wrong)


async def test_surround_is_mixed_down_with_every_channel(antiphon, media, new_session):
    """Left has left, centre and back left, right likewise. The LFE is left out, as ITU-R BS.775 has it."""
    clips = [surround_clip(encoding) for encoding in (FLAC, WAV, VORBIS, M4A, OGG_OPUS_SURROUND)]
    media.make(*clips)
    sides = {"FL": (True, False), "FR": (False, True), "FC": (True, True), "BL": (True, False), "BR": (False, True)}

    async def check(clip) -> list[str]:
        wrong = []
        async with listen(antiphon.router.url, new_session()) as listener:
            await listener.play(clip.url)
            await listener.wait_event("ended")
            sound = decode(packet.audio for packet in listener.packets())[10 * FRAME : 90 * FRAME]
            if abs(sound).max() > 1:
                wrong.append(f"{clip}: clipped, up to {abs(sound).max():.2f}")
            for channel, expected in sides.items():
                for side in (0, 1):
                    level = tone_level_db(sound[:, side], SURROUND[channel])
                    if (level > -30) != expected[side]:
                        wrong.append(f"{clip}: {channel} is at {level:.1f} dB {'right' if side else 'left'}")
        return wrong

    wrong = sum(await asyncio.gather(*(check(clip) for clip in clips)), [])
    assert not wrong, "\n".join(wrong)


async def test_names_and_tags_do_not_matter(antiphon, media, new_session):
    """What a file is called says nothing: an Ogg named .mp3, with a cover picture's worth of odd bytes in the name."""
    clip = glides_clip("whole-name", SONG, VORBIS, 44_100)
    url = media.write("ogg, honestly (100%).mp3", media.bytes(clip))
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(url)
        assert ready["codec"] == "vorbis" and ready["title"] == "whole-name", ready
        packets = await listener.wait_packets(60)
        place = locate(
            decode(packet.audio for packet in packets)[20 * FRAME + LOOKAHEAD : 30 * FRAME + LOOKAHEAD, 0], SONG
        )
        assert place.likeness > 0.9 and abs(place.milliseconds - 400) < 5, place
        await listener.command("stop")

"""Opus in the right shape is sent as it is: the packets a client receives are the packets in the file."""

import subprocess

import pytest

from client import OPUS, listen
from media import OGG_OPUS, OGG_OPUS_60, WEBM_OPUS, Clip, MediaFolder, glides_clip
from ogg import read_opus
from signals import Glides

SONG = Glides(3, seed=8)
FILES = {
    "ogg": glides_clip("bits-ogg", SONG, OGG_OPUS),
    "webm": glides_clip("bits-webm", SONG, WEBM_OPUS),
    "ogg-mono": glides_clip("bits-mono", SONG, OGG_OPUS, channels=1),
}


def packets_in_file(media: MediaFolder, clip: Clip) -> list[bytes]:
    """The file's packets: Ogg read by our own parser, WebM put into an Ogg by ffmpeg first."""
    data = media.bytes(clip)
    if clip.encoding is WEBM_OPUS:
        command = ["ffmpeg", "-v", "error", "-nostdin", "-i", str(media.path(clip)), "-c", "copy", "-f", "opus", "-"]
        data = subprocess.run(command, capture_output=True, check=True).stdout
    return read_opus(data).packets


@pytest.mark.parametrize("name", FILES)
async def test_the_packets_are_the_files_own(antiphon, media, new_session, name):
    clip = FILES[name]
    expected = packets_in_file(media, clip)
    assert len(expected) in (150, 151), len(expected)
    async with listen(antiphon.router.url, new_session(), OPUS) as listener:
        ready = await listener.play(clip.url)
        assert ready["passthrough"] is True and ready["codec"] == "opus", ready
        await listener.wait_event("ended")
        received = [packet.audio for packet in listener.packets()]
    differing = [index for index, (one, other) in enumerate(zip(received, expected, strict=False)) if one != other]
    assert not differing, f"{len(differing)} packets differ, first {differing[0]} of {len(expected)}"
    assert len(received) == len(expected), f"{len(received)} packets received, {len(expected)} in the file"


async def test_what_is_not_20_ms_is_encoded_anew(antiphon, media, new_session):
    clip = glides_clip("bits-60", SONG, OGG_OPUS_60)
    media.path(clip)
    async with listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(clip.url)
        assert ready["passthrough"] is False, ready
        await listener.command("stop")

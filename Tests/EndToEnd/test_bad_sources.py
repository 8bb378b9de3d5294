"""Files that cannot be played: each gives its own clear error, and nothing else notices."""

import asyncio
import os

import numpy as np
import pytest

from client import connect_to_engine, listen, request
from inbox import assert_unbroken
from media import FLAC, M4A, MP3_CBR, OGG_OPUS, VORBIS, WAV, Clip
from opus import decode

#: Noise, because a tone's file is mostly headers: here half of a file is half of the sound.
SOUND = {
    encoding.suffix: Clip(f"noise-4s-{encoding.name}", encoding, lambda rate: _noise(rate), channels=1)
    for encoding in (FLAC, M4A, MP3_CBR, OGG_OPUS, VORBIS, WAV)
}
STATUS = {
    "invalid_source": 400,
    "source_forbidden": 403,
    "source_not_found": 404,
    "source_not_audio": 415,
    "source_empty": 422,
    "source_corrupt": 422,
    "source_truncated": 422,
}


@pytest.fixture(scope="module")
def bad_files(media) -> dict[str, tuple[str, set[str]]]:
    """What is wrong → URL and the codes that fit."""
    media.make(*SOUND.values())
    outside = media.root.parent / "outside.flac"
    outside.write_bytes(media.bytes(SOUND["flac"]))
    folder = media.root / "folder"
    folder.mkdir(exist_ok=True)
    for name, target in {
        "link.flac": outside,
        "link-up.flac": "../../outside.flac",
        "link-device": "/dev/zero",
        "link-folder": media.root.parent,
        "link-round": "link-round",
        "link-nowhere": "/nonexistent/a.flac",
    }.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    (folder / "closed.flac").write_bytes(media.bytes(SOUND["flac"]))

    noise = bytes(os.urandom(200_000))
    m4a, wav, flac = media.bytes(SOUND["m4a"]), media.bytes(SOUND["wav"]), media.bytes(SOUND["flac"])
    write = media.write
    forbidden, missing = {"source_forbidden"}, {"source_not_found"}
    return {
        "text": (write("text.mp3", b"This is no music.\n" * 500), {"source_not_audio"}),
        "a page": (write("page.html", b"<!doctype html><title>x</title>" * 100), {"source_not_audio"}),
        "noise": (write("noise.bin", noise), {"source_not_audio", "source_corrupt"}),
        "a picture": (write("picture.png", _png()), {"source_not_audio"}),
        "a list of other files": (
            write("list.m3u8", _playlist(outside)),
            {"source_not_audio", "source_forbidden", "invalid_source"},
        ),
        "a concat list": (
            write("list.ffconcat", f"ffconcat version 1.0\nfile '{outside}'\n".encode()),
            {"source_not_audio", "source_forbidden"},
        ),
        "empty": (write("empty.mp3", b""), {"source_empty"}),
        "a WAV without sound": (
            write("silent.wav", wav[:44].replace(wav[40:44], b"\0\0\0\0")),
            {"source_empty", "source_not_audio", "source_corrupt"},
        ),
        "an M4A cut before its index": (
            write("cut.m4a", m4a[: len(m4a) // 2]),
            {"source_corrupt", "source_truncated", "source_not_audio"},
        ),
        "a FLAC of a header": (
            write("header.flac", flac[:42]),
            {"source_empty", "source_corrupt", "source_truncated", "source_not_audio"},
        ),
        "missing": ("media:nothing/here.flac", missing),
        "a folder": ("media:folder", {"source_not_audio", "source_not_found"}),
        "the root": ("media:", {"source_not_audio", "source_not_found", "invalid_source"}),
        "a pipe": ("media:folder/pipe", {"source_not_audio", "source_not_found", "source_forbidden"}),
        "up": ("media:../outside.flac", forbidden),
        "up to nothing": ("media:../nothing.flac", forbidden),
        "up and down": ("media:folder/../../outside.flac", forbidden),
        "up, encoded": ("media:%2e%2e/outside.flac", forbidden),
        "up, slash encoded": ("media:..%2foutside.flac", forbidden),
        "absolute": (f"media:{outside}", forbidden | missing),
        "absolute, with slashes": (f"media://{outside}", forbidden | missing),
        "a NUL": ("media:tone%00.flac", missing | {"invalid_source", "source_forbidden"}),
        "a link out": ("media:folder/link.flac", forbidden),
        "a relative link out": ("media:folder/link-up.flac", forbidden),
        "a link to a device": ("media:folder/link-device", forbidden),
        "through a linked folder": ("media:folder/link-folder/outside.flac", forbidden),
        "a link to itself": ("media:folder/link-round", forbidden | missing),
        "a link to nowhere": ("media:folder/link-nowhere", forbidden | missing),
    }


async def test_each_is_refused_over_websocket(antiphon, bad_files, new_session, bystander):
    """An `error` that answers the play, and `ended` `loadFailed` where it had begun."""

    async def check(what: str) -> list[str]:
        url, codes = bad_files[what]
        async with listen(antiphon.router.url, new_session()) as listener:
            answer = await listener.ask("play", url=url)
            if answer["type"] != "error":
                return [f"{what} ({url}): {answer}"]
            wrong = []
            if answer["code"] not in codes or len(answer["message"]) < 10 or "stage" not in answer:
                wrong.append(f"{what} ({url}): expected {codes}, got {answer}")
            if listener.events("extracting"):
                ended = await listener.wait_event("ended")
                if ended["reason"] != "loadFailed":
                    wrong.append(f"{what}: {ended}")
            if listener.packets():
                wrong.append(f"{what}: {len(listener.packets())} packets")
            state = (await listener.command("status"))["session"]["state"]
            if state != "idle":
                wrong.append(f"{what}: the session is left {state}")
            return wrong

    wrong = sum(await asyncio.gather(*(check(what) for what in bad_files)), [])
    assert not wrong, "\n".join(wrong)


async def test_each_is_refused_over_http(antiphon, bad_files, new_session, bystander):
    async def check(endpoint: str, base: str, what: str) -> list[str]:
        url, codes = bad_files[what]
        answer = await request("POST", f"{base}/{new_session()}/play", {"url": url})
        if answer.code not in codes or answer.status != STATUS.get(answer.code) or not answer.body.get("message"):
            return [f"{endpoint}, {what} ({url}): expected {codes}, got {answer}"]
        return []

    endpoints = {"Router": f"{antiphon.router.url}/api/v1/sessions", "AudioEngine": f"{antiphon.engine.url}/session"}
    checks = (check(*endpoint, what) for endpoint in endpoints.items() for what in bad_files)
    wrong = sum(await asyncio.gather(*checks), [])
    assert not wrong, "\n".join(wrong)


async def test_each_is_refused_on_the_engines_socket(antiphon, bad_files, new_session, bystander):
    async with connect_to_engine(antiphon.socket) as engine:
        requests = {
            what: await engine.send(type="play", session_id=new_session(), url=url)
            for what, (url, _) in bad_files.items()
        }
        for what, request_id in requests.items():
            answer = await engine.wait_answer(request_id)
            assert answer["type"] == "error" and answer["code"] in bad_files[what][1], (what, answer)


async def test_listing_stays_below_the_root(antiphon, bad_files):
    for base in (f"{antiphon.router.url}/api/v1/media", f"{antiphon.engine.url}/media"):
        for path in ("..", "../", "folder/../..", "/etc", "folder/link-folder", "%2e%2e"):
            answer = await request("GET", f"{base}?path={path}")
            assert answer.code in ("source_forbidden", "source_not_found"), (base, path, answer)
            assert answer.status in (403, 404), (base, path, answer)
        listing = await request("GET", f"{base}?path=folder")
        assert "link.flac" not in [entry["name"] for entry in listing.body["entries"]], listing
        answer = await request("GET", f"{base}?path=nothing")
        assert answer.status == 404 and answer.code == "source_not_found", answer


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "ogg", "opus"])
async def test_a_truncated_file_plays_what_there_is(antiphon, media, new_session, bystander, kind):
    """The first half is heard, then `error`, then `ended` `finished` after the last packet."""
    data = media.bytes(SOUND[kind])
    url = media.write(f"half-{kind}.{kind}", data[: len(data) // 2])
    async with listen(antiphon.router.url, new_session()) as listener:
        await listener.play(url)
        ended = await listener.wait_event("ended")
        assert ended["reason"] == "finished", ended
        packets = listener.packets()
        assert_unbroken(packets, kind)
        # Of an Ogg a whole page goes with its end, which is up to a second.
        least = 45 if kind in ("ogg", "opus") else 85
        assert least <= len(packets) <= 115, f"{len(packets)} packets from half of a file of 200"
        decode(packet.audio for packet in packets)
        codes = [event["code"] for event in listener.events("error")]
        # An Ogg says nowhere how long it means to be, and libavformat believes a WAV's size more than its
        # header: their halves are shorter files.
        expected = [["source_truncated"]] if kind in ("flac", "mp3") else [[], ["source_truncated"]]
        assert codes in expected, f"{kind}: errors {codes}, expected {expected[0]}"


async def test_damage_in_the_middle_does_not_end_the_song(antiphon, media, new_session, bystander):
    """A few bytes overwritten: the rest still plays, or the error says what happened; never endless silence."""

    async def check(kind: str) -> list[str]:
        data = bytearray(media.bytes(SOUND[kind]))
        middle = len(data) // 2
        data[middle : middle + 400] = os.urandom(400)
        url = media.write(f"damaged-{kind}.{kind}", bytes(data))
        async with listen(antiphon.router.url, new_session()) as listener:
            answer = await listener.ask("play", url=url)
            if answer["type"] == "error":
                return [] if answer["code"] in STATUS else [f"{kind}: {answer}"]
            ended = await listener.wait_event("ended")
            errors = [event["code"] for event in listener.events("error")]
            count = len(listener.packets())
            if ended["reason"] != "finished" or (count < 130 and not errors):
                return [f"{kind}: {ended} after {count} packets of 200, errors {errors}"]
            return []

    wrong = sum(await asyncio.gather(*(check(kind) for kind in SOUND)), [])
    assert not wrong, "\n".join(wrong)


def _png() -> bytes:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(72))) + chunk(b"IEND", b"")
    )


def _playlist(target) -> bytes:
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nfile://{target}\n#EXT-X-ENDLIST\n".encode()


def _noise(rate: int) -> np.ndarray:
    return np.random.default_rng(13).uniform(-0.5, 0.5, 4 * rate)

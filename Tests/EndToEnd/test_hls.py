"""HLS: streams in segments, from ffmpeg's own muxer, live ones too, and playlists that mean harm."""

import asyncio

import pytest

import hls
from analysis import assert_unbroken_tone, dominant_frequency, heard_at
from client import listen, request
from extraction import COLD_SECONDS
from inbox import assert_unbroken
from media import FLAC, glides_clip, tone_clip
from mpegts import with_timed_id3
from opus import FRAME, RATE, sound_of
from signals import AMPLITUDE, Glides
from tagged import id3, id3_text

TONE, HIGH = tone_clip(440, 20, FLAC), tone_clip(880, 20, FLAC)
SONG = Glides(20, seed=5)
GLIDES = glides_clip("hls-glides", SONG, FLAC)
#: Of 4 s, to the end of an AAC frame.
SEGMENT_MILLISECONDS = 4_020

HEAD = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
END = "#EXT-X-ENDLIST\n"


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    with hls.player(tmp_path_factory.mktemp("hls"), media.root) as running:
        yield running


async def test_segments_are_one_sound(antiphon, media, tmp_path, new_session):
    """Each kind, to the last packet, and no joint is heard."""

    async def check(kind: str) -> None:
        hls.make(tmp_path / kind, media.path(TONE), kind)
        async with hls.site(tmp_path / kind) as (url, _), listen(antiphon.router.url, new_session()) as listener:
            ready = await listener.play(f"{url}/index.m3u8")
            assert abs(ready["duration_ms"] - 20_000) < 150 and "live" not in ready, (kind, ready)
            ended = await listener.wait_event("ended", seconds=40)
            assert ended["reason"] == "finished" and not listener.events("error"), (kind, listener.events("error"))
            packets = listener.packets()
            assert_unbroken(packets, kind)
            assert abs(len(packets) - 1_000) <= 5, f"{kind}: {len(packets)} packets of 20 s"
            assert_unbroken_tone(sound_of(packets)[10 * FRAME : 990 * FRAME], 440, AMPLITUDE, kind)

    await asyncio.gather(*map(check, hls.KINDS))


@pytest.mark.parametrize("kind", ["ts", "fmp4", "encrypted"])
async def test_a_seek_lands_on_its_frame(antiphon, media, tmp_path, new_session, kind):
    hls.make(tmp_path, media.path(GLIDES), kind)
    async with hls.site(tmp_path) as (url, asked), listen(antiphon.router.url, new_session()) as listener:
        for start in (13_500, 4_000, 9_260):
            asked.clear()
            since = listener.mark()
            await listener.command("play", url=f"{url}/index.m3u8", start_ms=start)
            await listener.wait_packets(80, since=listener.index(await listener.wait_event("playing", since)))
            sound = sound_of(listener.packets(listener.index(await listener.wait_event("playing", since))))
            place = heard_at(sound, 40 * FRAME, SONG)
            # AAC begins with a frame of its encoder's delay, of which MPEG-TS says nothing.
            assert place.likeness > 0.85 and -24 <= place.milliseconds - start - 800 <= 2, (start, place)
            # What comes before is not fetched.
            segments = [path for path in asked if not path.endswith(("m3u8", "mp4", "key"))]
            assert len(segments) <= 6 - start // SEGMENT_MILLISECONDS, asked
            # Nothing of it is fetched while the next place is.
            await listener.command("stop")
            await listener.wait_event("ended", since, reason="stopped")


async def test_what_follows_a_discontinuity_is_another_stream(antiphon, media, tmp_path, new_session):
    """Another codec, another tone, timestamps that begin again; a gap between the two is left out."""
    for name, clip, kind in [("a", TONE, "ts"), ("b", HIGH, "mp3")]:
        hls.make(tmp_path / name, media.path(clip), kind)
    parts = [[f"#EXTINF:4,\n{name}/index{number}.ts\n" for number in range(2)] for name in "ab"]
    gap = "#EXT-X-GAP\n#EXTINF:4,\nnone.ts\n"
    text = HEAD + "".join([*parts[0], gap, "#EXT-X-DISCONTINUITY\n", *parts[1]]) + END
    (tmp_path / "index.m3u8").write_text(text)
    async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{url}/index.m3u8")
        await listener.wait_event("ended", seconds=40)
        packets = listener.packets()
        assert_unbroken(packets, "across the discontinuity")
        assert abs(len(packets) - 800) <= 10, f"{len(packets)} packets of 2 x 8 s"
        sound = sound_of(packets)
        for frequency, begin in ((440, 1), (880, 9)):
            heard = dominant_frequency(sound[begin * RATE : (begin + 6) * RATE])
            assert abs(heard - frequency) < 3, f"{heard} Hz from {begin} s on"


async def test_a_page_that_has_nothing_but_segments(antiphon, media, tmp_path, new_session):
    """yt-dlp finds the playlist behind it."""
    hls.make(tmp_path, media.path(TONE), "ts")
    (tmp_path / "page.html").write_text(
        '<!doctype html><title>Show</title><video><source src="index.m3u8" type="application/x-mpegURL"></video>'
    )
    async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
        answer = await listener.ask("play", url=f"{url}/page.html", seconds=COLD_SECONDS)
        assert answer["type"] == "ready" and answer["title"].startswith("Show"), answer
        since = listener.mark()
        await listener.wait_packets(100, since=since)
        assert abs(dominant_frequency(sound_of(listener.packets(since))[RATE // 5 :]) - 440) < 3
        await listener.command("stop")


async def test_the_best_sound_is_chosen(antiphon, media, tmp_path, new_session):
    for name in ("low", "high", "video"):
        hls.make(tmp_path / name, media.path(TONE), "ts")
    (tmp_path / "index.m3u8").write_text("""#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="other",URI="low/index.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="main",DEFAULT=YES,URI="high/index.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=3000000,CODECS="avc1.4d401f,mp4a.40.2",RESOLUTION=1280x720,AUDIO="g"
video/index.m3u8
""")
    async with hls.site(tmp_path) as (url, asked), listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{url}/index.m3u8")
        await listener.wait_packets(20)
        assert any("high" in path for path in asked) and not any("video" in path or "low" in path for path in asked)


async def test_a_live_stream_is_joined_near_its_end_and_followed(antiphon, media, tmp_path, new_session):
    with hls.broadcast(tmp_path, media.path(TONE)):
        await wait_for(tmp_path / "index.m3u8", segments=4)
        async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
            ready = await listener.play(f"{url}/index.m3u8")
            assert ready["live"] and "duration_ms" not in ready, ready
            await listener.wait_packets(500)
            packets = listener.packets()
            assert not listener.stalls(), listener.stalls()
            assert_unbroken(packets, "live")
            assert_unbroken_tone(sound_of(packets)[10 * FRAME : 490 * FRAME], 440, AMPLITUDE, "live")


@pytest.mark.parametrize("place", ["EXTINF", "before packed audio", "in MPEG-TS"])
async def test_a_live_stream_says_its_titles(antiphon, media, tmp_path, new_session, place):
    hls.make(tmp_path, media.path(TONE), "mp3" if place == "before packed audio" else "ts", seconds=2)
    playlist = tmp_path / "index.m3u8"
    lines = playlist.read_text().replace(END, "").replace("#EXT-X-PLAYLIST-TYPE:VOD\n", "").splitlines()
    segments = [tmp_path / line for line in lines if not line.startswith("#")]
    for number, segment in enumerate(segments):
        tag = id3(id3_text("TIT2", f"Nümber {number}".encode()), id3_text("TPE1", b"Ann"))
        if place == "EXTINF":
            row = lines.index(segment.name) - 1
            lines[row] += f"Ann - Nümber {number}"
        elif place == "in MPEG-TS":
            segment.write_bytes(with_timed_id3(segment.read_bytes(), tag))
        else:
            segment.write_bytes(tag + segment.read_bytes())
    playlist.write_text("\n".join([*lines, ""]))
    async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{url}/index.m3u8")
        last = len(segments) - 1
        await listener.wait_event("metadata", title=f"Nümber {last}")
        told = listener.events("metadata")[-2:]
        assert [(event["title"], event["artist"]) for event in told] == [
            (f"Nümber {number}", "Ann") for number in (last - 1, last)
        ]
        # Each at its segment's first packet.
        between = listener.packets(*map(listener.index, told))
        assert abs(len(between) * 0.02 - 2) < 0.1, len(between)


async def test_a_live_stream_that_begins_anew_is_heard_again(antiphon, media, tmp_path, new_session):
    async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
        with hls.broadcast(tmp_path, media.path(TONE)):
            await wait_for(tmp_path / "index.m3u8", segments=4)
            await listener.play(f"{url}/index.m3u8")
            await listener.wait_packets(50)
        since = listener.mark()
        await listener.wait_event("buffering", since)
        (tmp_path / "index.m3u8").unlink()
        since = listener.mark()
        with hls.broadcast(tmp_path, media.path(HIGH)):
            await listener.wait_event("playing", since)
            since = listener.mark()
            await listener.wait_packets(100, since=since)
        assert abs(dominant_frequency(sound_of(listener.packets(since))[RATE // 5 :]) - 880) < 3
        assert not listener.events("ended")


async def wait_for(playlist, segments: int) -> None:
    async with asyncio.timeout(30):
        while not playlist.exists() or playlist.read_text().count("#EXTINF") < segments:
            await asyncio.sleep(0.1)


#: A playlist each, and the code of the error that it comes to; `{url}` is the server that may be reached.
HOSTILE = {
    "a file": (HEAD + "#EXTINF:4,\nfile:///etc/passwd\n" + END, "source_forbidden"),
    "concat": (HEAD + "#EXTINF:4,\nconcat:a|b\n" + END, "source_forbidden"),
    "data": (HEAD + "#EXTINF:4,\ndata:audio/mpeg;base64,AAAA\n" + END, "source_forbidden"),
    "subfile": (HEAD + "#EXTINF:4,\nsubfile,,start,0,end,9,,:/etc/passwd\n" + END, "source_forbidden"),
    "a private segment": (HEAD + "#EXTINF:4,\nhttp://127.0.0.2/a.ts\n" + END, "source_forbidden"),
    "the metadata service": (HEAD + "#EXTINF:4,\nhttp://169.254.169.254/latest/\n" + END, "source_forbidden"),
    "a private key": (
        HEAD + '#EXT-X-KEY:METHOD=AES-128,URI="http://127.0.0.2/k"\n#EXTINF:4,\nindex0.ts\n' + END,
        "source_forbidden",
    ),
    "a key that is a file": (
        HEAD + '#EXT-X-KEY:METHOD=AES-128,URI="file:///etc/passwd"\n#EXTINF:4,\nindex0.ts\n' + END,
        "source_forbidden",
    ),
    "a key that is long": (
        HEAD + '#EXT-X-KEY:METHOD=AES-128,URI="index0.ts"\n#EXTINF:4,\nindex0.ts\n' + END,
        "source_too_large",
    ),
    "a map that is a file": (
        HEAD + '#EXT-X-MAP:URI="file:///etc/passwd"\n#EXTINF:4,\nindex0.ts\n' + END,
        "source_forbidden",
    ),
    "itself": ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhostile.m3u8\n", "source_corrupt"),
    "200,000 entries": (HEAD + "#EXTINF:4,\nindex0.ts\n" * 200_000 + END, "source_too_large"),
    "short entries, too many": (HEAD + "#EXTINF:4,\na\n" * 60_000 + END, "source_corrupt"),
    "a negative duration": (HEAD + "#EXTINF:-4,\nindex0.ts\n" + END, "source_corrupt"),
    "no number": (HEAD + "#EXTINF:four,\nindex0.ts\n" + END, "source_corrupt"),
    "a wild range": (HEAD + "#EXT-X-BYTERANGE:99999999999999999999@1\n#EXTINF:4,\nindex0.ts\n" + END, "source_corrupt"),
    "sample encryption": (
        HEAD + '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"\n#EXTINF:4,\nindex0.ts\n' + END,
        "source_not_audio",
    ),
    "nothing": (HEAD + END, "source_empty"),
    "no audio": (HEAD + "#EXTINF:4,\nhostile.m3u8\n" + END, "source_not_audio"),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_playlist_that_means_harm_is_a_clear_error(antiphon, media, tmp_path, new_session, what):
    text, code = HOSTILE[what]
    hls.make(tmp_path, media.path(TONE), "ts")
    (tmp_path / "hostile.m3u8").write_text(text)
    async with hls.site(tmp_path) as (url, asked):
        address = f"{antiphon.router.url}/api/v1/sessions/{new_session()}/play"
        answer = await request("POST", address, {"url": f"{url}/hostile.m3u8"})
        assert answer.code == code, answer
        assert "root:" not in str(answer.body) and len(asked) < 12, asked

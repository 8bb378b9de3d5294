"""DASH: streams in segments, from ffmpeg's own muxer, live ones too, and manifests that mean harm."""

import asyncio
import contextlib
import gzip
import shutil

import pytest
from aiohttp import web

import dash
import hls
from analysis import assert_unbroken_tone, dominant_frequency, heard_at
from client import listen, request
from extraction import COLD_SECONDS
from inbox import assert_unbroken
from media import FLAC, glides_clip, tone_clip
from opus import FRAME, RATE, sound_of
from signals import AMPLITUDE, Glides

TONE, HIGH = tone_clip(440, 20, FLAC), tone_clip(880, 20, FLAC)
SONG = Glides(20, seed=5)
GLIDES = glides_clip("dash-glides", SONG, FLAC)
FILES = ("sound.mp4", "sound.webm")


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    with hls.player(tmp_path_factory.mktemp("dash"), media.root) as running:
        yield running


def make(folder, clip, kind) -> None:
    dash.make_one_file(folder, clip, kind) if kind in FILES else dash.make(folder, clip, kind)


async def test_segments_are_one_sound(antiphon, media, tmp_path, new_session):
    """To the last packet, and no joint is heard: all kinds at once, each in its session."""
    kinds = [*dash.KINDS, *FILES]
    for kind in kinds:
        make(tmp_path / kind, media.path(TONE), kind)
    await asyncio.gather(*(hears_one_sound(antiphon, tmp_path / kind, new_session(), kind) for kind in kinds))


async def hears_one_sound(antiphon, folder, session, kind):
    async with hls.site(folder) as (url, _), listen(antiphon.router.url, session) as listener:
        ready = await listener.play(f"{url}/index.mpd")
        assert abs(ready["duration_ms"] - 20_000) < 150 and "live" not in ready, ready
        # Opus is passed on as it is.
        assert ready["passthrough"] == (ready["codec"] == "opus"), ready
        ended = await listener.wait_event("ended", seconds=60)
        assert ended["reason"] == "finished" and not listener.events("error"), listener.events("error")
        packets = listener.packets()
        assert_unbroken(packets, kind)
        assert abs(len(packets) - 1_000) <= 5, f"{len(packets)} packets of 20 s"
        assert_unbroken_tone(sound_of(packets)[10 * FRAME : 990 * FRAME], 440, AMPLITUDE, kind)


@pytest.mark.parametrize("kind", ["timeline", "numbers", "ranges", "webm", *FILES])
async def test_a_seek_lands_on_its_frame(antiphon, media, tmp_path, new_session, kind):
    make(tmp_path, media.path(GLIDES), kind)
    async with hls.site(tmp_path) as (url, asked), listen(antiphon.router.url, new_session()) as listener:
        for start in (13_500, 4_000, 9_260):
            asked.clear()
            since = listener.mark()
            await listener.command("play", url=f"{url}/index.mpd", start_ms=start)
            await listener.wait_packets(80, since=listener.index(await listener.wait_event("playing", since)))
            sound = sound_of(listener.packets(listener.index(await listener.wait_event("playing", since))))
            place = heard_at(sound, 40 * FRAME, SONG)
            # A manifest without a timeline tells its segments' durations to a frame of AAC.
            assert place.likeness > 0.85 and abs(place.milliseconds - start - 800) <= 24, (start, place)
            # What comes before is not fetched.
            segments = [path for path in asked if "chunk" in path]
            assert len(segments) <= 6 - start // 4_050, asked
            # Nothing of it is fetched while the next place is.
            await listener.command("stop")
            await listener.wait_event("ended", since, reason="stopped")


async def test_periods_follow_each_other(antiphon, media, tmp_path, new_session):
    """Another codec, another tone, timestamps that begin again."""
    for name, clip, kind in [("a", TONE, "timeline"), ("b", HIGH, "webm")]:
        dash.make(tmp_path / name, media.path(clip), kind)
    periods = [
        f'<Period duration="PT8S"><BaseURL>{name}/</BaseURL><AdaptationSet mimeType="audio/x"><Representation id="0">'
        f'<SegmentTemplate duration="4" media="chunk-stream0-$Number%05d$.{end}" initialization="init-stream0.{end}"/>'
        "</Representation></AdaptationSet></Period>"
        for name, end in (("a", "m4s"), ("b", "webm"))
    ]
    (tmp_path / "index.mpd").write_text(f'<MPD type="static">{"".join(periods)}</MPD>')
    async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(f"{url}/index.mpd")
        assert ready["duration_ms"] == 16_000
        await listener.wait_event("ended", seconds=40)
        packets = listener.packets()
        assert_unbroken(packets, "across the periods")
        assert abs(len(packets) - 800) <= 10, f"{len(packets)} packets of 2 x 8 s"
        sound = sound_of(packets)
        for frequency, begin in ((440, 1), (880, 9)):
            heard = dominant_frequency(sound[begin * RATE : (begin + 6) * RATE])
            assert abs(heard - frequency) < 3, f"{heard} Hz from {begin} s on"


async def test_a_live_stream_is_joined_near_its_end_and_followed(antiphon, media, tmp_path, new_session):
    tone, kinds = media.path(TONE), ["timeline", "numbers", "list", "webm"]
    await asyncio.gather(*(hears_it_live(antiphon, tmp_path / kind, new_session(), tone, kind) for kind in kinds))


async def hears_it_live(antiphon, folder, session, tone, kind):
    with dash.broadcast(folder, tone, kind):
        await wait_for(folder, segments=4)
        async with hls.site(folder) as (url, _), listen(antiphon.router.url, session) as listener:
            ready = await listener.play(f"{url}/index.mpd")
            assert ready["live"] and "duration_ms" not in ready, ready
            await listener.wait_packets(500)
            packets = listener.packets()
            assert not listener.stalls(), listener.stalls()
            assert_unbroken(packets, kind)
            assert_unbroken_tone(sound_of(packets)[10 * FRAME : 490 * FRAME], 440, AMPLITUDE, kind)


async def test_a_segment_that_is_missing_is_left_out(antiphon, media, tmp_path, new_session):
    """Of a live stream: of a track it is an error."""
    dash.make(tmp_path, media.path(TONE), "timeline", seconds=1)
    for number in (1, 5):
        (tmp_path / f"chunk-stream0-{number:05}.m4s").unlink()
    template = (
        '<SegmentTemplate duration="1" media="chunk-stream0-$Number%05d$.m4s" initialization="init-stream0.m4s"/>'
    )
    whole = 'type="static" mediaPresentationDuration="PT15S"'
    (tmp_path / "track.mpd").write_text(dash.manifest(template.replace("duration", 'startNumber="2" duration'), whole))
    entries = '<SegmentTimeline><S t="0" d="1" r="14"/></SegmentTimeline></SegmentTemplate>'
    live = 'type="dynamic" availabilityStartTime="2020-01-01T00:00:00Z" suggestedPresentationDelay="PT15S"'
    (tmp_path / "live.mpd").write_text(dash.manifest(template.replace("/>", ">") + entries, live))
    async with hls.site(tmp_path) as (url, _), listen(antiphon.router.url, new_session()) as listener:
        ready = await listener.play(f"{url}/live.mpd")
        assert ready["live"], ready
        # Thirteen of the fifteen seconds, and the first that is there has its initialization.
        await listener.wait_packets(640)
        assert not listener.events("error") and not listener.stalls()
        async with listen(antiphon.router.url, new_session()) as other:
            await other.play(f"{url}/track.mpd")
            await other.wait_event("ended", seconds=30)
            assert [error["code"] for error in other.events("error")] == ["source_not_found"], other.events("error")


async def test_a_page_leads_to_the_format_that_yt_dlp_chooses(antiphon, media, tmp_path, new_session):
    """It prefers Opus, which is passed on as it is, to what has more bits."""
    for name, clip, kind in [("aac", HIGH, "timeline"), ("opus", TONE, "webm")]:
        dash.make(tmp_path / name, media.path(clip), kind)
    sets = [
        f'<AdaptationSet mimeType="audio/{kind}"><Representation id="{number}" bandwidth="{bits}" codecs="{codec}">'
        f'<BaseURL>{name}/</BaseURL><SegmentTemplate duration="4" initialization="init-stream0.{end}" '
        f'media="chunk-stream0-$Number%05d$.{end}"/></Representation></AdaptationSet>'
        for number, (name, kind, codec, bits, end) in enumerate(
            [("aac", "mp4", "mp4a.40.2", 256_000, "m4s"), ("opus", "webm", "opus", 96_000, "webm")]
        )
    ]
    head = 'xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT20S"'
    (tmp_path / "index.mpd").write_text(f"<MPD {head}><Period>{''.join(sets)}</Period></MPD>")
    (tmp_path / "page.html").write_text(
        '<!doctype html><title>Show</title><video><source src="index.mpd" type="application/dash+xml"></video>'
    )
    async with hls.site(tmp_path) as (url, _):
        for address, frequency in ((f"{url}/index.mpd", 880), (f"{url}/page.html", 440)):
            async with listen(antiphon.router.url, new_session()) as listener:
                await listener.send("play", url=address)
                ready = await listener.wait_event("ready", seconds=COLD_SECONDS)
                assert ready["passthrough"] == (frequency == 440), ready
                await listener.wait_packets(100)
                assert abs(dominant_frequency(sound_of(listener.packets())[RATE // 5 :]) - frequency) < 3


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("application/dash+xml", "mpd"),
        ("text/xml", "mpd"),
        ("application/xml; charset=utf-8", "mpd"),
        ("application/vnd.apple.mpegurl", "m3u8"),
        ("audio/mpegurl", "m3u8"),
        ("audio/x-mpegurl", "list"),
    ],
)
async def test_a_list_is_known_by_what_it_is(antiphon, media, tmp_path, new_session, media_type, kind):
    """Its address need not say so; the text is asked for once, and goes out from where it was in the end."""
    folder = tmp_path / "deep"
    match kind:
        case "mpd":
            dash.make(folder, media.path(TONE), "timeline")
        case "m3u8":
            hls.make(folder, media.path(TONE), "ts")
        case "list":
            folder.mkdir()
            shutil.copy(media.path(TONE), folder / "tone.flac")
            (folder / "index.list").write_text("#EXTM3U\n#EXTINF:20,A tone\ntone.flac\n")

    async def old(_: web.Request) -> web.Response:
        raise web.HTTPFound("/deep/stream?x=1")

    async def stream(_: web.Request) -> web.Response:
        return web.Response(text=(folder / f"index.{kind}").read_text(), headers={"Content-Type": media_type})

    pages = {"old": old, "deep/stream": stream}
    async with hls.site(tmp_path, **pages) as (url, asked), listen(antiphon.router.url, new_session()) as listener:
        await listener.play(f"{url}/old")
        await listener.wait_packets(100)
        assert asked[:2] == ["/old", "/deep/stream"] and not {*asked[:2]} & {*asked[2:]}, asked
        await listener.command("stop")


async def wait_for(folder, segments: int) -> None:
    async with asyncio.timeout(30):
        while len([*folder.glob("chunk*.m4s"), *folder.glob("chunk*.webm")]) < segments + 1:
            await asyncio.sleep(0.1)


def timeline(entries: str) -> str:
    return dash.manifest(
        f'<SegmentTemplate media="a$Number$"><SegmentTimeline>{entries}</SegmentTimeline></SegmentTemplate>'
    )


def template(attributes: str) -> str:
    return dash.manifest(f"<SegmentTemplate {attributes}/>")


BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))

#: A manifest each, and the code of the error that it comes to.
HOSTILE = {
    "a file": (dash.manifest("<BaseURL>file:///etc/passwd</BaseURL>"), "source_forbidden"),
    "data": (template('media="data:audio/mp4;base64,AAAA" duration="4"'), "source_forbidden"),
    "media": (dash.manifest("<BaseURL>media:secret.flac</BaseURL>"), "source_forbidden"),
    "a private base": (dash.manifest("<BaseURL>http://127.0.0.2/a.mp4</BaseURL>"), "source_forbidden"),
    "a private segment": (template('media="http://127.0.0.2/a.m4s" duration="4"'), "source_forbidden"),
    "the metadata service": (
        dash.manifest('<SegmentList duration="4"><SegmentURL media="http://169.254.169.254/latest/"/></SegmentList>'),
        "source_forbidden",
    ),
    "a private map": (
        template('media="chunk-stream0-00001.m4s" initialization="http://127.0.0.2/i" duration="4"'),
        "source_forbidden",
    ),
    "a place that is a file": (
        dash.manifest("<BaseURL>a</BaseURL>").replace("<Period>", "<Location>file:///etc/passwd</Location><Period>"),
        "source_forbidden",
    ),
    "itself elsewhere": (
        '<MPD type="static"><Period xlink:href="hostile.mpd" xlink:actuate="onLoad"/></MPD>',
        "source_not_audio",
    ),
    "itself as its sound": (dash.manifest("<BaseURL>hostile.mpd</BaseURL>"), "source_corrupt"),
    "a billion laughs": (
        dash.manifest("&l9;", before=f'<!DOCTYPE MPD [<!ENTITY l0 "lol">{BOMB}]>'),
        "source_corrupt",
    ),
    "a file as an entity": (
        dash.manifest("&x;", before='<!DOCTYPE MPD [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
        "source_corrupt",
    ),
    "200,000 entries": (timeline('<S d="4"/>' * 200_000), "source_too_large"),
    "short entries, too many": (timeline("<S d='4'/>" * 60_000), "source_corrupt"),
    "endless repetition": (timeline('<S d="1" r="2147483647"/>'), "source_corrupt"),
    "too many numbers": (template('media="$Number$" duration="1" timescale="100000"'), "source_corrupt"),
    "no duration": (timeline('<S d="0"/>'), "source_corrupt"),
    "a negative duration": (timeline('<S d="-4"/>'), "source_corrupt"),
    "a wide number": (template('media="$Number%09999999d$" duration="4"'), "source_corrupt"),
    "endless nesting": ("<MPD>" + "<Period>" * 100_000, "source_corrupt"),
    "cut": (dash.manifest("")[:200], "source_corrupt"),
    "an init segment without an end": (
        template('media="chunk-stream0-00001.m4s" initialization="/endless" duration="4"'),
        "source_too_large",
    ),
    "protected": (
        dash.manifest('<ContentProtection value="cenc"/><BaseURL>index-stream0.mp4</BaseURL>'),
        "source_not_audio",
    ),
    "nothing": ("<MPD/>", "source_not_audio"),
}


async def endless(question: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(question)
    with contextlib.suppress(ConnectionError):
        while True:
            await answer.write(bytes(65_536))


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_manifest_that_means_harm_is_a_clear_error(antiphon, media, tmp_path, new_session, what):
    text, code = HOSTILE[what]
    dash.make(tmp_path, media.path(TONE), "timeline")
    (tmp_path / "hostile.mpd").write_text(text)
    async with hls.site(tmp_path, endless=endless) as (url, asked):
        address = f"{antiphon.router.url}/api/v1/sessions/{new_session()}/play"
        answer = await request("POST", address, {"url": f"{url}/hostile.mpd"})
        assert answer.code == code, answer
        assert "root:" not in str(answer.body) and len(asked) < 12, asked


async def test_a_manifest_is_never_unpacked(antiphon, tmp_path, new_session):
    """Eight megabytes of spaces in eight kilobytes: nobody asked for it compressed."""
    packed = gzip.compress(bytes([0x20]) * (8 << 20))

    async def bomb(_: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "application/dash+xml"})

    async with hls.site(tmp_path, bomb=bomb) as (url, _):
        address = f"{antiphon.router.url}/api/v1/sessions/{new_session()}/play"
        answer = await request("POST", address, {"url": f"{url}/bomb"})
        assert answer.code == "source_unreachable" and "compressed" in answer.body["message"], answer

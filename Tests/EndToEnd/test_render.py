"""Scores rendered by a real AudioEngine: `POST /render` in every encoding, decoded and measured."""

import asyncio
import json
import subprocess
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
import numpy as np
import pytest

from analysis import dominant_frequency, level_db
from processes import Antiphon

RATE = 48_000
TYPES = {
    "opus": "audio/ogg",
    "pcm16": "audio/L16;rate=48000;channels=2",
    "wav": "audio/wav",
    "json": "application/json",
    "json-deflate": "application/zlib",
}
BODY_LIMIT = 65_536


def score(*, seed: int = 1, length: int = 96_100, instrument: str = "triangle", pitch: int = 69, **fields) -> dict:
    """One long note; the length is no multiple of anything."""
    voice = {"role": "melody", "instrument": instrument, "gain": 1, "pan": 0, "reverb": 0.2, "delay": 0, "chorus": 0}
    return {
        "title": "Prüfung",
        "seed": seed,
        "beat": 24_000,
        "length": length,
        "effects": {"reverb_s": 1.5, "delay": 18_000, "delay_feedback": 0.35, "chorus_hz": 0.6},
        "voices": [voice],
        "notes": [[0, 0, length, pitch, 100]],
    } | fields


@dataclass
class Rendered:
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def report(self) -> dict:
        return json.loads(self.body)


async def render(
    antiphon: Antiphon, body, query: str = "", headers: dict[str, str] | None = None, http=None
) -> Rendered:
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    async with (
        aiohttp.ClientSession() as own,
        (http or own).post(f"{antiphon.engine.url}/render{query}", data=data, headers=headers) as answer,
    ):
        return Rendered(answer.status, await answer.read(), answer.headers)


def from_pcm16(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i2").reshape(-1, 2) / 32_767


def from_json(data: bytes) -> np.ndarray:
    buffer = json.loads(data)
    assert (buffer["numberOfChannels"], buffer["sampleRate"]) == (2, RATE), buffer.keys()
    assert buffer["duration"] == buffer["length"] / RATE
    samples = np.array(buffer["channels"]).T
    assert samples.shape == (buffer["length"], 2)
    return samples


def from_file(data: bytes) -> np.ndarray:
    """What ffmpeg makes of a WAV or Ogg file."""
    command = ["ffmpeg", "-v", "error", "-i", "pipe:0", "-f", "f32le", "-ar", str(RATE), "-ac", "2", "pipe:1"]
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    assert not done.stderr, done.stderr
    return np.frombuffer(done.stdout, "<f4").reshape(-1, 2)


DECODERS = {
    "opus": from_file,
    "pcm16": from_pcm16,
    "wav": from_file,
    "json": from_json,
    "json-deflate": lambda data: from_json(zlib.decompress(data)),
}


@pytest.mark.parametrize("encoding", TYPES)
async def test_an_encoding_gives_the_score_to_the_sample(antiphon, encoding):
    answer = await render(antiphon, score(), f"?encoding={encoding}")
    assert answer.status == 200, answer.body[:300]
    assert answer.headers["Content-Type"] == TYPES[encoding]
    assert int(answer.headers["X-Render-Milliseconds"]) > 0
    samples = DECODERS[encoding](answer.body)
    assert samples.shape == (96_100, 2)
    held = samples[24_000:88_000, 0]
    assert abs(dominant_frequency(held) - 440) < 1, dominant_frequency(held)
    assert -40 < level_db(held) < -10

    exact = from_pcm16((await render(antiphon, score(), "?encoding=pcm16")).body)
    difference = level_db((samples - exact).ravel())
    # A word of 16 bits, and what a codec at 96 kbit/s adds.
    assert difference < (-45 if encoding == "opus" else -90), f"{difference:.1f} dB"


async def test_an_opus_file_has_a_title_and_is_as_others_make_them(antiphon, tmp_path):
    file = tmp_path / "piece.ogg"
    file.write_bytes((await render(antiphon, score(), headers={"Accept": "audio/ogg"})).body)
    command = ["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", str(file)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    stream = found["streams"][0]
    assert (stream["codec_name"], stream["sample_rate"], stream["channels"]) == ("opus", "48000", 2)
    tags = {name.lower(): text for name, text in (stream.get("tags", {}) | found["format"].get("tags", {})).items()}
    assert tags["title"] == "Prüfung"
    assert stream["start_pts"] in (0, -312) and file.read_bytes()[28:36] == b"OpusHead"
    assert int.from_bytes(file.read_bytes()[38:40], "little") == 312, "the pre-skip"


async def test_the_encoding_may_be_asked_for_in_a_header(antiphon):
    asked = {"audio/wav": "wav", "application/json;q=0.9, audio/ogg": "json", "text/html, */*": "opus", "": "opus"}
    for accept, encoding in asked.items():
        answer = await render(antiphon, score(), headers={"Accept": accept})
        assert answer.headers["Content-Type"] == TYPES[encoding], (accept, answer.headers)
    answer = await render(antiphon, score(), "?encoding=wav", {"Accept": "audio/ogg"})
    assert answer.headers["Content-Type"] == "audio/wav", "the query decides"


@pytest.mark.parametrize("encoding", TYPES)
async def test_two_engines_give_the_same_bytes(antiphon, mortal, encoding):
    instruments = ("strings", "drums", "pluck", "bell")
    for seed, instrument in enumerate(instruments):
        body = score(seed=seed, instrument=instrument, length=24_000, pitch=42)
        one, other = [await render(which, body, f"?encoding={encoding}") for which in (antiphon, mortal)]
        assert one.status == other.status == 200, (one.body[:300], other.body[:300])
        assert one.body == other.body and one.headers["ETag"] == other.headers["ETag"], instrument


async def test_what_is_known_need_not_be_sent_again(antiphon):
    first = await render(antiphon, score(seed=77))
    again = await render(antiphon, score(seed=77), headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304 and not again.body
    other = await render(antiphon, score(seed=78), headers={"If-None-Match": first.headers["ETag"]})
    assert other.status == 200 and other.headers["ETag"] != first.headers["ETag"]


BAD = {
    "no JSON": (b"{", "invalid_json", ""),
    "no object": (b"[]", "invalid_json", ""),
    "no voices": (score(voices=[]), "invalid_command", "voices"),
    "no length": ({k: v for k, v in score().items() if k != "length"}, "invalid_command", "length"),
    "a length of hours": (score(length=600_000_000), "invalid_command", "length"),
    "a note of no voice": (score(notes=[[3, 0, 10, 60, 100]]), "invalid_command", "notes[0]"),
    "a note of four numbers": (score(notes=[[0, 0, 10, 60]]), "invalid_command", "notes"),
    "an unknown instrument": (score(instrument="theremin"), "invalid_command", "instrument"),
    "a pitch above all": (score(pitch=128), "invalid_command", "pitch"),
    "too many notes": (score(notes=[[0, 0, 9, 60, 99]] * 4_001), "invalid_command", "notes"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_score_is_refused_by_name(antiphon, kind):
    body, code, named = BAD[kind]
    answer = await render(antiphon, body)
    assert answer.status == 400 and answer.report["code"] == code, answer.report
    assert named in answer.report["message"], answer.report
    assert (await render(antiphon, score())).status == 200, "and the engine goes on"


async def test_what_cannot_be_done_is_refused(antiphon):
    unknown = await render(antiphon, score(), "?encoding=mp3")
    assert unknown.status == 400 and "encoding" in unknown.report["message"], unknown.report
    assert "json-deflate" in unknown.report["message"]
    large = await render(antiphon, b" " * (BODY_LIMIT + 1))
    assert large.report["code"] == "line_too_long", large.report
    long = await render(antiphon, score(length=61 * RATE), "?encoding=json")
    assert long.status == 400 and "length" in long.report["message"], long.report


@pytest.mark.measures
async def test_many_renderings_at_once_leave_what_plays_alone(antiphon, bystander):
    """The bystander is a session that plays meanwhile, and may not have a gap."""
    bodies = [score(seed=seed, instrument="pad", length=4 * RATE) for seed in range(30)]
    async with aiohttp.ClientSession() as http:
        answers = await asyncio.gather(*(render(antiphon, body, "?encoding=pcm16", http=http) for body in bodies))
    assert [answer.status for answer in answers] == [200] * 30
    assert len({answer.body for answer in answers}) == 30, "the seed is heard"
    assert all(len(answer.body) == 4 * RATE * 4 for answer in answers)
    why = await bystander.command("why")
    assert why["underruns"]["count"] == 0, why

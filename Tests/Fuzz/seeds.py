"""Makes the files that a fuzzing target starts from: seeds.py TARGET FOLDER, and FOLDER.dict beside it."""

import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "EndToEnd"))

import media

SECONDS = 1.2
#: What the engine plays beside the formats that the end-to-end tests hear: suffix and ffmpeg's arguments.
FURTHER = [
    ("mp4", "-c:a aac -movflags +frag_keyframe+empty_moov"),
    ("m4a", "-c:a alac"),
    ("3gp", "-ar 8000 -ac 1 -c:a aac"),
    ("caf", "-c:a alac"),
    ("caf", "-c:a pcm_s16be"),
    ("aiff", "-c:a pcm_s24be"),
    ("au", "-c:a pcm_mulaw"),
    ("w64", "-c:a pcm_f32le"),
    ("wav", "-c:a adpcm_ms"),
    ("wav", "-c:a adpcm_ima_wav"),
    ("wav", "-ar 8000 -ac 1 -c:a libgsm_ms"),
    ("wav", "-c:a pcm_alaw"),
    ("wav", "-c:a pcm_u8"),
    ("wav", "-c:a pcm_f64le"),
    ("wv", "-c:a wavpack"),
    ("tta", "-c:a tta"),
    ("wma", "-c:a wmav1"),
    ("wma", "-c:a wmav2"),
    ("ac3", "-c:a ac3"),
    ("eac3", "-c:a eac3"),
    ("ts", "-c:a aac"),
    ("ts", "-c:a aac -mpegts_flags latm"),
    ("mpg", "-f vob -c:a mp2"),
    ("vob", "-f vob -c:a pcm_dvd"),
    ("m2ts", "-c:a pcm_bluray"),
    ("flv", "-ar 44100 -c:a libmp3lame"),
    ("avi", "-c:a ac3"),
    ("avi", "-c:a libmp3lame"),
    ("mp2", "-c:a mp2"),
    ("ogg", "-c:a flac"),
    ("ogg", "-c:a libopus -frame_duration 10"),
    ("mka", "-c:a libvorbis"),
    ("mka", "-c:a pcm_s16le"),
    ("mka", "-c:a wavpack"),
    ("mov", "-c:a pcm_s16le"),
]
CHAPTERS = ";FFMETADATA1\ntitle=Title\nartist=Artist\nalbum=Album\n" + "".join(
    f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={start}\nEND={start + 400}\ntitle=Part {start}\n" for start in (0, 400, 800)
)
#: Names that formats know their parts by, and what JSON has.
WORDS = {
    "decode": "ftyp moov mdat moof trak stsz stco stsc ctts elst covr ID3\x04 APIC TIT2 CHAP CTOC Xing LAME OggS OpusHead "
    "OpusTags vorbis METADATA_BLOCK_PICTURE fLaC RIFF WAVE fmt data riff FORM AIFF COMM SSND caff desc pakt .snd wvpk "
    "TTA1 MPCK MAC\x20 APETAGEX FLV #!AMR Segment LIST INFO".split(),
    "conversation": [
        *("title artist album chapters start_ms durationMilliseconds isDurationEstimated codecName hasPicture".split()),
        *("fitsPassthrough code message hint severity stage null true false superseded source_corrupt".split()),
        "\\ud800",
        "1e999",
        "-1",
        "9223372036854775807",
        "\u0301" * 8,
    ],
}


def main() -> None:
    target, folder = sys.argv[1], Path(sys.argv[2])
    words = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in WORDS[target])
    folder.with_suffix(".dict").write_text("".join(f'"{word}"\n' for word in words))
    if folder.exists():
        return
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        {"decode": make_files, "conversation": make_conversations}[target](Path(made))
        shutil.copytree(made, folder)


def make_files(folder: Path) -> None:
    encodings = [encoding for encoding in vars(media).values() if isinstance(encoding, media.Encoding)]
    media.MediaFolder(folder).make(*(media.tone_clip(440, SECONDS, encoding) for encoding in encodings))
    with tempfile.TemporaryDirectory() as inputs:
        sound, chapters, cover = (Path(inputs, name) for name in ("sound.wav", "chapters.txt", "cover.png"))
        ffmpeg(f"-f lavfi -i sine=440:r=48000:d={SECONDS} -ac 2", sound)
        ffmpeg("-f lavfi -i color=red:16x16:d=1 -frames:v 1", cover)
        chapters.write_text(CHAPTERS)
        for number, (suffix, arguments) in enumerate(FURTHER):
            ffmpeg(f"-i {sound} {arguments}", folder / f"further-{number}.{suffix}")
        tagged = f"-i {sound} -i {chapters} -i {cover} -map_metadata 1 -map_chapters 1 -map 0:a"
        for suffix, codec in (("mp3", "libmp3lame"), ("m4a", "aac"), ("flac", "flac")):
            picture = "-map 2:v -disposition:v attached_pic -c:v copy"
            ffmpeg(f"{tagged} {picture} -c:a {codec}", folder / f"tagged.{suffix}")
        for suffix, codec in (("mka", "flac"), ("ogg", "libvorbis"), ("opus", "libopus")):
            ffmpeg(f"{tagged} -c:a {codec}", folder / f"tagged.{suffix}")


def ffmpeg(arguments: str, output: Path) -> None:
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments.split(), str(output)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, f"{output}: {done.stderr.decode()}"


def make_conversations(folder: Path) -> None:
    """What an honest decoder says, and the same with another end: see Script.swift and DecoderMessages.swift."""
    began, read, seek, opened, share, transcodes, packets, ended, metadata, picture, failed = range(1, 12)
    facts = {"chapters": [{"start_ms": 0, "title": "One"}], "isDurationEstimated": False, "codecName": "flac"}
    facts |= {"title": "Title", "durationMilliseconds": 60, "hasPicture": True, "fitsPassthrough": False}
    report = {"code": "source_corrupt", "message": "broken", "hint": "mend it", "severity": "common", "stage": "probe"}
    open_it = message(began, number=7) + message(read, number=4_096) + message(seek, number=9)
    open_it += message(share) + message(opened, json.dumps(facts).encode())
    made = b"".join(struct.pack("<H", 40) + b"\xfc" + bytes(39) for _ in range(3))
    title = message(metadata, json.dumps({"title": "Title", "artist": "Artist"}).encode())
    playing = message(transcodes) + message(packets, made) + title + message(packets, made, flag=1, number=1_000)
    image = b"\x89PNG\r\n\x1a\n" + bytes(40)
    end = bytes([14])
    rows = {
        "track": b"\0" + open_it + playing + message(packets, made) + message(ended),
        "passthrough": b"\4" + open_it + message(packets, made, flag=1) + message(ended),
        "picture": b"\1" + message(began) + message(picture, image, flag=1) + message(picture, image) + message(ended),
        "failed": b"\0" + message(began) + message(failed, json.dumps(report).encode()),
        "died": b"\0" + open_it + playing + end + open_it + playing + end + open_it,
        "left": b"\0" + open_it + playing + bytes([13]) + message(packets, made, flag=1) + message(share),
        "deaf": b"\2" + message(began) + message(read, number=32_768, times=7),
        "descriptors": b"\0" + message(began, descriptors=1) + message(share, descriptors=2) + bytes([15, 3, 1, 2, 3]),
    }
    for name, data in rows.items():
        (folder / name).write_bytes(data)


def message(
    kind: int, payload: bytes = b"", *, flag: int = 0, number: int = 0, descriptors: int = 0, times: int = 0
) -> bytes:
    """A script's step that sends; two to the power of `times` of them."""
    repeat = bytes([times]) if times else b""
    first = kind | flag << 4 | descriptors << 5 | (0x80 if times else 0)
    return bytes([first]) + repeat + struct.pack("<qH", number, len(payload)) + payload


if __name__ == "__main__":
    main()

"""Words and pictures of text: times, progress bars, titles as they are safe to show."""

import re

#: What a title may take in a message; Discord's own limit of a whole message is 2,000.
TITLE_CHARACTERS = 120

_BAR_CELLS = 16
#: What Discord would read as more than text: anywhere, and at the beginning of a line.
_MARKUP = re.compile(r"[\\*_`~|<\[\]]|^[>#-]")
_TIME = re.compile(r"(?:(?:(\d{1,3}):)?(\d{1,3}):)?(\d{1,6}(?:\.\d{1,3})?)")


class BadTime(ValueError):
    """A time that cannot be read, or that is not in the track; its text is for people."""


def clock(milliseconds: float) -> str:
    """`1:23`, or `1:02:03` from an hour on."""
    seconds = max(0, int(milliseconds)) // 1_000
    hours, minutes = seconds // 3_600, seconds // 60 % 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


def progress_bar(position_ms: float, duration_ms: float | None, live: bool = False) -> str:
    """`▬▬🔘▬▬ 0:42 / 3:21`; a track without a known end has no bar."""
    if live:
        return f"🔴 live · {clock(position_ms)}"
    if not duration_ms:
        return clock(position_ms)
    share = min(max(position_ms / duration_ms, 0), 1)
    at = min(int(share * _BAR_CELLS), _BAR_CELLS - 1)
    bar = "▬" * at + "🔘" + "▬" * (_BAR_CELLS - 1 - at)
    return f"{bar} {clock(min(position_ms, duration_ms))} / {clock(duration_ms)}"


def parse_seek(text: str, position_ms: float, duration_ms: float | None) -> int:
    """The position in milliseconds that `1:23`, `83`, `+10` or `-10` means.

    Raises BadTime where it means none, or one at or behind the end. Back beyond the beginning is the beginning.
    """
    text = text.strip()
    sign = text[:1] if text[:1] in ("+", "-") else ""
    match = _TIME.fullmatch(text[len(sign) :].strip())
    if not match:
        raise BadTime("That is no time. Write for example 1:23, 83 (seconds), +10 or -10.")
    hours, minutes, seconds = match.groups()
    milliseconds = round((int(hours or 0) * 3_600 + int(minutes or 0) * 60 + float(seconds)) * 1_000)
    target = {"+": position_ms + milliseconds, "-": position_ms - milliseconds}.get(sign, milliseconds)
    if duration_ms is not None and target >= duration_ms:
        raise BadTime(f"The track is only {clock(duration_ms)} long.")
    return max(0, round(target))


def one_line(text: str, characters: int) -> str:
    """Without line breaks and other control characters, and not longer than that."""
    text = "".join(
        " " if character.isspace() else character
        for character in text
        if character.isprintable() or character.isspace()
    )
    text = " ".join(text.split())
    return text if len(text) <= characters else text[: characters - 1] + "…"


def safe(text: str, characters: int = TITLE_CHARACTERS) -> str:
    """What somebody else has written, as plain text: no markdown, mentions, emoji codes or links with a false face."""
    # Each character once: a second escaping would undo the first.
    return _MARKUP.sub(r"\\\g<0>", one_line(text, characters)).replace("@", "@\u200b")


def title_of(title: str | None, url: str, artist: str | None = None) -> str:
    """A track's name, not yet made safe: artist and title, or what can be told from its address."""
    if not title:
        title = url.removeprefix("media:").rsplit("/", 1)[-1] or url
    return f"{artist} – {title}" if artist and artist.casefold() not in title.casefold() else title


def count(number: int, thing: str) -> str:
    """`1 track`, `2 tracks`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")

"""The Discord bot's decisions and words, without a Discord: who may what, when it leaves, what it says."""

import asyncio
import logging
import os
import re
import stat
import subprocess
import sys
import time

import pytest
from antiphon_bot import health, suggestions
from antiphon_bot.errors import error_words
from antiphon_bot.explanation import Hearing, explain
from antiphon_bot.permissions import Caller, Room, dj_role_matches, may_change, may_summon
from antiphon_bot.queue_pages import page_text
from antiphon_bot.settings import parse
from antiphon_bot.suggestions import Suggestions
from antiphon_bot.tasks import Tasks, guarded
from antiphon_bot.text import BadTime, clock, one_line, parse_seek, progress_bar, safe, title_of
from antiphon_bot.voice_following import Action, Attendance, channel_to_follow
from antiphon_client import AntiphonError

HERE, THERE = 1, 2


def room(people_here: int = 2, with_caller: int = 2, *, at: int | None = HERE, role: str | None = None) -> Room:
    return Room(at, people_here, with_caller, role)


@pytest.mark.parametrize(
    ("caller", "where", "refused"),
    [
        pytest.param(Caller(HERE), room(), None, id="beside the bot"),
        pytest.param(Caller(None), room(), "Join a voice channel", id="in no channel"),
        pytest.param(Caller(THERE), room(), f"Come to <#{HERE}>", id="in another channel"),
        pytest.param(Caller(THERE), room(0, 1), f"Come to <#{HERE}>", id="in another channel, and nobody listens"),
        pytest.param(Caller(None, manages_server=True), room(), None, id="a manager from anywhere"),
        pytest.param(Caller(HERE), room(role="DJ"), "the role “DJ”", id="without the role"),
        pytest.param(Caller(HERE, has_dj_role=True), room(role="DJ"), None, id="with the role"),
        pytest.param(Caller(THERE, has_dj_role=True), room(role="DJ"), "Come to", id="with the role, elsewhere"),
        pytest.param(Caller(HERE), room(1, 1, role="DJ"), None, id="without the role, alone"),
        pytest.param(Caller(HERE, manages_server=True), room(role="DJ"), None, id="a manager without the role"),
        pytest.param(Caller(THERE), room(0, 1, at=None), None, id="the bot is nowhere"),
        pytest.param(Caller(None), room(0, 0, at=None), "Join", id="both are nowhere"),
        pytest.param(Caller(THERE), room(0, 3, at=None, role="DJ"), "“DJ”", id="the bot is nowhere, without the role"),
    ],
)
def test_who_may_change(caller, where, refused):
    found = may_change(caller, where)
    assert found is None if refused is None else found and refused in found, found


@pytest.mark.parametrize(
    ("caller", "where", "refused"),
    [
        pytest.param(Caller(HERE), room(), None, id="beside the bot"),
        pytest.param(Caller(None), room(), "Join", id="in no channel"),
        pytest.param(Caller(THERE), room(2, 1), f"2 listeners in <#{HERE}>", id="the bot plays for others"),
        pytest.param(Caller(THERE), room(1, 1), "1 listener in", id="the bot plays for one other"),
        pytest.param(Caller(THERE), room(0, 1), None, id="nobody listens any more"),
        pytest.param(Caller(THERE), room(0, 2, role="DJ"), "“DJ”", id="nobody listens, without the role"),
        pytest.param(Caller(THERE, has_dj_role=True), room(0, 2, role="DJ"), None, id="nobody listens, with the role"),
        pytest.param(Caller(THERE, manages_server=True), room(), None, id="a manager adds from elsewhere"),
        pytest.param(Caller(None, manages_server=True), room(0, 0, at=None), "Join", id="nowhere to go for a manager"),
    ],
)
def test_who_may_summon(caller, where, refused):
    found = may_summon(caller, where)
    assert found is None if refused is None else found and refused in found, found


def test_the_dj_role_is_found_by_name_or_id():
    assert dj_role_matches("dj", 5, "DJ") and dj_role_matches("5", 5, "Music")
    assert not dj_role_matches("dj", 5, "Not a DJ") and not dj_role_matches("6", 5, "DJ")


def test_left_alone_it_pauses_then_leaves():
    attendance = Attendance(leave_after_seconds=60)
    assert attendance.observe(2, True, now=0) is None and attendance.deadline is None
    assert attendance.observe(0, True, now=10) is Action.PAUSE and attendance.deadline == 70
    assert attendance.observe(0, False, now=69.9) is None
    assert attendance.observe(0, False, now=70) is Action.LEAVE
    attendance.gone()
    # What it has paused itself goes on when it is called again.
    assert attendance.deadline is None and attendance.observe(1, False, now=200) is Action.RESUME


def test_somebody_comes_back_before_it_leaves():
    attendance = Attendance(leave_after_seconds=60)
    attendance.observe(0, True, now=0)
    assert attendance.observe(1, False, now=59) is Action.RESUME
    assert attendance.observe(1, True, now=61) is None
    assert attendance.observe(0, True, now=100) is Action.PAUSE and attendance.deadline == 160


def test_what_a_person_has_paused_stays_paused():
    attendance = Attendance(leave_after_seconds=60)
    assert attendance.observe(0, False, now=0) is None
    assert attendance.observe(1, False, now=10) is None


def test_leaving_at_once():
    assert Attendance(leave_after_seconds=0).observe(0, True, now=5) is Action.LEAVE


@pytest.mark.parametrize(
    ("people_here", "moved_to", "summoner", "goes"),
    [
        pytest.param(1, THERE, THERE, None, id="somebody still listens"),
        pytest.param(0, THERE, None, THERE, id="the last one has moved"),
        pytest.param(0, None, THERE, THERE, id="the last one has left, the summoner is elsewhere"),
        pytest.param(0, None, None, None, id="all have left"),
        pytest.param(0, None, HERE, None, id="the summoner's place is not known to have changed"),
        pytest.param(0, THERE, 3, THERE, id="the last one goes before the summoner"),
    ],
)
def test_whom_it_follows(people_here, moved_to, summoner, goes):
    assert channel_to_follow(HERE, people_here, moved_to, summoner) == goes


@pytest.mark.parametrize(
    ("text", "position", "means"),
    [
        ("1:23", 0, 83_000),
        ("83", 0, 83_000),
        ("0", 50_000, 0),
        ("1:02:03", 0, 3_723_000),
        (" +10 ", 50_000, 60_000),
        ("-10", 50_000, 40_000),
        ("-1:00", 50_000, 0),
        ("+ 1:00", 50_000, 110_000),
        ("12.5", 0, 12_500),
    ],
)
def test_places_in_a_track(text, position, means):
    assert parse_seek(text, position, 4_000_000) == means


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "--5", "1:", ":30", "٣x", "1e3", "+", "9999999"])
def test_what_is_no_place(text):
    with pytest.raises(BadTime, match="no time"):
        parse_seek(text, 0, None)


@pytest.mark.parametrize(("text", "position"), [("3:20", 0), ("200", 0), ("+10", 195_000)])
def test_a_place_behind_the_end(text, position):
    with pytest.raises(BadTime, match="only 3:20 long"):
        parse_seek(text, position, 200_000)


def test_times():
    assert [clock(ms) for ms in (-5, 0, 999, 61_000, 3_599_999, 3_600_000)] == [
        *("0:00", "0:00", "0:00", "1:01", "59:59"),
        "1:00:00",
    ]


def test_the_progress_bar():
    bar = progress_bar(30_000, 60_000)
    assert bar.endswith(" 0:30 / 1:00") and bar.index("🔘") == 8, bar
    bars = [progress_bar(position, 60_000).split()[0] for position in (0, 59_999, 60_000, 90_000)]
    assert {len(each) for each in bars} == {16} and bars[0].startswith("🔘") and all(b.endswith("🔘") for b in bars[1:])
    assert progress_bar(90_000, 60_000).endswith("1:00 / 1:00")
    assert progress_bar(90_000, None) == "1:30" and progress_bar(90_000, None, live=True) == "🔴 live · 1:30"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("plain song", "plain song"),
        ("**bold** _it_ `code` ~~no~~ ||spoiler||", r"\*\*bold\*\* \_it\_ \`code\` \~\~no\~\~ \|\|spoiler\|\|"),
        ("<@123> <#5> <:x:1>", r"\<@​123> \<#5> \<:x:1>"),
        ("@everyone", "@​everyone"),
        ("two\nlines\r\n\tand\x00 nothing\x1b[2J", r"two lines and nothing\[2J"),
        ("[face](https://evil.example)", r"\[face\](https://evil.example)"),
        (r"\[face\](https://evil.example) \\[x](y)", r"\\\[face\\\](https://evil.example) \\\\\[x\](y)"),
        ("[**bold** <@1>](https://evil.example)", r"\[\*\*bold\*\* \<@​1>\](https://evil.example)"),
        ("# heading", r"\# heading"),
        ("-# small", r"\-# small"),
        ("> quote", r"\> quote"),
    ],
)
def test_titles_are_harmless(title, shown):
    found = safe(title)
    assert found == shown, found
    # What Discord still reads as markup once it has taken away what is escaped.
    assert not re.search(r"[*_`~|<\[\]\\]|@[^\u200b]|^[#>-]", re.sub(r"\\[^a-zA-Z0-9\s]", ".", found)), found


def test_titles_are_cut():
    assert len(one_line("x" * 500, 100)) == 100 and one_line("x" * 500, 100).endswith("…")


def test_names_of_tracks():
    assert title_of("Song", "media:x.mp3", "Band") == "Band – Song"
    assert title_of("Band - Song", "media:x.mp3", "band") == "Band - Song"
    assert title_of(None, "media:folder/song.flac") == "song.flac" and title_of("", "https://x.example/") != ""


def test_errors_in_words():
    refused = AntiphonError("source_not_found", "media:a_b.flac: no such file", "GET /media lists")
    words = r"media:a\_b.flac: no such file. Check the address, or choose from what /play suggests."
    assert error_words(refused) == words
    busy = AntiphonError("overloaded", "the CPU cannot carry another transcode", "try again in 2 s")
    assert error_words(busy) == "The CPU cannot carry another transcode. Try again in 2 s."
    assert "Nothing is playing" in error_words(AntiphonError("no_such_session", "the session plays nothing"))
    assert "keep trying" in error_words(AntiphonError("connection_lost", "no connection"))
    assert "strange_code" in error_words(AntiphonError("strange_code", "")).replace("\\", "")
    assert "@everyone" not in error_words(AntiphonError("x", "@everyone look"))


def test_why_says_what_the_bot_knows():
    why = {"state": "streaming", "summary": "It plays", "underruns": {"count": 2, "longest_ms": 3_500}, "restarts": 1}
    why["stages"] = [{"stage": "extract", "ms": 4_200}, {"stage": "probe", "ms": 3}]
    text = explain(why, Hearing(channel_id=HERE, voice_connected=False, muted_by_server=True, volume=0))
    for part in (
        "is broken",
        "muted me",
        "0 %",
        "It plays.",
        "2 times",
        "3.5 s",
        "1 time",
        "finding the sound",
        "4.2 s",
    ):
        assert part in text, f"no '{part}' in:\n{text}"
    assert "kind of sound" not in text, text
    assert "in no voice channel" in explain({"state": "idle", "summary": "Nothing."}, Hearing(channel_id=None))


def test_a_page_of_the_queue():
    tracks = [{"id": str(n), "url": f"media:{n}.mp3", "duration_ms": 61_000} for n in range(10)]
    queue = {"tracks": tracks, "offset": 10, "total": 25, "loop": "queue", "history_total": 0}
    text = page_text({**queue, "current": {"id": "c", "url": "media:now.mp3", "requested_by": "*Ann*"}})
    assert "**Now** **now.mp3** · \\*Ann\\*" in text and "` 11` **0.mp3** `1:01`" in text, text
    assert "25 tracks waiting · page 2 of 3 · loop: queue" in text, text
    longest = [{"id": "x", "url": "u", "title": "_" * 500, "artist": "*" * 500, "requested_by": "|" * 90}] * 10
    assert len(page_text({**queue, "tracks": longest})) <= 2_000, "longer than Discord takes"


def test_settings(tmp_path):
    settings = parse([], {"DISCORD_TOKEN": "abc"})
    assert settings.discord_token == "abc" and settings.antiphon_url == "http://127.0.0.1:8080"
    assert settings.antiphon_token is None and settings.leave_after_seconds == 60 and not settings.announce
    file = tmp_path / "token"
    file.write_text("from-file\n")
    environment = {"DISCORD_TOKEN": "abc", "ANTIPHON_URL": "http://a/", "ANTIPHON_BOT_LEAVE_AFTER": "5"}
    settings = parse(["--discord-token-file", str(file), "--antiphon-url", "http://b"], environment)
    assert settings.discord_token == "from-file" and settings.antiphon_url == "http://b"
    assert settings.leave_after_seconds == 5
    settings = parse(["--antiphon-url", "http://a/, https://b:8080"], environment)
    assert settings.antiphon_url == "http://a,https://b:8080"


async def test_the_routers_token_is_read_anew(tmp_path):
    file = tmp_path / "token"
    file.write_text("one")
    settings = parse([], {"DISCORD_TOKEN": "abc", "ANTIPHON_TOKEN_FILE": str(file)})
    assert callable(settings.antiphon_token) and await settings.antiphon_token() == "one"
    file.write_text("two")
    assert await settings.antiphon_token() == "two"


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        pytest.param([], {}, "set DISCORD_TOKEN", id="no token"),
        pytest.param(["--discord-token-file", "/nowhere"], {}, "/nowhere cannot be read", id="no such file"),
        pytest.param(["--discord-token-file", "/dev/null"], {}, "one line", id="an empty file"),
        pytest.param(["--antiphon-url", "127.0.0.1"], {"DISCORD_TOKEN": "x"}, "no address of a Router", id="no URL"),
        pytest.param(["--antiphon-url", "http://a,"], {"DISCORD_TOKEN": "x"}, "'' is no address", id="a URL too few"),
        pytest.param(["--leave-after", "soon"], {"DISCORD_TOKEN": "x"}, "'soon' is no number", id="no number"),
        pytest.param(["--leave-after", "nan"], {"DISCORD_TOKEN": "x"}, "'nan' is no number", id="not a number"),
        pytest.param(["--log-level", "loud"], {"DISCORD_TOKEN": "x"}, "none of debug, info", id="no log level"),
        pytest.param(["--nonsense"], {"DISCORD_TOKEN": "x"}, "--nonsense", id="an unknown option"),
    ],
)
def test_settings_that_are_wrong(arguments, environment, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(arguments, environment)
    assert ended.value.code == 64 and said in capsys.readouterr().err


def test_the_bot_says_what_is_missing_and_ends():
    """As a process: without a token it ends with 64 and says what to do."""
    environment = {name: value for name, value in os.environ.items() if name != "DISCORD_TOKEN"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, "-m", "antiphon_bot"], env=environment, capture_output=True, text=True)
    assert done.returncode == 64 and "DISCORD_TOKEN" in done.stderr and "Traceback" not in done.stderr, done


def test_health(tmp_path):
    file = tmp_path / "health"
    assert "has not said" in health.problem(file)
    health.write(file, health.READY)
    assert health.problem(file) is None
    health.write(file, "not connected to Discord")
    assert health.problem(file) == "the bot is not connected to Discord"
    health.write(file, health.READY)
    old = time.time() - health.STALE_SECONDS - 5
    os.utime(file, (old, old))
    assert "said nothing" in health.problem(file)
    assert stat.S_ISREG(file.stat().st_mode) and not list(tmp_path.glob(".*")), "something is left behind"


class Searched:
    """A session without files, whose searches find what they are given, one after the other."""

    def __init__(self, *answers: list[str] | Exception) -> None:
        self.answers = list(answers)

    async def media(self, path: str = "") -> dict:
        raise AntiphonError("not_found", "no media")

    async def resolve(self, query: str, limit: int = 10) -> dict:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"entries": [{"url": url, "title": url} for url in answer]}


async def test_searches_are_remembered_only_where_they_found_something():
    suggest, session = (
        Suggestions().suggest,
        Searched([], AntiphonError("timeout", "slow"), KeyError("entries"), ["u:1"]),
    )
    found = [await suggest(session, 1, "Some song", 10) for _ in range(5)]
    assert found == [[], [], [], [("u:1", "u:1")], [("u:1", "u:1")]], found


async def test_searches_are_forgotten(monkeypatch):
    monkeypatch.setattr(suggestions, "REMEMBERED_SECONDS", 0.01)
    suggest, session = Suggestions().suggest, Searched(["u:1"], ["u:2"])
    assert await suggest(session, 1, "some song", 10) == [("u:1", "u:1")]
    await asyncio.sleep(0.2)
    assert await suggest(session, 1, "some song", 10) == [("u:2", "u:2")]


async def test_a_fault_is_logged_and_ends_nothing_else(caplog):
    async def fail(error: Exception) -> None:
        raise error

    await guarded("housekeeping", fail(AntiphonError("timeout", "slow")))
    await guarded("housekeeping", fail(KeyError("x")))
    tasks, done = Tasks("the bot"), asyncio.Event()

    async def go_on() -> None:
        done.set()

    tasks.spawn(fail(KeyError("y")))
    tasks.spawn(go_on())
    await asyncio.wait_for(done.wait(), 10)
    levels = [(record.levelno, record.getMessage().split(":")[0]) for record in caplog.records]
    assert levels == [
        (logging.WARNING, "housekeeping"),
        (logging.ERROR, "housekeeping"),
        (logging.ERROR, "the bot"),
    ], levels

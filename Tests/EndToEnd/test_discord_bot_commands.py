"""The Discord bot's slash commands, happy and hostile; each is given in a fake Discord to the real bot."""

import functools
import json

import pytest

from client import request
from discord_bot import GLIDES, OTHER, SONG, THIRD, assert_plays, stages, until
from extraction import COLD_SECONDS, search_options
from fake_discord import Permission
from page_server import PageServer
from processes import Antiphon
from tagged import make_picture, make_tagged

pytestmark = pytest.mark.usefixtures("songs")


async def test_the_queue_by_commands(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    added = await stage.ask("play", query=OTHER.url)
    assert "number 1 in the queue" in added.text, added
    await stage.ask("play", query=THIRD.url)
    assert "number 1 in the queue" in (await stage.ask("play", query=GLIDES.url, next=True)).text
    queue = await stage.ask("queue")
    assert queue.ephemeral and "3 tracks waiting" in queue.text, queue
    names = [clip.name for clip in (SONG, GLIDES, OTHER, THIRD)]
    places = [queue.text.find(name) for name in names]
    assert -1 not in places and places == sorted(places), queue.text

    offered = await stage.typed("remove", "track", "700")
    assert len(offered) == 1 and next(iter(offered)).startswith(f"2. {OTHER.name}"), offered
    gone = next(iter(offered.values()))
    assert OTHER.name in (await stage.ask("remove", track=gone)).text
    await stage.refused("remove", "not in the queue any more", track=gone)
    await stage.refused("remove", "no number 9", track="9")
    await stage.refused("remove", "No such track", track="what is not there")
    assert THIRD.name in (await stage.ask("remove", track="2")).text
    await stage.refused("shuffle", "fewer than two")
    for _ in range(2):
        await stage.ask("play", query=OTHER.url)
    assert "3 tracks shuffled" in (await stage.ask("shuffle")).text

    await stage.ask("play", query=THIRD.url, next=True)
    begun = stage.voice.mark()
    skipped = await stage.ask("skip")
    assert THIRD.name in skipped.text, skipped
    assert_plays((await stage.hear(150, begun))[50:], 1_000)
    begun = stage.voice.mark()
    assert SONG.name in (await stage.ask("previous")).text
    assert_plays((await stage.hear(150, begun))[50:], 440)

    assert "queue" in (await stage.ask("loop", mode="queue")).text
    assert "loop: queue" in (await stage.ask("queue")).text
    assert "Stopped" in (await stage.ask("stop")).text
    await stage.voice.wait_disconnected()
    assert "Nothing is playing" in (await stage.ask("queue")).text
    for command in ("pause", "skip", "seek", "nowplaying", "stop"):
        options = {"position": "0"} if command == "seek" else {}
        await stage.refused(command, "Nothing is playing", **options)


async def test_the_queue_has_pages(antiphon, stage):
    tracks = [{"url": SONG.url, "title": f"Song {number}"} for number in range(1, 24)]
    await request("POST", f"{antiphon.router.url}/api/v1/sessions/{stage.session}/queue", {"tracks": tracks})
    reply = await stage.ask("queue")
    assert "Song 11" in reply.text and "Song 12" not in reply.text and "page 1 of 3" in reply.text, reply
    anna = stage.member("anna")
    for page, label, first in ((2, "▶", 12), (3, "▶", 22), (2, "◀", 12)):
        await stage.fake.press(anna, reply, label)
        await reply.wait(lambda reply: f"page {page} of 3" in reply.text, f"page {page}")
        assert f"**Song {first}**" in reply.text, reply
    await request("DELETE", f"{antiphon.router.url}/api/v1/sessions/{stage.session}/queue")
    await stage.fake.press(anna, reply, "▶")
    await reply.wait(lambda reply: "0 tracks waiting" in reply.text, "the page that there is")


async def test_places_and_volume(antiphon, stage):
    await stage.ask("play", query=SONG.url)
    await stage.hear(20)
    for position, low, high in (("1:00", 60, 64), ("+10", 70, 90), ("-40", 25, 60)):
        await stage.ask("seek", position=position)
        state = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{stage.session}")
        assert low <= state.body["position_ms"] / 1_000 <= high, (position, state)
    await stage.refused("seek", "only 2:00 long", position="2:01")
    await stage.refused("seek", "no time", position="later")
    assert "50 %" in (await stage.ask("volume", percent=50)).text
    state = await request("GET", f"{antiphon.router.url}/api/v1/sessions/{stage.session}")
    assert state.body["volume"] == 0.5, state

    shown = await stage.ask("nowplaying")
    (embed,) = shown.embeds
    assert shown.ephemeral and embed["title"].replace("\\", "") == SONG.name and "🔘" in embed["description"], embed
    assert "/ 2:00" in embed["description"], embed
    assert "for anna" in embed["footer"]["text"] and "volume 50%" in embed["footer"]["text"], embed
    await stage.ask("volume", percent=0)
    why = await stage.ask("why")
    assert why.ephemeral and "volume is 0 %" in why.text, why.text


async def test_what_is_suggested(antiphon, stage):
    offered = await stage.typed("play", "query", "tone 440 120 ogg opus")
    assert offered == {f"🎵 {SONG.file}": SONG.url}, offered
    assert len(await stage.typed("play", "query", "")) >= 4
    assert await stage.typed("play", "query", "https://music.example/x") == {
        "https://music.example/x": "https://music.example/x"
    }
    assert await stage.typed("play", "query", "qqxqq") == {}
    long = "https://music.example/" + "x" * 200
    (value,) = (await stage.typed("play", "query", long)).values()
    # What stands behind it is the whole address again.
    await stage.refused("play", "music.example", query=value)


async def test_a_search(tmp_path, media):
    """Words are looked for while somebody types; a hit's name is shown as it is, and its whole address is played."""
    with PageServer() as site:
        address = f"{site.url}/song.opus?{'x' * 150}"
        site.add("/song.opus", lambda asked: asked.media(media.bytes(SONG)))
        hits = [{"url": address, "title": "**A** <@1> @everyone", "by": "A band", "seconds": 120}]
        site.add("/search", lambda asked: asked.answer(200, json.dumps(hits).encode(), "application/json"))
        options = search_options(tmp_path / "plugins", f"{site.url}/search")
        with Antiphon(tmp_path, media.root, allow=("127.0.0.1/32",), engine_options=options) as antiphon:
            async with stages(antiphon, tmp_path, "one") as (stage,):
                stage.move("anna", "Music")
                # yt-dlp takes a while to start: what comes too late for one letter is there at another.
                find = functools.partial(stage.typed, "play", "query", "some words")
                offered = await until(find, "suggestion", COLD_SECONDS)
                (value,) = offered.values()
                assert list(offered) == ["A band – **A** <@1> @everyone (2:00)"] and len(value) <= 100, offered
                reply = await stage.ask("play", query=value)
                # Invisible characters keep mentions from being ones.
                shown = reply.text.replace("\u200b", "")
                assert shown.startswith(r"▶ **A band – \*\*A\*\* \<@1> @everyone** `2:00` · anna"), shown
                assert_plays(await stage.hear(100), 440)
                assert "number 1" in (await stage.ask("play", query="other words")).text
                hits.clear()
                await stage.refused("play", "Nothing was found", query="what nobody has")


async def test_a_cover(antiphon, stage, media, tmp_path):
    """The Router's own pictures go along as files: Discord could not fetch them."""
    url = make_tagged(media, "discord.flac", {"title": "A title", "artist": "A band"}, cover=make_picture(tmp_path))
    await stage.ask("play", query=url)
    (embed,) = (await stage.ask("nowplaying")).embeds
    assert embed["thumbnail"]["url"] == "attachment://cover.jpg", embed
    assert embed["title"] == "A title" and embed["author"]["name"] == "A band", embed


async def test_what_is_refused(antiphon, stage):
    await stage.refused("play", "Join a voice channel", by="ben", query=SONG.url)
    await stage.refused("play", "nothing-there.mp3", query="media:nothing-there.mp3")
    await stage.voice.wait_disconnected()
    await stage.refused("play", "queue is empty")
    await stage.refused("previous", "no track before")
    await stage.refused("resume", "no voice channel")
    await stage.ask("play", query=SONG.url)
    await stage.voice.wait_connected()
    for command in ("pause", "resume", "skip", "previous", "stop", "shuffle"):
        await stage.refused(command, "Join a voice channel", by="ben")
    stage.move("ben", "Other")
    await stage.refused("play", "playing for 1 listener", by="ben", query=OTHER.url)
    await stage.refused("volume", "Come to", by="ben", percent=10)
    # Who only looks need not be there.
    assert SONG.name in (await stage.ask("queue", by="ben")).text


async def test_the_dj_role(antiphon, tmp_path):
    async with stages(antiphon, tmp_path, "one", options=["--dj-role", "dj"]) as (stage,):
        stage.move("ben", "Music")
        await stage.ask("play", by="ben", query=SONG.url)
        stage.move("anna", "Music")
        for command in ("pause", "skip", "stop"):
            await stage.refused(command, "role “DJ”", by="ben")
        await stage.refused("play", "role “DJ”", by="ben", query=OTHER.url)
        stage.move("dj", "Music")
        await stage.ask("pause", by="dj")
        # The owner manages the server, from wherever.
        await stage.ask("resume", by="owner")
        stage.move("dj", None)
        stage.move("anna", None)
        await stage.ask("pause", by="ben")


async def test_a_broken_file(antiphon, stage, media):
    """It is found only when it is opened: the requester is told all the same, and the bot does not stay for it."""
    url = media.write("discord-broken.mp3", b"this is no music" * 1_000)
    await stage.refused("play", "no audio file", query=url)
    await stage.voice.wait_disconnected()
    await stage.ask("play", query=SONG.url)
    assert_plays(await stage.hear(75), 440)


async def test_a_channel_it_may_not_enter(antiphon, stage):
    closed = stage.guild.channel("Other")
    closed.denied = Permission.CONNECT
    stage.fake.drop_gateway(resume=False)
    await stage.fake.wait_ready(2)
    stage.move("ben", "Other")
    await stage.refused("play", "“Connect”", by="ben", query=SONG.url)


async def test_announcements(antiphon, tmp_path):
    async with stages(antiphon, tmp_path, "one", options=["--announce"]) as (stage,):
        stage.move("anna", "Music")
        await stage.ask("play", query=SONG.url)
        await stage.ask("play", query=OTHER.url)
        await stage.ask("skip")
        await stage.fake.wait_message(stage.guild.text, lambda message: OTHER.name in message.text, "announcement")

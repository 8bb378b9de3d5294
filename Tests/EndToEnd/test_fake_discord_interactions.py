"""Commands, buttons and autocomplete at the fake Discord, with the real discord.py as the client."""

import asyncio
import enum

import discord
import pytest
from discord import app_commands

from fake_discord import FakeDiscord, Guild, Permission
from fake_discord.in_process import Client, logged_in


class Mode(enum.Enum):
    track = "track"
    queue = "queue"


class Buttons(discord.ui.View):
    """One button that changes its message, and one select that answers by itself."""

    @discord.ui.button(label="Pause", custom_id="pause")
    async def pause(self, interaction: discord.Interaction, button: discord.ui.Button):
        button.label = "Resume"
        await interaction.response.edit_message(content="paused", view=self)

    @discord.ui.select(options=[discord.SelectOption(label=name, value=name) for name in ("a", "b")], custom_id="pick")
    async def pick(self, interaction: discord.Interaction, select: discord.ui.Select):
        await interaction.response.send_message(f"picked {select.values}", ephemeral=True)


def add_commands(tree: app_commands.CommandTree) -> None:
    @tree.command(description="Says what it was given")
    async def echo(
        interaction: discord.Interaction,
        word: str,
        count: app_commands.Range[int, 1, 5] = 1,
        loud: bool = False,
        share: float = 0.5,
        mode: Mode = Mode.track,
        who: discord.Member | None = None,
        where: discord.TextChannel | None = None,
        role: discord.Role | None = None,
    ):
        names = [thing.name if thing else None for thing in (who, where, role)]
        await interaction.response.send_message(f"{word} {count} {loud} {share} {mode.value} {names}")

    @echo.autocomplete("word")
    async def word(interaction: discord.Interaction, current: str):
        return [app_commands.Choice(name=f"{current}{n} for {interaction.user.name}", value=str(n)) for n in range(3)]

    @tree.command(description="Thinks, answers, changes its answer, adds one")
    async def slow(interaction: discord.Interaction):
        await interaction.response.defer(ephemeral=True)
        await interaction.edit_original_response(embed=discord.Embed(title="first").add_field(name="n", value="v"))
        await interaction.followup.send("more")
        await interaction.edit_original_response(content="second", embed=None)

    @tree.command(description="Shows buttons")
    async def buttons(interaction: discord.Interaction):
        await interaction.response.send_message("playing", view=Buttons())

    @tree.command(description="For those who may")
    @app_commands.default_permissions(manage_guild=True)
    async def guarded(interaction: discord.Interaction):
        await interaction.response.send_message("done")

    queue = app_commands.Group(name="queue", description="What comes next")

    @queue.command(name="add", description="Adds something")
    async def queue_add(interaction: discord.Interaction, query: str):
        await interaction.response.send_message(f"added {query}")

    tree.add_command(queue)


@pytest.fixture
def guild(fake: FakeDiscord) -> Guild:
    return fake.add_guild("one", roles={"DJ": Permission.MANAGE_GUILD}, members={"anna": ["DJ"], "ben": []})


@pytest.fixture
async def client(fake: FakeDiscord, guild: Guild):
    async with logged_in(fake) as client:
        add_commands(client.tree)
        await client.tree.sync()
        yield client


async def test_options_of_every_type(fake: FakeDiscord, guild: Guild, client: Client):
    anna, ben = guild.member("anna"), guild.member("ben")
    assert fake.commands.names() == ["buttons", "echo", "guarded", "queue", "slow"]
    assert (await fake.invoke(guild, anna, "echo", {"word": "x"})).content == "x 1 False 0.5 track [None, None, None]"
    everything = {
        "word": "y",
        "count": 5,
        "loud": True,
        "share": 2,
        "mode": "queue",
        "who": ben,
        "where": guild.text,
        "role": guild.role("DJ"),
    }
    reply = await fake.invoke(guild, anna, "echo", everything)
    assert reply.content == "y 5 True 2.0 queue ['ben', 'general', 'DJ']"
    assert reply.kind == "message" and not reply.ephemeral
    assert (await fake.invoke(guild, anna, "queue add", {"query": "song"})).content == "added song"


@pytest.mark.parametrize(
    ("command", "options", "why"),
    [
        ("echo", {}, "needs"),
        ("echo", {"word": "x", "count": 6}, "at most 5"),
        ("echo", {"word": "x", "count": "1"}, "of type 4"),
        ("echo", {"word": "x", "mode": "none"}, "is one of"),
        ("echo", {"word": "x", "other": 1}, "no option"),
        ("queue remove", {}, "no subcommand"),
        ("guarded", {}, "does not offer"),
    ],
)
async def test_what_a_client_would_not_send(fake: FakeDiscord, guild: Guild, client: Client, command, options, why):
    with pytest.raises(AssertionError, match=why):
        await fake.invoke(guild, guild.member("ben"), command, options)


async def test_command_for_those_who_may(fake: FakeDiscord, guild: Guild, client: Client):
    assert (await fake.invoke(guild, guild.member("anna"), "guarded")).content == "done"


async def test_autocomplete(fake: FakeDiscord, guild: Guild, client: Client):
    choices = await fake.autocomplete(guild, guild.member("ben"), "echo", {"word": "ab"}, focused="word")
    assert choices == [{"name": f"ab{n} for ben", "value": str(n)} for n in range(3)]


async def test_deferred_answer_with_edits_and_follow_up(fake: FakeDiscord, guild: Guild, client: Client):
    reply = await fake.invoke(guild, guild.member("anna"), "slow")
    assert reply.kind == "deferred" and reply.ephemeral
    await reply.wait(lambda reply: reply.content == "second", "second edit")
    first = reply.message.versions[0]["embeds"][0]
    assert (first["title"], first["fields"][0]["value"]) == ("first", "v")
    assert [message.content for message in reply.followups] == ["more"]
    assert reply.text == "second\nmore"
    assert not fake.messages.of(guild.text)[1:], "an answer for one person alone is seen by all"


async def test_buttons_and_selects(fake: FakeDiscord, guild: Guild, client: Client):
    anna = guild.member("anna")
    shown = await fake.invoke(guild, anna, "buttons")
    pressed = await fake.press(anna, shown, "Pause")
    assert pressed.kind == "update" and shown.content == "paused" and shown.message.labels == ["Resume"]
    picked = await fake.press(guild.member("ben"), shown, "pick", ["b"])
    # The answer stands beside the message, which is as it was.
    assert picked.content == "picked ['b']" and picked.ephemeral and shown.content == "paused"


async def test_messages_in_channels(fake: FakeDiscord, guild: Guild, client: Client):
    channel = client.get_channel(guild.text.id)
    sent = await channel.send("now playing", view=Buttons())
    message = await fake.wait_message(guild.text, lambda message: "playing" in message.text, "message")
    await sent.edit(content="stopped", view=None)
    assert (message.content, message.labels) == ("stopped", [])
    await sent.delete()
    assert message.deleted and not fake.messages.of(guild.text)


async def test_channel_that_the_bot_may_not_write_to(fake: FakeDiscord, guild: Guild, client: Client):
    guild.text.denied = Permission.SEND_MESSAGES
    with pytest.raises(discord.Forbidden):
        await client.get_channel(guild.text.id).send("x")


async def test_components_of_version_2(fake: FakeDiscord, guild: Guild, client: Client):
    layout = discord.ui.LayoutView()
    row = discord.ui.ActionRow(discord.ui.Button(label="Skip"))
    layout.add_item(discord.ui.Container(discord.ui.TextDisplay("now playing"), row))
    sent = await client.get_channel(guild.text.id).send(view=layout)
    message = fake.messages.of(guild.text)[0]
    assert (message.text, message.labels) == ("now playing", ["Skip"])
    for rule, payload in {
        "beside components": {"content": "x"},
        "4001 characters": {"components": [{"type": 10, "content": "x" * 4_001}]},
        "41 components": {"components": [{"type": 10, "content": "x"}] * 41},
    }.items():
        with (
            pytest.raises(discord.HTTPException),
            discord.http.MultipartParameters(payload=payload, multipart=None, files=None) as params,
        ):
            await client.http.edit_message(guild.text.id, sent.id, params=params)
        assert len(fake.violations.take(rule)) == 1


BROKEN_MESSAGES = {
    "content of 2001": {"content": "x" * 2_001},
    "an empty message": {"content": ""},
    "title of 257": {"embed": discord.Embed(title="x" * 257)},
    "6001 characters": {"embeds": [discord.Embed(description="x" * 4_000), discord.Embed(description="x" * 2_001)]},
    "26 fields": {"embed": discord.Embed.from_dict({"fields": [{"name": "n", "value": "v"}] * 26})},
    "no web address": {"embed": discord.Embed(title="x", url="media:song.flac")},
    "label of 81": {"view": discord.ui.View().add_item(discord.ui.Button(label="x" * 81))},
}


@pytest.mark.parametrize("rule", BROKEN_MESSAGES)
async def test_messages_that_break_a_rule(fake: FakeDiscord, guild: Guild, client: Client, rule: str):
    with pytest.raises(discord.HTTPException) as refused:
        await client.get_channel(guild.text.id).send(**BROKEN_MESSAGES[rule])
    assert (refused.value.status, refused.value.code) == (400, 50035)
    assert len(fake.violations.take(rule)) == 1


async def test_commands_that_break_a_rule(fake: FakeDiscord, guild: Guild, client: Client):
    def broken(**fields) -> dict:
        return {"name": "fine", "description": "fine", "options": []} | fields

    option = {"name": "o", "description": "d", "type": 3}
    for part, commands in {
        "lower case": [broken(name="Loud")],
        "101 characters": [broken(description="x" * 101)],
        "26 options": [broken(options=[option | {"name": f"o{n}"} for n in range(26)])],
        "required comes after": [broken(options=[option, option | {"name": "p", "required": True}])],
        "26 choices": [broken(options=[option | {"choices": [{"name": f"{n}", "value": f"{n}"} for n in range(26)]}])],
        "two commands": [broken(), broken()],
    }.items():
        with pytest.raises(discord.HTTPException):
            await client.http.bulk_upsert_global_commands(client.application_id, payload=commands)
        assert len(fake.violations.take(part)) == 1
    assert "echo" in fake.commands.names(), "refused commands took the place of good ones"


async def test_interaction_is_answered_once_and_in_time(fake: FakeDiscord, guild: Guild, client: Client, monkeypatch):
    request_errors = []

    @client.tree.command(description="Answers twice")
    async def twice(interaction: discord.Interaction):
        await interaction.response.send_message("once")
        # Without this discord.py itself refuses.
        interaction.response._response_type = None
        try:
            await interaction.response.send_message("again")
        except discord.HTTPException as refused:
            request_errors.append(refused.code)

    @client.tree.command(description="Answers too late")
    async def late(interaction: discord.Interaction):
        try:
            await asyncio.sleep(0.2)
            await interaction.response.send_message("late")
        except discord.HTTPException as refused:
            request_errors.append(refused.code)
            monkeypatch.undo()
            await interaction.response.send_message("too late")

    await client.tree.sync()
    anna = guild.member("anna")
    assert (await fake.invoke(guild, anna, "twice")).content == "once"
    await fake.bell.wait(lambda: fake.violations.take("twice"), "violation")
    monkeypatch.setattr("fake_discord.interaction_answers.ANSWER_LIMIT_SECONDS", 0.1)
    assert (await fake.invoke(guild, anna, "late")).content == "too late"
    assert fake.violations.take("after 0.")
    assert request_errors == [40060, 10062]

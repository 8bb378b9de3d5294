"""DAVE, the end-to-end encryption of voice: the fake Discord's group, with the real discord.py in it."""

import contextlib
from collections.abc import AsyncIterator

import davey
import discord
import pytest
from discord.voice_state import VoiceConnectionState

from fake_discord import FakeDiscord, Guild, VoiceConnection, dave
from fake_discord.dave import Call
from fake_discord.in_process import SILENCE, Prepared, join, logged_in, numbered
from fake_discord.mls import ExternalSender, Malformed, check_key_package, read_commit, vector

SOUND = numbered(3_000)


@contextlib.asynccontextmanager
async def playing(fake: FakeDiscord, guild: Guild) -> AsyncIterator[tuple[discord.VoiceClient, VoiceConnection]]:
    """A call in which the bot plays `SOUND`."""
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(SOUND))
        await voice.wait_packets(10)
        yield speaker, voice


def opus(voice: VoiceConnection, since: int = 0) -> list[bytes]:
    return [packet.opus for packet in voice.packets(since)]


def assert_follows(heard: list[bytes], what: str) -> None:
    """It is one piece of `SOUND`, without a hole."""
    begin = SOUND.index(heard[0])
    assert heard == SOUND[begin : begin + len(heard)], f"{what} misses something"


async def test_all_but_silence_is_encrypted(fake: FakeDiscord):
    """Silence, F8 FF FE, goes as it is: so says DAVE, since Discord's server makes it for those who are muted."""
    guild = fake.add_guild("one")
    sound = numbered(30)
    sound[10:20] = [SILENCE] * 10
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(sound))
        packets = await voice.wait_packets(30)
        assert [packet.opus for packet in packets] == sound
        assert [packet.is_encrypted for packet in packets] == [each != SILENCE for each in sound]
        assert len(speaker.voice_privacy_code) == 30


@pytest.mark.parametrize("is_full", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("bot_is_quickest", [False, True], ids=["welcomed", "committing"])
async def test_people_come_and_go_while_it_plays(
    fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch, is_full: bool, bot_is_quickest: bool
):
    """Each is another epoch with other keys; nobody in the call misses a packet."""
    guild = fake.add_guild("one", members={"anna": [], "ben": [], "cleo": []})
    anna, ben, cleo = (guild.member(name) for name in ("anna", "ben", "cleo"))
    music = guild.channel("Music")
    monkeypatch.setattr(Call, "bot_is_quickest", bot_is_quickest)
    if is_full:
        fake.move_user(guild, cleo, music)
    async with playing(fake, guild) as (_, voice):
        call = voice.call
        epoch = call.epoch
        listeners = []
        for member, channel in ((anna, music), (ben, music), (anna, None), (anna, music), (ben, None), (anna, None)):
            executed = call.executed
            fake.move_user(guild, member, channel)
            await voice.wait(lambda: call.executed == executed + 1, "another epoch")
            if channel:
                listeners.append(call.listener(member.user))
            await voice.wait_packets(10, since=voice.mark())
        assert call.epoch == epoch + 6
        # The first epoch of all is between the ear and the bot, if nobody else has made a group before.
        assert call.bot_commits == (6 + (not is_full) if bot_is_quickest else 0)
        assert call.unheard == 0
        assert opus(voice) == SOUND[: voice.received]
        for listener in listeners:
            assert_follows(list(listener.heard), f"one who came meanwhile, {listener.user.name}, ")
        if is_full:
            assert list(call.listener(cleo.user).heard) == SOUND[: voice.received]


async def test_who_has_left_hears_nothing(fake: FakeDiscord):
    guild = fake.add_guild("one", members={"anna": []})
    anna = guild.member("anna")
    fake.move_user(guild, anna, guild.channel("Music"))
    async with playing(fake, guild) as (speaker, voice):
        listener, executed = voice.call.listener(anna.user), voice.call.executed
        fake.move_user(guild, anna, None)
        await voice.wait(lambda: voice.call.executed > executed, "an epoch without her")
        sealed = speaker._connection.dave_session.encrypt_opus(b"\xfcsecret")
        assert listener.hear(fake.bot, sealed, passthrough=False) is None
        assert voice.call.hear(sealed) == b"\xfcsecret"


async def test_a_commit_that_it_cannot_read(fake: FakeDiscord):
    """It says so (31), and is let in again; only what it sent meanwhile is lost."""
    guild = fake.add_guild("one", members={"anna": []})
    async with playing(fake, guild) as (_, voice):
        call = voice.call
        call.damages_next = True
        fake.move_user(guild, guild.member("anna"), guild.channel("Music"))
        await voice.wait(lambda: call.invalid == 1, "word that it cannot be read")
        await voice.wait(lambda: call.is_admitted, "way back into the group")
        since = voice.mark()
        again = [packet.opus for packet in await voice.wait_packets(50, since)]
        assert_follows(again, "what came after it")
        assert list(call.listener(guild.member("anna").user).heard)[-20:] == opus(voice)[-20:]
    assert len(fake.violations.take("no use for the commit")) == 1


async def test_somebody_without_encryption_comes_and_leaves(fake: FakeDiscord):
    guild = fake.add_guild("one", members={"anna": []})
    fake.move_user(guild, guild.member("anna"), guild.channel("Music"))
    async with playing(fake, guild) as (_, voice):
        call, executed = voice.call, voice.call.executed
        call.downgrade()
        await voice.wait(lambda: call.executed > executed, "downgrade")
        await voice.wait(lambda: not voice.packets()[-1].is_encrypted, "packet that is not encrypted")
        plain = voice.mark()
        await voice.wait_packets(10, since=plain)
        assert not any(packet.is_encrypted for packet in voice.packets(plain))
        call.upgrade()
        await voice.wait(lambda: call.is_admitted, "upgrade")
        await voice.wait(lambda: voice.packets()[-1].is_encrypted, "packet that is encrypted")
        sealed = voice.mark()
        await voice.wait_packets(10, since=sealed)
        assert all(packet.is_encrypted for packet in voice.packets(sealed))
        assert opus(voice) == SOUND[: voice.received] and call.unheard == 0


async def test_a_call_without_encryption(fake: FakeDiscord):
    guild = fake.add_guild("one", members={"anna": []})
    fake.voice_server.dave_version = 0
    async with playing(fake, guild) as (_, voice):
        fake.move_user(guild, guild.member("anna"), guild.channel("Music"))
        await voice.wait_packets(10, since=voice.mark())
        assert opus(voice) == SOUND[: voice.received]
        assert not any(packet.is_encrypted for packet in voice.packets())


async def test_what_is_not_encrypted_is_heard_by_nobody(fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dave, "ON_ITS_WAY_SECONDS", 0)
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker._connection.dave_protocol_version = 0
        for _ in range(2):
            speaker.send_audio_packet(b"\xfcsound", encode=False)
        await voice.wait(lambda: voice.call.unheard == 2, "two packets that nobody hears")
        assert voice.received == 0
    assert len(fake.violations.take("not encrypted end to end")) == 2


async def test_who_cannot_encrypt_is_not_let_in(fake: FakeDiscord, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(VoiceConnectionState, "max_dave_protocol_version", 0)
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        with pytest.raises(discord.ConnectionClosed) as closed:
            await client.get_channel(guild.channel("Music").id).connect(timeout=5, reconnect=False)
        assert closed.value.code == 4017
    assert fake.violations.take("cannot encrypt end to end")


def test_what_a_gateway_refuses():
    session, sender = davey.DaveSession(1, 7, 9), ExternalSender(b"gateway")
    session.set_external_sender(sender.package)
    own = session.get_serialized_key_package()
    check_key_package(own, 7)
    with pytest.raises(Malformed, match="the key package of 8"):
        check_key_package(own, 8)
    for place in range(len(own)):
        with pytest.raises(Malformed):
            check_key_package(own[:place] + bytes([own[place] ^ 1]) + own[place + 1 :], 7)
        with pytest.raises(Malformed):
            check_key_package(own[:place], 7)
    other = davey.DaveSession(1, 8, 9).get_serialized_key_package()
    proposal = sender.add(9, 0, other)
    made = session.process_proposals(davey.ProposalsOperationType.append, vector(proposal.message))
    commit = read_commit(made.commit + made.welcome)
    assert (commit.message, commit.welcome) == (made.commit, made.welcome)
    assert (commit.group, commit.epoch, commit.references) == (9, 0, {proposal.reference})
    for place in range(len(made.commit)):
        with pytest.raises(Malformed):
            read_commit(made.commit[:place])
    # A stranger's proposal is not taken.
    forged = ExternalSender(b"gateway").add(9, 0, other).message
    with pytest.raises(ValueError, match="process proposals"):
        session.process_proposals(davey.ProposalsOperationType.append, vector(forged))

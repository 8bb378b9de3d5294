"""The fake Discord's gateway and voice, with the real discord.py as the client."""

import asyncio
import os
import statistics
from itertools import pairwise

import discord
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from discord.gateway import DiscordVoiceWebSocket

from fake_discord import FakeDiscord, Permission
from fake_discord.in_process import SILENCE, Client, Prepared, join, logged_in, numbered
from fake_discord.rtp import decrypt


async def test_plays(fake: FakeDiscord):
    guild = fake.add_guild("one")
    sound = numbered(150)
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        assert voice.channel is guild.channel("Music")
        speaker.play(Prepared(sound))
        received = await voice.wait_packets(len(sound) + 5)
        packets, ends = received[: len(sound)], received[len(sound) :]
        assert [packet.opus for packet in packets] == sound
        assert [packet.opus for packet in ends] == [SILENCE] * 5
        for before, after in pairwise(received):
            assert after.sequence == before.sequence + 1
            assert after.timestamp == before.timestamp + 960
            assert after.ssrc == before.ssrc
        spacing = statistics.mean(after.arrived_ns - before.arrived_ns for before, after in pairwise(packets)) / 1e6
        # discord.py makes up for a machine that stood still, unless that was at the beginning or at the end.
        assert 16 < spacing < 26, f"a packet each {spacing:.2f} ms"
        await voice.wait(lambda: len(voice.speaking) >= 3, "end of speaking")
        assert [speaking.flags for speaking in voice.speaking] == [0, 1, 0]
        await voice.wait_quiet()
        assert voice.packets() == received
        await speaker.disconnect()
        await voice.wait_disconnected()


async def test_two_guilds_at_once(fake: FakeDiscord):
    guilds = [fake.add_guild("one"), fake.add_guild("two")]
    async with logged_in(fake) as client:
        joined = await asyncio.gather(*(join(fake, client, guild) for guild in guilds))
        for mark, (speaker, _) in enumerate(joined):
            speaker.play(Prepared(numbered(50, mark)))
        for mark, (_, voice) in enumerate(joined):
            assert [packet.opus for packet in await voice.wait_packets(50)] == numbered(50, mark)
        assert joined[0][1].packets()[0].ssrc != joined[1][1].packets()[0].ssrc


@pytest.mark.parametrize("code", [4006, 4009, 1006])
async def test_voice_connection_is_lost(fake: FakeDiscord, code: int):
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(numbered(3_000)))
        first = await voice.wait_packets(10)
        fake.drop_voice(guild, code)
        await voice.wait_connected(handshakes=2)
        again = await voice.wait_packets(10, since=voice.mark())
        assert again[0].ssrc != first[0].ssrc
        assert again[0].sequence > first[-1].sequence


async def test_voice_server_changes(fake: FakeDiscord):
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(numbered(3_000)))
        await voice.wait_packets(10)
        fake.change_voice_server(guild)
        await voice.wait_connected(handshakes=2)
        await voice.wait_packets(10, since=voice.mark())


async def test_bot_is_moved_and_thrown_out(fake: FakeDiscord):
    guild = fake.add_guild("one", voice_channels=["Music", "Other"])
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(numbered(3_000)))
        await voice.wait_packets(10)
        fake.move_user(guild, guild.bot, guild.channel("Other"))
        await voice.wait_connected(handshakes=2)
        await voice.wait_packets(10, since=voice.mark())
        assert speaker.channel.id == guild.channel("Other").id
        fake.kick_voice(guild)
        await voice.wait_disconnected()
        await voice.wait(lambda: not client.voice_clients, "end of discord.py's voice client")


async def test_channel_that_the_bot_may_not_enter(fake: FakeDiscord):
    guild = fake.add_guild("one")
    guild.channel("Music").denied = Permission.CONNECT
    async with logged_in(fake) as client:
        channel = client.get_channel(guild.channel("Music").id)
        assert not channel.permissions_for(channel.guild.me).connect
        with pytest.raises(TimeoutError):
            await channel.connect(timeout=1)
        assert fake.voice(guild).channel is None


async def test_sound_that_was_tampered_with(fake: FakeDiscord):
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        key = list(speaker.secret_key)
        sealed = bytearray(speaker._get_voice_packet(b"sound"))
        sealed[14] ^= 1
        speaker._connection.send_packet(sealed)
        await voice.wait(lambda: voice.undecryptable == 1, "noticed change")
        speaker._connection.secret_key = [0] * 32
        speaker.send_audio_packet(b"sound", encode=False)
        await voice.wait(lambda: voice.undecryptable == 2, "noticed key")
        speaker._connection.secret_key = key
        speaker.send_audio_packet(b"sound", encode=False)
        assert [packet.opus for packet in await voice.wait_packets(1)] == [b"sound"]
        assert len(fake.violations.take("cannot be decrypted")) == 2
        speaker._incr_nonce = 0
        speaker.send_audio_packet(b"sound", encode=False)
        await voice.wait_packets(2)
        assert len(fake.violations.take("with the same key")) == 1
        speaker._connection.send_packet(b"x" * 40)
        await voice.wait(lambda: fake.violations.take("no voice packet"), "noticed nonsense")


def test_other_cipher():
    """discord.py never chooses it, though Discord offers it first."""
    key, header = bytes(range(32)), bytes.fromhex("807800010000000200000003")
    sealed = header + AESGCM(key).encrypt(b"\0\0\0\7".ljust(12, b"\0"), b"sound", header) + b"\0\0\0\7"
    packet = decrypt(sealed, "aead_aes256_gcm_rtpsize", key, 5)
    assert packet is not None
    assert (packet.sequence, packet.timestamp, packet.ssrc, packet.arrived_ns, packet.opus) == (1, 2, 3, 5, b"sound")
    assert decrypt(sealed, "aead_aes256_gcm_rtpsize", bytes(32), 5) is None


async def test_voice_session_is_resumed(fake: FakeDiscord):
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        again = await DiscordVoiceWebSocket.from_connection_state(
            speaker._connection, resume=True, seq_ack=speaker.ws.seq_ack
        )
        await voice.wait(lambda: voice.resumes == 1, "resumed voice session")
        speaker.send_audio_packet(b"sound", encode=False)
        assert (await voice.wait_packets(1))[0].opus == b"sound"
        await again.close()
        speaker._connection.token = "wrong"
        refused = await DiscordVoiceWebSocket.from_connection_state(speaker._connection, resume=True)
        with pytest.raises(discord.ConnectionClosed) as closed:
            while True:
                await refused.poll_event()
        assert closed.value.code == 4006 and voice.resumes == 1


async def test_gateway_is_resumed(fake: FakeDiscord):
    guild = fake.add_guild("one", members={"anna": []})
    async with logged_in(fake) as client:
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(numbered(3_000)))
        heard = asyncio.create_task(client.wait_for("voice_state_update", timeout=15))
        await asyncio.sleep(0)
        fake.drop_gateway()
        # Happens while nobody listens, and is told later.
        fake.move_user(guild, guild.member("anna"), guild.channel("Music"))
        await fake.wait_resumed()
        member, _, after = await heard
        assert (member.name, after.channel.name) == ("anna", "Music")
        await voice.wait_packets(10, since=voice.mark())
        assert (fake.gateway.identified, voice.handshakes) == (1, 1)


async def test_gateway_session_is_lost(fake: FakeDiscord):
    guild = fake.add_guild("one")
    async with logged_in(fake) as client:
        # With READY discord.py forgets its voice client. One that reconnects by itself would go on in vain, and throw
        # out the one that takes its place.
        old, voice = await join(fake, client, guild, reconnect=False)
        fake.drop_gateway(resume=False)
        again = asyncio.create_task(client.wait_for("ready", timeout=30))
        await fake.wait_ready(identified=2)
        await voice.wait_disconnected()
        await again
        assert not old.is_connected() and not client.voice_clients
        speaker, voice = await join(fake, client, guild)
        speaker.play(Prepared(numbered(10)))
        await voice.wait_packets(10)


async def test_guilds_and_people_come_and_go(fake: FakeDiscord):
    async with logged_in(fake) as client:
        arrived = asyncio.create_task(client.wait_for("guild_join", timeout=15))
        await asyncio.sleep(0)
        guild = fake.add_guild("late", members={"anna": []})
        music = client.get_guild((await arrived).id).voice_channels[0]
        for channel, seen in ((guild.channel("Music"), ["anna"]), (None, [])):
            moved = asyncio.create_task(client.wait_for("voice_state_update", timeout=15))
            await asyncio.sleep(0)
            fake.move_user(guild, guild.member("anna"), channel)
            await moved
            assert [member.name for member in music.members] == seen
        left = asyncio.create_task(client.wait_for("guild_remove", timeout=15))
        await asyncio.sleep(0)
        fake.remove_guild(guild)
        assert (await left).name == "late"


async def test_wrong_token_and_intents(fake: FakeDiscord):
    async with Client(fake) as client:
        with pytest.raises(discord.LoginFailure):
            await client.start("wrong")
    async with Client(fake) as client:
        client._connection._intents = discord.Intents.all()
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await client.start(fake.token)
    assert len(fake.violations.take("privileged intents")) == 1


async def test_violations_fail_the_test():
    with pytest.raises(AssertionError, match="broke 1 rules of Discord's"):
        async with FakeDiscord() as fake, logged_in(fake) as client:
            await client.ws.send_as_json({"op": 99, "d": None})
            await fake.bell.wait(lambda: len(fake.violations), "violation")


#: A bot of its own process, which knows nothing of any test.
BOT = """
import asyncio, discord, os
client = discord.Client(intents=discord.Intents.default())

@client.event
async def on_ready():
    speaker = await client.guilds[0].voice_channels[0].connect()
    # What is sent before, nobody hears.
    while not speaker.voice_privacy_code:
        await asyncio.sleep(0.01)
    speaker.send_audio_packet(b"sound", encode=False)

client.run(os.environ["BOT_TOKEN"])
"""


async def test_bot_in_a_process_of_its_own(fake: FakeDiscord, tmp_path):
    guild = fake.add_guild("one")
    (tmp_path / "some_bot.py").write_text(BOT)
    environment = os.environ | fake.environment | {"BOT_TOKEN": fake.token}
    process = await asyncio.create_subprocess_exec(*fake.command_line("some_bot"), env=environment, cwd=tmp_path)
    try:
        assert (await fake.voice(guild).wait_packets(1))[0].opus == b"sound"
    finally:
        process.kill()
        await process.wait()

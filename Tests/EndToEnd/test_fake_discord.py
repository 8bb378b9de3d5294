"""The fake Discord's gateway and voice, with the real discord.py as the client."""

import asyncio
import statistics
from collections.abc import Iterable
from itertools import pairwise

import discord
import pytest
from fake_discord import FakeDiscord, Guild, VoiceConnection
from fake_discord.in_process import Client, logged_in

#: The silence that discord.py sends when it stops.
SILENCE = b"\xf8\xff\xfe"


class Prepared(discord.AudioSource):
    """Plays packets that are Opus already; every one is another."""

    def __init__(self, packets: Iterable[bytes]) -> None:
        self._packets = iter(packets)

    def is_opus(self) -> bool:
        return True

    def read(self) -> bytes:
        return next(self._packets, b"")


def numbered(count: int, mark: int = 0) -> list[bytes]:
    """Opus packets, by their first byte (20 ms of stereo), that differ in all that follows."""
    return [b"\xfc" + bytes([mark]) + index.to_bytes(2, "big") * (20 + index % 60) for index in range(count)]


async def join(fake: FakeDiscord, client: Client, guild: Guild) -> tuple[discord.VoiceClient, VoiceConnection]:
    channel = client.get_channel(guild.channel("Music").id)
    assert isinstance(channel, discord.VoiceChannel)
    speaker = await channel.connect(timeout=15)
    await fake.voice(guild).wait_connected()
    return speaker, fake.voice(guild)


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
        # A machine that stands still delays all that follows by less than this.
        assert 19 < spacing < 27, f"a packet each {spacing:.2f} ms"
        await voice.wait(lambda: len(voice.speaking) >= 3, "end of speaking")
        assert [speaking.flags for speaking in voice.speaking] == [0, 1, 0]
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

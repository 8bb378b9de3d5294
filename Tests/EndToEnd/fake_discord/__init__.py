"""A fake Discord for the tests: the REST API and the gateway (version 10), the voice gateway (version 8) and UDP.

The bot under test is the real one with the real discord.py; it is only told other addresses.

    async with FakeDiscord() as fake:
        guild = fake.add_guild("one", voice_channels=["Music"], members={"anna": []})
        bot = subprocess.Popen(fake.command_line("antiphon_bot"), env={**os.environ, **fake.environment, …})
        # The bot logs in with fake.token.
        await fake.wait_ready()
        fake.move_user(guild, guild.member("anna"), guild.channel("Music"))
        voice = fake.voice(guild)
        await voice.wait_connected()
        packets = await voice.wait_packets(50)     # RtpPacket: sequence, timestamp, ssrc, arrived_ns, opus

Leaving the `async with` block fails if the bot broke a rule of Discord's (`fake.violations`).
"""

from .guilds import Channel, Guild, Member, Permission, Role, User
from .rtp import RtpPacket
from .server import FakeDiscord
from .voice_connection import VoiceConnection

__all__ = ["Channel", "FakeDiscord", "Guild", "Member", "Permission", "Role", "RtpPacket", "User", "VoiceConnection"]

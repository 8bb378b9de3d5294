"""A fake Discord for the tests: the REST API and the gateway (version 10), the voice gateway (version 8) and UDP.

Calls are encrypted end to end (DAVE): who sits in the bot's voice channel is a member of its group, as is an ear that
no test sees. What it decrypts is what tests get to see.

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

        # People: a command (as soon as it is registered), its answer, and what follows it.
        reply = await fake.invoke(guild, guild.member("anna"), "queue add", {"query": "song"})
        assert "added" in reply.text and not reply.ephemeral      # also content, embeds, components, followups, kind
        await reply.wait(lambda reply: "playing" in reply.text, "playing")
        await fake.autocomplete(guild, guild.member("anna"), "play", {"query": "so"}, focused="query")
        await fake.press(guild.member("anna"), reply, "Pause")    # by label or custom_id; selects take values
        shown = await fake.wait_message(guild.text, lambda message: "song" in message.text, "now playing")

        # What goes wrong: the voice gateway, the gateway, the bot's place.
        fake.drop_voice(guild, 4006)               # 4009, 4015, 1006 (cut)
        fake.change_voice_server(guild)            # 4014 and a new VOICE_SERVER_UPDATE
        fake.drop_gateway(resume=False)
        fake.kick_voice(guild)                     # or fake.move_user(guild, guild.bot, channel)
        voice.call.downgrade()                     # upgrade(), damages_next = True, bot_is_quickest = True

The fixture `fake` (conftest.py) is one of a test's own; `fake_discord.in_process.logged_in` is a client for it.
Leaving the `async with` block fails if the bot broke a rule of Discord's (`fake.violations`).
"""

from .guilds import Channel, Guild, Member, Permission, Role, User
from .rtp import RtpPacket
from .server import FakeDiscord
from .voice_connection import VoiceConnection

__all__ = ["Channel", "FakeDiscord", "Guild", "Member", "Permission", "Role", "RtpPacket", "User", "VoiceConnection"]

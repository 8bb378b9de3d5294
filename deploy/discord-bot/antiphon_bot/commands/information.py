"""/nowplaying and /why: for the one who asks."""

from __future__ import annotations

import discord

from ..bot import AntiphonBot
from ..errors import RequestError
from ..explanation import Hearing, explain
from ..now_playing import embed_of, with_cover
from ..replies import Reply, respond
from .requester import Requester


def add(bot: AntiphonBot) -> None:
    @bot.tree.command(description="What is playing")
    async def nowplaying(interaction: discord.Interaction) -> None:
        await respond(interaction, _now_playing(bot, interaction), private=True)

    @bot.tree.command(description="Why is it silent?")
    async def why(interaction: discord.Interaction) -> None:
        await respond(interaction, _why(bot, interaction), private=True)


async def _now_playing(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    session = await Requester(bot, interaction).session()
    track = session.state.current
    if track is None:
        raise RequestError("Nothing is playing. Start something with /play.")
    embed = embed_of(session.state, track)
    files = await with_cover(embed, track.artwork, session, bot.settings, bot.router_http)
    return Reply(embed=embed, files=files, private=True)


async def _why(bot: AntiphonBot, interaction: discord.Interaction) -> Reply:
    requester = Requester(bot, interaction)
    session = await requester.session()
    me = requester.guild.me.voice
    voice = requester.player.voice
    hearing = Hearing(
        channel_id=voice.channel_id,
        voice_connected=voice.is_connected,
        muted_by_server=bool(me and me.mute),
        suppressed=bool(me and me.suppress),
        volume=session.state.volume,
        paused_for_absence=requester.player.paused_for_absence,
        starved_packets=session.packets.counters.starved,
    )
    return Reply(explain(await session.why(), hearing), private=True)

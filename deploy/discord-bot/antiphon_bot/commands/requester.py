"""Who uses a command, and whether they may."""

from __future__ import annotations

import discord
from antiphon_client import Session

from ..bot import AntiphonBot
from ..errors import RequestError
from ..guild_player import GuildPlayer
from ..permissions import Caller, Room, dj_role_matches, may_change, may_summon
from ..voice_link import VoiceChannel


class Requester:
    """One use of a command in a server."""

    def __init__(self, bot: AntiphonBot, interaction: discord.Interaction) -> None:
        if interaction.guild is None or not isinstance(interaction.user, discord.Member):
            raise RequestError(
                "I work in servers only, and I have to be a member of this one: invite me again with the scope “bot”."
            )
        self.bot = bot
        self.interaction = interaction
        self.guild = interaction.guild
        self.member = interaction.user
        self.player: GuildPlayer = bot.player(self.guild.id)

    @property
    def voice_channel(self) -> VoiceChannel | None:
        return self.member.voice.channel if self.member.voice else None

    async def session(self) -> Session:
        """For what only looks. Raises AntiphonError."""
        return await self.player.session()

    async def session_to_change(self) -> Session:
        """For what changes what plays. Raises RequestError where the requester may not, and AntiphonError."""
        if problem := may_change(self._caller(), self._room()):
            raise RequestError(problem)
        return await self.player.session()

    def require_summoning(self) -> None:
        """Raises RequestError where the requester may not have the bot play for them."""
        if problem := may_summon(self._caller(), self._room()):
            raise RequestError(problem)

    def _caller(self) -> Caller:
        wanted = self.bot.settings.dj_role
        channel = self.voice_channel
        return Caller(
            channel_id=channel.id if channel else None,
            manages_server=self.interaction.permissions.manage_guild,
            has_dj_role=wanted is not None
            and any(dj_role_matches(wanted, role.id, role.name) for role in self.member.roles),
        )

    def _room(self) -> Room:
        wanted = self.bot.settings.dj_role
        roles = [role.name for role in self.guild.roles if wanted and dj_role_matches(wanted, role.id, role.name)]
        here = self.player.voice.channel_id
        channel = self.voice_channel
        return Room(
            channel_id=here,
            people_here=self.player.people_in(here),
            people_with_caller=self.player.people_in(channel.id if channel else None),
            dj_role_name=roles[0] if roles else None,
        )

"""The people and places: guilds with their roles, channels, members and who sits in which voice channel."""

import secrets
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

from .snowflakes import snowflake

Payload = dict[str, Any]

JOINED_AT = "2024-01-01T00:00:00+00:00"


class Permission(IntFlag):
    """The bits that the tests need, by Discord's names."""

    ADMINISTRATOR = 1 << 3
    MANAGE_GUILD = 1 << 5
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    READ_MESSAGE_HISTORY = 1 << 16
    CONNECT = 1 << 20
    SPEAK = 1 << 21
    MOVE_MEMBERS = 1 << 24
    USE_APPLICATION_COMMANDS = 1 << 31


#: What everybody may in a new guild.
EVERYONE = (
    Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.READ_MESSAGE_HISTORY
    | Permission.CONNECT
    | Permission.SPEAK
    | Permission.USE_APPLICATION_COMMANDS
)

#: Every bit that Discord has given a meaning.
ALL_PERMISSIONS = (1 << 53) - 1


class ChannelType(IntEnum):
    TEXT = 0
    VOICE = 2


@dataclass
class User:
    name: str
    bot: bool = False
    id: int = field(default_factory=snowflake)

    def payload(self) -> Payload:
        return {
            "id": str(self.id),
            "username": self.name,
            "global_name": None,
            "discriminator": "0",
            "avatar": None,
            "bot": self.bot,
            "public_flags": 0,
        }


@dataclass
class Role:
    name: str
    permissions: int = 0
    position: int = 1
    id: int = field(default_factory=snowflake)

    def payload(self) -> Payload:
        return {
            "id": str(self.id),
            "name": self.name,
            "permissions": str(int(self.permissions)),
            "position": self.position,
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "managed": False,
            "mentionable": False,
            "flags": 0,
        }


@dataclass
class Channel:
    name: str
    type: ChannelType
    guild_id: int
    position: int = 0
    #: What @everyone may not do here (administrators may).
    denied: int = 0
    id: int = field(default_factory=snowflake)

    def payload(self) -> Payload:
        denial = {"id": str(self.guild_id), "type": 0, "allow": "0", "deny": str(int(self.denied))}
        common = {
            "id": str(self.id),
            "type": int(self.type),
            "guild_id": str(self.guild_id),
            "name": self.name,
            "position": self.position,
            "permission_overwrites": [denial] if self.denied else [],
            "parent_id": None,
            "nsfw": False,
            "flags": 0,
            "last_message_id": None,
            "rate_limit_per_user": 0,
        }
        if self.type == ChannelType.VOICE:
            return common | {"bitrate": 64_000, "user_limit": 0, "rtc_region": None}
        return common | {"topic": None}


@dataclass
class Member:
    user: User
    roles: list[Role] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.user.id

    def payload(self) -> Payload:
        return {
            "user": self.user.payload(),
            "nick": None,
            "avatar": None,
            "roles": [str(role.id) for role in self.roles],
            "joined_at": JOINED_AT,
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "pending": False,
            "flags": 0,
        }


@dataclass
class VoiceState:
    """Somebody in a voice channel, or (without a channel) somebody who has just left."""

    guild_id: int
    member: Member
    channel: Channel | None
    self_mute: bool = False
    self_deaf: bool = False
    session_id: str = field(default_factory=lambda: secrets.token_hex(16))

    def payload(self) -> Payload:
        return {
            "guild_id": str(self.guild_id),
            "channel_id": str(self.channel.id) if self.channel else None,
            "user_id": str(self.member.id),
            "member": self.member.payload(),
            "session_id": self.session_id,
            "deaf": False,
            "mute": False,
            "self_deaf": self.self_deaf,
            "self_mute": self.self_mute,
            "self_video": False,
            "suppress": False,
            "request_to_speak_timestamp": None,
        }


class Guild:
    """A server as people call it. Made with `FakeDiscord.add_guild`."""

    def __init__(self, name: str, guild_id: int, bot: User) -> None:
        self.name = name
        self.id = guild_id
        self.everyone = Role("@everyone", EVERYONE, 0, guild_id)
        self.roles = {guild_id: self.everyone}
        self.channels: dict[int, Channel] = {}
        self.members: dict[int, Member] = {}
        self.voice_states: dict[int, VoiceState] = {}
        self.owner = self.add_member("owner")
        self.bot = self._add(Member(bot))

    def add_role(self, name: str, permissions: int = 0) -> Role:
        role = Role(name, permissions, len(self.roles))
        self.roles[role.id] = role
        return role

    def add_channel(self, name: str, kind: ChannelType) -> Channel:
        channel = Channel(name, kind, self.id, len(self.channels))
        self.channels[channel.id] = channel
        return channel

    def add_member(self, name: str, *roles: str) -> Member:
        return self._add(Member(User(name), [self.role(role) for role in roles]))

    def _add(self, member: Member) -> Member:
        self.members[member.id] = member
        return member

    def role(self, name: str) -> Role:
        return next(role for role in self.roles.values() if role.name == name)

    def channel(self, name: str) -> Channel:
        return next(channel for channel in self.channels.values() if channel.name == name)

    def member(self, name: str) -> Member:
        return next(member for member in self.members.values() if member.user.name == name)

    @property
    def text(self) -> Channel:
        """The first text channel, where commands are given when a test names no other."""
        return next(channel for channel in self.channels.values() if channel.type == ChannelType.TEXT)

    def permissions(self, member: Member, channel: Channel | None = None) -> int:
        """What a member may, in one channel if one is given."""
        granted = int(self.everyone.permissions)
        for role in member.roles:
            granted |= int(role.permissions)
        if member is self.owner or granted & Permission.ADMINISTRATOR:
            return ALL_PERMISSIONS
        return granted & ~int(channel.denied) if channel else granted

    def payload(self) -> Payload:
        """The guild as an object, without what only GUILD_CREATE has."""
        return {
            "id": str(self.id),
            "name": self.name,
            "owner_id": str(self.owner.id),
            "roles": [role.payload() for role in self.roles.values()],
            "emojis": [],
            "stickers": [],
            "features": [],
            "afk_channel_id": None,
            "afk_timeout": 300,
            "default_message_notifications": 0,
            "description": None,
            "explicit_content_filter": 0,
            "icon": None,
            "mfa_level": 0,
            "nsfw_level": 0,
            "preferred_locale": "en-US",
            "premium_tier": 0,
            "system_channel_id": None,
            "system_channel_flags": 0,
            "verification_level": 0,
        }

    def create_payload(self) -> Payload:
        """What GUILD_CREATE has. Without the members' intent it names the bot and who is in a voice channel, only."""
        named = {self.bot.id, *self.voice_states}
        return self.payload() | {
            "joined_at": JOINED_AT,
            "large": False,
            "member_count": len(self.members),
            "members": [member.payload() for member in self.members.values() if member.id in named],
            "channels": [channel.payload() for channel in self.channels.values()],
            "voice_states": [state.payload() for state in self.voice_states.values()],
            "threads": [],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }

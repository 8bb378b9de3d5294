"""The bot's messages: in channels, and as answers to interactions."""

import datetime
from typing import TYPE_CHECKING

from aiohttp import web

from .api import RequestError, body_of, invalid, json_answer, not_found
from .guilds import Channel, Payload, Permission, User
from .message_rules import broken_message_rules, embed_texts, every_component
from .snowflakes import snowflake

if TYPE_CHECKING:
    from .server import FakeDiscord

SUPPRESS_EMBEDS = 1 << 2
EPHEMERAL = 1 << 6
LOADING = 1 << 7

#: What a client may set; the rest is Discord's.
_FIELDS = ("content", "embeds", "components", "attachments")


class Message:
    """One message as it is now. `versions` has how it was before every edit."""

    def __init__(self, channel: Channel, author: User, flags: int = 0) -> None:
        self.id = snowflake()
        self.channel = channel
        self.author = author
        self.flags = flags
        self.fields: Payload = {"content": "", "embeds": [], "components": [], "attachments": []}
        self.versions: list[Payload] = []
        self.deleted = False

    @property
    def content(self) -> str:
        return str(self.fields["content"])

    @property
    def embeds(self) -> list[Payload]:
        return list(self.fields["embeds"])

    @property
    def components(self) -> list[Payload]:
        """Buttons, selects, rows and texts, those inside others too."""
        return list(every_component(self.fields["components"]))

    @property
    def labels(self) -> list[str]:
        """What the buttons say that can be pressed."""
        parts = self.components
        return [part["label"] for part in parts if part["type"] == 2 and part.get("label") and not part.get("disabled")]

    @property
    def ephemeral(self) -> bool:
        return self.flags & EPHEMERAL != 0

    @property
    def without_previews(self) -> bool:
        """Whether links in it show nothing of where they lead to."""
        return self.flags & SUPPRESS_EMBEDS != 0

    @property
    def loading(self) -> bool:
        """Whether it only says "thinking…"."""
        return self.flags & LOADING != 0

    @property
    def text(self) -> str:
        """Everything that can be read in it, a line each."""
        texts = [self.content, *(text for embed in self.embeds for text in embed_texts(embed))]
        return "\n".join(filter(None, texts + [part.get("content", "") for part in self.components]))

    def component(self, name: str) -> Payload:
        """The one with this custom_id or label."""
        for part in self.components:
            if name in (part.get("custom_id"), part.get("label")):
                return part
        raise AssertionError(f"the message has no component {name!r}: {self.components}")

    def change(self, body: Payload) -> None:
        """Sets what the body names; raises RequestError if the message would break a rule."""
        changed = self.fields | {name: body[name] for name in _FIELDS if name in body}
        changed = {
            name: value if value is not None else "" if name == "content" else [] for name, value in changed.items()
        }
        flags = self.flags | body.get("flags", 0) & ~(EPHEMERAL | LOADING)
        if broken := broken_message_rules(changed | {"flags": flags}):
            raise invalid(broken)
        if any(self.fields.values()):
            self.versions.append(self.fields)
        self.fields = changed
        self.flags = flags & ~LOADING

    def payload(self) -> Payload:
        now = datetime.datetime.now(datetime.UTC).isoformat()
        attachments = [
            {"id": str(item["id"]), "filename": item.get("filename", "file"), "size": 0, "url": "", "proxy_url": ""}
            for item in self.fields["attachments"]
        ]
        return self.fields | {
            "id": str(self.id),
            "channel_id": str(self.channel.id),
            "type": 0,
            "author": self.author.payload(),
            "attachments": attachments,
            "flags": self.flags,
            "timestamp": now,
            "edited_timestamp": now if self.versions else None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "pinned": False,
        }

    def __str__(self) -> str:
        return f"message {self.text!r} with {self.labels}{', deleted' if self.deleted else ''}"


class Messages:
    """All of them, by ID."""

    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake
        self.all: dict[int, Message] = {}

    def add(self, message: Message) -> Message:
        self.all[message.id] = message
        self._fake.bell.ring()
        return message

    def of(self, channel: Channel) -> list[Message]:
        """What everybody in a channel sees now, the oldest first."""
        found = [message for message in self.all.values() if message.channel is channel]
        return [message for message in found if not (message.deleted or message.ephemeral)]

    def routes(self) -> list[web.RouteDef]:
        base = "/channels/{channel}/messages"
        return [
            web.post(base, self._post),
            web.post("/channels/{channel}/typing", self._typing),
            web.get(base + "/{message}", self._get),
            web.patch(base + "/{message}", self._patch),
            web.delete(base + "/{message}", self._delete),
        ]

    def _found(self, request: web.Request) -> Message:
        channel = self._fake.channel_of(request)
        message = self.all.get(int(request.match_info["message"]))
        if message is None or message.deleted or message.ephemeral or message.channel is not channel:
            raise not_found(10008, "Message")
        return message

    async def _post(self, request: web.Request) -> web.Response:
        channel = self._fake.channel_of(request)
        guild = self._fake.guilds[channel.guild_id]
        needed = Permission.VIEW_CHANNEL | Permission.SEND_MESSAGES
        if guild.permissions(guild.bot, channel) & needed != needed:
            raise RequestError(403, 50013, "Missing Permissions")
        message = Message(channel, self._fake.bot)
        message.change(await body_of(request))
        return json_answer(self.add(message).payload())

    async def _typing(self, request: web.Request) -> web.Response:
        self._fake.channel_of(request)
        return web.Response(status=204)

    async def _get(self, request: web.Request) -> web.Response:
        return json_answer(self._found(request).payload())

    async def _patch(self, request: web.Request) -> web.Response:
        message = self._found(request)
        message.change(await body_of(request))
        return json_answer(message.payload())

    async def _delete(self, request: web.Request) -> web.Response:
        self._found(request).deleted = True
        return web.Response(status=204)

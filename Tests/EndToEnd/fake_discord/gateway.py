"""The gateway, version 10: where the bot hears of everything, and says which voice channel it wants."""

import json
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from .gateway_connection import Connection, Session
from .guilds import Guild

if TYPE_CHECKING:
    from .server import FakeDiscord

HEARTBEAT_INTERVAL_MS = 41_250

#: The most that a client may send in one message.
MAX_PAYLOAD_BYTES = 4_096

INTENT_GUILDS = 1 << 0
INTENT_VOICE_STATES = 1 << 7

#: Members, presences and message content: a new application has none of them.
PRIVILEGED_INTENTS = 1 << 1 | 1 << 8 | 1 << 15


class Op(IntEnum):
    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    PRESENCE_UPDATE = 3
    VOICE_STATE_UPDATE = 4
    RESUME = 6
    RECONNECT = 7
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


class Gateway:
    """Serves one bot, which has one session at a time."""

    def __init__(self, fake: "FakeDiscord") -> None:
        self._fake = fake
        self.session: Session | None = None
        #: How often the bot began anew, and how often it went on where it was.
        self.identified = 0
        self.resumed = 0

    @property
    def connected(self) -> bool:
        return self.session is not None and self.session.connection is not None

    def dispatch(self, event: str, data: dict[str, Any], intent: int = 0) -> None:
        """Sends an event to the bot, if it asked for such."""
        if self.session is not None and self.session.intents & intent == intent:
            self.session.dispatch(event, data)

    def dispatch_guild(self, guild: Guild, *, joined: bool) -> None:
        """Tells of a guild: one that READY named, or one that the bot has just `joined`."""
        payload = guild.create_payload() | ({} if joined else {"unavailable": False})
        if self.session is not None and not self.session.intents & INTENT_VOICE_STATES:
            payload["voice_states"] = []
        self.dispatch("GUILD_CREATE", payload, INTENT_GUILDS)

    def drop(self, *, resume: bool) -> None:
        """Cuts the connection. Without `resume` the session is lost, too, and the bot must begin anew."""
        assert self.session is not None and self.session.connection is not None, "the bot is not connected"
        self.session.resumable = resume
        self.session.connection.abort()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=64 * 1024)
        await socket.prepare(request)
        query = request.query
        if (
            query.get("v") != "10"
            or query.get("encoding") != "json"
            or query.get("compress", "zlib-stream")
            not in (
                "",
                "zlib-stream",
            )
        ):
            self._fake.violations.record(f"gateway: connected with {dict(query)}, which the fake does not speak")
            await socket.close(code=4012)
            return socket
        connection = Connection(socket, request, compressed=query.get("compress") == "zlib-stream")
        connection.send({"op": Op.HELLO, "d": {"heartbeat_interval": HEARTBEAT_INTERVAL_MS}})
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    try:
                        self._receive(connection, message.data)
                    except (KeyError, TypeError, ValueError) as error:
                        self._refuse(connection, 4002, f"the fake cannot read {message.data!r}: {error!r}")
        finally:
            if self.session is not None and self.session.connection is connection:
                self.session.connection = None
                self._fake.bell.ring()
            await connection.stop()
        return socket

    def _refuse(self, connection: Connection, code: int, why: str) -> None:
        self._fake.violations.record(f"gateway: {why}")
        connection.close(code)

    def _receive(self, connection: Connection, text: str) -> None:
        if len(text.encode()) > MAX_PAYLOAD_BYTES:
            self._refuse(connection, 4002, f"sent {len(text.encode())} bytes in one message")
            return
        message = json.loads(text)
        op, data = message["op"], message["d"]
        known = self.session is not None and self.session.connection is connection
        if op == Op.HEARTBEAT:
            connection.send({"op": Op.HEARTBEAT_ACK, "d": None})
        elif op == Op.IDENTIFY:
            self._identify(connection, data, known)
        elif op == Op.RESUME:
            self._resume(connection, data)
        elif not known:
            self._refuse(connection, 4003, f"sent op {op} before it identified")
        elif op == Op.VOICE_STATE_UPDATE:
            self._fake.voice_server.request(data)
        elif op != Op.PRESENCE_UPDATE:
            self._refuse(connection, 4001, f"sent op {op}, which the fake does not know")
        self._fake.bell.ring()

    def _identify(self, connection: Connection, data: dict[str, Any], known: bool) -> None:
        if known:
            self._refuse(connection, 4005, "identified twice")
        elif data["token"] != self._fake.token:
            self._refuse(connection, 4004, "identified with a wrong token")
        elif data["intents"] & PRIVILEGED_INTENTS:
            self._refuse(connection, 4014, f"asked for privileged intents: {data['intents'] & PRIVILEGED_INTENTS:#x}")
        else:
            self._fake.voice_server.lose_all()
            self.identified += 1
            self.session = Session(data["intents"], connection)
            self._ready(self.session, data.get("shard", [0, 1]))

    def _ready(self, session: Session, shard: list[int]) -> None:
        fake = self._fake
        unavailable = [{"id": str(guild), "unavailable": True} for guild in fake.guilds]
        session.dispatch(
            "READY",
            {
                "v": 10,
                "user": fake.bot.payload(),
                "guilds": unavailable,
                "session_id": session.id,
                "resume_gateway_url": fake.gateway_url,
                "shard": shard,
                "application": {"id": str(fake.bot.id), "flags": 0},
                "private_channels": [],
                "relationships": [],
            },
        )
        for guild in fake.guilds.values():
            self.dispatch_guild(guild, joined=False)

    def _resume(self, connection: Connection, data: dict[str, Any]) -> None:
        session = self.session
        if session is None or data["session_id"] != session.id or not session.can_resume(data["seq"]):
            connection.send({"op": Op.INVALID_SESSION, "d": False})
        elif data["token"] != self._fake.token:
            self._refuse(connection, 4004, "resumed with a wrong token")
        elif not 0 <= data["seq"] <= session.sequence:
            self._refuse(connection, 4007, f"resumed after {data['seq']}, and {session.sequence} was the last")
        else:
            self.resumed += 1
            session.resume(connection, data["seq"])

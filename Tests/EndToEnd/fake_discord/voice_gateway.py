"""The voice gateway, version 8: the handshake for a key, who speaks, and what the bot says of its encryption."""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

from .bell import Bell
from .guilds import User
from .rtp import MODES
from .voice_connection import Speaking, VoiceConnection
from .voice_session import Op, VoiceSession

if TYPE_CHECKING:
    from .voice import VoiceServer

HEARTBEAT_INTERVAL_MS = 13_750

#: A close code of the tests': the connection is cut without a goodbye, and the client sees 1006.
ABORT = 1006


class _Refused(Exception):
    """What the client sent closes its connection. `broken` is the rule, if it is the client's fault."""

    def __init__(self, code: int, broken: str | None = None) -> None:
        self.code = code
        self.broken = broken


class VoiceGateway:
    def __init__(self, server: "VoiceServer", bell: Bell, bot: User) -> None:
        self._server = server
        self._bell = bell
        self._bot = bot
        self._closing: set[asyncio.Task[bool]] = set()

    def close(self, session: VoiceSession, code: int) -> None:
        """Closes a session's WebSocket; with `ABORT` it is cut."""
        socket, request = session.socket, session.request
        session.socket = None
        if socket is None or request is None:
            return
        if code == ABORT:
            if request.transport is not None:
                request.transport.abort()
            return
        task = asyncio.create_task(socket.close(code=code))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=64 * 1024)
        await socket.prepare(request)
        conversation = _Conversation(self._server, self._bot, socket, request)
        try:
            if request.query.get("v") != "8":
                raise _Refused(4012, f"connected with {dict(request.query)}, not version 8")
            await conversation.send({"op": Op.HELLO, "d": {"v": 8, "heartbeat_interval": HEARTBEAT_INTERVAL_MS}})
            async for message in socket:
                try:
                    if message.type == WSMsgType.BINARY:
                        conversation.receive_binary(message.data)
                    else:
                        await conversation.receive(json.loads(message.data))
                except (KeyError, TypeError, ValueError) as error:
                    raise _Refused(4002, f"the fake cannot read {message.data!r}: {error!r}") from error
                self._bell.ring()
        except _Refused as refused:
            if refused.broken:
                self._server.violations.record(f"voice gateway: {refused.broken}")
            await socket.close(code=refused.code)
        except ConnectionError:
            pass
        finally:
            if conversation.session is not None and conversation.session.socket is socket:
                conversation.session.socket = None
            conversation.end()
            self._bell.ring()
        return socket


class _Conversation:
    """What is said on one WebSocket."""

    def __init__(
        self, server: "VoiceServer", bot: User, socket: web.WebSocketResponse, request: web.BaseRequest
    ) -> None:
        self._server = server
        self._bot = bot
        self._socket = socket
        self._request = request
        self._connection: VoiceConnection | None = None
        self.session: VoiceSession | None = None
        self._forwarding: asyncio.Task[None] | None = None

    def end(self) -> None:
        if self._forwarding is not None:
            self._forwarding.cancel()

    async def send(self, message: dict[str, Any]) -> None:
        await self._socket.send_str(json.dumps(message))

    async def receive(self, message: dict[str, Any]) -> None:
        op, data = message["op"], message["d"]
        if op == Op.IDENTIFY:
            await self._identify(data)
        elif op == Op.RESUME:
            await self._resume(data)
        elif op == Op.HEARTBEAT:
            await self._heartbeat(data)
        elif self.session is None or self._connection is None:
            raise _Refused(4003, f"sent op {op} before it identified")
        elif op == Op.SELECT_PROTOCOL:
            self._select(data, self.session, self._connection)
        elif op == Op.SPEAKING:
            self._speaking(data, self.session, self._connection)
        elif op == Op.TRANSITION_READY:
            self.session.call.receive_ready(data["transition_id"])
        elif op == Op.MLS_INVALID_COMMIT_WELCOME:
            self.session.call.receive_invalid(data["transition_id"])
        else:
            raise _Refused(4001, f"sent op {op}, which the fake does not know")

    def receive_binary(self, message: bytes) -> None:
        if self.session is None or self.session.call.version == 0:
            raise _Refused(4002, "sent a binary message; end-to-end encryption was not agreed on")
        op, data = message[0], message[1:]
        if op == Op.MLS_KEY_PACKAGE:
            self.session.call.receive_key_package(data)
        elif op == Op.MLS_COMMIT_WELCOME:
            self.session.call.receive_commit(data)
        else:
            raise _Refused(4001, f"sent a binary op {op}, which the fake does not know")

    def _admitted(self, data: dict[str, Any]) -> tuple[VoiceConnection, VoiceSession]:
        """The session that the token is for. An old token is not the client's fault: news may be on their way."""
        connection = self._server.by_guild(int(data["server_id"]))
        session = connection.session if connection else None
        if connection is None or session is None:
            raise _Refused(4006)
        if (data["session_id"], data["token"]) != (session.session_id, session.token):
            raise _Refused(4006)
        return connection, session

    def _bind(self, connection: VoiceConnection, session: VoiceSession) -> None:
        self._connection, self.session = connection, session
        session.socket, session.request = self._socket, self._request

    def _forward(self, session: VoiceSession, acknowledged: int) -> None:
        """From now on, what is posted to the session comes here."""
        self._forwarding = asyncio.create_task(session.forward_all(self._socket, acknowledged))

    async def _identify(self, data: dict[str, Any]) -> None:
        if self.session is not None:
            raise _Refused(4005, "identified twice")
        if int(data["user_id"]) != self._bot.id:
            raise _Refused(4004, f"identified as user {data['user_id']}")
        if data.get("max_dave_protocol_version", 0) < 1:
            raise _Refused(4017, "cannot encrypt end to end, without which Discord lets nobody in since March 2026")
        connection, session = self._admitted(data)
        self._bind(connection, session)
        self._forward(session, session.sequence)
        self._server.bell.ring()
        await self._server.answers.wait()
        ready = {
            "ssrc": session.ssrc,
            "ip": "127.0.0.1",
            "port": self._server.socket.port,
            "modes": list(MODES),
            "experiments": [],
        }
        session.post(Op.READY, ready)

    async def _resume(self, data: dict[str, Any]) -> None:
        if self.session is not None:
            raise _Refused(4005, "resumed a connection that is identified")
        connection, session = self._admitted(data)
        if session.key is None:
            raise _Refused(4006)
        self._bind(connection, session)
        connection.resumes += 1
        acknowledged = await session.forward(self._socket, data["seq_ack"])
        await self.send({"op": Op.RESUMED, "d": None})
        self._forward(session, acknowledged)

    async def _heartbeat(self, data: dict[str, Any]) -> None:
        last = self.session.sequence if self.session else -1
        if not -1 <= data["seq_ack"] <= last:
            self._server.violations.record(f"voice gateway: acknowledged {data['seq_ack']}, and {last} was the last")
        await self.send({"op": Op.HEARTBEAT_ACK, "d": {"t": data["t"]}})

    def _select(self, data: dict[str, Any], session: VoiceSession, connection: VoiceConnection) -> None:
        wanted = data["data"]
        if data["protocol"] != "udp":
            raise _Refused(4012, f"selected protocol {data['protocol']}")
        if wanted["mode"] not in MODES:
            raise _Refused(4016, f"selected encryption {wanted['mode']}, which was not offered")
        if (wanted["address"], wanted["port"]) != session.discovered:
            self._server.violations.record(f"voice gateway: selected {wanted}, but discovered {session.discovered}")
        description = {
            "mode": wanted["mode"],
            "secret_key": list(session.new_key(wanted["mode"])),
            "audio_codec": "opus",
            "video_codec": "H264",
            "media_session_id": session.token,
            "dave_protocol_version": session.call.version,
        }
        connection.handshakes += 1
        session.post(Op.SESSION_DESCRIPTION, description)
        session.call.greet()

    def _speaking(self, data: dict[str, Any], session: VoiceSession, connection: VoiceConnection) -> None:
        if data["ssrc"] != session.ssrc:
            self._server.violations.record(f"voice gateway: speaks as SSRC {data['ssrc']}, but has {session.ssrc}")
        connection.speaking.append(Speaking(data["speaking"], data["ssrc"]))

"""End-to-end encryption of one call (DAVE, daveprotocol.com): the voice gateway's part, and the people who listen.

The people are real members of the MLS group, with davey as the bot has it. The gateway is its external sender: it
proposes whom to add and remove, picks a commit, and says when the bot is to send with the next epoch's keys.
"""

import math
import struct
import time
from collections import deque
from dataclasses import dataclass

from davey import DaveSession, MediaType, ProposalsOperationType

from .guilds import User
from .mls import ExternalSender, Malformed, check_key_package, read_commit, vector
from .violations import Violations
from .voice_session import Op, VoiceSession

#: The only version of DAVE; 0 is none.
VERSION = 1

#: What every encrypted frame ends with.
MAGIC = b"\xfa\xfa"

#: After an upgrade, how long people still hear what is not encrypted.
PASSTHROUGH_SECONDS = 10

#: What the bot sends before it is in the group may reach us so much later than its word that it is.
ON_ITS_WAY_SECONDS = 1

#: Packets that a person keeps, the newest.
HEARD_LIMIT = 20_000

#: The operation of all proposals here; the other one takes them back.
_APPEND = b"\0"


class Listener:
    """Somebody's client in the call."""

    def __init__(self, user: User, channel_id: int, external_sender: bytes) -> None:
        self.user = user
        self.session = DaveSession(VERSION, user.id, channel_id)
        self.session.set_external_sender(external_sender)
        self.key_package = self.session.get_serialized_key_package()
        #: The bot's Opus packets, as they are behind the encryption.
        self.heard: deque[bytes] = deque(maxlen=HEARD_LIMIT)

    def hear(self, bot: User, frame: bytes, *, passthrough: bool) -> bytes | None:
        """The packet, or None where a client of Discord's plays nothing."""
        try:
            opus = self.session.decrypt(bot.id, MediaType.audio, frame)
        except ValueError:
            if not passthrough or frame.endswith(MAGIC):
                return None
            opus = frame
        self.heard.append(opus)
        return opus


#: A listener, or the bot, whose session is its own.
Member = Listener | User


@dataclass(frozen=True)
class _Change:
    """One member who leaves the group or comes into it."""

    member: Member
    #: None for who leaves.
    key_package: bytes | None = None


@dataclass(frozen=True)
class _Round:
    """What is proposed in an epoch, and a commit of it with its Welcome."""

    change: _Change
    commit: bytes
    welcome: bytes


class Call:
    """The call in a voice channel, for as long as the bot's voice session. The first of the people hears all of it."""

    #: Set, the bot's commits come before the listeners'.
    bot_is_quickest = False

    def __init__(
        self,
        session: VoiceSession,
        channel_id: int,
        bot: User,
        people: list[User],
        violations: Violations,
        version: int,
    ) -> None:
        self._session = session
        self.channel_id = channel_id
        self._bot = bot
        self._violations = violations
        self.version = version
        #: Until when what is not encrypted is heard.
        self._passthrough_until = -math.inf if version else math.inf
        #: Set, the next commit reaches the bot damaged.
        self.damages_next = False
        #: Commits of the bot's that were taken, transitions that it was ready for, and what it could not read.
        self.bot_commits = self.executed = self.invalid = 0
        #: Packets that nobody heard: sent before the bot was in the group.
        self.unheard = 0
        self._sender = ExternalSender(b"fake voice gateway")
        self._last_transition = 0
        #: Those that the bot is not ready for yet.
        self._transitions: set[int] = set()
        #: The one with which the bot comes into the group.
        self._admission: int | None = None
        self._begin_group(people)

    @property
    def is_admitted(self) -> bool:
        """Whether the bot is in the group and knows it; always, where there is no encryption."""
        return self._is_admitted or self.version == 0

    def listener(self, user: User) -> Listener:
        return self._listeners[user.id]

    # What comes on the bot's connection

    def greet(self) -> None:
        """The bot has a key for the transport: it connects, or connects again."""
        self._is_admitted, self._admission = False, None
        self._session.post(Op.CLIENTS_CONNECT, {"user_ids": [str(user_id) for user_id in self._listeners]})
        if self._bot in self._leaves:
            self._want(_Change(self._bot))
        if self.version:
            self._session.post_binary(Op.MLS_EXTERNAL_SENDER, self._sender.package)

    def receive_key_package(self, key_package: bytes) -> None:
        check_key_package(key_package, self._bot.id)
        self._want(_Change(self._bot, key_package))

    def receive_commit(self, data: bytes) -> None:
        """The first commit of an epoch counts. One that is too late is only looked at."""
        commit = read_commit(data)
        if commit.group != self.channel_id or commit.references != self._offered.get(commit.epoch):
            raise Malformed(f"the commit in epoch {commit.epoch} names other proposals than those that were made")
        if self._round is not None and commit.epoch == self.epoch:
            self.bot_commits += 1
            self._settle(_Round(self._round.change, commit.message, commit.welcome), by_bot=True)
            self._go_on()

    def receive_ready(self, transition: int) -> None:
        if transition not in self._transitions:
            self._violations.record(f"voice gateway: ready for transition {transition}, which is not at hand")
            return
        self._transitions.discard(transition)
        if transition == self._admission:
            self._is_admitted, self._admitted_at = True, time.monotonic()
            self._passthrough_until = min(self._passthrough_until, time.monotonic() + PASSTHROUGH_SECONDS)
        self.executed += 1
        self._session.post(Op.EXECUTE_TRANSITION, {"transition_id": transition})

    def receive_invalid(self, transition: int) -> None:
        """The bot cannot read what it got: it is taken out of the group, and is let in with its next key package."""
        self.invalid += 1
        self._violations.record(f"voice gateway: no use for the commit or Welcome of transition {transition}")
        self._transitions.discard(transition)
        self._is_admitted, self._admission = False, None
        self._want(_Change(self._bot))

    def hear(self, frame: bytes) -> bytes | None:
        """The Opus packet in what the bot sent; None where nobody hears it."""
        passthrough = time.monotonic() < self._passthrough_until
        opus, *_ = [listener.hear(self._bot, frame, passthrough=passthrough) for listener in self._listeners.values()]
        if opus is None:
            self.unheard += 1
            if self._is_admitted and time.monotonic() - self._admitted_at > ON_ITS_WAY_SECONDS:
                self._violations.record("voice: a packet that is not encrypted end to end, or not for this epoch")
        return opus

    # What happens in the call

    def join(self, user: User) -> None:
        listener = self._listeners[user.id] = Listener(user, self.channel_id, self._sender.package)
        self._session.post(Op.CLIENTS_CONNECT, {"user_ids": [str(user.id)]})
        if self.version:
            self._want(_Change(listener, listener.key_package))

    def leave(self, user: User) -> None:
        listener = self._listeners.pop(user.id)
        self._session.post(Op.CLIENT_DISCONNECT, {"user_id": str(user.id)})
        if self.version:
            self._want(_Change(listener))

    def downgrade(self) -> None:
        """Somebody without DAVE comes: as soon as the bot is ready, it sends without."""
        self.version = 0
        self._passthrough_until = math.inf
        self._session.post(Op.PREPARE_TRANSITION, {"protocol_version": 0, "transition_id": self._next_transition()})

    def upgrade(self) -> None:
        """Nobody is left without DAVE: a new group is made, and until it is there all is heard as it comes."""
        self.version = VERSION
        self._begin_group([listener.user for listener in self._listeners.values()])
        self._session.post(Op.PREPARE_EPOCH, {"protocol_version": VERSION, "epoch": 1})

    # The group

    def _begin_group(self, users: list[User]) -> None:
        #: 0 while there is no group.
        self.epoch = 0
        self._leaves: list[Member | None] = []
        self._waiting: deque[_Change] = deque()
        #: What is proposed, where the bot's commit is waited for.
        self._round: _Round | None = None
        #: By epoch: what the bot was asked to commit.
        self._offered: dict[int, frozenset[bytes]] = {}
        self._is_admitted, self._admission = False, None
        self._admitted_at = -math.inf
        self._listeners = {user.id: Listener(user, self.channel_id, self._sender.package) for user in users}
        self._ear, *others = self._listeners.values()
        for listener in others if self.version else ():
            self._want(_Change(listener, listener.key_package))

    def _want(self, change: _Change) -> None:
        self._waiting.append(change)
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and self._round is None:
            self._propose(self._waiting.popleft())

    def _propose(self, change: _Change) -> None:
        """Asks all for a commit, and takes the ear's, or waits for the bot's."""
        if change.key_package is None:
            proposal = self._sender.remove(self.channel_id, self.epoch, self._leaves.index(change.member))
        else:
            proposal = self._sender.add(self.channel_id, self.epoch, change.key_package)
        made = {
            member: member.session.process_proposals(ProposalsOperationType.append, vector(proposal.message))
            for member in (self._leaves if self.epoch else [self._ear])
            if isinstance(member, Listener) and member is not change.member
        }[self._ear]
        assert made is not None
        proposed = _Round(change, made.commit, made.welcome or b"")
        if self.epoch == 0 and change.member is self._bot:
            # Everybody is alone in a group of their own: the bot is asked to let the ear into its.
            proposal = self._sender.add(self.channel_id, 0, self._ear.key_package)
            asks_bot = True
        else:
            asks_bot = self._bot in self._leaves and change.member is not self._bot
        if asks_bot:
            self._offered[self.epoch] = frozenset([proposal.reference])
            self._session.post_binary(Op.MLS_PROPOSALS, _APPEND + vector(proposal.message))
        if asks_bot and self.bot_is_quickest:
            self._round = proposed
        else:
            self._settle(proposed)

    def _settle(self, settled: _Round, *, by_bot: bool = False) -> None:
        """Gives the commit to all who are in the group, and the Welcome to who comes."""
        change, self._round = settled.change, None
        added = None if change.key_package is None else change.member
        if self.epoch == 0:
            self._leaves = [self._bot if by_bot else self._ear]
            added = self._ear if by_bot else change.member
        if added is None:
            self._leaves[self._leaves.index(change.member)] = None
        for member in self._leaves:
            if isinstance(member, Listener):
                member.session.process_commit(settled.commit)
            elif member is self._bot:
                transition = self._next_transition()
                commit = settled.commit[:-1] if self.damages_next else settled.commit
                self.damages_next = False
                self._session.post_binary(Op.MLS_ANNOUNCE_COMMIT_TRANSITION, struct.pack(">H", transition) + commit)
                if self.epoch == 0:
                    self._admission = transition
        if isinstance(added, Listener):
            added.session.process_welcome(settled.welcome)
        elif added is self._bot:
            self._admission = self._next_transition()
            self._session.post_binary(Op.MLS_WELCOME, struct.pack(">H", self._admission) + settled.welcome)
        if added is not None:
            # The leftmost leaf that is empty (RFC 9420, section 7.7).
            place = self._leaves.index(None) if None in self._leaves else len(self._leaves)
            self._leaves[place : place + 1] = [added]
        self.epoch += 1

    def _next_transition(self) -> int:
        self._last_transition += 1
        self._transitions.add(self._last_transition)
        return self._last_transition

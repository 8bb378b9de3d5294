"""Who may change what plays: pure rules, from who asks and who is where."""

from dataclasses import dataclass

from .text import count


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    #: The voice channel that they are in.
    channel_id: int | None
    manages_server: bool = False
    has_dj_role: bool = False


@dataclass(frozen=True)
class Room:
    """Where the bot is, and what the server asks for."""

    #: The bot's voice channel.
    channel_id: int | None
    #: People, not bots: in the bot's channel, and in the caller's.
    people_here: int
    people_with_caller: int
    #: The role that is asked for; None where the bot was told none, or the server has no role of that name.
    dj_role_name: str | None = None


def may_change(caller: Caller, room: Room) -> str | None:
    """None, or why the caller may not change what plays."""
    if caller.manages_server:
        return None
    if caller.channel_id is None:
        return "Join a voice channel first."
    if room.channel_id is not None and caller.channel_id != room.channel_id:
        return f"Come to <#{room.channel_id}> first: that is where I play."
    return _dj_error(caller, room)


def may_summon(caller: Caller, room: Room) -> str | None:
    """None, or why the caller may not have the bot play for them: a bot that nobody hears comes to them."""
    if caller.channel_id is None:
        return "Join a voice channel first." if room.channel_id is None or not caller.manages_server else None
    if room.channel_id in (None, caller.channel_id) or room.people_here == 0:
        return None if caller.manages_server else _dj_error(caller, room)
    if caller.manages_server:
        return None
    listeners = count(room.people_here, "listener")
    return f"I am playing for {listeners} in <#{room.channel_id}>. Come there, or wait until they have gone."


def _dj_error(caller: Caller, room: Room) -> str | None:
    if room.dj_role_name is None or caller.has_dj_role or room.people_with_caller <= 1:
        return None
    return f"That needs the role “{room.dj_role_name}”, unless you are alone with me."


def dj_role_matches(wanted: str, role_id: int, role_name: str) -> bool:
    """Whether a server's role is the one that `--dj-role` names, by its ID or its name in any case."""
    return wanted == str(role_id) or wanted.casefold() == role_name.casefold()

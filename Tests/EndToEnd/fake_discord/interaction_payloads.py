"""What INTERACTION_CREATE carries: who did what where, and a command's options as they were registered."""

import secrets
from collections.abc import Mapping
from typing import Any

from .command_rules import BOOLEAN, CHANNEL, INTEGER, MENTIONABLE, NUMBER, ROLE, STRING, USER
from .guilds import Channel, Guild, Member, Payload, Role
from .snowflakes import snowflake

COMMAND, COMPONENT, AUTOCOMPLETE = 2, 3, 4

#: What a person can give as an option's value.
OptionValue = str | int | float | bool | Member | Channel | Role

_PYTHON_TYPES: dict[int, tuple[type, ...]] = {
    STRING: (str,),
    INTEGER: (int,),
    BOOLEAN: (bool,),
    NUMBER: (int, float),
    USER: (Member,),
    CHANNEL: (Channel,),
    ROLE: (Role,),
    MENTIONABLE: (Member, Role),
}


def interaction_payload(
    kind: int, application_id: int, guild: Guild, member: Member, channel: Channel, data: Payload
) -> Payload:
    here = channel.payload()
    return {
        "id": str(snowflake()),
        "application_id": str(application_id),
        "type": kind,
        "token": secrets.token_hex(32),
        "version": 1,
        "guild_id": str(guild.id),
        "guild": {"id": str(guild.id), "features": [], "locale": "en-US"},
        "channel_id": str(channel.id),
        "channel": here | {"permissions": str(guild.permissions(member, channel))},
        "member": member.payload() | {"permissions": str(guild.permissions(member, channel))},
        "app_permissions": str(guild.permissions(guild.bot, channel)),
        "locale": "en-US",
        "guild_locale": "en-US",
        "entitlements": [],
        "entitlement_sku_ids": [],
        "authorizing_integration_owners": {"0": str(guild.id)},
        "context": 0,
        "attachment_size_limit": 10 << 20,
        "data": data,
    }


def option_payloads(
    command: Payload, values: Mapping[str, OptionValue], focused: str | None = None
) -> list[dict[str, Any]]:
    """The options as Discord's client sends them, after it has checked them as it does."""
    known = {option["name"]: option for option in command.get("options") or []}
    assert set(values) <= set(known), f"/{command['name']} has no option {set(values) - set(known)}, but {set(known)}"
    missing = [name for name, option in known.items() if option.get("required") and name not in values]
    # While a person is still typing, anything may be missing.
    assert focused is not None or not missing, f"/{command['name']} needs {missing}"
    return [_option(known[name], value, focused) for name, value in values.items()]


def _option(option: Payload, value: OptionValue, focused: str | None) -> dict[str, Any]:
    name, kind = option["name"], option["type"]
    if name == focused:
        assert option.get("autocomplete"), f"option {name} has no autocomplete"
        return {"name": name, "type": kind, "value": value, "focused": True}
    fits = isinstance(value, _PYTHON_TYPES[kind]) and (kind == BOOLEAN or not isinstance(value, bool))
    assert fits, f"option {name} is of type {kind}, and {value!r} is not"
    if choices := option.get("choices"):
        allowed = [choice["value"] for choice in choices]
        assert value in allowed, f"option {name} is one of {allowed}, not {value!r}"
    if isinstance(value, Member | Channel | Role):
        return {"name": name, "type": kind, "value": str(value.id)}
    size = len(value) if isinstance(value, str) else value
    least, most = ("min_length", "max_length") if isinstance(value, str) else ("min_value", "max_value")
    assert size >= option.get(least, size), f"option {name} is at least {option[least]}, not {size}"
    assert size <= option.get(most, size), f"option {name} is at most {option[most]}, not {size}"
    return {"name": name, "type": kind, "value": value}


def resolved_payload(guild: Guild, values: Mapping[str, OptionValue]) -> Payload:
    """What the IDs among the options stand for."""
    resolved: Payload = {}
    for value in values.values():
        if isinstance(value, Member):
            resolved.setdefault("users", {})[str(value.id)] = value.user.payload()
            member = value.payload() | {"permissions": str(guild.permissions(value))}
            del member["user"], member["deaf"], member["mute"]
            resolved.setdefault("members", {})[str(value.id)] = member
        elif isinstance(value, Channel):
            channel = value.payload() | {"permissions": str(guild.permissions(guild.bot, value))}
            resolved.setdefault("channels", {})[str(value.id)] = channel
        elif isinstance(value, Role):
            resolved.setdefault("roles", {})[str(value.id)] = value.payload()
    return resolved

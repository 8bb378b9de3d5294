"""Discord's rules for the commands that a bot registers."""

import re
from collections.abc import Iterator
from typing import Any

#: Lower case letters and digits of any script, and - _ '.
_NAME = re.compile(r"^[-_'\w]{1,32}$")

CHAT_INPUT = 1
SUBCOMMAND, SUBCOMMAND_GROUP = 1, 2
STRING, INTEGER, BOOLEAN, USER, CHANNEL, ROLE, MENTIONABLE, NUMBER = 3, 4, 5, 6, 7, 8, 9, 10

MAX_COMMANDS = 100
MAX_OPTIONS = 25
MAX_CHOICES = 25
MAX_CHOICE_NAME = 100
MAX_DESCRIPTION = 100
MAX_TOTAL_CHARACTERS = 8_000


def broken_command_rules(commands: list[dict[str, Any]]) -> list[str]:
    """Every rule that a list of commands breaks, in words."""
    broken = [f"{len(commands)} commands, and {MAX_COMMANDS} are allowed"] if len(commands) > MAX_COMMANDS else []
    names = [(command["name"], command.get("type", CHAT_INPUT)) for command in commands]
    broken += [f"two commands are called {name}" for name, kind in set(names) if names.count((name, kind)) > 1]
    for command in commands:
        if command.get("type", CHAT_INPUT) == CHAT_INPUT:
            broken += _broken(command, f"/{command['name']}", depth=0)
            if (count := _characters(command)) > MAX_TOTAL_CHARACTERS:
                broken.append(f"/{command['name']} has {count} characters in all, over {MAX_TOTAL_CHARACTERS}")
    return broken


def _broken(node: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    name, description, options = node["name"], node.get("description") or "", node.get("options") or []
    if not _NAME.match(name) or name != name.lower():
        yield f"{path}: the name {name!r} is not 1 to 32 lower case letters, digits, - or _"
    if not 1 <= len(description) <= MAX_DESCRIPTION:
        yield f"{path}: the description has {len(description)} characters, not 1 to {MAX_DESCRIPTION}"
    if len(options) > MAX_OPTIONS:
        yield f"{path}: {len(options)} options, and {MAX_OPTIONS} are allowed"
    names = [option["name"] for option in options]
    if len(set(names)) != len(names):
        yield f"{path}: two options have one name"
    required = [bool(option.get("required")) for option in options]
    if required != sorted(required, reverse=True):
        yield f"{path}: an option that is required comes after one that is not"
    yield from _broken_kinds([option["type"] for option in options], path, depth)
    for option in options:
        yield from _broken(option, f"{path} {option['name']}", depth + 1)
        yield from _broken_values(option, f"{path} {option['name']}")


def _broken_kinds(kinds: list[int], path: str, depth: int) -> Iterator[str]:
    groups = [kind for kind in kinds if kind in (SUBCOMMAND, SUBCOMMAND_GROUP)]
    if groups and len(groups) != len(kinds):
        yield f"{path}: has both subcommands and options"
    if (SUBCOMMAND_GROUP in kinds and depth > 0) or (SUBCOMMAND in kinds and depth > 1):
        yield f"{path}: subcommands are nested too deep"


def _broken_values(option: dict[str, Any], path: str) -> Iterator[str]:
    choices = option.get("choices") or []
    if choices and option.get("autocomplete"):
        yield f"{path}: has both choices and autocomplete"
    if (choices or option.get("autocomplete")) and option["type"] not in (STRING, INTEGER, NUMBER):
        yield f"{path}: only strings and numbers have choices"
    yield from broken_choice_rules(choices, path)


def broken_choice_rules(choices: list[dict[str, Any]], path: str) -> Iterator[str]:
    """Those of an option's choices, and those of the answer to an autocomplete."""
    if len(choices) > MAX_CHOICES:
        yield f"{path}: {len(choices)} choices, and {MAX_CHOICES} are allowed"
    for choice in choices:
        if not 1 <= len(choice["name"]) <= MAX_CHOICE_NAME:
            yield f"{path}: a choice's name has {len(choice['name'])} characters, not 1 to {MAX_CHOICE_NAME}"
        if isinstance(choice["value"], str) and not 1 <= len(choice["value"]) <= MAX_CHOICE_NAME:
            yield f"{path}: a choice's value has {len(choice['value'])} characters, not 1 to {MAX_CHOICE_NAME}"


def _characters(node: dict[str, Any]) -> int:
    own = len(node["name"]) + len(node.get("description") or "")
    own += sum(len(choice["name"]) + len(str(choice["value"])) for choice in node.get("choices") or [])
    return own + sum(_characters(option) for option in node.get("options") or [])

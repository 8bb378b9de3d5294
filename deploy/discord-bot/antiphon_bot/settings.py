"""What the bot is told, by options and by the environment."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

#: sysexits.h: the command line, or what stands for it, is wrong.
EXIT_USAGE = 64

_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True)
class Settings:
    discord_token: str
    #: Of one Router, or with commas between them of several.
    antiphon_url: str
    #: A token for the Router, or what reads one; None where it asks for none.
    antiphon_token: str | Callable[[], Awaitable[str]] | None
    dj_role: str | None
    leave_after_seconds: float
    announce: bool
    health_file: Path | None
    log_level: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"antiphon-bot: {message}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE)


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings; ends the process with status 64 and a sentence where they are wrong."""
    parser = _parser(environment)
    options = parser.parse_args(arguments)
    try:
        return Settings(
            discord_token=_discord_token(options.discord_token_file, environment),
            antiphon_url=_url(options.antiphon_url),
            antiphon_token=_antiphon_token(options.antiphon_token_file, environment),
            dj_role=options.dj_role or None,
            leave_after_seconds=_seconds(options.leave_after),
            announce=options.announce,
            health_file=Path(options.health_file) if options.health_file else None,
            log_level=_level(options.log_level),
        )
    except ValueError as problem:
        parser.error(str(problem))


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="antiphon-bot",
        description="A Discord bot that plays Antiphon sessions. The Discord token is given as DISCORD_TOKEN in the "
        "environment, or in a file; a token for the Router, where it asks for one, as ANTIPHON_TOKEN, or in a file.",
        allow_abbrev=False,
    )

    def add(option: str, variable: str, default: str, metavar: str, text: str) -> None:
        value = environment.get(variable) or default
        shown = f"; default {default}" if default else ""
        parser.add_argument(option, default=value, metavar=metavar, help=f"{text} ({variable}{shown})")

    add("--discord-token-file", "DISCORD_TOKEN_FILE", "", "FILE", "file with the bot's Discord token")
    add("--antiphon-url", "ANTIPHON_URL", "http://127.0.0.1:8080", "URL", "the Router's address, or several with commas")
    add(
        "--antiphon-token-file",
        "ANTIPHON_TOKEN_FILE",
        "",
        "FILE",
        "file with a token for the Router, read at each connect",
    )
    add("--dj-role", "ANTIPHON_BOT_DJ_ROLE", "", "NAME|ID", "role that may change what plays, where a server has it")
    add("--leave-after", "ANTIPHON_BOT_LEAVE_AFTER", "60", "SECONDS", "leave voice when alone for so long")
    add("--health-file", "ANTIPHON_BOT_HEALTH_FILE", "", "FILE", "file that says whether the bot is well")
    add("--log-level", "ANTIPHON_BOT_LOG_LEVEL", "info", "LEVEL", "|".join(_LEVELS))
    parser.add_argument(
        "--announce",
        action=argparse.BooleanOptionalAction,
        default=environment.get("ANTIPHON_BOT_ANNOUNCE", "").lower() in ("1", "true", "yes"),
        help="say in the text channel what begins to play (ANTIPHON_BOT_ANNOUNCE)",
    )
    return parser


def _discord_token(file: str, environment: Mapping[str, str]) -> str:
    if file:
        return _first_line(file, "--discord-token-file")
    token = environment.get("DISCORD_TOKEN", "").strip()
    if not token:
        raise ValueError(
            "there is no Discord token: set DISCORD_TOKEN, or give --discord-token-file FILE "
            "(discord.com/developers/applications → your application → Bot → Reset Token)"
        )
    return token


def _antiphon_token(file: str, environment: Mapping[str, str]) -> str | Callable[[], Awaitable[str]] | None:
    if not file:
        return environment.get("ANTIPHON_TOKEN", "").strip() or None
    _first_line(file, "--antiphon-token-file")

    async def read() -> str:
        return await asyncio.to_thread(_first_line, file, "--antiphon-token-file")

    return read


def _first_line(file: str, option: str) -> str:
    try:
        line = Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{option}: {file} cannot be read: {error}") from None
    if not line or "\n" in line:
        raise ValueError(f"{option}: {file} has to hold one line, the token")
    return line


def _url(text: str) -> str:
    addresses = [address.strip() for address in text.split(",")]
    for address in addresses:
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"--antiphon-url: '{address}' is no address of a Router; one is http://127.0.0.1:8080")
    return ",".join(address.rstrip("/") for address in addresses)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise ValueError(f"--leave-after: '{text}' is no number of seconds from 0 to 86400")
    return seconds


def _level(text: str) -> str:
    if text not in _LEVELS:
        raise ValueError(f"--log-level: '{text}' is none of {', '.join(_LEVELS)}")
    return text

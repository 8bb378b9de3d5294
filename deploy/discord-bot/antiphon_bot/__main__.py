"""`python -m antiphon_bot`, or `antiphon-bot`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

import aiohttp
import discord

from . import commands
from .bot import AntiphonBot
from .settings import EXIT_USAGE, Settings, parse

_log = logging.getLogger("antiphon_bot")

#: Discord is asked again after so many seconds where it cannot be reached at the start, twice as many each time.
FIRST_RETRY_SECONDS = 1
LAST_RETRY_SECONDS = 60

#: What hangs against all expectation when the bot is told to stop is left after this time.
LAST_RESORT_SECONDS = 4.5


def main() -> None:
    settings = parse(sys.argv[1:])
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    raise SystemExit(asyncio.run(_run(settings)))


async def _run(settings: Settings) -> int:
    """The exit status, when it is over."""
    bot = AntiphonBot(settings)
    commands.add_all(bot)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    running = asyncio.create_task(_log_in_and_stay(bot, settings.discord_token))
    waiting = asyncio.create_task(stopping.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    loop.call_later(LAST_RESORT_SECONDS, os._exit, 1)
    await bot.stop()
    waiting.cancel()
    running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        return 0
    except discord.LoginFailure:
        _log.critical("Discord does not accept the token: take a new one from the developer portal (Bot → Reset Token)")
        return EXIT_USAGE
    except discord.PrivilegedIntentsRequired as error:
        _log.critical("%s", error)
        return EXIT_USAGE
    return 0


async def _log_in_and_stay(bot: AntiphonBot, token: str) -> None:
    """discord.py comes back by itself from whatever breaks later, and from nothing that breaks the log-in."""
    delay = FIRST_RETRY_SECONDS
    while True:
        try:
            await bot.login(token)
            break
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError, discord.DiscordServerError) as error:
            _log.warning("Discord cannot be reached: %s; trying again in %d s", error, delay)
        # The next attempt makes others of both.
        await bot.http.close()
        bot.http.connector = discord.utils.MISSING
        await asyncio.sleep(delay)
        delay = min(2 * delay, LAST_RETRY_SECONDS)
    await bot.connect()


if __name__ == "__main__":
    main()

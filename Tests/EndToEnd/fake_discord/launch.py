"""Runs a bot's own main against the fake Discord: `python -m fake_discord.launch MODULE [ARGUMENT…]`.

The bot has no switch for this: its discord.py is told other addresses (FAKE_DISCORD_API, FAKE_DISCORD_GATEWAY) before
its main begins. The voice servers' certificate is trusted through SSL_CERT_FILE. `FakeDiscord.environment` has all.
"""

import os
import runpy
import sys

import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route


def point_at(api_url: str, gateway_url: str) -> None:
    """Tells this process' discord.py where Discord is. All else it hears from there."""
    Route.BASE = api_url
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)


def main() -> None:
    point_at(os.environ["FAKE_DISCORD_API"], os.environ["FAKE_DISCORD_GATEWAY"])
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

"""Whether the bot is well: it says so in a file, and `python -m antiphon_bot.health [FILE]` reads it.

For containers: 0 where the bot has a connection to Discord, 1 and a sentence where not. The file is written every ten
seconds by the bot's event loop, so one that hangs is found out too.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

WRITE_SECONDS = 10.0
#: A file that is older is of a bot that hangs, or is gone.
STALE_SECONDS = 35.0

READY = "ready"


def write(path: Path, state: str) -> None:
    """Says how the bot is, in a word; at once or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(state + "\n")
    part.replace(path)


def problem(path: Path) -> str | None:
    """None, or why the bot is not well."""
    try:
        state = path.read_text().strip()
        age = time.time() - path.stat().st_mtime
    except OSError as error:
        return f"the bot has not said that it is well: {error}"
    if age > STALE_SECONDS:
        return f"the bot has said nothing for {age:.0f} s"
    return None if state == READY else f"the bot is {state}"


def main() -> int:
    file = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ANTIPHON_BOT_HEALTH_FILE")
    if not file:
        print("antiphon_bot.health: name the file that --health-file names", file=sys.stderr)
        return 64
    if (found := problem(Path(file))) is not None:
        print(found, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

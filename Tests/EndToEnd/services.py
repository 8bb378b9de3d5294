"""What deploy/install installs, and running what tells of it."""

import os
import subprocess

from processes import ROOT

UNITS = ROOT / "deploy" / "systemd"
SERVICES = ("antiphon-engine.service", "antiphon-router.service")
BOT = "antiphon-bot.service"


def run(*command: object, status: int = 0, **environment: str) -> str:
    """What it printed, errors included."""
    words = [str(word) for word in command]
    # What runs the tests may ignore signals, and a shell cannot trap what was ignored when it began.
    done = subprocess.run(
        ["env", "--default-signal=HUP,INT,TERM", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    assert done.returncode == status, f"{' '.join(words)}: status {done.returncode}\n{done.stdout}"
    return done.stdout

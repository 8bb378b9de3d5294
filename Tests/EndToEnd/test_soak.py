"""Every packet reaches its session's listeners, once and in order, however they join, leave and stop reading."""

import subprocess
import sys
from pathlib import Path

#: The benchmark's own form has 10,000,000.
PACKETS = 400_000

ROOT = Path(__file__).resolve().parent.parent.parent


def test_no_packet_is_misrouted_doubled_or_lost():
    soak = subprocess.run(
        [sys.executable, ROOT / "Tests/Benchmarks/run", "soak", "--packets", str(PACKETS)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert soak.returncode == 0, soak.stdout + soak.stderr

"""The engine's decoder processes, as the machine and as the engine itself tell of them."""

import contextlib
import os
from pathlib import Path

from client import request
from processes import Antiphon

#: Of a suspect that plays on, which has 50 packets made by then on a busy machine too.
ACQUITTED_SECONDS = 10


def decoders(engine: int) -> list[int]:
    """The processes of the engine with this number."""
    found = []
    for task in Path(f"/proc/{engine}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                if b"\0decoder\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
    return found


def shared_decoders(engine: int) -> list[int]:
    """Those that many productions share: not those of a single suspect, which is acquitted within a second or two."""
    return [pid for pid in decoders(engine) if _is_shared(pid) or _age_seconds(pid) > ACQUITTED_SECONDS]


def _is_shared(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"\0decoder\0")


def _age_seconds(pid: int) -> float:
    begun = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - begun / os.sysconf("SC_CLK_TCK")


async def decoder_figures(antiphon: Antiphon) -> dict:
    return (await request("GET", f"{antiphon.engine.url}/health")).body["decoders"]

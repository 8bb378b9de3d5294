"""The engine's decoder processes, as the machine and as the engine itself tell of them."""

import contextlib
from pathlib import Path

from client import request
from processes import Antiphon


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
    """Those that many productions share: not those of a single suspect."""
    return [pid for pid in decoders(engine) if b"\0apart\0" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def decoder_figures(antiphon: Antiphon) -> dict:
    return (await request("GET", f"{antiphon.engine.url}/health")).body["decoders"]

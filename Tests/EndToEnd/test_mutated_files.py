"""A thousand damaged files of every container and codec: each ends in sound or in a clear error, and nothing dies."""

import asyncio
import contextlib
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from client import connect_to_engine
from decoders import decoder_figures, decoders
from figures import Footprint
from hearing import until
from mutations import SECONDS, make_seeds, mutate
from outcome import outcome
from processes import Antiphon

COUNT = 1_000
AT_ONCE = 48
#: What is damaged may say that it is longer: so much of it is heard.
ENOUGH_PACKETS = round(SECONDS * 50)
#: What the engine may keep in memory after so many files, MiB.
GROWTH = 60


@pytest.fixture
def antiphon(tmp_path, media):
    with Antiphon(tmp_path, media.root, engine_options=("--cache-bytes", "0")) as running:
        yield running


@pytest.fixture
def seeds(media):
    return make_seeds(media)


async def test_each_ends_in_sound_or_in_a_clear_error(antiphon, seeds, media, new_session, bystander):
    for kind, seed in seeds.items():
        media.write(kind, seed)
    folder = media.root / "mutated"
    folder.mkdir()
    # What fails is kept where pytest does not tidy up.
    kept = Path(tempfile.gettempdir()) / "antiphon-mutated"
    engine_pid, router_pid = antiphon.engine.pid, antiphon.router.pid
    kinds = sorted(seeds)
    outcomes, wrong, memory = Counter(), [], []
    numbers = iter(range(COUNT))

    async def play(engine, url: str) -> str:
        # A busy machine says that it is, which is no word on the file: it is asked again.
        while (came := await outcome(engine, new_session(), url, ENOUGH_PACKETS, ("overloaded",))) == "overloaded":
            await asyncio.sleep(0.2)
        return came

    async def play_some(engine) -> None:
        for number in numbers:
            kind = kinds[number % len(kinds)]
            path = folder / f"{number}-{kind}"
            path.write_bytes(mutate(seeds, kind, number))
            try:
                outcomes[await play(engine, f"media:mutated/{path.name}")] += 1
            except AssertionError as error:
                kept.mkdir(exist_ok=True)
                shutil.copy(path, kept)
                wrong.append(f"mutation {number} of {kind}, kept as {kept / path.name}: {str(error)[:500]}")
            path.unlink()
            memory.append(Footprint(engine_pid).mebibytes())

    async with connect_to_engine(antiphon.socket) as engine:
        whole = await asyncio.gather(*(play(engine, f"media:{kind}") for kind in kinds))
    assert set(whole) == {"sound"}, f"undamaged: {dict(zip(kinds, whole, strict=True))}"
    before = await decoder_figures(antiphon)
    started = Footprint(engine_pid).mebibytes()
    async with connect_to_engine(antiphon.socket) as engine:
        await asyncio.gather(*(play_some(engine) for _ in range(AT_ONCE)))

    after = await decoder_figures(antiphon)
    print(f"\n{len(kinds)} kinds; {dict(outcomes.most_common())}; deaths of decoders {after['deaths']}")
    print(f"engine before {started:.0f} MiB, most {max(memory):.0f} MiB, after {memory[-1]:.0f} MiB")
    assert not wrong, f"{len(wrong)} of {COUNT}\n" + "\n".join(wrong[:20])
    assert sum(outcomes.values()) == COUNT and outcomes["sound"] > COUNT // 3, outcomes
    assert (antiphon.engine.pid, antiphon.router.pid) == (engine_pid, router_pid)
    assert antiphon.engine.is_running and antiphon.router.is_running
    assert max(memory) - started < GROWTH, f"the engine grew from {started:.0f} MiB to {max(memory):.0f} MiB"
    with contextlib.suppress(AssertionError):
        await until(lambda: len(decoders(engine_pid)) == before["processes"], "as many decoders as before", 10)
    assert (await decoder_figures(antiphon))["processes"] == before["processes"], after

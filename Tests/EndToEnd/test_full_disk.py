"""A full disk: what could not be saved is refused with 507 and not done, and the music plays on."""

import asyncio
import subprocess

import pytest

from client import listen, request
from media import OGG_OPUS, tone_clip
from processes import Antiphon

LONG = tone_clip(440, 120, OGG_OPUS)
SHORT = [tone_clip(frequency, 3, OGG_OPUS) for frequency in (300, 400)]
STATE_BYTES = 4 << 20


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, which a file fills up."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={STATE_BYTES}", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def antiphon(tmp_path, media, small_disk):
    media.path(LONG)
    media.make(*SHORT)
    # The last --state is the one that counts.
    with Antiphon(tmp_path / "run", media.root, router_options=("--state", str(small_disk / "state"))) as running:
        yield running


def fill(disk) -> None:
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (65_536, 4_096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


async def ask(antiphon, method: str, path: str, body: dict | None = None, key: str | None = None):
    headers = {"Idempotency-Key": key} if key else None
    return await request(method, f"{antiphon.router.url}/api/v1/sessions/{path}", body, headers=headers)


async def show(antiphon, session: str) -> dict:
    answer = await ask(antiphon, "GET", session)
    assert answer.status == 200, answer
    return answer.body


async def refused(antiphon, disk, session: str) -> None:
    """Adds until the disk, which may have a page left, takes no more."""
    for number in range(200):
        before = (await show(antiphon, session))["queue"]
        answer = await ask(antiphon, "POST", f"{session}/queue", {"url": LONG.url, "title": f"f{number}" + "x" * 190})
        if answer.status == 507:
            assert answer.code == "storage_failed" and answer.body["hint"], answer
            assert (await show(antiphon, session))["queue"] == before
            return
        assert answer.status == 200, answer
        fill(disk)
    raise AssertionError("the disk is never full")


async def test_what_cannot_be_saved_is_not_done(antiphon, small_disk):
    tracks = [{"url": clip.url, "title": clip.url} for clip in (LONG, *SHORT)]
    assert (await ask(antiphon, "POST", "a/queue", {"tracks": tracks})).status == 200
    async with listen(antiphon.router.url, "a") as listener:
        await listener.wait_packets(50)
        since = listener.mark()
        fill(small_disk)
        await refused(antiphon, small_disk, "a")
        before = await show(antiphon, "a")
        for method, path, body in (
            ("POST", "a/skip", None),
            ("POST", "a/queue", {"url": LONG.url}),
            ("POST", "a/queue/shuffle", None),
            ("POST", "a/queue/loop", {"mode": "queue"}),
            ("POST", "a/quality", {"bitrate_kbps": 64}),
            ("DELETE", "a/queue", None),
            ("POST", "a/play", {"url": SHORT[0].url}),
            ("POST", "a/prepare", {"url": SHORT[0].url}),
            ("POST", "new/volume", {"level": 0.5}),
            ("POST", "new/queue", {"url": LONG.url}),
        ):
            answer = await ask(antiphon, method, path, body)
            assert answer.status == 507 and answer.code == "storage_failed", (path, answer)
        # Many at once, and with keys: each is refused, none is done.
        answers = await asyncio.gather(
            *(ask(antiphon, "POST", "a/queue", {"url": LONG.url}, key=f"k{number % 5}") for number in range(20))
        )
        assert {answer.status for answer in answers} == {507}, answers
        after = await show(antiphon, "a")
        assert after["queue"] == before["queue"] and after["state"] == "streaming", (before, after)
        # The engine's own part goes on.
        assert (await ask(antiphon, "POST", "a/pause")).status == 200
        assert (await ask(antiphon, "POST", "a/resume")).status == 200
        ready = await request("GET", f"{antiphon.router.url}/ready")
        assert "cannot be written" in str(ready.body), ready
        await listener.wait_packets(50)
        assert not listener.events("ended", since), listener
        # A disk that has room again works again.
        (small_disk / "ballast").unlink()
        async with asyncio.timeout(10):
            while (answer := await ask(antiphon, "POST", "a/queue", {"url": LONG.url}, key="k1")).status == 507:
                await asyncio.sleep(0.1)
        assert answer.status == 200, answer
        queue = (await show(antiphon, "a"))["queue"]
        assert queue["total"] == before["queue"]["total"] + 1
    antiphon.router.kill()
    antiphon.router.start()
    again = (await show(antiphon, "a"))["queue"]
    assert again == queue


async def test_what_the_engine_does_is_followed(antiphon, small_disk):
    async with listen(antiphon.router.url, "b") as listener:
        answer = await ask(
            antiphon, "POST", "b/queue", {"tracks": [{"url": clip.url, "title": clip.url} for clip in (*SHORT, LONG)]}
        )
        assert answer.status == 200, answer
        await listener.wait_packets(10)
        fill(small_disk)
        await refused(antiphon, small_disk, "full")
        async with asyncio.timeout(15):
            while (await show(antiphon, "b"))["queue"].get("current", {}).get("title") != LONG.url:
                # Commands that fail beside it change nothing of that.
                assert (await ask(antiphon, "POST", "b/queue", {"url": SHORT[0].url})).status == 507
                await asyncio.sleep(0.05)
        await listener.wait_packets(50, listener.mark())
        queue = (await show(antiphon, "b"))["queue"]
        assert queue["total"] == 0 and queue["history_total"] == 2, queue
    # Nothing that was answered is lost by a death on the full disk.
    antiphon.router.kill()
    antiphon.router.start()
    (small_disk / "ballast").unlink()
    async with listen(antiphon.router.url, "b") as listener:
        await listener.wait_packets(50)
        assert (await show(antiphon, "b"))["queue"]["current"]["title"] == LONG.url

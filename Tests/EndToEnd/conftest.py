"""What the tests share. Every module that plays something has an engine and a router of its own."""

import gc
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from access import LISTED, ROUTES, Route
from analysis import assert_unbroken_tone
from client import listen
from fake_discord import FakeDiscord
from inbox import assert_unbroken
from media import OGG_OPUS, MediaFolder, tone_clip
from opus import FRAME, decode
from processes import BINARIES, ROOT, Antiphon, Server
from services import run
from signals import AMPLITUDE
from tab import chromium
from tokens import Mint

#: deploy/test puts there what would start a service if it were installed.
TOOLS = ROOT / ".build" / "tools" / "usr"
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin", f"{TOOLS}/sbin", f"{TOOLS}/bin"])

#: Plays on while other things go wrong.
REFERENCE = tone_clip(523, 120, OGG_OPUS)


#: The files that take longest, longest first: a worker takes a file at a time, and a long one begun last is waited for.
#: Those that take a core (browsers, bombs) by turns with those that wait.
LONGEST = [
    f"test_{name}.py"
    for name in ("bombs", "dash", "discord_bot_recovery", "hls", "radio", "polling", "yt_dlp_proxy", "sign_in", "https")
    + ("repository_page", "stations", "limits")
    + ("units", "state_shares", "stream_player", "extraction", "web_transfers", "accessibility", "cache", "browser")
    + ("stream", "client_node", "playground_keys", "stream_budgets", "openapi", "web_sources", "playground_reconnect")
    + ("client_reconnect", "install", "scores", "prepare", "mutated_files", "two_sessions", "playground_queue")
    + (
        "metadata",
        "seek",
        "nats_engines",
        "poisoned",
        "containment_http",
        "discord_bot_commands",
        "hostile_files",
        "discord_bot",
        "fake_discord",
        "queues",
    )
]


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


def pytest_collection_finish():
    # All that is loaded by now stays to the end: each collection of garbage would go through it again.
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory):
    """What a process keeps where nothing else is said is the tests' own, and not what the machine's Antiphon left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def media(tmp_path_factory) -> Iterator[MediaFolder]:
    """The media root of a module's engines; what a test needs is made when it asks for it. Pages list all of it."""
    folder = tmp_path_factory.mktemp("files")
    yield MediaFolder(folder / "media")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def antiphon(tmp_path_factory, media):
    """An AudioEngine and a Router, shared by the tests of one module."""
    with Antiphon(tmp_path_factory.mktemp("antiphon"), media.root) as running:
        yield running


@pytest.fixture(scope="module")
def songs(media) -> None:
    """The files that the Discord bot's tests play."""
    # Here, since discord.py takes a while to load, and most tests are not about it.
    from discord_bot import SONGS

    media.make(*SONGS)


@pytest.fixture
async def stage(antiphon, tmp_path):
    """A guild with the Discord bot; anna is in the voice channel Music."""
    from discord_bot import stages

    async with stages(antiphon, tmp_path, "one") as (only,):
        only.move("anna", "Music")
        yield only


@pytest.fixture
def mortal(tmp_path, media):
    """One of the test's own, to be killed."""
    with Antiphon(tmp_path, media.root) as running:
        yield running


@pytest.fixture(scope="session")
def mint(tmp_path_factory) -> Mint:
    return Mint(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, media, mint):
    """A Router that asks for tokens and logs all that it has to say, none of which may be a token or a ticket."""
    options = (*mint.options, "--allow-origin", LISTED, "--log-level", "trace")
    with Antiphon(tmp_path_factory.mktemp("guarded"), media.root, router_options=options) as running:
        yield running
        log = running.router.log.read_text(errors="replace")
        assert mint.made and "listening on" in log
        found = [secret for secret in [*mint.made, mint.secret] if secret in log]
        assert not found, f"the log has {found}"
        assert "ticket=" not in log and "Bearer" not in log, "the log has what clients sent"


@pytest.fixture
def declared(guarded) -> dict[str, str]:
    """What the running Router's routes ask for, by its own word; HEAD is as GET."""
    found = re.findall(r"route (\w+) (\S+): (.*)", guarded.router.log.read_text(errors="replace"))
    return {f"{method} {path}": access for method, path, access in found if method != "HEAD"}


@pytest.fixture
def routes(declared) -> list[Route]:
    """Those of the table that the Router has."""
    return [route for route in ROUTES if route.name in declared]


@pytest.fixture(scope="session")
def light(tmp_path_factory) -> Path:
    """Both binaries and their resources without symbols: a quarter of the bytes to copy."""
    folder = tmp_path_factory.mktemp("binaries")
    for name in ("AudioEngine", "Router"):
        run("strip", "-o", folder / name, BINARIES / name)
    for resources in BINARIES.glob("*.resources"):
        shutil.copytree(resources, folder / resources.name)
    return folder


_numbers = itertools.count(1)


@pytest.fixture
def new_session():
    """Names of sessions that no other test uses."""
    return lambda: f"s{next(_numbers)}"


@pytest.fixture
async def bystander(antiphon, media):
    """A session that plays on through the whole test, and must not notice anything of it."""
    media.path(REFERENCE)
    async with listen(antiphon.router.url, f"bystander{next(_numbers)}") as listener:
        await listener.play(REFERENCE.url)
        await listener.wait_packets(10)
        begun = listener.mark()
        yield listener
        # What goes wrong in the last moment is heard a moment later.
        await listener.wait_packets(10, since=listener.mark())
        packets = listener.packets()
        assert_unbroken(packets, "the bystander")
        for kind in ("dropped", "buffering", "ended", "error"):
            assert not listener.events(kind, begun), f"the bystander got {listener.events(kind, begun)}"
        sound = decode(packet.audio for packet in packets)[:, 0]
        assert_unbroken_tone(sound[5 * FRAME :], 523, AMPLITUDE, "the bystander")
        await listener.command("stop")


@pytest.fixture(scope="session")
async def _chromium():
    async with chromium("--autoplay-policy=no-user-gesture-required") as browser:
        yield browser


@pytest.fixture
async def browser(_chromium):
    """Chromium, in which sound may begin before anybody has touched the page. A start takes a second of a core: all
    tests of a worker have the same one, each with contexts of its own."""
    yield _chromium
    for context in _chromium.contexts:
        await context.close()


@pytest.fixture
async def fake():
    """A Discord of the test's own, whose rules no bot may break."""
    async with FakeDiscord() as discord:
        yield discord


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows the ends of the running processes' logs with a failed test."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in Server.all:
            report.sections.append((f"the end of {server.log}", server.tail()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """No process outlives the tests, whatever happened in them."""
    for server in list(Server.all):
        server.kill()

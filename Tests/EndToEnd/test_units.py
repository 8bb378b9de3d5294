"""deploy/systemd and deploy/install: what is put where, and that a real systemd runs it as it is meant."""

import os
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from machine import SOURCE, Machine, NoMachineError
from processes import BINARIES, ROOT

UNITS = ROOT / "deploy" / "systemd"
SERVICES = ("antiphon-engine.service", "antiphon-router.service")
BOT = "antiphon-bot.service"
#: systemd's measure of what a unit may do: 0 is nothing, 10 everything.
EXPOSURE_LIMIT = 2.0

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze (Debian's systemd)"
)


def run(*command: object, status: int = 0, **environment: str) -> str:
    """What it printed, errors included."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == status, f"{' '.join(words)}: status {done.returncode}\n{done.stdout}"
    return done.stdout


# MARK: The units by themselves


@pytest.fixture(scope="module")
def light(tmp_path_factory) -> Path:
    """The binaries without their symbols: a quarter of the bytes to copy."""
    folder = tmp_path_factory.mktemp("binaries")
    for name in ("AudioEngine", "Router"):
        run("strip", "-o", folder / name, BINARIES / name)
    for resources in BINARIES.glob("*.resources"):
        shutil.copytree(resources, folder / resources.name)
    return folder


@needs_analyze
@pytest.mark.parametrize("unit", [*SERVICES, BOT])
def test_a_unit_may_do_little(unit):
    table = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNITS / unit)
    exposure = float(re.search(rf"exposure level for {unit}: ([\d.]+)", table)[1])
    assert exposure < EXPOSURE_LIMIT, table


@needs_analyze
def test_the_measure_sees_what_is_taken_away(tmp_path):
    weak = tmp_path / "weak.service"
    kept = [
        line
        for line in (UNITS / SERVICES[0]).read_text().splitlines()
        if not line.startswith(("SystemCall", "Restrict", "CapabilityBoundingSet"))
    ]
    weak.write_text("\n".join(kept))
    table = run("systemd-analyze", "security", "--offline=true", "--no-pager", weak)
    assert float(re.search(r"exposure level for weak.service: ([\d.]+)", table)[1]) > EXPOSURE_LIMIT, table


# MARK: Into a folder


@pytest.fixture(scope="module")
def first(tmp_path_factory, light):
    """A folder with version 1.0, to be copied."""
    root = tmp_path_factory.mktemp("first") / "image"
    install(root, light, "1.0")
    return root


@pytest.fixture
def folder(tmp_path, first):
    """A folder with version 1.0."""
    return shutil.copytree(first, tmp_path / "image", symlinks=True)


def install(root: Path, binaries: Path, version: str, status: int = 0) -> str:
    arguments = ("--root", root, "--binaries", binaries, "--version", version)
    return run(ROOT / "deploy/install", *arguments, status=status)


def version(root: Path, link: str = "current") -> str:
    return os.readlink(root / "opt/antiphon" / link).removeprefix("versions/")


def versions(root: Path) -> set[str]:
    return {path.name for path in (root / "opt/antiphon/versions").iterdir()}


def write_state(path: Path, *migrations: str, note: str = "") -> None:
    """A state as a Router of these migrations leaves it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)")
        database.executemany("INSERT INTO grdb_migrations VALUES (?)", [(name,) for name in migrations])
        database.execute("CREATE TABLE note (text TEXT)")
        database.execute("INSERT INTO note VALUES (?)", (note,))


def read_note(path: Path) -> str:
    with sqlite3.connect(path) as database:
        return database.execute("SELECT text FROM note").fetchone()[0]


def test_everything_is_at_its_place(folder):
    current = folder / "opt/antiphon/current"
    assert run(current / "AudioEngine", "--version") == run(current / "Router", "--version")
    for resource in (
        "antiphon_AudioEngineCore.resources/extraction_worker.py",
        "antiphon_RouterCore.resources/Resources/index.html",
        "antiphon_RouterCore.resources/openapi.yaml",
    ):
        assert (current / resource).is_file(), resource
    for unit in (*SERVICES, BOT, "antiphon.target"):
        assert (folder / "usr/local/lib/systemd/system" / unit).read_text() == (UNITS / unit).read_text()
    assert "g antiphon" in (folder / "usr/local/lib/sysusers.d/antiphon.conf").read_text()
    assert sorted(os.listdir(folder / "srv/antiphon/media/samples"))
    assert (folder / "etc/antiphon/router.env").stat().st_mode & 0o777 == 0o600
    # For the services' users.
    for path in (current / "AudioEngine", current / "Router", folder / "opt/antiphon/versions/1.0"):
        assert path.stat().st_mode & 0o777 == 0o755, path


@needs_analyze
def test_systemd_understands_the_installed_units(folder):
    # With systemd's own units, on which these depend.
    shutil.copytree("/lib/systemd/system", folder / "lib/systemd/system", symlinks=True)
    # The bot is only installed where it is asked for.
    bot = folder / "opt/antiphon/bot/bin/antiphon-bot"
    bot.parent.mkdir(parents=True)
    bot.touch(0o755)
    # What it does not know it says, and goes on.
    said = run("systemd-analyze", "verify", f"--root={folder}", "--man=no", *SERVICES, BOT, "antiphon.target")
    assert "antiphon" not in said, said


def test_the_same_version_again_changes_nothing(folder, light):
    (folder / "etc/antiphon/router.env").write_text("ANTIPHON_ROUTER_LISTEN=127.0.0.1:8081\n")
    install(folder, light, "1.0")
    assert versions(folder) == {"1.0"} and not (folder / "opt/antiphon/previous").is_symlink()
    assert "8081" in (folder / "etc/antiphon/router.env").read_text(), "the operator's settings were written over"


def test_other_files_of_the_same_name_are_another_version(folder, light, tmp_path):
    changed = tmp_path / "changed"
    shutil.copytree(light, changed)
    (changed / "antiphon_RouterCore.resources/openapi.yaml").write_text("changed")
    install(folder, changed, "1.0")
    assert version(folder) == "1.0+2" and version(folder, "previous") == "1.0"


def test_three_versions_are_kept(folder, light):
    for name in ("1.1", "1.2", "1.3"):
        install(folder, light, name)
    assert versions(folder) == {"1.1", "1.2", "1.3"}
    assert version(folder) == "1.3" and version(folder, "previous") == "1.2"


def test_rolling_back_loses_nothing_where_the_state_has_kept_its_form(folder, light):
    state = folder / "var/lib/private/antiphon/router.sqlite"
    write_state(state, "queues", note="of 1.0")
    install(folder, light, "1.1")
    assert read_note(folder / "var/backups/antiphon/1.0/router.sqlite") == "of 1.0"
    assert (folder / "var/backups/antiphon").stat().st_mode & 0o777 == 0o700
    write_state(state, "queues", note="of 1.1")
    said = run(ROOT / "deploy/install", "--root", folder, "--roll-back")
    assert "nothing is lost" in said and read_note(state) == "of 1.1"
    assert version(folder) == "1.0" and version(folder, "previous") == "1.1"


def test_rolling_back_restores_the_state_that_the_older_version_can_read(folder, light):
    state = folder / "var/lib/private/antiphon/router.sqlite"
    write_state(state, "queues", note="of 1.0")
    install(folder, light, "1.1")
    write_state(state, "queues", "later", note="of 1.1")
    state.with_name("router.sqlite-wal").touch()
    said = run(ROOT / "deploy/install", "--root", folder, "--roll-back")
    assert "1.0 cannot read the state that 1.1 leaves" in said and "is lost" in said, said
    assert read_note(state) == "of 1.0" and not state.with_name("router.sqlite-wal").exists()
    assert read_note(folder / "var/backups/antiphon/1.1/router.sqlite") == "of 1.1"
    # And forth: what the older one has left is for the newer one to bring up to date.
    write_state(state, "queues", note="of 1.0, later")
    run(ROOT / "deploy/install", "--root", folder, "--roll-back")
    assert version(folder) == "1.1" and read_note(state) == "of 1.0, later"


def test_without_a_copy_of_the_state_nothing_is_changed(folder, light):
    write_state(folder / "var/lib/private/antiphon/router.sqlite", "queues")
    (folder / "var/backups").write_text("no folder")
    assert "could not be copied" in install(folder, light, "1.1", status=1)
    assert version(folder) == "1.0"


def test_what_cannot_work_is_refused_before_anything_changes(folder, light, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(light, broken)
    (broken / "Router").write_text("#!/bin/sh\nexit 3\n")
    said = install(folder, broken, "1.1", status=1)
    assert "Router does not run on this machine" in said and version(folder) == "1.0", said
    (broken / "Router").unlink()
    assert "has no Router" in install(folder, broken, "1.1", status=1)
    assert versions(folder) <= {"1.0", ".staged"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--nonsense"], "--nonsense"),
        (["--version"], "--version needs a value"),
        (["--version", "../../etc"], "--version is up to 64 letters"),
        (["--binaries", "/nonexistent"], "--binaries: there is no folder"),
        (["--roll-back"], "no version of before"),
        (["--purge"], "--purge goes with --uninstall"),
        (["--roll-back", "--uninstall"], "do not go together"),
        (["--ready-seconds", "soon"], "--ready-seconds is a number"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, arguments, named):
    said = run(ROOT / "deploy/install", "--root", tmp_path, *arguments, status=1)
    assert named in said and len(said.splitlines()) <= 3, said


def test_uninstalling_leaves_what_is_the_operators(folder):
    write_state(folder / "var/lib/private/antiphon/router.sqlite", "queues")
    (folder / "srv/antiphon/media/song.opus").touch()
    run(ROOT / "deploy/install", "--root", folder, "--uninstall")
    assert not (folder / "opt/antiphon").exists() and not list((folder / "usr/local").rglob("*antiphon*.*"))
    assert (folder / "var/lib/private/antiphon/router.sqlite").exists() and (folder / "etc/antiphon").exists()
    run(ROOT / "deploy/install", "--root", folder, "--uninstall", "--purge")
    assert os.listdir(folder / "srv/antiphon/media") == ["song.opus"]
    assert not (folder / "var/lib/private/antiphon").exists() and not (folder / "etc/antiphon").exists()


# MARK: With a real systemd


@pytest.fixture(scope="module")
def machine(light):
    """A machine of the tests' own, on which nothing is installed yet."""
    machine = Machine(binaries=light)
    try:
        try:
            machine.start()
        except NoMachineError as error:
            pytest.skip(f"no machine of its own can be had here: {error}")
        yield machine
    finally:
        machine.close()


INSTALL = f"{SOURCE}/deploy/install"
ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def installed(machine):
    done = machine.run(INSTALL, "--binaries", "/binaries", "--version", "1.0", "--no-yt-dlp", check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{machine.journal()}"
    assert f"version 1.0 runs: {ADDRESS}/" in done.stderr, done.stderr
    return machine


def main_pid(machine: Machine, unit: str) -> str:
    return machine.show(unit, "MainPID")


def wait_until(machine: Machine, condition: str) -> None:
    """Until the shell says that it is so."""
    done = machine.run("timeout", "60", "sh", "-c", f"until {condition}; do sleep 0.1; done", check=False)
    assert done.returncode == 0, f"not so after 60 s: {condition}\n{machine.journal()}"


READY = f"curl -fsS -o /dev/null {ADDRESS}/ready 2> /dev/null"


def assert_it_plays(machine: Machine) -> None:
    """From the engine's file to a player of the Router's."""
    play = ("-fsS", "-X", "POST", "-d", '{"url": "media:samples/Versicle.wav", "loop": true}')
    machine.run("curl", *play, f"{ADDRESS}/api/v1/sessions/hall/play")
    command = f"curl -sN --max-time 3 {ADDRESS}/listen/hall.ogg | ffmpeg -v error -i - -af volumedetect -f null -"
    heard = machine.run("sh", "-c", f"{command.replace('-v error', '-nostats')} 2>&1").stdout
    loudest = float(re.search(r"max_volume: (-?[\d.]+) dB", heard)[1])
    assert loudest > -30, heard


def test_installed_it_plays(installed):
    """Through the socket that two users share, and through both sandboxes."""
    assert_it_plays(installed)
    for unit in SERVICES:
        assert installed.show(unit, "ActiveState") == "active" and installed.show(unit, "NRestarts") == "0"
        assert installed.show(unit, "StatusText").startswith("listening on http://127.0.0.1:")


def test_each_runs_with_nothing_to_lose(installed):
    users = set()
    for unit in SERVICES:
        status = installed.run("cat", f"/proc/{main_pid(installed, unit)}/status").stdout
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0, fields
        assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2", fields
        users.add(fields["Uid"].split()[0])
        inside = ("nsenter", f"--target={main_pid(installed, unit)}", "--mount")
        for path in ("/opt/antiphon", "/etc", "/usr", "/srv/antiphon/media"):
            assert installed.run(*inside, "touch", f"{path}/x", check=False).returncode != 0, f"{unit} can write {path}"
        assert installed.run(*inside, "ls", "/root", check=False).stdout == ""
    # One each, and neither is root: the one that reads strangers' files cannot reach the other's secrets.
    assert len(users) == 2 and "0" not in users
    assert (
        installed.run("stat", "-c", "%U %G %a", "/run/antiphon/engine.sock").stdout == "antiphon-engine antiphon 660\n"
    )
    assert (
        installed.run("stat", "-c", "%U %a", "/var/lib/private/antiphon/router.sqlite").stdout
        == "antiphon-router 600\n"
    )


@pytest.mark.parametrize("unit", SERVICES)
def test_one_that_hangs_is_started_again(installed, unit):
    overrides = f"/etc/systemd/system/{unit}.d"
    # A process that is stopped does not even abort: it is killed a second later.
    fast = "[Service]\\nWatchdogSec=5s\\nTimeoutAbortSec=1s\\n"
    installed.run("sh", "-c", f"mkdir -p {overrides} && printf '{fast}' > {overrides}/fast.conf")
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "restart", unit)
    wait_until(installed, READY)
    installed.run("kill", "-STOP", main_pid(installed, unit))
    wait_until(installed, f'[ "$(systemctl show -P NRestarts {unit})" -ge 1 ] && {READY}')
    assert "Watchdog timeout" in installed.journal()
    other = next(name for name in SERVICES if name != unit)
    assert installed.show(other, "ActiveState") == "active"
    installed.run("sh", "-c", f"rm -r {overrides} && systemctl daemon-reload && systemctl restart {unit}")
    wait_until(installed, READY)


@pytest.mark.parametrize("unit", SERVICES)
def test_one_that_is_killed_is_started_again(installed, unit):
    before = main_pid(installed, unit)
    installed.run("kill", "-KILL", before)
    wait_until(installed, f'[ "$(systemctl show -P MainPID {unit})" -gt {before} ] && {READY}')


def test_a_setting_that_cannot_be_used_is_not_tried_for_ever(installed):
    installed.run("sh", "-c", "echo ANTIPHON_ENGINE_MAX_WORKERS=many >> /etc/antiphon/engine.env")
    installed.run("systemctl", "restart", SERVICES[0], check=False)
    wait_until(installed, f"systemctl is-failed --quiet {SERVICES[0]}")
    assert installed.show(SERVICES[0], "NRestarts") == "0"
    assert "ANTIPHON_ENGINE_MAX_WORKERS in the environment" in installed.journal()
    installed.run("sh", "-c", "sed -i '$d' /etc/antiphon/engine.env && systemctl start antiphon-engine")
    wait_until(installed, READY)


def test_secrets_come_as_credentials(installed):
    secret, settings = "/etc/credstore/antiphon.token-secret", "/etc/antiphon/router.env"
    installed.run("mkdir", "-p", "-m", "0700", "/etc/credstore")
    installed.run("/opt/antiphon/current/Router", "token", "secret", secret)
    # As the comment in the file tells.
    installed.run("sed", "-i", "s/^#\\(ANTIPHON_ROUTER_TOKEN_SECRET_FILE=\\)/\\1/", settings)
    installed.run("systemctl", "restart", SERVICES[1])
    wait_until(installed, READY)
    sessions = f"{ADDRESS}/api/v1/sessions"
    ask = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", sessions)
    assert installed.run(*ask).stdout == "401"
    token = installed.run(
        "/opt/antiphon/current/Router", "token", "create", "--session", "*", "--scope", "listen", "--expires", "1h",
        "--token-secret-file", secret,
    ).stdout.strip()  # fmt: skip
    assert installed.run(*ask, "-H", f"Authorization: Bearer {token}").stdout == "200"
    installed.run("rm", secret)
    installed.run("sed", "-i", "s/^\\(ANTIPHON_ROUTER_TOKEN_SECRET_FILE=\\)/#\\1/", settings)
    installed.run("systemctl", "restart", SERVICES[1])
    wait_until(installed, READY)


def test_the_tuning_of_the_guide_works(installed):
    """What it proposes to take away is not needed."""
    blocks = re.findall(r"^```ini\n(.*?)^```$", (ROOT / "docs/services.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(SERVICES)
    for unit, block in zip(SERVICES, blocks, strict=True):
        (installed.root / f"etc/systemd/system/{unit}.d").mkdir(parents=True)
        (installed.root / f"etc/systemd/system/{unit}.d/guide.conf").write_text(block)
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "restart", "antiphon.target")
    wait_until(installed, READY)
    assert installed.show(SERVICES[0], "MemoryMax") == str(2 << 30)
    assert installed.show(SERVICES[0], "MemoryDenyWriteExecute") == "yes"
    assert_it_plays(installed)
    for unit in SERVICES:
        shutil.rmtree(installed.root / f"etc/systemd/system/{unit}.d")
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "restart", "antiphon.target")
    wait_until(installed, READY)


def test_both_are_upgraded_and_rolled_back_together(installed):
    add = ("-fsS", "-o", "/dev/null", "-X", "POST", "-d", '{"url": "media:samples/Response.wav"}')
    for _ in range(2):
        installed.run("curl", *add, f"{ADDRESS}/api/v1/sessions/kept/queue")
    done = installed.run(INSTALL, "--binaries", "/binaries", "--version", "1.1", "--no-yt-dlp")
    assert f"version 1.1 runs (before: 1.0): {ADDRESS}/" in done.stderr, done.stderr
    for unit in SERVICES:
        program = installed.run("readlink", f"/proc/{main_pid(installed, unit)}/exe").stdout
        assert program.startswith("/opt/antiphon/versions/1.1/"), program
    queue = installed.run("curl", "-fsS", f"{ADDRESS}/api/v1/sessions/kept/queue").stdout
    assert "Response.wav" in queue, "the queue did not outlive the upgrade"

    # As a Router of later would leave it: this one refuses it.
    future = "INSERT INTO grdb_migrations VALUES ('of-the-future')"
    change = (
        f"import sqlite3; d = sqlite3.connect('/var/lib/antiphon/router.sqlite'); d.execute({future!r}); d.commit()"
    )
    installed.run("systemctl", "stop", SERVICES[1])
    installed.run("python3", "-c", change)
    done = installed.run(INSTALL, "--roll-back")
    assert "1.0 cannot read the state that 1.1 leaves" in done.stderr and f"{ADDRESS}/" in done.stderr, done.stderr
    for unit in SERVICES:
        program = installed.run("readlink", f"/proc/{main_pid(installed, unit)}/exe").stdout
        assert program.startswith("/opt/antiphon/versions/1.0/"), program
    queue = installed.run("curl", "-fsS", f"{ADDRESS}/api/v1/sessions/kept/queue").stdout
    assert "Response.wav" in queue, "the state of before is not back"


def test_an_upgrade_that_fails_goes_back_by_itself(installed):
    """It runs where it is asked for its version, and not where it is to serve."""
    installed.run("sh", "-c", "cp -r /binaries /tmp/bad && rm /tmp/bad/Router")
    router = (
        '#!/bin/sh\n[ "$1" = --version ] && exec /binaries/Router --version\necho "this one is broken" >&2\nexit 3\n'
    )
    installed.run("sh", "-c", f"printf %s '{router}' > /tmp/bad/Router && chmod 755 /tmp/bad/Router")
    before = installed.run("readlink", "/opt/antiphon/previous", check=False).stdout
    done = installed.run(
        INSTALL, "--binaries", "/tmp/bad", "--version", "2.0", "--no-yt-dlp", "--ready-seconds", "10", check=False
    )
    assert done.returncode == 1, done.stderr
    for words in ("2.0 is not ready", "this one is broken", "going back to 1.0", "version 1.0 is current"):
        assert words in done.stderr, done.stderr
    wait_until(installed, READY)
    assert installed.run("readlink", "/opt/antiphon/current").stdout == "versions/1.0\n"
    assert installed.run("readlink", "/opt/antiphon/previous", check=False).stdout == before


def test_uninstalled_nothing_runs(installed):
    installed.run(INSTALL, "--uninstall", "--purge")
    for unit in SERVICES:
        assert installed.show(unit, "LoadState") == "not-found"
    assert installed.run("ls", "/opt/antiphon", "/var/lib/antiphon", "/etc/antiphon", check=False).stdout == ""

"""deploy/install into a folder: what is put where, upgraded, taken back and removed."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from processes import ROOT
from services import BOT, SERVICES, UNITS, run


@pytest.fixture(scope="module")
def first(tmp_path_factory, light):
    """A folder with version 1.0, to be copied."""
    root = tmp_path_factory.mktemp("first") / "image"
    install(root, light, "1.0")
    return root


@pytest.fixture
def folder(tmp_path, first):
    """A folder with version 1.0."""
    return shutil.copytree(first, tmp_path / "image", symlinks=True, copy_function=copy)


def copy(source: str, target: str) -> None:
    """The binaries, of which nothing is ever written, are the same files: they are most of the bytes."""
    if os.path.basename(source) in ("AudioEngine", "Router"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


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
    assert (folder / "etc/credstore").stat().st_mode & 0o777 == 0o700
    # For the services' users.
    for path in (current / "AudioEngine", current / "Router", folder / "opt/antiphon/versions/1.0"):
        assert path.stat().st_mode & 0o777 == 0o755, path


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze (Debian's systemd)")
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


def shimmed(folder: Path, program: str, script: str) -> str:
    """A PATH on which `program` is this script, with `$real` for the one that it replaces."""
    shim = folder / "shim" / program
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/bash\nreal={shutil.which(program)}\n{script}\n")
    shim.chmod(0o755)
    return f"{shim.parent}:{os.environ['PATH']}"


@pytest.fixture
def upgraded(folder, light):
    """Version 1.1, whose state 1.0 cannot read."""
    state = folder / "var/lib/private/antiphon/router.sqlite"
    write_state(state, "queues", note="of 1.0")
    install(folder, light, "1.1")
    write_state(state, "queues", "later", note="of 1.1")
    return folder


def assert_nothing_has_changed(upgraded: Path) -> None:
    assert version(upgraded) == "1.1" and version(upgraded, "previous") == "1.0"
    state = upgraded / "var/lib/private/antiphon/router.sqlite"
    assert read_note(state) == "of 1.1" and os.listdir(state.parent) == [state.name]
    assert read_note(upgraded / "var/backups/antiphon/1.0/router.sqlite") == "of 1.0"
    for unit in (*SERVICES, BOT):
        assert (upgraded / "usr/local/lib/systemd/system" / unit).read_text() == (UNITS / unit).read_text()


@pytest.mark.parametrize(
    ("program", "script"),
    [
        ("ln", "exit 1"),
        # The units', which come after the state: once, so that the way back is free.
        ("install", '[[ -e $0.done ]] && exec $real "$@"; touch $0.done; exit 1'),
        # The state's: half of it is there when the disk is full.
        (
            "cp",
            '[[ $* == *private/antiphon/.new/ ]] || exec $real "$@"; echo half > "${@: -1}/router.sqlite"; exit 1',
        ),
    ],
)
def test_a_full_disk_does_not_pass_for_a_roll_back(upgraded, tmp_path, program, script):
    path = shimmed(tmp_path, program, script)
    said = run(ROOT / "deploy/install", "--root", upgraded, "--roll-back", status=1, PATH=path)
    assert "1.0 and its state could not be put back" in said and "version 1.0 is current" not in said, said
    assert_nothing_has_changed(upgraded)


def test_a_damaged_state_does_not_replace_the_good_copy(upgraded):
    backup = upgraded / "var/backups/antiphon"
    run(ROOT / "deploy/install", "--root", upgraded, "--roll-back")
    state = upgraded / "var/lib/private/antiphon/router.sqlite"
    state.write_bytes(state.read_bytes()[:5000])
    said = run(ROOT / "deploy/install", "--root", upgraded, "--roll-back", status=1)
    assert "router.sqlite is damaged" in said and "1.0 goes on" in said, said
    assert read_note(backup / "1.0/router.sqlite") == "of 1.0" and version(upgraded) == "1.0"


def test_a_copy_that_cannot_be_read_is_not_put_back(upgraded):
    (upgraded / "var/backups/antiphon/1.0/router.sqlite").write_text("torn" * 1000)
    said = run(ROOT / "deploy/install", "--root", upgraded, "--roll-back", status=1)
    assert "1.0/router.sqlite: file is not a database" in said, said
    assert version(upgraded) == "1.1" and read_note(upgraded / "var/lib/private/antiphon/router.sqlite") == "of 1.1"


@pytest.mark.parametrize(("name", "status"), [("HUP", 129), ("INT", 130), ("TERM", 143)])
@pytest.mark.parametrize("action", ["--roll-back", "--upgrade"])
def test_interrupted_it_goes_back(upgraded, light, tmp_path, name, status, action):
    """In the middle: the other version is current, its units are not there yet."""
    path = shimmed(tmp_path, "install", f'[[ -e $0.done ]] || kill -{name} $PPID; touch $0.done; exec $real "$@"')
    arguments = ("--binaries", light, "--version", "1.2") if action == "--upgrade" else ()
    said = run(ROOT / "deploy/install", "--root", upgraded, action, *arguments, status=status, PATH=path)
    assert "going back to 1.1" in said and "version 1.1 is current" in said, said
    assert_nothing_has_changed(upgraded)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's umask is set aside")
def test_yt_dlp_of_root_is_for_the_engine_to_read(tmp_path):
    """Whatever the umask; without the download."""
    path = shimmed(
        tmp_path,
        "python3",
        'mkdir -p "$3/bin" && cp /bin/true "$3/bin/pip" && cp /bin/true "$3/bin/yt-dlp" && chmod +rx "$3"/bin/*',
    )
    script = f"umask 077 && exec {ROOT}/deploy/upgrade-yt-dlp"
    run("bash", "-c", script, PATH=path, XDG_DATA_HOME=str(tmp_path / "data"))
    for folder in ("antiphon", "antiphon/yt-dlp", "antiphon/yt-dlp/bin"):
        assert (tmp_path / "data" / folder).stat().st_mode & 0o777 == 0o755, folder


def test_uninstalling_leaves_what_is_the_operators(folder):
    write_state(folder / "var/lib/private/antiphon/router.sqlite", "queues")
    (folder / "srv/antiphon/media/song.opus").touch()
    run(ROOT / "deploy/install", "--root", folder, "--uninstall")
    assert not (folder / "opt/antiphon").exists() and not list((folder / "usr/local").rglob("*antiphon*.*"))
    assert (folder / "var/lib/private/antiphon/router.sqlite").exists() and (folder / "etc/antiphon").exists()
    run(ROOT / "deploy/install", "--root", folder, "--uninstall", "--purge")
    assert os.listdir(folder / "srv/antiphon/media") == ["song.opus"]
    assert not (folder / "var/lib/private/antiphon").exists() and not (folder / "etc/antiphon").exists()


# MARK: What the Router's user could have put into its folder


@pytest.fixture
def hostile(upgraded, tmp_path):
    """The state's folder, and a file of root's outside of it: 1.0 cannot read the state, so that it is replaced."""
    outside = tmp_path / "outside"
    outside.write_text("root's")
    outside.chmod(0o600)
    state = upgraded / "var/lib/private/antiphon"
    if os.geteuid() == 0:
        for path in (state, *state.iterdir()):
            os.chown(path, SERVICE, SERVICE)
    return state, outside


#: The number of a user that is nobody's, as systemd gives one.
SERVICE = 61_234


def roll_back(state: Path, status: int = 0) -> str:
    return run(ROOT / "deploy/install", "--root", state.parents[3], "--roll-back", status=status)


def assert_untouched(outside: Path) -> None:
    status = outside.stat()
    assert (outside.read_text(), status.st_uid, status.st_mode & 0o777) == ("root's", os.geteuid(), 0o600)


@pytest.mark.parametrize("name", ["router.sqlite", "router.sqlite-wal", "router.sqlite-shm"])
@pytest.mark.parametrize("kind", ["link", "dangling", "hard", "pipe", "folder"])
def test_what_is_planted_in_the_state_is_named_and_never_followed(hostile, name, kind):
    state, outside = hostile
    planted = state / name
    planted.unlink(missing_ok=True)
    match kind:
        case "link":
            planted.symlink_to(outside)
        case "dangling":
            planted.symlink_to(state.parents[3] / "new")
        case "hard":
            planted.hardlink_to(outside)
        case "pipe":
            os.mkfifo(planted)
        case "folder":
            planted.mkdir()
    said = roll_back(state, status=1)
    assert f"{name} is no plain file with one name" in said and "1.1 goes on" in said, said
    assert version(state.parents[3]) == "1.1"
    assert_untouched(outside)
    assert not (state.parents[3] / "new").exists()
    # And once it is away, as the words tell, it works.
    shutil.rmtree(planted) if kind == "folder" else planted.unlink()
    write_state(state / "router.sqlite", "queues", "later", note="of 1.1")
    assert "1.0 cannot read the state" in roll_back(state)
    assert read_note(state / "router.sqlite") == "of 1.0"


def test_what_else_is_planted_beside_the_state_is_left_alone(hostile):
    """Names that a pattern would have found, and the place where the copy is put together."""
    state, outside = hostile
    for name in ("router.sqlite-x", "router.sqlite.link"):
        (state / name).symlink_to(outside)
    (state / "router.sqlite-journal").symlink_to(outside)
    (state / ".new").symlink_to(outside.parent)
    said = roll_back(state)
    assert "1.0 cannot read the state" in said and read_note(state / "router.sqlite") == "of 1.0", said
    assert_untouched(outside)
    assert (state / "router.sqlite-x").is_symlink() and not (state / "router.sqlite-journal").is_symlink()
    backups = state.parents[3] / "var/backups/antiphon"
    assert {path.name for path in backups.rglob("*") if not path.is_dir()} == {"router.sqlite"}
    if os.geteuid() == 0:
        assert (state / "router.sqlite").stat().st_uid == SERVICE


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_root_has_sqlite_read_nothing_of_the_services(hostile, tmp_path):
    """Every Python that looks at a state is nobody's."""
    state, _ = hostile
    seen = tmp_path / "seen"
    seen.mkdir(mode=0o777)
    seen.chmod(0o777)
    for folder in (seen, *seen.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    path = shimmed(tmp_path, "python3", f'id -u >> {seen}/users; exec /usr/bin/python3 "$@"')
    (tmp_path / "shim").chmod(0o755)
    run(ROOT / "deploy/install", "--root", state.parents[3], "--roll-back", PATH=path)
    users = (seen / "users").read_text().split()
    assert users and set(users) == {str(SERVICE)}, users


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_file_that_the_service_may_not_read_is_not_copied_for_it(hostile):
    """As a hard link to a file of root's, whose other name is gone."""
    state, _ = hostile
    (state / "router.sqlite-wal").write_text("root's secret")
    (state / "router.sqlite-wal").chmod(0o600)
    said = roll_back(state, status=1)
    assert "Permission denied" in said and "1.1 goes on" in said, said
    for path in (state.parents[3] / "var/backups").rglob("*"):
        assert path.is_dir() or b"secret" not in path.read_bytes(), path

"""--socket-group: processes of another user may connect to the engine where they are of the group, and only then."""

import os
import subprocess
import sys

import pytest

from processes import Antiphon

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming other users needs root")

#: Numbers that no account has.
GROUP, OTHER_GROUP, USER = 61_234, 61_235, 61_236

#: Connects as another user, and says how it went.
CLIENT = """
import os, socket, sys
path, user, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
groups = [int(number) for number in sys.argv[4].split(",") if number]
os.setgroups(groups); os.setgid(group); os.setuid(user)
try:
    with socket.socket(socket.AF_UNIX) as engine:
        engine.settimeout(20)
        engine.connect(path)
        print("let in" if engine.recv(1) == b"{" else "closed")
except OSError as error:
    print(type(error).__name__)
"""


def connect(path: str, *, user: int = USER, group: int, groups: tuple[int, ...] = ()) -> str:
    arguments = [path, str(user), str(group), ",".join(map(str, groups))]
    done = subprocess.run([sys.executable, "-c", CLIENT, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def socket_path(tmp_path, media):
    with Antiphon(tmp_path, media.root, engine_options=("--socket-group", str(GROUP)), router=False) as running:
        # The folder is the test's own.
        os.chmod(os.path.dirname(running.socket), 0o755)
        yield running.socket


def test_members_are_let_in_and_nobody_else(socket_path):
    status = os.stat(socket_path)
    assert (status.st_gid, status.st_mode & 0o777) == (GROUP, 0o660), status
    assert connect(socket_path, group=GROUP) == "let in"
    assert connect(socket_path, group=OTHER_GROUP, groups=(1, GROUP)) == "let in"
    assert connect(socket_path, group=OTHER_GROUP) == "PermissionError"
    # Who got past the file's mode is asked who they are.
    os.chmod(socket_path, 0o666)
    assert connect(socket_path, group=OTHER_GROUP) in ("closed", "ConnectionResetError")
    assert connect(socket_path, user=0, group=0) == "let in"


def test_without_a_group_it_is_the_users_own(tmp_path, media):
    with Antiphon(tmp_path, media.root, router=False) as running:
        assert os.stat(running.socket).st_mode & 0o777 == 0o600
        os.chmod(running.socket, 0o666)
        os.chmod(os.path.dirname(running.socket), 0o755)
        assert connect(running.socket, group=0) in ("closed", "ConnectionResetError")


def test_a_group_that_is_not_there_is_named(tmp_path, media):
    with (
        pytest.raises(AssertionError, match='there is no group "nobody-has-this" on this machine'),
        Antiphon(tmp_path, media.root, engine_options=("--socket-group", "nobody-has-this"), router=False),
    ):
        pass

"""What a decoder process may do, tried by one that has entered its sandbox: nothing of what a hijacked one would, and
all that an honest one needs. Each part of the sandbox is tried by itself too, as one hides another."""

import os
import re
import resource
import signal
import subprocess

import pytest

from media import FLAC, M4A, MP3_VBR, OGG_OPUS, VORBIS, WAV, tone_clip
from processes import BINARIES
from sandbox import FORBIDDEN, LIMITED, NEEDED, UNPRIVILEGED, tried

SECONDS = 2
CLIPS = [tone_clip(440, SECONDS, encoding) for encoding in (FLAC, M4A, MP3_VBR, OGG_OPUS, VORBIS, WAV)]

#: What kernels are built and set up without, and what one who is not root may not do anyway.
OPTIONAL = {"bpf", "perf_event_open", "io_uring_setup", "keyctl", "userfaultfd"}
PRIVILEGED = {"open the parent's memory", "ptrace", "process_vm_readv", "process_vm_writev", "mount"}


def start(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(BINARIES / "AudioEngine"), "probe-sandbox", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def attempts(*arguments: str) -> dict[str, str]:
    """What came of each try in what was entered whole."""
    done = start(*arguments)
    assert done.returncode == 0, done
    refused, results = tried(done.stdout)
    if set(refused) == {"landlock"}:
        pytest.skip(f"this kernel has no Landlock: {refused}")
    assert not refused
    return results


def test_nothing_but_what_is_needed(media):
    media.make(*CLIPS)
    files = [option for clip in CLIPS for option in ("--media", str(media.path(clip)))]
    results = attempts(*files)
    assert {name: results.pop(name) for name in FORBIDDEN} == dict.fromkeys(FORBIDDEN, "refused EPERM")
    assert {name: results.pop(name) for name in LIMITED} == {name: f"refused {LIMITED[name]}" for name in LIMITED}
    assert {name: results.pop(name) for name in NEEDED} == dict.fromkeys(NEEDED, "worked")
    better = results.pop(UNPRIVILEGED)
    assert os.geteuid() == 0 or better == "refused EACCES"
    for clip in CLIPS:
        length, peak = re.fullmatch(r"worked: (\d+) ms, peak (\d+) %", results.pop(f"play {clip.file}")).groups()
        assert abs(int(length) - SECONDS * 1000) < 60 and 40 < int(peak) < 60, (clip, length, peak)
    assert not results


def test_outside_all_of_it_can_be_done():
    """Otherwise an error would say nothing."""
    results = attempts("--parts", "")
    # Some tries are such that they harm nobody outside: what they ask for is wrong in itself.
    meaningless = {"refused EINVAL", "refused EFAULT", "refused ENOENT", "refused ECONNREFUSED"}
    excused = OPTIONAL if os.geteuid() == 0 else OPTIONAL | PRIVILEGED
    for name in FORBIDDEN - excused:
        assert results[name] in {"worked"} | meaningless, (name, results[name])
    assert results["clone3"] == "refused EINVAL"
    for name in NEEDED | LIMITED.keys() - {"clone3"}:
        assert results[name] == "worked", name


def test_a_thread_that_ran_before_is_told_of():
    """It would be outside, with all of the process's memory."""
    refused, results = tried(start("--late", "open").stdout)
    reason = "threads that ran before are not bound: 1"
    assert refused["seccomp"] == reason and refused["landlock"], refused
    assert results["open"] == "refused EPERM"


def test_landlock_by_itself():
    """Files and TCP; and, of what the kernel knows since 6.12, signals to others."""
    results = attempts("--parts", "landlock")
    names = ("open in C", "open", "openat", "openat2", "create a file", "open the parent's memory", "posix_spawn")
    assert {name: results[name] for name in names} == dict.fromkeys(names, "refused EACCES")
    assert results["ptrace"] == results["process_vm_readv"] == "refused EPERM"
    # A version for each: bind and connect since the fourth.
    release = tuple(int(number) for number in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    if release >= (6, 7):
        assert results["bind"] == results["connect"] == "refused EACCES"
    if release >= (6, 12):
        assert results["kill"] == results["tgkill"] == "refused EPERM"
    assert {name: results[name] for name in NEEDED} == dict.fromkeys(NEEDED, "worked")


def test_the_limits_by_themselves():
    results = attempts("--parts", "limits")
    for name in ("write to a file", "memory beyond the limit"):
        assert results[name] == f"refused {LIMITED[name]}"
    assert results["open"] == results["fork"] == results["kill"] == "worked"


@pytest.mark.parametrize("call", ["call as i386", "call as x32"])
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="there is one architecture only")
def test_another_architectures_calls_end_it(call):
    done = start(call)
    assert done.returncode == -signal.SIGSYS and call not in done.stdout, done


def test_it_leaves_no_dump(tmp_path):
    """Where everyone else would: a process that aborts after it has entered, and one that has not."""

    def abort(parts: str) -> bool:
        """Whether the kernel says that it dumped (wait(2))."""
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
            os.chdir(tmp_path)
            os.execv(BINARIES / "AudioEngine", ["AudioEngine", "probe-sandbox", "--parts", parts, "abort"])
        status = os.waitpid(child, 0)[1]
        assert os.WTERMSIG(status) == signal.SIGABRT
        for dump in tmp_path.glob("core*"):
            dump.unlink()
        return os.WCOREDUMP(status)

    if not abort(""):
        pytest.skip("nothing is dumped on this machine anyway")
    assert not abort("dumps")

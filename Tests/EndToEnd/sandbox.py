"""What `AudioEngine probe-sandbox` tries, and what is to come of it."""

import json

#: Refused with EPERM, as every system call is that is not on the list.
FORBIDDEN = {
    *("open in C", "open", "openat", "openat2", "create a file", "open the parent's memory", "newfstatat", "statx"),
    *("unlink", "memfd_create", "ioctl"),
    *("socket of TCP", "socket of Unix", "socketpair", "bind", "connect", "listen", "sendto an address"),
    *("fork", "clone", "clone as vfork", "clone with the memory", "posix_spawn", "execve"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "kill", "tgkill", "pidfd_open", "prlimit64 of the parent"),
    "setpriority of the parent",
    *("prctl of dumps", "setuid", "unshare", "mount", "bpf", "perf_event_open", "io_uring_setup", "keyctl"),
    *("userfaultfd", "personality", "sched_setscheduler"),
    *("mmap to run", "mmap of a file to run", "mprotect to run"),
}
#: Refused with an error of their own: the C library goes on without clone3, and the limits are no question of rights.
LIMITED = {"clone3": "ENOSYS", "write to a file": "EFBIG", "memory beyond the limit": "ENOMEM"}
NEEDED = {
    *("a thread that stands back", "50 MB", "memory to write", "getrandom", "clock_gettime", "sleep"),
    *("a passed file", "fstat", "tgkill of its own"),
}
#: A limit refuses it to all but root, whom it does not bind.
UNPRIVILEGED = "a better place among threads"


def tried(output: str) -> tuple[dict[str, str], dict[str, str]]:
    """Which parts of the sandbox were refused, and what came of each try."""
    first, *rest = [json.loads(line) for line in output.splitlines()]
    return first["refused"], {line["try"]: line["result"] for line in rest}

"""Confine this process with Landlock and seccomp, then exec the command (a script).

Standard library only, and nothing of ours. Arguments: a JSON object {"read": [paths], "write": [paths],
"network": bool}, then the command.

Landlock limits which files can be opened, made and removed. What it leaves open is closed by seccomp: sockets (it knows
no Unix sockets, so the gateway's own would be reachable), changing modes and owners of any file, leaving the process
group, signals where the kernel is older than that rule, and the limits and priorities of other processes.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import sys

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
FIRST_RIGHTS = (1 << 13) - 1  # all of the first version
SCOPES = 0b11  # abstract Unix sockets, signals
SIGNALS_SCOPED_SINCE = 6

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
SECCOMP_MODE_FILTER = 2
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1  # the last: EPERM
LOAD, EQUALS, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16
AF_INET, AF_INET6 = 2, 10

# Per machine: how the kernel names it, and the numbers of its calls. Newer calls have one number everywhere.
NEW_CALLS = {"pidfd_send_signal": 424, "io_uring_setup": 425, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466}
MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "socket": 41, "kill": 62, "truncate": 76, "chmod": 90, "chown": 92, "lchown": 94, "ptrace": 101,
            "setpgid": 109, "setsid": 112, "capset": 126, "setpriority": 141, "sched_setparam": 142,
            "sched_setscheduler": 144, "setxattr": 188, "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198,
            "tkill": 200, "sched_setaffinity": 203, "tgkill": 234, "add_key": 248, "request_key": 249, "keyctl": 250,
            "ioprio_set": 251, "fchownat": 260, "fchmodat": 268, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
            "prlimit64": 302, "sched_setattr": 314, "bpf": 321,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15, "ioprio_set": 30, "truncate": 45,
            "fchmodat": 53, "fchownat": 54, "capset": 91, "ptrace": 117, "sched_setparam": 118,
            "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129, "tkill": 130, "tgkill": 131,
            "rt_sigqueueinfo": 138, "setpriority": 140, "setpgid": 154, "setsid": 157, "socket": 198, "add_key": 217,
            "request_key": 218, "keyctl": 219, "rt_tgsigqueueinfo": 240, "prlimit64": 261, "sched_setattr": 274,
            "bpf": 280,
        },
    ),
}  # fmt: skip
REFUSED = (
    "truncate", "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "setxattr", "lsetxattr", "setxattrat",
    "removexattr", "lremovexattr", "removexattrat", "setsid", "setpgid", "ptrace", "bpf", "add_key", "request_key",
    "keyctl", "io_uring_setup", "setpriority", "ioprio_set", "sched_setparam", "sched_setscheduler",
    "sched_setaffinity", "sched_setattr",
)  # fmt: skip
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Return the version of Landlock that this kernel speaks; 0 for none."""
    return max(0, int(_libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def is_known_machine() -> bool:
    return platform.machine() in MACHINES and sys.maxsize > 2**32


def main(arguments: list[str]) -> None:
    wanted = json.loads(arguments[0])
    version = landlock_version()
    if not version or not is_known_machine():
        raise SystemExit("this kernel has no Landlock, or the machine is not one we know")
    _drop_capabilities()
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _limit_files(version, wanted["read"], wanted["write"])
    _limit_calls(version, wanted["network"])
    _become(arguments[1:])


def _become(command: list[str]) -> None:
    """As os.execvp does, which imports more on its way: by now that can no longer be read."""
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        try:
            os.execv(os.path.join(folder, command[0]), command)  # noqa: S606 - this is what we are for
        except OSError:
            continue
    os.write(2, f"{command[0]}: not found\n".encode("utf-8", "replace"))
    os._exit(127)


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _drop_capabilities() -> None:
    """Where the gateway runs as root: being root must not be a way around."""
    if os.geteuid() != 0:
        return
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    header = struct.pack("=Ii", 0x20080522, 0)
    number = MACHINES[platform.machine()][1]["capset"]
    _check(_libc.syscall(number, header, bytes(24)), "capset")


def _limit_files(version: int, read: list[str], write: list[str]) -> None:
    rights = FIRST_RIGHTS
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEVICE)):
        rights |= right if version >= since else 0
    # Its rules for TCP are not used: seccomp refuses sockets of every kind, or leaves those for the internet.
    fields = struct.pack("=QQQ", rights, 0, SCOPES)
    size = 24 if version >= SIGNALS_SCOPED_SINCE else 8
    ruleset = _check(_libc.syscall(LANDLOCK_CREATE, fields, ctypes.c_size_t(size), ctypes.c_uint32(0)), "landlock")
    for paths, allowed in ((read, EXECUTE | READ_FILE | READ_DIR), (write, rights)):
        for path in paths:
            _allow(ruleset, path, allowed & rights)
    _check(_libc.syscall(LANDLOCK_RESTRICT, ruleset, ctypes.c_uint32(0)), "landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= ON_FILES
        rule = struct.pack("=Qi", rights, place)
        _check(_libc.syscall(LANDLOCK_ADD, ruleset, ctypes.c_int(1), rule, ctypes.c_uint32(0)), f"landlock {path}")
    finally:
        os.close(place)


def _limit_calls(version: int, network: bool) -> None:
    architecture, own = MACHINES[platform.machine()]
    numbers = {**NEW_CALLS, **own}
    program = [
        _step(LOAD, ARCHITECTURE_AT),
        _step(EQUALS, architecture, 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, NUMBER_AT),
        _step(AT_LEAST, 0x40000000, 0, 1),  # the x32 calls: the same under other numbers
        _step(RETURN, REFUSE),
    ]
    refused = REFUSED if version >= SIGNALS_SCOPED_SINCE else REFUSED + SIGNALS
    for name in refused:
        if name in numbers:
            program += [_step(EQUALS, numbers[name], 0, 1), _step(RETURN, REFUSE)]
    program += _only_with(numbers["prlimit64"], (0,))
    program += _only_with(numbers["socket"], (AF_INET, AF_INET6) if network else ())
    program.append(_step(RETURN, ALLOW))
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_program = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    _check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0), "seccomp")


def _only_with(number: int, values: tuple[int, ...]) -> list[bytes]:
    """Refuse a call unless its first argument is one of these. The number is in the accumulator, before and after."""
    tests = [_step(EQUALS, value, len(values) - index, 0) for index, value in enumerate(values)]
    inner = [_step(LOAD, FIRST_ARGUMENT_AT), *tests, _step(RETURN, REFUSE), _step(RETURN, ALLOW)]
    return [_step(EQUALS, number, 0, len(inner)), *inner]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


if __name__ == "__main__":
    main(sys.argv[1:])

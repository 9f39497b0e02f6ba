"""Confine a command with Landlock and seccomp (a script).

Standard library only, and nothing of ours. Arguments: a JSON object {"read": [paths], "write": [paths],
"families": [socket families]}, then the command.

Landlock limits which files can be opened, made and removed. What it leaves open is closed by seccomp: sockets (it knows
no Unix sockets, so the gateway's own would be reachable), leaving the process group, signals where the kernel is older
than that rule, namespaces, and the limits and priorities of other processes.

Modes, owners and times of files are a case of their own: Landlock does not know them, and `touch`, `tar`, `git` and
`cp -p` need them every day. The process that this script starts as stays outside and performs those calls itself, on
the file that it has opened, if that file lies in a writable folder: the kernel hands it each call (a seccomp
notification) and the command waits. Set-user-ID and set-group-ID bits are refused everywhere, and owners cannot change.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import json
import os
import platform
import select
import signal
import stat
import struct
import sys
import time

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
FIRST_RIGHTS = (1 << 13) - 1  # all of the first version
SCOPES = 0b11  # abstract Unix sockets, signals
TRUNCATE_SINCE, SIGNALS_SCOPED_SINCE = 3, 6

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
NOTIFICATION, ANSWER = struct.Struct("=QII i I Q 6Q"), struct.Struct("=QqiI")
RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
ALLOW, KILL, NOTIFY, ERROR = 0x7FFF0000, 0x80000000, 0x7FC00000, 0x00050000
REFUSE = ERROR | errno.EPERM
LOAD, EQUALS, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16

SET_ID_BITS = stat.S_ISUID | stat.S_ISGID
MAKES_A_FILE = os.O_CREAT | 0x400000  # the second: O_TMPFILE without O_DIRECTORY
NEW_NAMESPACES = 0x7E020000
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
FILE_FLAGS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602)  # of FS_IOC_SETFLAGS and its like
LEASES = (1024, 1026)  # F_SETLEASE, F_NOTIFY
SIGNAL_OWNERS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: the kernel then sends signals in our name
SOCKET_OWNERS = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
TIME_NOW, TIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
MAX_PATH = 4096

# Per machine: how the kernel names it, and the numbers of its calls. Newer calls have one number everywhere.
NEW_CALLS = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447,
    "process_mrelease": 448, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467,
    "file_setattr": 469,
}  # fmt: skip
MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "open": 2, "ioctl": 16, "shmget": 29, "shmat": 30, "shmctl": 31, "socket": 41, "clone": 56, "kill": 62,
            "semget": 64, "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71,
            "fcntl": 72, "truncate": 76, "creat": 85, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93,
            "lchown": 94, "ptrace": 101, "syslog": 103, "setpgid": 109, "setsid": 112, "capset": 126,
            "rt_sigqueueinfo": 129, "utime": 132, "mknod": 133, "setpriority": 141, "sched_setparam": 142,
            "sched_setscheduler": 144, "pivot_root": 155, "chroot": 161, "acct": 163, "settimeofday": 164,
            "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
            "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
            "quotactl": 179, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
            "lremovexattr": 198, "fremovexattr": 199, "tkill": 200, "sched_setaffinity": 203, "lookup_dcookie": 212,
            "semtimedop": 220, "clock_settime": 227, "tgkill": 234, "utimes": 235, "mq_open": 240, "mq_unlink": 241,
            "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251,
            "migrate_pages": 256, "openat": 257, "mknodat": 259, "fchownat": 260, "futimesat": 261, "fchmodat": 268,
            "unshare": 272, "move_pages": 279, "utimensat": 280, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
            "fanotify_init": 300, "prlimit64": 302, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308,
            "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
            "sched_setattr": 314, "seccomp": 317, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
            "lookup_dcookie": 18, "fcntl": 25, "ioctl": 29, "ioprio_set": 30, "mknodat": 33, "umount2": 39,
            "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54,
            "fchown": 55, "openat": 56, "quotactl": 60, "utimensat": 88, "acct": 89, "capset": 91, "unshare": 97,
            "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
            "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122, "kill": 129,
            "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "setpriority": 140, "reboot": 142, "setpgid": 154,
            "setsid": 157, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "mq_open": 180,
            "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188, "msgsnd": 189, "semget": 190,
            "semctl": 191, "semtimedop": 192, "semop": 193, "shmget": 194, "shmctl": 195, "shmat": 196,
            "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224,
            "swapoff": 225, "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240,
            "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262, "open_by_handle_at": 265,
            "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
            "finit_module": 273, "sched_setattr": 274, "seccomp": 277, "bpf": 280, "userfaultfd": 282,
            "kexec_file_load": 294,
        },
    ),
}  # fmt: skip

# What no program of a person needs, in any sandbox: the kernel's wide and seldom walked ways.
KERNEL = (
    "add_key", "request_key", "keyctl", "bpf", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd",
    "perf_event_open", "open_by_handle_at", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "acct", "quotactl", "quotactl_fd", "swapon",
    "swapoff", "reboot", "sethostname", "setdomainname", "iopl", "ioperm", "syslog", "settimeofday", "clock_settime",
    "clock_adjtime", "lookup_dcookie", "fanotify_init", "memfd_secret", "kcmp", "move_pages", "migrate_pages",
)  # fmt: skip
# Where the machine's other processes and shared memory are in reach, as they are without namespaces.
OTHERS = (
    "setsid", "setpgid", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
    "pidfd_getfd", "setpriority", "ioprio_set", "sched_setparam", "sched_setscheduler", "sched_setaffinity",
    "sched_setattr", "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd",
    "msgrcv", "msgctl", "mq_open", "mq_unlink", "file_setattr",
)  # fmt: skip
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
# Programs take this answer as "not on this file system", and go on without.
ATTRIBUTES = (
    "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
)  # fmt: skip
# These take a pointer to their flags, which a filter cannot read. Programs then use the older call.
UNREADABLE = ("clone3", "openat2")
# Which argument holds the mode of a new file, and which the flags that tell whether there is one.
MODES_OF_NEW_FILES = {"open": (1, 2), "openat": (2, 3), "creat": (None, 1), "mknod": (None, 1), "mknodat": (None, 2)}
MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
OWNERS_AND_TIMES = ("chown", "lchown", "fchown", "fchownat", "utimensat", "futimesat", "utimes", "utime")

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
    # Orphans of the command stay below this process: some kernels let only an ancestor look into another process.
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # they are for the command; caught ones are the default again in it
    ours, theirs = _socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _confine(version, wanted, theirs)
        _become(arguments[1:])
    theirs.close()
    os._exit(_watch(child, ours, [path for path in wanted["write"] if os.path.isdir(path)]))


def _confine(version: int, wanted: dict[str, list[str]], to_parent: _socket.socket) -> None:
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "death signal")
    _drop_capabilities()
    _check(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _limit_files(version, wanted["read"], wanted["write"])
    program = landlock_filter(version, [int(family) for family in wanted["families"]])
    listener = _install(program, NEW_LISTENER | WAIT_KILLABLE)
    if listener < 0:  # before Linux 5.19
        listener = _check(_install(program, NEW_LISTENER), "seccomp")
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", listener))
    to_parent.sendmsg([b"\0"], [rights])
    to_parent.close()
    os.close(listener)


def _become(command: list[str]) -> None:
    """Execute the command as os.execvp does, which imports modules that can no longer be read by now."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so
        signal.signal(number, signal.SIG_DFL)
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
    """Drop all capabilities if the gateway runs as root."""
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
    for since, right in ((2, REFER), (TRUNCATE_SINCE, TRUNCATE), (5, IOCTL_DEVICE)):
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
    except (FileNotFoundError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= ON_FILES
        rule = struct.pack("=Qi", rights, place)
        _check(_libc.syscall(LANDLOCK_ADD, ruleset, ctypes.c_int(1), rule, ctypes.c_uint32(0)), f"landlock {path}")
    finally:
        os.close(place)


# Filters


def landlock_filter(version: int, families: list[int]) -> list[bytes]:
    """Return the filter used with Landlock; sockets of ``families`` may be opened."""
    architecture, numbers = _machine()
    older = (("truncate",) if version < TRUNCATE_SINCE else ()) + (SIGNALS if version < SIGNALS_SCOPED_SINCE else ())
    program = _general(architecture, numbers, (*KERNEL, *OTHERS, *older))
    for name in ATTRIBUTES:
        program += _if_called(numbers, name, [_step(RETURN, ERROR | errno.ENOTSUP)])
    for name in (*MODES, *OWNERS_AND_TIMES):
        program += _if_called(numbers, name, [_step(RETURN, NOTIFY)])
    program += _if_called(numbers, "ioctl", _unless_one_of(1, TERMINAL_INPUT + FILE_FLAGS + SOCKET_OWNERS))
    program += _if_called(numbers, "fcntl", _unless_one_of(1, LEASES + SIGNAL_OWNERS))
    program += _if_called(numbers, "prlimit64", _only_one_of(0, (0,)))
    program += _if_called(numbers, "socket", _only_one_of(0, tuple(families)))
    return [*program, _step(RETURN, ALLOW)]


def namespace_filter() -> bytes:
    """Return the filter for a sandbox of namespaces; b'' on an unknown machine."""
    if not is_known_machine():
        return b""
    architecture, numbers = _machine()
    program = _general(architecture, numbers, KERNEL)
    for name, argument in MODES.items():
        program += _if_called(numbers, name, _without_bits(argument, SET_ID_BITS))
    program += _if_called(numbers, "ioctl", _unless_one_of(1, TERMINAL_INPUT))
    return b"".join([*program, _step(RETURN, ALLOW)])


def _machine() -> tuple[int, dict[str, int]]:
    architecture, own = MACHINES[platform.machine()]
    return architecture, {**NEW_CALLS, **own}


def _general(architecture: int, numbers: dict[str, int], refused: tuple[str, ...]) -> list[bytes]:
    """Return the common start of a filter.

    One architecture; no refused call, no new namespace, no new file with a set-ID bit.
    """
    program = [
        _step(LOAD, ARCHITECTURE_AT),
        _step(EQUALS, architecture, 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, NUMBER_AT),
        _step(AT_LEAST, 0x40000000, 0, 1),  # the x32 calls: the same under other numbers
        _step(RETURN, REFUSE),
    ]
    for name in refused:
        program += _if_called(numbers, name, [_step(RETURN, REFUSE)])
    for name in UNREADABLE:
        program += _if_called(numbers, name, [_step(RETURN, ERROR | errno.ENOSYS)])
    program += _if_called(numbers, "clone", _without_bits(0, NEW_NAMESPACES))
    for name, (flags, mode) in MODES_OF_NEW_FILES.items():
        inner = _without_bits(mode, SET_ID_BITS)
        if flags is not None:  # without a new file the mode is whatever stood in that register
            inner = [_step(LOAD, FIRST_ARGUMENT_AT + 8 * flags), _step(ANY_BIT, MAKES_A_FILE, 0, 3), *inner]
        program += _if_called(numbers, name, inner)
    return program


def _if_called(numbers: dict[str, int], name: str, inner: list[bytes]) -> list[bytes]:
    """Judge one call by ``inner``, which ends with a return. The call's number stays in the accumulator."""
    return [_step(EQUALS, numbers[name], 0, len(inner)), *inner] if name in numbers else []


def _without_bits(argument: int, bits: int) -> list[bytes]:
    load = _step(LOAD, FIRST_ARGUMENT_AT + 8 * argument)
    return [load, _step(ANY_BIT, bits, 0, 1), _step(RETURN, REFUSE), _step(RETURN, ALLOW)]


def _only_one_of(argument: int, values: tuple[int, ...]) -> list[bytes]:
    tests = [_step(EQUALS, value, len(values) - index, 0) for index, value in enumerate(values)]
    return [_step(LOAD, FIRST_ARGUMENT_AT + 8 * argument), *tests, _step(RETURN, REFUSE), _step(RETURN, ALLOW)]


def _unless_one_of(argument: int, values: tuple[int, ...]) -> list[bytes]:
    tests = [_step(EQUALS, value, len(values) - index, 0) for index, value in enumerate(values)]
    return [_step(LOAD, FIRST_ARGUMENT_AT + 8 * argument), *tests, _step(RETURN, ALLOW), _step(RETURN, REFUSE)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _install(program: list[bytes], flags: int) -> int:
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    number = MACHINES[platform.machine()][1]["seccomp"]
    return int(_libc.syscall(number, ctypes.c_uint(SET_MODE_FILTER), ctypes.c_uint(flags), described))


# The process outside


def _watch(child: int, ours: _socket.socket, writable: list[str]) -> int:
    """Answer the calls of the command until it ends; return its exit code."""
    _, control, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(4))
    ours.close()
    if not control:  # the child failed before, and said why
        return _exit_code(os.waitpid(child, 0)[1])
    listener = struct.unpack("=i", control[0][2][:4])[0]
    numbers = {number: name for name, number in _machine()[1].items()}
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    waiting.register(woken, select.POLLIN)
    roots = [os.path.realpath(path) for path in writable]
    while True:
        while True:  # orphans of the command are ours to bury
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 1
            if ended == child:
                return _exit_code(status)
            if not ended:
                break
        for descriptor, events in waiting.poll():
            if descriptor == woken:
                os.read(woken, 4096)
            elif events & select.POLLIN:
                _answer(listener, numbers, roots)
            else:
                waiting.unregister(listener)  # nobody is left who could ask


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _answer(listener: int, numbers: dict[int, str], roots: list[str]) -> None:
    request = ctypes.create_string_buffer(NOTIFICATION.size)
    if _libc.ioctl(listener, ctypes.c_ulong(RECEIVE), request) < 0:
        return  # whoever asked was killed meanwhile
    identity, pid, _, number, _, _, *arguments = NOTIFICATION.unpack(request.raw)
    error = 0
    try:
        _perform(listener, identity, pid, numbers[number], arguments, roots)
    except OSError as failed:
        error = -(failed.errno or errno.EPERM)
    except (ValueError, OverflowError, struct.error):
        error = -errno.EINVAL
    _libc.ioctl(listener, ctypes.c_ulong(SEND), ANSWER.pack(identity, 0, error, 0))


def _perform(listener: int, identity: int, pid: int, name: str, arguments: list[int], roots: list[str]) -> None:
    """Perform a call on a file of the writable folders; the caller gets an OSError."""
    flags = {"fchmodat2": 3, "utimensat": 3, "fchownat": 4}
    given = arguments[flags[name]] & 0xFFFFFFFF if name in flags else 0
    has_folder = name in ("fchmodat", "fchmodat2", "utimensat", "futimesat", "fchownat")
    is_open = name in ("fchmod", "fchown") or (has_folder and not arguments[1] and name in ("utimensat", "futimesat"))
    rest = arguments[2:] if has_folder else arguments[1:]
    if is_open:
        path = f"/proc/{pid}/fd/{_signed(arguments[0])}".encode()
    else:
        folder = _signed(arguments[0]) if has_folder else AT_FDCWD
        written = _read_text(pid, arguments[1] if has_folder else arguments[0])
        base = f"/proc/{pid}/cwd" if folder == AT_FDCWD else f"/proc/{pid}/fd/{folder}"
        if not written and not given & AT_EMPTY_PATH:
            raise OSError(errno.ENOENT, "empty path")
        for own in (b"/proc/self/", b"/proc/thread-self/"):  # theirs, not ours: the C library changes modes by it
            if written.startswith(own):
                written = f"/proc/{pid}/".encode() + written[len(own) :]
        path = written if written.startswith(b"/") else base.encode() + (b"/" + written if written else b"")
    times = _times(pid, name, rest[0]) if name in ("utimensat", "futimesat", "utimes", "utime") else None
    follows = name != "lchown" and not given & AT_SYMLINK_NOFOLLOW
    # The process may have ended and its number been given to another one: then all of this was read from a stranger.
    target = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follows or is_open else os.O_NOFOLLOW))
    try:
        if _libc.ioctl(listener, ctypes.c_ulong(IS_VALID), struct.pack("=Q", identity)) < 0:
            raise OSError(errno.ESRCH, "gone")
        held = f"/proc/self/fd/{target}"
        real = os.readlink(held)
        if not any(real == root or real.startswith(f"{root}/") for root in roots):
            raise OSError(errno.EPERM, "outside the writable folders")
        known = os.stat(held)
        if known.st_uid != os.getuid():
            raise OSError(errno.EPERM, "somebody else's file")
        if name in MODES:
            mode = rest[0] & 0o7777
            if mode & stat.S_ISUID or (mode & stat.S_ISGID and not stat.S_ISDIR(known.st_mode)):
                raise OSError(errno.EPERM, "set-ID bits")
            os.chmod(held, mode)
        elif times is not None:
            _set_times(held, known, times)
        else:
            user, group = rest[0] & 0xFFFFFFFF, rest[1] & 0xFFFFFFFF
            if user not in (0xFFFFFFFF, known.st_uid) or group not in (0xFFFFFFFF, known.st_gid):
                raise OSError(errno.EPERM, "owners cannot change")
    finally:
        os.close(target)


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _read_memory(pid: int, address: int, size: int) -> bytes:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, size, address)
    except OSError as error:
        raise OSError(errno.EFAULT, "unreadable") from error
    finally:
        os.close(memory)


def _read_text(pid: int, address: int) -> bytes:
    page = 4096
    found = b""
    while b"\0" not in found:
        if len(found) > MAX_PATH:
            raise OSError(errno.ENAMETOOLONG, "path")
        start = address + len(found)
        found += _read_memory(pid, start, page - start % page)  # the next page may not be there
    return found[: found.index(b"\0")]


def _times(pid: int, name: str, address: int) -> tuple[int, int, int, int]:
    """Return seconds and nanoseconds of access and of change; TIME_NOW and TIME_OMIT: "now" and "unchanged"."""
    if not address:
        return 0, TIME_NOW, 0, TIME_NOW
    if name == "utime":
        accessed, changed = struct.unpack("=qq", _read_memory(pid, address, 16))
        return accessed, 0, changed, 0
    first, second, third, fourth = struct.unpack("=qqqq", _read_memory(pid, address, 32))
    return (first, second, third, fourth) if name == "utimensat" else (first, second * 1000, third, fourth * 1000)


def _set_times(held: str, known: os.stat_result, times: tuple[int, int, int, int]) -> None:
    now = time.time_ns()
    wanted = []
    for seconds, fraction, as_it_is in ((*times[:2], known.st_atime_ns), (*times[2:], known.st_mtime_ns)):
        special = {TIME_NOW: now, TIME_OMIT: as_it_is}
        wanted.append(special[fraction] if fraction in special else seconds * 10**9 + fraction)
    os.utime(held, ns=(wanted[0], wanted[1]))


if __name__ == "__main__":
    main(sys.argv[1:])

"""A user whose model obeys an attacker tries to leave the sandbox, to mark files of the machine, or to use it up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.backends import bubblewrap, landlock
from hermes.agent.backends.process_groups import descendants
from hermes.core.roles import PersonRole
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import make, results

SANDBOXES = {"bubblewrap": bubblewrap.why_not, "landlock": landlock.why_not}
ANSWER_SECONDS = 20.0  # ten times what a person waits for

# What each attack has: V is a file of the machine that belongs to the gateway's user, D its folder.
HEAD = """
import ctypes, fcntl, os, struct, sys, threading
V, D = {victim!r}, {folder!r}
libc = ctypes.CDLL(None, use_errno=True)
IS_ARM = os.uname().machine == "aarch64"
"""
METADATA = {
    "chmod": "os.chmod(V, 0o4777)",
    "fchmod of a file open for reading": "os.fchmod(os.open(V, os.O_RDONLY), 0o4777)",
    "chmod of the folder": "os.chmod(D, 0o777)",
    "fchmod of the folder": "os.fchmod(os.open(D, os.O_RDONLY), 0o777)",
    "chmod through a link": "os.symlink(V, 'l'); os.chmod('l', 0o4777)",
    "chmod through a link to the folder": "os.symlink(D, 'd'); os.chmod('d/' + os.path.basename(V), 0o4777)",
    "chmod by a climbing path": "os.chmod('../' * 40 + V[1:], 0o4777)",
    "chmod below an open folder": "os.chmod(os.path.basename(V), 0o4777, dir_fd=os.open(D, os.O_PATH))",
    "chmod by /proc/self/fd": "os.chmod(f'/proc/self/fd/{{os.open(V, os.O_PATH)}}', 0o4777)",
    "chmod by /proc/self/root": "os.chmod('/proc/self/root' + V, 0o4777)",
    "fchmodat2 of a handle": "libc.syscall(452, os.open(V, os.O_PATH), b'', 0o4777, 0x1000)",
    "chmod from a thread of a child": (
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    t = threading.Thread(target=os.chmod, args=(V, 0o4777)); t.start(); t.join(); os._exit(0)\n"
        "os.waitpid(pid, 0)"
    ),
    "chown": "os.chown(V, 12345, 12345)",
    "fchown": "os.fchown(os.open(V, os.O_RDONLY), 12345, 12345)",
    "lchown": "os.lchown(V, 12345, 12345)",
    "setxattr": "os.setxattr(V, 'user.mark', b'1')",
    "fsetxattr": "os.setxattr(os.open(V, os.O_RDONLY), 'user.mark', b'1')",
    "removexattr": "os.removexattr(V, 'user.kept')",
    "fremovexattr": "os.removexattr(os.open(V, os.O_RDONLY), 'user.kept')",
    "utime": "os.utime(V, (1, 1))",
    "futimens": "os.utime(os.open(V, os.O_RDONLY), (1, 1))",
    "utime to now": "os.utime(V)",
    "utime through a link": "os.symlink(V, 'l'); os.utime('l', (1, 1))",
    "utime of the folder": "os.utime(D, (1, 1))",
    "file flags": "fcntl.ioctl(os.open(V, os.O_RDONLY), 0x40086602, struct.pack('l', 0x40))",
    "file_setattr": "libc.syscall(469, -100, V.encode(), b'\\0' * 24, 24, 0)",
    "truncate": "os.truncate(V, 0)",
    "a hard link": "os.link(V, 'h'); os.chmod('h', 0o4777)",
    "a rename": "os.rename(V, 'mine')",
    "a race of links": (
        "open('mine', 'w').close()\n"
        "def swap():\n"
        "    for n in range(3000):\n"
        "        os.symlink(V if n % 2 else 'mine', 't'); os.rename('t', 'l')\n"
        "os.symlink('mine', 'l')\n"
        "t = threading.Thread(target=swap); t.start()\n"
        "while t.is_alive():\n"
        "    try: os.chmod('l', 0o777)\n"
        "    except OSError: pass\n"
        "    try: os.utime('l', (1, 1))\n"
        "    except OSError: pass"
    ),
    "a race of folders": (
        "os.mkdir('a'); open('a/' + os.path.basename(V), 'w').close(); os.symlink(D, 'b')\n"
        "def swap():\n"
        "    for _ in range(1500):\n"
        "        os.rename('a', 'c'); os.rename('b', 'a'); os.rename('a', 'b'); os.rename('c', 'a')\n"
        "t = threading.Thread(target=swap); t.start()\n"
        "while t.is_alive():\n"
        "    try: os.chmod('a/' + os.path.basename(V), 0o777)\n"
        "    except OSError: pass"
    ),
}
SET_ID = {
    "chmod": "open('f', 'w').close(); os.chmod('f', 0o4755)",
    "fchmod": "os.fchmod(os.open('f', os.O_CREAT | os.O_RDWR), 0o6755)",
    "a new file": "os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o4755))",
    "creat and openat": "os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o2755, dir_fd=os.open('.', os.O_RDONLY)))",
    "mknod": "os.mknod('f', 0o104755)",
    "an unnamed file": (
        "f = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)\n"
        "os.link(f'/proc/self/fd/{{f}}', 'f', src_dir_fd=os.open('.', os.O_RDONLY), follow_symlinks=True)"
    ),
    "openat2": (
        "libc.syscall(437, -100, b'f', struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24)\n"
        "open('f', 'a').close()"
    ),
    "a copied program": "import shutil; shutil.copy('/bin/true', 'f'); os.chmod('f', os.stat('f').st_mode | 0o6000)",
}
KERNEL = {
    "a user namespace": "libc.unshare(0x10000000)",
    "a mount namespace": "libc.unshare(0x10020000)",
    "a clone into a namespace": "libc.syscall(220 if IS_ARM else 56, 0x10000011, 0, 0, 0, 0)",
    "setns": "libc.setns(os.open('/', os.O_RDONLY), 0)",
    "keyctl": "libc.syscall(219 if IS_ARM else 250, 0, -3, 1)",
    "add_key": "libc.syscall(217 if IS_ARM else 248, b'user', b'x', b'y', 1, -3)",
    "bpf": "libc.syscall(280 if IS_ARM else 321, 5, b'\\0' * 120, 120)",
    "a signal by way of an open file": "fcntl.fcntl(os.pipe()[0], 8, {pid})",
    "a signal to a group by way of an open file": "fcntl.fcntl(os.pipe()[0], 15, struct.pack('ii', 1, {pid}))",
    "a signal by way of a socket": (
        "fcntl.ioctl(__import__('socket').socketpair()[0], 0x8902, struct.pack('i', {pid}))"
    ),
    "io_uring": "libc.syscall(425, 8, b'\\0' * 120)",
    "userfaultfd": "libc.syscall(282 if IS_ARM else 323, 1)",
    "perf events": "libc.syscall(241 if IS_ARM else 298, b'\\0' * 120, 0, -1, -1, 0)",
    "open_by_handle_at": "libc.syscall(265 if IS_ARM else 304, -100, b'\\0' * 32, 0)",
    "mount": "libc.mount(b'none', b'.', b'tmpfs', 0, None)",
    "a mount of the new kind": "libc.syscall(430, b'tmpfs', 0)",
    "ptrace of the gateway": "libc.ptrace(16, {pid}, 0, 0)",
    "memory of the gateway": (
        "libc.process_vm_readv({pid}, struct.pack('PN', ctypes.addressof(ctypes.create_string_buffer(8)), 8), 1, "
        "struct.pack('PN', id(0), 8), 1, 0)"
    ),
    "limits of the gateway": "libc.prlimit({pid}, 7, struct.pack('QQ', 3, 3), None)",
    "a signal to the gateway": "os.kill({pid}, 9) or 0",
    "typing into a terminal": "fcntl.ioctl(0, 0x5412, b'x')",
}
FILES = (
    "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper",
    "/proc/{pid}/mem", "/proc/{pid}/oom_score_adj", "/dev/mem", "/dev/kmsg", "/etc/ld.so.preload", "/usr/bin/h-new",
)  # fmt: skip

# Counted for each namespace alone, and owned by whoever made it; pressure only tells.
OF_NAMESPACES = (
    "/proc/sys/fs/mqueue/", "/proc/sys/user/", "/proc/sys/net/", "/proc/sys/kernel/msg", "/proc/sys/kernel/sem",
    "/proc/sys/kernel/shm", "/proc/sys/kernel/auto_msgmni", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pid_max", "/proc/pressure/",
)  # fmt: skip


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Everybody but the owner works in this sandbox."""
    if why := SANDBOXES[request.param]():
        pytest.skip(why)
    if not Path("/usr/bin/python3").exists():
        pytest.skip("attacks are written in Python, and there is none in /usr/bin")
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text(
        f"terminal:\n  others: {request.param}\n  limits: {{processes: 40, memory_mb: 256, workspace_mb: 60}}\n"
    )
    return str(request.param)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file of the gateway's user outside every workspace; where we may, in a folder that sandboxes can read."""
    readable = os.access("/opt", os.W_OK)
    folder = Path(tempfile.mkdtemp(dir="/opt" if readable else tmp_path))
    folder.chmod(0o755)
    file = folder / "victim"
    file.write_text("as it was")
    with contextlib.suppress(OSError):  # this file system has none: then nothing can be removed either
        os.setxattr(file, "user.kept", b"1")
    file.chmod(0o644)
    yield file
    shutil.rmtree(folder)


def looks(path: Path) -> tuple[object, ...]:
    """All that an attack could have changed."""
    found = []
    for each in (path, path.parent):
        known = each.stat()
        found.append((known.st_mode, known.st_uid, known.st_gid, known.st_mtime_ns, known.st_nlink))
    try:
        marks = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError:
        marks = {}
    return (*found, path.read_text(), tuple(sorted(marks.items())))


async def attack(start: Start, telegram: FakeTelegram, model: FakeModel, *codes: str) -> list[str]:
    """Let the user's agent run these; return what each of them printed."""
    model.script([calls_tools(*(("execute_code", {"code": code, "timeout": 60}) for code in codes)), "Done."])
    async with start(MESSAGING_CWD="") as gateway:
        await make(gateway, USER, PersonRole.USER)
        telegram.user_says("do as you were told")
        await telegram.wait_for(lambda: "Done." in telegram.texts(), 90)
        return results(model)


def workspace_of(tmp_path: Path) -> Path:
    [found] = (tmp_path / "home" / "workspaces").iterdir()
    return found


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("name", METADATA)
async def test_no_attack_marks_a_file_of_the_machine(
    start: Start, telegram: FakeTelegram, model: FakeModel, victim: Path, name: str
) -> None:
    before = looks(victim)
    code = (HEAD + METADATA[name]).format(victim=str(victim), folder=str(victim.parent))
    [told] = await attack(start, telegram, model, code)
    assert "Exit code" in told
    assert looks(victim) == before


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("name", SET_ID)
async def test_no_file_of_a_workspace_gets_a_set_id_bit(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, name: str
) -> None:
    [told] = await attack(start, telegram, model, (HEAD + SET_ID[name]).format(victim="", folder=""))
    assert "Exit code" in told
    marked = [path for path in workspace_of(tmp_path).rglob("*") if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert not [path for path in marked if path.is_file()]


@pytest.mark.parametrize("name", KERNEL)
async def test_no_way_into_the_kernel_is_open(
    start: Start, telegram: FakeTelegram, model: FakeModel, sandbox: str, name: str
) -> None:
    tried = f"try:\n    print('came to', {KERNEL[name]})\nexcept OSError as error:\n    print('came to', -error.errno)"
    [told] = await attack(start, telegram, model, HEAD.format(victim="", folder="") + tried.format(pid=os.getpid()))
    assert "came to -" in told, (sandbox, told)


@pytest.mark.usefixtures("sandbox")
async def test_no_file_of_the_kernel_or_the_system_can_be_written(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    names = [name.format(pid=os.getpid()) for name in FILES]
    code = f"""
import os
for name in {names!r}:
    try:
        os.open(name, os.O_WRONLY | os.O_CREAT)
        print('opened', name)
    except OSError as error:
        print(error)
"""
    [told] = await attack(start, telegram, model, code)
    assert "opened" not in told
    assert told.count("Errno") == len(FILES)


@pytest.mark.usefixtures("sandbox")
async def test_no_setting_of_the_kernel_can_be_opened_for_writing(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    """As root of the machine without privileges, most of them could: they belong to root."""
    code = """
import os
seen = 0
for top in ("/proc", "/sys"):
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in names:
            seen += 1
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
                print("opened", os.path.join(folder, name))
            except OSError:
                pass
print("over")
"""
    [told] = await attack(start, telegram, model, code)
    assert "over" in told
    opened = [line.removeprefix("opened ") for line in told.splitlines() if line.startswith("opened ")]
    assert [path for path in opened if not path.startswith(OF_NAMESPACES)] == []


@pytest.mark.usefixtures("sandbox")
async def test_no_socket_of_the_machine_is_reached_with_the_network_on(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    config = tmp_path / "home" / "config.yaml"
    config.write_text(config.read_text() + "  network: true\n")
    home = tmp_path / "home"
    name = f"hermes-redteam-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind(f"\0{name}")
        hidden.listen()
        port = tcp.getsockname()[1]
        codes = [
            f"import socket; socket.create_connection(('{host}', {port}), 2); print('reached')"
            for host in ("127.0.0.1", "localhost", "127.1.2.3", "0.0.0.0", "10.0.2.2", "169.254.2.2")
        ]
        codes += [
            f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('reached')",
            f"import socket; socket.socket(socket.AF_UNIX).connect('{home}/run/gateway.sock'); print('reached')",
            f"import socket; socket.socket(socket.AF_INET6).connect(('::1', {port})); print('reached')",
            f"import socket; socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', {port})); print('reached')",
        ]
        told = await attack(start, telegram, model, *codes)
    assert len(told) == len(codes)
    assert not [text for text in told if "reached" in text.splitlines()]


# Each of them bounds itself too: at most 511 shells, 1.5 GB, 1.2 GB.
EXHAUSTING = {
    "processes": "f() {{ if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep {mark}; }}; f 8; wait",
    "memory": "python3 -c 'h = [bytearray(b\"x\") * 10**8 for _ in range(15)]; import time; time.sleep({mark})'",
    "disk": "for n in $(seq 40); do head -c 30000000 /dev/zero > big$n; sync big$n; done; sleep {mark}",
    "processors": "for n in 1 2 3 4 5 6; do (while :; do :; done) & done; sleep 3",
    "output": "timeout 3 yes; true",
}


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("name", EXHAUSTING)
async def test_the_gateway_answers_others_while_a_user_exhausts_the_sandbox(
    start: Start, telegram: FakeTelegram, model: FakeModel, name: str
) -> None:
    mark = f"{40 + os.getpid() % 10}.{time.monotonic_ns() % 10**6:06d}"
    command = EXHAUSTING[name].format(mark=mark)
    other = USER + 1
    model.script([calls_tools(("terminal", {"command": command, "timeout": 60})), "Over."])
    async with start(MESSAGING_CWD="", TELEGRAM_ALLOWED_USERS=f"{USER},{other}") as gateway:
        await make(gateway, USER, PersonRole.USER)
        telegram.user_says("use it all up")
        await _until_a_command_runs()
        slowest = max([await _answer_seconds(telegram, f"/help {number}", other) for number in range(3)])
        await telegram.wait_for(lambda: "Over." in telegram.texts(), 90)
        assert slowest < ANSWER_SECONDS
        assert not _running(mark)
        if name in ("processes", "memory", "disk"):
            [told] = results(model)
            assert "terminal.limits" in told or "MemoryError" in told or "fork" in told


async def _answer_seconds(telegram: FakeTelegram, text: str, user: int) -> float:
    before, began = len(telegram.texts(user)), time.monotonic()
    telegram.user_says(text, chat=user, user=user)
    await telegram.wait_for(lambda: len(telegram.texts(user)) > before, ANSWER_SECONDS)
    return time.monotonic() - began


async def _until_a_command_runs() -> None:
    async with asyncio.timeout(30):
        while len(descendants(os.getpid())) < 2:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.01)


def _running(mark: str) -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and entry != str(os.getpid()):
                found += [entry] if mark in Path(f"/proc/{entry}/cmdline").read_text(errors="replace") else []
        except OSError:
            continue
    return found


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(
    "command",
    [
        "setsid -f sleep {mark}",
        "(setsid sleep {mark} &)",
        "nohup sleep {mark} >/dev/null 2>&1 & disown",
        "python3 -c 'import os\nif os.fork() == 0:\n  try: os.setsid()\n  except OSError: pass\n"
        '  if os.fork() == 0: os.execlp("sleep", "sleep", "{mark}")\'',
        "trap '' TERM HUP; (trap '' TERM HUP; sleep {mark}) &",
    ],
)
async def test_no_process_outlives_its_command(
    start: Start, telegram: FakeTelegram, model: FakeModel, command: str
) -> None:
    mark = f"{900 + os.getpid() % 90}.{time.monotonic_ns() % 10**6:06d}"
    model.script([calls_tools(("terminal", {"command": command.format(mark=mark)})), "Over."])
    async with start(MESSAGING_CWD="") as gateway:
        await make(gateway, USER, PersonRole.USER)
        telegram.user_says("leave something behind")
        await telegram.wait_for(lambda: "Over." in telegram.texts(), 60)
        assert not _running(mark)

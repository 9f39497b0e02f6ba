"""A command in a sandbox ends when it uses more than it may, and the process that started it goes on undisturbed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes.agent.backends.limits import MB, WorkspaceQuota, clear_set_id_bits, limits_of, total_memory
from hermes.agent.backends.process_groups import descendants
from hermes.config.agent_settings import LimitsConfig
from tests.fakes.programs import needs
from tests.integration.backends.conftest import House, running

pytestmark = pytest.mark.one_python  # the kernel and the sandbox do the work

# At most 511 shells whatever happens: the test bounds the bomb as well as the sandbox.
BOMB = "f() {{ if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep {mark}; }}; f 8; wait"
HOG = """
import time
held = []
for _ in range(15):  # 1.5 GB at most, whatever happens
    held.append(bytearray(b"x") * (100 * 1024 * 1024))
print("survived")
time.sleep(1)
"""
CROWD = """
import os, time
for _ in range(8):  # 800 MB at most
    if os.fork() == 0:
        held = bytearray(b"x") * (100 * 1024 * 1024)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
print("survived")
"""
SHARED = """
import mmap, time
held = []
for _ in range(15):
    piece = mmap.mmap(-1, 100 * 1024 * 1024)
    for at in range(0, len(piece), 4096):
        piece[at] = 1
    held.append(piece)
time.sleep(20)
print("survived")
"""
FILL = """
import os, time
block = b"x" * (1024 * 1024)
for number in range(40):  # 1.2 GB at most, whatever happens
    with open(f"big{number}", "wb") as file:
        for _ in range(30):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
time.sleep(20)
print("survived")
"""
LAG_SECONDS = 2.0  # ten times what the loop of a gateway may stand still


@asynccontextmanager
async def watched_loop() -> AsyncIterator[None]:
    """Fail when this event loop stood still while somebody misbehaved."""
    worst = 0.0

    async def beat() -> None:
        nonlocal worst
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.02)
            worst = max(worst, time.monotonic() - began - 0.02)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
    assert worst < LAG_SECONDS


def bound(house: House, **limits: int) -> None:
    house.set(others=house.config.terminal.others, limits=LimitsConfig(**limits))


async def test_a_fork_bomb_is_ended(sandbox: House, mark: str) -> None:
    bound(sandbox, processes=40)
    async with watched_loop(), asyncio.timeout(60):
        told = await sandbox.sh(sandbox.person(), BOMB.format(mark=mark), timeout=40)
    assert "survived" not in told
    assert "terminal.limits.processes" in told or "fork" in told  # where the kernel counts, the shell is refused
    assert not running(mark)


@needs("python3")
@pytest.mark.parametrize("code", [HOG, CROWD, SHARED], ids=["one process", "many processes", "shared memory"])
async def test_a_memory_hog_is_ended(sandbox: House, code: str) -> None:
    bound(sandbox, memory_mb=256)
    async with watched_loop(), asyncio.timeout(60):
        told = (await sandbox.call(sandbox.person(), "execute_code", code=code, timeout=40)).text
    assert "survived" not in told
    assert "terminal.limits.memory_mb" in told or "MemoryError" in told


@needs("python3")
async def test_ordinary_work_stays_below_its_limits(sandbox: House) -> None:
    told = (await sandbox.call(sandbox.person(), "execute_code", code="print(len(bytearray(300 * 1024 ** 2)))")).text
    assert told == f"Exit code 0.\n{300 * MB}"


@needs("python3")
async def test_cpu_time_is_bounded(sandbox: House) -> None:
    bound(sandbox, cpu_seconds=1)
    async with asyncio.timeout(60):
        told = await sandbox.sh(sandbox.person(), "(while :; do :; done) & (while :; do :; done) & wait", timeout=40)
    assert "terminal.limits.cpu_seconds" in told


@needs("python3")
async def test_a_file_cannot_grow_over_its_limit(sandbox: House) -> None:
    bound(sandbox, file_mb=5)
    ana = sandbox.person()
    told = await sandbox.sh(ana, "head -c 20000000 /dev/zero > big; echo $?")
    assert "terminal.limits.file_mb" in told or "File size limit" in told or "153" in told
    assert (ana.workspace / "big").stat().st_size <= 5 * MB


@needs("python3")
async def test_filling_the_disk_ends_at_the_quota(sandbox: House) -> None:
    bound(sandbox, workspace_mb=60)
    ana = sandbox.person()
    async with watched_loop(), asyncio.timeout(60):
        told = (await sandbox.call(ana, "execute_code", code=FILL, timeout=40)).text
    assert "survived" not in told
    assert "terminal.limits.workspace_mb" in told
    assert WorkspaceQuota().measure(ana.workspace) < 1100 * MB
    for path in ana.workspace.glob("big*"):
        path.unlink()


async def test_a_full_workspace_warns_first_and_then_takes_no_more(sandbox: House) -> None:
    bound(sandbox, workspace_mb=10)
    ana = sandbox.person()
    (ana.workspace / "first").write_bytes(os.urandom(9 * MB))
    told = await sandbox.sh(ana, "echo fine > second; cat second")
    assert "nearly full (9 of 10 MB)" in told
    assert "fine" in told
    (ana.workspace / "third").write_bytes(os.urandom(2 * MB))
    told = await sandbox.sh(ana, "echo more > fourth; cat fourth")
    assert "The workspace is full (11 of 10 MB)" in told
    assert (ana.workspace / "fourth").stat().st_size == 0
    await sandbox.sh(ana, "rm third")
    assert not (ana.workspace / "third").exists()
    assert "fine" in await sandbox.sh(ana, "echo fine > fifth; cat fifth")


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/run", "/dev/shm", "/dev", "/", "$TMPDIR"])
async def test_no_folder_in_memory_is_without_a_bound(sandbox: House, place: str) -> None:
    bound(sandbox, tmp_mb=8, workspace_mb=8)
    told = await sandbox.sh(
        sandbox.person(),
        f"for n in 1 2 3 4 5 6; do head -c 10000000 /dev/zero > {place}/big$n; done; ls; sleep 1; echo ok",
    )
    written = await sandbox.sh(sandbox.person(), f"du -sm {place} 2>/dev/null || true")
    if place == "$TMPDIR" and sandbox.config.terminal.others == "landlock":
        assert "terminal.limits.workspace_mb" in told or "workspace" in told
    else:
        assert "No space left" in told or "Read-only" in told or "denied" in told or "File size" in told
    assert "survived" not in written


@needs("python3")
async def test_temporary_files_go_with_their_command(sandbox: House) -> None:
    ana = sandbox.person()
    told = await sandbox.sh(ana, 'f=$(mktemp); echo "$f"; echo kept > "$f"; cat "$f"')
    assert "kept" in told
    name = told.splitlines()[1]
    assert "no such" in (await sandbox.sh(ana, f"cat {name} || echo no such")).lower()
    assert not [path for path in ana.workspace.rglob("*") if path.is_file()]


EVERYDAY = """
set -e
touch a; chmod 640 a; chmod u+x a; touch -d 2001-02-03 a
cp -p a b; [ b -nt a ] && exit 9
mkdir -p d/e; chmod 700 d; touch d/e/f; ln -s d/e/f l; chmod 600 l
tar cf t.tar d b; mkdir o; tar xf t.tar -C o
test "$(stat -c %Y o/b)" = "$(stat -c %Y b)"
test "$(stat -c %a d/e/f)" = 600
chown "$(id -u):$(id -g)" a
rm -rf d o
echo all well
"""


@needs("tar")
async def test_modes_and_times_of_own_files_change_as_usual(sandbox: House) -> None:
    told = await sandbox.sh(sandbox.person(), EVERYDAY)
    assert told == "Exit code 0.\nall well"


@needs("git")
async def test_git_commits_in_a_sandbox(sandbox: House) -> None:
    told = await sandbox.sh(
        sandbox.person(),
        "git init -q r && cd r && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm first && "
        "git log --format=%s && git status --short && git gc -q && git fsck",
    )
    assert told.startswith("Exit code 0.\nfirst")


async def test_bits_that_a_container_set_are_taken_away(house: House) -> None:
    ana = house.person()
    old, new = ana.workspace / "old", ana.workspace / "new"
    old.touch()
    old.chmod(0o4755)
    since = old.stat().st_ctime + 0.001
    await asyncio.sleep(0.05)
    new.touch()
    new.chmod(0o6755)
    assert clear_set_id_bits(ana.workspace, since) == 1
    assert stat.S_IMODE(new.stat().st_mode) == 0o755
    assert stat.S_IMODE(old.stat().st_mode) == 0o4755


def test_memory_is_never_more_than_the_machine_can_give() -> None:
    assert limits_of(LimitsConfig(memory_mb=10_000_000)).memory < total_memory()
    assert limits_of(LimitsConfig(memory_mb=0)).memory == 0
    assert limits_of(LimitsConfig(), is_owner=True).workspace == 0


async def test_the_processes_below_one_are_found() -> None:
    shell = await asyncio.create_subprocess_exec("sh", "-c", "sleep 60 & sleep 60; true")
    try:
        async with asyncio.timeout(20):
            while len(descendants(shell.pid)) != 3:  # noqa: ASYNC110 - another process tells nobody
                await asyncio.sleep(0.01)
        assert len(descendants(shell.pid, most=1)) >= 2
    finally:
        for pid in descendants(shell.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        await shell.wait()

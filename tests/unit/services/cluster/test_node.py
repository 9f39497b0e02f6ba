"""The name of a node, and the id that its home remembers."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from hermes.services.cluster.node import describe_this, name_of, predecessor, remember


def test_a_node_is_called_after_its_machine_and_a_second_home_there_differs(tmp_path: Path) -> None:
    assert name_of(Path.home() / ".hermes") == platform.node()
    first, second = name_of(tmp_path / "a"), name_of(tmp_path / "b")
    assert first != second
    assert first.startswith(f"{platform.node()}-")
    assert name_of(tmp_path / "a") == first, "the same after a restart"
    assert name_of(tmp_path / "a", "anna") == "anna"


def test_a_home_remembers_the_node_that_had_it_last(tmp_path: Path) -> None:
    assert predecessor(tmp_path) == ""
    remember(tmp_path, describe_this(tmp_path, "inc_1", name="anna", version="1", schema_version=6))
    assert predecessor(tmp_path) == "inc_1"


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '"x"', "\0"])
def test_a_damaged_record_of_the_last_node_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "node.json").write_text(content)
    assert predecessor(tmp_path) == ""

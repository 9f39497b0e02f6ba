"""docs/figures.md: each measurement keeps to its own section."""

from __future__ import annotations

from pathlib import Path

from bench import figures


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "figures.md"
    file.write_text("# Figures\n\nWritten by a test.\n", encoding="utf-8")
    figures.record("Chaos", [("lost", "0")], file=file)
    figures.record("Budgets", [("idle", "60 MB")], file=file)
    before = file.read_text("utf-8").partition("## Budgets")[2]
    figures.record("Chaos", [("lost", "1")], file=file)
    text = file.read_text("utf-8")
    assert text.startswith("# Figures\n\nWritten by a test.\n\n## Chaos\n\nCommit ")
    assert "| lost | 1 |" in text
    assert "| lost | 0 |" not in text
    assert text.partition("## Budgets")[2] == before
    assert text.endswith("|\n")


def test_the_load_of_the_machine_stands_beside_the_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.md"
    figures.record("Chaos", [("lost", "0")], file=file)
    assert "cores, load " in file.read_text("utf-8")

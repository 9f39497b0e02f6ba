"""Whose folder is whose: names that never meet, and folders from before that stay where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.workspace.folders import CLAIMS_FILE, WorkspaceFolders, folder_name

SLASHED, PLAIN = "p_x_a/b", "p_x_a_b"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspaces"
    root.mkdir()
    return root


def loaded(root: Path, *people: str) -> WorkspaceFolders:
    folders = WorkspaceFolders(root)
    folders.load(people)
    return folders


@pytest.mark.parametrize("person_id", ["p_telegram_42", "p_api_key:phone", "p_slack_U0.1-2", "p_x_@ana:example.org"])
def test_an_ordinary_id_is_the_name_of_its_folder(person_id: str) -> None:
    assert folder_name(person_id) == person_id


def test_a_folder_from_before_stays_with_the_person_who_has_it(root: Path) -> None:
    (root / PLAIN).mkdir()
    for _ in range(2):  # also after a restart
        folders = loaded(root, SLASHED)
        assert folders.of(SLASHED) == root / PLAIN
    assert (root / CLAIMS_FILE).stat().st_mode & 0o777 == 0o600
    later = loaded(root, SLASHED, PLAIN)
    assert later.of(SLASHED) == root / PLAIN
    assert later.of(PLAIN) not in (root / PLAIN, root / folder_name(SLASHED))


def test_a_folder_that_two_people_shared_goes_to_the_one_it_is_named_after(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (root / PLAIN).mkdir()
    folders = loaded(root, SLASHED, PLAIN)
    assert folders.of(PLAIN) == root / PLAIN
    assert folders.of(SLASHED) == root / folder_name(SLASHED)
    assert "Workspace separated" in caplog.text


def test_of_two_people_whose_folder_from_before_was_one_only_the_first_keeps_it(root: Path) -> None:
    (root / "p_x_a_b_c").mkdir()
    folders = loaded(root, "p_x_a/b_c", "p_x_a_b/c")
    kept = {folders.of("p_x_a/b_c"), folders.of("p_x_a_b/c")}
    assert len(kept) == 2
    assert root / "p_x_a_b_c" in kept


def test_a_home_without_folders_claims_nothing(root: Path) -> None:
    folders = loaded(root, SLASHED, PLAIN)
    assert folders.of(SLASHED) != folders.of(PLAIN)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"p_x_a/b": "../../etc"}', '{"p_x_a/b": 1}', '{"p_x_a/b": "nobody"}'])
def test_a_damaged_list_of_claims_leads_nowhere_else(root: Path, text: str) -> None:
    (root / CLAIMS_FILE).write_text(text)
    assert loaded(root).of(SLASHED) == root / folder_name(SLASHED)

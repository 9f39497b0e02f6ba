"""The shipped skills load, and every command, setting, file and link that they name exists."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.skills.library import INDEX_CHARACTERS, SkillLibrary
from hermes.agent.skills.parse import read_skill, same_name
from hermes.agent.skills.scan import scan
from hermes.agent.skills.sync import BUNDLED
from hermes.app.tools import COMMANDS
from hermes.cli.commands import BARE
from hermes.cli.commands import COMMANDS as CLI
from hermes.cli.main import load, parser_of
from hermes.config import find_key
from hermes.config.layers import Loaded
from hermes.config.layers import load as load_config
from hermes.services.adapters.registry import find_platforms
from hermes.services.commands.base import collect

PAGES = sorted(BUNDLED.rglob("*.md"))
SKILLS = sorted(path.parent for path in PAGES if path.name == "SKILL.md")
OF_THE_HOME = frozenset(
    {".env", "config.yaml", "state.db", "sessions", "skills", "logs", "run", "models", "recoveries.jsonl"}
)


def ids(path: Path) -> str:
    return str(path.relative_to(BUNDLED))


def code_of(page: Path) -> list[str]:
    """What stands as code: each span, and each line of a block."""
    text = page.read_text("utf-8")
    blocks = re.findall(r"^ *```(?:sh|bash)?\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE))
    return [" ".join(span.split()) for span in [*spans, *(line for block in blocks for line in block.splitlines())]]


def commands_of(page: Path) -> Iterator[list[str]]:
    """Each ``hermes …`` that is named, as words."""
    for code in code_of(page):
        for command in re.split(r"\s(?:\||&&|;)\s", code):
            words = shlex.split(re.sub(r"^(\w+=\S+ )+", "", command.replace("…", "")), comments=True)
            if words[:1] == ["hermes"]:
                yield words[1:]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("home")
    return load_config(folder, {}, folder, tuple(find_platforms().manifests.values()))


def test_there_is_a_dozen_and_each_can_be_called() -> None:
    names = [read_skill(folder).name for folder in SKILLS]
    assert len(names) >= 12
    assert names == [folder.name for folder in SKILLS]
    assert all(re.fullmatch(r"[a-z][a-z-]{1,31}", name) for name in names)
    assert not {same_name(name) for name in names} & collect(COMMANDS).keys()


@pytest.mark.parametrize("folder", SKILLS, ids=ids)
def test_a_shipped_skill_says_when_to_use_it_and_nothing_speaks_against_it(folder: Path) -> None:
    skill = read_skill(folder)
    assert len(f"- {skill.name}: {skill.description}") <= 88
    assert "## When to Load" in (folder / "SKILL.md").read_text("utf-8")
    assert (folder / "SKILL.md").stat().st_size < 6_000
    assert scan(folder).refusals == ()
    for related in skill.related:
        assert (BUNDLED / related / "SKILL.md").is_file(), related


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_link_leads_to_a_file_of_the_same_skill(page: Path) -> None:
    skill = next(folder for folder in SKILLS if page.is_relative_to(folder))
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
        target = (page.parent / link).resolve()
        assert target.is_file(), link
        assert target.is_relative_to(skill), link


def test_every_reference_is_linked_from_its_skill() -> None:
    for page in PAGES:
        if page.name != "SKILL.md":
            skill = next(folder for folder in SKILLS if page.is_relative_to(folder))
            assert f"({page.relative_to(skill)})" in (skill / "SKILL.md").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_command_of_hermes_can_be_typed_as_it_stands(page: Path, loaded: Loaded) -> None:
    for words in commands_of(page):
        assert not re.search(r"[<\[]", " ".join(words)), words
        if words[:1] == ["-z"] or words == []:
            continue
        name, *rest = words
        assert name in CLI, words
        complaint = io.StringIO()
        with contextlib.redirect_stderr(complaint):
            try:
                parser_of(name, load(name)).parse_args(rest or ([BARE[name]] if name in BARE else []))
            except SystemExit:
                pytest.fail(f"hermes {' '.join(words)}: {complaint.getvalue()}")
        if name == "config" and rest[:1] and rest[0] in {"set", "get", "explain"} and rest[1] not in {"KEY"}:
            find_key(loaded, rest[1])


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_slash_command_and_setting_exists(page: Path, loaded: Loaded) -> None:
    known = {*collect(COMMANDS), *(folder.name for folder in SKILLS), "weekly-report", "newbot"}
    for code in code_of(page):
        if slash := re.match(r"/([a-z][a-z-]*)(?:\s|$)", code):
            assert slash[1] in known, code
        is_key = re.fullmatch(r"(platforms|agent|model|providers|delivery|database|api|sessions)\.[a-z_.]+", code)
        if is_key and code != "platforms.telegram.accounts":
            find_key(loaded, code)
        if re.fullmatch(r"(TELEGRAM|API_SERVER|GATEWAY|OPENAI|OPENROUTER)_[A-Z_]+", code):
            find_key(loaded, code)


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_file_of_the_home_that_is_named_exists(page: Path) -> None:
    for name in re.findall(r"~/\.hermes/([\w.]+)", page.read_text("utf-8")):
        assert name.rstrip(".") in OF_THE_HOME, name


def test_tools_that_are_named_exist() -> None:
    from hermes.agent.toolkit.schema import tools_of
    from hermes.app.tools import TOOLS

    names = {tool.name for tool in tools_of(*TOOLS)}
    for page in PAGES:
        for name in re.findall(r"the tool `(\w+)`", page.read_text("utf-8")):
            assert name in names, name


def test_all_of_them_fit_into_the_prompt(tmp_path: Path) -> None:
    library = SkillLibrary(tmp_path)
    assert len(library.bring_in().new) == len(SKILLS)
    index = library.index("telegram", "owner")
    assert library.troubles() == ()
    assert len(index) <= 1_100 < INDEX_CHARACTERS
    assert "more:" not in index

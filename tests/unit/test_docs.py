"""Docs that lag behind fail here: every command, setting and platform is mentioned, and no machine's own paths."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from hermes.app import tools as app_tools
from hermes.cli.commands import BARE, COMMANDS
from hermes.cli.main import ENV_FILE_OPTION, load, parser_of
from tests.contract.adapters.conftest import FAKES

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ROOT / "src" / "hermes" / "platforms"


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def example_settings() -> list[str]:
    return re.findall(r"^# ([A-Z][A-Z0-9_]+)=", text_of(".env.example"), re.MULTILINE)


def tracked_files() -> list[Path]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed here (apt install git), so there is no list of tracked files")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, text=True, timeout=10
    )
    if listed.returncode:
        pytest.skip("not a git clone, so there is no list of tracked files")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_operating_guide(command: str) -> None:
    assert f"hermes {command}" in text_of("docs/operating.md")


READMES = ("README.md", "README.zh.md")


@pytest.mark.parametrize("page", READMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str, page: str) -> None:
    assert f"hermes {command}" in text_of(page)


def test_both_readmes_name_the_same_commands_files_and_pages_and_each_other() -> None:
    english, chinese = map(text_of, READMES)
    assert "中文: [README.zh.md](README.zh.md)" in english[:1500]
    assert "English: [README.md](README.md)" in chinese[:1500]
    for pattern in (r"^    (\./scripts/\S+(?: \w+)?)", r"^\| `(hermes[a-z -]*)", r"^- \[([^\]]+)\]"):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE), pattern


def test_docs_name_no_command_that_does_not_exist() -> None:
    for page in (*READMES, "docs/operating.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"`(?:\./scripts/)?hermes ([a-z][a-z-]*)", text_of(page)))
        assert named <= COMMANDS.keys(), page


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "monitoring").glob("*.md"),
        *PLATFORMS.glob("*/README.md"),
    )
)
TYPED = re.compile(r"(?<![\w/.-])(?:\./scripts/)?hermes (?:-p \S+ )?([a-z][a-z-]*)((?: [^|;&()\n]*)?)")


@cache
def options_of(command: str, verb: str = "") -> frozenset[str]:
    """The verbs of a command and its options; with a verb the options of both."""
    parser = parser_of(command, load(command))
    nested = next((found for found in parser._actions if isinstance(found, argparse._SubParsersAction)), None)
    verbs = nested.choices if nested is not None else {}
    actions = [*parser._actions, *(verbs[verb]._actions if verb in verbs else ())]
    return frozenset({*verbs, *(option for action in actions for option in action.option_strings)})


def unknown_words(typed: str) -> list[str]:
    """The verbs and options of the commands in a text that no command has."""
    unknown = []
    for command, rest in TYPED.findall(typed):
        if command not in COMMANDS:
            continue  # `docker exec hermes …`, or a sentence: a test of its own looks at the names of commands
        words = re.split(r" {2,}|#", rest.strip())[0].split()
        verb = words[0] if words and words[0] in options_of(command) else BARE.get(command, "")
        known = options_of(command, verb) | {ENV_FILE_OPTION}
        has_verbs = any(not option.startswith("-") for option in options_of(command))
        named = words[:1] if has_verbs and re.fullmatch(r"[a-z-]+", "".join(words[:1])) else []
        options = [found[0] for word in words if (found := re.match(r"--[a-z][a-z-]+", word))]
        unknown += [f"hermes {command} {word}" for word in [*named, *options] if word not in known]
    return unknown


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_on_a_page_can_be_typed(page: str) -> None:
    text = text_of(page)
    lines = re.findall(r"^(?:    | *\$ )(?:.* )?(?:\./scripts/)?hermes .*$", text, re.MULTILINE)
    spans = [span.replace("\n", " ") for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    assert [word for typed in (*lines, *spans) for word in unknown_words(typed)] == []


def test_a_command_line_that_cannot_be_typed_is_found() -> None:
    assert unknown_words("hermes cron create 30m tea --deliver telegram") == []
    assert unknown_words("hermes cron make tea") == ["hermes cron make"]
    assert unknown_words("hermes backup restore latest --again") == ["hermes backup --again"]
    assert unknown_words("hermes doctor --mend, or hermes status") == ["hermes doctor --mend"]


def test_every_route_on_a_page_exists() -> None:
    contract = json.loads(text_of("tests/unit/servers/api/openapi.golden.json"))
    routes = {re.sub(r"\{\w+\}", "{}", path) for path in contract["paths"]}
    for page in ("docs/api.md", "docs/dashboard.md", "docs/clients.md", "docs/jobs.md", "docs/kanban.md"):
        named = re.findall(r"`(?:[A-Z]+ )?(/(?:v1|api)/[\w{}/-]+)", text_of(page))
        missing = [path for path in named if re.sub(r"\{\w+\}", "{}", path) not in routes]
        assert not missing, page


def test_every_slash_command_is_on_the_page_about_chats() -> None:
    modules = [importlib.import_module(name) for name in app_tools.COMMANDS]
    sources = "\n".join(Path(str(module.__file__)).read_text("utf-8") for module in modules)
    names = re.findall(r"@command\(\s*\"(\w+)\"", sources)
    assert len(names) > 30
    assert [name for name in names if f"`/{name}" not in text_of("docs/chats.md")] == []


def test_every_tool_is_on_the_page_about_tools() -> None:
    modules = [importlib.import_module(name) for name in app_tools.TOOLS]
    sources = "\n".join(Path(str(module.__file__)).read_text("utf-8") for module in modules)
    names = re.findall(r"@tool\([^)]*\)\nasync def (\w+)", sources)
    assert len(names) > 25
    assert [name for name in names if f"`{name}`" not in text_of("docs/tools.md")] == []


def test_every_example_setting_is_explained() -> None:
    page = ROOT / "docs" / "configuration.md"
    missing = [name for name in example_settings() if name not in page.read_text("utf-8")]
    assert not missing


def test_example_settings_hold_no_value_that_would_take_effect() -> None:
    live = [line for line in text_of(".env.example").splitlines() if line and not line.startswith("#")]
    assert not live
    assert len(example_settings()) == len(set(example_settings())) >= 20


def platform_folders() -> list[Path]:
    return sorted(path.parent for path in PLATFORMS.glob("*/__init__.py") if path.parent.name != "shared")


@pytest.mark.parametrize("folder", platform_folders(), ids=lambda folder: folder.name)
def test_every_platform_has_a_page_with_its_checklist(folder: Path) -> None:
    page = (folder / "README.md").read_text("utf-8").casefold()
    for point in ("connect", "text", "media", "threads", "buttons", "limits", "known gaps"):
        assert point in page, f"{folder.name}/README.md says nothing about {point}"


def test_every_platform_is_registered() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    registered = project["entry-points"]["hermes.platforms"]
    assert registered == {folder.name: f"hermes.platforms.{folder.name}:MANIFEST" for folder in platform_folders()}


def platform_rows() -> dict[str, list[str]]:
    rows = re.findall(r"^\| \[[^|]* `(\w+)` \|(.*)\|$", text_of("docs/platforms.md"), re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def test_the_table_of_platforms_says_what_their_adapters_say() -> None:
    rows, known = platform_rows(), {fake.platform: fake.capabilities for fake in FAKES}  # type: ignore[attr-defined]
    assert rows.keys() == {folder.name for folder in platform_folders()} - {"local"}
    for name, (_how, _needs, threads, buttons, edits, media, _missed, redelivers) in rows.items():
        can = known[name]
        said = [cell.partition(":")[0] for cell in (threads, buttons, edits, media, redelivers)]
        facts = (can.threads, can.buttons, can.edits, can.media, can.redelivers)
        assert said == ["yes" if fact else "no" for fact in facts], name


def test_the_page_on_platforms_shows_the_example_as_it_is() -> None:
    files = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*") if path.suffix in {".py", ".toml"}]
    shown = re.findall(r"```(?:python|toml)\n(.*?)\n```", text_of("docs/platforms.md"), re.DOTALL)
    assert len(shown) >= 5
    for part in [part for block in shown for part in block.split("\n\n    …\n\n")]:
        assert any(part in text for text in files), part


def test_every_decision_has_its_three_parts() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text("utf-8")
        assert all(part in text for part in ("Context", "Decision", "Consequence")), page.name


def test_links_between_pages_lead_somewhere() -> None:
    for page in [path for path in tracked_files() if path.suffix == ".md" and path.exists()]:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_no_file_holds_a_path_of_somebodys_machine() -> None:
    # Put together here, so that this file does not find itself.
    machine = re.compile(rb"(?<![\w.$}~-])/(?:" + b"|".join((b"work", b"root")) + rb")/\w")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()[:120]!r}"
        for path in tracked_files()
        if path.is_file()
        for line in path.read_bytes().splitlines()
        if machine.search(line)
    ]
    assert not found


def test_pins_cover_what_the_project_declares() -> None:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    pinned = {_plain(line.partition("==")[0]) for line in text_of("requirements/core.txt").splitlines() if "==" in line}
    declared = {_plain(re.split(r"[<>=\[]", name)[0]) for name in project["dependencies"]}
    assert declared <= pinned


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()

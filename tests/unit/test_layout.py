"""The layout promises: no import circles, no crowded folders, no long modules, one class per name, reasons, a map."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.unit.syntax_trees import trees

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "hermes"
MAX_MODULES = 25
"""``*.py`` in one folder, ``__init__.py`` too."""
MAX_LINES = 500
TABLES = {"core/i18n/en.py", "core/i18n/zh.py"}
"""All sentences of one language, imported at every start: one long table costs less than several."""

REASON = re.compile(r"# (ruff: )?noqa: [A-Z0-9]+(, [A-Z0-9]+)* - [`\w]|# type: ignore\[[a-z, -]+\] +# [`\w]")
NO_NAMES = {"told", "shown", "kept", "said", "asked"}
EMPTY_NAMES = {"told", "said", "meant", "its", "them", "somebody", "whoever"}
"""Write the noun instead: fields, data, record, status, answer, text, message, reason, output, choice."""


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of ours by its dotted name."""
    return {
        f"hermes.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__"): tree
        for path, tree in trees().items()
    }


def imports_of(name: str) -> set[str]:
    """What a module imports of ours, inside functions and for type checking too."""
    known = modules()
    found: set[str] = set()
    for node in ast.walk(known[name]):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
    return {each for each in found if each in known} - {name}


def test_no_module_imports_itself_through_others() -> None:
    circle: list[str] = []
    try:
        TopologicalSorter({name: imports_of(name) for name in modules()}).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert not circle, f"import circle: {' -> '.join(circle)}"


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    crowded = {}
    for folder in (PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())):
        count = sum(1 for _ in folder.glob("*.py"))
        if count > MAX_MODULES:
            crowded[folder.relative_to(PACKAGE).as_posix()] = count
    assert not crowded


def test_no_module_is_longer_than_a_reader_keeps_in_mind() -> None:
    lines = {
        path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8").count("\n") for path in PACKAGE.rglob("*.py")
    }
    long = {name for name, count in lines.items() if count > MAX_LINES}
    assert long == TABLES


def test_no_function_or_class_is_named_by_a_participle() -> None:
    bad = [
        f"{module}.{node.name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and NO_NAMES & set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", node.name).lower()))
    ]
    assert not bad


def test_no_variable_is_named_by_a_word_that_says_nothing() -> None:
    bad = {
        f"{module}:{node.lineno} {name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.arg | ast.Attribute)
        for name in [bound_name(node)]
        if name.strip("_") in EMPTY_NAMES
    }
    assert not bad


def bound_name(node: ast.Name | ast.arg | ast.Attribute) -> str:
    """The name that a node gives to a variable, a parameter or an attribute."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            return str(name)
        case _:
            return ""


def test_no_class_name_stands_for_two_classes_outside_platforms() -> None:
    places = defaultdict(list)
    for module, tree in modules().items():
        if not module.startswith("hermes.platforms."):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name.lstrip("_")].append(module)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_every_ignored_rule_carries_its_reason() -> None:
    silent = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in PACKAGE.rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"# (ruff: )?noqa|# type: ignore", line) and not REASON.search(line)
    ]
    assert not silent


def test_every_package_says_its_idea_in_one_sentence() -> None:
    silent = [
        name
        for name, tree in modules().items()
        if (SOURCES / name.replace(".", "/")).is_dir() and not ast.get_docstring(tree)
    ]
    assert not silent


def test_contributing_maps_every_folder() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    mapped = set(re.findall(r"^\| `src/hermes/([\w/]+)`", page, re.MULTILINE))
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")} - {"."}
    platforms = {name for name in folders if re.fullmatch(r"platforms/(?!shared)\w+", name)}
    assert folders - platforms == mapped


@pytest.mark.parametrize("page", ["docs/flows.md", "CONTRIBUTING.md"])
def test_every_path_on_the_page_exists(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(r"`((?:[\w-]+/)+[\w.-]+\.py)`", text)
    assert named
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT, PACKAGE))]
    assert not missing


def test_every_file_of_tests_that_begins_first_exists() -> None:
    text = (ROOT / "scripts" / "_workers.py").read_text("utf-8")
    names = re.findall(r'^    "(tests/[^"]+)",$', text, re.MULTILINE)
    assert names
    assert [name for name in names if not (ROOT / name).is_file()] == []

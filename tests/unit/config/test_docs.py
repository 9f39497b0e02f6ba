"""docs/configuration.md names every setting there is, its environment names and its default."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from hermes.config import KNOWN, format_value
from hermes.config.keys import COMMON, PROVIDER, Schema
from hermes.config.layers import load
from hermes.config.values import Key, Kind
from hermes.services.adapters.registry import find_platforms
from tests.unit.config.samples import Home

pytestmark = pytest.mark.one_python

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "configuration.md").read_text("utf-8")
MANIFESTS = tuple(find_platforms().manifests.values())
PLACES = {
    "reset_by_platform": "<platform>",
    "reset_by_kind": "<kind>",
    "timeout_by_platform": "<platform>",
    "platform_disabled": "<platform>",
    "providers": "<name>",
    "model_routes": "<name>",
    "tools": "<platform>",
    "toolsets": "<name>",
    "context_windows": "<model>",
    "personalities": "<name>",
    "chats": "<chat>",
    "routes": "<name>",
}


def documented() -> dict[str, Key]:
    """Every key by the name the page gives it: what all platforms share stands there once."""
    shared = {key.path[0] for key in COMMON}
    found = {}
    for key in Schema(MANIFESTS).keys.values():
        if "accounts" in key.path or (key.path[0] == "platforms" and key.path[-1] in shared):
            continue
        parts = [
            PLACES[before] if part == "*" else part for before, part in zip(("", *key.path), key.path, strict=False)
        ]
        found[".".join(parts)] = key
    return found | {f"platforms.<platform>.{key}": key for key in COMMON}


KEYS = documented()


REQUIRED = {
    f"platforms.{manifest.id}.{setting.key}"
    for manifest in MANIFESTS
    for setting in manifest.settings
    if setting.required
}


def takes(name: str, key: Key) -> str:
    if key.kind is Kind.CHOICE:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    if key.kind is Kind.URL and "http" not in key.choices:
        return ", ".join(f"`{scheme}://`" for scheme in key.choices)
    if key.kind in (Kind.WHOLE, Kind.NUMBER) and math.isfinite(key.low):
        return f"{key.low:,} to {key.high:,}"
    return ("proxy" if "socks5" in key.choices else str(key.kind)) + (", required" if name in REQUIRED else "")


def row(name: str, key: Key) -> str:
    """The row of a setting as its declaration has it. The page may go on after the last word."""
    env = ", ".join(f"`{variable}`" for variable in key.env) or "–"
    default = format_value(key, key.default)
    shown = "–" if default == "not set" else f"`{default}`"
    return f"| `{name}` | {env} | {takes(name, key)} | {shown} | {key.help.removesuffix('.')}"


@pytest.mark.parametrize("name", KEYS)
def test_every_setting_has_a_row_that_says_what_its_declaration_says(name: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1, f"docs/configuration.md needs this row: {row(name, KEYS[name])} |"
    assert re.match(re.escape(row(name, KEYS[name])) + r"\W", rows[0]), f"It should begin: {row(name, KEYS[name])}"


def test_the_page_names_no_setting_that_does_not_exist() -> None:
    assert set(
        re.findall(r"^\| `([a-z][^`]*\.[^`]*|language|timezone|always_log_local)` \|", PAGE, re.MULTILINE)
    ) <= set(KEYS)


def test_every_known_provider_is_in_its_table() -> None:
    for provider in KNOWN.values():
        assert f"| `{provider.name}` |" in PAGE
        assert f"| `{provider.default_model}` |" in PAGE or not provider.default_model
        assert provider.base_url in PAGE
    assert len(PROVIDER) == 7


def test_the_examples_on_the_page_are_read_without_a_word(tmp_path: Path) -> None:
    home = Home(tmp_path)
    found = re.findall(r"```(yaml|sh|json)\n(.*?)```", PAGE, re.DOTALL)
    blocks = {kind: "\n".join(text for other, text in found if other == kind) for kind, _ in found}
    home.write(yaml=blocks["yaml"], env=blocks["sh"], json=blocks["json"])
    loaded = load(home.path, {}, home.cwd, MANIFESTS)
    assert loaded.problems == ()
    assert loaded.config.model.provider == "openkey"
    assert set(loaded.config.platforms["telegram"]) == {"main", "work"}
    assert len(loaded.config.chats) == 3


def test_the_page_says_which_settings_wait_for_a_restart() -> None:
    told = {line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `") and "needs a restart" in line}
    assert told == {name for name, key in KEYS.items() if key.needs_restart}
    assert "api.max_request_bytes" in told

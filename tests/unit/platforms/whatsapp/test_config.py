"""What is settled, and the words for what cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.config import load
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.platforms.whatsapp import MANIFEST
from hermes.platforms.whatsapp.config import Mode, WhatsAppConfig, person_id


def of(account: str = "main", **values: Any) -> WhatsAppConfig:
    defaults = {setting.key: setting.default for setting in MANIFEST.settings}
    folder = Path("home/whatsapp")
    return WhatsAppConfig.of(
        AdapterParts(account, {**defaults, **values}, None, lambda: None, {}, folder=folder, proxy_for=lambda _: "p")
    )


def test_the_defaults_are_the_chat_with_oneself_and_a_prefix() -> None:
    config = of()
    assert (config.mode, config.prefix, config.install_seconds) == (Mode.SELF_CHAT, "⚕ *Hermes Agent*\n", 600)
    assert config.places.session == Path("home/whatsapp/session")
    assert config.places.bridges == Path("home/whatsapp/bridge")
    assert config.proxy == "p"


def test_a_further_account_has_folders_of_its_own_and_the_same_bridge() -> None:
    places = of("work").places
    assert places.session == Path("home/whatsapp/accounts/work/session")
    assert places.bridges == Path("home/whatsapp/bridge")
    assert of(bridge_folder="/opt/bridges").places.bridges == Path("/opt/bridges")


def test_the_prefix_may_be_another_or_none() -> None:
    assert of(reply_prefix="🤖\\n\\n").prefix == "🤖\n\n"
    assert of(reply_prefix="none").prefix == of(reply_prefix="").prefix == ""


@pytest.mark.parametrize(
    "values, words",
    [
        ({"mode": "robot"}, "WHATSAPP_MODE"),
        ({"reply_prefix": "x" * 300}, "WHATSAPP_REPLY_PREFIX"),
        ({"mention_patterns": ["("]}, "WHATSAPP_MENTION_PATTERNS"),
        ({"npm_install_timeout": 0}, "WHATSAPP_NPM_INSTALL_TIMEOUT"),
        ({"npm_install_timeout": "soon"}, "WHATSAPP_NPM_INSTALL_TIMEOUT"),
    ],
)
def test_what_cannot_be_used_is_told_by_its_name(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        of(**values)


@pytest.mark.parametrize(
    "typed, number",
    [
        ("+1 (555) 123-4567", "15551234567"),
        ("15551234567@s.whatsapp.net", "15551234567"),
        (" 4915112345678 ", "4915112345678"),
        ("*", "*"),
        ("2000@lid", "2000@lid"),
        ("Ana", "Ana"),
    ],
)
def test_a_number_is_read_however_it_is_typed(typed: str, number: str) -> None:
    assert person_id(typed) == number


def test_only_enabled_makes_it_wanted_and_lists_forgive_how_numbers_are_typed(tmp_path: Path) -> None:
    rules = {"WHATSAPP_MODE": "bot", "WHATSAPP_ALLOWED_USERS": "+49 155 50000007, 15551234567"}
    account = load(tmp_path, rules, tmp_path, (MANIFEST,)).config.account("whatsapp")
    assert account is not None
    assert not account.is_ready
    account = load(tmp_path, {**rules, "WHATSAPP_ENABLED": "true"}, tmp_path, (MANIFEST,)).config.account("whatsapp")
    assert account is not None
    assert account.is_ready
    assert account.access.allowed_users == {"4915550000007", "15551234567"}

"""Every help text of a setting exists in Chinese."""

from __future__ import annotations

from pathlib import Path

from hermes.config import known_keys, load
from hermes.core.i18n.settings_zh import HELPS, help_in_chinese
from hermes.services.adapters.registry import BUILT_IN, find_platforms


def test_every_help_of_a_setting_has_its_chinese_and_no_other_text_is_kept(tmp_path: Path) -> None:
    manifests = tuple(find_platforms(BUILT_IN).manifests.values())
    helps = {key.help for key in known_keys(load(tmp_path, {}, tmp_path, manifests)).values() if key.help}
    assert [text for text in sorted(helps) if help_in_chinese(text) == text] == []
    assert [text for text in HELPS if text not in helps] == []


def test_code_in_a_help_stays_as_it_is() -> None:
    for text, said in HELPS.items():
        assert set(text.split("`")[1::2]) == set(said.split("`")[1::2]), text

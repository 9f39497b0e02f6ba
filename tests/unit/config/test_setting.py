"""A field of a config class declares a setting; its key and its value follow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hermes.config.setting import by_name, declared_by, keys_of, proxy_address, section, sections, setting
from hermes.config.values import Key, Kind
from hermes.core.dataclasses import dataclass
from hermes.core.lane import BusyMode
from hermes.core.secret import Secret


@dataclass(frozen=True, slots=True)
class Limits:
    wait_seconds: float = setting(5.0, "how long", env="WAIT_SECONDS OLD_WAIT", low=1, high=60)
    share: float = setting(0.5, "how much")
    count: int = setting(3, "how often")


@dataclass(frozen=True, slots=True)
class Example:
    made: int = 0
    is_on: bool = setting(False, "whether")
    names: tuple[str, ...] = setting((), "who")
    key: Secret | None = setting(None, "its key")
    mode: BusyMode = setting(BusyMode.QUEUE, "how")
    way_out: str = proxy_address("the way out", env="WAY_OUT")
    url: str = setting("", "where", kind=Kind.URL, choices=("http",), at="place.url")
    limits: Limits = section(Limits)
    level: Limits | None = section(Limits, at="", make=lambda: None, inherits=True)
    each: Mapping[str, Limits] = sections(Limits, inherits=True)
    windows: Mapping[str, int] = by_name("tokens", low=1)


KEYS = {str(key): key for key in keys_of(Example, ("top",))}


def test_kind_and_default_follow_from_the_type_and_the_default_of_the_field() -> None:
    kinds = {name: (key.kind, key.default) for name, key in KEYS.items()}
    assert kinds["top.is_on"] == (Kind.FLAG, False)
    assert kinds["top.names"] == (Kind.LIST, ())
    assert kinds["top.key"] == (Kind.SECRET, None)
    assert kinds["top.limits.wait_seconds"] == (Kind.DURATION, 5.0)
    assert kinds["top.limits.share"] == (Kind.NUMBER, 0.5)
    assert kinds["top.limits.count"] == (Kind.WHOLE, 3)
    assert kinds["top.windows.*"] == (Kind.WHOLE, None)
    assert KEYS["top.mode"] == Key(("top", "mode"), Kind.CHOICE, BusyMode.QUEUE, choices=tuple(BusyMode), help="how")


def test_a_field_without_a_declaration_is_no_setting() -> None:
    assert "top.made" not in KEYS
    assert "made" not in declared_by(Example)


def test_a_setting_stands_where_its_declaration_says() -> None:
    assert KEYS["top.place.url"].choices == ("http",)
    assert "top.url" not in KEYS
    assert KEYS["top.limits.wait_seconds"].env == ("WAIT_SECONDS", "OLD_WAIT")


def test_a_section_that_inherits_has_neither_defaults_nor_variables_of_its_own() -> None:
    for name in ("top.wait_seconds", "top.each.*.wait_seconds"):
        assert (KEYS[name].default, KEYS[name].env, KEYS[name].high) == (None, (), 60)


def test_repr_of_a_snapshot_leaves_addresses_out() -> None:
    assert "s3cret" not in repr(Example(way_out="http://me:s3cret@proxy", url="http://me:s3cret@host"))


def test_a_type_that_says_nothing_of_its_kind_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Unclear:
        what: bytes = setting(b"", "what")

    with pytest.raises(KeyError, match="bytes"):
        list(keys_of(Unclear))

"""Where secrets are in what an owner sets: a setting that is added later is found by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hermes.config.secrets import looks_secret, secrets_of, secrets_within
from hermes.core.secret import Secret


@dataclass(frozen=True)
class Inner:
    key: Secret = field(default_factory=lambda: Secret("inner-key"))
    address: str = "http://ana:p%40ssword@host/x?api_key=query12345&page=2"


@dataclass(frozen=True)
class Outer:
    name: str = "plain"
    inner: tuple[Inner, ...] = (Inner(),)
    more: dict[str, list[Secret]] = field(default_factory=lambda: {"x": [Secret("listed-key"), Secret("")]})


def test_secrets_are_found_however_deep() -> None:
    found = {secret.reveal() for secret in secrets_within(Outer())}
    assert found == {"inner-key", "listed-key", "p%40ssword", "p@ssword", "YW5hOnBAc3N3b3Jk", "query12345"}


@pytest.mark.parametrize(
    "name,value,is_so",
    [
        ("GH_TOKEN", "abc12345", True),
        ("DB_PASSWORD", "correcthorse", True),
        ("SMTP_PASS", "correcthorse", True),
        ("SERVICE_SECRET", "a" * 20, True),
        ("SSH_KEY_FILE", "/home/ana/.ssh/id", False),
        ("KEY_MODE", "automatic", False),
        ("MAX_TOKENS", "123456789", False),
        ("PATH", "abc12345678901234567890", False),
        ("API_KEY", "short", False),
    ],
)
def test_a_variable_is_secret_by_its_name_and_its_value(name: str, value: str, is_so: bool) -> None:
    assert looks_secret(name, value) is is_so
    assert bool(list(secrets_of({name: value}))) is is_so

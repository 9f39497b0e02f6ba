"""What an account needs to be told, and what it says when it was told something else."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Rate
from hermes.core.secret import Secret
from hermes.platforms.weixin.config import WeixinConfig

SIGNED_IN = {"token": Secret("44b9b8ec@im.bot:06"), "account_id": "44b9b8ec@im.bot"}


def config(**values: Any) -> WeixinConfig:
    return WeixinConfig.of(AdapterParts("main", {**SIGNED_IN, **values}, None, lambda: None, {}))


def test_a_sign_in_is_all_it_needs() -> None:
    made = config()
    assert (made.base_url, made.bubbles, made.break_seconds) == ("https://ilinkai.weixin.qq.com", 9, 30)
    assert made.rates is not None
    assert made.rates.in_chat == Rate(1, 1.5)


def test_no_pause_means_no_pacing() -> None:
    assert config(send_chunk_delay_seconds=0).rates is None


@pytest.mark.parametrize(
    "values, words",
    [
        ({"token": None}, "hermes weixin login"),
        ({"account_id": ""}, "hermes weixin login"),
        ({"account_id": "me"}, "WEIXIN_ACCOUNT_ID is 'me'"),
        ({"base_url": "ilinkai"}, "WEIXIN_BASE_URL"),
        ({"cdn_url": "https://"}, "WEIXIN_CDN_URL"),
        ({"send_chunk_delay_seconds": "soon"}, "from 0 to 60"),
        ({"rate_limit_circuit_open_seconds": 0}, "from 1 to 3600"),
        ({"bubbles_per_message": 1000}, "from 1 to 100"),
    ],
)
def test_what_cannot_be_used_is_told_with_what_to_do(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(**values)

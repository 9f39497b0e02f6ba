"""What an operator may write, and what they are told where it will not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.config import load
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.platforms.qq import MANIFEST
from hermes.platforms.qq.config import QQConfig


def config(**values: Any) -> QQConfig:
    given = {"app_id": "102000001", "client_secret": Secret("s3cret-Client"), **values}
    return QQConfig.of(AdapterParts("main", given, None, lambda: None, {}))


def test_an_id_and_a_secret_are_enough() -> None:
    told = config()
    assert (told.app_id, told.client_secret.reveal(), told.markdown) == ("102000001", "s3cret-Client", True)
    assert told.base_url == "https://api.sgroup.qq.com"
    assert told.token_url == "https://bots.qq.com/app/getAppAccessToken"


@pytest.mark.parametrize(
    "values, word",
    [
        ({"app_id": ""}, "QQ_APP_ID"),
        ({"app_id": "my bot"}, "QQ_APP_ID"),
        ({"client_secret": None}, "QQ_CLIENT_SECRET"),
        ({"base_url": "api.sgroup.qq.com"}, "QQ_BASE_URL"),
        ({"token_url": "ftp://x"}, "QQ_TOKEN_URL"),
    ],
)
def test_what_will_not_do_is_named(values: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        config(**values)


@pytest.mark.parametrize(
    "names", [("QQ_HOME_CHANNEL",), ("QQBOT_HOME_CHANNEL",), ("QQBOT_HOME_CHANNEL", "QQ_HOME_CHANNEL")]
)
def test_the_home_channel_is_heard_under_its_older_name_too_and_the_new_one_counts(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    environ = {"QQ_APP_ID": "1", "QQ_CLIENT_SECRET": "s3cret-Client", **{name: f"from {name}" for name in names}}
    loaded = load(tmp_path, environ, tmp_path, (MANIFEST,))
    account = loaded.config.account("qq", "main")
    assert account is not None
    assert account.home_channel == f"from {names[-1]}"
    assert not [problem for problem in loaded.problems if "QQ" in problem.text]


@pytest.mark.parametrize("name", ["QQ_GROUP_ALLOWED_CHATS", "QQ_GROUP_ALLOWED_USERS"])
def test_groups_are_listed_by_their_bare_openid_and_under_the_name_other_gateways_use(
    tmp_path: Path, name: str
) -> None:
    environ = {"QQ_APP_ID": "1", "QQ_CLIENT_SECRET": "s3cret-Client", name: "C9F7, group/D0A8, channel/77"}
    loaded = load(tmp_path, environ, tmp_path, (MANIFEST,))
    account = loaded.config.account("qq", "main")
    assert account is not None
    assert account.access.group_allowed_chats == {"group/C9F7", "group/D0A8", "channel/77"}
    assert not [problem for problem in loaded.problems if "QQ" in problem.text]


def test_an_account_that_is_configured_is_ready(tmp_path: Path) -> None:
    account = load(tmp_path, {"QQ_APP_ID": "1"}, tmp_path, (MANIFEST,)).config.account("qq", "main")
    assert account is not None
    assert account.missing
    whole = {"QQ_APP_ID": "1", "QQ_CLIENT_SECRET": "s3cret-Client"}
    account = load(tmp_path, whole, tmp_path, (MANIFEST,)).config.account("qq", "main")
    assert account is not None
    assert not account.missing

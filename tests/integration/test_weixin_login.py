"""`hermes weixin login` and its place in `gateway setup`: a code on the screen, a phone, and what is written then."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.main import main
from hermes.cli.support.prompts import LeftError
from hermes.cli.wizard import platform
from hermes.cli.wizard.page import PlatformPage
from hermes.cli.wizard.platform import Flags, Wizard
from hermes.config import Loaded, load
from tests.e2e.terminal import patched_environ
from tests.fakes.weixin import ANA, BOT, TOKEN, FakeWeixin
from tests.integration.conftest import Start
from tests.integration.test_cli_setup import files
from tests.integration.watching import SECONDS
from tests.unit.cli.support.test_prompts import Typing

Ran = tuple[int, str]
Login = Callable[..., Coroutine[Any, Any, Ran]]


@pytest.fixture
async def weixin() -> AsyncIterator[FakeWeixin]:
    async with FakeWeixin() as fake:
        yield fake


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "hermes-home"


@pytest.fixture
def login(home: Path, weixin: FakeWeixin) -> Login:
    """``await login()``: the exit code and all that was printed."""

    async def run(*words: str) -> Ran:
        out = io.StringIO()

        def act() -> int:
            with redirect_stdout(out), redirect_stderr(out):
                return main(list(words or ("weixin", "login")))

        environ = {"HERMES_HOME": str(home), "PATH": "/usr/bin:/bin", "WEIXIN_QR_URL": weixin.url}
        with patched_environ(environ):
            return await asyncio.to_thread(act), out.getvalue()

    return run


def loaded(home: Path) -> Loaded:
    return load(home, {}, home, platform.offered())


def scanned(weixin: FakeWeixin, **more: Any) -> None:
    weixin.statuses.extend([{"status": "scaned"}, weixin.confirms(**more)])


async def test_a_login_writes_the_token_for_its_owner_alone_and_lets_them_in(
    login: Login, weixin: FakeWeixin, home: Path
) -> None:
    scanned(weixin)
    code, told = await login()
    assert code == 0, told
    assert "https://liteapp.weixin.qq.com/q/1?bot_type=3" in told
    assert "█▀▀▀▀▀█" in told or "▄▄▄▄▄" in told, "the code itself is drawn"
    assert f"✓ Signed in as {BOT}" in told
    assert TOKEN not in told
    account = loaded(home).config.account("weixin")
    assert account is not None
    assert account.is_ready
    assert account.access.allowed_users == {ANA}
    assert (account.values["account_id"], account.values["user_id"], account.values["base_url"]) == (
        BOT,
        ANA,
        weixin.url,
    )
    assert (home / ".env").read_text() == f"WEIXIN_TOKEN={TOKEN}\n"
    assert set(files(home).values()) == {0o600}


@pytest.mark.parametrize("words", [("weixin", "login"), ("whatsapp", "login"), ("gateway", "setup", "weixin")])
async def test_an_account_name_that_cannot_be_written_is_refused_before_anything_is_asked(
    login: Login, weixin: FakeWeixin, home: Path, words: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        await login(*words, "--account", "Bad Name")
    assert not weixin.codes
    assert not files(home)


async def test_status_lists_how_it_stands_with_the_account(login: Login, weixin: FakeWeixin) -> None:
    scanned(weixin)
    await login()
    _, told = await login("status")
    [line] = [line for line in told.splitlines() if line.startswith("  weixin ")]
    assert f"{BOT}; {ANA}; token" in line
    assert line.endswith(f"direct messages: pairing; groups: disabled; allowed: {ANA}")
    assert TOKEN not in told


async def test_signing_in_again_takes_the_new_token_and_keeps_who_was_let_in(
    login: Login, weixin: FakeWeixin, home: Path
) -> None:
    scanned(weixin)
    await login()
    scanned(weixin, token="a-new-one", ilink_user_id="o2@im.wechat")
    code, _ = await login()
    assert code == 0
    assert weixin.known_tokens == [[], [TOKEN]]
    account = loaded(home).config.account("weixin")
    assert account is not None
    assert account.values["token"].reveal() == "a-new-one"
    assert account.access.allowed_users == {ANA, "o2@im.wechat"}


async def test_a_login_that_comes_to_nothing_writes_nothing(login: Login, weixin: FakeWeixin, home: Path) -> None:
    weixin.statuses.extend([{"status": "expired"}] * 3)
    code, told = await login()
    assert (code, "Nothing was written." in told) == (1, True), told
    assert files(home) == {}


async def test_a_running_gateway_connects_with_what_a_login_gave(
    start: Start, weixin: FakeWeixin, tmp_path: Path
) -> None:
    """Nothing is restarted: the files are watched."""
    async with start():
        environ = {"HERMES_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "WEIXIN_QR_URL": weixin.url}
        scanned(weixin)

        def act() -> int:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                return main(["weixin", "login"])

        with patched_environ(environ):
            assert await asyncio.to_thread(act) == 0
        weixin.user_says("hello")
        await weixin.wait_for(lambda: weixin.texts() == ["echo: hello"], SECONDS)


def wizard(home: Path, weixin: FakeWeixin, *typed: str) -> tuple[Wizard, Typing]:
    person = Typing(*typed)
    found = load(home, {"WEIXIN_QR_URL": weixin.url, "WEIXIN_CDN_URL": weixin.cdn_url}, home, platform.offered())
    manifest = next(each for each in platform.offered() if each.id == "weixin")
    return Wizard(found, manifest, Flags(), person.ask), person


async def test_set_up_offers_the_code_and_asks_for_no_token(weixin: FakeWeixin, tmp_path: Path) -> None:
    scanned(weixin)
    asking, person = wizard(tmp_path, weixin, "", "", "", "y")
    out = io.StringIO()

    def act() -> PlatformPage:
        with redirect_stdout(out):
            return asking.page()

    page = await asyncio.to_thread(act)
    assert page.changes["platforms.weixin.token"] == TOKEN
    assert page.changes["platforms.weixin.allowed_users"] == ANA
    assert page.changes["owners"] == f"weixin:{ANA}"
    assert page.name == BOT
    assert "Sign in with a QR code? [Y/n]:" in person.shown
    assert "Bot token" not in person.shown
    assert "liteapp.weixin.qq.com" in out.getvalue()


async def test_set_up_without_a_code_asks_for_what_the_code_would_give(weixin: FakeWeixin, tmp_path: Path) -> None:
    asking, person = wizard(tmp_path, weixin, "n", TOKEN)
    with pytest.raises(LeftError):
        await asyncio.to_thread(asking.page)
    assert "hermes weixin login" in person.shown
    assert weixin.codes == []

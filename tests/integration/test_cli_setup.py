"""Set-up by flags, and for a platform that is yet to come: tried first, then written whole or not at all."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.agent.backends import bubblewrap, landlock
from hermes.cli.main import main
from hermes.cli.support.prompts import LeftError, Questions
from hermes.cli.wizard import flags as platform_flags
from hermes.cli.wizard import model as model_setup
from hermes.cli.wizard import platform, terminal
from hermes.cli.wizard.platform import Flags, Wizard
from hermes.config import Loaded, load
from hermes.config.agent_settings import OwnerTerminal
from hermes.core.errors import ConfigError, CredentialsError
from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.people.access import DmPolicy, GroupPolicy
from tests.e2e.terminal import patched_environ
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.unit.cli.support.test_prompts import Typing

TOKEN = "123456:abcdefghijklmnopqrstuvwxyz-x7Q"
KEY = "sk-setup-0123456789-k9Z"
NOBODY = "http://127.0.0.1:9"
Ran = tuple[int, str]
Hermes = Callable[..., Coroutine[Any, Any, Ran]]


@pytest.fixture
async def bot() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(token=TOKEN, username="ana_home_bot") as fake:
        yield fake


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "hermes-home"


@pytest.fixture
def hermes(home: Path, bot: FakeTelegram) -> Hermes:
    """``await hermes("gateway", "setup", …, typed="…")``: the exit code and all that was printed."""

    async def run(*words: str, typed: str = "", **environ: str) -> Ran:
        own = {"HERMES_HOME": str(home), "PATH": "/usr/bin:/bin", "TELEGRAM_BASE_URL": bot.url}
        own |= {"OLLAMA_BASE_URL": NOBODY, "LMSTUDIO_BASE_URL": NOBODY, **environ}
        out = io.StringIO()

        def act() -> int:
            before, sys.stdin = sys.stdin, io.StringIO(typed)
            try:
                with redirect_stdout(out), redirect_stderr(out):
                    return main(list(words))
            finally:
                sys.stdin = before

        with patched_environ(own):
            return await asyncio.to_thread(act), out.getvalue()

    return run


def files(home: Path) -> dict[str, int]:
    """What is in the home, with its mode; nothing when there is none."""
    return {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()} if home.exists() else {}


def make_foreign(home: Path) -> None:
    home.mkdir()
    (home / "state.db").write_bytes(b"not ours")


def written(home: Path) -> str:
    return "".join(path.read_text() for path in (home / ".env", home / "config.yaml") if path.exists())


async def test_a_platform_is_set_up_in_one_line_and_nothing_of_its_token_is_shown(hermes: Hermes, home: Path) -> None:
    code, told = await hermes("gateway", "setup", "telegram", "--token", TOKEN, "--dm-policy", "pairing", "--yes")
    assert (code, "✓ @ana_home_bot, answered in" in told) == (0, True)
    assert "https://t.me/ana_home_bot" in told
    assert TOKEN not in told
    assert (home / ".env").read_text() == f"TELEGRAM_BOT_TOKEN={TOKEN}\n"
    assert (home / "config.yaml").read_text() == "platforms:\n  telegram:\n    dm_policy: pairing\n"
    assert files(home) == dict.fromkeys((".env", ".hermes-home", "config.yaml"), 0o600)


async def test_what_is_not_said_again_stays_as_it_is(hermes: Hermes, home: Path) -> None:
    await hermes("gateway", "setup", "telegram", "--token", "-", "--yes", typed=f"{TOKEN}\n")
    code, told = await hermes("gateway", "setup", "telegram", "--dm-policy", "allowlist", "--allow", "7, 8", "--yes")
    assert (code, "answered in" in told) == (0, True)
    assert TOKEN in written(home)
    assert "dm_policy: allowlist" in written(home)
    assert "allowed_users: ['7', '8']" in written(home) or "allowed_users: [7, 8]" in written(home)
    before = written(home)
    code, told = await hermes("gateway", "setup", "telegram", "--yes")
    assert (code, "Nothing to change." in told, written(home) == before) == (0, True, True)


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--token", "99:somebody-elses"), "Telegram refused getMe: Unauthorized"),
        (("--token", "no token at all"), "does not look like one"),
        (("--token", TOKEN, "--dm-policy", "allowlist"), "needs ids"),
        (("--token", TOKEN, "--set", "colour=blue"), "has no setting 'colour'"),
        (("--token", TOKEN, "--set", "colour"), "--set takes KEY=VALUE"),
        (("--token", TOKEN, "--set", f"base_url={NOBODY}"), "--no-check saves it anyway"),
    ],
)
async def test_what_is_not_good_is_told_and_not_written(
    hermes: Hermes, home: Path, flags: tuple[str, ...], words: str
) -> None:
    code, told = await hermes("gateway", "setup", "telegram", *flags, "--yes")
    assert (code, words in told) == (1, True), told
    assert files(home) == {}
    assert "\n\n" not in told


async def test_it_is_written_untried_when_that_is_asked_for(hermes: Hermes, home: Path, bot: FakeTelegram) -> None:
    await bot.stop()
    code, _ = await hermes("gateway", "setup", "telegram", "--token", TOKEN, "--no-check", "--yes")
    assert (code, TOKEN in written(home)) == (0, True)


async def test_a_further_account_stands_beside_the_first(hermes: Hermes, home: Path) -> None:
    await hermes("gateway", "setup", "telegram", "--token", TOKEN, "--yes")
    code, told = await hermes("gateway", "setup", "telegram", "--account", "work", "--token", TOKEN, "--yes")
    assert code == 0, told
    accounts = load(home, {}, home, platform.offered()).config.platforms["telegram"]
    assert sorted(accounts) == ["main", "work"]
    assert all(account.is_ready for account in accounts.values())


async def test_without_a_terminal_the_flags_are_told(hermes: Hermes, home: Path) -> None:
    for words in (("gateway", "setup"), ("gateway", "setup", "telegram"), ("setup",)):
        code, told = await hermes(*words)
        assert code == 2
        assert "gateway setup telegram --token TOKEN --dm-policy pairing --yes" in told
    assert files(home) == {}
    code, told = await hermes("gateway", "setup", "telepathy", "--yes")
    assert (code, "There is no platform 'telepathy'. Known: telegram" in told) == (1, True)


async def test_another_programs_home_is_left_alone(hermes: Hermes, home: Path) -> None:
    make_foreign(home)
    code, _ = await hermes("gateway", "setup", "telegram", "--token", TOKEN, "--yes")
    assert (code, list(files(home))) == (78, ["state.db"])


async def test_a_model_is_tried_and_written_by_flags_too(hermes: Hermes, home: Path) -> None:
    async with FakeModel(key=KEY) as model:
        flags = ("--model", "custom/echo-1", "--base-url", model.url, "--yes")
        code, told = await hermes("setup", *flags, "--key", "sk-wrong-0123456789")
        assert (code, "Nothing was written" in told, files(home)) == (1, True, {}), told
        code, told = await hermes("setup", *flags, "--key", "-", typed=f"{KEY}\n")
        assert (code, "✓ custom / echo-1, answered in" in told) == (0, True), told
        assert KEY not in told
    config = load(home, {}, home, ()).config
    assert (config.model.provider, config.model.default) == ("custom", "echo-1")
    assert config.providers["custom"].base_url == model.url
    assert f"CUSTOM_API_KEY={KEY}" in (home / ".env").read_text()


async def test_where_commands_run_is_written_by_a_flag(hermes: Hermes, home: Path) -> None:
    code, told = await hermes("setup", "--terminal", "guarded", "--yes")
    assert code == 0, told
    assert load(home, {}, home, ()).config.terminal.backend is OwnerTerminal.GUARDED


@pytest.mark.parametrize("typed, backend", [("2", "guarded"), ("", "local")])
async def test_the_wall_is_offered_once(home: Path, typed: str, backend: str) -> None:
    if bubblewrap.why_not() and landlock.why_not():
        pytest.skip("no sandbox works here")
    out, answers = io.StringIO(), iter([typed])
    ask = Questions(lambda _: next(answers), lambda _: "", out)
    with patched_environ({"HERMES_HOME": str(home), "PATH": os.environ["PATH"]}), redirect_stdout(out):
        assert await asyncio.to_thread(terminal.set_up, home, "", ask)
        assert not await asyncio.to_thread(terminal.set_up, home, "", ask)
    assert load(home, {}, home, ()).config.terminal.backend == backend
    assert "in a sandbox" in out.getvalue()
    assert not [line for line in out.getvalue().splitlines() if len(line) > 80]


def test_the_flags_agree_with_the_policies() -> None:
    assert [choice.name for choice in terminal.CHOICES] == list(terminal.NAMES)
    assert set(terminal.NAMES) <= set(OwnerTerminal)
    assert tuple(DmPolicy) == platform_flags.DM_POLICIES
    assert tuple(GroupPolicy) == platform_flags.GROUP_POLICIES
    assert [choice.name for choice in platform.DM_POLICIES] == list(DmPolicy)
    assert [choice.name for choice in platform.GROUP_POLICIES] == list(GroupPolicy)


# The model, question by question


@asynccontextmanager
async def web_site() -> AsyncIterator[str]:
    """The address of a web site that has a page for everything."""
    app = web.Application()
    app.router.add_get("/{path:.*}", page)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def page(_: web.Request) -> web.Response:
    return web.Response(text="<h1>Welcome</h1>", content_type="text/html")


async def asked_for_a_model(home: Path, person: Typing) -> bool:
    """The model's page, for somebody who has no local servers."""
    with patched_environ({"OLLAMA_BASE_URL": NOBODY, "LMSTUDIO_BASE_URL": NOBODY, "PATH": "/usr/bin:/bin"}):
        return await asyncio.to_thread(model_setup.set_up, home, model_setup.ModelFlags(), person.ask)


async def test_an_address_is_tried_before_its_key_is_asked_for_and_its_models_are_offered(home: Path) -> None:
    async with FakeModel(key=KEY, model="echo-1") as model:
        without_path = model.url.removesuffix("/v1")
        person = Typing("other", NOBODY, "n", without_path, "sk-wrong-0123456789", KEY, "1")
        assert await asked_for_a_model(home, person)
    shown = person.shown
    steps = [
        f"✗ {NOBODY}: ",
        "Keep it anyway? [y/N]:",
        f"Address [{NOBODY}]:",
        f"The API is at {model.url}; setup uses this address.",
        "and wants a key",
        "Key (not shown",
        "refuses this key (401).",
        "Key [Enter keeps …789]:",
        "   1  echo-1",
        "Model [echo-1]:",
    ]
    places = [shown.find(step) for step in steps]
    assert -1 not in places, shown
    assert places == sorted(places), shown
    config = load(home, {}, home, ()).config
    assert (config.model.provider, config.model.default) == ("custom", "echo-1")
    assert (config.providers["custom"].base_url, KEY in written(home)) == (model.url, True)


@pytest.mark.parametrize(
    "typed, taken",
    [
        ("localhost:9", "http://localhost:9"),
        ("127.0.0.1:9/", "http://127.0.0.1:9"),
        ("[::ffff:127.0.0.1]:9/v1", "https://[::ffff:127.0.0.1]:9/v1"),
    ],
)
async def test_an_address_is_understood_without_its_beginning(home: Path, typed: str, taken: str) -> None:
    person = Typing("other", typed, "n")
    with pytest.raises(LeftError):
        await asked_for_a_model(home, person)
    assert f"  Asking {taken} …\n✗ {taken}: " in person.shown
    assert f"Address [{taken}]:" in person.shown
    assert "?." not in person.shown
    assert ".." not in person.shown


async def test_a_web_page_at_an_address_is_told_as_such(home: Path) -> None:
    async with web_site() as site:
        person = Typing("other", site)
        with pytest.raises(LeftError):
            await asked_for_a_model(home, person)
    assert "a web page answers there, not a model's API." in person.shown


async def test_after_a_call_that_failed_what_was_typed_is_kept(home: Path) -> None:
    async with FakeModel(key=KEY, model="echo-1") as model:
        model.fails_next(400, "this model is asleep")
        person = Typing("other", model.url, KEY, "echo-1", "1", "", "", "")
        assert await asked_for_a_model(home, person)
    shown = person.shown
    assert "What now?\n * 1  Try again" in shown
    assert shown.count("Which model answers?") == 1, "only what may be wrong is asked again"
    assert f"Once more, then. Enter keeps what you typed.\nAddress [{model.url}]:" in shown
    assert "Key [Enter keeps …k9Z]:" in shown
    assert (load(home, {}, home, ()).config.model.default, KEY in written(home)) == ("echo-1", True)


async def test_after_a_call_that_failed_another_provider_can_be_chosen_or_it_is_kept(home: Path) -> None:
    async with FakeModel(model="echo-1") as model:
        model.fails_next(400, "no")
        model.fails_next(400, "no")
        person = Typing("other", model.url, "", "echo-1", "2", "other", model.url, "", "echo-1", "3")
        assert await asked_for_a_model(home, person)
    assert person.shown.count("Which model answers?") == 2
    assert load(home, {}, home, ()).config.model.default == "echo-1"


# A platform that is yet to come inherits all of it


def _never(_: object) -> Any:
    raise ConfigError("The app token begins with xapp-.\n  Set CHATTER_APP_TOKEN.")


CHATTER = Manifest(
    id="chatter",
    title="Chatter",
    settings=(
        Setting("token", "CHATTER_TOKEN", SettingKind.SECRET, required=True, label="Bot token", get=("Open it.",)),
        Setting("app_token", "CHATTER_APP_TOKEN", SettingKind.SECRET, required=True, help="It begins with xapp-."),
        Setting("region", "CHATTER_REGION", default="eu", asked=True, label="Region"),
        Setting("poll_seconds", "CHATTER_POLL_SECONDS", SettingKind.NUMBER, default=5),
    ),
    build=_never,
    ids="A name such as @ana.",
)


def nothing_yet(tmp_path: Path) -> Loaded:
    return load(tmp_path, {}, tmp_path, (CHATTER,))


@pytest.mark.parametrize("typed, owners", [("y", "chatter:@ana"), ("n", None)])
def test_the_only_id_that_is_let_in_is_asked_about(tmp_path: Path, typed: str, owners: str | None) -> None:
    person = Typing("bot-1", "xapp-1", "us", "3", "@ana", "1", typed)
    page = Wizard(nothing_yet(tmp_path), CHATTER, Flags(is_checked=False), person.ask).page()
    assert "Is @ana you, the owner? [y/n]:" in person.shown
    assert page.changes.get("owners") == owners


def test_where_nobody_can_be_asked_a_flag_names_the_owner(tmp_path: Path) -> None:
    values = {"token": "bot-1", "app_token": "xapp-1", "region": "us"}
    flags = Flags(values, "allowlist", "@ana,@ben", is_checked=False, owner="@ben")
    page = Wizard(nothing_yet(tmp_path), CHATTER, flags, None).page()
    assert page.changes["owners"] == "chatter:@ben"


def test_its_own_questions_are_asked_and_its_own_words_said(tmp_path: Path) -> None:
    person = Typing("bot-1", "", "xapp-1", "us", "3", "", "@ana,@ben", "2", "g1", "1")
    page = Wizard(nothing_yet(tmp_path), CHATTER, Flags(is_checked=False), person.ask).page()
    assert page.changes == {
        "platforms.chatter.token": "bot-1",
        "platforms.chatter.app_token": "xapp-1",
        "platforms.chatter.region": "us",
        "platforms.chatter.dm_policy": "allowlist",
        "platforms.chatter.allowed_users": "@ana,@ben",
        "platforms.chatter.group_policy": "allowlist",
        "platforms.chatter.group_allowed_chats": "g1",
        "owners": "chatter:@ana",
    }
    assert "Which of them is you, the owner?" in person.shown
    for words in ("── Chatter ─", "  1. Open it.", "Bot token (not shown", "It begins with xapp-.", "Region [eu]:"):
        assert words in person.shown
    assert "A name such as @ana." in person.shown
    assert "poll_seconds" not in person.shown, "only what a person can answer is asked"


def test_a_refusal_of_its_own_is_told_without_the_names_of_variables_and_asked_again(tmp_path: Path) -> None:
    person = Typing("bot-1", "x", "")
    with pytest.raises(LeftError):
        Wizard(nothing_yet(tmp_path), CHATTER, Flags(), person.ask).page()
    assert "✗ The app token begins with xapp-.\n" in person.shown
    assert "CHATTER_APP_TOKEN" not in person.shown
    assert person.shown.count("1. Open it.") == 1


def test_after_a_refusal_enter_keeps_what_was_typed(tmp_path: Path) -> None:
    tries: list[tuple[str, str, str]] = []

    class Picky:
        async def describe(self) -> str:
            if tries[-1][1] != "xapp-right-0123":
                raise CredentialsError("The app token is not known.")
            return "@chatter"

    def build(parts: AdapterParts) -> Any:
        tries.append((parts.values["token"].reveal(), parts.values["app_token"].reveal(), parts.values["region"]))
        return Picky()

    person = Typing("bot-token-0001", "xapp-wrong-0123", "us", "", "xapp-right-0123", "", "", "", "")
    page = Wizard(nothing_yet(tmp_path), replace(CHATTER, build=build), Flags(), person.ask).page()
    assert tries == [("bot-token-0001", "xapp-wrong-0123", "us"), ("bot-token-0001", "xapp-right-0123", "us")]
    assert {key.rpartition(".")[2]: value for key, value in page.changes.items() if "policy" not in key} == {
        "token": "bot-token-0001",
        "app_token": "xapp-right-0123",
        "region": "us",
    }
    for prompt in ("Bot token [Enter keeps …001]:", "app_token [Enter keeps …123]:", "Region [us]:"):
        assert prompt in person.shown


def test_a_login_that_is_right_is_not_asked_for_again_when_a_switch_elsewhere_was_turned(tmp_path: Path) -> None:
    tries: list[str] = []

    class Switched:
        async def describe(self) -> str:
            if len(tries) == 1:
                raise CredentialsError("Its switch is off.", cure="turn the switch (chatter.test, Settings)")
            return "@chatter"

    def build(parts: AdapterParts) -> Any:
        tries.append(parts.values["token"].reveal())
        return Switched()

    person = Typing("bot-1", "xapp-1", "us", "y", "", "", "")
    manifest = replace(CHATTER, build=build)
    page = Wizard(nothing_yet(tmp_path), manifest, Flags(), person.ask).page()
    assert (page.name, page.changes["platforms.chatter.token"], tries) == ("@chatter", "bot-1", ["bot-1", "bot-1"])
    assert "✗ Its switch is off.\n  → turn the switch (chatter.test, Settings)\nDone?" in person.shown


def test_everybody_is_let_in_only_by_somebody_who_means_it(tmp_path: Path) -> None:
    person = Typing("bot-1", "xapp-1", "", "2", "n", "2", "y", "")
    page = Wizard(nothing_yet(tmp_path), CHATTER, Flags(is_checked=False), person.ask).page()
    assert page.dm_policy is DmPolicy.OPEN
    assert person.shown.count("Really? [y/n]:") == 2

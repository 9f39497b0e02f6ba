"""What `hermes doctor` finds, check by check."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.models.embedded.download import Fetcher
from hermes.cli.checks.checks import examine
from hermes.cli.checks.config import approvals_check, config_check
from hermes.cli.checks.doctor import screen
from hermes.cli.checks.finding import Finding
from hermes.cli.checks.home import home_check
from hermes.cli.checks.model import describe_key_source, describe_keys, model_check
from hermes.cli.checks.network import network_check
from hermes.cli.checks.people import people_check
from hermes.cli.checks.ports import api_check, ports_check
from hermes.cli.checks.service import service_check
from hermes.cli.checks.stores import Store, look_at_files, stores_check
from hermes.cli.support.connectivity import Reached, list_of
from hermes.cli.support.home import load_config
from hermes.cli.watch.status import unreported_problems
from hermes.hosting.heartbeat import Beat
from hermes.hosting.status import Facts
from hermes.store.home import make_home
from tests.fakes.embedded import write_pip

SOUND = {"name": "state.db", "is_sound": True, "words": "", "bytes": 2_500_000, "last_backup": None}
NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "TELEGRAM_BOT_TOKEN", "TELEGRAM_ALLOWED_USERS")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    make_home(home)
    return home


def reached(status: int = 200, **more: object) -> Reached:
    return Reached("api.example", "https://api.example/v1/models", status=status, milliseconds=80, **more)  # type: ignore[arg-type]


def test_a_home_that_others_can_read_gets_the_command_that_closes_it(home: Path) -> None:
    assert home_check(home).level == "good"
    (home / ".env").write_text("A=1\n")
    (home / ".env").chmod(0o644)
    found = home_check(home)
    assert (found.level, "chmod" in found.text, ".env" in found.text) == ("hint", True, True)


@pytest.mark.parametrize(
    "settings, words",
    [
        ("", ""),
        ("API_SERVER_KEY=short", ""),
        ("API_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=short", "API_SERVER_KEY is short enough to be guessed"),
        ("API_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=short\nAPI_SERVER_ENABLED=false", ""),
        ("API_SERVER_HOST=0.0.0.0", "there is no real API_SERVER_KEY"),
        ("API_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=k-0123456789abcdef0123456789abcdef", ""),
    ],
)
def test_a_port_that_must_not_open_is_trouble(home: Path, settings: str, words: str) -> None:
    (home / ".env").write_text(f"{settings}\n")
    found = api_check(load_config(home).config, Facts(0.0, 0.0))
    assert [finding.level for finding in found] == ["trouble"] * bool(words)
    assert words in "".join(finding.text for finding in found)


def test_another_programs_home_is_trouble_and_stays_as_it_is(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "state.db").write_bytes(b"not ours")
    before = (foreign / "state.db").stat()
    findings = examine(foreign, "hermes")
    assert findings[0].level == "trouble"
    assert "stores" not in [finding.name for finding in findings]
    assert [path.name for path in foreign.iterdir()] == ["state.db"]
    after = (foreign / "state.db").stat()  # reading it moves its time of access
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_ino) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_ino,
    )


def test_an_error_in_the_configuration_comes_before_its_warnings(home: Path) -> None:
    (home / "config.yaml").write_text("agnt: {}\nagent:\n  max_iterations: many\n")
    found = config_check(load_config(home))
    assert found.level == "trouble"
    assert "max_iterations" in found.text
    assert any("agnt" in line for line in found.more)


def test_a_damaged_store_and_a_silent_one_are_trouble() -> None:
    assert stores_check(Store(SOUND)).text == "state.db sound, 2.5 MB"
    assert stores_check(Store({**SOUND, "is_sound": False, "words": "row 3 missing"})).level == "trouble"
    assert stores_check(Store(silence="The gateway is stalled")).level == "trouble"
    assert stores_check(Store(is_empty=True)).level == "good"


def test_letters_that_are_dead_come_with_the_command_that_lists_them() -> None:
    found = stores_check(Store(SOUND, {"people": {}, "dead_letters": 2}), "./scripts/hermes")
    assert found.level == "hint"
    assert found.text.endswith("; 2 messages could not be delivered → ./scripts/hermes send --dead")


@pytest.mark.parametrize(
    "answer, level, words",
    [
        (reached(), "good", "answers in 80 ms"),
        (reached(401), "trouble", "Key from .env line 1, ends in …x7Q"),
        (reached(503), "trouble", "the provider has a problem"),
        (reached(404), "good", "answers"),
        (reached(is_page=True), "trouble", "→ correct providers.openai.base_url"),
        (reached(models=frozenset({"other"})), "hint", "does not list gpt-4o-mini"),
        (reached(0, failure="no answer within 6 s"), "trouble", "no answer within 6 s"),
    ],
)
def test_a_model_that_does_not_answer_is_told_with_its_reason(
    home: Path, answer: Reached, level: str, words: str
) -> None:
    (home / ".env").write_text("OPENAI_API_KEY=sk-0123456789abcx7Q\n")
    found = model_check(home, load_config(home), answer, "hermes")
    assert (found.level, words in found.text) == (level, True)
    assert "0123456789" not in found.text


def test_the_built_in_model_needs_no_network_to_be_checked(home: Path) -> None:
    found = model_check(home, load_config(home), None, "hermes")
    assert found.text.startswith("built-in")


async def test_doctor_loads_the_built_in_models_engine_and_names_a_library_that_is_missing(
    home: Path, tmp_path: Path
) -> None:
    async with Fetcher(home, pip=write_pip(tmp_path), use_own_packages=False) as fetcher:
        await fetcher.wait(10)
    assert model_check(home, load_config(home), None, "hermes").level == "good"
    (tmp_path / "needs-library").touch()
    found = model_check(home, load_config(home), None, "hermes")
    assert found.level == "trouble"
    assert found.text.startswith("built-in, and it cannot answer. The library libgomp.so.1 is missing here: ")


def test_the_way_to_each_host_is_shown() -> None:
    direct = Reached("api.telegram.org", "", proxy="socks5://127.0.0.1:1080", milliseconds=80)
    found = network_check({"telegram": direct, "other": Reached("x.example", "", failure="its name is not known")})
    assert found.text == "api.telegram.org reached in 80 ms through socks5://127.0.0.1:1080"
    assert (found.level, found.more[0]) == ("trouble", "x.example cannot be reached: its name is not known")
    assert found.command == "hermes config show"


@pytest.mark.parametrize(
    "more, has_owner, is_told",
    [
        ("", False, True),
        ("", True, False),
        ("TELEGRAM_ALLOW_ALL_USERS=true\n", False, False),
        ("GATEWAY_ALLOWED_USERS=9\n", False, False),
        ("GATEWAY_OWNERS=telegram:5550142\n", False, False),
        ("GATEWAY_OWNERS=local\n", False, False),
    ],
)
def test_the_only_listed_person_who_is_not_the_owner_is_a_hint_with_the_command_to_type(
    home: Path, more: str, has_owner: bool, is_told: bool
) -> None:
    token = "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz1234567\n"
    (home / ".env").write_text(f"{token}TELEGRAM_ALLOWED_USERS=5550142\n{more}")
    config = load_config(home).config
    for store in (
        Store(SOUND, {"people": {"user": 1}, "dead_letters": 0, "has_owner": has_owner}),
        Store(is_empty=True),
    ):
        found = people_check(store, config)
        if is_told or (not more and store.is_empty):
            assert found.level == "hint"
            assert found.text.endswith("Is that you? → hermes config set owners telegram:5550142")
        else:
            assert "owners" not in found.text


def test_a_platform_nobody_may_write_on_is_a_hint_and_one_that_gives_codes_is_not(home: Path) -> None:
    (home / ".env").write_text("TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz1234567\n")
    counts = {"people": {"owner": 1, "user": 2}, "dead_letters": 0}
    found = people_check(Store(SOUND, counts), load_config(home).config)
    assert (found.level, found.text) == (
        "good",
        "1 owner, 2 users; on telegram strangers get a code: hermes pairing list",
    )
    (home / "config.yaml").write_text("platforms: {telegram: {dm_policy: allowlist}}\n")
    found = people_check(Store(SOUND, counts), load_config(home).config)
    assert (found.level, found.text) == (
        "hint",
        "1 owner, 2 users; nobody may write on telegram → set TELEGRAM_ALLOWED_USERS",
    )


def test_the_last_line_counts_troubles_and_hints(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_SERVER_PORT", "0")  # the usual port may be taken on this machine
    lines = screen(examine(home, "hermes"))
    assert lines[0].startswith(" 1 ✓ home")
    assert lines[-1] == "2 hints."  # the model is not fetched, and no gateway runs


def test_several_keys_are_told_as_the_gateway_knows_them_and_else_by_name(home: Path) -> None:
    (home / "config.yaml").write_text("providers: {openai: {api_keys: [sk-first-0123aaa, sk-second-0123bbb]}}\n")
    config = load_config(home).config
    assert describe_keys(config, Facts(0.0, 0.0)) == ["keys of openai: …aaa, …bbb"]
    snapshot = {"model": {"keys": {"openai": ["…aaa was refused", "…bbb in use"]}}}
    assert describe_keys(config, Facts(0.0, 0.0, snapshot)) == ["keys of openai: …aaa was refused, …bbb in use"]


@pytest.mark.parametrize(
    "mode, base_url, url, header",
    [
        ("chat_completions", "http://a/v1", "http://a/v1/models", ("Authorization", "Bearer k")),
        ("anthropic_messages", "http://a", "http://a/v1/models", ("x-api-key", "k")),
        ("anthropic_messages", "http://a/v1", "http://a/v1/models", ("anthropic-version", "2023-06-01")),
    ],
)
def test_each_dialect_is_asked_for_its_models_in_its_own_way(
    mode: str, base_url: str, url: str, header: tuple[str, str]
) -> None:
    asked, headers = list_of(mode, base_url, "k")
    assert asked == url
    assert header in headers


def test_a_platform_in_trouble_is_told_with_its_cure() -> None:
    discord = {
        "account": "discord",
        "state": "signed out",
        "since": 1.0,
        "cure": "switch it on; then hermes gateway restart",
    }
    snapshot = {"now": 100.0, "started_at": 1.0, "platforms": [discord]}
    found = service_check(Facts(now=100.0, monotonic=100.0, snapshot=snapshot, is_held=True))
    assert (found.level, "discord is signed out" in found.text) == ("trouble", True)
    assert found.more == ("discord → switch it on; then hermes gateway restart",)


def test_approvals_that_are_off_are_told_by_doctor_and_status(home: Path) -> None:
    from hermes.cli.watch import status

    assert approvals_check(load_config(home).config, "hermes") == []
    assert "approvals  off" not in "".join(status.screen(status.look(home, can_ask=False), has_model=True))
    (home / "config.yaml").write_text("approvals:\n  mode: 'off'\n")
    [found] = approvals_check(load_config(home).config, "hermes")
    assert (found.level, "config set approvals.mode dangerous" in found.text) == ("hint", True)
    assert "approvals  off" in "".join(status.screen(status.look(home, can_ask=False), has_model=True))


def died(**more: object) -> Facts:
    beat = Beat(pid=7, at=100.0, monotonic=10.0, ready_at=50.0)
    return Facts(now=200.0, monotonic=110.0, beat=beat, **more)  # type: ignore[arg-type]


def test_a_gateway_that_died_can_be_started_by_fix_also_where_no_platform_is_set_up() -> None:
    alone, with_chats = service_check(died()), service_check(died(platforms=("telegram",)))
    assert (alone.level, alone.fix) == ("hint", "gateway")
    assert (with_chats.level, with_chats.fix) == ("trouble", "gateway")
    assert "No message arrives from telegram → hermes gateway start" in with_chats.text


def test_a_gateway_whose_locks_cannot_be_seen_is_not_called_stopped() -> None:
    found = service_check(Facts(now=200.0, monotonic=110.0, is_hidden=True))
    assert (found.level, found.fix) == ("trouble", "")
    assert found.text == "its state cannot be seen with your rights"


def test_a_running_gateway_whose_port_another_program_holds_is_told_that_program(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        api = replace(load_config(home).config.api, host="127.0.0.1", port=port)
        trouble = f"port {port} on 127.0.0.1 cannot be used (Address already in use): /health and the API are off."
        held = Facts(now=200.0, monotonic=110.0, is_held=True, snapshot={"troubles": [trouble]})
        (found,) = ports_check(api, held)
        assert (found.level, found.why) == ("trouble", "Until then the API and the dashboard are off.")
        assert found.text.startswith(f"127.0.0.1:{port} is used by process {os.getpid()}, so the API cannot open it")
        (good,) = ports_check(api, replace(held, snapshot={"troubles": []}))
        assert good.level == "good"  # the gateway itself listens there
        assert ports_check(api, Facts(now=200.0, monotonic=110.0, is_hidden=True))[0].level == "good"


def test_a_store_without_rights_is_not_called_damaged(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "kanban.db").touch(0o000)
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root
    (file,) = look_at_files(home)
    found = stores_check(Store(sound=SOUND), "hermes", [file])
    assert (found.level, found.text, found.fix) == ("trouble", "kanban.db cannot be read", "")


def test_of_a_short_key_only_the_place_is_told(home: Path) -> None:
    (home / ".env").write_text("OPENAI_API_KEY=sk-wrong\n")
    assert describe_key_source(load_config(home)) == ["Key from .env line 1"]
    (home / ".env").write_text("OPENAI_API_KEY=sk-0123456789x7Q\n")
    assert describe_key_source(load_config(home)) == ["Key from .env line 1, ends in …x7Q"]


def test_the_last_line_names_the_numbers_that_fix_can_repair() -> None:
    one, two = Finding("home", "hint", "a", fix="home"), Finding("stores", "trouble", "b", fix="stores")
    assert screen([one])[-1].endswith("doctor --fix` can repair number 1, and asks first.")
    assert screen([one, two])[-1].endswith("doctor --fix` can repair numbers 1, 2, and asks first.")


def test_a_problem_that_the_gateway_tells_is_not_shown_twice() -> None:
    found = [
        "config.yaml line 2: is not valid YAML. Nothing of this file is used until it is mended.",
        "b: is unknown.",
    ]
    told = ["config.yaml line 2: is not valid YAML. What it said before stays in force."]
    assert unreported_problems(found, told) == ["b: is unknown."]

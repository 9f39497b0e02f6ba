"""What counts when several places say something, and what is said about what is odd."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import pytest

from hermes.config import BusyMode, ToolProgressMode
from hermes.config.values import is_placeholder
from hermes.core.keys import ChatKind
from hermes.core.people.access import DmPolicy, GroupPolicy
from hermes.core.session_reset import ResetMode, ResetPolicy
from tests.unit.config.samples import TOKEN, Home, revealed

ROOT = Path(__file__).resolve().parents[3]


def test_nothing_configured_is_the_embedded_model_and_nobody_let_in(home: Home) -> None:
    config = home.config
    assert config.model.provider == "embedded"
    assert config.model.default
    assert (config.api.host, config.api.port, config.api.enabled) == ("127.0.0.1", 8642, True)
    assert config.sessions.reset == ResetPolicy(ResetMode.BOTH, 4, 120)
    assert config.agent.max_iterations == 60
    assert config.agent.busy_mode is BusyMode.INTERRUPT
    assert config.delivery.answer_ttl_seconds == 6 * 3600
    assert not home.telegram.is_ready
    assert not home.telegram.access.admits_somebody
    assert config.platforms["local"]["main"].is_ready
    assert home.problems == ()


def test_each_layer_is_heard_before_the_next(home: Home) -> None:
    home.write(json='{"agent": {"max_iterations": 5}}')
    assert home.config.agent.max_iterations == 5
    home.write(yaml="agent: {max_iterations: 4}")
    assert home.config.agent.max_iterations == 4
    home.write(env="HERMES_MAX_ITERATIONS=3")
    assert home.config.agent.max_iterations == 3
    home.write(named_env="HERMES_MAX_ITERATIONS=2")
    assert home.config.agent.max_iterations == 2
    home.set(HERMES_MAX_ITERATIONS="1")
    assert home.config.agent.max_iterations == 1


def test_the_env_file_of_the_working_folder_sets_nothing_and_that_is_told(home: Home) -> None:
    home.write(folder_env=f"HERMES_MAX_ITERATIONS=3\nTELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=666\n")
    assert home.config.agent.max_iterations != 3
    assert not home.telegram.is_ready
    assert "./.env: is ignored, though it sets HERMES_MAX_ITERATIONS, TELEGRAM_ALLOWED_USERS" in home.said
    assert f"--env-file {home.cwd / '.env'}" in home.said
    assert TOKEN not in home.said


def test_an_env_file_of_other_programs_in_the_working_folder_is_not_mentioned(home: Home) -> None:
    home.write(folder_env="DJANGO_DEBUG=1\nPORT=8000\n")
    assert home.problems == ()


@pytest.mark.parametrize("trap", ["pipe", "endless", "folder", "link to our own"])
def test_an_env_file_of_the_working_folder_that_is_a_trap_delays_nothing(home: Home, trap: str) -> None:
    home.write(env="HERMES_LANGUAGE=zh")
    path = home.cwd / ".env"
    match trap:
        case "pipe":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(home.path / ".env")
    assert home.config.language == "zh"
    assert home.problems == ()


def test_a_named_env_file_that_is_missing_is_told(home: Home) -> None:
    home.set(HERMES_ENV_FILE=str(home.path / "nowhere.env"))
    assert "there is no such file" in home.said


def test_an_env_file_cannot_name_another(home: Home) -> None:
    (home.path / "other.env").write_text("HERMES_LANGUAGE=zh")
    home.write(env=f"HERMES_ENV_FILE={home.path / 'other.env'}")
    assert home.config.language != "zh"


def test_the_process_environment_is_left_alone(home: Home) -> None:
    home.write(env=f"TELEGRAM_BOT_TOKEN={TOKEN}\nHERMES_LANGUAGE=zh")
    before = dict(os.environ)
    assert home.config.language == "zh"
    assert dict(os.environ) == before
    assert home.environ == {}


def test_a_value_that_differs_in_the_process_environment_is_pointed_out(home: Home) -> None:
    home.set(TELEGRAM_BOT_TOKEN=TOKEN).write(env="A=1\nTELEGRAM_BOT_TOKEN=another-token-from-the-file")
    assert revealed(home.telegram.values, "token") == TOKEN
    assert ".env line 2: TELEGRAM_BOT_TOKEN has another value in the process environment" in home.said
    assert TOKEN not in home.said
    assert "another-token" not in home.said


def test_an_empty_variable_sets_nothing(home: Home) -> None:
    home.set(HERMES_MAX_ITERATIONS="", TELEGRAM_ALLOWED_USERS=" ").write(yaml="agent: {max_iterations: 7}")
    assert home.config.agent.max_iterations == 7
    assert home.problems == ()


class TestPlatforms:
    def test_a_token_in_env_makes_the_account_ready(self, home: Home) -> None:
        home.write(env=f"TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_HOME_CHANNEL=-5\nTELEGRAM_HOME_CHANNEL_NAME=Home")
        assert home.telegram.is_ready
        assert revealed(home.telegram.values, "token") == TOKEN
        assert home.telegram.values["base_url"] == "https://api.telegram.org"
        assert (home.telegram.home_channel, home.telegram.home_channel_name) == ("-5", "Home")

    def test_qq_is_configured_by_its_two_names(self, home: Home) -> None:
        home.write(env="QQ_APP_ID=1024\nQQ_CLIENT_SECRET=a-secret-of-qq")
        assert home.config.platforms["qq"]["main"].is_ready

    def test_a_required_setting_without_value_is_told_with_both_its_names(self, home: Home) -> None:
        home.write(yaml="platforms: {telegram: {dm_policy: open}}")
        assert home.telegram.missing == ("token",)
        assert 'telegram account "main" has no token' in home.said
        assert "platforms.telegram.token or TELEGRAM_BOT_TOKEN" in home.said

    def test_access_names_of_a_platform(self, home: Home) -> None:
        home.set(
            TELEGRAM_ALLOWED_USERS="1, 2,,1",
            TELEGRAM_DM_POLICY="allowlist",
            TELEGRAM_GROUP_POLICY="allowlist",
            TELEGRAM_GROUP_ALLOWED_CHATS="-100",
            TELEGRAM_REQUIRE_MENTION="false",
        )
        access = home.telegram.access
        assert access.allowed_users == {"1", "2"}
        assert (access.dm_policy, access.group_policy) == (DmPolicy.ALLOWLIST, GroupPolicy.ALLOWLIST)
        assert access.group_allowed_chats == {"-100"}
        assert not access.require_mention

    @pytest.mark.parametrize("name", ["TELEGRAM_ALLOW_ALL_USERS", "GATEWAY_ALLOW_ALL_USERS"])
    def test_allow_all_lets_everybody_in(self, home: Home, name: str) -> None:
        assert home.set(**{name: "true"}).telegram.access.allow_all

    def test_a_star_in_the_list_is_everybody(self, home: Home) -> None:
        assert home.set(TELEGRAM_ALLOWED_USERS="*").telegram.access.allow_all

    def test_people_of_the_gateway_list_join_each_platform_or_the_one_they_name(self, home: Home) -> None:
        home.set(TELEGRAM_ALLOWED_USERS="1", GATEWAY_ALLOWED_USERS="2,qq:3,@ana:example.org")
        assert home.telegram.access.allowed_users == {"1", "2", "@ana:example.org"}
        assert home.config.platforms["qq"]["main"].access.allowed_users == {"2", "3", "@ana:example.org"}

    def test_owners_are_named_with_their_platform_and_let_in_there(self, home: Home) -> None:
        home.set(TELEGRAM_ALLOWED_USERS="1", GATEWAY_OWNERS="telegram:5550142, qq:3,local")
        assert home.config.owners == ("telegram:5550142", "qq:3", "local")
        assert home.telegram.access.allowed_users == {"1", "5550142"}
        assert home.config.platforms["qq"]["main"].access.allowed_users == {"3"}

    @pytest.mark.parametrize("written", ["5550142", "telegram:", "telegram:*", "signal:1", "*"])
    def test_an_owner_who_is_nobodys_id_on_a_platform_is_left_out_and_told(self, home: Home, written: str) -> None:
        home.set(GATEWAY_OWNERS=written)
        assert home.config.owners == ()
        assert not home.telegram.access.allow_all
        assert "which is nobody's id on a platform" in home.said
        assert "telegram:5550142" in home.said

    def test_ids_stay_as_they_were_typed(self, home: Home) -> None:
        home.write(yaml="platforms: {telegram: {allowed_users: [+4912, 0123, 5550142, 'x', on]}}")
        assert home.telegram.access.allowed_users == {"+4912", "0123", "5550142", "x", "on"}

    def test_further_accounts_have_their_own_token_and_share_the_rules(self, home: Home) -> None:
        home.write(
            yaml=f"""
            platforms:
              telegram:
                token: "{TOKEN}"
                allowed_users: [1]
                home_channel: "-5"
                accounts:
                  work: {{token: work-token-work, dm_policy: open}}
                  empty: {{dm_policy: open}}
            """
        )
        accounts = home.config.platforms["telegram"]
        assert list(accounts) == ["main", "work", "empty"]
        assert revealed(accounts["work"].values, "token") == "work-token-work"
        assert accounts["work"].access.allowed_users == {"1"}
        assert accounts["work"].access.dm_policy is DmPolicy.OPEN
        assert accounts["work"].home_channel == ""
        assert accounts["main"].access.dm_policy is DmPolicy.PAIRING
        assert accounts["empty"].missing == ("token",)
        assert 'telegram account "empty" has no token' in home.said

    @pytest.mark.parametrize("name", ["a@b", "a:b", "Work", "a b"])
    def test_an_account_name_that_would_break_an_address_is_refused(self, home: Home, name: str) -> None:
        home.write(yaml=f"platforms: {{telegram: {{accounts: {{'{name}': {{token: x-token-x}}}}}}}}")
        assert list(home.config.platforms["telegram"]) == ["main"]
        assert "is not a usable name" in home.said

    def test_extra_is_read_too_and_the_direct_key_goes_first(self, home: Home) -> None:
        home.write(yaml="platforms: {telegram: {extra: {base_url: 'http://a', poll_seconds: 3}, base_url: 'http://b'}}")
        assert home.telegram.values["base_url"] == "http://b"
        assert home.telegram.values["poll_seconds"] == 3

    def test_a_disabled_account_is_not_ready(self, home: Home) -> None:
        home.set(TELEGRAM_BOT_TOKEN=TOKEN, TELEGRAM_ENABLED="no")
        assert not home.telegram.is_ready

    def test_a_busy_mode_of_its_own(self, home: Home) -> None:
        home.write(yaml="platforms: {telegram: {busy_mode: queue}}")
        assert home.telegram.busy_mode is BusyMode.QUEUE


def test_the_older_gateway_json_is_accepted(home: Home) -> None:
    home.write(
        json=f"""{{
        "platforms": {{"telegram": {{"enabled": true, "token": "{TOKEN}",
            "home_channel": {{"platform": "telegram", "chat_id": -100123, "name": "Home"}}}}}},
        "default_reset_policy": {{"mode": "idle", "at_hour": 5, "idle_minutes": 60}},
        "reset_by_platform": {{"telegram": {{"mode": "idle", "idle_minutes": 240}}}},
        "always_log_local": false}}"""
    )
    assert home.problems == ()
    assert home.telegram.is_ready
    assert (home.telegram.home_channel, home.telegram.home_channel_name) == ("-100123", "Home")
    sessions = home.config.sessions
    assert sessions.reset == ResetPolicy(ResetMode.IDLE, 5, 60)
    assert sessions.reset_for("telegram", ChatKind.DM) == ResetPolicy(ResetMode.IDLE, 5, 240)
    assert sessions.reset_for("qq", ChatKind.DM) == ResetPolicy(ResetMode.IDLE, 5, 60)
    assert not home.config.always_log_local


def test_reset_policies_by_name_and_by_kind(home: Home) -> None:
    home.set(SESSION_IDLE_MINUTES="30", SESSION_RESET_HOUR="6")
    home.write(yaml="sessions: {reset_by_kind: {group: {mode: none}}, reset_by_platform: {qq: {mode: daily}}}")
    sessions = home.config.sessions
    assert sessions.reset == ResetPolicy(ResetMode.BOTH, 6, 30)
    assert sessions.reset_for("telegram", ChatKind.GROUP).mode is ResetMode.NONE
    assert sessions.reset_for("qq", ChatKind.GROUP).mode is ResetMode.DAILY


def test_settings_of_the_agent(home: Home, tmp_path: Path) -> None:
    home.set(HOME=str(tmp_path), MESSAGING_CWD="~/box", HERMES_TOOL_PROGRESS_MODE="all", TZ="Asia/Shanghai")
    assert home.config.agent.workspace == tmp_path / "box"
    assert home.config.agent.tool_progress is ToolProgressMode.ALL
    assert home.config.timezone == "Asia/Shanghai"
    assert home.set(HERMES_TOOL_PROGRESS="off").config.agent.tool_progress is ToolProgressMode.OFF


def test_durations_take_units(home: Home) -> None:
    home.write(yaml="delivery: {answer_ttl_seconds: 90m, parked_ttl_seconds: 2d, notice_ttl_seconds: 5}")
    delivery = home.config.delivery
    assert (delivery.answer_ttl_seconds, delivery.parked_ttl_seconds, delivery.notice_ttl_seconds) == (5400, 172800, 5)


class TestOddValues:
    def test_a_bad_value_is_named_and_leaves_the_default(self, home: Home) -> None:
        home.write(yaml="agent:\n  max_iterations: many\n  busy_mode: queue\n")
        assert home.config.agent.max_iterations == 60
        assert home.config.agent.busy_mode is BusyMode.QUEUE
        assert "config.yaml line 2: agent.max_iterations: should be a whole number, not 'many'." in home.said
        assert "The default stays: 60." in home.said

    def test_a_mistyped_policy_never_opens_what_a_lower_layer_left_open(self, home: Home) -> None:
        home.set(TELEGRAM_DM_POLICY="alowlist").write(yaml="platforms: {telegram: {dm_policy: open}}")
        assert home.telegram.access.dm_policy is DmPolicy.PAIRING
        assert "should be one of pairing, open, allowlist, disabled" in home.said

    @pytest.mark.parametrize(
        "name,value",
        [
            ("API_SERVER_PORT", "99999"),
            ("SESSION_RESET_HOUR", "24"),
            ("HERMES_MAX_ITERATIONS", "0"),
            ("TELEGRAM_BASE_URL", "api.telegram.org:x"),
            ("TELEGRAM_PROXY", "ftp://host"),
            ("HERMES_DATABASE_URL", "mysql://host/db"),
            ("TZ", "Mars/Olympus"),
            ("TELEGRAM_POLL_SECONDS", "nan"),
            ("TELEGRAM_REQUIRE_MENTION", "perhaps"),
        ],
    )
    def test_values_out_of_their_range_are_told(self, home: Home, name: str, value: str) -> None:
        problems = home.set(**{name: value}).problems
        assert [problem.level for problem in problems if name in problem.where] == ["error"]

    def test_a_section_where_a_value_belongs_and_the_other_way_round(self, home: Home) -> None:
        home.write(yaml="agent: 5\napi: {port: {a: 1}, host: [a, b]}\nlogs: {level: DEBUG}")
        assert home.config.logs.level == "DEBUG"
        assert "agent: is a section" in home.said
        assert "api.port: takes one value, not a section" in home.said
        assert "api.host: takes one value, not a list" in home.said

    def test_unknown_keys_come_with_the_nearest_known_one(self, home: Home) -> None:
        home.write(
            env="A=1\nTELEGRAM_ALOWED_USERS=5\nTELEGRAM_SOMETHING_ELSE=1\nOPENAI_BASE_URLS=x\nPATH=x",
            yaml="platforms:\n  telegram:\n    tokn: x\nagnet: {}\n",
            json='{"always_log_locl": true}',
        )
        assert ".env line 2: TELEGRAM_ALOWED_USERS is unknown. → TELEGRAM_ALLOWED_USERS?" in home.said
        assert ".env line 3: TELEGRAM_SOMETHING_ELSE is unknown." in home.said
        assert ".env line 4: OPENAI_BASE_URLS is unknown. → OPENAI_BASE_URL?" in home.said
        assert "config.yaml line 3: platforms.telegram.tokn: is unknown. → platforms.telegram.token?" in home.said
        assert "config.yaml line 4: agnet: is unknown. → agent?" in home.said
        assert "gateway.json: always_log_locl: is unknown. → always_log_local?" in home.said
        assert "PATH" not in home.said

    def test_a_platform_that_is_not_installed_is_said_to_be_missing(self, home: Home) -> None:
        home.write(yaml="platforms: {telegramm: {token: x}}")
        assert "names no platform that is installed here. → platforms.telegram?" in home.said

    def test_a_key_that_stands_twice_is_told(self, home: Home) -> None:
        home.write(yaml="agent: {max_iterations: 5, max_iterations: 6}")
        assert home.config.agent.max_iterations == 6
        assert "stands here for the second time" in home.said


class TestPlaceholders:
    @pytest.mark.parametrize(
        "value", ["<your key>", "changeme", "CHANGEME", "your-token-here", "YOUR_BOT_TOKEN", "replace-me", " <x> "]
    )
    def test_an_example_left_in_place_is_refused_in_words(self, home: Home, value: str) -> None:
        home.write(env=f"TELEGRAM_BOT_TOKEN={value}\nOPENAI_API_KEY={value}\nAPI_SERVER_KEY={value}")
        assert not home.telegram.is_ready
        assert home.config.model.provider == "embedded"
        assert home.config.api.key is None
        assert ".env line 1: TELEGRAM_BOT_TOKEN: still holds an example value" in home.said

    def test_an_empty_secret_is_told(self, home: Home) -> None:
        home.write(env="TELEGRAM_BOT_TOKEN=")
        assert ".env line 1: TELEGRAM_BOT_TOKEN: is empty." in home.said

    def test_a_placeholder_does_not_hide_the_value_behind_it(self, home: Home) -> None:
        home.write(env="TELEGRAM_BOT_TOKEN=<token>", yaml=f"platforms: {{telegram: {{token: '{TOKEN}'}}}}")
        assert home.telegram.is_ready

    def test_an_example_id_lets_nobody_in_and_the_others_stay(self, home: Home) -> None:
        home.write(env="TELEGRAM_ALLOWED_USERS=<your id>,42")
        assert home.telegram.access.allowed_users == {"42"}
        home.write(env="TELEGRAM_ALLOWED_USERS=<your id>,<another id>")
        assert home.telegram.access.allowed_users == frozenset()

    @pytest.mark.parametrize("value", ["sk-changeme-not", "my-your-key", "<half", "test", "1234", "xxxx", "token"])
    def test_nothing_else_is_refused(self, home: Home, value: str) -> None:
        assert home.write(env=f"TELEGRAM_BOT_TOKEN={value}").telegram.is_ready

    def test_the_example_file_with_every_line_uncommented_configures_nothing(self, home: Home) -> None:
        example = (ROOT / ".env.example").read_text("utf-8")
        lines = [line[2:] for line in example.splitlines() if line.startswith("# ") and "=" in line.split(" ")[1]]
        assert len(lines) > 15
        assert all(is_placeholder(line.partition("=")[2]) for line in lines if "KEY" in line or "TOKEN" in line)
        plain = home.config
        home.write(env="\n".join(lines))
        config = home.config
        assert (config.model, config.providers, config.api, config.database_url) == (
            plain.model,
            plain.providers,
            plain.api,
            plain.database_url,
        )
        assert not home.telegram.is_ready
        assert not home.telegram.access.admits_somebody
        assert home.telegram.home_channel == ""
        assert config.agent == plain.agent


class TestBrokenFiles:
    def test_broken_yaml_is_named_by_line_and_column_and_the_other_layers_count(self, home: Home) -> None:
        home.write(
            yaml="agent:\n  max_iterations: [5\nmodel: x\n", env="HERMES_MAX_ITERATIONS=9", json='{"language": "zh"}'
        )
        assert home.config.agent.max_iterations == 9
        assert home.config.language == "zh"
        assert "config.yaml line 3, column " in home.said
        assert "is not valid YAML" in home.said

    def test_broken_json_is_named_by_line_and_column(self, home: Home) -> None:
        home.write(json='{"a": 1,\n "b" 2}', yaml="language: zh")
        assert home.config.language == "zh"
        assert "gateway.json line 2, column 6: is not valid JSON" in home.said

    @pytest.mark.parametrize(
        "content",
        [
            "a: *sk-secret-in-an-alias\n",
            "- a\n- b\n",
            "just text",
            "{" * 5000,
            "a: " + "[" * 5000,
            "x: &x [*x]\nagent: *x\nplatforms: &p {telegram: *p}\n",
            "a: \x00",
            "? [complex, key]\n: value\n",
            "!!python/object/apply:os.system ['true']",
            "a: b: c",
            "\t- x",
        ],
    )
    def test_whatever_stands_in_the_yaml_nothing_stops(self, home: Home, content: str) -> None:
        home.write(yaml=content, env="HERMES_LANGUAGE=zh")
        assert home.config.language == "zh"
        assert home.problems
        assert "sk-secret" not in home.said

    def test_nested_aliases_do_not_grow(self, home: Home) -> None:
        rows = ["a0: &a0 {k: v}"] + [f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}" for n in range(1, 35)]
        assert home.write(yaml="\n".join([*rows, "language: zh"])).config.language == "zh"

    def test_merge_keys_work(self, home: Home) -> None:
        home.write(
            yaml="""
            model: x
            providers:
              a: &a {base_url: "http://a", default_model: m}
              b: {<<: *a, base_url: "http://b"}
            """
        )
        assert home.config.providers["b"].default_model == "m"
        assert home.config.providers["b"].base_url == "http://b"
        assert home.problems == ()

    def test_a_file_too_big_to_be_meant_is_not_read(self, home: Home) -> None:
        home.write(yaml="#" * 1_000_001)
        assert "at most 1,000,000 are read" in home.said

    def test_a_folder_in_place_of_a_file_is_told(self, home: Home) -> None:
        (home.path / "config.yaml").mkdir()
        assert "config.yaml: cannot be read: Is a directory" in home.said


def test_nothing_printed_holds_a_secret(home: Home) -> None:
    canary = "canary-5f2d9c"
    home.set(TELEGRAM_PROXY=f"socks5://me:{canary}@127.0.0.1:1080", HERMES_DATABASE_URL=f"postgresql://u:{canary}@db/x")
    home.set(HTTPS_PROXY=f"http://me:{canary}@127.0.0.1:3128")
    home.write(
        env=f"TELEGRAM_BOT_TOKEN={canary}\nOPENAI_API_KEY={canary}\nAPI_SERVER_KEY={canary}",
        yaml=f"providers: {{relay: {{base_url: 'http://r', api_key: {canary}, api_key_env: {canary}}}}}",
    )
    loaded = home.load()
    assert canary not in repr(loaded.config)
    assert canary not in repr(loaded.problems)
    headers = {b64encode(f"{name}:{canary}".encode()).decode() for name in ("me", "u")}  # what a login is sent as
    assert {secret.reveal() for secret in loaded.config.secrets()} == {canary, *headers}

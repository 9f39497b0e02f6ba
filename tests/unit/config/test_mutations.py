"""N-13: one bad key never stops the rest. A thousand configurations, each broken in one place."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes.config import Loaded
from tests.unit.config.samples import TOKEN, Home

pytestmark = pytest.mark.one_python

GOOD: dict[str, Any] = {
    "language": "zh",
    "timezone": "Asia/Shanghai",
    "database": {"url": "postgresql://db/hermes"},
    "model": {"default": "qwen3", "provider": "relay", "fallbacks": ["openai/gpt-4o-mini"]},
    "providers": {
        "relay": {"base_url": "https://relay.example/v1", "api_key": "sk-relay-0123456789"},
        "openai": {"api_key": "sk-openai-0123456789"},
    },
    "agent": {"max_iterations": 7, "busy_mode": "queue", "join_pause_seconds": 0.5, "identical_call_limit": 4},
    "sessions": {"reset": {"mode": "idle", "at_hour": 5, "idle_minutes": 30}},
    "delivery": {"answer_ttl_seconds": "2h", "notice_ttl_seconds": 30},
    "api": {"port": 8643, "host": "127.0.0.2", "key": "an-api-key-of-ours"},
    "logs": {"level": "DEBUG"},
    "gateway": {"allowed_users": ["9"]},
    "platforms": {
        "telegram": {
            "token": TOKEN,
            "allowed_users": ["1", "2"],
            "dm_policy": "allowlist",
            "require_mention": False,
            "home_channel": "-5",
            "accounts": {"work": {"token": "5550199:work-token", "dm_policy": "open"}},
        },
        "qq": {"app_id": "1024", "client_secret": "a-secret-of-qq"},
    },
}

JUNK: list[Any] = [
    None, True, -1, 0, 10**400, 1.5e308, float("nan"), float("inf"), "", " ", "\u0000", "\ud7ff", "💥" * 50, "x" * 5000,
    "<junk>", "changeme", "*", "../..", "a\nb", "%s", "{}", [], [[]], [None], [{}], {}, {"a": {"b": [1]}}, {"": 1},
    ["x"] * 500, "http://[", "socks5://", "9" * 400, "١٢", "1e999", "-0", "0x10", "true ", "!!int x",
]  # fmt: skip


def leaves(tree: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in tree.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))


def mutated(rng: random.Random) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The good configuration with one place broken, and which: another value, another name, or gone."""
    tree = json.loads(json.dumps(GOOD))
    path = rng.choice(list(leaves(GOOD)))
    parent = tree
    for name in path[:-1]:
        parent = parent[name]
    match rng.randrange(4):
        case 0:
            parent[path[-1] + rng.choice(["x", " ", "é", "."])] = parent.pop(path[-1])
        case 1:
            del parent[path[-1]]
        case _:
            parent[path[-1]] = rng.choice(JUNK)
    return tree, path


def assert_the_rest_is_as_in(good: Loaded, loaded: Loaded, path: tuple[str, ...]) -> None:
    for key, found in good.sources.items():
        if key[: len(path)] != path:
            assert loaded.sources[key].value == found.value, (path, key)
    for section in ("agent", "sessions", "delivery", "api", "logs", "language", "timezone"):
        if path[0] != section:
            assert getattr(loaded.config, section) == getattr(good.config, section), (path, section)
    for platform in ("telegram", "qq", "local"):
        if path[0] != "gateway" and path[:2] not in {("platforms",), ("platforms", platform)}:
            assert loaded.config.platforms[platform] == good.config.platforms[platform], (path, platform)


def test_one_bad_key_in_a_file_never_stops_the_rest(tmp_path: Path) -> None:
    home = Home(tmp_path).write(json=json.dumps(GOOD))
    good = home.load()
    assert good.problems == ()
    assert len(good.sources) > 25
    rng = random.Random(13)
    for number in range(600):
        tree, path = mutated(rng)
        if number % 3:
            home.write(json=json.dumps(tree), yaml="")
        else:
            home.write(yaml=json.dumps(tree, ensure_ascii=False), json="")  # JSON is YAML too, and quicker to write
        assert_the_rest_is_as_in(good, home.load(), path)
        assert_the_rest_is_as_in(good, home.load(previous=good), path)


def test_any_bytes_in_any_file_never_stop_the_other_files(tmp_path: Path) -> None:
    home = Home(tmp_path)
    good_env = f"TELEGRAM_BOT_TOKEN={TOKEN}\nAPI_SERVER_PORT=8643\nHERMES_LANGUAGE=zh\n"
    good_yaml = yaml.safe_dump({**GOOD, "platforms": {}, "api": {}, "language": None})
    rng = random.Random(14)

    def damaged(text: str) -> bytes:
        content = bytearray(text.encode())
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(content))
            match rng.randrange(3):
                case 0:
                    content[place] = rng.randrange(256)
                case 1:
                    del content[place : place + rng.randrange(20)]
                case _:
                    content[place:place] = rng.choice(
                        [b"\xff", b"\x00", b"\n", b"\t", b"{", b"]", b":", b"'", b"&a *a"]
                    )
        return bytes(content)

    home.write(env=good_env, yaml=good_yaml)
    good = home.config
    for _ in range(200):
        home.write(env=good_env, yaml=damaged(good_yaml))
        config = home.config
        assert (config.language, config.api.port) == ("zh", 8643)
        assert config.platforms["telegram"]["main"].is_ready
        home.write(env=damaged(good_env), yaml=good_yaml)
        config = home.config
        assert (config.model, config.delivery, config.sessions) == (good.model, good.delivery, good.sessions)


def test_variables_of_any_content_never_raise(tmp_path: Path) -> None:
    home = Home(tmp_path).write()
    names = list(home.load().schema.env_names({"openai": ""}))
    rng = random.Random(15)
    for _ in range(200):
        bad = rng.choice(names)
        home.environ = {bad: str(rng.choice(JUNK)), "HERMES_MAX_ITERATIONS": "7"}
        config = home.config
        assert bad == "HERMES_MAX_ITERATIONS" or config.agent.max_iterations == 7

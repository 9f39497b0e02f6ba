"""The settings of the web tools."""

from __future__ import annotations

from hermes.config import WebConfig
from tests.unit.config.samples import Home


def test_unset_they_are_what_the_page_says(home: Home) -> None:
    assert home.config.web == WebConfig()
    assert home.config.vision.model == ""


def test_keys_and_hosts_come_from_the_environment(home: Home) -> None:
    home.set(BRAVE_API_KEY="BSA-0123456789", WEB_ALLOW_PRIVATE_HOSTS="nas.lan, 192.168.1.5:5000")
    home.set(WEB_SEARCH_PROVIDER="Brave", SEARXNG_URL="http://ana:pass-word@127.0.0.1:8888")
    web = home.config.web
    assert web.allow_private_hosts == ("nas.lan", "192.168.1.5:5000")
    assert web.search_provider == "brave"
    assert "0123456789" not in repr(web)
    assert "pass-word" not in repr(web)
    assert {secret.reveal() for secret in home.config.secrets()} >= {"BSA-0123456789", "pass-word"}


def test_a_port_that_is_none_is_left_out_and_told(home: Home) -> None:
    home.write(yaml="web: {ports: [443, http, 70000, 8000]}")
    assert home.config.web.ports == (443, 8000)
    assert "web.ports" in home.said


def test_a_bad_limit_keeps_the_default(home: Home) -> None:
    home.write(yaml="web: {max_bytes: lots, timeout_seconds: 1h}")
    assert home.config.web.max_bytes == WebConfig().max_bytes
    assert home.config.web.timeout_seconds == WebConfig().timeout_seconds
    assert "web.max_bytes" in home.said

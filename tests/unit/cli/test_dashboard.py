"""``hermes dashboard``: where a browser can open, and the line that brings a closed port to another machine."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hermes.cli.dashboard import has_screen, listing, tunnel
from hermes.cli.support.remote import base_of, look


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac always has a screen")
def test_a_browser_opens_only_where_there_is_a_screen() -> None:
    assert not has_screen({})
    assert has_screen({"DISPLAY": ":0"})
    assert not has_screen({"DISPLAY": ":10", "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.7 22"})


def test_the_tunnel_leads_to_the_address_that_ssh_was_called_with() -> None:
    environ = {"SSH_CONNECTION": "192.0.2.1 50000 192.0.2.7 22", "USER": "ana"}
    assert tunnel(environ, "127.0.0.1", 8642) == "ssh -L 8642:127.0.0.1:8642 ana@192.0.2.7"
    assert tunnel(environ, "192.0.2.7", 8642) == ""


def test_an_empty_list_says_how_to_sign_in() -> None:
    assert "dashboard" in listing([])[0]


@pytest.fixture
def health() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"status": "ok"} if self.path == "/health" else {}).encode()
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("path", ["", "/health", "/health/", "/health/detailed"])
def test_a_gateway_elsewhere_is_running_remotely(health: str, path: str) -> None:
    found = look(f"{health}{path}", 5)
    assert found.is_running
    assert found.sentence == f"Running (remote): {health}"


def test_a_gateway_elsewhere_that_does_not_answer_is_named_with_its_setting() -> None:
    found = look("http://127.0.0.1:9/health", 1)
    assert not found.is_running
    assert "http://127.0.0.1:9 does not answer" in found.sentence
    assert "GATEWAY_HEALTH_URL" in found.sentence


def test_a_path_of_the_address_stays() -> None:
    assert base_of("https://box.example/hermes/health/detailed") == "https://box.example/hermes"

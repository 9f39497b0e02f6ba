"""``hermes dashboard``: where a browser can open, and the line that brings a closed port to another machine."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hermes.cli.dashboard import has_screen, listing, tunnel
from hermes.servers.dashboard.remote import base_of, look


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


@contextmanager
def tricky(answer: bytes, pause: float = 0.0) -> Iterator[str]:
    """A server that sends these bytes to everybody, with a pause after each, and then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    with connection:
                        connection.recv(4096)
                        for each in [answer] if not pause else [answer[at : at + 1] for at in range(len(answer))]:
                            connection.sendall(each)
                            is_over.wait(pause)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            is_over.set()
            with suppress(OSError):
                socket.create_connection(listening.getsockname(), 1).close()
            thread.join()


def http(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


OTHERS = {
    "no HTTP": (b"220 mail.example ESMTP\x1b[2J\r\n", "is not a Hermes gateway"),
    "no JSON": (http(b"<html>hello</html>"), "is not a Hermes gateway"),
    "another JSON": (http(b'["ok"]'), "is not a Hermes gateway"),
    "another status": (http(b'{"status": "\\u001b[2Jok"}'), "is not a Hermes gateway"),
    "a megabyte": (http(b'{"status": "ok", "x": "' + b"y" * 1_000_000 + b'"}'), "is not a Hermes gateway"),
    "deeper than Python": (http(b"[" * 90_000), "is not a Hermes gateway"),
    "an error": (http(b"{}", b"503 Down\x1b[31m"), "answers 503"),
    "a way elsewhere": (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", "answers 302"),
    "half an answer": (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "is not a Hermes gateway"),
}


@pytest.mark.parametrize("which", OTHERS)
def test_what_is_no_gateway_is_named_and_its_words_are_not_repeated(which: str) -> None:
    answer, words = OTHERS[which]
    with tricky(answer) as url:
        found = look(url, 10)
    assert not found.is_running
    assert words in found.sentence
    assert found.sentence.isprintable()


def test_a_server_that_sends_a_byte_now_and_then_gets_no_more_time_than_another() -> None:
    began = time.monotonic()
    with tricky(http(b'{"status": "ok"}'), pause=0.1) as url:
        found = look(url, 0.3)
        took = time.monotonic() - began
    assert "does not answer: timed out" in found.sentence
    assert took < 3


def test_of_a_hostile_gateway_only_known_fields_are_kept() -> None:
    told = {
        "status": "degraded",
        "gateway_state": "up\x1b[2J\n",
        "active_agents": "\x1b",
        "x": 1,
        "waiting": {"a\x00": 2},
    }
    with tricky(http(json.dumps(told).encode())) as url:
        found = look(url.replace("http://", "http://user:secret@"), 10)
    assert (found.state, found.sentence) == ("degraded", f"Running (remote), degraded: {url}")
    assert set(found.health) == {"status", "gateway_state", "waiting"}
    assert all(text.isprintable() for text in (found.health["gateway_state"], *found.health["waiting"]))


def test_a_path_of_the_address_stays() -> None:
    assert base_of("https://box.example/hermes/health/detailed") == "https://box.example/hermes"

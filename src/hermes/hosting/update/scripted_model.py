"""A model that gives one answer: what a new version is asked against before it is taken up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_BODY_BYTES = 16 << 20


@contextmanager
def scripted_model(answer: str) -> Iterator[str]:
    """Serve the chat completions API on a port of this machine; gives its address."""

    class ScriptedHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), MAX_BODY_BYTES))
            is_stream = bool(json.loads(asked or b"{}").get("stream"))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
            self.end_headers()
            self.wfile.write(_stream(answer) if is_stream else json.dumps(_whole(answer)).encode())

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedHandler)
    thread = threading.Thread(target=server.serve_forever, name="scripted model", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _whole(answer: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
    return {"id": "probe", "object": "chat.completion", "created": 0, "model": "probe", "choices": [choice]}


def _stream(answer: str) -> bytes:
    parts: list[dict[str, Any]] = [
        {"delta": {"role": "assistant", "content": answer}, "finish_reason": None},
        {"delta": {}, "finish_reason": "stop"},
    ]
    chunks = [
        {
            "id": "probe",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "probe",
            "choices": [{"index": 0, **part}],
        }
        for part in parts
    ]
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"

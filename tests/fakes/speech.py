"""Speech services on loopback: one that speaks and listens as OpenAI's does, ElevenLabs, and Edge's WebSocket."""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from typing import Any, Self

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.agent.speech.edge import CLIENT, token
from tests.fakes.files import OPUS

MP3 = b"ID3\x04\x00\x00\x00\x00\x00\x00" + b"\xff\xfb\x90\x00" * 50


class FakeSpeech:
    """``spoken`` is what it was asked to say, ``heard`` what sounds came; ``words`` is what it hears in each."""

    def __init__(self, *, key: str = "") -> None:
        self.key = key
        self.words = "what is the time"
        self.sound = OPUS
        self.now = time.time
        self.spoken: list[dict[str, Any]] = []
        self.heard: list[tuple[str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self._refusals: list[tuple[int, str]] = []
        app = web.Application(client_max_size=30_000_000)
        app.router.add_post("/v1/audio/speech", self._speak)
        app.router.add_post("/v1/audio/transcriptions", self._hear)
        app.router.add_post("/v1/text-to-speech/{voice}", self._eleven)
        app.router.add_get("/consumer/speech/synthesize/readaloud/edge/v1", self._edge)
        self._server = TestServer(app)

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def url(self) -> str:
        """The address as OpenAI's is written."""
        return f"{self.root}/v1"

    def refuse_next(self, status: int, text: str = '{"error":{"message":"no"}}') -> None:
        self._refusals.append((status, text))

    def _refused(self, request: web.Request) -> web.Response | None:
        self.headers.append(dict(request.headers))
        if self._refusals:
            status, text = self._refusals.pop(0)
            return web.Response(status=status, text=text, content_type="application/json")
        given = request.headers.get("Authorization", "").removeprefix("Bearer ") or request.headers.get(
            "xi-api-key", ""
        )
        return web.Response(status=401, text="{}") if self.key and given != self.key else None

    async def _speak(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        asked = await request.json()
        if not asked.get("input") or not asked.get("model") or not asked.get("voice"):
            return web.json_response({"error": {"message": "input, model and voice are required"}}, status=400)
        self.spoken.append(asked)
        return web.Response(body=self.sound, content_type="audio/ogg")

    async def _hear(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        self.heard.append((file.filename, file.file.read()))
        return web.json_response({"text": self.words})

    async def _eleven(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        self.spoken.append({**(await request.json()), "voice": request.match_info["voice"]})
        return web.Response(body=MP3, content_type="audio/mpeg")

    async def _edge(self, request: web.Request) -> web.StreamResponse:
        """As the browser's service: a stale token is a 403 with the right time; frames in its own form."""
        asked = request.query
        is_fresh = asked["Sec-MS-GEC"] == token(self.now())
        if asked["TrustedClientToken"] != CLIENT or not is_fresh or "Edg/" not in request.headers["User-Agent"]:
            return web.Response(status=403, headers={"Date": formatdate(self.now(), usegmt=True)})
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        config, ssml = await socket.receive_str(), await socket.receive_str()
        head, _, body = ssml.partition("\r\n\r\n")
        assert "Path:speech.config" in config
        assert "Path:ssml" in head
        voice = re.search(r"<voice name='([^']+)'>", body)
        text = re.search(r"<prosody[^>]*>(.*)</prosody>", body, re.DOTALL)
        assert voice is not None
        assert text is not None
        self.spoken.append({"voice": voice[1], "input": text[1]})
        await socket.send_str("X-RequestId:1\r\nPath:turn.start\r\n\r\n{}")
        if voice[1] != "xx-XX-MuteNeural":
            for piece in (MP3[:40], MP3[40:]):
                header = b"X-RequestId:1\r\nContent-Type:audio/mpeg\r\nPath:audio\r\n"
                await socket.send_bytes(len(header).to_bytes(2, "big") + header + piece)
        await socket.send_str("X-RequestId:1\r\nPath:turn.end\r\n\r\n{}")
        await socket.close(code=aiohttp.WSCloseCode.OK)
        return socket

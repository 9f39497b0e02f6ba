"""A scripted model provider on 127.0.0.1: every dialect, streamed and not.

    async with FakeModel() as model:
        model.says("Hello, Ana.")                        # the next call
        model.when("weather", calls_tools(("read_file", {"path": "weather.txt"})))
        model.fails_next(429, "slow down", {"Retry-After": "1"})
        ... Endpoint("fake", model.url, "fake-1") ...
        assert model.requests[0]["messages"][-1]["content"] == "hi"

A script counts for whichever dialect is spoken: ``/chat/completions`` here, ``/responses`` in ``model_responses``,
``/messages`` in ``model_anthropic``. Without a script it answers ``echo: <last user text>`` at once. As a process of
its own, for benchmarks: ``python -m tests.fakes.model --port 9000 --mode stream --tokens 500 --rate 20``.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import orjson
from aiohttp import web

Json = dict[str, Any]
ToolUse = tuple[str, Json]
DONE = b"data: [DONE]\n\n"
KEPT_BY_A_PROCESS = 20
"""Requests that the process of a benchmark remembers: nobody can ask it for them."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. ``tokens`` are its pieces when streamed; a rate of 0 sends them all at once."""

    text: str = ""
    tool_calls: tuple[ToolUse, ...] = ()
    reasoning: str = ""
    finish: str = ""
    usage: tuple[int, int] | None = (12, 7)
    tokens: tuple[str, ...] = ()
    tokens_per_second: float = 0.0
    is_stamped: bool = False
    """Whether its first token is the time at which it was written, by the machine's monotonic clock."""
    cost: float = 0.0
    """In dollars, as OpenRouter tells it; 0: not told."""

    @property
    def pieces(self) -> tuple[str, ...]:
        return self.tokens or ((self.text,) if self.text else ())

    @property
    def whole_text(self) -> str:
        return self.text or "".join(self.tokens)

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.tool_calls else "stop")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A bad status; a body that is a text becomes OpenAI's error object."""

    status: int
    body: str | bytes | Json = "refused"
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""

    def payload(self, speech: Speech) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return orjson.dumps(
            speech.error(self.status, self.body, self.code) if isinstance(self.body, str) else self.body
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """Bytes exactly as a provider sent them, in these pieces. ``cut`` drops the connection after the last one."""

    pieces: tuple[bytes, ...]
    content_type: str = "text/event-stream"
    cut: bool = False
    stays_open: bool = False


Answer = Reply | Refusal | Recorded


class Prepared(NamedTuple):
    """A stream's head, one piece for each token, and its tail. Paced pieces carry their chunk frame already."""

    head: bytes
    pieces: Sequence[bytes]
    tail: bytes


class Speech(Protocol):
    """How one dialect is spoken from the provider's side."""

    def key_of(self, request: web.Request) -> str: ...

    def complaint_about(self, body: Json) -> str:
        """What a strict provider refuses, or nothing."""

    def error(self, status: int, message: str, code: str = "") -> Json: ...

    def whole_body(self, answer: Reply, model: str, call_prefix: str) -> Json: ...

    def prepare(self, answer: Reply, model: str, call_prefix: str, body: Json) -> Prepared: ...


def calls_tools(*calls: ToolUse, text: str = "") -> Reply:
    return Reply(text=text, tool_calls=calls)


class FakeModel:
    """The server. ``requests`` keeps every parsed body, ``keys`` the key each came with."""

    def __init__(
        self,
        *,
        key: str = "",
        model: str = "fake-1",
        port: int = 0,
        default: Answer | None = None,
        keeps: int | None = None,
    ) -> None:
        """``keeps``: how many of the newest requests are remembered; None for all."""
        self.requests: list[Json] = []
        self.asked = 0
        self.bad_keys: dict[str, Refusal] = {}  # keys that are refused, each with its own status and headers
        self.newest_bodies: deque[bytes] = deque(maxlen=20)
        self.keys: list[str] = []
        self.hung_up = 0
        self.open_now = 0
        self.most_open = 0
        self.default = default
        self._key = key
        self._model = model
        self._port = port
        self._keeps = keeps
        self._script: deque[Answer] = deque()
        self._rules: list[tuple[re.Pattern[str], Answer]] = []
        self._result_rules: list[tuple[re.Pattern[str], Answer]] = []
        self._system_rules: list[tuple[re.Pattern[str], Answer]] = []
        self._let_go = asyncio.Event()
        self._let_go.set()
        self._released = asyncio.Event()
        self._released.set()
        self._is_silent = False
        self._holding = asyncio.Event()
        self._gone = asyncio.Event()
        self._pacers: dict[float, Pacer] = {}
        self._kept: dict[tuple[str, bool], tuple[Reply, Prepared]] = {}
        self._serial = uuid.uuid4().hex[:8]
        self._runner: web.AppRunner | None = None

    # What a test says

    def says(self, text: str, **more: Any) -> None:
        """The next call is answered with this text."""
        self.script([Reply(text=text, **more)])

    def calls_tools(self, calls: Iterable[ToolUse], text: str = "") -> None:
        """The next call is answered with these tool calls."""
        self.script([calls_tools(*calls, text=text)])

    def streams(self, tokens: int | Sequence[str], tokens_per_second: float = 0.0) -> None:
        """From now on every call without a script is answered with these tokens, at this pace."""
        self.default = paced(tokens, tokens_per_second)

    def script(self, answers: Iterable[Answer | str]) -> None:
        """The next calls are answered with these, one each."""
        self._script.extend(Reply(text=answer) if isinstance(answer, str) else answer for answer in answers)

    def when(self, pattern: str, answer: Answer | str) -> None:
        """Whenever the last user message matches. The newest rule counts first; a script counts before rules."""
        found = Reply(text=answer) if isinstance(answer, str) else answer
        self._rules.insert(0, (re.compile(pattern, re.IGNORECASE | re.DOTALL), found))

    def when_told(self, pattern: str, answer: Answer | str) -> None:
        """Whenever the last message is the result of a call, and matches. Counts before ``when``."""
        found = Reply(text=answer) if isinstance(answer, str) else answer
        self._result_rules.insert(0, (re.compile(pattern, re.IGNORECASE | re.DOTALL), found))

    def when_instructed(self, pattern: str, answer: Answer | str, *, is_held: bool = False) -> None:
        """Whenever the system message matches; counts before scripts. ``is_held``: not before ``release``."""
        found = Reply(text=answer) if isinstance(answer, str) else answer
        self._system_rules.insert(0, (re.compile(pattern, re.IGNORECASE | re.DOTALL), found))
        if is_held:
            self._let_go.clear()

    def fails_next(
        self,
        status: int,
        body: str | bytes | Json = "refused",
        headers: Mapping[str, str] | None = None,
        code: str = "",
    ) -> None:
        self.script([Refusal(status, body, headers or {}, code)])

    def sends_next(self, *pieces: bytes, content_type: str = "text/event-stream", cut: bool = False) -> None:
        """The next call gets exactly these bytes; with ``cut`` the connection then breaks."""
        self.script([Recorded(pieces, content_type, cut)])

    def hold(self, *, silently: bool = False) -> None:
        """From now on every answer stops after its first token (or before a whole body) until ``release``.

        ``silently``: before its first byte, headers included.
        """
        self._is_silent = silently
        self._holding.clear()
        self._released.clear()

    def release(self) -> None:
        self._released.set()
        self._let_go.set()

    async def is_holding(self, within_seconds: float = 30.0) -> None:
        """Wait until an answer is being held."""
        async with asyncio.timeout(within_seconds):
            await self._holding.wait()

    async def is_hung_up_on(self, within_seconds: float = 30.0) -> None:
        """Wait until a client has closed its connection in the middle of an answer."""
        async with asyncio.timeout(within_seconds):
            await self._gone.wait()

    @property
    def last_request(self) -> Json:
        return self.requests[-1]

    # The server

    @property
    def url(self) -> str:
        """The API root, as ``base_url`` wants it."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64_000_000)
        for path, speech in speeches().items():
            app.router.add_post(f"/v1{path}", partial(self._asked, speech))
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/embeddings", self._embeddings)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=1024)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()
        for rate_limiter in self._pacers.values():
            rate_limiter.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        if (refused := self._wrong_key(request, _speech_of(request))) is not None:
            return refused
        return _json(200, {"object": "list", "data": [{"id": self._model, "object": "model", "owned_by": "fake"}]})

    async def _embeddings(self, request: web.Request) -> web.Response:
        """A vector of one number for each text: its length. A refusal in the script counts here too."""
        body: Json = orjson.loads(await request.read())
        self.requests.append(body)
        speech = _speech_of(request)
        if (refused := self._wrong_key(request, speech)) is not None:
            return refused
        if self._script and isinstance(self._script[0], Refusal):
            return _refusal(self._script.popleft(), speech)  # type: ignore[arg-type]
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [
            {"object": "embedding", "index": index, "embedding": [float(len(text))]} for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return _json(200, {"object": "list", "data": data, "model": body["model"], "usage": usage})

    async def _asked(self, speech: Speech, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.newest_bodies.append(raw)
        body: Json = orjson.loads(raw)
        self.requests.append(body)
        self.asked += 1
        if self._keeps is not None:
            del self.requests[: -self._keeps], self.keys[: -self._keeps]
        if (refused := self._wrong_key(request, speech)) is not None:
            return refused
        if complaint := speech.complaint_about(body):
            return _json(400, speech.error(400, complaint))
        answer = self._instructed(body)
        if answer is not None and not self._let_go.is_set():
            self._holding.set()
            await self._let_go.wait()
        answer = answer or self._answer_to(body)
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            return await self._send(request, speech, body, answer)
        except (asyncio.CancelledError, ConnectionResetError):
            self.hung_up += 1
            self._gone.set()
            raise
        finally:
            self.open_now -= 1

    async def _send(self, request: web.Request, speech: Speech, body: Json, answer: Answer) -> web.StreamResponse:
        if self._is_silent:
            await self._wait_if_held()
        if isinstance(answer, Refusal):
            return _refusal(answer, speech)
        if isinstance(answer, Recorded):
            return await self._send_recorded(request, answer)
        if not body.get("stream"):
            await self._wait_if_held()
            return _json(200, speech.whole_body(answer, self._model, self._call_prefix()))
        return await self._send_stream(request, answer, self._prepared(speech, answer, body))

    async def _send_stream(self, request: web.Request, answer: Reply, prepared: Prepared) -> web.StreamResponse:
        response = await _opened(request, "text/event-stream; charset=utf-8")
        head, pieces, tail = prepared
        if answer.tokens_per_second:
            await response.write(head)
            if answer.is_stamped:
                pieces = [_framed(_event(self._model, {"content": f"@{time.monotonic()} "})), *pieces[1:]]
            await self._rate_limiter(answer.tokens_per_second).send(request, pieces)
            await response.write(tail)
        elif self._released.is_set():
            await response.write(b"".join((head, *pieces, tail)))
        else:
            await response.write(b"".join((head, *pieces[:1])))
            await self._wait_if_held()
            await response.write(b"".join((*pieces[1:], tail)))
        await response.write_eof()
        return response

    async def _send_recorded(self, request: web.Request, answer: Recorded) -> web.StreamResponse:
        response = await _opened(request, answer.content_type)
        for number, piece in enumerate(answer.pieces):
            await response.write(piece)
            if number == 0:
                await self._wait_if_held()
            await asyncio.sleep(0)
        if answer.stays_open:
            await asyncio.sleep(3600)
        if answer.cut and request.transport is not None:
            request.transport.close()
            return response
        await response.write_eof()
        return response

    async def _wait_if_held(self) -> None:
        if not self._released.is_set():
            self._holding.set()
            await self._released.wait()

    def _wrong_key(self, request: web.Request, speech: Speech) -> web.Response | None:
        key = speech.key_of(request)
        self.keys.append(key)
        if key in self.bad_keys:
            return _refusal(self.bad_keys[key], speech)
        if not self._key or key == self._key:
            return None
        message = f"Incorrect API key provided: {key}. You can find your API key in your account."
        return _json(401, speech.error(401, message, "invalid_api_key"))

    def _prepared(self, speech: Speech, answer: Reply, body: Json) -> Prepared:
        """Bytes of a stream; those of the default answer are made once, as a benchmark asks for it all the time."""
        place = type(speech).__name__, wants_usage(body)
        kept = self._kept.get(place)
        if kept is not None and kept[0] is answer:
            return kept[1]
        prepared = speech.prepare(answer, self._model, self._call_prefix(), body)
        if answer.tokens_per_second:
            prepared = prepared._replace(pieces=[_framed(piece) for piece in prepared.pieces])
        if answer is self.default and not answer.tool_calls:
            self._kept[place] = (answer, prepared)
        return prepared

    def _call_prefix(self) -> str:
        return f"call_{self._serial}_{self.asked}"  # never the same twice, as a provider's ids

    def _instructed(self, body: Json) -> Answer | None:
        first = messages_in(body)[0]
        own = str(first["content"]) if first.get("role") == "system" else ""
        told = own or str(body.get("instructions") or body.get("system") or "")
        return next((answer for pattern, answer in self._system_rules if pattern.search(told)), None)

    def _answer_to(self, body: Json) -> Answer:
        if self._script:
            return self._script.popleft()
        said = last_user_text(body)
        last = messages_in(body)[-1]
        if last.get("role") == "tool":
            for pattern, answer in self._result_rules:
                if pattern.search(str(last["content"])):
                    return answer
        for pattern, answer in self._rules:
            if pattern.search(said):
                return answer
        return self.default or Reply(text=f"echo: {said}")

    def _rate_limiter(self, rate: float) -> Pacer:
        if rate not in self._pacers:
            self._pacers[rate] = Pacer(rate)
        return self._pacers[rate]


class Pacer:
    """Many streams at one pace on one timer: a wheel of slots, so that streams do not all speak in the same instant."""

    SLOTS = 10

    def __init__(self, rate: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._tick = 1.0 / rate / self.SLOTS
        self._slots: list[dict[int, _Paced]] = [{} for _ in range(self.SLOTS)]
        self._now = 0
        self._count = 0
        self._next_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, request: web.Request, pieces: Sequence[bytes]) -> None:
        """Write each piece in its turn; returns after the last one."""
        transport = request.transport
        if transport is None or not pieces:
            return
        self._count += 1
        number, slot = self._count, self._slots[self._now]
        stream = _Paced(transport, pieces, self._loop.create_future())
        slot[number] = stream
        if self._timer is None:
            self._next_at = self._loop.time() + self._tick
            self._timer = self._loop.call_at(self._next_at, self._turn)
        try:
            await stream.done
        finally:
            slot.pop(number, None)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _turn(self) -> None:
        slot = self._slots[self._now]
        for number in [number for number, stream in slot.items() if not stream.write_one()]:
            del slot[number]
        self._now = (self._now + 1) % self.SLOTS
        self._next_at += self._tick
        self._timer = self._loop.call_at(self._next_at, self._turn) if any(self._slots) else None


@dataclass(slots=True)
class _Paced:
    transport: asyncio.Transport
    pieces: Sequence[bytes]
    done: asyncio.Future[None]
    next: int = 0

    def write_one(self) -> bool:
        """Write the next piece past aiohttp's slower writer. False: this was the last one."""
        if self.transport.is_closing():
            if not self.done.done():
                self.done.set_exception(ConnectionResetError())
            return False
        self.transport.write(self.pieces[self.next])
        self.next += 1
        if self.next < len(self.pieces):
            return True
        if not self.done.done():
            self.done.set_result(None)
        return False


def paced(tokens: int | Sequence[str], tokens_per_second: float = 0.0, *, is_stamped: bool = False) -> Reply:
    words = tuple(f"w{number} " for number in range(tokens)) if isinstance(tokens, int) else tuple(tokens)
    usage = (12, len(words))
    return Reply(tokens=words, tokens_per_second=tokens_per_second, is_stamped=is_stamped, usage=usage)


def messages_in(body: Json) -> list[Json]:
    """The talk, by whichever name the dialect gives it."""
    return list(body.get("messages") or body["input"])


def last_user_text(body: Json) -> str:
    """What the user said last, in whichever dialect."""
    for message in reversed(messages_in(body)):
        if message.get("role") == "user":
            content = message["content"]
            if isinstance(content, str):
                return content
            said = [part["text"] for part in content if part["type"] in ("text", "input_text")]
            if said:  # else it holds a tool's results
                return " ".join(said)
    return ""


def speeches() -> dict[str, Speech]:
    """Every dialect by its path. Imported here, since those modules need this one's words."""
    from tests.fakes.model_anthropic import AnthropicSpeech
    from tests.fakes.model_responses import ResponsesSpeech

    return {"/chat/completions": ChatSpeech(), "/responses": ResponsesSpeech(), "/messages": AnthropicSpeech()}


def _speech_of(request: web.Request) -> Speech:
    return speeches()["/messages" if "anthropic-version" in request.headers else "/chat/completions"]


def wants_usage(body: Json) -> bool:
    return bool((body.get("stream_options") or {}).get("include_usage"))


def complaint_about(body: Json) -> str:
    """What a strict provider of chat_completions refuses, or nothing."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "[] is too short - 'messages'"
    if not body.get("model"):
        return "you must provide a model parameter"
    if complaint := complaint_about_form(body.get("response_format"), "response_format", box="json_schema"):
        return complaint
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"messages.[{number}]: a 'tool' message must answer a preceding message with 'tool_calls'"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            missing = ", ".join(sorted(open_calls))
            return f"messages.[{number}]: 'tool_calls' must be followed by tool messages; not answered: {missing}"
        if role not in ("system", "developer", "user", "assistant"):
            return f"messages.[{number}].role: {role!r} is not one of system, user, assistant, tool"
        if message.get("content") is None and not message.get("tool_calls"):
            return f"messages.[{number}].content: expected a string, got null"
        for call in message.get("tool_calls") or ():
            if not isinstance(call["function"]["arguments"], str):
                return f"messages.[{number}].tool_calls: arguments must be a string"
            open_calls.add(call["id"])
    return f"tool calls without an answer: {', '.join(sorted(open_calls))}" if open_calls else ""


def complaint_about_form(form: Json | None, where: str, *, box: str = "") -> str:
    """What OpenAI refuses of the form of an answer; its schema stands in a box of its own, or beside its type."""
    if form is None or form == {"type": "json_object"}:
        return ""
    if form.get("type") != "json_schema":
        return f"Invalid value: {form.get('type')!r}. Supported values are: 'json_object', 'json_schema', and 'text'."
    held, where = (form.get(box) or {}, f"{where}.{box}") if box else (form, where)
    if odd := held.keys() - {"name", "schema", "strict", "description", *(() if box else ("type",))}:
        return f"Unknown parameter: '{where}.{min(odd)}'."
    if missing := {"name", "schema"} - held.keys():
        return f"Missing required parameter: '{where}.{min(missing)}'."
    return ""


class ChatSpeech:
    def key_of(self, request: web.Request) -> str:
        return request.headers.get("Authorization", "").removeprefix("Bearer ")

    def error(self, status: int, message: str, code: str = "") -> Json:
        kind = "invalid_request_error" if status in (400, 401) else "fake_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}

    def complaint_about(self, body: Json) -> str:
        return complaint_about(body)

    def whole_body(self, answer: Reply, model: str, call_prefix: str) -> Json:
        message: Json = {"role": "assistant", "content": answer.whole_text or None}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.tool_calls:
            message["tool_calls"] = _tool_calls(answer, call_prefix)
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
        body: Json = {"id": "chatcmpl-fake", "object": "chat.completion", "created": 1, "model": model}
        body["choices"] = [choice]
        if answer.usage is not None:
            body["usage"] = _usage(answer.usage, answer.cost)
        return body

    def prepare(self, answer: Reply, model: str, call_prefix: str, body: Json) -> Prepared:
        head = _event(model, {"role": "assistant", "content": ""})
        if answer.reasoning:
            head += _event(model, {"reasoning_content": answer.reasoning})
        calls = [{"index": number, **call} for number, call in enumerate(_tool_calls(answer, call_prefix))]
        tail = _event(model, {"tool_calls": calls}) if calls else b""
        tail += _event(model, {}, answer.finish_reason)
        if wants_usage(body) and answer.usage is not None:
            tail += _chunk(model, [], _usage(answer.usage, answer.cost))
        return Prepared(head, [_event(model, {"content": piece}) for piece in answer.pieces], tail + DONE)


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _tool_calls(answer: Reply, call_prefix: str) -> list[Json]:
    calls: list[Json] = []
    for number, (name, arguments) in enumerate(answer.tool_calls):
        function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
        calls.append({"id": f"{call_prefix}_{number}", "type": "function", "function": function})
    return calls


def _event(model: str, delta: Json, finish: str | None = None) -> bytes:
    return _chunk(model, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], None)


def _chunk(model: str, choices: list[Json], usage: Json | None) -> bytes:
    chunk: Json = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1, "model": model}
    chunk |= {"system_fingerprint": "fp_fake", "choices": choices, "usage": usage}
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def _usage(usage: tuple[int, int], cost: float) -> Json:
    prompt, completion = usage
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**told, "cost": cost} if cost else told


def _refusal(answer: Refusal, speech: Speech) -> web.Response:
    payload = answer.payload(speech)
    content_type = "text/html" if payload[:1] == b"<" else "application/json"
    return web.Response(status=answer.status, body=payload, headers={"Content-Type": content_type, **answer.headers})


def _json(status: int, body: Json) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")


async def _opened(request: web.Request, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


def play_mixed(model: FakeModel) -> None:
    """Answer by what the user says: words at once, many words, tool calls, and each kind of failure."""
    model.when("say much", paced(400))
    model.when("plan it", calls_tools(("todo", {"items": [{"id": "1", "text": "one"}, {"id": "2", "text": "two"}]})))
    model.when_told("", "Done.")
    model.when("be refused", Refusal(400, "This prompt is refused."))
    model.when("be overloaded", Refusal(529, "overloaded", {"Retry-After": "0"}))
    model.when("break off", Recorded((b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"w',), cut=True))


async def serve(port: int, default: Answer | None, *, is_mixed: bool = False) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with FakeModel(port=port, default=default, keeps=KEPT_BY_A_PROCESS) as model:
        if is_mixed:
            play_mixed(model)
        print(model.url, flush=True)
        await stopped.wait()


class ThreadedModel:
    """``with ThreadedModel() as model:`` a scripted model on a loop in a thread of its own, for tests without a loop.

    ``words`` are those of the command below. Starting a process for it would take half a second of processor.
    """

    def __init__(self, *words: str) -> None:
        self._options = parse_options(words)
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fake model", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._is_up.wait(20), "the fake model did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(20)
        assert not self._thread.is_alive(), "the fake model did not stop"

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        async with FakeModel(default=answer_of(self._options)) as self.fake:
            if self._options.mode == "mixed":
                play_mixed(self.fake)
            self._is_up.set()
            await self._stopped.wait()


def parse_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A scripted model provider for benchmarks.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mode", choices=["echo", "stream", "mixed"], default="echo")
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.0, help="tokens per second; 0 sends them at once")
    parser.add_argument("--stamped", action="store_true", help="the first token is the time it was written")
    return parser.parse_args(words)


def answer_of(options: argparse.Namespace) -> Answer | None:
    return paced(options.tokens, options.rate, is_stamped=options.stamped) if options.mode == "stream" else None


def main() -> None:
    options = parse_options()
    asyncio.run(serve(options.port, answer_of(options), is_mixed=options.mode == "mixed"))


if __name__ == "__main__":
    main()

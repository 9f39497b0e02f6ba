"""Background tasks of chat clients: titles, tags and follow-ups that Open WebUI and opencode ask for beside a message.

They are answered by the model alone, without tools, and leave nothing behind: no turn, no transcript, no session.
"""

from __future__ import annotations

import re
from typing import Any

from aiohttp import web

from hermes.agent.step import ask_model
from hermes.core.errors import ModelError
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.ports import ModelRequest
from hermes.core.requests import TurnOptions, TurnResult
from hermes.servers.api import parse, response_format, results
from hermes.servers.api.bodies import ChatRequestBody, decode
from hermes.servers.api.content import InputLimits
from hermes.servers.api.direct.failures import failure_of
from hermes.servers.api.input.sampling import read_effort
from hermes.servers.api.streams.sse import ClientGoneError, event_stream
from hermes.servers.app import json_response
from hermes.services.gateway import Gateway
from hermes.store.ids import new_id

SECONDS = 120.0

_TASK = re.compile(r"\s*### Task:")
_TEMPLATE = re.compile(
    r"\s*### Task:\s*(?:Generate a concise|Generate 1-3 broad tags|Suggest 3-5 relevant follow-up|"
    r"Predict 3-5 useful messages|Analyze the chat history|You are an autocompletion system|Generate a detailed prompt)"
)
"""How the templates of Open WebUI begin."""
_TALK = re.compile(r"### Chat History:|<chat_history>|### Context:|<context>")
"""What they hold besides: a person's message that begins alike has no history in it."""
_ANY_TEMPLATE = re.compile(r"\s*### Task:\s.*### Chat History:\s*<chat_history>.*</chat_history>\s*\Z", re.DOTALL)
"""Templates with other words, of later releases: a task, and the whole chat in a frame as its end."""
_EMOJI = "Your task is to reflect the speaker's likely facial expression through a fitting emoji."
_TITLE_SYSTEM, _TITLE_ORDER = "You are a title generator.", "Generate a title for this conversation:"
"""How opencode asks for a title: with these words in front of the message that it sends at the same time."""


def is_background_task(body: Json) -> bool:
    """Tell whether a request is a task of the client: it says so by `task`, or its only message is a known template."""
    metadata = body.get("metadata")
    task = body.get("task") or (metadata.get("task") if isinstance(metadata, dict) else None)
    if isinstance(task, str) and task.strip():
        return True
    return is_template_alone(body, body.get("messages"))


def is_template_alone(body: Json, messages: Any) -> bool:
    """Tell whether all that a request says is a template. Programs set `metadata` of a response as they like."""
    if isinstance(messages, str):
        return not body.get("tools") and _is_template(messages)
    if not isinstance(messages, list) or body.get("tools"):
        return False
    turns = [item for item in messages if not (isinstance(item, dict) and item.get("role") in ("system", "developer"))]
    if not turns or not isinstance(turns[0], dict) or turns[0].get("role") != "user":
        return False
    first = _text_of(turns[0])
    if len(turns) == 1:
        return _is_template(first)
    if first.strip() != _TITLE_ORDER:
        return False
    instructions = body.get("instructions") or _text_of(messages[0])
    return isinstance(instructions, str) and instructions.startswith(_TITLE_SYSTEM)


def _text_of(item: Json) -> str:
    """Return the text of a message with nothing else in it."""
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else ""


def _is_template(text: str) -> bool:
    if text.startswith(_EMOJI):
        return True
    if _TASK.match(text) is None:
        return False
    is_known = _TEMPLATE.match(text) is not None and _TALK.search(text) is not None
    return is_known or _ANY_TEMPLATE.match(text) is not None


async def ask_alone(gateway: Gateway, talk: parse.Conversation, options: TurnOptions) -> tuple[TurnResult, str]:
    """Ask the model without tools and without a turn. Return its answer, and the model's name."""
    model = gateway.models.model_for(None, options.model)
    instructions = "\n\n".join(text for text in (options.instructions, talk.instructions) if text)
    system = (ChatMessage(Role.SYSTEM, instructions),) if instructions else ()
    wanted = ModelRequest(
        [*system, *talk.messages],
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        deadline_seconds=SECONDS,
        reasoning=options.reasoning,
        format=options.format,
    )
    try:
        reply = await ask_model(model, wanted, lambda _text: None, lambda _notice: None)
    except ModelError as error:
        raise failure_of(error) from None
    text = gateway.toolbox.hide(reply.text.strip())
    return TurnResult("", "done", text, finish_reason=reply.finish_reason, usage=reply.usage), model.label


class BackgroundTasks:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def is_task(self, body: Json) -> bool:
        return is_background_task(body)

    async def answer(self, request: web.Request, body: Json, limits: InputLimits) -> web.StreamResponse:
        asked = decode(
            {**body, "max_tokens": body.get("max_completion_tokens") or body.get("max_tokens")}, ChatRequestBody
        )
        options = TurnOptions(
            model=asked.model or "",
            max_tokens=asked.max_tokens or 0,
            temperature=asked.temperature,
            reasoning=read_effort(asked.reasoning_effort, "reasoning_effort"),
            format=response_format.read_response_format(asked.response_format, limits),
        )
        result, model = await ask_alone(self._gateway, parse.read_conversation(asked.messages, limits), options)
        whole = self._completion(result, asked.model or model)
        return await _streamed(request, whole) if asked.stream else json_response(whole)

    def _completion(self, result: TurnResult, model: str) -> Json:
        created = int(self._gateway.clock.now())
        body = results.completion(result, completion_id=f"chatcmpl-{new_id('task')}", created=created, model=model)
        body.pop("hermes", None)
        return body


async def _streamed(request: web.Request, whole: Json) -> web.StreamResponse:
    """The whole answer as a stream of two chunks: nobody watches a title being written."""
    choice = whole["choices"][0]
    chunk = {**whole, "object": "chat.completion.chunk"}
    usage = chunk.pop("usage")
    deltas = [({"role": "assistant", "content": choice["message"]["content"]}, None), ({}, choice["finish_reason"])]
    response: web.StreamResponse = web.Response(status=499)
    try:
        async with event_stream(request, {}) as stream:
            response = stream.response
            for delta, reason in deltas:
                part = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
                await stream.send({**chunk, "choices": [part]})
            await stream.send({**chunk, "choices": [], "usage": usage})
            await stream.done()
    except ClientGoneError:
        return response
    return response

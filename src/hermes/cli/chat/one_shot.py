"""``hermes -z PROMPT``: ask once, print the answer, end."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from hermes.cli.chat.progress import Progress
from hermes.cli.chat.surroundings import SAY_SECONDS, surroundings
from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.support.screen import complain, note
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.hosting.terminal import out, out_json

GOOD = frozenset({"done", "answered"})
USAGE_ERROR = 2
TIMED_OUT = 124
FORMATS = ("text", "json", "stream-json")
APPROVALS = ("none", "safe", "all")
MAX_APPROVALS = 100


@dataclass(frozen=True, slots=True)
class OneShotOptions:
    """``approve``: which questions are answered with yes: none, those of a sandbox (safe), or all."""

    output: str = "text"
    timeout: float = 0.0
    approve: str = "none"


def one_shot(prompt: str, options: OneShotOptions) -> int:
    """Print the answer alone on stdout; whatever else there is to say goes to stderr."""
    if not prompt.strip():
        note(f'✗ There is nothing to ask. For example: {command_name()} -z "hello"')
        return USAGE_ERROR
    asking = _OneQuestion(f"z-{secrets.token_hex(4)}", options)
    with GatewayClient(home_folder(), Standalone.GATEWAY) as client:
        if not options.timeout:
            result = asking.ask(client, prompt)
        else:
            answered = _within(options.timeout, lambda: asking.ask(client, prompt))
            if answered is None:
                return asking.give_up(client)
            result = answered
    return asking.tell(result)


def _within(seconds: float, act: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The result of ``act``, or None where it takes longer. It then goes on in a thread that nobody waits for."""
    done: list[Mapping[str, Any]] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(act())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for us
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True, name="one question")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return done[0] if done else None


class _OneQuestion:
    def __init__(self, chat: str, options: OneShotOptions) -> None:
        self._chat = chat
        self._options = options
        self._replies: list[str] = []
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._is_over = False

    def ask(self, client: GatewayClient, prompt: str) -> Mapping[str, Any]:
        if not prompt.lstrip().startswith("/"):
            with Progress() as progress:
                client.ask("model.ready", {"text": prompt}, progress, timeout=SAY_SECONDS)
        result = self._say(client, prompt)
        for _ in range(MAX_APPROVALS):
            code = self._approvable(result)
            if not code:
                break
            self._replies.clear()
            result = self._say(client, f"/approve {code}")
            self._replies[:] = self._replies[1:]  # "Approved, going on."
        return result

    def _say(self, client: GatewayClient, text: str) -> Mapping[str, Any]:
        args = {"chat": self._chat, "text": text, "key": secrets.token_hex(12), **surroundings()}
        result: Mapping[str, Any] = client.ask("say", args, self._hear, timeout=SAY_SECONDS)
        return result

    def _approvable(self, result: Mapping[str, Any]) -> str:
        """The code of a question that may be answered with yes; '' where none may, and the turn goes on waiting."""
        for waiting in result["approvals"]:
            asked = self._asked.get(waiting["code"], {})
            is_safe = asked.get("touches_host") is False
            if self._options.approve == "all" or (self._options.approve == "safe" and is_safe):
                note(f"Approved: {waiting['question']}")
                return str(asked.get("proof") or waiting["code"])
        return ""

    def _hear(self, event: Mapping[str, Any]) -> None:
        if self._is_over:
            return
        if self._options.output == "stream-json":
            out_json(dict(event), flush=True)
        match event["kind"]:
            case "reply":
                own_note = event.get("note", "")
                self._replies.append(event["text"].removesuffix(own_note).rstrip() if own_note else event["text"])
                if own_note:
                    note(own_note)
            case "notice":
                note(as_typed(event["text"]))
            case "approval":
                self._asked[str(event.get("code") or "")] = event

    def give_up(self, client: GatewayClient) -> int:
        """The time is over: stop the turn, and say so."""
        self._is_over = True
        try:
            client.ask("say", {"chat": self._chat, "text": "/stop", "key": secrets.token_hex(12)})
        except GatewayError as error:
            complain(error)
        reason = f"no answer within {self._options.timeout:g} s"
        if self._options.output != "text":
            self._tell_json({"answer": "", "state": "timeout", "turn": "", "event": "", "reason": reason})
        complain(f"There was {reason}. The turn was stopped.")
        return TIMED_OUT

    def tell(self, result: Mapping[str, Any]) -> int:
        answer = "\n".join(self._replies)
        is_good = result["state"] in GOOD
        if self._options.output != "text":
            outcome = {name: result[name] for name in ("state", "turn", "event")}
            reason = "" if is_good else answer or result["reason"]
            spent = {name: result[name] for name in ("model", "tokens", "cost") if name in result}
            self._tell_json({"answer": answer if is_good else "", **outcome, "reason": reason, **spent})
        elif is_good:
            out(answer)
        if is_good:
            return 0
        for asked in result["approvals"]:
            note(f"✗ It asks first: {asked['question']}")
            note(f"  Allow it: {command_name()} -z '/approve {asked['code']}'")
            note(f"  The answer then waits here: {command_name()} chat --session {self._chat}")
        if not result["approvals"]:
            complain(answer or result["reason"] or result["state"])
            note(f"  What happened: {command_name()} trace {result['turn'] or result['event']}")
        return 1

    def _tell_json(self, data: Mapping[str, Any]) -> None:
        out_json({"kind": "result", **data} if self._options.output == "stream-json" else dict(data), flush=True)

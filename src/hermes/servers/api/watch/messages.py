"""`/api/messages`: the messages of all chats, the life of each as a timeline, and dead letters sent again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from hermes.core.keys import Target
from hermes.core.roles import Action
from hermes.core.text import one_line, storable
from hermes.hosting.control.handlers.store import delivery_to_dict, latest_to_dict, life_to_dict
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.manage.demand import demand
from hermes.servers.api.watch.paging import LARGEST_PAGE, PAGE, page_of, place_of, whole_number
from hermes.servers.app import json_response
from hermes.store import outbox
from hermes.store.dashboard import messages
from hermes.store.dashboard.messages import MessageFilter
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxRow, OutboxState
from hermes.store.reports import trace
from hermes.store.reports.trace import Latest

MAX_TEXT_CHARS = 200
MAX_DETAIL_CHARS = 4000
MAX_STEPS = 300
INBOUND, OUTBOUND = "in", "out"
STATES_IN, STATES_OUT = frozenset(InboxState), frozenset(OutboxState)


class MessageListRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self._db = parts.gateway.db

    async def listed(self, request: web.Request) -> web.Response:
        """``?direction=in|out&state=&platform=&query=&limit=&before=``."""
        demand(request[CALLER], Action.READ_ALL)
        query = request.query
        direction, state = query.get("direction", ""), query.get("state", "")
        if direction not in ("", INBOUND, OUTBOUND):
            raise bad_request("direction is in or out.", code="invalid_value", param="direction")
        if state and state not in STATES_IN | STATES_OUT:
            known = ", ".join(sorted(STATES_IN | STATES_OUT))
            raise bad_request(f"state is one of {known}.", code="invalid_value", param="state")
        words = orjson.dumps(storable(query.get("query", ""))).decode()[1:-1].lower()
        wanted = MessageFilter(state, storable(query.get("platform", "")), words)
        limit = whole_number(request, "limit", PAGE, most=LARGEST_PAGE)
        ways = [
            way
            for way, states in ((INBOUND, STATES_IN), (OUTBOUND, STATES_OUT))
            if direction in ("", way) and (not state or state in states)
        ]
        found = await self._db.read(_page, wanted, ways, place_of(request), limit + 1)
        return json_response(page_of(found, limit, lambda message: (message["at"], message["id"])))

    async def show(self, request: web.Request) -> web.Response:
        demand(request[CALLER], Action.READ_ALL)
        return json_response(await self._trace(request))

    async def retry(self, request: web.Request) -> web.Response:
        """Offer a dead letter again."""
        demand(request[CALLER], Action.CHANGE_ALL)
        row_id, now = storable(request.match_info["message_id"]), self._gateway.clock.now()
        row = await self._db.read(outbox.get, row_id)
        if row is None:
            raise not_found(f"There is no delivery {row_id[:80]!r}.", code="message_not_found")
        expires_at = now + self._gateway.config.delivery.answer_ttl_seconds
        if not await self._db.write(outbox.retry_dead, row_id, expires_at=expires_at, now=now):
            words = f"{row_id[:80]} is {row.state}, and only what could not be delivered is sent again."
            raise ApiError(409, words, code="not_dead", kind="conflict_error")
        self._gateway.outbox_writer.due_target(row.target)
        again = await self._db.read(outbox.get, row_id)
        return json_response(delivery_message(again or row))

    async def _trace(self, request: web.Request) -> dict[str, Any]:
        name = storable(request.match_info["message_id"])
        life = await self._db.read(trace.life_of, name)
        if life is None:
            words = f"There is no message, turn or delivery {name[:80]!r}. GET /api/messages lists them."
            raise not_found(words, code="message_not_found")
        body = life_to_dict(life)
        steps = sorted(_steps(body), key=lambda step: (step["at"], step["order"]))
        turn = body["turn"]
        return {
            "id": name,
            "object": "message.trace",
            "headline": _headline(body),
            "outcome": turn["state"] if turn else "",
            "turn": _turn(turn) if turn else None,
            "steps": [{key: value for key, value in step.items() if key != "order"} for step in steps[:MAX_STEPS]],
            "steps_left_out": max(0, len(steps) - MAX_STEPS),
        }


def _page(
    tx: Tx, wanted: MessageFilter, ways: Sequence[str], before: tuple[float, str], limit: int
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if INBOUND in ways:
        found += [event_message(message) for message in messages.inbound(tx, wanted, before=before, limit=limit)]
    if OUTBOUND in ways:
        found += [delivery_message(row) for row in messages.outbound(tx, wanted, before=before, limit=limit)]
    return sorted(found, key=lambda message: (message["at"], message["id"]), reverse=True)[:limit]


def event_message(latest: Latest) -> dict[str, Any]:
    message = latest_to_dict(latest)
    return {
        "id": message["id"],
        "object": "message",
        "direction": INBOUND,
        "at": message["at"],
        "platform": latest.platform,
        "chat": message["chat"],
        "person": one_line(message["person"], MAX_TEXT_CHARS),
        "kind": message["kind"],
        "text": one_line(message["text"], MAX_TEXT_CHARS),
        "outcome": message["outcome"],
        "reason": one_line(message["reason"], MAX_TEXT_CHARS),
        "state": latest.event.state,
        "turn_id": message["turn"] or None,
        "session_key": latest.event.lane,
        "can_retry": False,
    }


def delivery_message(row: OutboxRow) -> dict[str, Any]:
    delivery = delivery_to_dict(row)
    try:
        platform = Target.parse(row.target).platform
    except ValueError:  # a damaged row
        platform = row.target.partition(":")[0]
    dead = row.state == OutboxState.DEAD
    return {
        "id": row.id,
        "object": "message",
        "direction": OUTBOUND,
        "at": row.created_at,
        "platform": platform,
        "chat": row.target,
        "person": "",
        "kind": row.kind,
        "text": one_line(delivery["text"], MAX_TEXT_CHARS),
        "outcome": "not delivered" if dead else "sent" if row.state == OutboxState.SENT else "on its way",
        "reason": one_line(row.reason, MAX_TEXT_CHARS),
        "state": row.state,
        "turn_id": row.turn_id or None,
        "session_key": None,
        "can_retry": dead and row.kind not in messages.NO_MESSAGES,
    }


# The timeline


def _headline(trace: Mapping[str, Any]) -> str:
    turn = trace["turn"]
    if turn is None:
        rows = trace["events"] or trace["letters"]
        return f"No turn: {rows[0]['state'].replace('_', ' ')}" if rows else "No turn"
    took = f" in {turn['ended_at'] - turn['created_at']:.1f} s" if turn["ended_at"] else ""
    reason = f" ({turn['reason']})" if turn["reason"] else ""
    return f"{turn['state'].replace('_', ' ').capitalize()}{took}{reason}"


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    names = ("id", "state", "model", "prompt_tokens", "completion_tokens", "steps", "attempts", "reason", "session_id")
    shown = {name: turn[name] for name in names}
    return {**shown, "session_key": turn["lane"], "created_at": turn["created_at"], "ended_at": turn["ended_at"]}


def _step(
    at: float, order: int, kind: str, title: str, detail: str = "", *, state: str = "", seconds: float | None = None,
    id: str = "",
) -> dict[str, Any]:  # fmt: skip
    more = len(detail) - MAX_DETAIL_CHARS
    shown = f"{detail[:MAX_DETAIL_CHARS]} [{more:,} more characters]" if more > 0 else detail
    return {
        "at": at, "order": order, "kind": kind, "title": title, "detail": shown, "state": state, "seconds": seconds,
        "id": id,
    }  # fmt: skip


def _steps(trace: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for event in trace["events"]:
        reason = f"{event['state'].replace('_', ' ')}: {event['reason']}" if event["reason"] else ""
        took = event["settled_at"] - event["received_at"] if event["settled_at"] else None
        title = f"{event['kind']} from {event['sender_id']}"
        detail = event["text"] if not reason else f"{event['text']}\n{reason}"
        yield _step(event["received_at"], 0, "in", title, detail, state=event["state"], seconds=took, id=event["id"])
    if turn := trace["turn"]:
        yield _step(turn["created_at"], 2, "turn", "Turn begins", state="running", id=turn["id"])
        if turn["ended_at"]:
            took = turn["ended_at"] - turn["created_at"]
            words = turn["reason"] or ""
            yield _step(
                turn["ended_at"], 7, "turn", "Turn ends", words, state=turn["state"], seconds=took, id=turn["id"]
            )
    for line in trace["lines"]:
        message = line["message"]
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            asks = ", ".join(str(call.get("name", "")) for call in message.get("tool_calls", ()))
            title = f"The model asks for {asks}" if asks else "The model answers"
            yield _step(line["at"], 3, "model", title, str(message.get("text", "")))
    for call in trace["calls"]:
        at = call["started_at"] or call["created_at"]
        took = call["ended_at"] - call["started_at"] if call["ended_at"] and call["started_at"] else None
        detail = f"{call['arguments']}\n{call['result']}" if call["result"] else call["arguments"]
        yield _step(at, 5, "tool", call["name"], detail, state=call["outcome"] or call["state"], seconds=took)
    for approval in trace["approvals"]:
        took = approval["answered_at"] - approval["created_at"] if approval["answered_at"] else None
        by = f"\nanswered by {approval['answered_by']}" if approval["answered_by"] else ""
        detail = f"{approval['question']}{by}"
        title = f"Approval {approval['code']}"
        state = approval["state"]
        yield _step(approval["created_at"], 4, "ask", title, detail, state=state, seconds=took, id=approval["id"])
    for letter in trace["letters"]:
        took = letter["settled_at"] - letter["created_at"] if letter["settled_at"] else None
        detail = letter["text"] if not letter["reason"] else f"{letter['text']}\n{letter['reason']}"
        title = f"{letter['kind']} to {letter['target']}"
        yield _step(letter["created_at"], 8, "out", title, detail, state=letter["state"], seconds=took, id=letter["id"])

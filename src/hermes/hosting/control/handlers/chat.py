"""Describe a chat of this machine for the terminal that shows it: its conversation, and the owner's others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.agent.compression import tokens_of
from hermes.core.dataclasses import dataclass
from hermes.core.keys import LOCAL, ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.text import one_line
from hermes.hosting.control.server import Handler, Reply
from hermes.services.events import SegmentEnded, TurnEnded, TurnEvent, TurnStarted
from hermes.services.gateway import Gateway
from hermes.store import chat_settings, codec, people
from hermes.store.db import Tx
from hermes.store.sessions import sessions, transcripts
from hermes.store.turns import lanes, turns

MAX_MESSAGES = 200
MAX_SESSIONS = 50
PREVIEW = 400
LOOK_SECONDS = 1.0  # a conversation that was taken up elsewhere is noticed so late; its turns at once
PAUSE_SECONDS = 0.2  # between two looks, however much is said


@dataclass(frozen=True, slots=True)
class _Followed:
    """What a terminal has been shown of a conversation: which one, up to which line, and the lane where it goes on."""

    session: str = ""
    seq: int = 0
    lane: str = ""


class ChatVerbs:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def mapping(self) -> Mapping[str, Handler]:
        return {"chat.history": self.history, "chat.sessions": self.sessions, "chat.follow": self.follow}

    async def history(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{chat, limit?}``: the conversation that goes on in a chat, its last messages, how full its context is.

        ``busy`` says what a message does while a turn runs.
        """
        limit, lane = max(0, min(int(args.get("limit") or 0), MAX_MESSAGES)), _lane(args)
        found = await self._gateway.db.read(_history, lane, limit)
        chosen = found.pop("chosen_busy")
        found["busy"] = self._gateway.config.busy_mode_for(SessionKey.parse(lane), chosen).value
        found["window"] = self._gateway.config.context_window(found.pop("chosen_model"))
        found["messages"] = self._titled(found["messages"])
        return found

    async def sessions(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        """``{limit?}``: the conversations of this machine's owner, the newest first, each with its last words."""
        limit = max(1, min(int(args.get("limit") or MAX_SESSIONS), MAX_SESSIONS))
        return await self._gateway.db.read(_sessions, limit)

    async def follow(self, args: Mapping[str, Any], reply: Reply) -> None:
        """``{chat, session?, seq?}``: tell what is said in this chat's conversation elsewhere, until the client leaves.

        A conversation that another chat takes up is followed there. ``session`` and ``seq`` name the last line that
        the client knows. Events: ``place`` says where the conversation goes on, ``said`` is one message of it.
        """
        lane = _lane(args)
        seen = _Followed(str(args.get("session") or ""), int(args.get("seq") or 0), lane)
        is_due, is_new = asyncio.Event(), True

        def saw(event: TurnEvent) -> None:
            if event.lane != lane and isinstance(event, TurnStarted | SegmentEnded | TurnEnded):
                is_due.set()

        with self._gateway.bus.watch(saw):
            while True:
                is_due.clear()
                now, news = await self._gateway.db.read(_news, lane, seen)
                if is_new or (now.session, now.lane) != (seen.session, seen.lane):
                    where = self._title(SessionKey.parse(now.lane).platform) if now.lane != lane else ""
                    await reply.event({"kind": "place", "session": now.session, "seq": now.seq, "platform": where})
                for message in self._titled(news):
                    await reply.event({"kind": "said", "session": now.session, **message})
                seen, is_new = now, False
                try:
                    async with asyncio.timeout(LOOK_SECONDS):
                        await is_due.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(PAUSE_SECONDS)

    def _titled(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**message, "platform": self._title(message["platform"])} if "platform" in message else dict(message)
            for message in messages
        ]

    def _title(self, platform: str) -> str:
        manifest = self._gateway.manifests.get(platform)
        return manifest.title if manifest is not None else platform


def _lane(args: Mapping[str, Any]) -> str:
    return str(SessionKey(LOCAL, ChatKind.DM, str(args.get("chat") or "cli")))


def _history(tx: Tx, lane: str, limit: int) -> dict[str, Any]:
    session = sessions.current(tx, lane)
    chosen = {"chosen_model": chat_settings.of_lane(tx, lane).model, "chosen_busy": lanes.busy_mode(tx, lane)}
    if session is None:
        return {"session": "", "title": "", "key": "", "used": 0, "messages": [], **chosen}
    context = transcripts.context(tx, session.id)
    spoken = [
        (seq, message)
        for seq, message in zip(context.seqs, context.messages, strict=True)
        if message.role in (Role.USER, Role.ASSISTANT)
    ]
    return {
        "session": session.id,
        "title": session.title,
        "key": session.key,
        "used": tokens_of(context.messages, context.summary),
        "messages": _with_origins(tx, session.id, spoken[-limit:], lane) if limit else [],
        **chosen,
    }


def _with_origins(
    tx: Tx, session_id: str, spoken: Sequence[tuple[int, ChatMessage]], lane: str
) -> list[dict[str, Any]]:
    """Messages for a terminal. What was not said in ``lane`` carries its origin."""
    if not spoken:
        return []
    first, last = spoken[0][0], spoken[-1][0]
    lines = transcripts.lines(tx, session_id, after=first - 1, limit=last - first + 1)
    turn_of = {line.seq: line.turn_id for line in lines}
    origins: dict[str, dict[str, str]] = {}
    for turn_id in set(turn_of.values()):
        origins[turn_id] = _origin(tx, turn_id, lane)
    return [{**_to_dict(message), **origins.get(turn_of.get(seq, ""), {})} for seq, message in spoken]


def _to_dict(message: ChatMessage) -> dict[str, Any]:
    return {"role": message.role.value, "text": message.text, "tools": [call.name for call in message.tool_calls]}


def _origin(tx: Tx, turn_id: str, lane: str) -> dict[str, str]:
    """Where a turn was begun, and the name of its writer there; nothing for one that was begun in ``lane`` itself."""
    from hermes.store.turns.origins import origin_of  # no start needs it

    turn = turns.get(tx, turn_id) if turn_id else None
    origin = origin_of(tx, turn) if turn is not None else None
    if turn is None or origin is None or (turn.lane == lane and origin.platform == LOCAL):
        return {}
    return {"platform": origin.platform, "name": origin.name}


def _news(tx: Tx, lane: str, seen: _Followed) -> tuple[_Followed, list[dict[str, Any]]]:
    """Where the conversation stands now, and what was said in it elsewhere since."""
    here = sessions.of_lane(tx, lane)
    session = sessions.get(tx, here or seen.session) if here or seen.session else None
    if session is None:
        return _Followed("", 0, lane), []
    if session.id != seen.session:  # whoever took it up here was shown it
        return _Followed(session.id, session.seq, session.key), []
    news: list[dict[str, Any]] = []
    lines = transcripts.lines(tx, session.id, after=seen.seq, limit=MAX_MESSAGES) if session.seq > seen.seq else []
    for line in lines:
        message = codec.read_chat(line.body) if line.kind == "message" else None
        if message is None or message.role not in (Role.USER, Role.ASSISTANT):
            continue
        if origin := _origin(tx, line.turn_id, lane):
            news.append({"seq": line.seq, **_to_dict(message), **origin})
    return _Followed(session.id, lines[-1].seq if lines else seen.seq, session.key), news


def _sessions(tx: Tx, limit: int) -> list[dict[str, Any]]:
    owner = people.find(tx, LOCAL, LOCAL)
    found = sessions.of_person(tx, owner.id, limit=limit) if owner is not None else []
    shown = []
    for session in found:
        spoken = [m for m in transcripts.history(tx, session.id, limit=20) if m.role in (Role.USER, Role.ASSISTANT)]
        first = next((m.text for m in spoken if m.role is Role.USER and m.text.strip()), "")
        shown.append(
            {
                "id": session.id,
                "title": one_line(session.title or first, 100),
                "key": session.key,
                "lines": session.seq,
                "updated_at": session.updated_at,
                "preview": [
                    {"role": m.role.value, "text": m.text.strip()[:PREVIEW]} for m in spoken[-3:] if m.text.strip()
                ],
            }
        )
    return shown

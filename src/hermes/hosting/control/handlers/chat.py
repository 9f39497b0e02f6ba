"""Describe a chat of this machine for the terminal that shows it: its conversation, and the owner's others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.agent.compression import tokens_of
from hermes.core.keys import LOCAL, ChatKind, SessionKey
from hermes.core.messages import Role
from hermes.core.text import one_line
from hermes.hosting.control.server import Handler, Reply
from hermes.services.gateway import Gateway
from hermes.store import chat_settings, people
from hermes.store.db import Tx
from hermes.store.sessions import transcripts

MAX_MESSAGES = 200
MAX_SESSIONS = 50
PREVIEW = 400


class ChatVerbs:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def mapping(self) -> Mapping[str, Handler]:
        return {"chat.history": self.history, "chat.sessions": self.sessions}

    async def history(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{chat, limit?}``: the conversation that goes on in a chat, its last messages, how full its context is."""
        lane = str(SessionKey(LOCAL, ChatKind.DM, str(args.get("chat") or "cli")))
        limit = max(0, min(int(args.get("limit") or 0), MAX_MESSAGES))
        found = await self._gateway.db.read(_history, lane, limit)
        found["window"] = self._gateway.config.context_window(found.pop("chosen_model"))
        return found

    async def sessions(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        """``{limit?}``: the conversations of this machine's owner, the newest first, each with its last words."""
        limit = max(1, min(int(args.get("limit") or MAX_SESSIONS), MAX_SESSIONS))
        return await self._gateway.db.read(_sessions, limit)


def _history(tx: Tx, lane: str, limit: int) -> dict[str, Any]:
    session = transcripts.current(tx, lane)
    model = chat_settings.of_lane(tx, lane).model
    if session is None:
        return {"session": "", "title": "", "key": "", "used": 0, "messages": [], "chosen_model": model}
    context = transcripts.context(tx, session.id)
    spoken = [
        {"role": message.role.value, "text": message.text, "tools": [call.name for call in message.tool_calls]}
        for message in context.messages
        if message.role in (Role.USER, Role.ASSISTANT)
    ]
    return {
        "session": session.id,
        "title": session.title,
        "key": session.key,
        "used": tokens_of(context.messages, context.summary),
        "messages": spoken[-limit:] if limit else [],
        "chosen_model": model,
    }


def _sessions(tx: Tx, limit: int) -> list[dict[str, Any]]:
    owner = people.find(tx, LOCAL, LOCAL)
    found = transcripts.of_person(tx, owner.id, limit=limit) if owner is not None else []
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
                    {"role": m.role.value, "text": one_line(m.text, PREVIEW)} for m in spoken[-3:] if m.text.strip()
                ],
            }
        )
    return shown

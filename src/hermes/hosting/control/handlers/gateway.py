"""The verbs of the control socket, each a function over the gateway's parts.

A command that works alone calls the same functions in its own process: see ``hermes.cli.support.client``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hermes.agent.models.embedded.download import FetchState
from hermes.agent.models.embedded.prompts import Language, language_of
from hermes.config import EMBEDDED
from hermes.core.errors import GatewayError
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage
from hermes.hosting.control.handlers.access import StandingVerbs
from hermes.hosting.control.handlers.approvals import ApprovalVerbs
from hermes.hosting.control.handlers.people import PairingVerbs
from hermes.hosting.control.handlers.say import SayHandler
from hermes.hosting.control.handlers.store import NotFoundError, StoreVerbs, delivery_to_dict
from hermes.hosting.control.server import Handler, Reply
from hermes.services.gateway import Gateway
from hermes.store import outbox
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind, OutboxState

FETCH_SECONDS = 300.0
DELIVERY_SECONDS = 60.0
LOOK_SECONDS = 0.1

_OPEN = frozenset({OutboxState.READY, OutboxState.UNKNOWN, OutboxState.JOINED})


def verbs_of(gateway: Gateway) -> Mapping[str, Handler]:
    live = _Live(gateway)
    return {
        **StoreVerbs(gateway.home, gateway.db, gateway.clock).mapping(),
        **PairingVerbs(gateway.pairings).mapping(),
        **ApprovalVerbs(gateway.db, gateway.approvals).mapping(),
        **StandingVerbs(
            gateway.home, gateway.db, gateway.clock, lambda: gateway.config, gateway.pairings.is_paired
        ).mapping(),
        "status": live.status,
        "say": SayHandler(gateway).say,
        "send": live.send,
        "config.reload": live.reload,
        "outbox.retry": live.retry,
        "model.ready": live.model_ready,
    }


class _Live:
    """What needs the running services."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def status(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        return await self._gateway.status()

    async def reload(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Read the configuration now: when this answers, what was written before counts."""
        await self._gateway.watch.read_again()
        return {"problems": [str(problem) for problem in self._gateway.watch.loaded.problems]}

    async def send(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{target, text, key?, wait_seconds?}``: store a message for a chat; with a wait, say what became of it."""
        target, text = self._target(str(args.get("target") or "")), str(args.get("text") or "")
        if not text.strip():
            raise GatewayError("There is nothing to send: the text is empty.")
        outbox_writer = self._gateway.outbox_writer
        # The same key twice is the same letter: whoever lost our answer may ask again.
        rows = outbox_writer.rows(
            OutboundMessage(target, text), OutboxKind.REPLY, key=f"ob_{args.get('key') or new_id('k')}"
        )
        await self._gateway.db.write(outbox.enqueue, rows, now=self._gateway.clock.now())
        outbox_writer.due(rows)
        wait = min(float(args.get("wait_seconds") or 0.0), DELIVERY_SECONDS)
        return {"target": str(target), "letters": await self._delivered([row.id for row in rows], wait)}

    def _target(self, text: str) -> Target:
        try:
            target = Target.parse(text)
        except ValueError as error:
            raise GatewayError(str(error)) from None
        if target.platform not in self._gateway.manifests:
            known = ", ".join(sorted(self._gateway.manifests))
            raise GatewayError(f"There is no platform {target.platform!r}. Known: {known}.")
        if self._gateway.supervisor.capabilities(target) is None and self._is_off(target):
            raise GatewayError(f"{target.platform} is not configured, so nothing was sent.")
        return target

    def _is_off(self, target: Target) -> bool:
        if self._gateway.manifests[target.platform].always_on:
            return False
        account = self._gateway.config.account(target.platform, target.account)
        return account is None or not account.is_mentioned

    async def _delivered(self, ids: list[str], seconds: float) -> list[dict[str, Any]]:
        deadline = self._gateway.clock.monotonic() + seconds
        while True:
            rows = [row for row_id in ids if (row := await self._gateway.db.read(outbox.get, row_id)) is not None]
            is_open = any(row.state in _OPEN for row in rows)
            if not is_open or self._gateway.clock.monotonic() >= deadline:
                return [delivery_to_dict(row) for row in rows]
            await asyncio.sleep(LOOK_SECONDS)

    async def retry(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id}``: offer a dead letter again."""
        row_id, now = str(args.get("id") or ""), self._gateway.clock.now()
        expires_at = now + self._gateway.config.delivery.answer_ttl_seconds
        if not await self._gateway.db.write(outbox.retry_dead, row_id, expires_at=expires_at, now=now):
            raise NotFoundError(f"There is no dead letter {row_id!r}. Look: hermes send --dead")
        row = await self._gateway.db.read(outbox.get, row_id)
        if row is None:
            raise NotFoundError(f"There is no dead letter {row_id!r} any more.")
        self._gateway.outbox_writer.due_target(row.target)
        return delivery_to_dict(row)

    async def model_ready(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        """``{text?, within_seconds?}``: wait until the model can answer this text; only the built-in one is fetched."""
        model = self._gateway.models.model_for()
        needs_fetch = (
            self._gateway.config.model.provider == EMBEDDED
            and language_of(str(args.get("text") or "")) is Language.ENGLISH
        )
        if needs_fetch:
            await self._fetched(min(float(args.get("within_seconds") or FETCH_SECONDS), FETCH_SECONDS), reply)
        return {"label": model.label}

    async def _fetched(self, seconds: float, reply: Reply) -> None:
        fetcher = self._gateway.fetcher
        waiting = asyncio.create_task(fetcher.wait(seconds))
        told = ""
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
                progress = fetcher.progress
                if progress.state is FetchState.FETCHING and told != (told := str(progress)):
                    event = {"done_mb": progress.done_mb, "total_mb": progress.total_mb}
                    await reply.event({"kind": "progress", "text": told, **event})
            await waiting
        finally:
            waiting.cancel()

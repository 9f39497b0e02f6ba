"""Answer calls that need a running gateway: status, say, send, reload.

A command that works alone calls the same functions in its own process: see ``hermes.cli.support.client``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from hermes.agent.models.embedded.download import FetchState
from hermes.agent.models.embedded.prompts import Language, language_of
from hermes.config import EMBEDDED
from hermes.core.errors import GatewayError, PlatformError
from hermes.core.keys import LOCAL, AccountKey, Target, quote
from hermes.core.messages import OutboundMessage
from hermes.core.ports import FindsChats
from hermes.core.targets.names import NAMED, recipients
from hermes.hosting.control.handlers.approvals import ApprovalVerbs
from hermes.hosting.control.handlers.chat import ChatVerbs
from hermes.hosting.control.handlers.people import PairingVerbs
from hermes.hosting.control.handlers.say import SayHandler
from hermes.hosting.control.handlers.store import NotFoundError, StoreVerbs, delivery_to_dict
from hermes.hosting.control.server import Handler, Reply
from hermes.services.gateway import Gateway
from hermes.services.outbound.alerts import home_channels
from hermes.store import outbox
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxKind, OutboxState

FETCH_SECONDS = 300.0
DELIVERY_SECONDS = 60.0
LOOK_SECONDS = 0.1
FIND_SECONDS = 10.0

LAZY_VERBS: Mapping[tuple[str, str], str] = {
    ("cron", "CronVerbs"): "list create edit pause resume run remove history status",
    ("webhooks", "WebhookVerbs"): "list subscribe remove test",
    ("kanban", "KanbanVerbs"): "init create list show move change comment link need events stats",
}
"""Modules beside this one and their classes, imported by the first call; ``cron.list`` is a verb of ``cron``."""

_OPEN = frozenset({OutboxState.READY, OutboxState.UNKNOWN, OutboxState.JOINED})


def _lazy(gateway: Gateway, module: str, family: str, verb: str) -> Handler:
    async def handle(args: Mapping[str, Any], reply: Reply) -> Any:
        verbs = getattr(import_module(f"hermes.hosting.control.handlers.{module}"), family)(gateway)
        return await verbs.mapping()[verb](args, reply)

    return handle


def verbs_of(gateway: Gateway) -> Mapping[str, Handler]:
    live = _Live(gateway)
    return {
        **StoreVerbs(gateway.home, gateway.db, gateway.clock, gateway.deletion).mapping(),
        **PairingVerbs(gateway.pairings).mapping(),
        **ApprovalVerbs(gateway.db, gateway.approvals).mapping(),
        **ChatVerbs(gateway).mapping(),
        **{
            f"{module}.{verb}": _lazy(gateway, module, family, f"{module}.{verb}")
            for (module, family), verbs in LAZY_VERBS.items()
            for verb in verbs.split()
        },
        "import.home": live.import_home,
        "doctor.user": live.explain_access,
        "status": live.status,
        "say": SayHandler(gateway).say,
        "send": live.send,
        "config.reload": live.reload,
        "outbox.retry": live.retry,
        "model.ready": live.model_ready,
        "doctor.heal": live.heal,
        "cluster.status": live.cluster_status,
        "cluster.drain": live.cluster_drain,
    }


def _bare(name: str) -> str:
    return name.strip().removeprefix(NAMED).casefold()


class _Live:
    """What needs the running services."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def status(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        return await self._gateway.status()

    async def heal(self, args: Mapping[str, Any], reply: Reply) -> Any:
        """Look at every store now, and recover those that are damaged. The board is opened for it."""
        board = self._gateway.board()
        if board.exists:
            await board.db()
        gateway = self._gateway
        return await StoreVerbs(gateway.home, gateway.db, gateway.clock).heal(args, reply)

    async def explain_access(self, args: Mapping[str, Any], reply: Reply) -> Any:
        from hermes.hosting.control.handlers.access import StandingVerbs  # not at every start

        gateway, is_paired = self._gateway, self._gateway.pairings.is_paired
        verbs = StandingVerbs(gateway.home, gateway.db, gateway.clock, lambda: gateway.config, is_paired)
        return await verbs.user(args, reply)

    async def import_home(self, args: Mapping[str, Any], reply: Reply) -> Any:
        from hermes.hosting.control.handlers.home_import import bring_home  # not at every start

        return await bring_home(self._gateway, args, reply)

    async def cluster_status(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        from hermes.hosting.control.handlers.cluster import ClusterVerbs  # not at every start

        return await ClusterVerbs(self._gateway.db).status(args, reply)

    async def cluster_drain(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        from hermes.hosting.control.handlers.cluster import ClusterVerbs

        return await ClusterVerbs(self._gateway.db).drain(args, reply)

    async def reload(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Read the configuration now: when this answers, what was written before counts."""
        await self._gateway.watch.read_again()
        return {"problems": [str(problem) for problem in self._gateway.watch.loaded.problems]}

    async def send(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{target, text, key?, wait_seconds?}``: store a message for each chat that ``target`` names; with a wait,
        say what became of it."""
        text = str(args.get("text") or "")
        if not text.strip():
            raise GatewayError("There is nothing to send: the text is empty.")
        targets = await self._targets(str(args.get("target") or ""))
        outbox_writer, rows = self._gateway.outbox_writer, []
        # The same key twice is the same letter: whoever lost our answer may ask again.
        key = f"ob_{args.get('key') or new_id('k')}"
        for number, target in enumerate(targets):
            own_key = f"{key}-{number}" if number else key
            rows += outbox_writer.rows(OutboundMessage(target, text), OutboxKind.REPLY, key=own_key)
        await self._gateway.db.write(outbox.enqueue, rows, now=self._gateway.clock.now())
        outbox_writer.due(rows)
        wait = min(float(args.get("wait_seconds") or 0.0), DELIVERY_SECONDS)
        deliveries = await self._delivered([row.id for row in rows], wait)
        return {"target": ",".join(map(str, targets)), "letters": deliveries}

    async def _targets(self, text: str) -> list[Target]:
        """Every chat that is meant, each once. GatewayError in words, and then nothing was sent to any of them."""
        for word in map(str.strip, text.split(",")):
            account = AccountKey.parse(word.partition(":")[0])
            if account.platform in self._gateway.manifests and self._is_off(account):
                cure = f"Set it up: hermes gateway setup {account.platform}"
                raise GatewayError(f"Nothing was sent. {account} is not configured. {cure}")
        local = {AccountKey(LOCAL): ""}
        try:
            named = recipients(text, origin=None, homes={**local, **home_channels(self._gateway.config)})
        except ValueError as error:
            raise GatewayError(f"Nothing was sent. {error}") from None
        found = [await self._found(target) if target.chat.startswith(NAMED) else target for target in named]
        return list(dict.fromkeys(found))

    async def _found(self, target: Target) -> Target:
        """The chat that goes by a name (``slack:#alerts``): the home channel, or one that the platform knows."""
        name, account = target.chat.removeprefix(NAMED), AccountKey(target.platform, target.account)
        config = self._gateway.config.account(target.platform, target.account)
        if config is not None and config.home_channel and _bare(config.home_channel_name) == _bare(name):
            return recipients(str(account), origin=None, homes={account: config.home_channel})[0]
        adapter: object = self._gateway.supervisor.adapter_of(target)
        if adapter is None:
            raise GatewayError(f"Nothing was sent. {account} is not connected, so #{name} cannot be looked up there.")
        chats: Sequence[str] = ()
        if isinstance(adapter, FindsChats):
            try:
                async with asyncio.timeout(FIND_SECONDS):
                    chats = await adapter.find_chats(name)
            except (PlatformError, TimeoutError) as error:
                reason = str(error) or f"no answer within {FIND_SECONDS:.0f} s"
                raise GatewayError(f"Nothing was sent. {account} does not tell its chats: {reason}") from None
        if len(chats) == 1:
            return replace(target, chat=chats[0])
        if not chats:
            raise GatewayError(
                f"Nothing was sent. {account} has no chat called #{name}. Write its id: {account}:<chat>"
            )
        ids = ", ".join(f"{account}:{quote(chat)}" for chat in chats)
        raise GatewayError(f"Nothing was sent. {account} has {len(chats)} chats called #{name}: {ids}")

    def _is_off(self, account: AccountKey) -> bool:
        """Whether nobody configured this account, so that nothing can be sent by it."""
        if self._gateway.manifests[account.platform].always_on:
            return False
        config = self._gateway.config.account(account.platform, account.account)
        return config is None or not config.is_mentioned

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
            raise NotFoundError(f"There is no undelivered message {row_id!r}. Look: hermes send --dead")
        row = await self._gateway.db.read(outbox.get, row_id)
        if row is None:
            raise NotFoundError(f"There is no undelivered message {row_id!r} any more.")
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
        shown_progress = ""
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
                progress = fetcher.progress
                if progress.state is FetchState.FETCHING and shown_progress != (shown_progress := str(progress)):
                    event = {"done_mb": progress.done_mb, "total_mb": progress.total_mb}
                    await reply.event({"kind": "progress", "text": shown_progress, **event})
            await waiting
        finally:
            waiting.cancel()

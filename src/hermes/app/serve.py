"""Serve as the worker: open the ports, print the start report, stop when asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.config import EMBEDDED
from hermes.core.errors import StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.languages import pick
from hermes.core.keys import SessionKey, Target
from hermes.core.lane import DOORS
from hermes.hosting import banner, loop_lag, paths, startup_report
from hermes.hosting.control.handlers.api_keys import KeyVerbs
from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.hosting.control.server import ControlServer, Handler
from hermes.hosting.logs import logs
from hermes.hosting.restart_policy import RESTART_ASKED
from hermes.hosting.terminal import out
from hermes.hosting.worker import WorkerOptions, lifecycle_verbs, process_snapshot
from hermes.servers.api.api import make_api
from hermes.servers.api.auth import ApiKeys
from hermes.servers.api.context import ApiParts
from hermes.servers.api.port import ApiPort
from hermes.servers.webhooks.port import WebhookPort
from hermes.services.clock import clock_from
from hermes.services.events import TurnEnded
from hermes.services.gateway import Gateway
from hermes.services.keep_running import keep_running
from hermes.services.requests.background import origin_of
from hermes.store import home_faults, inbox, outbox
from hermes.store.api.api_keys import own_key
from hermes.store.db import Tx
from hermes.store.home import Whose, make_home
from hermes.store.turns import turns
from hermes.store.turns.turns import TurnState

log = logging.getLogger(__name__)

GOODBYE_SECONDS = 5.0
DOORS_SECONDS = 0.5
FAULTS_SECONDS = 2.0
PAUSED_SECONDS = 60.0
"""After a crash loop the platforms rest this long before they are tried again."""


async def serve(options: WorkerOptions, ready: Callable[[], None]) -> int:
    """Be the gateway until asked to stop; returns the exit code. A home it cannot use raises at the start."""
    is_new = make_home(options.home).whose is Whose.NEW
    _print(banner.opening())
    async with open_gateway(_setting(options)) as gateway, AsyncExitStack() as stack:
        if gateway.config.model.provider == EMBEDDED:
            gateway.fetcher.begin()
        # A door that takes long, as with a name server that is silent, keeps no account waiting.
        stack.callback(asyncio.get_running_loop().call_later(DOORS_SECONDS, gateway.begin).cancel)
        http = await _listen(gateway, options, stack)
        options.heartbeat.describe = lambda: _describe(gateway)
        stack.enter_context(gateway.bus.watch_ends(lambda event: _count(event, gateway, options)))
        await stack.enter_async_context(loop_lag.sampling(os.environ))
        await startup_report.adapters_settled(gateway)
        await gateway.toolbox.ready()  # the first answer is as quick as the second
        ready()
        if sys.stdout.isatty():
            # From here on whoever sits at the terminal is told what happens, in words that they can act on.
            from hermes.hosting.window import ForegroundWindow

            window = ForegroundWindow(gateway, options.command, lambda line: _print([options.redactor(line)]))
            stack.enter_context(gateway.news.watch(window.notice))
            showing = asyncio.create_task(window.run(), name="window")
            stack.push_async_callback(_ended, showing)
        api = "off" if not http.is_on else http.trouble or banner.api_line(http.url, options.command)
        _print([options.redactor(line) for line in await startup_report.facts(gateway, api=api, is_new=is_new)])
        seconds = gateway.clock.now() - options.started_at
        _print(banner.closing(seconds=seconds, command=options.command, is_terminal=sys.stdout.isatty()))
        if options.safe_reason:
            patience = max(0.0, _resume_at(options) - time.time())
            asyncio.get_running_loop().call_later(patience, _resume, gateway, options)
        reloading = asyncio.create_task(_reload_on_request(gateway, options), name="reload")
        stack.callback(reloading.cancel)
        code = await options.stop.wait()
        if gateway.node is None or not gateway.node.has_others():  # another node goes on with what runs
            await say_goodbye(gateway)
    # Write down for whoever asked for the end how many turns it interrupted.
    if gateway.lanes.interrupted:
        log.info("Turns interrupted", extra={"count": gateway.lanes.interrupted})
    record = json.dumps({"at": time.time(), "interrupted": gateway.lanes.interrupted})
    try:
        paths.write_private(paths.last_drain(str(options.home)), record)
    except OSError as error:
        log.warning("Drain not recorded", extra={"reason": str(error)})
    return code


def _process(options: WorkerOptions) -> dict[str, Any]:
    """What a status says of the process, and until when platforms that are paused stay so."""
    return {**process_snapshot(options), "paused_until": _resume_at(options) if options.heartbeat.ready_at else 0.0}


def _resume_at(options: WorkerOptions) -> float:
    return options.heartbeat.ready_at + PAUSED_SECONDS


def _resume(gateway: Gateway, options: WorkerOptions) -> None:
    gateway.supervisor.resume_paused()
    options.heartbeat.resumed()
    log.info("Platforms resumed", extra={"after_seconds": PAUSED_SECONDS})


async def _reload_on_request(gateway: Gateway, options: WorkerOptions) -> None:
    """A hang-up signal reads the configuration again, as it does with other servers."""
    while await options.reload.wait():
        options.reload.clear()
        await gateway.watch.read_again()
        log.info("Configuration read again", extra={"reason": "hang-up signal"})


def _setting(options: WorkerOptions) -> GatewayOptions:
    return GatewayOptions(
        options.home,
        os.environ,
        Path.cwd(),
        redactor=options.redactor,
        clock=clock_from(os.environ),
        paused_because=options.safe_reason,
        store_is_down=_DatabaseWait(options).goes_on,
        on_wait=lambda reason: _tell_waiting(options, reason),
        set_log_level=logging.getLogger().setLevel,
        set_log_format=logs.set_format,
        doors_first=True,
        # Other nodes do our work: end here, and let the supervisor start another worker, which joins anew.
        on_gone=lambda reason: options.stop.ask(RESTART_ASKED, reason),
        restart=(lambda reason: options.stop.ask(RESTART_ASKED, reason)) if options.parent_pid else None,
    )


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):  # it is ours, and it was we who cancelled it
        await task


def _tell_waiting(options: WorkerOptions, reason: str) -> None:
    if reason:
        _print([f"Home     {reason}."])
    options.heartbeat.describe = lambda: (reason, 0)


class _DatabaseWait:
    """Waits at the start for a database server, says so once, and gives up only when asked to stop."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._logged = ""

    def goes_on(self, reason: str) -> bool:
        if self._options.stop.is_requested:
            return False
        if self._logged != reason:
            self._logged = reason
            log.error("Store is down", extra={"reason": reason, "while": "starting"})
            _print([f"Store    {reason}", "         I keep trying; HERMES_DATABASE_URL says where it is."])
            self._options.heartbeat.describe = lambda: (reason, 0)
        return True


async def _listen(gateway: Gateway, options: WorkerOptions, stack: AsyncExitStack) -> ApiPort:
    """Open the doors: the HTTP port, and the control socket."""
    # The owner's key as it is at any moment: the configured one, else the one that the home keeps.
    kept = await asyncio.to_thread(own_key, gateway.home)
    options.redactor.learn([kept])
    keys = ApiKeys(gateway.db, gateway.clock, lambda: gateway.config.api.key or kept)
    http = ApiPort(gateway.watch, lambda: make_api(ApiParts(gateway, lambda: _process(options), options.tools), keys))
    await stack.enter_async_context(http.open())
    following = asyncio.create_task(keep_running("api port", http.follow, gateway.troubles), name="api port")
    stack.push_async_callback(_ended, following)
    hooks = WebhookPort(gateway)
    receiving = asyncio.create_task(keep_running("webhooks", hooks.follow, gateway.troubles), name="webhooks")
    stack.push_async_callback(_ended, receiving)
    gateway.begin()  # now that it answers

    async def status(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        snapshot = {**_process(options), **await gateway.status()}
        snapshot["faults"] = await _faults(gateway.home, options.log_trouble)
        snapshot["problems"] = [str(problem) for problem in gateway.watch.loaded.problems if problem.level == "error"]
        snapshot["webhooks"] = hooks.url
        snapshot["troubles"] = [*snapshot["troubles"], *filter(None, (http.trouble, hooks.trouble))]
        return snapshot

    async def dashboard(verb: str, args: Mapping[str, Any], reply: Any) -> Any:
        from hermes.hosting.control.handlers.dashboard import DashboardVerbs  # loaded when it is asked for

        url = http.url if not http.trouble else ""
        return await DashboardVerbs(gateway.db, gateway.clock, lambda: gateway.config, lambda: url).mapping()[verb](
            args, reply
        )

    key_verbs = KeyVerbs(gateway.db, gateway.clock, keys.forget).mapping()
    of_dashboard: dict[str, Handler] = {
        name: partial(dashboard, name) for name in ("dashboard.link", "dashboard.list", "dashboard.revoke")
    }
    verbs = {**verbs_of(gateway), **lifecycle_verbs(options), **key_verbs, **of_dashboard, "status": status}
    await stack.enter_async_context(ControlServer(options.home, verbs, options.tools).listening())
    return http


async def _faults(home: Path, log_trouble: Callable[[], str]) -> list[str]:
    """What is wrong with the home right now. A disk that hangs is such a fault too."""

    def look() -> list[str]:
        found = [str(fault) for fault in home_faults.find_faults(home)]
        return [*found, *([f"{gap}, so the log has gaps"] if (gap := log_trouble()) else [])]

    try:
        async with asyncio.timeout(FAULTS_SECONDS):
            return await asyncio.to_thread(look)
    except TimeoutError:
        where = home_faults.display_path(home)
        return [f"The disk of {where} has not answered for {FAULTS_SECONDS:.0f} s → look at what it does: dmesg"]


def _describe(gateway: Gateway) -> tuple[str, int]:
    running = gateway.lanes.running()
    return (f"turn {running[0][1]}" if running else "", len(running))


def _count(event: TurnEnded, gateway: Gateway, options: WorkerOptions) -> None:
    options.heartbeat.settle()
    if event.state == TurnState.DONE:
        gateway.models.answered()
    elif event.result.error_kind:
        gateway.models.failed(event.result.error_kind)


async def say_goodbye(gateway: Gateway) -> None:
    """Tell each chat for which something runs, once. After the restart it would not be true any more, so it is gone."""
    try:
        chats = await gateway.db.read(_chats_of, gateway.lanes.running())
        languages = await gateway.db.read(turns.languages_of, list(chats.values()))
        rows: list[outbox.Outgoing] = []
        for target, turn_id in chats.items():
            text = words_of(pick(gateway.watch.current.language, languages.get(turn_id, ""))).SHUTTING_DOWN
            rows += gateway.outbox_writer.notice(target, text, turn_id=turn_id)
        rows = [replace(row, expires_at=gateway.clock.now() + GOODBYE_SECONDS) for row in rows]
        await gateway.db.write(outbox.enqueue, rows, now=gateway.clock.now())
    except StoreIsDownError as error:
        log.warning("Store is down", extra={"while": "saying goodbye", "reason": str(error)})
    else:
        gateway.outbox_writer.due(rows)


def _chats_of(tx: Tx, running: Sequence[tuple[str, str]]) -> dict[Target, str]:
    """Where these turns are waited for: in their own chat, or in the one that began them."""
    chats: dict[Target, str] = {}
    for lane, turn_id in running:
        row = next(iter(inbox.of_turn(tx, turn_id)), None)
        origin = origin_of(row) if row is not None else ""
        key = SessionKey.parse(origin or lane)
        if key.platform not in DOORS:
            chats.setdefault(key.target, turn_id)
    return chats


def _print(lines: list[str]) -> None:
    with contextlib.suppress(OSError):  # the window is closed: the log has it all
        out(_translated("\n".join(lines)), flush=True)


def _translated(text: str) -> str:
    """For a person at a terminal; what goes into a file stays in English, as the log does."""
    if not sys.stdout.isatty():
        return text
    from hermes.hosting.translation import tr

    return tr(text)

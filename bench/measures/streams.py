"""A thousand turns that stream at the same time, each shown in its chat as it grows."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict

from bench import machine, profiler, talk
from bench.rig import World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds, percentile
from tests.fakes.server import Sent

# 15 s each: with 200 tokens the first would end while the last open, and no more than 900 were ever open at once.
TOKENS, TOKENS_PER_SECOND = 300, 20.0
OPENED_PER_SECOND = 100.0
PATIENCE_SECONDS = 120.0
EXPECTED = "".join(f"w{number} " for number in range(TOKENS)).strip()


async def measure(plan: Plan) -> Rows:
    count = plan.count(1000, 10)
    rate = TOKENS_PER_SECOND * plan.count(1, 10)
    arguments = ("--mode", "stream", "--tokens", str(TOKENS), "--rate", str(rate))
    async with folder() as place, world(place / "home", model_arguments=arguments) as here:
        chats = range(1000, 1000 + count)
        plan.say(f"{count} turns of {TOKENS} tokens at {rate:.0f}/s, opened at {OPENED_PER_SECOND:.0f}/s")
        await talk_once(here)
        watch = Watch(here)
        began = time.monotonic()
        async with profiler.watching(plan, here.gateway.worker, "streams"):
            opened = await _open(here, chats)
            await _until_answered(plan, here, watch, chats)
        took = time.monotonic() - began
        await asyncio.sleep(talk.SETTLE_SECONDS)
        answers = _last_texts(here)
        failed = [chat for chat in chats if answers[str(chat)].text != EXPECTED]
        waits = [answers[str(chat)].at - opened[chat] for chat in chats if answers[str(chat)].at]
        return watch.rows(count, len(failed), took, waits)


class Watch:
    """What the processes used since the watch began, and the most they had open at once."""

    def __init__(self, here: World) -> None:
        self._here = here
        self._cpu = {name: machine.cpu_seconds(pid) for name, pid in self._pids().items()}
        self._files = machine.open_files(here.model.pid)
        self.most_open = 0
        self.most_memory = 0

    def _pids(self) -> dict[str, int]:
        return {"worker": self._here.gateway.worker, "model": self._here.model.pid, "telegram": machine.own_pid()}

    def look(self) -> None:
        self.most_open = max(self.most_open, machine.open_files(self._here.model.pid) - self._files)
        self.most_memory = max(self.most_memory, machine.resident(self._here.gateway.processes))

    def rows(self, count: int, failed: int, took: float, waits: list[float]) -> Rows:
        self.look()
        cpu = {name: machine.cpu_seconds(pid) - self._cpu[name] for name, pid in self._pids().items()}
        calls = self._here.telegram.counts
        edits, typings = calls["editMessageText"], calls["sendChatAction"]
        fakes = f"not counted: the fakes used {cpu['model']:.1f} s (model) and {cpu['telegram']:.1f} s (Telegram)"
        return [
            Row(f"{count} streaming turns: failed", failed, "", 0.0, f"{TOKENS} tokens each, took {took:.0f} s"),
            Row(f"{count} streaming turns: open at once, at most", self.most_open, ""),
            Row(f"{count} streaming turns: CPU per turn", milliseconds(cpu["worker"] / count), "ms", note=fakes),
            Row(
                f"{count} streaming turns: CPU of the worker",
                cpu["worker"],
                "s",
                note=f"{edits} edits, {typings} typing",
            ),
            Row(f"{count} streaming turns: RSS of the tree, at most", self.most_memory / machine.MEGABYTE, "MB"),
            Row(f"{count} streaming turns: message to first sign in the chat, p50", percentile(waits, 50), "s"),
            Row(f"{count} streaming turns: message to first sign in the chat, p99", percentile(waits, 99), "s"),
        ]


async def talk_once(here: World) -> None:
    """One turn first, so that imports and connections are not counted."""
    here.telegram.user_says("warm up", chat=999, user=999)
    await here.telegram.wait_for(lambda: _is_answered(here, 999), PATIENCE_SECONDS)


async def _open(here: World, chats: range) -> dict[int, float]:
    opened: dict[int, float] = {}
    began = time.monotonic()
    for number, chat in enumerate(chats):
        await asyncio.sleep(max(0.0, began + number / OPENED_PER_SECOND - time.monotonic()))
        opened[chat] = time.monotonic()
        here.telegram.user_says("go", chat=chat, user=chat)
    return opened


async def _until_answered(plan: Plan, here: World, watch: Watch, chats: range) -> None:
    """Until every chat shows the whole text, or patience ends: then the rest has failed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    missing = list(chats)
    while missing and time.monotonic() < deadline:
        watch.look()
        await asyncio.sleep(0.5)
        texts = _last_texts(here)
        missing = [chat for chat in missing if texts[str(chat)].text != EXPECTED]
    plan.say(f"{len(chats) - len(missing)} of {len(chats)} answered")


def _last_texts(here: World) -> dict[str, Sent]:
    found: dict[str, Sent] = defaultdict(lambda: Sent("", "", "", at=0.0))
    for sent in here.telegram.sent:
        known = found.get(sent.chat)
        # The first sign of a chat says how long it waited, its newest text what it was told in the end.
        found[sent.chat] = sent if known is None else Sent(sent.chat, sent.text, sent.message_id, at=known.at)
    return found


def _is_answered(here: World, chat: int) -> bool:
    return any(text == EXPECTED for text in here.telegram.texts(chat))

"""Answer without key or account: SmolLM2-135M in a child process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from hermes.agent.models import openmp
from hermes.agent.models.embedded import child as embedded_child
from hermes.agent.models.embedded.download import Fetcher, FetchError, Installed, StillFetchingError
from hermes.agent.models.embedded.prompts import (
    Language,
    hint,
    is_first_reply,
    language_of,
    last_user_text,
    only_english,
    prompt_for,
)
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.i18n.catalogue import LocalizedText
from hermes.core.messages import Usage
from hermes.core.ports import ModelEvent, ModelReply, ModelRequest, TextDelta

LABEL = "built-in"
MODEL = "SmolLM2-135M-Instruct"
MAX_TOKENS = 160
SOFT_TOKENS = 100  # from here on the answer ends with its sentence
START_SECONDS = 30.0
TOKEN_SECONDS = 30.0
LEAVE_SECONDS = 2.0

Line = dict[str, Any]


class ChildDiedError(Exception):
    """The child process is gone or does not answer; the text says how it ended."""


class NotLoadedError(ChildDiedError):
    """The engine or the weights could not be loaded; the text is what the engine said."""


class ModelProcess:
    """One running child process. Asks are answered one at a time; lines of an ask given up are skipped."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - both are pipes: start() asked for them
        assert process.stdout is not None  # noqa: S101 - the same
        self._process = process
        self._in = process.stdin
        self._out = process.stdout
        self._numbers = itertools.count(1)

    @classmethod
    async def start(cls, command: Sequence[str], libraries: Path | None = None) -> ModelProcess:
        """Start it and wait until its weights are loaded. ``libraries``: a folder of shared libraries it may need."""
        env = openmp.environment(libraries)
        child = cls(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=env))
        try:
            await child._loaded()
        except BaseException:
            await child.close()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, messages: list[dict[str, str]], max_tokens: int) -> AsyncGenerator[Line, None]:
        """Yield its lines, the last one with ``done`` or ``error``. Closing early has the child stop this one."""
        number, is_over = next(self._numbers), False
        try:
            self._say(ask=number, messages=messages, soft_tokens=min(SOFT_TOKENS, max_tokens), max_tokens=max_tokens)
            while not is_over:
                line = await self._line(TOKEN_SECONDS)
                if line.get("ask") == number:
                    is_over = "done" in line or "error" in line
                    yield line
        finally:
            if not is_over:
                self._say(stop=number)

    async def close(self) -> None:
        """Let it go: it ends when its input closes, or is made to."""
        self._in.close()
        try:
            await asyncio.wait_for(self._process.wait(), LEAVE_SECONDS)
        except TimeoutError:
            self._process.kill()
        finally:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it ended in between
                    self._process.kill()
                await self._process.wait()

    async def _loaded(self) -> None:
        first = await self._line(START_SECONDS)
        if "failed" in first:
            raise NotLoadedError(str(first["failed"]))

    def _say(self, **line: Any) -> None:
        # A line is small, so it is not waited for; if the child is gone, reading tells.
        if not self._in.is_closing():
            self._in.write(json.dumps(line).encode() + b"\n")

    async def _line(self, seconds: float) -> Line:
        try:
            raw = await asyncio.wait_for(self._out.readline(), seconds)
        except TimeoutError:
            raise ChildDiedError(f"no word for {seconds:.0f} s") from None
        if not raw.endswith(b"\n"):
            raise ChildDiedError(await self._how_it_ended())
        line: Line = json.loads(raw)
        return line

    async def _how_it_ended(self) -> str:
        try:
            code = await asyncio.wait_for(self._process.wait(), LEAVE_SECONDS)
        except TimeoutError:
            return "its output closed"
        if code >= 0:
            return f"exit code {code}"
        return f"{signal.Signals(-code).name}{_SIGNAL_MEANS.get(-code, '')}"


_SIGNAL_MEANS = {
    int(signal.SIGILL): ": this processor lacks an instruction it needs",
    int(signal.SIGKILL): ": out of memory?",
}


class EmbeddedModel:
    """English small talk, no tools. Nothing runs before the first message or after ``idle_seconds`` of quiet.

    ``wait_seconds`` is how long a message waits for the packages to arrive. One reply at a time: others queue.
    Whoever made it closes it; the fetcher belongs to its maker.
    """

    def __init__(
        self,
        home: Path,
        fetcher: Fetcher,
        *,
        idle_seconds: float = 300.0,
        wait_seconds: float = 20.0,
        python: str = sys.executable,
        child_script: Path = Path(embedded_child.__file__),
    ) -> None:
        self._home = home
        self._fetcher = fetcher
        self._idle_seconds = idle_seconds
        self._wait_seconds = wait_seconds
        self._command = (python, "-I", str(child_script))
        self._turn = asyncio.Lock()
        self._child: ModelProcess | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def label(self) -> str:
        return LABEL

    @property
    def has_tools(self) -> bool:
        return False

    @property
    def child_pid(self) -> int | None:
        """Return the running child's process id; None while there is none."""
        return self._child.pid if self._child else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if request.format is not None:
            reason = LocalizedText(lambda words: words.BUILT_IN_NO_FORMAT)
            raise ModelError(ModelErrorKind.REQUEST, reason, provider=LABEL)
        language = language_of(last_user_text(request.messages))
        if language is not Language.ENGLISH:
            text = only_english(language, self._home)
            yield TextDelta(text)
            yield _reply(text)
            return
        installed = await self._installed()
        await self._my_turn(request.deadline_seconds)
        try:
            self._stay()
            async with aclosing(self._answer(installed, request)) as events:
                async for event in events:
                    yield event
        finally:
            self._stay()
            self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._retire)
            self._turn.release()

    async def aclose(self) -> None:
        """End the child and wait until it is gone."""
        self._retire()
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def __aenter__(self) -> EmbeddedModel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _installed(self) -> Installed:
        try:
            return await self._fetcher.wait(self._wait_seconds)
        except (FetchError, StillFetchingError) as error:
            raise ModelError(ModelErrorKind.TRANSIENT, error.args[0], provider=LABEL, retry_after=60) from error

    async def _my_turn(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._turn.acquire(), seconds)
        except TimeoutError:
            raise ModelError(
                ModelErrorKind.TRANSIENT,
                LocalizedText(lambda words: words.BUILT_IN_CROWD),
                provider=LABEL,
                retry_after=60,
            ) from None

    async def _answer(self, installed: Installed, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        text, usage = "", Usage()
        deadline = asyncio.get_running_loop().time() + request.deadline_seconds
        async with aclosing(self._lines(installed, request)) as lines:
            async for line in lines:
                if "text" in line:
                    chunk = line["text"] if text else line["text"].lstrip()
                    text += chunk
                    if chunk:
                        yield TextDelta(chunk)
                elif "error" in line:
                    raise _failure(line["error"], text)
                else:
                    usage = Usage(line["prompt_tokens"], line["completion_tokens"])
                    ending = "…" if line["done"] == "length" and text else ""  # it was cut off
                    text = text.rstrip() + ending
                    if ending:
                        yield TextDelta(ending)
                if asyncio.get_running_loop().time() > deadline:
                    raise _failure("the answer took too long", text)
        if not text.strip():
            raise ModelError(ModelErrorKind.EMPTY, LocalizedText(lambda words: words.BUILT_IN_NOTHING), provider=LABEL)
        if is_first_reply(request.messages):
            chunk = f"\n\n{hint(self._home, request.language)}"
            text += chunk
            yield TextDelta(chunk)
        yield _reply(text, usage)

    async def _lines(self, installed: Installed, request: ModelRequest) -> AsyncGenerator[Line, None]:
        """The child's lines. A child that dies before its first word is replaced once."""
        prompt = prompt_for(request.messages)
        max_tokens = min(request.max_tokens or MAX_TOKENS, MAX_TOKENS)
        spoken, has_failed = "", False
        while True:
            try:
                if self._child is None:
                    command = (*self._command, str(installed.engine_folder), str(installed.weights))
                    self._child = await ModelProcess.start(command, installed.libraries)
                async with aclosing(self._child.ask(prompt, max_tokens)) as lines:
                    async for line in lines:
                        spoken += line.get("text", "")
                        yield line
            except ChildDiedError as error:
                self._retire()
                if spoken or has_failed:
                    raise _failure(f"its process ended: {error}", spoken) from error
                has_failed = True
                if isinstance(error, NotLoadedError):  # what it needs may be gone since: it is mended, or said why not
                    await self._fetcher.doubt(str(error))
                    installed = await self._installed()
            except OSError as error:
                raise _failure(f"its process cannot be started: {error}", "") from error
            else:
                return

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _retire(self) -> None:
        self._stay()
        if self._child is not None:
            task = asyncio.create_task(self._child.close(), name="end the built-in model's process")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
            self._child = None


def _reply(text: str, usage: Usage | None = None) -> ModelReply:
    return ModelReply(text, usage=usage or Usage(), model=MODEL, provider=LABEL)


def _failure(reason: str, spoken: str) -> ModelError:
    return ModelError(
        ModelErrorKind.TRANSIENT,
        LocalizedText(lambda words: words.BUILT_IN_FAILED.format(reason=reason)),
        provider=LABEL,
        partial=spoken,
    )

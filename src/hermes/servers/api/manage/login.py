"""Sign in to a platform by a code that a phone scans, shown on a page instead of a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from hermes.core.errors import ConfigError, PlatformError
from hermes.core.keys import MAIN
from hermes.core.manifest import Manifest
from hermes.core.messages import Json
from hermes.servers.api.errors import ApiError
from hermes.servers.api.manage.settings import write_settings
from hermes.services.adapters import probe
from hermes.services.adapters.qr import encode
from hermes.services.adapters.sign_in import changes_of
from hermes.services.gateway import Gateway

log = logging.getLogger(__name__)

LOGIN_SECONDS = 600.0
ANSWER_SECONDS = 180.0
CHANGE_SECONDS = 25.0
"""How long a question for news waits: shorter than proxies do."""
MAX_LINES = 20


class PlatformLogin:
    """One sign-in, and the page that shows it. ``number`` grows with every change."""

    def __init__(self, gateway: Gateway, manifest: Manifest) -> None:
        self._gateway = gateway
        self._manifest = manifest
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._answer: asyncio.Future[str] | None = None
        self.number = 0
        self.state = "starting"
        self.code = ""
        self.sentence = ""
        self.question = ""
        self._progress = ""
        self._lines: deque[str] = deque(maxlen=MAX_LINES)

    @staticmethod
    def nothing() -> Json:
        return {"code": "", "modules": [], "lines": [], "question": "", "sentence": "", "number": 0}

    def to_dict(self) -> Json:
        modules: list[str] = []
        if self.code:
            with contextlib.suppress(ValueError):  # too long for a code: the link is shown
                modules = ["".join("1" if dark else "0" for dark in row) for row in encode(self.code)]
        lines = [*self._lines, *([self._progress] if self._progress else [])]
        return {
            "object": "platform.login",
            "state": self.state,
            "code": self.code,
            "modules": modules,
            "lines": lines,
            "question": self.question,
            "sentence": self.sentence,
            "number": self.number,
        }

    @property
    def is_over(self) -> bool:
        return self._task is not None and self._task.done()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"sign in to {self._manifest.id}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def changed(self, after: str) -> None:
        """Wait for a change after this number, for a while; return at once without a number."""
        if after != str(self.number) or self.is_over:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHANGE_SECONDS):
                await self._news.wait()

    def answer(self, text: str) -> bool:
        """Answer what is asked. False: nothing is."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(text)
        return True

    async def _run(self) -> None:
        manifest, gateway = self._manifest, self._gateway
        assert manifest.sign_in is not None  # noqa: S101 - checked before it was begun
        try:
            async with (
                asyncio.timeout(LOGIN_SECONDS),
                probe.adapter_parts(manifest, gateway.config, MAIN, {}) as parts,
            ):
                signed = await manifest.sign_in(parts, self)
            changes = changes_of(signed, gateway.config, manifest, MAIN)
            if changes:
                await write_settings(gateway, dict(changes))
            self._show("done", f"Signed in to {manifest.title}.")
        except TimeoutError:
            self._show("failed", "Nobody scanned the code in time. Begin again.")
        except (ConfigError, PlatformError) as error:
            self._show("failed", str(error))
        except ApiError as error:
            self._show("failed", error.message)
        except asyncio.CancelledError:
            self._show("failed", "The sign-in was ended.")
            raise
        log.info("Platform sign-in ended", extra={"platform": manifest.id, "state": self.state})

    def _show(self, state: str, sentence: str = "") -> None:
        self.state, self.sentence = state, sentence or self.sentence
        if state in ("done", "failed"):
            self.code = self.question = self._progress = ""
        self._moved()

    def _moved(self) -> None:
        self.number += 1
        self._news.set()
        self._news = asyncio.Event()

    # What a platform calls: hermes.core.manifest.SignInScreen

    def show_code(self, payload: str) -> None:
        self.code = payload
        self._show("code")

    def say(self, text: str) -> None:
        self._lines.append(text.strip())
        self._moved()

    def progress(self, text: str) -> None:
        self._progress = text.strip()
        self._moved()

    async def ask(self, question: str) -> str:
        self.question = question
        self._answer = asyncio.get_running_loop().create_future()
        self._show("asking")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._answer
        except TimeoutError:
            return ""
        finally:
            self.question, self._answer = "", None
            self._show("starting")

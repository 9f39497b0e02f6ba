"""Drive a headless Chromium over its debugging protocol: pages, clicks, keys, pictures.

    async with Chromium() as browser:
        page = await browser.page(size=(390, 844), is_phone=True)
        await page.goto(url)
        await page.wait("document.querySelector('h1')")

Each page has a profile of its own unless it shares one (``beside``), so that two people are two pages.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

SECONDS = 20.0
"""How long a page may take for anything a test waits for."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--remote-debugging-port=0",
)
MAX_MESSAGE = 64 * 1024 * 1024
Listener = Callable[[dict[str, Any]], None]

KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}
ALT, CTRL, SHIFT = 1, 2, 8


def find_chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


class PageError(AssertionError):
    """What a test waited for did not come, or a script of the page failed."""


class Chromium:
    def __init__(self, program: str | None = None) -> None:
        self._program = program or find_chromium() or NAMES[0]
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Listener] = {}

    async def __aenter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="hermes-browser-", ignore_cleanup_errors=True)
        self._process = await asyncio.create_subprocess_exec(
            "nice",
            "-n",
            "19",
            self._program,
            *FLAGS,
            f"--user-data-dir={self._folder.name}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._http = aiohttp.ClientSession()
        port = Path(self._folder.name, "DevToolsActivePort")
        async with asyncio.timeout(SECONDS * 3):
            while len(lines := await asyncio.to_thread(_lines, port)) != 2:  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.05)
            address = f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            self._socket = await self._http.ws_connect(address, max_msg_size=MAX_MESSAGE)
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()
        await self._http.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._folder.cleanup()

    async def _read(self) -> None:
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                answer = self._answers.pop(said["id"], None)
                if answer is not None and not answer.done():
                    answer.set_result(said)
            elif listener := self._listeners.get(said.get("sessionId", "")):
                listener(said)

    async def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        sent = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        await self._socket.send_str(json.dumps(sent))
        async with asyncio.timeout(SECONDS * 3):
            said = await answer
        if "error" in said:
            raise PageError(f"{method}: {said['error']['message']}")
        result: dict[str, Any] = said["result"]
        return result

    async def page(
        self,
        size: tuple[int, int] = (1280, 800),
        *,
        is_dark: bool = False,
        is_phone: bool = False,
        language: str = "en-US",
        beside: Page | None = None,
    ) -> Page:
        """Open a window; ``beside`` another it has the same cookies, as a second window of one person."""
        context = beside.context if beside else (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = (
            await self.call(
                "Target.createTarget",
                url="about:blank",
                browserContextId=context,
                width=size[0],
                height=size[1],
                newWindow=True,
            )
        )["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = Page(self, session, context, target)
        self._listeners[session] = page.heard
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.call(f"{domain}.enable")
        await page.call(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=is_phone
        )
        if is_phone:
            await page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        await page.call("Emulation.setEmulatedMedia", features=[scheme])
        await page.call("Emulation.setLocaleOverride", locale=language)
        agent = (await self.call("Browser.getVersion"))["userAgent"]
        await page.call("Network.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        return page


class Page:
    """A window. ``held`` are the requests that ``hold`` stopped.

    ``problems``: exceptions of scripts, and what the security policy refused.
    """

    def __init__(self, browser: Chromium, session: str, context: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self.context = context
        self.problems: list[str] = []
        self.requests: dict[str, str] = {}
        self.held: list[str] = []
        self.received_bytes = 0

    def heard(self, said: dict[str, Any]) -> None:
        told = said["params"]
        match said["method"]:
            case "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                self.problems.append(str(details.get("exception", {}).get("description") or details["text"]))
            case "Log.entryAdded" if told["entry"]["source"] == "security":
                self.problems.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests[told["requestId"]] = told["request"]["url"]
            case "Fetch.requestPaused":
                self.held.append(told["requestId"])
            case "Network.loadingFinished":
                self.received_bytes += int(told["encodedDataLength"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._browser.call(method, self._session, **parameters)

    async def close(self) -> None:
        await self._browser.call("Target.closeTarget", targetId=self._target)

    async def goto(self, url: str) -> None:
        await self.call("Page.navigate", url=url)
        await self.wait("document.readyState === 'complete'")

    async def hold(self, pattern: str) -> None:
        """Stop requests for addresses like this until ``release``."""
        await self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])

    async def release(self) -> None:
        await self.call("Fetch.disable")
        self.held.clear()

    async def run(self, script: str) -> Any:
        """Evaluate an expression in the page; promises are awaited."""
        told = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            details = told["exceptionDetails"]
            raise PageError(str(details.get("exception", {}).get("description") or details["text"]))
        return told["result"].get("value")

    async def wait(self, script: str, seconds: float = SECONDS) -> Any:
        """Wait until an expression is true; its value."""
        last = ""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        value = await self.run(script)
                        if value or value == {}:  # an element comes as an empty object
                            return value
                    except PageError as error:  # the page is just being replaced by the next one
                        last = str(error)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            text = await self.run("document.body ? document.body.innerText.slice(0, 1500) : ''")
            raise PageError(f"not so within {seconds:g} s: {script} {last}\nThe page shows:\n{text}") from None

    async def wait_text(self, text: str, seconds: float = SECONDS) -> None:
        await self.wait(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    async def text(self, selector: str = "body") -> str:
        return str(await self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    async def _middle(self, selector: str) -> tuple[float, float]:
        place = f"document.querySelector({json.dumps(selector)})"
        await self.wait(f"!!{place}")
        look = (
            f"(() => {{ const element = {place}; element.scrollIntoView({{block: 'nearest', inline: 'nearest'}}); "
            "const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        box, before = await self.run(look), None
        while box != before:  # a drawer that slides in is clicked when it stands still
            await asyncio.sleep(0.03)
            box, before = await self.run(look), box
        return box[0], box[1]

    async def click(self, selector: str) -> None:
        """Click in the middle of an element with a real mouse event."""
        x, y = await self._middle(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press_button(self, label: str, inside: str = "body") -> None:
        """Click the button or link with this text or label."""
        find = (
            f"[...(document.querySelector({json.dumps(inside)})?.querySelectorAll('button, a, summary') ?? [])]"
            f".find((one) => (one.innerText.trim() || one.getAttribute('aria-label')) === {json.dumps(label)} "
            "&& !one.disabled)"
        )
        await self.wait(
            f"(() => {{ const found = {find}; if (found) found.dataset.pressed = '1'; return !!found; }})()"
        )
        await self.click("[data-pressed]")
        await self.run("document.querySelectorAll('[data-pressed]').forEach((one) => delete one.dataset.pressed)")

    async def write(self, selector: str, text: str) -> None:
        """Put the focus into a field, replace what it holds, and write as a keyboard would."""
        await self.wait(f"!!document.querySelector({json.dumps(selector)})")
        await self.run(
            f"(() => {{ const field = document.querySelector({json.dumps(selector)}); "
            "field.focus(); field.select?.(); })()"
        )
        await self.call("Input.insertText", text=text)

    async def key(self, name: str, modifiers: int = 0) -> None:
        code, text = KEYS[name]
        shared = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    async def drag(self, source: str, target: str) -> None:
        """Drag with the mouse from one element to another, in several steps."""
        x, y = await self._middle(source)
        to_x, to_y = await self._middle(target)
        x, y = await self._middle(source)
        mouse = "Input.dispatchMouseEvent"
        await self.call(mouse, type="mouseMoved", x=x, y=y)
        await self.call(mouse, type="mousePressed", x=x, y=y, button="left", clickCount=1)
        for step in range(1, 9):
            way_x, way_y = x + (to_x - x) * step / 8, y + (to_y - y) * step / 8
            await self.call(mouse, type="mouseMoved", x=way_x, y=way_y, button="left", buttons=1)
        await self.call(mouse, type="mouseReleased", x=to_x, y=to_y, button="left", clickCount=1)

    async def picture(self, path: Path) -> None:
        told = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(path.write_bytes, base64.b64decode(told["data"]))

    async def heap_bytes(self) -> int:
        """Bytes that the page's scripts hold, after what can be collected was collected."""
        await self.call("HeapProfiler.collectGarbage")
        return int((await self.call("Runtime.getHeapUsage"))["usedSize"])

    async def node_count(self) -> int:
        return int((await self.call("Memory.getDOMCounters"))["nodes"])


async def eventually(ask: Callable[[], Awaitable[Any]], seconds: float = SECONDS) -> Any:
    """Ask until the answer is true; the answer."""
    async with asyncio.timeout(seconds):
        while not (answer := await ask()):  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0.02)
        return answer

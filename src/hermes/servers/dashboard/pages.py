"""Serve the files of the page: ``built/`` is what `web/` makes, and lies in the package."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable
from pathlib import Path

from aiohttp import hdrs, web

from hermes.config import Config
from hermes.servers.api.errors import not_found
from hermes.servers.dashboard.sign_in import base_path_of

BUILT = Path(__file__).parent / "built"
INDEX = "index.html"
NO_BASE = '<meta name="base" content="">'
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
OF_PAGE = {
    "Content-Security-Policy": CSP,
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "Content-Security-Policy": CSP}
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+")
"""A file has an ending, and a page of the application has none. No name leads out of the folder."""
TYPES = {".webmanifest": "application/manifest+json", ".js": "text/javascript", ".svg": "image/svg+xml"}

NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Hermes</title></head><body>
<h1>The dashboard is not built</h1>
<p>The files of this page are missing in {folder}. In a clone of the repository, build them:</p>
<pre>./scripts/web build</pre>
<p>The API of the gateway works without them.</p>
</body></html>
"""


class DashboardFiles:
    """``built`` is the folder with ``index.html`` and ``assets/``."""

    def __init__(self, config: Callable[[], Config], built: Path = BUILT) -> None:
        self._config = config
        self._built = built

    async def root(self, request: web.Request) -> web.StreamResponse:
        """Lead browsers that ask for the port itself to the page."""
        if not self._is_on or "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
            raise not_found(
                "There is nothing at /. GET /openapi.json tells every address there is.", code="unknown_url"
            )
        raise web.HTTPFound(f"{self._base}/dashboard/", headers={"Cache-Control": "no-store"})

    async def page(self, request: web.Request) -> web.StreamResponse:
        """Answer every page of the application with the same HTML, and a file by its name."""
        self._check_on()
        name = request.match_info.get("page", "")
        if FILE_NAME.fullmatch(name) and name != INDEX:
            return self._file(self._built / name, {"Cache-Control": "no-cache", "Content-Security-Policy": CSP})
        text = await asyncio.to_thread(_html, self._built, self._base)
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=OF_PAGE)

    async def asset(self, request: web.Request) -> web.StreamResponse:
        self._check_on()
        name = request.match_info["name"]
        if not FILE_NAME.fullmatch(name):
            raise not_found("There is no such file.", code="unknown_url")
        return self._file(self._built / "assets" / name, FOR_EVER)

    def _file(self, path: Path, headers: dict[str, str]) -> web.StreamResponse:
        if not path.is_file():
            raise not_found("There is no such file.", code="unknown_url")
        typed = {**headers, **({"Content-Type": TYPES[path.suffix]} if path.suffix in TYPES else {})}
        return web.FileResponse(path, headers=typed)  # the file packed beside it (.br, .gz) where the browser takes it

    @property
    def _base(self) -> str:
        return base_path_of(self._config().dashboard.base_path)

    @property
    def _is_on(self) -> bool:
        return self._config().dashboard.enabled

    def _check_on(self) -> None:
        if not self._is_on:
            raise not_found("The dashboard is switched off (dashboard.enabled).", code="dashboard_off")


def _html(built: Path, base: str) -> str:
    try:
        text = (built / INDEX).read_text("utf-8")
    except FileNotFoundError:
        return NOT_BUILT.format(folder=html.escape(str(built)))
    if not base:
        return text
    quoted = html.escape(base)
    text = text.replace(NO_BASE, f'<meta name="base" content="{quoted}">')
    return text.replace('="/dashboard/', f'="{quoted}/dashboard/')

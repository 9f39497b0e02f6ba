"""The files of the page: packed where the browser takes it, under a base path, and nothing from outside the folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.config import Config
from hermes.config.automation import DashboardConfig
from hermes.servers.app import make_app
from hermes.servers.dashboard.pages import DashboardFiles


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text('<meta name="base" content=""><script src="/dashboard/assets/a.js"></script>')
    (built / "assets" / "a.js").write_text("let plain")
    (built / "assets" / "a.js.br").write_bytes(b"packed")
    (built / "manifest.webmanifest").write_text("{}")
    (tmp_path / "secret.txt").write_text("the tulips are blue")
    config = replace(Config(tmp_path), dashboard=DashboardConfig(base_path="hermes/"))
    files = DashboardFiles(lambda: config, built)

    def add(app: web.Application) -> None:
        app.router.add_get("/dashboard", files.page)
        app.router.add_get("/dashboard/assets/{name}", files.asset)
        app.router.add_get("/dashboard/{page}", files.page)

    async with TestServer(make_app([add])) as server:
        yield str(server.make_url("")).rstrip("/")


async def test_a_file_is_sent_packed_where_the_browser_takes_it(url: str) -> None:
    async with aiohttp.ClientSession(auto_decompress=False) as http:
        async with http.get(f"{url}/dashboard/assets/a.js", headers={"Accept-Encoding": "identity"}) as answer:
            assert await answer.text() == "let plain"
            assert "immutable" in answer.headers["Cache-Control"]
            assert answer.headers["Content-Type"].startswith("text/javascript")
        async with http.get(f"{url}/dashboard/assets/a.js", headers={"Accept-Encoding": "br, gzip"}) as answer:
            assert (await answer.read(), answer.headers["Content-Encoding"]) == (b"packed", "br")
        async with http.get(f"{url}/dashboard/manifest.webmanifest") as answer:
            assert answer.headers["Content-Type"].startswith("application/manifest+json")
            assert answer.headers["Cache-Control"] == "no-cache"


async def test_the_page_knows_the_base_path(url: str) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/dashboard/jobs") as answer:
        text = await answer.text()
    assert '<meta name="base" content="/hermes">' in text
    assert 'src="/hermes/dashboard/assets/a.js"' in text


@pytest.mark.parametrize("name", ["..%2fsecret.txt", "assets/..%2f..%2fsecret.txt", ".env", "assets/.a.js", "a%00.js"])
async def test_no_name_leads_out_of_the_folder(url: str, name: str) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/dashboard/{name}", allow_redirects=False) as answer:
        assert "tulips" not in await answer.text()
        assert answer.status in (200, 404)

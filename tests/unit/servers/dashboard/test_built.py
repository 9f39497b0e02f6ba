"""The built dashboard: made of the sources beside it, small, and without anything that its security policy forbids."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).resolve().parents[4]
WEB = ROOT / "web"
BUILT = ROOT / "src/hermes/servers/dashboard/built"
SOURCES = (
    "finish.mjs",
    "index.html",
    "package-lock.json",
    "package.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
)
MAX_FIRST_LOAD = 200 * 1024
MAX_ALL = 600 * 1024
REFERENCE = re.compile(r'(?:src|href)="/dashboard/([^"]+)"')


def source_hash() -> str:
    files = [
        path
        for name in SOURCES
        for path in ([WEB / name] if (WEB / name).is_file() else (WEB / name).rglob("*"))
        if path.is_file()
    ]
    whole = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(WEB).as_posix()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(WEB).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()


def test_built_files_belong_to_the_sources_beside_them() -> None:
    recorded = json.loads((BUILT / "build.json").read_text("utf-8"))["sources"]
    assert recorded == source_hash(), "web/ was changed without a build: run ./scripts/web build"


def test_compressed_copies_hold_the_same_bytes() -> None:
    copies = list(BUILT.rglob("*.gz"))
    assert copies
    for copy in copies:
        assert gzip.decompress(copy.read_bytes()) == copy.with_suffix("").read_bytes(), copy.name


def test_first_load_and_all_files_stay_small() -> None:
    page = (BUILT / "index.html").read_text("utf-8")
    first = [BUILT / "index.html.gz", *(BUILT / f"{name}.gz" for name in REFERENCE.findall(page) if "." in name)]
    sizes = {path.name: path.stat().st_size for path in first if path.exists()}
    assert any(name.endswith(".js.gz") for name in sizes)
    assert any(name.endswith(".css.gz") for name in sizes)
    assert sum(sizes.values()) < MAX_FIRST_LOAD, sizes
    assert sum(path.stat().st_size for path in BUILT.rglob("*") if path.is_file()) < MAX_ALL


def test_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere() -> None:
    page = (BUILT / "index.html").read_text("utf-8")
    assert not re.findall(r"<script(?![^>]*\ssrc=)", page)
    assert "<style" not in page
    assert not re.search(r'\s(?:style|on\w+)="', page)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for sheet in BUILT.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", sheet.read_text("utf-8")), sheet.name


def test_page_carries_the_place_for_the_base_path() -> None:
    """The gateway writes the base path into this very text."""
    assert '<meta name="base" content="">' in (BUILT / "index.html").read_text("utf-8")


def test_both_languages_have_the_same_sentences_with_the_same_blanks() -> None:
    sentence = re.compile(r'^  (\w+): (".*"),$', re.MULTILINE)
    english, chinese = (
        {name: json.loads(text) for name, text in sentence.findall(path.read_text("utf-8"))}
        for path in (WEB / "src/i18n/en.ts", WEB / "src/i18n/zh.ts")
    )
    assert english.keys() == chinese.keys()
    assert len(english) > 100
    for name, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[name])), name

"""Syntax trees of our sources, for tests that read the code."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import hermes

SOURCE = Path(hermes.__file__).parent


@contextmanager
def without_collections() -> Iterator[None]:
    """Make no garbage collections: trees have no cycles, and looking through all their nodes doubles the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@cache
def trees() -> Mapping[str, ast.Module]:
    """Every module by its path below the package."""
    with without_collections():
        return {
            path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8"))
            for path in sorted(SOURCE.rglob("*.py"))
        }

"""What every client does, in its own words: each scenario's words are printed as one JSON object.

A scenario that fails is told by the name of its exception: the test knows which may.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

BASE_URL = os.environ["OPENAI_BASE_URL"]
KEY = os.environ["OPENAI_API_KEY"]
MODEL = "hermes"
STOP_AFTER = 3
"""Pieces of a stream that are read before the client leaves it."""

calls: list[str] = []


def get_weather(town: str) -> str:
    """Tell the weather of a town."""
    calls.append(town)
    return "rain, 9 °C"


def main(**scenarios: Callable[[], Any]) -> None:
    print(json.dumps(asyncio.run(_all(scenarios))))


async def _all(scenarios: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    wanted = sys.argv[1:] or list(scenarios)
    said: dict[str, Any] = {}
    for name in wanted:
        try:
            found = scenarios[name]()
            said[name] = await asyncio.wait_for(found, 60) if inspect.isawaitable(found) else found
        except Exception as error:  # noqa: BLE001 - the test is told what a client raised
            traceback.print_exc(file=sys.stderr)
            said[name] = f"{type(error).__name__}: {str(error)[:300]}"
    said["weather_calls"] = len(calls)
    return said


def code_in(text: str) -> str:
    return text.partition("/approve ")[2].split()[0].strip(",.")

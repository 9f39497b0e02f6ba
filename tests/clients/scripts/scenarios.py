"""The cases that every client goes through. A script prints what each of its scenarios said, as one JSON object.

A scenario is named by its case, and by a variant where a script has several: `both`, `both responses`. The name gives
the text that the client sends, and the scripted model acts by that text.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

BASE_URL = os.environ["OPENAI_BASE_URL"]
KEY = os.environ["OPENAI_API_KEY"]
MODEL = "hermes"
STOP_AFTER = 3
"""Pieces of a stream that are read before the client leaves it."""
VERBS: dict[str, str] = json.loads(os.environ["CLIENT_VERBS"])

calls: list[str] = []


def get_weather(town: str) -> str:
    """Tell the weather of a town."""
    calls.append(town)
    return "rain, 9 °C"


def main(scenarios: Mapping[str, Callable[[str], Any]]) -> None:
    print(json.dumps(asyncio.run(_all(scenarios))))


async def _all(scenarios: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, scenario in scenarios.items():
        case, _, variant = name.partition(" ")
        try:
            found = scenario(f"{VERBS[case]} {variant}".strip())
            said[name] = await asyncio.wait_for(found, 60) if inspect.isawaitable(found) else found
        except Exception as error:  # noqa: BLE001 - the test reads which exception a client raised
            traceback.print_exc(file=sys.stderr)
            said[name] = f"{type(error).__name__}: {str(error)[:300]}"
    return {"said": said, "weather_calls": len(calls)}


def code_in(text: str) -> str:
    return text.partition("/approve ")[2].split()[0].strip(",.")

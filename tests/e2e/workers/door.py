"""A control server in a process of its own, without a gateway: every verb that is named answers with its arguments.

``python door.py HOME VERB…``; prints a line when it listens, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from hermes.hosting.control.server import ControlServer, Reply


async def echo(args: Mapping[str, Any], _reply: Reply) -> Any:
    return args


async def main(home: str, verbs: list[str]) -> None:
    async with ControlServer(home, dict.fromkeys(verbs, echo)).listening():
        print("listening", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))

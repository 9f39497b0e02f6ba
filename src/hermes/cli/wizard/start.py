"""Connect a platform that was just set up, and let the first person in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import say
from hermes.core.errors import GatewayError
from hermes.core.keys import AccountKey
from hermes.core.people.access import DmPolicy
from hermes.core.people.pairing import is_same
from hermes.hosting.control import client as control

if TYPE_CHECKING:
    from hermes.cli.support.prompts import Questions
    from hermes.cli.wizard.page import PlatformPage

CONNECT_SECONDS = 20.0
LOOK_SECONDS = 0.2
KNOCK_SECONDS = 600.0
CODE_TRIES = 5
CONNECTED = "connected"
PASSING = frozenset({"connecting", ""})


def follow(home: Path, page: PlatformPage, ask: Questions | None, *, is_started: bool) -> None:
    """Say what becomes of it: connected within seconds where a gateway runs, or how to start one."""
    if not control.is_running(home):
        if not (is_started or (ask is not None and ask.yes("Start the gateway now?", default=True))):
            say(f"  The gateway is not running. Start it: {command_name()} gateway run")
            where = _link(page) or page.name or page.manifest.title
            lines = [f"  Then write to it: {where}"]
            if page.dm_policy is DmPolicy.PAIRING and not _lists_somebody(page):
                lines.append(f"  It answers with a code: {command_name()} pairing approve {page.manifest.id} CODE")
            say("\n".join(lines))
            return
        from hermes.hosting import lifecycle

        outcome = lifecycle.start(home, command_name())
        say(outcome.text.partition("\n")[0] if not outcome.exit_code else outcome.text)
    try:
        if _wait_connected(home, page):
            let_in_first_person(home, page, ask)
    except GatewayError as error:
        say(f"! Written, but the gateway cannot be asked from here: {error}")


def _wait_connected(home: Path, page: PlatformPage) -> bool:
    """Until the account that was just written is connected, or is known not to be."""
    name = str(AccountKey(page.manifest.id, page.account))
    # From here on it goes by what was written: an account with a new login is not connected by the old one's word.
    control.call(home, "config.reload")
    state = _until(lambda: _state_of(home, name), CONNECT_SECONDS)
    if state is None:
        say(f"! {name} is not connected yet. Look: {command_name()} gateway status")
        return False
    if state["state"] == CONNECTED:
        say(f"✓ {name} is connected")
        return True
    say(f"✗ {name}: {state['state']}. {state['note']}")
    if state["cure"]:
        say(f"  → {state['cure']}")
    return False


def _state_of(home: Path, name: str) -> Mapping[str, Any] | None:
    accounts = control.call(home, "status")["platforms"]
    found: Mapping[str, Any] | None = next((account for account in accounts if account["account"] == name), None)
    if found is None or found["state"] in PASSING:
        return None
    return found


def _until(look: Callable[[], Any], seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return found


def _lists_somebody(page: PlatformPage) -> bool:
    """Whoever scanned a code, for one, needs no other."""
    return any(key.endswith(".allowed_users") for key in page.changes)


def _link(page: PlatformPage) -> str:
    return page.manifest.link.format(name=page.name.removeprefix("@")) if page.manifest.link and page.name else ""


def let_in_first_person(home: Path, page: PlatformPage, ask: Questions | None) -> None:
    """Whoever sets it up is let in here and now; everybody later by a code."""
    platform = page.manifest.id
    is_settled = page.dm_policy is not DmPolicy.PAIRING or _lists_somebody(page)
    if not is_settled and ask is not None:
        decided = control.call(home, "pairing.list", {"platform": platform})["decided"]
        is_settled = any(pairing["state"] == "approved" for pairing in decided)
    if is_settled or ask is None:
        where = _link(page)
        say(f"  Write to it: {where}" if where else f"  Write to it on {page.manifest.title}.")
        return
    ask.say(f"\nNow say hello to it from your phone: {_link(page) or page.name}")
    ask.say("Waiting for your first message … (Ctrl+C: later)")
    try:
        if _until(lambda: next(iter(_waiting(home, platform)), None), KNOCK_SECONDS) is None:
            ask.say(f"Nobody wrote. Later: {command_name()} pairing list")
            return
        knocking = _with_code_of_phone(home, platform, ask)
        if knocking is None:
            ask.say(f"Nobody was approved. To see who waits: {command_name()} pairing list")
            return
        person = f"{knocking['name'] or 'Somebody'} ({platform} {knocking['user']})"
        answer = control.call(home, "pairing.approve", {"platform": platform, "code": knocking["code"]})
        owner = ", and is the owner here" if answer["is_first_owner"] else ""
        ask.say(f"✓ {person} may talk now{owner}.")
    except KeyboardInterrupt:
        ask.say(f"\nLater, then: {command_name()} pairing list shows who wrote, with the code.")
    except GatewayError as error:
        ask.say(f"✗ {error}")


def _with_code_of_phone(home: Path, platform: str, ask: Questions) -> Mapping[str, Any] | None:
    """Ask for the code on the phone, and return its request; None after some wrong codes.

    No code or name is shown here first: a stranger may write before the owner, under any name.
    """
    ask.say("Somebody wrote. To prove that it was you, type the code in the bot's answer.")
    for _ in range(CODE_TRIES):
        typed = ask.line("Code on your phone (Enter: later)")
        if not typed:
            return None
        found = next((request for request in _waiting(home, platform) if is_same(request["code"], typed)), None)
        if found is not None:
            return found
        ask.say("  No request has this code. Read it again, or write once more for a new one.")
    return None


def _waiting(home: Path, platform: str) -> list[Mapping[str, Any]]:
    waiting: list[Mapping[str, Any]] = control.call(home, "pairing.list", {"platform": platform})["waiting"]
    return waiting

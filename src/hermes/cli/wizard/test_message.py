"""``hermes gateway test``: check accounts, send a test message, ask the model."""

from __future__ import annotations

import secrets
import time
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import command_name
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.keys import LOCAL, AccountKey, Target
from hermes.hosting.control import client as control
from hermes.hosting.terminal import err, out, out_json
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.config import Config
    from hermes.core.manifest import Manifest

USAGE_ERROR = 2
MODEL = "model"
DELIVERY_SECONDS = 30.0
TEXT = "✓ Test message from Hermes: this chat can be reached."


@dataclass(slots=True)
class TestReport:
    """What was found, line by line; ``code`` is the exit code so far."""

    account: str
    lines: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    code: int = 0

    def good(self, text: str, **facts: Any) -> None:
        self.lines.append(f"✓ {text}")
        self.facts |= facts

    def bad(self, text: str, cure: str = "", *, code: int = 1, **facts: Any) -> None:
        self.lines.append(f"✗ {text}")
        self.lines += [f"  → {cure}"] * bool(cure)
        self.code = self.code or code
        self.facts |= facts


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    names = [args.platform] if args.platform else ready_accounts(load_config(home).config)
    if args.to and not args.platform:
        err(tr("✗ --to needs the account that sends: name it before --to."))
        return USAGE_ERROR
    reports = [TestReport(name) for name in names]
    for report in reports:
        _examine(home, report.account, args.to, report)
    if not args.no_model and not any(report.code == USAGE_ERROR and not report.facts for report in reports):
        reports.append(ask_model(home))
    code = next((report.code for report in reports if report.code), 0)
    if args.as_json:
        out_json(_to_dict(reports, is_one=bool(args.platform)))
        return code
    lines = [line for report in reports for line in report.lines]
    if not names:
        lines.insert(0, f"! No chat platform is set up. → {command_name()} gateway setup")
    (err if code else out)(tr("\n".join(lines)))
    return code


def _to_dict(reports: list[TestReport], *, is_one: bool) -> dict[str, Any]:
    accounts = [
        {"account": report.account, "ok": not report.code, **report.facts}
        for report in reports
        if report.account != MODEL
    ]
    model = next(({"ok": not probe.code, **probe.facts} for probe in reports if probe.account == MODEL), None)
    value = accounts[0] if is_one else {"ok": not any(report.code for report in reports), "accounts": accounts}
    if is_one:
        value = {**value, "ok": not any(report.code for report in reports)}
    return value if model is None else {**value, "model": model}


def ready_accounts(config: Config) -> list[str]:
    """Every account that somebody set up, without the terminal's own."""
    return [
        str(AccountKey(platform, name))
        for platform, accounts in config.platforms.items()
        for name, account in accounts.items()
        if platform != LOCAL and account.is_mentioned and account.is_ready and account.enabled
    ]


def ask_model(home: Path) -> TestReport:
    """Ask the model in use for one small answer: a platform that works is of no use without."""
    import asyncio

    from hermes.cli.agent.model import tried

    loaded = load_config(home)
    model, report = loaded.config.model, TestReport(MODEL)
    result = asyncio.run(tried(home, loaded, model.provider, model.default))
    label = f"{model.provider} / {model.default}"
    facts = {"provider": model.provider, "model": model.default, "seconds": result.get("seconds", 0.0)}
    if result["ok"]:
        report.good(f"{label} answered a test call in {result['seconds']} s", **facts)
    else:
        text = f"{label}: the {result['failed']}. {result['text']}"
        report.bad(text, result["advice"], failed=result["failed"], why=result["text"], **facts)
    return report


def _examine(home: Path, name: str, to: str, report: TestReport) -> None:
    from hermes.services.adapters.registry import find_platforms

    key = AccountKey.parse(name)
    found = find_platforms()
    manifest = found.manifests.get(key.platform)
    config: Config = load_config(home).config
    account = config.account(key.platform, key.account)
    if manifest is None or manifest.always_on or account is None:
        known = ", ".join(sorted(config.platforms.keys() - {LOCAL}))
        why = found.broken.get(key.platform, f"There is no platform {name!r}. Known: {known}.")
        report.bad(why, code=USAGE_ERROR)
        return
    if not account.is_ready:
        report.bad(f"{key} is not set up.", f"{command_name()} gateway setup {key.platform}")
        return
    if not _describe(manifest, config, key, report):
        return
    is_live = _connection(home, key, report)
    if report.code:
        return
    chat = to or account.home_channel
    if not chat:
        cure = f"/sethome in a chat there, or {command_name()} gateway test {key} --to CHAT"
        report.bad("No message was sent: there is no home channel.", cure, code=USAGE_ERROR, sent=False)
        return
    prefix = f"{key}:"
    target = Target.parse(chat) if chat.startswith(prefix) else Target(key.platform, chat, account=key.account)
    if is_live:
        _send_live(home, target, report)
    else:
        _send_alone(manifest, config, target, report)


def _describe(manifest: Manifest, config: Config, key: AccountKey, report: TestReport) -> bool:
    from hermes.cli.support.account_probe import describe

    tried = describe(manifest, config, key.account, {})
    if tried.failure:
        report.bad(" ".join(tried.failure.split()), tried.cure, failed="account")
        return False
    named = f"{key} is {tried.name}" if tried.name else f"{key} can be reached"
    report.good(f"{named}, answered in {tried.seconds:.1f} s", name=tried.name, seconds=round(tried.seconds, 3))
    return True


def _connection(home: Path, key: AccountKey, report: TestReport) -> bool:
    """Whether the gateway's own connection can be used. A trouble of it is told."""
    if not control.is_running(home):
        report.lines.append("! The gateway is not running, so nobody listens; the test message is sent without it.")
        report.facts |= {"state": "not running"}
        return False
    accounts = control.call(home, "status")["platforms"]
    found = next((account for account in accounts if account["account"] == str(key)), None)
    if found is None or found["state"] != "connected":
        state, note = (found["state"], found["note"]) if found else ("not started", "")
        cure = (found["cure"] if found else "") or f"{command_name()} logs --component {key.platform}"
        report.bad(f"The gateway is not connected: {state}. {note}".rstrip(), cure, failed="connection", state=state)
        return False
    age = found["last_frame_age"] or 0.0
    report.good(f"The gateway is connected, last frame {age:.0f} s ago", state=found["state"])
    return True


def _send_live(home: Path, target: Target, report: TestReport) -> None:
    """The way every answer goes: outbox, adapter, platform."""
    asked = {"target": str(target), "text": TEXT, "key": secrets.token_hex(12), "wait_seconds": DELIVERY_SECONDS}
    began = time.monotonic()
    try:
        letters = control.call(home, "send", asked, DELIVERY_SECONDS + 5.0)["letters"]
    except GatewayError as error:
        report.bad(str(error), failed="message", target=str(target))
        return
    seconds = time.monotonic() - began
    bad = next((letter for letter in letters if letter["state"] != "sent"), None)
    if bad is None:
        _arrived(target, seconds, report)
        return
    reason = bad["reason"] or f"it is {bad['state']}"
    cure = f"{command_name()} trace {bad['id']}"
    report.bad(f"The message to {target} did not arrive: {reason}", cure, failed="message", target=str(target))


def _send_alone(manifest: Manifest, config: Config, target: Target, report: TestReport) -> None:
    from hermes.cli.support.account_probe import deliver

    try:
        seconds = deliver(manifest, config, target, TEXT)
    except GatewayError as error:
        report.bad(f"The message to {target} did not arrive: {error}", failed="message", target=str(target))
        return
    _arrived(target, seconds, report)


def _arrived(target: Target, seconds: float, report: TestReport) -> None:
    report.good(f"A test message is in {target}, {seconds:.1f} s there and back", sent=True, target=str(target))

"""``hermes weixin login``: sign in with a QR code in this terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.screen import say
from hermes.core.keys import MAIN

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes weixin login                              show a QR code; scan it with WeChat on the phone
  hermes weixin login --account family             sign in to another account
"""

VERBS = {"login": "sign in: scan a QR code with the phone"}

PLATFORM = "weixin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import account_name, add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES, without_json=VERBS)
    added["login"].add_argument(
        "--account", default=MAIN, type=account_name, help="name of another account on this platform"
    )
    added["login"].add_argument("--start", action="store_true", help="start the gateway if it is not running")


def run(args: argparse.Namespace) -> int:
    from hermes.cli.wizard.qr_login import run_and_report

    refuse_foreign(home_folder())
    return run_and_report(lambda done: _login(args.account, done, is_started=args.start))


def _login(account: str, done: list[str], *, is_started: bool) -> int:
    """``done`` is told what is written, for whoever leaves after that."""
    from hermes.cli.support.prompts import at_terminal
    from hermes.cli.wizard.page import PlatformPage
    from hermes.cli.wizard.platform import write
    from hermes.cli.wizard.qr_login import sign_in
    from hermes.cli.wizard.start import follow
    from hermes.core.people.access import DmPolicy
    from hermes.services.adapters.registry import find_platforms
    from hermes.services.adapters.sign_in import changes_of

    home = home_folder()
    loaded = load_config(home)
    manifest = find_platforms().manifests[PLATFORM]
    ask = at_terminal()
    signed = sign_in(manifest, loaded.config, account, ask)
    changes = changes_of(signed, loaded.config, manifest, account)
    say(f"✓ Signed in as {signed.values.get('account_id') or 'before'}")
    write(home, loaded, changes)
    done.append(manifest.title)
    present = loaded.config.account(PLATFORM, account)
    policy = present.access.dm_policy if present is not None else DmPolicy.PAIRING
    follow(home, PlatformPage(manifest, account, changes, "", policy), ask, is_started=is_started)
    return 0

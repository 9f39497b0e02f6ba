"""``hermes whatsapp``: install the bridge, link a phone, say who may talk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.prompts import Choice
from hermes.cli.support.screen import say
from hermes.core.errors import ConfigError
from hermes.core.keys import MAIN

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes.cli.support.prompts import Questions
    from hermes.config import AccountConfig
    from hermes.core.manifest import Manifest

EXAMPLES = """\
  hermes whatsapp                        ask, show a QR code, exit when the phone is linked
  hermes whatsapp --mode self-chat       your own number; chat with yourself
  hermes whatsapp --mode bot --allow 15551234567,4915112345678
                                         a separate number, and the numbers that may write to it
  hermes whatsapp --code 15551234567     show a code to type on that phone, instead of a QR code
  hermes whatsapp login --account work   link another account
  hermes whatsapp install                only install the bridge
"""

VERBS = {
    "login": "link a phone (the default)",
    "install": "only install the bridge (needs Node.js and npm)",
}

PLATFORM = "whatsapp"
SELF_CHAT, BOT = "self-chat", "bot"

MODES = (
    Choice(SELF_CHAT, "Your own", "you talk to it in the chat with yourself (recommended)"),
    Choice(BOT, "One of its own", "a second number that people write to"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import account_name, add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES, without_json=VERBS)
    login = added["login"]
    login.add_argument(
        "--mode", choices=(SELF_CHAT, BOT), default="", help="your own number, or a separate one for the bot"
    )
    login.add_argument(
        "--allow", default="", metavar="NUMBERS", help="numbers that may write to the bot, separated by commas"
    )
    login.add_argument("--code", default="", metavar="NUMBER", help="link with a code typed on this phone")
    login.add_argument("--account", default=MAIN, type=account_name, help="name of another account on this platform")
    login.add_argument("--start", action="store_true", help="start the gateway if it is not running")


def run(args: argparse.Namespace) -> int:
    from hermes.cli.wizard.qr_login import run_and_report

    refuse_foreign(home_folder())
    return run_and_report(lambda done: _install() if args.verb == "install" else _login(args, done))


def _install() -> int:
    from hermes.cli.wizard.qr_login import prepare
    from hermes.services.adapters.registry import find_platforms

    prepare(find_platforms().manifests[PLATFORM], load_config(home_folder()).config)
    return 0


def _login(args: argparse.Namespace, done: list[str]) -> int:
    """``done`` is told what is written, for whoever leaves after that."""
    from hermes.cli.support.prompts import at_terminal
    from hermes.cli.wizard.page import PlatformPage
    from hermes.cli.wizard.platform import write
    from hermes.cli.wizard.qr_login import lapsed, sign_in
    from hermes.cli.wizard.start import follow
    from hermes.core.people.access import DmPolicy
    from hermes.services.adapters.registry import find_platforms
    from hermes.services.adapters.sign_in import changes_of

    home, ask = home_folder(), at_terminal()
    loaded = load_config(home)
    manifest, account = find_platforms().manifests[PLATFORM], args.account
    present = loaded.config.account(PLATFORM, account)
    if not _is_wanted(present, ask, lambda: lapsed(manifest, loaded.config, account)):
        return 0
    now = str(present.values.get("mode") or SELF_CHAT) if present is not None else SELF_CHAT
    mode = args.mode or (ask.one("Whose number will it use?", MODES, now) if ask is not None else now)
    numbers = _numbers(manifest, args.allow) if args.allow else _ask_numbers(manifest, mode, present, ask)
    signed = sign_in(manifest, loaded.config, account, ask, {"mode": mode, "pair_with": args.code})
    say(f"✓ Linked as {'+' * signed.owner.isdigit()}{signed.owner}")
    if mode == SELF_CHAT and numbers and signed.owner not in numbers:
        say(f"! That is not {', '.join(numbers)}. The account that is linked may write.")
    changes = changes_of(signed, loaded.config, manifest, account)
    listed = present.access.allowed_users if present is not None else frozenset()
    prefix = f"platforms.{PLATFORM}" + (f".accounts.{account}" if account != MAIN else "")
    # In the chat with oneself only the linked account may talk: another number was mistyped.
    named = (*numbers, signed.owner) if mode == BOT else (signed.owner,)
    own = {"mode": mode, "allowed_users": ",".join(sorted({*listed, *named}))}
    changes |= {f"{prefix}.{key}": value for key, value in own.items()}
    write(home, loaded, changes)
    done.append(manifest.title)
    policy = present.access.dm_policy if present is not None else DmPolicy.PAIRING
    follow(home, PlatformPage(manifest, account, changes, "", policy), ask, is_started=args.start)
    if mode == SELF_CHAT:
        say("  That is the chat with yourself: WhatsApp, New chat, your own name at the top.")
    return 0


def _is_wanted(present: AccountConfig | None, ask: Questions | None, lapsed: Callable[[], str]) -> bool:
    """Whether somebody who has a link wants another: asked only while the one they have counts."""
    if ask is None or present is None or not present.values.get("linked_at"):
        return True
    if ended := lapsed():
        ask.say(f"! {ended}")
        return True
    return ask.yes("It is linked already. Link it again? The present link is kept as a backup.", default=False)


def _ask_numbers(
    manifest: Manifest, mode: str, present: AccountConfig | None, ask: Questions | None
) -> tuple[str, ...]:
    if ask is None:
        return ()
    known = sorted(present.access.allowed_users) if present is not None else []
    listed = ",".join(known)
    if mode == SELF_CHAT:
        listed = listed if len(known) == 1 else ""  # which of several is one's own is not known
        question = "Your phone number, with its country code (empty: whichever is linked)"
    else:
        question = "Numbers that may write to it, commas between them (empty: by pairing code)"
    while True:
        try:
            return _numbers(manifest, ask.line(question, listed))
        except ConfigError as error:
            ask.say(f"  {error}")


def _numbers(manifest: Manifest, typed: str) -> tuple[str, ...]:
    """Raises ConfigError for what is no number."""
    numbers = tuple(manifest.tidy_id(each) for each in typed.split(",") if each.strip())
    for number in numbers:
        if not number.isdigit() and not number.endswith("@lid"):
            raise ConfigError(f"{number!r} is no phone number. Write it with its country code, such as 15551234567.")
    return numbers

"""Parse the names people and the agent use for message targets.

``origin``, ``local``, ``all``, a platform (its home channel), ``platform[@account]:chat[:thread]``,
``platform[@account]:#name``, or several of these with commas between them.
"""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.keys import AccountKey, Target

LOCAL = Target("local", "cli")
"""The conversation that `hermes` opens in a terminal of this machine."""
NAMED = "#"
"""What the chat of a target begins with when it is named and not yet found: ``slack:#alerts``."""


def recipients(text: str, *, origin: Target | None, homes: Mapping[AccountKey, str]) -> list[Target]:
    """Return every target that is named, each once, in their order. ``homes`` are the accounts there are and their home
    channels ('' where none is set). ValueError says what is wrong in a sentence for whoever wrote it.
    """
    found: list[Target] = []
    for word in (part.strip() for part in text.split(",")):
        found += [target for target in _named(word, origin, homes) if target not in found]
    return found


def _named(word: str, origin: Target | None, homes: Mapping[AccountKey, str]) -> list[Target]:
    match word:
        case "":
            raise ValueError("There is an empty place in the list of targets.")
        case "origin":
            if origin is None:
                raise ValueError("There is no chat to send back to here. Name one, for example telegram:42.")
            return [origin]
        case "local":
            return [LOCAL]
        case "all":
            targets = [_home(account, chat) for account, chat in homes.items() if chat]
            if not targets:
                raise ValueError("No account has a home channel yet, so 'all' reaches nobody.")
            return targets
    account = AccountKey.parse(word.partition(":")[0])
    if account not in homes:
        known = ", ".join(sorted(str(account) for account in homes)) or "none"
        raise ValueError(f"There is no account {str(account)!r}. Known: {known}.")
    if ":" in word:
        return [Target.parse(word)]
    if not homes[account]:
        raise ValueError(
            f"{account} has no home channel yet. Name a chat: {account}:<chat>, or write /sethome in a chat there."
        )
    return [_home(account, homes[account])]


def _home(account: AccountKey, chat: str) -> Target:
    if chat.startswith(f"{account}:"):  # some write the whole target into the setting
        return Target.parse(chat)
    return Target(account.platform, chat, account=account.account)

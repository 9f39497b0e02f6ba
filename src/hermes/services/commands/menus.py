"""Set the platforms' command menus: at each connect, and when they change.

Everybody sees what users may say; whoever looks after the gateway sees the rest in their direct chat too. A menu is a
convenience: what it does not show can be typed, and what somebody may not say is refused whatever it shows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from hermes.config import Config
from hermes.core.errors import PlatformError, StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.languages import pick
from hermes.core.keys import AccountKey, ChatKind, SessionKey, Target
from hermes.core.ports import Adapter, CommandHint, SetsCommands
from hermes.core.roles import PersonRole
from hermes.services.commands.about import grouped
from hermes.services.commands.base import SlashCommand
from hermes.store import people
from hermes.store.db import Database

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0
"""How long somebody who was made an admin may wait for the longer menu."""

Menu = tuple[CommandHint, ...]


class Menus:
    def __init__(
        self,
        db: Database,
        config: Callable[[], Config],
        adapter_of: Callable[[Target], Adapter | None],
        commands: Mapping[str, SlashCommand],
    ) -> None:
        self._db = db
        self._config = config
        self._adapter_of = adapter_of
        self._commands = dict(commands)
        self._connected: set[AccountKey] = set()
        self._shown: dict[tuple[AccountKey, str], Menu] = {}
        self._due = asyncio.Event()

    async def connected(self, account: str) -> None:
        self._connected.add(AccountKey.parse(account))
        self._due.set()

    def changed(self) -> None:
        """The configuration is another one."""
        self._due.set()

    async def run(self) -> None:
        """Keep the menus as they should be until cancelled."""
        while True:
            self._due.clear()
            for account in sorted(self._connected, key=str):
                try:
                    await self._keep(account)
                except StoreIsDownError as error:
                    log.warning("Store is down", extra={"while": "setting command menus", "reason": str(error)})
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _keep(self, account: AccountKey) -> None:
        adapter: object = self._adapter_of(Target(account.platform, "", account=account.account))
        if not isinstance(adapter, SetsCommands):
            return
        wanted = {"": self.menu(PersonRole.USER)}
        for admins in await self._db.read(people.chats_of_admins, account):
            key = SessionKey.parse(admins.lane)
            if key.kind is ChatKind.DM and AccountKey(key.platform, key.account) == account:
                wanted[key.chat] = self.menu(PersonRole(admins.role), admins.language)
        before = {chat for known, chat in self._shown if known == account}
        for chat in before - wanted.keys():  # no admin any more
            wanted[chat] = wanted[""]
        for chat, menu in wanted.items():
            await self._show(account, adapter, chat, menu)

    async def _show(self, account: AccountKey, adapter: SetsCommands, chat: str, menu: Menu) -> None:
        if self._shown.get((account, chat)) == menu:
            return
        try:
            await adapter.set_commands(menu, chat=chat)
        except PlatformError as error:
            # It is tried again with the next look.
            log.info("Command menu not set", extra={"account": str(account), "chat": chat, "reason": str(error)})
        else:
            self._shown[account, chat] = menu

    def menu(self, role: PersonRole, language: str = "") -> Menu:
        """What somebody of this role sees, in the order of /help."""
        words = words_of(pick(self._config().language, language))
        return tuple(
            CommandHint(known.name, words.summary(known.name, known.summary))
            for _, found in grouped(self._commands, role)
            for known in found
        )

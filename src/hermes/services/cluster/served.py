"""Tell which targets this node sends to: those of the accounts it has, and of the terminals that are open here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hermes.core.keys import LOCAL, Target
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.cluster.node import ClusterNode


class Terminals(Protocol):
    """The terminals that are open at this node. The hub of the local platform is one."""

    def has_listener(self, chat: str) -> bool: ...
    def chats(self) -> Iterable[str]: ...


class ServedTargets:
    def __init__(self, node: ClusterNode, supervisor: Supervisor, terminals: Terminals) -> None:
        self._node = node
        self._supervisor = supervisor
        self._terminals = terminals

    def has(self, target: str) -> bool:
        try:
            parsed = Target.parse(target)
        except ValueError:  # a damaged row, which is told so when it is its turn
            return True
        if parsed.platform == LOCAL:
            return self._terminals.has_listener(parsed.chat)
        return self._supervisor.has(parsed)

    def prefixes(self) -> list[str]:
        """How the keys of those targets begin."""
        accounts = [f"{key}:" for key in self._supervisor.here() if key.platform != LOCAL]
        return [*accounts, *(str(Target(LOCAL, chat)) for chat in self._terminals.chats())]

    def wake_elsewhere(self, target: str) -> None:
        self._node.wakeups.send("target", target)

    def may_act(self) -> bool:
        return self._node.holds_lease()

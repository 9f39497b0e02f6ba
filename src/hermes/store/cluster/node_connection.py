"""Keep a node's own connection: it beats, looks at the other nodes, listens, and holds the node's lock.

One thread with one connection beside the pool, so that a busy pool cannot delay a beat. What the thread sees is posted
to the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
from collections.abc import Callable

import psycopg
from psycopg import sql

from hermes.core.errors import ConfigError, StoreIsDownError
from hermes.store.cluster import nodes
from hermes.store.cluster.nodes import BEAT_SECONDS, LEASE_SECONDS, ClusterView, NewNode
from hermes.store.cluster.notifications import CHANNEL, parse
from hermes.store.db import Trouble
from hermes.store.postgres import HERE, OWNER_LOCK, Connection, PostgresDatabase, cut, tx_of

log = logging.getLogger(__name__)

NODE_LOCK = OWNER_LOCK + 2
MARGIN_SECONDS = 0.7
"""So much sooner than by the database's clock a node takes its lease for ended."""
SILENCE_SECONDS = 1.5
RETRY_SECONDS = 0.3
CONNECT_SECONDS = 2.0
LATE_BEAT_SECONDS = 1.5
ECHO_SECONDS = 2.0
LISTEN = "LISTEN {}"
_NEWS_TO_LOOK_AT = frozenset({"node", "duty"})

NO_NOTIFICATIONS = (
    "Notifications of PostgreSQL do not arrive (HERMES_DATABASE_URL may lead to a transaction pooler): nodes find work "
    "by looking once a second, so what one node gives to another takes up to a second longer. Nothing is lost."
)


class NodeConnection:
    """``on_view`` gets each look at the cluster with how far the database's clock is ahead of ``system_time``;
    ``on_news`` kind and key of a notification; ``on_gone`` is called once, when other nodes have buried this one."""

    def __init__(
        self,
        database: PostgresDatabase,
        node: NewNode,
        *,
        monotonic: Callable[[], float],
        system_time: Callable[[], float],
        on_view: Callable[[ClusterView, float], None],
        on_news: Callable[[str, str], None],
        on_gone: Callable[[], None],
    ) -> None:
        self.lease_until = -math.inf
        """By ``monotonic``: from then on other nodes may do what this node did."""
        self._database = database
        self._node = node
        self._monotonic = monotonic
        self._system_time = system_time
        self._on_view = on_view
        self._on_news = on_news
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._asked_at = math.inf
        self._down = ""
        self._failures = 0
        self._echo_asked_at = math.inf
        self._has_echo = False

    async def join(self, seconds: float) -> None:
        """Add the node and begin to beat. Raises ConfigError while a gateway of before clusters holds the database."""
        deadline = self._loop.time() + seconds
        while True:
            try:
                await asyncio.to_thread(self._open)
                break
            except ConfigError:
                if self._loop.time() >= deadline:
                    raise
                await asyncio.sleep(0.1)
        self._thread = threading.Thread(target=self._keep, name="store-node", daemon=True)
        self._thread.start()

    def cut_if_silent(self) -> None:
        """Called on the event loop: end a beat that gets no answer, so that another connection is tried."""
        if self._monotonic() - self._asked_at >= SILENCE_SECONDS:
            log.warning("PostgreSQL is silent", extra={"while": "beating"})
            cut(self._connection)

    async def close(self, seconds: float) -> None:
        self._ending.set()
        cut(self._connection)  # it may be listening
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, seconds)
        if self._connection is not None and not (self._thread is not None and self._thread.is_alive()):
            self._drop()

    # The thread

    def _keep(self) -> None:
        while not self._ending.is_set():
            try:
                connection = self._connection or self._open()
                view = self._beat(connection)
                if view is None:
                    self._post(self._on_gone)
                    return
                self._failures = 0
                if self._down:
                    self._database._tell(Trouble("back", f"PostgreSQL works again. (It was: {self._down})"))
                    self._down = ""
                self._listen(connection, self._next_look(view))
            except (psycopg.Error, StoreIsDownError, ConfigError) as error:
                self._drop()
                if self._ending.is_set():
                    return
                self._tell_down(error)
                self._ending.wait(RETRY_SECONDS)

    def _open(self) -> Connection:
        with contextlib.ExitStack() as on_failure:
            connection = self._database.connect(CONNECT_SECONDS)
            on_failure.callback(connection.close)
            connection.autocommit = True
            self._connection = connection  # so that it can be cut
            limit = f"{round(SILENCE_SECONDS * 1000)}ms"
            connection.execute(
                "SELECT set_config('idle_session_timeout', '0', false), set_config('statement_timeout', %s, false),"
                " set_config('lock_timeout', %s, false)",
                [limit, limit],
            )
            self._take_locks(connection)
            asked = self._monotonic()
            if nodes.join(tx_of(connection), self._node):
                self.lease_until = asked + LEASE_SECONDS - MARGIN_SECONDS
            found = connection.execute("SELECT %s || '.' || current_schema()", [CHANNEL]).fetchone()
            channel = str(found[0]) if found else CHANNEL
            connection.execute(sql.SQL(LISTEN).format(sql.Identifier(channel)))
            connection.execute("SELECT pg_notify(%s, %s)", [channel, f"echo {self._node.id}"])
            self._echo_asked_at = self._monotonic()
            on_failure.pop_all()
        return connection

    def _take_locks(self, connection: Connection) -> None:
        taken = connection.execute(f"SELECT pg_try_advisory_lock_shared({OWNER_LOCK}, {HERE})".encode()).fetchone()
        if not taken or not taken[0]:
            raise ConfigError(
                "A gateway of an older Hermes works on this PostgreSQL database; it cannot share it.\n"
                "  Update that one, or give this one a database (or schema) of its own in HERMES_DATABASE_URL."
            )
        connection.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [NODE_LOCK, self._node.id])

    def _beat(self, connection: Connection) -> ClusterView | None:
        """Extend the lease and look around; None when this node is gone."""
        tx = tx_of(connection)
        asked, began = self._monotonic(), self._system_time()
        self._asked_at = asked
        try:
            time = nodes.beat(tx, self._node.id)
            if time is None:
                return None
            self.lease_until = asked + LEASE_SECONDS - MARGIN_SECONDS
            ahead = time - (began + self._system_time()) / 2
            view = nodes.look(tx)
        finally:
            self._asked_at = math.inf
        self._post(self._on_view, view, ahead)
        return view

    def _next_look(self, view: ClusterView) -> float:
        """Seconds until the next beat: sooner where a node is late, so that the end of its lease is not missed."""
        late = [
            node.lease_until - view.now
            for node in view.nodes
            if node.id != self._node.id and node.beat_at < view.now - LATE_BEAT_SECONDS and node.lease_until > view.now
        ]
        return min([BEAT_SECONDS, *(left + 0.01 for left in late)])

    def _listen(self, connection: Connection, seconds: float) -> None:
        """Pass on notifications until the next beat, or until one that asks for a look."""
        for note in connection.notifies(timeout=seconds):
            kind, key = parse(note.payload)
            if kind == "echo":
                self._has_echo = self._has_echo or key == self._node.id
                continue
            self._post(self._on_news, kind, key)
            if kind in _NEWS_TO_LOOK_AT:
                return
        if not self._has_echo and self._monotonic() - self._echo_asked_at > ECHO_SECONDS:
            self._echo_asked_at = math.inf
            self._database._tell(Trouble("notifications", NO_NOTIFICATIONS))

    def _tell_down(self, error: Exception) -> None:
        self._failures += 1
        if not self._down and (self._failures > 1 or isinstance(error, StoreIsDownError)):
            is_told = isinstance(error, StoreIsDownError | ConfigError)
            self._down = str(error) if is_told else f"PostgreSQL is not available: {str(error).splitlines()[0]}"
            self._database._tell(Trouble("down", self._down))

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):  # it is of no use any more
                connection.close()

    def _post(self, call: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the node ends
            self._loop.call_soon_threadsafe(call, *args)

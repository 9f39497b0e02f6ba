"""Recover the file in a thread of its own, while its writer waits."""

from __future__ import annotations

import logging
import sqlite3
import threading

from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.core.i18n.failures import sentence
from hermes.store.sqlite.connection import SqliteConnection

log = logging.getLogger(__name__)


class Healing:
    """A recovery under way in a thread of its own, so that the writer can say how long it will wait."""

    def __init__(self, file: SqliteConnection, *, is_only_touched: bool) -> None:
        self.error: GatewayError | sqlite3.Error | OSError | None = None
        self._file = file
        self.is_only_touched = is_only_touched
        self._thread = threading.Thread(target=self._run, name="store-recovery", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._file.heal(is_only_touched=self.is_only_touched)
        except (GatewayError, sqlite3.Error, OSError) as error:
            self.error = error
        except Exception as error:
            # Whatever damage led us to, the writer must hear of it: it would go on without a file, and end.
            log.exception("Recovery broke", extra={"path": str(self._file.path)})
            self.error = StoreIsDownError(
                f"{self._file.name} could not be recovered: {sentence(str(error))} The log has the details."
            )

    def join(self, seconds: float | None) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

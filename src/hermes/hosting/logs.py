"""The log: every event one line in logs/gateway.log, warnings in logs/errors.log too, the journal by stdout.

Whoever logs only puts a record into a queue; a thread formats, hides secrets and writes, so that no
disk ever stops the event loop.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import time
from contextlib import AbstractContextManager, suppress
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from types import TracebackType
from typing import Self, TextIO

from hermes.core.printable import printable
from hermes.core.secret import Redactor
from hermes.hosting import log_format, paths, terminal

MOST_WAITING = 10_000
FILE_BYTES = 10_000_000
KEPT_FILES = 5

_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """``2026-05-01T12:00:00.000+02:00 WARNING Disconnected platform=qq account=main reason="…"``, secrets hidden."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
        text = log_format.line(record.created, record.levelname, record.getMessage(), fields)
        if record.exc_info:
            text += "\n" + _indented(self.formatException(record.exc_info))
        if record.stack_info:
            text += "\n" + _indented(record.stack_info)
        return self._redactor(text)


class CleanFormatter(logging.Formatter):
    """For a command that keeps no log: what a library warns of goes to stderr, cleaned as all else there."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class LogFile(RotatingFileHandler):
    """One file, readable by its owner alone. Moved or deleted by somebody else, it is opened anew."""

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=FILE_BYTES, backupCount=KEPT_FILES, encoding="utf-8", errors="replace")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.fchmod(descriptor, 0o600)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding="utf-8", errors="replace", line_buffering=True)

    def emit(self, record: logging.LogRecord) -> None:
        stream = self.stream
        if stream is not None and self._was_moved(stream):
            stream.close()
            self.stream = self._open()
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """A full disk loses lines, and nothing else; stderr still has what is worth shouting."""
        if record.levelno >= logging.ERROR:
            with suppress(OSError, ValueError):
                terminal.err(self.format(record))

    def _was_moved(self, stream: TextIOWrapper) -> bool:
        try:
            on_disk, ours = os.stat(self.baseFilename), os.fstat(stream.fileno())
        except (OSError, ValueError):
            return True
        return (on_disk.st_dev, on_disk.st_ino) != (ours.st_dev, ours.st_ino)


class Console(logging.StreamHandler[TextIO]):
    """stdout for the journal; a closed pipe is nobody's trouble."""

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        return


class _LogQueue(QueueHandler):
    """Takes the words out of a record at once and leaves all else to the thread."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        record.msg, record.args = record.getMessage(), None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        with suppress(queue.Full):  # the disk hangs: losing lines is better than losing the gateway
            self.queue.put_nowait(record)


class Logs(AbstractContextManager["Logs"]):
    """The log of this process, from ``open`` until the end of the ``with`` block."""

    def __init__(self, handlers: list[logging.Handler], level: int) -> None:
        waiting: queue.Queue[logging.LogRecord] = queue.Queue(MOST_WAITING)
        self._waiting = waiting
        self._handler = _LogQueue(waiting)
        self._listener = QueueListener(waiting, *handlers, respect_handler_level=True)
        self._handlers = handlers
        self._level = level

    @classmethod
    def open(cls, home: str, redactor: Redactor, *, console: bool, level: int = logging.INFO) -> Self:
        """``console`` adds stdout. A log folder that cannot be written leaves the console, and a line that says so."""
        trouble: OSError | None = None
        handlers: list[logging.Handler] = []
        try:
            handlers = _files(home)
        except OSError as error:
            trouble = error
        if console or trouble:
            handlers.append(Console(sys.stdout))
        for handler in handlers:
            handler.setFormatter(LineFormatter(redactor))
        logs = cls(handlers, level)
        logs._start()
        if trouble:
            logging.getLogger(__name__).error("Log files cannot be written", extra={"reason": str(trouble)})
        return logs

    def flush(self) -> None:
        """Wait until everything logged so far is written; at most a second."""
        deadline = time.monotonic() + 1.0
        while self._waiting.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.001)

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        root = logging.getLogger()
        root.removeHandler(self._handler)
        self._listener.stop()
        for handler in self._handlers:
            handler.close()

    def _start(self) -> None:
        root = logging.getLogger()
        root.setLevel(self._level)
        root.addHandler(self._handler)
        # Every request of every client would be a line; what matters of them is logged by us.
        logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
        self._listener.start()


def _files(home: str) -> list[logging.Handler]:
    paths.make_private(os.path.dirname(paths.log(home)))
    everything, errors = LogFile(paths.log(home)), LogFile(paths.error_log(home))
    errors.setLevel(logging.WARNING)
    return [everything, errors]


def _indented(text: str) -> str:
    return "\n".join(f"  {row}" for row in printable(text).split("\n"))

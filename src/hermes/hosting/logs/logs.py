"""Write gateway.log, errors.log and the journal in a thread that hides secrets: no disk stops the event loop."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from types import TracebackType
from typing import Self, TextIO

from hermes.core.printable import printable
from hermes.core.secret import Redactor
from hermes.hosting import paths, terminal
from hermes.hosting.logs import format as log_format

MAX_WAITING = 10_000
FILE_BYTES = 10_000_000
ROTATED_FILES = 5

log = logging.getLogger(__name__)

_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """``2026-05-01T12:00:00.000+02:00 WARNING Disconnected platform=qq account=main reason="…"``, secrets hidden."""

    is_json = False
    """Of all formatters at once: each event as one JSON object instead."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
        if self.is_json:
            trace = self.formatException(record.exc_info) if record.exc_info else record.stack_info or ""
            # Before it is written as JSON, which escapes letters that a secret may have.
            clean = {name: self._redactor(value) if isinstance(value, str) else value for name, value in fields.items()}
            words = self._redactor(record.getMessage())
            text = log_format.json_line(record.created, record.levelname, words, clean, self._redactor(trace))
            return self._redactor(text)
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
    """A private log file, reopened when moved or deleted. ``trouble`` stands until a line could be written again."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path, maxBytes=FILE_BYTES, backupCount=ROTATED_FILES, encoding="utf-8", errors="replace", delay=True
        )
        self.trouble = ""
        self._lost = 0
        self._has_failed = False

    def _open(self) -> TextIOWrapper:
        paths.make_private(os.path.dirname(self.baseFilename))
        descriptor = os.open(self.baseFilename, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                os.write(descriptor, b"\n")  # a full disk cut the last line short
        except OSError:
            os.close(descriptor)
            raise
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding="utf-8", errors="replace", line_buffering=True)

    def try_open(self) -> None:
        """Open the file now rather than with the first line. Raises OSError; the next line tries again."""
        try:
            self.stream = self._open()
        except OSError as error:
            self.trouble = self._trouble_of(error)
            raise

    def _trouble_of(self, error: OSError) -> str:
        return f"{os.path.basename(self.baseFilename)} cannot be written ({error.strerror})"

    def emit(self, record: logging.LogRecord) -> None:
        self._has_failed = False
        try:
            stream = self.stream
            if stream is not None and self._was_moved(stream):
                stream.close()
                self.stream = self._open()
            if self.stream is None:
                self.stream = self._open()
            self._tell_lost()
        except OSError:
            self.handleError(record)
            return
        super().emit(record)
        if not self._has_failed:
            self.trouble = ""

    def works_again(self) -> bool:
        """Whether lines can be written; one that could not be is tried again, by telling how many were lost."""
        if not self.trouble:
            return True
        self.acquire()
        try:
            if self.stream is None:
                self.stream = self._open()
            self._tell_lost()
        except OSError as error:
            self.trouble = self._trouble_of(error)
            return False
        else:
            self.trouble = ""
            return True
        finally:
            self.release()

    def _tell_lost(self) -> None:
        """Write how many lines are missing here. Raises OSError."""
        if self._lost and self.stream is not None:
            fields = {"lines": self._lost, "reason": self.trouble}
            self.stream.write(log_format.line(time.time(), "WARNING", "Log lines lost", fields) + "\n")
            self._lost = 0

    def doRollover(self) -> None:  # noqa: N802 - the name is logging's
        """Start a new file; one that cannot be renamed grows on, which loses no line."""
        try:
            super().doRollover()
        except OSError:
            self.stream = self._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """A full disk loses lines, and nothing else; stderr still has what is worth shouting."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)  # a record that cannot be formatted: a mistake of ours
            return
        self._has_failed = True
        self._lost += 1
        self.trouble = self._trouble_of(error)
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError, ValueError):  # what it still held is lost with the rest of the line
                stream.close()
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

    def __init__(self, files: list[LogFile], others: list[logging.Handler], level: int) -> None:
        waiting: queue.Queue[logging.LogRecord] = queue.Queue(MAX_WAITING)
        self._waiting = waiting
        self._handler = _LogQueue(waiting)
        self._files = files
        self._handlers = [*files, *others]
        self._listener = QueueListener(waiting, *self._handlers, respect_handler_level=True)
        self._level = level
        self._hooks = (threading.excepthook, sys.unraisablehook)

    @classmethod
    def open(cls, home: str, redactor: Redactor, *, console: bool, level: int = logging.INFO) -> Self:
        """``console`` adds stdout. Files that cannot be written leave the console, and a line that says so."""
        trouble: OSError | None = None
        files = [LogFile(paths.log(home)), LogFile(paths.error_log(home))]
        files[1].setLevel(logging.WARNING)
        for file in files:
            try:
                file.try_open()
            except OSError as error:
                trouble = error
        others: list[logging.Handler] = [Console(sys.stdout)] if console or trouble else []
        for handler in (*files, *others):
            handler.setFormatter(LineFormatter(redactor))
        logs = cls(files, others, level)
        logs._start()
        if trouble:
            log.error("Log files cannot be written", extra={"reason": str(trouble)})
        return logs

    def trouble(self) -> str:
        """Why lines are lost just now; '' when none are. Tries to write, and blocks as long as that takes."""
        return next((file.trouble for file in self._files if not file.works_again()), "")

    def flush(self) -> None:
        """Wait until everything logged so far is written; at most a second."""
        deadline = time.monotonic() + 1.0
        while self._waiting.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.001)

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        threading.excepthook, sys.unraisablehook = self._hooks
        logging.captureWarnings(False)
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
        # What Python itself would print to stderr, in a form of its own.
        logging.captureWarnings(True)
        threading.excepthook = _thread_failed
        sys.unraisablehook = _could_not_be_raised
        self._listener.start()


def set_format(name: str) -> None:
    """``text`` or ``json``, for all that is logged from now on."""
    LineFormatter.is_json = name == "json"


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is not SystemExit and failed.exc_value is not None:
        log.error(
            "Thread failed", extra={"who": failed.thread.name if failed.thread else ""}, exc_info=failed.exc_value
        )


def _could_not_be_raised(failed: sys.UnraisableHookArgs) -> None:
    message = failed.err_msg or "an exception that nobody could be told of"
    log.error("Exception ignored", extra={"reason": message}, exc_info=failed.exc_value)


def _indented(text: str) -> str:
    return "\n".join(f"  {row}" for row in printable(text).split("\n"))

"""Run pytest on several processes that are forked after one collection.

    python scripts/_workers.py COUNT [pytest options] PATH…

Importing and collecting all tests costs as much as hundreds of them; every worker of pytest-xdist does it anew. Here
one process collects, then forks. A worker takes one file of tests after the other and sends every report to the first
process, which prints and records it as if it had run the test itself. The test of a worker that died has failed, and
another worker takes over what that one had left.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest
from _pytest._io import TerminalWriter

RUN_ID = "PYTEST_RUN_ID"  # the same in all workers of a run

Numbers = Sequence[int]  # of tests, in the order of their collection

# Files that take half a minute or more by the last lines of ./scripts/test. They begin first, in this order, so that
# no worker is left alone with one of them at the end.
LONG = (
    "tests/e2e/test_process_faults.py",
    "tests/e2e/test_bench_short.py",
    "tests/redteam/test_doors.py",
    "tests/e2e/test_faults_of_the_home.py",
    "tests/e2e/test_update.py",
    "tests/redteam/test_sandboxes.py",
    "tests/redteam/test_roles.py",
    "tests/e2e/test_what_is_claimed.py",
    "tests/e2e/test_chat_plain.py",
    "tests/clients/test_python_clients.py",
    "tests/contract/store/test_copy.py",
    "tests/integration/test_qq_day.py",
    "tests/integration/api/test_fuzz.py",
    "tests/chaos/test_cluster.py",
    "tests/e2e/test_scripts.py",
    "tests/e2e/test_platforms_of_others.py",
    "tests/integration/test_isolation_by_every_tool.py",
    "tests/redteam/test_injected_text.py",
    "tests/redteam/test_commands.py",
    "tests/e2e/test_commands_of_tools.py",
    "tests/unit/store/sqlite/test_recovery.py",
    "tests/integration/api/test_retries.py",
    "tests/unit/test_sentences.py",
)


@dataclass(slots=True)
class Worker:
    pid: int
    line: Connection
    begun: list[int] = field(default_factory=list)  # numbers it was given, without those that ended


class Workers:
    """The plugin of the first process."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._made = 0
        self._left: deque[Numbers] = deque()
        self._workers: dict[Connection, Worker] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[Any]:
        """Make no garbage collections while nothing but what stays is made."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest itself says what is wrong
        os.environ[RUN_ID] = str(os.getpid())
        name_of = [item.nodeid.partition("::")[0] for item in session.items]
        files = [(name, [*numbers]) for name, numbers in groupby(range(len(name_of)), key=name_of.__getitem__)]
        files.sort(key=lambda file: LONG.index(file[0]) if file[0] in LONG else len(LONG))
        self._left.extend(numbers for _, numbers in files)
        gc.collect()
        gc.freeze()  # what was collected stays: no collection of a worker looks at it again
        try:
            for _ in range(min(self._count, len(self._left))):
                self._add_worker(session)
            while self._workers:
                for line in wait([*self._workers]):
                    self._listen(session, self._workers[line])  # type: ignore[index]
        finally:
            for worker in self._workers.values():
                os.kill(worker.pid, 15)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return True

    def _add_worker(self, session: pytest.Session) -> None:
        self._made += 1
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        if pid := os.fork():
            theirs.close()
            self._workers[ours] = Worker(pid, ours)
            return
        code = 1
        try:
            for line in (ours, *self._workers):
                line.close()
            run_worker(session, theirs, self._made)
            code = 0
        except BaseException:  # noqa: BLE001 - the first process goes on, whatever happened here
            traceback.print_exc()
        finally:
            os._exit(code)

    def _listen(self, session: pytest.Session, worker: Worker) -> None:
        hook = session.config.hook
        try:
            kind, said = worker.line.recv()
        except EOFError:
            self._bury(session, worker)
            return
        if kind == "over":
            self._bury(session, worker)
        elif kind == "more":
            has_to_end = bool(session.shouldfail or session.shouldstop)
            numbers = self._left.popleft() if self._left and not has_to_end else ()
            worker.begun.extend(numbers)
            worker.line.send(numbers)
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=session.config, data=said)
            hook.pytest_runtest_logreport(report=report)
        else:
            item = session.items[said]
            if kind == "end":
                worker.begun.remove(said)
            log = hook.pytest_runtest_logfinish if kind == "end" else hook.pytest_runtest_logstart
            log(nodeid=item.nodeid, location=item.location)

    def _bury(self, session: pytest.Session, worker: Worker) -> None:
        del self._workers[worker.line]
        worker.line.close()
        _, status = os.waitpid(worker.pid, 0)
        if worker.begun:
            item = session.items[worker.begun[0]]
            why = f"The process of this test ended with {os.waitstatus_to_exitcode(status)}."
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
            session.config.hook.pytest_runtest_logreport(report=report)
            if rest := worker.begun[1:]:
                self._left.appendleft(rest)
            if self._left:
                self._add_worker(session)
        elif status:
            raise RuntimeError("A worker ended before it ran any test; its traceback is above.")


def run_worker(session: pytest.Session, line: Connection, number: int) -> None:
    """Run file after file until there is none left."""
    become_worker(session, line, number)

    def ask() -> Numbers:
        line.send(("more", None))
        return line.recv()  # type: ignore[no-any-return]

    numbers = ask()
    while numbers:
        after: Numbers = ()
        for one, follower in zip_longest(numbers, numbers[1:]):
            if follower is None:  # fixtures for more than one file stay if another file comes
                after = ask()
                follower = after[0] if after else None
            line.send(("begin", one))
            next_item = None if follower is None else session.items[follower]
            session.config.hook.pytest_runtest_protocol(item=session.items[one], nextitem=next_item)
            line.send(("end", one))
        numbers = after
    line.send(("over", None))


def become_worker(session: pytest.Session, line: Connection, number: int) -> None:
    """Take no part in what the first process prints and records."""
    config = session.config
    plugins = config.pluginmanager
    capture: Any = plugins.get_plugin("capturemanager")
    capture.stop_global_capturing()  # the file behind it is everybody's
    writer = TerminalWriter(os.fdopen(os.dup(2), "w"))
    capture.start_global_capturing()
    capture.suspend_global_capture()
    for name in ("terminalreporter", "lfplugin", "nfplugin", "stepwiseplugin"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    plugins.register(Terminal(writer), "terminalreporter")
    for plugin in [each for each in plugins.get_plugins() if type(each).__name__ == "LogXML"]:
        plugins.unregister(plugin)
    plugins.register(Reports(config, line))
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / f"w{number}"
    factory._basetemp.mkdir(mode=0o700)


class Terminal:
    """What others write to the terminal, such as pytest-timeout; the progress is the first process's."""

    def __init__(self, writer: TerminalWriter) -> None:
        self._tw = writer


class Reports:
    """The plugin of a worker. Every test has its CPU time as a property, with that of the processes it waited for."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config = config
        self._line = line
        self._cpu_before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._cpu_before = sum(os.times()[:4])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown":
            item.user_properties.append(("cpu", round(sum(os.times()[:4]) - self._cpu_before, 2)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(("report", said))


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[2:], plugins=[Workers(int(sys.argv[1]))]))

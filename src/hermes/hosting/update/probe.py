"""Try a new version on a copy of the home before it is taken up: migrations, a start, one answer."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes.core.i18n.failures import sentence
from hermes.hosting.update.installation import StagedVersion, UpdateFailedError, run_command
from hermes.hosting.update.scripted_model import scripted_model
from hermes.store.backup import contents, restore
from hermes.store.home import make_home
from hermes.store.private_files import write_private
from hermes.store.sqlite.schema_repair import count_rows

START_SECONDS = 60.0
ANSWER_SECONDS = 60.0
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.1
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # to this machine, whatever proxy is set
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "LD_LIBRARY_PATH")
_WORK = ("inbox", "outbox", "turns", "tool_calls", "approvals", "lanes", "targets", "jobs", "webhooks")
"""What is under way. The copy must not go on with it: the present gateway does."""


def probe(staged: StagedVersion, backup: Path, folder: Path) -> None:
    """Run the new code on what a backup holds; raises UpdateFailedError. Nothing outside the folder is touched."""
    home = folder / "home"
    make_home(home)
    restore.decide(home, restore.prepare(home, backup).names, time.time())
    restore.finish(home)
    environ = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    environ |= {**staged.environ, "HERMES_HOME": str(home), "HOME": str(folder)}
    rehearse(staged, home, environ)
    _forget_work(home)
    key, answer = secrets.token_hex(16), f"The new version answers. {secrets.token_hex(4)}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with scripted_model(answer) as url:
        _write_settings(home, url, port)
        with _running(staged, folder, {**environ, "API_SERVER_KEY": key}) as worker:
            _wait_for_health(worker, port, folder)
            reply = _ask(port, key)
    if answer not in reply:
        raise UpdateFailedError(f"The new version answered a test question wrongly: {reply[:200]}")


def rehearse(staged: StagedVersion, home: Path, environ: Mapping[str, str]) -> None:
    """Have the new code migrate the copied stores; no table may lose rows."""
    before = {name: count_rows(home / name) for name in contents.STORES if (home / name).exists()}
    command = [str(staged.python), "-P", "-m", "hermes.hosting.update.rehearsal", str(home)]
    after = json.loads(run_command(command, "Migrating a copy of the stores", {**environ}))
    for name, tables in before.items():
        for table, rows in tables.items():
            left = after.get(name, {}).get(table)
            if left is not None and left < rows and table != "meta":
                raise UpdateFailedError(f"The new version would lose rows of {name}: {table} has {left} of {rows}.")


def _forget_work(home: Path) -> None:
    """Delete from the copy what would be gone on with: nothing may be sent or run twice."""
    for suffix in (".head", ".pages"):  # page checksums of before
        (home / f"state.db{suffix}").unlink(missing_ok=True)
    if not (home / "state.db").exists():
        return
    with contextlib.closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in tables & set(_WORK):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a literal


def _write_settings(home: Path, url: str, port: int) -> None:
    """Settings of the copy: no platform, no jobs, one model. JSON is YAML, too."""
    settings: dict[str, Any] = {
        "model": {"default": "probe/probe", "provider": "probe"},
        "providers": {"probe": {"base_url": url, "api_key": "none", "api_mode": "chat_completions"}},
        "api": {"port": port, "host": "127.0.0.1"},
        "cron": {"enabled": False},
        "webhooks": {"enabled": False},
        "kanban": {"dispatch": False},
        "backup": {"enabled": False},
    }
    write_private(home / "config.yaml", json.dumps(settings))
    (home / "gateway.json").unlink(missing_ok=True)


@contextlib.contextmanager
def _running(staged: StagedVersion, folder: Path, environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker of the new code. It ends with us, however we end: we hold the pipe that it watches."""
    theirs, ours = os.pipe()
    command = [str(staged.python), "-P", "-m", "hermes", "gateway", "worker", "--parent-fd", str(theirs)]
    with (folder / "probe.log").open("wb") as output:
        worker = subprocess.Popen(
            command,
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[theirs],
        )
    os.close(theirs)
    try:
        yield worker
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        os.close(ours)


def _wait_for_health(worker: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if worker.poll() is not None:
            lines = (folder / "probe.log").read_text("utf-8", "replace").strip().splitlines()[-4:]
            reason = "\n".join(f"    {line}" for line in lines)
            raise UpdateFailedError(f"The new version does not start (exit code {worker.returncode}):\n{reason}")
        with (
            contextlib.suppress(OSError, ValueError),  # not yet
            _HTTP.open(f"http://127.0.0.1:{port}/health", timeout=5) as answer,
        ):
            if json.load(answer).get("status") == "ok":
                return
        time.sleep(LOOK_SECONDS)
    raise UpdateFailedError(f"The new version was not ready after {START_SECONDS:.0f} s.")


def _ask(port: int, key: str) -> str:
    body = {"model": "probe", "messages": [{"role": "user", "content": "Do you answer?"}]}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    try:
        with _HTTP.open(request, timeout=ANSWER_SECONDS) as answer:
            return str(json.load(answer)["choices"][0]["message"]["content"])
    except urllib.error.HTTPError as error:
        raise UpdateFailedError(
            f"The new version refused a question: {error.read()[:300].decode('utf-8', 'replace')}"
        ) from error
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UpdateFailedError(f"The new version gave no answer: {sentence(str(error))}") from error

"""A home, a scripted model, and the real `hermes` command on them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hermes.cli.main import main
from tests.fakes.model import ThreadedModel

ROOT = Path(__file__).parents[2]
COMMAND_SECONDS = 25.0


class Terminal:
    """``with Terminal(folder) as terminal: terminal.hermes("-z", "hello")``. The gateway is stopped at the end."""

    def __init__(self, folder: Path, *model_options: str, **environ: str) -> None:
        self.home = folder / "hermes-home"
        self._folder = folder
        self._model_options = model_options
        self._environ = environ
        self._has_gateway = False

    def __enter__(self) -> Self:
        self._model = ThreadedModel(*self._model_options)
        self.model_url = self._model.__enter__().fake.url
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._has_gateway:
            self.hermes("gateway", "stop")
        self._model.__exit__()

    @property
    def environ(self) -> dict[str, str]:
        own = {
            "HERMES_HOME": str(self.home),
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENAI_BASE_URL": self.model_url,
            "API_SERVER_PORT": "0",
            **self._environ,
        }
        return {**_clean(), **own}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "hermes", *words]

    def hermes(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self._folder,
            env=self.environ,
            input=typed,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def here(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """The same in this process: saves the start of an interpreter where that is not what is tested."""
        out, err = io.StringIO(), io.StringIO()
        with patched_environ(self.environ), redirect_stdout(out), redirect_stderr(err), _stdin(typed):
            code = main(list(words))
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    def told(self, *words: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self.here(*words, "--json").stdout)

    def start_gateway(self) -> None:
        done = self.hermes("gateway", "start")
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        self._has_gateway = True


@contextmanager
def patched_environ(environ: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _stdin(typed: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.StringIO(typed)
    try:
        yield
    finally:
        sys.stdin = before


def _clean() -> dict[str, str]:
    """The environment without whatever this machine's owner has set up for models and platforms."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HERMES_", "OPENAI_", "OPENROUTER_", "TELEGRAM_", "GATEWAY_", "API_SERVER_"))
    }
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONUNBUFFERED": "1"}

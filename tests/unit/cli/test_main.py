"""The door of the CLI."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes import __version__
from hermes.cli.commands import COMMANDS, GROUPS
from hermes.cli.main import guarded, main
from hermes.core.errors import ConfigError, ForeignHomeError, GatewayError, StoreIsDownError

SOURCES = Path(__file__).resolve().parents[3] / "src"


def python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": str(SOURCES)} | more
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, env=environ
    )


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hermes {__version__}\n"


def test_version_imports_nothing_it_does_not_need() -> None:
    heavy = {
        "argparse",
        "asyncio",
        "aiohttp",
        "sqlite3",
        "ssl",
        "logging",
        "typing_extensions",
        "rich",
        "yaml",
        "orjson",
    }
    ask = f"print(sorted({heavy!r} & set(sys.modules)))"
    done = python(f"import sys; from hermes.cli.main import main; main(['--version']); {ask}")
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_version_costs_under_a_tenth_of_a_second_of_cpu() -> None:
    def cost() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        python("from hermes.cli.main import main; main(['--version'])")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cost() for _ in range(3)) < 0.1


def test_every_command_stands_in_one_group_of_the_help() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "supervisor" not in shown


def test_an_unknown_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stauts"]) == 2
    assert "hermes status`?" in capsys.readouterr().err


def test_an_unknown_verb_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "statu"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("✗ There is no command 'gateway statu'.")
    assert "hermes gateway status`?" in told


def test_a_command_that_needs_a_verb_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api-key"]) == 2
    assert "hermes api-key show|create|list|revoke" in capsys.readouterr().err


def test_a_command_with_one_verb_needs_no_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slack", "manifest"]) == 0
    in_full = capsys.readouterr().out
    assert main(["slack"]) == 0
    assert capsys.readouterr().out == in_full


def test_what_an_error_says_to_type_can_be_typed_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(SOURCES.parent)

    def act() -> int:
        raise GatewayError("I know nobody 'ana'. Look: hermes people list")

    assert guarded(act) == 1
    assert capsys.readouterr().err == "✗ I know nobody 'ana'. Look: ./scripts/hermes people list\n"


def test_a_word_like_nothing_else_is_answered_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    assert "--help` lists what there is" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, code",
    [
        (ConfigError("telegram has no token."), 78),
        (ForeignHomeError("That home is not ours."), 78),
        (StoreIsDownError("The disk is full."), 1),
        (GatewayError("Something else."), 1),
    ],
)
def test_what_went_wrong_is_one_line_and_an_exit_code(
    error: GatewayError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(raising(error)) == code
    assert capsys.readouterr().err.removeprefix("✗ ") == f"{error}\n"


def test_what_the_machine_refuses_is_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(raising(OSError(errno.ENOSPC, "No space left on device", "/home/me/.hermes/.env"))) == 1
    assert capsys.readouterr().err == "✗ /home/me/.hermes/.env: No space left on device.\n"


@pytest.mark.parametrize("typed", [["dashboard", "list"], ["webhook", "test", "hello"], ["send", "telegram", "hi"]])
def test_a_command_that_needs_a_gateway_exits_with_3_where_none_runs(
    typed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    assert main(typed) == 3
    assert "The gateway is not running. Start it: " in capsys.readouterr().err


def test_a_missing_package_is_named_with_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    missing = ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp.web")
    assert guarded(raising(missing)) == 1
    told = capsys.readouterr().err
    assert told.startswith("✗ The Python package aiohttp is missing → ")
    assert ".venv" in told or "-m pip install" in told


def test_a_closed_output_ends_a_command_without_a_traceback(tmp_path: Path) -> None:
    environ = os.environ | {"PYTHONPATH": str(SOURCES), "HERMES_HOME": str(tmp_path)}
    for typed in ("version", "version --json", "--version", "--help", "status --help"):
        script = f"exec {sys.executable} -m hermes {typed} >&-"
        done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, check=False, timeout=60, env=environ)
        assert (done.returncode, done.stderr) == (0, b""), typed


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ModuleNotFoundError):
        guarded(raising(ModuleNotFoundError("No module named 'hermes.cli.nothing'", name="hermes.cli.nothing")))
    with pytest.raises(OSError, match="Bad file descriptor"):
        guarded(raising(OSError(errno.EBADF, "Bad file descriptor")))


@pytest.mark.parametrize(
    "typed, words",
    [(["config"], "Nothing is set"), (["config", "--all"], "agent.busy_mode"), (["sessions"], "Nothing is stored")],
)
def test_a_command_without_its_verb_shows_what_there_is(
    typed: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(typed)
    said = capsys.readouterr()
    assert words in said.out + said.err


def raising(error: BaseException) -> Callable[[], int]:
    def act() -> int:
        raise error

    return act


def test_a_reader_that_left_is_no_error() -> None:
    environ = os.environ | {"PYTHONPATH": str(SOURCES)}
    script = f'"{sys.executable}" -m hermes --help | true; "{sys.executable}" -m hermes version | head -c 1'
    done = subprocess.run(
        ["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=60, env=environ
    )
    assert done.stderr == ""


def test_ctrl_c_leaves_without_a_traceback() -> None:
    code = """
import signal, sys
from hermes.cli.main import main

class Terminal:
    def read(self):  # waits for a prompt on stdin, and Ctrl+C is typed instead
        signal.raise_signal(signal.SIGINT)

sys.stdin = Terminal()
sys.exit(main(["-z", "-"]))
"""
    environ = os.environ | {"PYTHONPATH": str(SOURCES)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.wait(timeout=60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_terminal_without_our_characters_gets_question_marks() -> None:
    done = python("import sys; from hermes.cli.main import main; sys.exit(main(['xyzzy']))", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr[:2]) == (2, "? ")


def test_every_command_tells_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("version", "completion"):
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert left.value.code == 0
        assert "examples:" in capsys.readouterr().out

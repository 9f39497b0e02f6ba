"""What ./scripts/test does with a test that failed: it is tried once more, alone, and named in the last lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)  # each starts pytest up to twice, with two workers
ROOT = Path(__file__).parents[2]
RUN = """
import os, sys
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none of them is needed, and some take a second to import
sys.path.insert(0, {scripts!r})
import _checks
told = _checks.Told()
is_green = _checks.run_suite(_checks.Suite("these", ({folder!r},), workers=2), told)
print("green" if is_green else "red", len(told.second_tries), *told.second_tries)
"""
FAILS_ONCE = """
from pathlib import Path

def test_unlucky():
    tried = Path(__file__).with_name("tried")
    is_first = not tried.exists()
    tried.touch()
    assert not is_first, "the machine stood still"
"""
FAILS = "import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_wrong(n):\n    assert n < 0\n"
PASSES = "def test_right():\n    pass\n"


@pytest.mark.parametrize(
    "text,verdict",
    [
        (FAILS_ONCE, "green 1 test_these::test_unlucky: AssertionError: the machine stood still"),
        (PASSES, "green 0"),
        (FAILS.format(count=1), "red 1 test_these::test_wrong[0]: assert 0 < 0"),
        (FAILS.format(count=11), "red 0"),
    ],
    ids=["failed once", "never failed", "failed twice", "too many to be bad luck"],
)
def test_a_few_that_failed_are_tried_again_alone_and_told(tmp_path: Path, text: str, verdict: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_these.py").write_text(text)
    script = RUN.format(scripts=str(ROOT / "scripts"), folder=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert run.stdout.splitlines()[-1] == verdict, run.stdout + run.stderr


def test_skips_are_counted_by_their_reason_in_the_last_lines(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    skips = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_it(n):\n    pytest.skip('no git here')\n"
    (tmp_path / "test_these.py").write_text(skips)
    script = RUN.format(scripts=str(ROOT / "scripts"), folder=str(tmp_path)) + "print(dict(told.skips))\n"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert run.stdout.splitlines()[-1] == "{'no git here': 3}", run.stdout + run.stderr


def test_only_the_files_of_failed_tests_are_collected_again(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_these.py").write_text(FAILS_ONCE)
    counts = "from pathlib import Path\nwith Path(__file__).with_name('read').open('a') as file:\n    file.write('x')\n"
    (tmp_path / "test_others.py").write_text(counts + PASSES)
    script = RUN.format(scripts=str(ROOT / "scripts"), folder=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert run.stdout.splitlines()[-1].startswith("green 1 "), run.stdout + run.stderr
    assert (tmp_path / "read").read_text() == "x"


TABLES = """
import pytest

@pytest.fixture(params=["one store", "another"])
def store(request):
    return request.param

@pytest.mark.parametrize("word", "abcde")
def test_long(store, word):
    pass

@pytest.mark.parametrize("dialect", "abcd")
def test_short(dialect):
    pass
"""


def test_of_a_long_table_the_first_and_the_last_case_run_on_a_second_python(tmp_path: Path) -> None:
    (tmp_path / "test_tables.py").write_text(TABLES)
    command = [sys.executable, "-m", "pytest", "-q", "--co", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml")]
    run = subprocess.run(
        [*command, "--few-cases", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    found = [line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line]
    long = [f"test_long[{store}-{word}]" for word in "ae" for store in ("one store", "another")]
    assert sorted(found) == sorted([*long, *(f"test_short[{dialect}]" for dialect in "abcd")]), run.stdout + run.stderr

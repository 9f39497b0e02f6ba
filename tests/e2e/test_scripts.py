"""The scripts on a machine that has Python and nothing else: one .venv, made once, mended when it broke.

Each clone here has one tiny pinned package of its own, in a folder that pip is pointed at, so nothing is fetched.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)  # each makes an environment with pip: seconds, and minutes on a busy machine
ROOT = Path(__file__).resolve().parents[2]


class Clone:
    """A fresh clone with an empty HOME."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        self.wheels = folder / "wheels"
        self.wheels.mkdir(parents=True)
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        (self.root / "src").symlink_to(ROOT / "src")
        (self.root / "requirements").mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HERMES_PYTHON": sys.executable,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_CONFIG_FILE": os.devnull,
        }

    def publish(self, version: str) -> None:
        """Offer this version of the package and pin it."""
        name = f"tinything-{version}"
        files = {
            "tinything.py": f"version = {version!r}\n",
            f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: tinything\nVersion: {version}\n",
            f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in files.items())
        with zipfile.ZipFile(self.wheels / f"{name}-py3-none-any.whl", "w") as wheel:
            for path, text in files.items():
                wheel.writestr(path, text)
            wheel.writestr(f"{name}.dist-info/RECORD", f"{record}{name}.dist-info/RECORD,,\n")
        self.pin(version)

    def pin(self, version: str) -> None:
        (self.root / "requirements" / "core.txt").write_text(f"# one package\ntinything=={version}\n")

    def start(self, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "scripts" / "hermes", "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environ | environ,
            cwd=self.wheels,
        )

    def run(self, **environ: str) -> tuple[int, str, str]:
        process = self.start(**environ)
        out, err = process.communicate(timeout=200)
        return process.returncode, out, err

    def installed(self) -> str:
        ask = [str(self.root / ".venv" / "bin" / "python"), "-c", "import tinything; print(tinything.version)"]
        return subprocess.run(ask, capture_output=True, text=True, check=False, timeout=60).stdout.strip()

    def package_file(self) -> Path:
        return next((self.root / ".venv" / "lib").glob("python*/site-packages/tinything.py"))


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Started for the first time, by two people at the same moment."""
    clone = Clone(tmp_path_factory.mktemp("fresh"))
    clone.publish("1.0")
    both = [clone.start(), clone.start()]
    said = [process.communicate(timeout=200) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert all(out.startswith("hermes ") for out, _ in said)
    assert sorted("Installing once: 1 packages" in err for _, err in said) == [False, True], said
    return clone


def test_two_first_starts_at_once_install_once_and_both_run(clone: Clone) -> None:
    assert clone.installed() == "1.0"


def test_a_second_start_says_nothing_and_adds_little(clone: Clone) -> None:
    python = str(clone.root / ".venv" / "bin" / "python")
    script = str(clone.root / "scripts" / "hermes")

    def seconds(*command: str) -> float:
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=clone.environ, timeout=60)
        assert done.stderr == ""
        return time.perf_counter() - started

    bare = min(seconds(python, "-P", "-m", "hermes", "--version") for _ in range(5))
    scripted = min(seconds(script, "--version") for _ in range(5))
    assert scripted - bare < 0.2


def test_new_pins_are_installed_by_the_next_start(clone: Clone) -> None:
    clone.publish("1.1")
    code, _, err = clone.run()
    assert (code, clone.installed()) == (0, "1.1"), err


def test_an_interrupted_install_is_mended_by_the_next_start(clone: Clone) -> None:
    # As a power cut in the middle leaves it: pip believes in the package, its file is half there, no stamp.
    clone.package_file().write_text("")
    (clone.root / ".venv" / "stamp-core").unlink()
    (clone.root / ".venv" / ".installing").touch()
    assert clone.installed() == ""
    code, _, err = clone.run()
    assert (code, clone.installed()) == (0, "1.1"), err


def test_an_install_that_cannot_reach_the_index_says_so_and_recovers(clone: Clone) -> None:
    clone.pin("2.0")
    code, out, err = clone.run(PIP_NO_INDEX="0", PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0")
    assert (code, out) == (1, "")
    assert "no way to the package index" in err
    assert "Traceback" not in err
    clone.publish("2.0")
    code, _, err = clone.run()
    assert (code, clone.installed()) == (0, "2.0"), err


def test_settings_of_pip_that_name_another_place_do_not_break_the_install(clone: Clone, tmp_path: Path) -> None:
    clone.publish("3.0")
    elsewhere = str(tmp_path / "elsewhere")
    config = tmp_path / "pip.conf"
    config.write_text(
        f"[global]\nuser = true\nroot = {elsewhere}\n[install]\ntarget = {elsewhere}\nprefix = {elsewhere}\n"
    )
    code, _, err = clone.run(PIP_CONFIG_FILE=str(config))
    assert (code, clone.installed()) == (0, "3.0"), err
    clone.publish("3.1")
    places = dict.fromkeys(("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"), elsewhere)
    code, _, err = clone.run(PIP_USER="1", **places)
    assert (code, clone.installed()) == (0, "3.1"), err
    assert not Path(elsewhere).exists()


def test_a_read_only_clone_that_was_never_installed_says_what_to_do(tmp_path: Path) -> None:
    bare = Clone(tmp_path)
    bare.publish("1.0")
    root = shlex.quote(str(bare.root))
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    read_only = f"mount --bind {root} {root} && mount -o remount,bind,ro {root}"
    if (
        shutil.which("unshare") is None
        or subprocess.run([*alone, read_only], capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine lets no ordinary user mount anything (user namespaces), or has no unshare and mount")
    done = subprocess.run(
        [*alone, f"{read_only} && {root}/scripts/hermes --version"],
        capture_output=True,
        text=True,
        check=False,
        env=bare.environ,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "is on a read-only file system, and its packages are not installed yet" in done.stderr
    assert f"cp -r {root} ~/hermes && ~/hermes/scripts/hermes" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_on_the_path_that_does_not_start_is_passed_over(clone: Clone, tmp_path: Path) -> None:
    clone.publish("4.0")  # so that a Python is looked for, and installs it
    shims = tmp_path / "shims"
    shims.mkdir()
    for name in ("python3.13", "python3.12", "python3.11", "python3.14"):  # as pyenv has them for versions not chosen
        (shims / name).write_text("#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
        (shims / name).chmod(0o755)
    (shims / "python3").symlink_to(sys.executable)
    code, out, err = clone.run(PATH=f"{shims}:/usr/bin:/bin", HERMES_PYTHON="")
    assert (code, out.startswith("hermes "), clone.installed()) == (0, True, "4.0"), err
    assert "pyenv" not in err


def test_tests_run_on_the_python_that_is_named_in_an_environment_of_its_own(tmp_path: Path) -> None:
    bare = Clone(tmp_path)
    bare.publish("1.0")
    (bare.root / "requirements" / "test.txt").write_text("")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / f"python{version}").symlink_to(sys.executable)
    command = [str(bare.root / "scripts" / "test"), "--python", version, "tests/unit"]
    environ = {**bare.environ, "PATH": f"{tools}:/usr/bin:/bin", "HERMES_PYTHON": "/no/such/python"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=200)
    assert "No module named pytest" in done.stderr  # its environment has the one package that is pinned here
    assert next((bare.root / f".venv-{version}" / "lib").glob(f"python{version}/site-packages/tinything.py")).is_file()
    assert not (bare.root / ".venv").exists()


def test_a_version_of_python_that_is_not_here_is_told(tmp_path: Path) -> None:
    bare = Clone(tmp_path)
    command = [str(bare.root / "scripts" / "test"), "--python", "3.99"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare.environ, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("✗ There is no Python 3.99 here")


def test_a_link_to_the_script_finds_its_clone(clone: Clone, tmp_path: Path) -> None:
    (tmp_path / "hermes").symlink_to(clone.root / "scripts" / "hermes")
    done = subprocess.run(
        [tmp_path / "hermes", "--version"], capture_output=True, text=True, check=True, env=clone.environ, timeout=10
    )
    assert done.stdout.startswith("hermes ")


def test_a_named_python_that_is_none_is_told_and_no_other_is_taken(tmp_path: Path) -> None:
    bare = Clone(tmp_path)
    bare.publish("1.0")
    code, out, err = bare.run(HERMES_PYTHON="/no/such/python3.12")
    assert (code, out) == (1, "")
    assert "HERMES_PYTHON=/no/such/python3.12 is no Python 3.11 or newer" in err


def test_without_a_new_enough_python_it_says_which_is_needed(tmp_path: Path) -> None:
    bare = Clone(tmp_path)
    bare.publish("1.0")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "cat", "dirname", "readlink"):
        (tools / name).symlink_to(str(shutil.which(name)))
    old = tools / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.8.2"\nexit 1\n')
    old.chmod(0o755)
    code, out, err = bare.run(PATH=str(tools), HERMES_PYTHON="")
    assert (code, out) == (1, "")
    assert "Hermes needs Python 3.11 or newer" in err

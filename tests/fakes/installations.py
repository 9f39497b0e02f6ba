"""Installations of Hermes of their own, a clone and one by pip, that can be offered new versions without a network."""

from __future__ import annotations

import hashlib
import marshal
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import venv
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from typing import Any

from hermes.hosting import heartbeat, locks, paths, processes
from hermes.hosting.control import client as control

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 240


class Installed:
    """A Hermes of its own, with a home and a gateway, that can be offered new versions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HERMES_HOME": str(self.home),
            "API_SERVER_PORT": str(port),
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        self.sources = folder / "sources"
        shutil.copytree(
            ROOT / "src" / "hermes", self.sources / "src" / "hermes", ignore=shutil.ignore_patterns("__pycache__")
        )
        _bring_bytecode(ROOT / "src" / "hermes", self.sources / "src" / "hermes")
        for name in ("scripts", "requirements"):
            shutil.copytree(ROOT / name, self.sources / name)
        self.python = sys.executable
        self.set_up()

    def set_up(self) -> None:
        raise NotImplementedError

    def publish(self, version: str) -> None:
        raise NotImplementedError

    def offer(self, version: str, change: Callable[[Path], object] = lambda _: None) -> None:
        """Publish the sources under this version, changed."""
        package = self.sources / "src" / "hermes"
        (package / "__init__.py").write_text(f'"""Hermes."""\n\n__version__ = "{version}"\n')
        change(package)
        self.publish(version)

    def hermes(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-P", "-m", "hermes", *words]
        return subprocess.run(
            command, env=self.environ, cwd=self.folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [self.python, "-P", "-m", "hermes", *words]
        return subprocess.Popen(
            command, env=self.environ, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def next_start(self) -> None:
        """Do what the next start of the installed command does first."""

    def is_whole(self, version: str) -> bool:
        """Tell whether every file is the one of this version."""
        raise NotImplementedError

    def run(self, *command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            command, env=self.environ, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        told: dict[str, Any] = control.call(self.home, "status", timeout=60)
        return told

    def worker(self) -> int:
        seen = heartbeat.read(paths.heartbeat(str(self.home)))
        return seen.pid if seen and seen.ready_at and processes.is_alive(seen.pid, "") else 0

    def end(self) -> None:
        if holder := locks.holder(paths.parent_lock(str(self.home))):
            processes.send_signal(holder.pid, holder.mark, signal.SIGKILL)
            processes.wait_until(lambda: not control.is_running(self.home), 20.0)


def _bring_bytecode(ours: Path, theirs: Path) -> None:
    """Give copied sources our bytecode, checked by content.

    Versions follow each other within a second, too fast for bytecode that goes by the time of its source: none is
    written, and that of the first version goes by the content, so that a start compiles only what has changed.
    """
    checked_hash = (0b11).to_bytes(4, "little")
    for source in theirs.rglob("*.py"):
        content = source.read_bytes()
        path = Path(cache_from_source(str(source)))
        path.parent.mkdir(exist_ok=True)
        compiled = _compiled(ours / source.relative_to(theirs)) or marshal.dumps(compile(content, str(source), "exec"))
        path.write_bytes(MAGIC_NUMBER + checked_hash + source_hash(content) + compiled)


def _compiled(source: Path) -> bytes:
    """Return the code of a source whose bytecode goes by its time and size, and is up to date; else nothing."""
    try:
        kept, seen = Path(cache_from_source(str(source))).read_bytes(), source.stat()
    except FileNotFoundError:
        return b""
    stamp = (0, int(seen.st_mtime) & 0xFFFFFFFF, seen.st_size & 0xFFFFFFFF)
    head = MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in stamp)
    return kept[16:] if kept[:16] == head else b""


class InstalledClone(Installed):
    def set_up(self) -> None:
        self.run("git", "init", "--quiet", "--initial-branch=main", str(self.sources))
        self.offer("0.1.0")
        self.clone = self.folder / "clone"
        self.run("git", "clone", "--quiet", str(self.sources), str(self.clone))
        # Its own .venv, as scripts/hermes makes it, with the packages of this one.
        prefix = self.clone / ".venv"
        venv.create(prefix, symlinks=True)
        self.python = str(prefix / "bin" / "python")
        site = next(prefix.glob("lib/python*/site-packages"))
        (site / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        (site / "hermes-clone.pth").write_text(f"{os.path.relpath(self.clone / 'src', site)}\n")
        shutil.copy(self.clone / "requirements" / "core.txt", prefix / "stamp-core")

    def next_start(self) -> None:
        script = f"root={self.clone}; . {self.clone}/scripts/_env.sh; marker=$root/.git/hermes-switching; "
        self.run("sh", "-euc", script + '[ ! -f "$marker" ] || finish_switch "$marker"')

    def is_whole(self, version: str) -> bool:
        changed = self.run("git", "status", "--porcelain", "--untracked-files=no", cwd=self.clone)
        return not changed and f'"{version}"' in self.run("git", "show", "HEAD:src/hermes/__init__.py", cwd=self.clone)

    def publish(self, version: str) -> None:
        self.run("git", "add", "--all", cwd=self.sources)
        self.run("git", "commit", "--quiet", "-m", f"Version {version}", cwd=self.sources)


class InstalledPackage(Installed):
    def set_up(self) -> None:
        self.wheels = self.folder / "wheels"
        self.wheels.mkdir()
        self.environ["PIP_FIND_LINKS"] = str(self.wheels)
        prefix = self.folder / "env"
        venv.create(prefix, symlinks=True)
        self.python = str(prefix / "bin" / "python")
        site = next(prefix.glob("lib/python*/site-packages"))
        (site / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # what Hermes needs, and pip
        self.offer("0.1.0")
        self.run(self.python, "-m", "pip", "install", "--quiet", "hermes-gateway")

    def is_whole(self, version: str) -> bool:
        shown = self.run(self.python, "-m", "pip", "show", "hermes-gateway")
        return f"Version: {version}\n" in shown and self.hermes("version").returncode == 0

    def publish(self, version: str) -> None:
        name = f"hermes_gateway-{version}"
        texts = {
            f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: hermes-gateway\nVersion: {version}\n",
            f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{name}.dist-info/entry_points.txt": "[console_scripts]\nhermes = hermes.cli.main:main\n",
        }
        record = []
        with zipfile.ZipFile(self.wheels / f"{name}-py3-none-any.whl", "w") as wheel:
            files = [path for path in (self.sources / "src").rglob("*") if path.is_file()]
            parts = {path.relative_to(self.sources / "src").as_posix(): path.read_bytes() for path in files}
            for path, content in {**parts, **{name: text.encode() for name, text in texts.items()}}.items():
                wheel.writestr(path, content)
                digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{path},sha256={digest},{len(content)}\n")
            wheel.writestr(f"{name}.dist-info/RECORD", "".join(record) + f"{name}.dist-info/RECORD,,\n")

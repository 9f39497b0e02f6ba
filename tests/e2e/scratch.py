"""A Python environment of a test's own, into which packages are really installed: ours lie behind it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.e2e.terminal import ROOT, Terminal

INSTALL_SECONDS = 90.0

# Whatever is imported by any process of this environment stands in the file that IMPORTS_SEEN names.
_WATCH = """
import os, sys
if seen := os.environ.get("IMPORTS_SEEN"):
    file = open(seen, "a", buffering=1)
    sys.addaudithook(lambda event, args: event == "import" and file.write(f"{args[0]}\\n"))
"""


class Scratch:
    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.python = folder / "bin" / "python"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
        ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(ROOT / "src")}
        (self.packages / "ours.pth").write_text("\n".join(sorted(ours)) + "\n")
        (self.packages / "scratch_watch.py").write_text(_WATCH)
        # Not by the name sitecustomize: Debian has one of its own, and only the first is imported.
        (self.packages / "watch.pth").write_text("import scratch_watch\n")

    def install(self, project: Path) -> None:
        """As `pip install` does, with what it builds by taken from ours and nothing from an index."""
        self._pip("install", "--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir", str(project))

    def uninstall(self, name: str) -> None:
        self._pip("uninstall", "--yes", name)

    def add_module(self, name: str, code: str, *, platform: str = "") -> None:
        """What an installation leaves behind, without one; ``platform``: it brings one, by its entry point."""
        (self.packages / f"{name}.py").write_text(code)
        if platform:
            info = self.packages / f"{name}-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text(f"[hermes.platforms]\n{platform} = {name}:MANIFEST\n")

    def _pip(self, *words: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


class ScratchTerminal(Terminal):
    """The real `hermes`, run by the Python of a scratch environment."""

    def __init__(self, folder: Path, scratch: Scratch, **environ: str) -> None:
        super().__init__(folder, **environ)
        self._python = str(scratch.python)

    def command(self, *words: str) -> list[str]:
        return [self._python, "-m", "hermes", *words]

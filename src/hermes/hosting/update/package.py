"""Update an installation by pip in a virtual environment: install into a linked copy, then exchange the two."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from hermes.hosting import build
from hermes.hosting.update.installation import (
    NewVersion,
    StagedVersion,
    UpdateFailedError,
    copy_environment,
    exchange,
    read_version,
    run_command,
    write_version,
)

DISTRIBUTION = "hermes-gateway"


class PackageInstallation:
    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self.work = prefix / ".hermes-update"

    def _pip(self, python: Path, *words: str, doing: str) -> str:
        quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
        return run_command([str(python), "-m", "pip", "install", *quiet, *words], doing)

    @property
    def _python(self) -> Path:
        return self._prefix / "bin" / "python"

    def present(self) -> NewVersion:
        version = build.installed().version
        return NewVersion(version, version)

    def look(self) -> NewVersion | None:
        words = ("--dry-run", "--report", "-", "--upgrade", "--no-deps", DISTRIBUTION)
        report = json.loads(self._pip(self._python, *words, doing="Asking the package index"))
        for found in report.get("install", []):
            if found["metadata"]["name"].lower().replace("_", "-") == DISTRIBUTION:
                version = str(found["metadata"]["version"])
                return NewVersion(version, version) if version != self.present().id else None
        return None

    def refuse_changes(self) -> None:
        """pip replaces what it installed; nobody is expected to edit that."""

    def stage(self, version: NewVersion) -> StagedVersion:
        self._adopt()
        for left in self.work.glob("new-*"):  # by updates that were killed
            shutil.rmtree(left, ignore_errors=True)
        new = self.work / f"new-{os.getpid()}"
        copy_environment(self._prefix, new)
        python = new / "bin" / "python"
        self._pip(python, "--upgrade", f"{DISTRIBUTION}=={version.id}", doing=f"Installing Hermes {version.id}")
        return StagedVersion(version, new, python, {"PYTHONPATH": ""})

    def switch(self, staged: StagedVersion) -> None:
        before = self.present()
        write_version(staged.folder, before)
        _copy_commands(staged.folder, self._prefix)
        shutil.rmtree(self.work / "previous", ignore_errors=True)
        exchange(staged.folder / "lib", self._prefix / "lib")
        os.rename(staged.folder, self.work / "previous")  # it holds the code from before now

    def previous(self) -> NewVersion | None:
        self._adopt()
        found = read_version(self.work / "previous")
        return found if found is not None and found.id != self.present().id else None

    def _adopt(self) -> None:
        """Finish a switch that was killed after its exchange: what was staged holds the code from before."""
        for folder in self.work.glob("new-*"):
            found = read_version(folder)
            if found is not None and found.id != self.present().id:
                shutil.rmtree(self.work / "previous", ignore_errors=True)
                os.rename(folder, self.work / "previous")

    def switch_back(self) -> None:
        target, before, kept = self.previous(), self.present(), self.work / "previous"
        if target is None:
            raise UpdateFailedError("There is no version to go back to: no update was made here.")
        if not (kept / "lib").is_dir():
            raise UpdateFailedError(f"The previous version is missing in {kept}.")
        exchange(kept / "lib", self._prefix / "lib")
        write_version(kept, before)


def _copy_commands(staged: Path, prefix: Path) -> None:
    """Bring the commands of new packages over. Those that name the staged Python name the real one instead."""
    theirs, ours = os.fsencode(staged), os.fsencode(prefix)
    for path in (staged / "bin").iterdir():
        present = prefix / "bin" / path.name
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes().replace(theirs, ours)
        if present.exists() and present.read_bytes() == content:
            continue
        half = present.with_name(f".{path.name}.half")
        half.write_bytes(content)
        half.chmod(0o755)
        half.replace(present)

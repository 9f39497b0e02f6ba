"""Update a git clone: fetch, lay out the new commit, reset to it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from hermes.core.errors import ConfigError
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
from hermes.store.private_files import write_private

SWITCHING = "hermes-switching"
"""In .git while the files change: the commit to which the next start of scripts/hermes goes on, should we be killed."""

STAMP = "stamp-core"
"""In a virtual environment: which pins it holds, as scripts/_venv.py wrote it."""

SHOWN = 8
_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


class CloneInstallation:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._git_folder = root / ".git"
        self.work = self._git_folder / "hermes-update"

    def _git(self, *words: str, doing: str = "Asking git") -> str:
        quiet = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        return run_command(["git", "-C", str(self._root), *words], doing, quiet).strip()

    def present(self) -> NewVersion:
        found = build.installed()
        return NewVersion(found.commit, str(found))

    def look(self) -> NewVersion | None:
        upstream = self._upstream()
        self._git("fetch", "--quiet", upstream.partition("/")[0], doing="Fetching from the clone's remote")
        head, new = self._git("rev-parse", "HEAD"), self._git("rev-parse", f"{upstream}^{{commit}}")
        common = self._git("merge-base", head, new)
        if common == new:
            return None
        if common != head:
            raise ConfigError(
                f"This clone has commits that {upstream} has not, so it cannot be updated by itself.\n"
                f"  Rebase them first: git -C {self._root} rebase {upstream}"
            )
        titles = self._git("log", f"--max-count={SHOWN}", "--format=%s", f"{head}..{new}").splitlines()
        declared = _VERSION.search(self._git("show", f"{new}:src/hermes/__init__.py"))
        return NewVersion(new, f"{declared[1] if declared else '?'} (commit {new[: build.SHORT]})", tuple(titles))

    def _upstream(self) -> str:
        for words in (("rev-parse", "--abbrev-ref", "@{upstream}"), ("rev-parse", "--abbrev-ref", "origin/HEAD")):
            try:
                return self._git(*words)
            except UpdateFailedError:
                continue
        raise ConfigError(
            f"The clone {self._root} follows no remote branch, so there is nowhere to look for updates.\n"
            f"  Name one: git -C {self._root} branch --set-upstream-to=origin/main"
        )

    def refuse_changes(self) -> None:
        changed = self._git("status", "--porcelain", "--untracked-files=no").splitlines()
        if changed:
            names = ", ".join(line[3:] for line in changed[:3]) + (", …" if len(changed) > 3 else "")
            raise ConfigError(
                f"Files of the clone were changed here ({names}), and an update would overwrite them.\n"
                f"  Keep them: git -C {self._root} commit -a     Drop them: git -C {self._root} checkout ."
            )

    def stage(self, version: NewVersion) -> StagedVersion:
        for left in self.work.glob("new-*"):  # by updates that were killed
            shutil.rmtree(left, ignore_errors=True)
        folder = self.work / f"new-{os.getpid()}"
        tree = folder / "tree"
        tree.mkdir(mode=0o700, parents=True)
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        at_root = ["git", "-C", str(self._root)]
        run_command([*at_root, "read-tree", version.id], "Laying out the new files", index)
        run_command([*at_root, "checkout-index", "--all", f"--prefix={tree}/"], "Laying out the new files", index)
        python = Path(sys.executable)
        if self._has_other_pins(tree):
            environment = folder / "env"
            copy_environment(self._venv, environment)
            python = environment / "bin" / "python"
            command = [str(python), "-P", str(tree / "scripts" / "_venv.py"), "core"]
            run_command(command, "Installing what the new version needs", {"HERMES_VENV": str(environment)})
            self._point_at_sources(environment)
        return StagedVersion(version, folder, python, {"PYTHONPATH": str(tree / "src")})

    def _point_at_sources(self, environment: Path) -> None:
        """Have the staged environment find the clone's own sources: it will stand in the place of the present one."""
        for present in self._venv.glob("lib/python*/site-packages/hermes-clone.pth"):
            staged = environment / present.relative_to(self._venv)
            staged.unlink(missing_ok=True)
            staged.write_bytes(present.read_bytes())

    @property
    def _venv(self) -> Path:
        return self._root / ".venv"

    def _has_other_pins(self, tree: Path) -> bool:
        """Tell whether the new version needs other packages in the clone's own environment."""
        pins = Path("requirements") / "core.txt"
        if not (tree / pins).exists() or Path(sys.prefix).resolve() != self._venv.resolve():
            return False
        return (tree / pins).read_bytes() != (self._root / pins).read_bytes()

    def switch(self, staged: StagedVersion) -> None:
        before = self.present()
        shutil.rmtree(self.work / "previous", ignore_errors=True)
        previous = self.work / "previous"
        previous.mkdir(mode=0o700)
        write_version(previous, before)
        self._go_to(staged.version.id, staged.folder / "env")
        if (staged.folder / "env").exists():
            os.rename(staged.folder / "env", previous / "env")
        shutil.rmtree(staged.folder, ignore_errors=True)

    def _go_to(self, commit: str, environment: Path) -> None:
        """Change the files. git is a process of its own and ends its work though we be killed."""
        write_private(self._git_folder / SWITCHING, f"{commit} {os.getpid()}\n")
        if environment.exists():
            exchange(environment / "lib", self._venv / "lib")
            kept, present = environment / STAMP, self._venv / STAMP
            old, new = present.read_bytes() if present.exists() else b"", kept.read_bytes()
            write_private(present, new)
            write_private(kept, old)
        self._git("reset", "--quiet", "--hard", commit, doing="Changing the files of the clone")
        (self._git_folder / SWITCHING).unlink()

    def previous(self) -> NewVersion | None:
        return read_version(self.work / "previous")

    def switch_back(self) -> None:
        target, before = self.previous(), self.present()
        if target is None:
            raise UpdateFailedError("There is no version to go back to: no update was made here.")
        self.refuse_changes()
        write_version(self.work / "previous", before)
        self._go_to(target.id, self.work / "previous" / "env")

"""Fetch a skill from a folder, an archive or git into a private folder."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import os
import re
import shutil
import signal
import stat
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from hermes.agent.skills.parse import FILE_NAME, SkillError, same_name
from hermes.agent.skills.scan import RefusedError, ScanFinding, bad_path, is_left_out, kind_of
from hermes.core.i18n.failures import describe_failure
from hermes.core.text import one_line

GIT_SECONDS = 90.0
LOOK_SECONDS = 0.1
MAX_TREE_BYTES = 50_000_000
MAX_ARCHIVE_BYTES = 20_000_000
MAX_UNPACKED_BYTES = 50_000_000
MAX_MEMBERS = 2000
MAX_DEPTH = 4

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:|[\w.-]+@[\w.-]+:", re.I)


def bring(source: str, staging: Path, environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the tree that ``source`` names: the folder itself, or what was cloned or unpacked into ``staging``."""
    if _ADDRESS.match(source):
        return _clone(source, staging, environ)
    path = (cwd / Path(source).expanduser()).absolute()
    if path.is_dir():
        return path
    if path.is_file():
        return _unpack(path, staging)
    raise SkillError(f"There is no folder or archive {source!r}. A git address begins with https:// or file://.")


def find_one(tree: Path, only: str = "") -> Path:
    """Return the folder of the skill in a tree. With several, ``only`` says which."""
    found = list(_skills_in(tree, 0))
    if not found:
        raise SkillError(f"There is no {FILE_NAME} in it, so it is no skill.")
    if only:
        found = [path for path in found if same_name(path.name) == same_name(only.rpartition("/")[2])] or found
        if len(found) != 1:
            raise SkillError(f"There is no skill {only!r} in it. It holds: {_listed(found)}.")
    if len(found) > 1:
        raise SkillError(f"It holds several skills: {_listed(found)}. Say which: --only NAME")
    return found[0]


def _listed(found: list[Path]) -> str:
    return ", ".join(one_line(path.name, 40) for path in found[:20])


def _skills_in(folder: Path, depth: int) -> Iterator[Path]:
    if os.path.lexists(folder / FILE_NAME):
        yield folder
        return
    if depth >= MAX_DEPTH:
        return
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_dir(follow_symlinks=False) and not is_left_out(entry.name):
            yield from _skills_in(Path(entry.path), depth + 1)


# git


def _clone(address: str, staging: Path, environ: Mapping[str, str]) -> Path:
    scheme = _checked(address)
    git = shutil.which("git", path=environ.get("PATH", os.defpath))
    if git is None:
        raise SkillError("git is not installed here. Install it, or download the skill and name its folder.")
    place, log = staging / "clone", staging / "git.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [git, *_settings(scheme), *_CLONE, "--", address, str(place)],
            cwd=staging,
            env=_variables(scheme, staging, environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            _wait(process, staging)
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
    if process.returncode != 0:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        named = [line.partition(":")[2].strip() for line in lines if line.startswith(("fatal:", "error:"))]
        reason = one_line((named or lines[-1:] or ["it said nothing"])[0], 300)
        raise SkillError(f"git could not fetch it: {reason}")
    return place


_CLONE = ("clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--no-local")


def _settings(scheme: str) -> Iterator[str]:
    settings = {
        "protocol.allow": "never",
        f"protocol.{scheme}.allow": "always",
        "core.hooksPath": os.devnull,
        "core.fsmonitor": "false",
        "credential.helper": "",
        "transfer.fsckObjects": "true",
        "http.followRedirects": "initial",
        "http.lowSpeedLimit": "1000",
        "http.lowSpeedTime": "20",
        "submodule.recurse": "false",
        "init.templateDir": "",
    }
    for name, value in settings.items():
        yield from ("-c", f"{name}={value}")


def _variables(scheme: str, staging: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """No setting of the machine or the person counts, nothing is asked, and no other program is started for it."""
    return {
        **{name: environ[name] for name in _PROXIES if environ.get(name)},
        "PATH": environ.get("PATH", os.defpath),
        "HOME": str(staging),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_SSH_COMMAND": "false",
        "GIT_ALLOW_PROTOCOL": scheme,
        "GIT_LFS_SKIP_SMUDGE": "1",
    }


def _checked(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in {"https", "file"} or "::" in address.partition("://")[0]:
        raise SkillError("Only https:// and file:// addresses are fetched.")
    if parts.username or parts.password:
        raise SkillError(
            "An address with a name or password in it is not fetched: it would be stored. Clone it yourself."
        )
    if parts.scheme == "https" and not parts.hostname:
        raise SkillError("That address names no host.")
    if not address.isprintable() or " " in address:
        raise SkillError("That address has a blank or a control character in it.")
    return parts.scheme


def _wait(process: subprocess.Popen[bytes], staging: Path) -> None:
    deadline = time.monotonic() + GIT_SECONDS
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
            return
        if time.monotonic() >= deadline:
            raise SkillError(f"git was stopped: it took longer than {GIT_SECONDS:.0f} s.")
        total = 0
        for path, _, names in os.walk(staging):
            for name in names:
                with contextlib.suppress(OSError):  # git renames its files as it goes
                    total += os.lstat(os.path.join(path, name)).st_size
        if total > MAX_TREE_BYTES:
            raise SkillError(f"git was stopped: the repository is larger than {MAX_TREE_BYTES:,} bytes.")


# Archives


def _unpack(archive: Path, staging: Path) -> Path:
    if archive.stat().st_size > MAX_ARCHIVE_BYTES:
        raise RefusedError([ScanFinding(archive.name, f"is larger than {MAX_ARCHIVE_BYTES:,} bytes")])
    place = staging / "unpacked"
    place.mkdir(0o700)
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, _Unpacking(place))
        else:
            _untar(_plain_tar(archive, staging / "plain.tar"), _Unpacking(place))
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise SkillError(f"{archive.name} is no archive that can be read: {describe_failure(error)}.") from None
    return place


class _Unpacking:
    """Writes members one by one and counts what really comes out, whatever the archive claims."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._members = 0
        self._bytes = 0

    def refuse(self, name: str, reason: str) -> None:
        raise RefusedError([ScanFinding(one_line(name, 120), reason)])

    def check(self, name: str) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            self.refuse(name, f"is one member too many: an archive has at most {MAX_MEMBERS:,}")
        if reason := bad_path(name.rstrip("/")):
            self.refuse(name, reason)

    def folder(self, name: str) -> None:
        (self._place / name).mkdir(0o700, parents=True, exist_ok=True)

    def file(self, name: str, content: IO[bytes]) -> None:
        target = self._place / name
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        if os.path.lexists(target):
            self.refuse(name, "stands in the archive twice")
        with target.open("xb") as file:
            while chunk := content.read(65536):
                self._bytes += len(chunk)
                if self._bytes > MAX_UNPACKED_BYTES:
                    self.refuse(name, f"makes more than {MAX_UNPACKED_BYTES:,} bytes when unpacked")
                file.write(chunk)


def _unzip(archive: Path, unpacking: _Unpacking) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            unpacking.check(member.filename)
            mode = member.external_attr >> 16
            if stat.S_ISLNK(mode):
                unpacking.refuse(member.filename, "is a link; a skill holds plain files")
            if stat.S_IFMT(mode) and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                unpacking.refuse(member.filename, f"is {kind_of(mode)}; a skill holds plain files")
            if member.flag_bits & 1:
                unpacking.refuse(member.filename, "is encrypted")
            if member.is_dir():
                unpacking.folder(member.filename)
            else:
                with opened.open(member) as content:
                    unpacking.file(member.filename, content)


def _plain_tar(archive: Path, place: Path) -> Path:
    """Return the archive without its compression: what it unpacks to is counted before any header is believed."""
    with archive.open("rb") as file:
        magic = file.read(6)
    if not magic.startswith((b"\x1f\x8b", b"BZh")):
        return archive
    written = 0
    with (gzip.open if magic.startswith(b"\x1f\x8b") else bz2.open)(archive) as opened, place.open("xb") as plain:
        while chunk := opened.read(65536):
            written += len(chunk)
            if written > MAX_UNPACKED_BYTES:
                raise RefusedError(
                    [ScanFinding(archive.name, f"makes more than {MAX_UNPACKED_BYTES:,} bytes when unpacked")]
                )
            plain.write(chunk)
    return place


def _untar(archive: Path, unpacking: _Unpacking) -> None:
    with tarfile.open(archive, "r:") as opened:
        for member in opened:
            name = member.name.removeprefix("./")
            if name in {"", "."}:
                continue
            unpacking.check(name)
            if member.issym() or member.islnk():
                kind = "link" if member.issym() else "hard link"
                unpacking.refuse(name, f"is a {kind} to {one_line(member.linkname, 80)!r}; a skill holds plain files")
            if member.isdir():
                unpacking.folder(name)
            elif member.isreg():
                content = opened.extractfile(member)
                if content is not None:
                    unpacking.file(name, content)
            else:
                unpacking.refuse(name, "is a device or a pipe; a skill holds plain files")

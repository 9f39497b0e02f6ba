"""Scan a skill before it is installed: file types, links, suspicious text.

A refusal cannot be overruled; a warning can, by somebody who has read it.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from hermes.agent.skills.parse import FILE_NAME, MAX_BYTES, SkillError, parse, read_bounded, read_skill
from hermes.agent.skills.reserved import is_reserved
from hermes.core.dataclasses import dataclass
from hermes.core.text import one_line

MAX_FILES = 200
MAX_FILE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 5_000_000
MAX_PATH_PARTS = 6
MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class ScanFinding:
    """``where`` is a file of the skill, with the line where there is one."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ScanReport:
    refusals: tuple[ScanFinding, ...] = ()
    warnings: tuple[ScanFinding, ...] = ()


class RefusedError(SkillError):
    """A skill must not be installed; ``findings`` say why."""

    def __init__(self, findings: Sequence[ScanFinding]) -> None:
        self.findings = tuple(findings[:MAX_FINDINGS])
        shown = "\n".join(f"  {finding}" for finding in self.findings)
        super().__init__(f"Refused, nothing was installed:\n{shown}")


# What it is made of


def copy_checked(source: Path, place: Path) -> tuple[str, ...]:
    """Copy a skill's plain files, readable by the owner alone; RefusedError for a link, a device or too much.

    No link is followed, so nothing outside ``source`` is read, also when it changes meanwhile. Returns what was left
    out: hidden files and what tools leave behind.
    """
    copy = _Copy(source, place)
    copy.run()
    if copy.refusals:
        raise RefusedError(copy.refusals)
    return tuple(copy.left_out)


class _Copy:
    def __init__(self, source: Path, place: Path) -> None:
        self._source = source
        self._place = place
        self._files = 0
        self._bytes = 0
        self._links: dict[tuple[int, int], list[str]] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self.refusals: list[ScanFinding] = []
        self.left_out: list[str] = []

    def run(self) -> None:
        self._place.mkdir(0o700)
        for path, folders, names, handle in os.fwalk(self._source, follow_symlinks=False):
            here = PurePosixPath(os.path.relpath(path, self._source))
            for name in [*folders, *names]:
                self._take(here / name, name, handle)
            folders[:] = [name for name in folders if not is_left_out(name) and not os.path.islink(f"{path}/{name}")]
            if len(self.refusals) >= MAX_FINDINGS or self._files > MAX_FILES:
                break
        for inode, names in self._links.items():
            if self._counts[inode] > len(names):
                self._refuse(names[0], "is a hard link to a file outside the skill")

    def _refuse(self, where: str | PurePosixPath, reason: str) -> None:
        self.refusals.append(ScanFinding(one_line(str(where), 120), reason))

    def _take(self, path: PurePosixPath, name: str, folder: int) -> None:
        if is_left_out(name):
            self.left_out.append(str(path))
            return
        if reason := bad_path(str(path)):
            self._refuse(path, reason)
            return
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(seen.st_mode):
            (self._place / path).mkdir(0o700)
        elif stat.S_ISREG(seen.st_mode):
            self._file(path, name, folder)
        elif stat.S_ISLNK(seen.st_mode):
            self._refuse(
                path, f"is a link to {one_line(os.readlink(name, dir_fd=folder), 80)!r}; a skill holds plain files"
            )
        else:
            self._refuse(path, f"is {kind_of(seen.st_mode)}; a skill holds plain files")

    def _file(self, path: PurePosixPath, name: str, folder: int) -> None:
        self._files += 1
        if self._files > MAX_FILES:
            self._refuse(path, f"is one file too many: a skill has at most {MAX_FILES}")
            return
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            seen = os.fstat(handle)
            content = file.read(MAX_FILE_BYTES + 1) if stat.S_ISREG(seen.st_mode) else b""
        if seen.st_nlink > 1:
            inode = (seen.st_dev, seen.st_ino)
            self._links.setdefault(inode, []).append(str(path))
            self._counts[inode] = seen.st_nlink
        self._bytes += len(content)
        if len(content) > MAX_FILE_BYTES:
            self._refuse(path, f"is {seen.st_size:,} bytes long; a file of a skill has at most {MAX_FILE_BYTES:,}")
        elif self._bytes > MAX_TOTAL_BYTES:
            self._refuse(path, f"makes the skill larger than {MAX_TOTAL_BYTES:,} bytes")
        else:
            copied = os.open(self._place / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(copied, "wb") as copy:
                copy.write(content)
                copy.flush()
                os.fsync(copied)


def is_left_out(name: str) -> bool:
    """Tell whether a file is hidden or a tool's leftover, and so not part of a skill."""
    return name.startswith(".") or name in {"__pycache__", "__MACOSX", "node_modules"}


def bad_path(path: str) -> str:
    """Return why a name in a skill or an archive is refused; '' when it is good."""
    parts = path.split("/")
    if path.startswith("/") or "\\" in path or (len(path) > 1 and path[1] == ":"):
        return "is not a relative path"
    if ".." in parts:
        return "leads out of its folder"
    if len(parts) > MAX_PATH_PARTS or len(path) > 200:
        return "lies too deep"
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if any(is_hidden(letter, "") or ord(letter) < 32 for letter in path):
        return "has a name with hidden characters"
    return ""


def kind_of(mode: int) -> str:
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for test, name in kinds if test(mode)), "not a file")


# What stands in it


def scan(folder: Path) -> ScanReport:
    """Read every file of a copied skill and say what speaks against it."""
    refusals: list[ScanFinding] = []
    warnings: list[ScanFinding] = []
    try:
        skill = read_skill(folder)
        front = parse(read_bounded(folder / FILE_NAME, MAX_BYTES)).front
        refusals += _front(front, ("",))
        if not front.get("name"):
            refusals.append(ScanFinding(FILE_NAME, "its front matter has no name"))
        for variable in skill.variables:
            if is_reserved(variable.name):
                warnings.append(ScanFinding(FILE_NAME, f"asks for {variable.name}, which no skill is given"))
    except SkillError as error:
        refusals.append(ScanFinding(FILE_NAME, str(error)))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = str(path.relative_to(folder))
            refused, warned = _file(name, read_bounded(path, MAX_FILE_BYTES))
            refusals += refused
            warnings += warned
    return ScanReport(tuple(refusals[:MAX_FINDINGS]), tuple(warnings[:MAX_FINDINGS]))


def scan_text(name: str, text: str) -> ScanReport:
    """Scan one text that is about to be written into a skill."""
    refused, warned = _file(name, text.encode("utf-8", "replace"))
    return ScanReport(tuple(refused), tuple(warned))


_PROGRAMS: Mapping[bytes, str] = {
    b"\x7fELF": "a Linux program",
    b"MZ": "a Windows program",
    b"\xfe\xed\xfa\xce": "a macOS program",
    b"\xfe\xed\xfa\xcf": "a macOS program",
    b"\xce\xfa\xed\xfe": "a macOS program",
    b"\xcf\xfa\xed\xfe": "a macOS program",
    b"\xca\xfe\xba\xbe": "a program for macOS or Java",
    b"\0asm": "a WebAssembly program",
    b"!<arch>": "a library of programs",
    b"dex\n": "an Android program",
}


def _file(name: str, content: bytes) -> tuple[list[ScanFinding], list[ScanFinding]]:
    for magic, kind in _PROGRAMS.items():
        if content.startswith(magic) and (magic != b"MZ" or b"\0" in content[:512]):
            return [ScanFinding(name, f"is {kind}; a skill holds text and pictures")], []
    if b"\0" in content:
        is_picture = content.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF-")) or content[8:12] == b"WEBP"
        return [], [] if is_picture else [ScanFinding(name, "is a binary file that nobody can read")]
    text = content.decode("utf-8-sig", "replace")
    return list(_hidden(name, text)), list(_suspicious(name, text))


_HIDDEN = frozenset(
    {
        *range(0x202A, 0x202F),  # text that runs the other way
        *range(0x2066, 0x206A),
        0x200E,
        0x200F,
        0x061C,
        0x200B,  # no width at all
        0x2060,
        *range(0x2061, 0x2065),
        0x180E,
        0xFEFF,
        0x00AD,
        *range(0xE0000, 0xE0080),  # letters that nobody sees
        *range(0xE0100, 0xE01F0),
    }
)
_JOINERS = frozenset({0x200C, 0x200D})


def is_hidden(letter: str, before: str) -> bool:
    """Tell whether a character cannot be seen and has no business here. Joiners belong to emoji and to some scripts."""
    code = ord(letter)
    if code in _JOINERS:
        return not before or before.isascii() or unicodedata.category(before) not in {"So", "Sk", "Mn", "Mc", "Lo"}
    return code in _HIDDEN or (code < 32 and letter not in "\t\n\r\f") or 0x7F <= code < 0xA0


def _hidden(name: str, text: str) -> Iterator[ScanFinding]:
    for number, line in enumerate(text.split("\n"), 1):
        found = [
            letter
            for at, letter in enumerate(line)
            if not letter.isascii() or letter < " "
            if is_hidden(letter, line[at - 1] if at else "")
        ]
        if found:
            kinds = ", ".join(dict.fromkeys(f"U+{ord(letter):04X}" for letter in found))
            shown = one_line(line.strip(), 80)
            yield ScanFinding(f"{name} line {number}", f"has hidden characters ({kinds}): {shown}")


_SCRIPT_KEYS = frozenset(
    {"hook", "hooks", "exec", "run", "script", "scripts", "setup", "install", "preinstall", "postinstall", "on_load",
     "on_install", "command", "commands", "entrypoint", "eval"}
)  # fmt: skip
_SCRIPT = re.compile(
    r"^\s*#!|<\s*script|\$\(|\$\{|\{\{|\{%|`[^`]*[|;&][^`]*`|\|\s*(ba|z|da)?sh\b|\b(eval|exec)\s*\(|javascript:", re.I
)


def _front(value: Any, path: tuple[str, ...]) -> Iterator[ScanFinding]:
    """A front matter describes and runs nothing: whatever looks like a script in it is refused."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key.casefold() in _SCRIPT_KEYS and item:
                yield ScanFinding(
                    FILE_NAME, f"has a script in its front matter (`{one_line(key, 40)}`); a skill runs nothing itself"
                )
            else:
                yield from _front(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _front(item, path)
    elif _SCRIPT.search(value):
        yield ScanFinding(
            FILE_NAME, f"has a script in its front matter (`{one_line(path[-1], 40)}`): {one_line(value, 80)}"
        )


_SUSPICIOUS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (reason, re.compile(pattern, re.I))
    for reason, pattern in (
        (
            "tells the agent to set other instructions aside",
            r"\b(ignore|disregard|forget|override)\b.{0,30}\b(previous|prior|earlier|above|all|other|system)\b.{0,30}"
            r"\b(instructions?|prompts?|rules|messages?)|忽略.{0,10}(之前|以上|先前|所有).{0,10}(指令|提示|规则)",
        ),
        (
            "tells the agent to keep something from its user",
            r"\b(do not|don'?t|never|without)\b.{0,20}\b(tell|inform|mention|telling|informing|asking|notify|show)\b"
            r".{0,20}\b(the )?(user|owner|human|person)|不要(告诉|告知|提醒)(用户|主人)",
        ),
        ("asks for the system prompt", r"\b(reveal|print|show|repeat|output)\b.{0,30}\bsystem prompt"),
        ("gives the agent another identity", r"\byou are (now|no longer)\b|\bact as (root|admin|the system)\b"),
        (
            "speaks against approvals or sandboxes",
            r"\b(disable|bypass|skip|avoid|auto-?approve)\b.{0,30}\b(approvals?|sandbox|confirmation|safety)",
        ),
        (
            "reads credentials",
            r"\.ssh/|\bid_(rsa|ed25519|ecdsa)\b|\.aws/credentials|\.netrc|\.git-credentials|\.config/gcloud|\.kube/config"
            r"|\.docker/config\.json|/etc/(shadow|sudoers)|\.hermes/(\.env|api_server\.key|state\.db)|\.pgpass|\.npmrc|\.pypirc"
            r"|find-(generic|internet)-password|gpg\b.*--export-secret|\b(printenv|env)\s*(\||>)"
            r"|\bcat\s+\S*\.env\b|/proc/(self|\d+)/environ|Login Data|cookies\.sqlite|wallet\.dat",
        ),
        (
            "runs what it fetches",
            r"\b(curl|wget|fetch)\b[^\n]{0,200}\|\s*(sudo\s+)?(ba|z|da|k)?(sh|python3?|perl|node)\b",
        ),
        (
            "decodes and runs something",
            r"base64\s+(-d|-D|--decode)[^\n]{0,80}\|\s*(ba|z|da)?(sh|python3?)\b|\beval\b.{0,20}base64",
        ),
        (
            "sends files or opens a shell to elsewhere",
            r"/dev/(tcp|udp)/|\bn(c|cat|etcat)\b.{0,40}\s-[a-z]*e|\bcurl\b[^\n]{0,120}\s(-d|--data\S*|-F|--form|-T)\s*\S*@",
        ),
        (
            "destroys data",
            r"\brm\s+-[a-z]*[rf][a-z]*\s+(-\S+\s+)*(/|~|\$HOME)(\s|$|\*)|\bmkfs\b|\bdd\b[^\n]{0,80}of=/dev/|:\(\)\s*\{",
        ),
        ("has a long encoded block that nobody can read", r"[A-Za-z0-9+/]{400,}={0,2}"),
    )
)  # fmt: skip


def _suspicious(name: str, text: str) -> Iterator[ScanFinding]:
    for number, line in enumerate(text.split("\n"), 1):
        for reason, pattern in _SUSPICIOUS:
            if pattern.search(line[:20_000]):
                yield ScanFinding(f"{name} line {number}", f"{reason}: {one_line(line.strip(), 100)}")

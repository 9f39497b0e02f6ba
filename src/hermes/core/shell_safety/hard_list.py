"""Refuse the commands that are refused to everybody: deleting the root folder, formatting the disk."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.core.shell_safety import dangerous, places
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.findings import Findings
from hermes.core.shell_safety.paths import normal
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.words import Word, find_starts, option_text

_OVERWRITERS = names("tee cp mv shred wipefs blkdiscard truncate install sponge ln rm unlink badblocks")
_NARROWS_FIND = names("-name -iname -path -ipath -mtime -mmin -size -newer -regex -user -empty -atime -ctime")
HARD_PROGRAMS = names("rm srm find dd chmod chown chgrp mv mke2fs mkswap tee cp shred wipefs truncate")
HARD_NAME = re.compile(r"r.*m|find|dd|ch(?:mod|own|grp)|mv|mk|tee|cp|shred|wipefs|truncate")


def judge_hard(findings: Findings, program: str, words: Sequence[Word], folders: frozenset[str]) -> None:
    """Refuse a command of the hard list."""
    texts = [word.text for word in words]
    is_recursive = dangerous.recursive(texts)
    named = [word for word in words if not word.text.startswith("-")]
    found = [normal(path) for word in named for path in findings.paths(word.text, folders)]
    match program:
        case "rm" | "srm" if is_recursive:
            _deleted(findings, words, folders)
        case "find" | "fd" if {"-delete", "rm", "/bin/rm", "/usr/bin/rm", "shred"} & set(texts):
            _found_and_deleted(findings, words, folders)
        case "chmod" | "chown" | "chgrp" if is_recursive:
            _changed(findings, words, folders)
        case "mv" if any(places.is_root(place) for place in found[:-1]):
            findings.refuse("It moves a folder away that this machine needs to run.")
        case "dd":
            found = [
                normal(path) for text in texts if text.startswith("of=") for path in findings.paths(text[3:], folders)
            ]
            for place in found:
                findings.written(place)
            return
        case _ if program.startswith(("mkfs", "mke2fs", "mkswap", "newfs")):
            if any(places.FIRST_DISKS.match(place) or place in findings.site.mounted for place in found):
                findings.refuse("It formats the disk this machine runs from.")
        case _:
            pass
    if program in _OVERWRITERS:
        target = option_text(words, "-t", "--target-directory")
        for place in ([normal(path) for path in findings.paths(target, folders)] if target else []) + found:
            if places.DISKS.match(place) or place in findings.site.mounted:
                if program not in ("cp", "install") or place == found[-1]:
                    findings.refuse(f"It writes over a disk ({place}).")
            elif places.BOOT.match(place) and (program not in ("cp", "install") or target or place == found[-1]):
                findings.refuse(f"It writes over what starts this machine ({place}).")


def _deleted(findings: Findings, words: Sequence[Word], folders: frozenset[str]) -> None:
    if any(word.text == "--no-preserve-root" for word in words):
        findings.refuse("It is told to delete the root folder (--no-preserve-root).")
    for word in words:
        if word.text.startswith("-") and word.text != "-":
            continue
        for place in map(normal, findings.paths(word.text, folders)):
            if places.is_root(place) and word.is_tame:
                findings.refuse(f"It deletes {place}, which this machine needs to run.")
            elif _is_all(place, word, folders, findings.site.home):
                findings.ask(Danger.DELETE_ALL)


def _found_and_deleted(findings: Findings, words: Sequence[Word], folders: frozenset[str]) -> None:
    narrowed = any(word.text in _NARROWS_FIND for word in words)
    for word in find_starts(words):
        for place in map(normal, findings.paths(word.text, folders)):
            if not narrowed and places.is_root(place):
                findings.refuse(f"It deletes all of {place}, which this machine needs to run.")
            elif not narrowed and _is_all(place, word, folders, findings.site.home):
                findings.ask(Danger.DELETE_ALL)


def _changed(findings: Findings, words: Sequence[Word], folders: frozenset[str]) -> None:
    for word in words:
        if word.text.startswith("-") or "/" not in word.text or not word.is_tame:
            continue
        for place in map(normal, findings.paths(word.text, folders)):
            if places.is_root(place):
                findings.refuse(f"It changes the permissions of all of {place}, after which nothing would run.")


def _is_all(place: str, word: Word, folders: frozenset[str], home: str) -> bool:
    """Tell whether a path is the whole working folder, a folder above it, or a home."""
    text = word.text.rstrip("/")
    if text in (".", "..", "*", "./*", "~", "~/*", ".*", "./.*") or re.fullmatch(r"(\.\./?)+\*?", text):
        return True
    bare = place.rstrip("/*").rstrip("/") or "/"
    if bare == "~" or (home and bare == home) or re.fullmatch(r"/(home|Users)/[^/]+", bare):
        return True
    return any(folder and (bare == folder or folder.startswith(f"{bare}/")) for folder in folders)

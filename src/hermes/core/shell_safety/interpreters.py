"""Judge interpreters: the code, the file or the module that they run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.core.shell_safety import reading
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.code import INTERPRETERS
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.simple_command import SimpleCommand
from hermes.core.shell_safety.words import Word


class Interpreters(SimpleCommand):
    """Rules for interpreters."""

    def _interpreter(self, kind: str, words: Sequence[Word], level: int) -> None:
        self._judging.changes()
        if not self._is_home_folder():
            self._ask(Danger.CODE)
        options = INTERPRETERS[kind]
        is_python = kind in ("python", "pypy", "ipython")
        takes = _INTERPRETER_VALUES.get(kind, frozenset())
        codes: list[Word] = []
        at = 0
        while at < len(words):
            word = words[at]
            text = word.text
            if word.may_be_option() and not word.is_known and not (word.globs and not is_python):
                self._ask(Danger.CODE)
                return
            if is_python and text == "-m":
                self._module(words[at + 1 :], level)
                return
            if is_python and re.fullmatch(r"-[bBdEiIOPqRsSuvx]*m\w+", text):
                self._module([Word(text.partition("m")[2]), *words[at + 1 :]], level)
                return
            found = _code_in(text, options, words[at + 1 :], kind)
            if found is not None:
                codes.append(found)
                at += 1 if found.is_quoted else 2
                if is_python or kind in ("php", "deno"):
                    break
                continue
            if text in ("--version", "-V", "--help", "-h", "-v") and len(words) == 1:
                return
            if text == "-":
                break
            if text.startswith("-") and len(text) > 1:
                if kind == "perl" and re.match(r"-[\w.]*i.*[/*]", text):
                    self._ask(Danger.CODE)  # where the old file is kept
                if kind == "perl" and re.match(r"-[\w.]*i", text):
                    for other in words[at + 1 :]:
                        for path in (
                            self._judging.paths(other.text, self._folders) if not other.text.startswith("-") else ()
                        ):
                            self._judging.softly_written(path)
                if re.match(
                    r"-[rMmIC]\S|--(require|import|loader|experimental-loader|inspect|env-file|preload)|-[rI]$", text
                ) and not (kind == "perl" and text in ("-Mstrict", "-Mwarnings")):
                    self._ask(Danger.CODE)
                at += 2 if text in takes else 1
                continue
            break
        rest = words[at:]
        if kind == "perl" and any(re.search(r"[|<>*?]$|^[<>|+]", word.text.strip()) for word in rest):
            self._ask(Danger.CODE)  # it takes such a name for a command, or for a file to write
        if codes:
            for one in codes:
                if not one.is_tame or one.globs:
                    self._ask(Danger.CODE)
                if is_python:
                    self._judging.python(one.plain(), self._folders)
                else:
                    self._judging.other_code(one.plain())
            self._scan(kind, rest, level, may_be_unknown=False)
            return
        file = next(iter(rest), None)
        if file is None or file.text == "-" or file.text.startswith(("/dev/stdin", "/dev/fd/")):
            if self._feed.is_fetched or (
                file is not None and file.text.startswith("/dev/fd") and self._judging.fetches
            ):
                self._ask(Danger.NETWORK_TO_SHELL)
            elif self._feed.text is not None:
                if is_python:
                    self._judging.python(self._feed.text, self._folders)
                else:
                    self._judging.other_code(self._feed.text)
            elif self._feed.is_piped or (file is not None and file.text != "-"):
                self._ask(Danger.CODE)
            return
        if not file.is_known:
            self._ask(Danger.CODE)
            return
        if kind in ("deno", "bun") and file.text in _RUNTIME_VERBS:
            self._generic(kind, rest, level)
            return
        for path in self._judging.paths(file.text, self._folders):
            self._judging.code_file(path)
        self._scan(kind, rest[1:], level)

    def _module(self, words: Sequence[Word], level: int) -> None:
        """Judge ``python -m name …``."""
        if not words or not words[0].is_known:
            self._ask(Danger.UNJUDGED)
            return
        name = words[0].text
        if name in ("pip", "ensurepip"):
            self._rules("pip", words[1:] if name == "pip" else [Word("install")])
            if reading.only_reads("pip", words[1:]):
                return
        if name in _MODULES_THAT_RUN:
            self._ask(Danger.CODE)
        if name in ("zipfile", "tarfile") and self._holds_settings(()):
            self._ask(Danger.SYSTEM_FILES)
        if name.split(".")[0] == "hermes":
            self._hermes([word.text for word in words[1:]])
            return
        if name not in _KNOWN_MODULES:
            self._judging.module(name)
        self._generic(f"python -m {name}", words[1:], level)


def interpreter(program: str) -> str | None:
    """Return the interpreter without its version: ``python`` for ``python3.11``."""
    name = re.sub(r"[\d.]+$", "", program) or program
    return name if name in INTERPRETERS else None


def _code_in(text: str, options: Sequence[str], rest: Sequence[Word], kind: str) -> Word | None:
    """Return the code of this option: the next word, or the rest of the same word.

    Code in the same word counts as quoted.
    """
    if text in options:
        return Word(rest[0].text, rest[0].globs) if rest else Word("")
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return Word(value, is_quoted=True) if equals and name in options else None
    for option in options:
        if len(option) != 2 or not text.startswith("-"):
            continue
        letters = _CLUSTERS.get(kind, "")
        match = (
            re.match(rf"-[{letters}]*{option[1]}(.*)", text, re.DOTALL)
            if letters
            else re.match(rf"-{option[1]}(.*)", text, re.DOTALL)
        )
        if match:
            return (
                Word(match[1], is_quoted=True)
                if match[1]
                else (Word(rest[0].text, rest[0].globs) if rest else Word(""))
            )
    return None


_INTERPRETER_VALUES = {
    "python": names("-W -X"),
    "pypy": names("-W -X"),
    "perl": names("-I"),
    "node": names("-r --require --import --loader -C --conditions"),
    "ruby": names("-I -r -C"),
    "php": names("-d -c"),
}
_CLUSTERS = {
    "python": "bBdEiIOPqRsSuvx",
    "pypy": "bBdEiIOPqRsSuvx",
    "perl": "npalwWsStTuUXcf0-9",
    "ruby": "npalwWsSv",
    "ipython": "i",
}
_MODULES_THAT_RUN = names(
    "timeit pdb code cProfile profile trace runpy idlelib bdb turtle webbrowser smtpd ftplib telnetlib "
    "cgi pickle marshal ctypes IPython asyncio pty test"
)
_RUNTIME_VERBS = names("test run task install lint fmt check build add x dev start")
"""Verbs of deno and bun."""
_KNOWN_MODULES = names(
    "pytest unittest pip venv build http.server json.tool compileall py_compile mypy ruff black isort flake8 "
    "pylint coverage "
    "tox nox twine wheel virtualenv ensurepip zipfile tarfile calendar site platform sysconfig this django flask "
    "uvicorn "
    "gunicorn alembic pre_commit pipx poetry tabnanny dis ast tokenize base64 gzip sphinx mkdocs jupyter ipykernel"
)

"""Which commands are dangerous, and which are refused to everybody.

``judge`` reads a command line as a shell would and says: refused (the hard list, which nothing bypasses), dangerous
(with the classes and their words, so that a person can be asked), or nothing. The classes are a table: see
``core.danger_rules``. What cannot be read is not guessed about: it is a class of its own, and is asked about.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.shell_safety import parser, rules
from hermes.core.shell_safety.parser import Redirect, Simple, Word
from hermes.core.shell_safety.rules import CLASSES as CLASSES
from hermes.core.shell_safety.rules import Danger as Danger

DEEPEST = 8
MOST_TRIALS = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """``refusal``: refused to everybody, with this reason. ``dangers``: to be asked about. Neither: it may run."""

    refusal: str = ""
    dangers: tuple[Danger, ...] = ()

    @property
    def is_refused(self) -> bool:
        return bool(self.refusal)

    @property
    def asks(self) -> bool:
        return bool(self.dangers) and not self.refusal

    def describe(self, words: Texts) -> str:
        """What a person reads before they decide."""
        return self.refusal or words.GAP.join(CLASSES[danger].says(words) for danger in self.dangers)

    def subject(self, back_end: str) -> str:
        """What a standing grant would be for: these kinds of danger on this back end; '' when each is asked about."""
        if not self.asks or not all(CLASSES[danger].grantable for danger in self.dangers):
            return ""
        return f"terminal/{back_end}: {'+'.join(sorted(self.dangers))}"


def judge(
    command: str, *, touches_host: bool = True, folder: str = "", home: str = "", mounted: Collection[str] = ()
) -> Verdict:
    """Judge a command line before it runs.

    ``touches_host`` is False in a sandbox, where most classes need no approval; the hard list holds there too.
    ``folder`` is where it would run and ``home`` the user's home, both absolute, so that ``rm -rf ../..`` is seen for
    what it is. ``mounted`` names devices that are in use.
    """
    judging = _Judging(folder or "", home, frozenset(mounted))
    judging.text(command, 0)
    if judging.refusal:
        return Verdict(refusal=judging.refusal)
    found = (danger for danger in Danger if danger in judging.found)
    return Verdict(dangers=tuple(danger for danger in found if touches_host or CLASSES[danger].in_sandbox))


class _Judging:
    def __init__(self, folder: str, home: str, mounted: Collection[str], *, is_trial: bool = False) -> None:
        self.found: set[Danger] = set()
        self.refusal = ""
        self._folder = folder
        self._home = home.rstrip("/")
        self._mounted = mounted
        self._is_trial = is_trial
        self._fetches = False  # something in it reads the network

    def text(self, command: str, depth: int) -> None:
        """Judge a whole command line, one handed to another shell included."""
        if depth > DEEPEST:
            self.found.add(Danger.UNJUDGED)
            return
        self._look_at_raw(command)
        script = parser.read(command)
        if script.trouble:
            self.found.add(Danger.UNJUDGED)
        folder = self._folder
        for pipeline in script.pipelines:
            self._pipeline(pipeline, depth)
        if depth:
            self._folder = folder  # what a child shell changes to is over with it

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or f"{reason} This is refused to everybody; no approval changes it."

    def _look_at_raw(self, command: str) -> None:
        bare = "".join(command.split())
        if rules.FORK_BOMB.search(bare) or rules.FORK_WORDS.search(command):
            self._refuse("It starts copies of itself without end (a fork bomb).")
        if rules.HIDDEN_COMMAND.search(command):
            self.found.add(Danger.UNJUDGED)
        if rules.HERMES.search(command):
            self.found.add(Danger.HERMES_HOME)
        if rules.SECRET_VARIABLE.search(command):
            self.found.add(Danger.SECRETS)

    # Pipelines

    def _pipeline(self, pipeline: Sequence[Simple], depth: int) -> None:
        for number, simple in enumerate(pipeline):
            before = pipeline[number - 1] if number else None
            is_fetched = any(_is_fetch(earlier) for earlier in pipeline[:number])
            self._fetches = self._fetches or _is_fetch(simple)
            self._simple(simple, before, is_fetched=is_fetched, depth=depth)

    def _simple(self, simple: Simple, before: Simple | None, *, is_fetched: bool, depth: int) -> None:
        for redirect in simple.redirects:
            self._redirect(redirect)
        for name, value in simple.assigns:
            self._assignment(name, value)
        for word in simple.words:
            self._named(word)
        if simple.words:
            self._command(_CommandRun(simple.words, simple, before, is_fetched), depth)

    def _command(self, run: _CommandRun, depth: int) -> None:
        """Judge one command, looking through what only runs another one."""
        if depth > DEEPEST or not run.words:
            self.found.update({Danger.UNJUDGED} if run.words else set())
            return
        first = run.words[0]
        if not first.is_known or (first.globs and first.text not in ("[", "[[")):
            self.found.add(Danger.UNJUDGED)
            return
        program = posixpath.basename(first.text)
        words = run.words[1:]
        if program in rules.AS_ROOT:
            self.found.add(Danger.ROOT)
        self._rules(program, words)
        self._hard(program, words)
        self._wrapped(program, words, run, depth)
        self._shells(program, words, run, depth)
        if program not in rules.ONLY_SPEAKS:
            self._handed_on(words, run, depth)
        if program in ("cd", "pushd"):
            self._change_folder(words)

    def _wrapped(self, program: str, words: tuple[Word, ...], run: _CommandRun, depth: int) -> None:
        if program in rules.WRAPPERS:
            inner = _behind(program, words)
            if program == "env" and (text := _option_text(_without_clusters(words), "-S", "--split-string")):
                self.text(text, depth + 1)
            if program == "flock" and (text := _option_text(words, "-c", "--command")):
                self.text(text, depth + 1)
            if program == "watch" and inner:
                self.text(" ".join(word.text for word in inner), depth + 1)
            elif inner:
                self._command(_CommandRun(inner, run.simple, run.before, run.is_fetched), depth + 1)
            if program in ("xargs", "parallel") and inner:
                self._fed_by_pipe(inner)
        if program in ("find", "fd"):
            for inner in _executed(words):
                self._command(_CommandRun(inner, run.simple, None, is_fetched=False), depth + 1)

    def _handed_on(self, words: tuple[Word, ...], run: _CommandRun, depth: int) -> None:
        """A program that is not known here may run its words, or one of them: what nobody may do is asked about."""
        if self._is_trial:
            return
        tried = 0
        for number, word in enumerate(words):
            is_program = posixpath.basename(word.text) in rules.HARD_PROGRAMS
            if not is_program and not (" " in word.text and rules.HARD_WORDS.search(word.text)):
                continue
            trial = _Judging(self._folder, self._home, self._mounted, is_trial=True)
            if is_program:
                trial._command(_CommandRun(words[number:], run.simple, None, is_fetched=False), depth + 1)
            else:
                trial.text(word.text.partition("=")[2] or word.text, depth + 1)
            tried += 1
            if trial.refusal or tried > MOST_TRIALS:
                self.found.add(Danger.UNJUDGED)
                return

    def _fed_by_pipe(self, inner: tuple[Word, ...]) -> None:
        """What xargs adds is not in the text, so a program that only its words make dangerous cannot be judged."""
        program = posixpath.basename(inner[0].text)
        if program in rules.SHELLS or program in ("rm", "dd", "kill", "chmod", "chown", "env", "sudo", "eval"):
            deletes = program == "rm" and not rules.recursive([word.text for word in inner[1:]])
            self.found.add(Danger.DELETE_TREE if deletes else Danger.UNJUDGED)

    def _shells(self, program: str, words: tuple[Word, ...], run: _CommandRun, depth: int) -> None:
        texts = [word.text for word in words]
        if program in rules.SHELLS or program in ("su", "runuser"):
            self._shell(words, run, depth)
        elif program == "eval":
            self._text_of(words, depth)
        elif program in (".", "source"):
            self._sourced(words, run)
        elif program == "ssh":
            self._ssh(words, depth)
        elif program in ("alias", "trap") and words:
            words = _skip_options(words, ())
            for word in words[: 1 if program == "trap" else None]:
                self.text(word.text.partition("=")[2] or word.text, depth + 1)
        elif program in ("docker", "podman") and "exec" in texts:
            self._after(words, "exec", run, depth)
        elif (kind := _interpreter(program)) is not None:
            self._code(kind, words, run)
        elif program == "git" and any(text.startswith("alias.") or "=!" in text for text in texts):
            self.found.add(Danger.UNJUDGED)

    def _shell(self, words: tuple[Word, ...], run: _CommandRun, depth: int) -> None:
        """A shell runs the text behind -c, a script by name, or what it is fed."""
        is_user_change = posixpath.basename(run.words[0].text) in ("su", "runuser")
        flags = "".join(word.text for word in words if re.match(r"-\w", word.text))
        for number, word in enumerate(words):
            if is_user_change and (attached := re.match(r"(?:-c|--command=)(.+)", word.text, re.DOTALL)):
                self.text(attached[1], depth + 1)
                return
            if re.match(r"-\w*c|--command$", word.text):
                self._text_of(_skip_options(words[number + 1 :], {"-o", "-O", "+o", "+O"})[:1], depth)
                return
        named = [word for word in words if not word.text.startswith("-")] if "s" not in flags else []
        if named and posixpath.basename(run.words[0].text) not in ("su", "runuser"):
            self._sourced(tuple(named), run)
        elif run.simple.fed_text is not None:
            self.text(run.simple.fed_text, depth + 1)
        elif run.before is not None:
            self._piped(run, depth)
        elif any(redirect.operator in ("<", "<<<") for redirect in run.simple.redirects):
            self.found.add(Danger.UNJUDGED)

    def _piped(self, run: _CommandRun, depth: int) -> None:
        """A shell that reads a pipe: the text is judged where it stands there, else it cannot be."""
        before = run.before
        if run.is_fetched:
            self.found.add(Danger.NETWORK_TO_SHELL)
        elif before is not None and (text := _literal_output(before)) is not None:
            self.text(text, depth + 1)
        else:
            self.found.add(Danger.UNJUDGED)

    def _text_of(self, words: tuple[Word, ...], depth: int) -> None:
        """Text that a shell reads. What stands in it is judged; a value that is not known may hold anything."""
        self.text(" ".join(word.text for word in words), depth + 1)
        if not all(word.is_known for word in words):
            self.found.add(Danger.NETWORK_TO_SHELL if self._fetches else Danger.UNJUDGED)

    def _sourced(self, words: tuple[Word, ...], run: _CommandRun) -> None:
        if any(not word.is_known and word.text.startswith("/dev/fd/") for word in words[:1]):
            self.found.add(Danger.NETWORK_TO_SHELL)
        elif words and not words[0].is_known:
            self.found.add(Danger.UNJUDGED)
        elif words and words[0].text in ("/dev/stdin", "-"):
            self.found.add(Danger.NETWORK_TO_SHELL if run.is_fetched else Danger.UNJUDGED)

    def _ssh(self, words: tuple[Word, ...], depth: int) -> None:
        rest = _skip_options(words, rules.SSH_TAKES_VALUE)
        if rest:
            self.found.add(Danger.REMOTE)
        if any("proxycommand" in word.text.lower() or "localcommand" in word.text.lower() for word in words):
            self.found.add(Danger.UNJUDGED)
        if rest[1:]:
            self._text_of(rest[1:], depth)

    def _after(self, words: tuple[Word, ...], name: str, run: _CommandRun, depth: int) -> None:
        at = [word.text for word in words].index(name)
        rest = _skip_options(words[at + 1 :], {"-u", "-w", "-e", "--user", "--workdir", "--env"})
        if rest[1:]:
            self._command(_CommandRun(rest[1:], run.simple, None, is_fetched=False), depth + 1)

    def _code(self, kind: str, words: tuple[Word, ...], run: _CommandRun) -> None:
        """Code for an interpreter: looked through for what it could do, not understood."""
        options = rules.INTERPRETERS[kind]
        texts = [word.text for word in words]
        code = [text for number, text in enumerate(texts) if number and _takes_code(texts[number - 1], options)]
        code += [text[2:] for text in texts if len(text) > 2 and text[:2] in options and not text.startswith("--")]
        code += [text.partition("=")[2] for text in texts if text.startswith("--")]
        reads_pipe = not [text for text in texts if not text.startswith("-") or text == "-"] or "-" in texts[:1]
        if not code and run.simple.fed_text is not None:
            code = [run.simple.fed_text]
        elif not code and reads_pipe and run.before is not None:
            self.found.add(Danger.NETWORK_TO_SHELL if run.is_fetched else Danger.UNJUDGED)
        elif not code and words and words[0].text.startswith("/dev/fd/"):
            self.found.add(Danger.NETWORK_TO_SHELL)
        if any(rules.RISKY_CODE.search(text) for text in code):
            self.found.add(Danger.UNJUDGED)
        if kind in ("python", "pypy") and texts[:2] in (["-m", "pip"], ["-m", "ensurepip"]):
            self._rules("pip", words[2:])

    # Words

    def _rules(self, program: str, words: tuple[Word, ...]) -> None:
        texts = [word.text for word in words]
        name = "mkfs" if program.startswith(("mkfs.", "newfs_")) else program
        name = "pip" if re.fullmatch(r"pip[\d.]+", name) else name
        found = {rule.danger for rule in rules.RULES if name in rule.programs and rule.test(texts)}
        if found & {Danger.SERVICES, Danger.KILL} and any("hermes" in text.lower() for text in texts):
            found.add(Danger.GATEWAY)
        if name == "env" and not _behind("env", words):
            found.add(Danger.SECRETS)
        self.found |= found
        if name == "hermes" or (name.startswith("python") and ("-m", "hermes") in pairwise(texts)):
            self._hermes([text for text in texts if text not in ("-m", "hermes")])
        if _needs_its_words(name, words):
            self.found.add(Danger.UNJUDGED)

    def _hermes(self, texts: Sequence[str]) -> None:
        """Our own commands. The agent must not answer its own questions, whoever would allow it to."""
        named = [text for text in texts if not text.startswith("-")]
        answers = any(one == "approvals" and other not in ("list", "grants") for one, other in pairwise(named))
        if answers or any(rules.ANSWERS_ITSELF.search(text) for text in texts):
            self._refuse("It answers a question that the agent itself has asked.")
        elif named[:1] == ["gateway"] and named[1:2] != ["status"]:
            self.found.add(Danger.GATEWAY)
        elif named[:1] and named[0] in rules.OWN_SETTINGS and named[1:2] not in ([], ["list"], ["explain"]):
            self.found.add(Danger.HERMES_HOME)

    def _named(self, word: Word) -> None:
        """A word that names a place, whatever the program."""
        text = word.text
        if rules.HERMES.search(text) or (word.globs and _globs_hermes(text)):
            self.found.add(Danger.HERMES_HOME)

    def _assignment(self, name: str, value: Word) -> None:
        if name in rules.TAKES_OVER and value.text not in rules.PLAIN_PAGERS:
            self.found.add(Danger.UNJUDGED)
        self._named(value)

    def _redirect(self, redirect: Redirect) -> None:
        self._named(redirect.target)
        place = self._place(redirect.target)
        is_number = redirect.operator == ">&" and redirect.target.text.rstrip("-").isdigit()
        if redirect.operator in (">", ">>", ">|", "&>", "&>>", "<>", ">&") and not is_number:
            self._written(place)
        elif redirect.operator == "<" and is_secret(place):
            self.found.add(Danger.SECRETS)

    def _written(self, place: str) -> None:
        """Something is written over this place."""
        if rules.DISKS.match(place) or place in self._mounted:
            self._refuse(f"It writes over a disk ({place}).")
        elif rules.BOOT.match(place):
            self._refuse(f"It writes over what starts this machine ({place}).")
        elif place == "/proc/sysrq-trigger":
            self.found.add(Danger.POWER)
        elif place.startswith(("/dev/tcp/", "/dev/udp/")):
            self.found.add(Danger.NETWORK)
        elif place.startswith("/dev/") and not rules.HARMLESS_DEVICES.match(place):
            self.found.add(Danger.DEVICE)
        else:
            self._softly_written(place)

    def _change_folder(self, words: tuple[Word, ...]) -> None:
        named = [word for word in words if not word.text.startswith("-")]
        if not named:
            self._folder = self._home or "~"
        elif named[0].is_known:
            self._folder = self._place(named[0])
        else:
            self._folder = ""

    def _place(self, word: Word) -> str:
        """Where a path leads as far as its text says. A home that is not known stays ``~``."""
        text = word.text
        if text.startswith("~") and (text == "~" or text[1:2] == "/"):
            text = (self._home or "~") + text[1:]
        elif not text.startswith("/") and self._folder:
            text = f"{self._folder}/{text}"
        return _normal(text)

    # The hard list

    def _hard(self, program: str, words: tuple[Word, ...]) -> None:
        texts = [word.text for word in words]
        places = [self._place(word) for word in words if not word.text.startswith("-")]
        is_recursive = rules.recursive(texts)
        match program:
            case "rm" | "srm" if is_recursive:
                self._deleted(words)
            case "find" | "fd" if "-delete" in texts or {"rm", "/bin/rm", "shred"} & set(texts):
                self._found_and_deleted(words)
            case "chmod" | "chown" | "chgrp" if is_recursive:
                self._changed(words)
            case "mv" if any(_is_root(place) for place in places[:-1]):
                self._refuse("It moves a folder away that this machine needs to run.")
            case "dd":
                places = [self._place(Word(text[3:])) for text in texts if text.startswith("of=")]
            case _ if program.startswith(("mkfs", "mke2fs", "mkswap", "newfs")):
                self._formatted(places)
            case _:
                pass
        self._touched(program, texts, places)

    def _formatted(self, places: Sequence[str]) -> None:
        if any(rules.FIRST_DISKS.match(place) or place in self._mounted for place in places):
            self._refuse("It formats the disk this machine runs from.")

    def _touched(self, program: str, texts: Sequence[str], places: Sequence[str]) -> None:
        """The places among its words that the program writes to, or whose secrets it shows."""
        named = _option_text(tuple(map(Word, texts)), "-t", "--target-directory")
        if program in rules.WRITES_LAST and named:
            places = [*places, self._place(Word(named))]
        if program in rules.OVERWRITERS:
            for place in places[-1:] if program in rules.WRITES_LAST else places:
                self._written(place)
        elif program in rules.WRITERS and (program != "sed" or rules.flag("i", "--in-place")(texts)):
            for place in places:
                self._softly_written(place)
        if program not in rules.SHOWS_NO_CONTENT and any(is_secret(place) for place in places):
            self.found.add(Danger.SECRETS)

    def _softly_written(self, place: str) -> None:
        if rules.ACCOUNT_FILES.search(place):
            self.found.add(Danger.ACCOUNTS)
        elif rules.SYSTEM.match(place) or rules.START_FILES.search(place) or rules.BOOT.match(place):
            self.found.add(Danger.SYSTEM_FILES)

    def _deleted(self, words: tuple[Word, ...]) -> None:
        if any(word.text == "--no-preserve-root" for word in words):
            self._refuse("It is told to delete the root folder (--no-preserve-root).")
        for word in words:
            if word.text.startswith("-") and word.text != "-":
                continue
            place = self._place(word)
            if _is_root(place) and word.is_known:
                self._refuse(f"It deletes {place}, which this machine needs to run.")
            elif self._is_all(place, word):
                self.found.add(Danger.DELETE_ALL)

    def _found_and_deleted(self, words: tuple[Word, ...]) -> None:
        starts = []
        for word in words:
            if word.text.startswith(("-", "(", "!")):
                break
            starts.append(word)
        narrowed = any(word.text in rules.NARROWS_FIND for word in words)
        for word in starts or (Word("."),):
            place = self._place(word)
            if not narrowed and _is_root(place):
                self._refuse(f"It deletes all of {place}, which this machine needs to run.")
            elif not narrowed and self._is_all(place, word):
                self.found.add(Danger.DELETE_ALL)

    def _changed(self, words: tuple[Word, ...]) -> None:
        for word in words:
            if not word.text.startswith("-") and word.is_known and _is_root(self._place(word)) and "/" in word.text:
                self._refuse(
                    f"It changes the permissions of all of {self._place(word)}, after which nothing would run."
                )

    def _is_all(self, place: str, word: Word) -> bool:
        """The whole folder it works in, one above it, or a home."""
        text = word.text.rstrip("/")
        if text in (".", "..", "*", "./*", "~", "~/*", ".*", "./.*") or re.fullmatch(r"(\.\./?)+\*?", text):
            return True
        bare = place.rstrip("/*").rstrip("/") or "/"
        if bare == "~" or (self._home and bare == self._home) or re.fullmatch(r"/(home|Users)/[^/]+", bare):
            return True
        return bool(self._folder) and (bare == self._folder or self._folder.startswith(f"{bare}/"))


@dataclass(frozen=True, slots=True)
class _CommandRun:
    """One command as it would run: its words, and what stands before it in the pipe."""

    words: tuple[Word, ...]
    simple: Simple
    before: Simple | None
    is_fetched: bool


def _needs_its_words(program: str, words: tuple[Word, ...]) -> bool:
    """An unquoted value that is not known may hold options or the verb itself."""
    if program in rules.NEEDS_ALL_WORDS:
        return any(not word.is_known and word.is_bare for word in words)
    return program in rules.NEEDS_FIRST_WORD and bool(words) and not words[0].is_known


def _normal(text: str) -> str:
    if not text.startswith(("/", "~")):
        return posixpath.normpath(text) if text else ""
    return "/" + posixpath.normpath(text).lstrip("/") if text.startswith("/") else posixpath.normpath(text)


def _is_root(place: str) -> bool:
    """The root folder or one this machine cannot run without, or all that is in it; a pattern may name it too."""
    if not place.startswith("/"):
        return False
    bare = place
    while bare.endswith(("/*", "/.*", "/.", "/?*", "/**")):
        bare = bare.rpartition("/")[0] or "/"
    if bare in rules.ROOTS:
        return True
    parts = bare.strip("/").split("/")
    if not any(mark in bare for mark in "*?[") or len(parts) > 2:
        return False
    return any(fnmatch.fnmatchcase(root, bare) for root in rules.ROOTS if root.count("/") == len(parts) and root != "/")


def is_secret(place: str) -> bool:
    """Whether this file is of a kind that holds keys or passwords."""
    return bool(rules.SECRET_FILES.search(place)) and not rules.NO_SECRETS.search(place)


def _globs_hermes(text: str) -> bool:
    return any(
        part.startswith(".") and len(part) > 1 and fnmatch.fnmatchcase(".hermes", part) for part in text.split("/")
    )


def _is_fetch(simple: Simple) -> bool:
    names = [posixpath.basename(word.text) for word in simple.words]
    return any(name in rules.FETCHERS for name in names[:1]) or (
        bool(names) and names[0] in rules.WRAPPERS and any(name in rules.FETCHERS for name in names)
    )


def _literal_output(simple: Simple) -> str | None:
    """What echo or printf writes, where that is plain."""
    if not simple.words:
        return None
    program, *rest = (word.text for word in simple.words)
    if program not in ("echo", "printf") or not all(word.is_known for word in simple.words):
        return simple.fed_text if program == "cat" and len(simple.words) == 1 else None
    text = " ".join(word for word in rest if not (program == "echo" and word in ("-n", "-e", "-ne", "-en", "-E")))
    if "\\" in text.replace("\\n", "") or ("%" in text and program == "printf"):
        return None
    return text.replace("\\n", "\n")


def _interpreter(program: str) -> str | None:
    name = re.sub(r"[\d.]+$", "", program) or program
    return name if name in rules.INTERPRETERS else None


def _skip_options(words: tuple[Word, ...], takes_value: Collection[str]) -> tuple[Word, ...]:
    at = 0
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        if words[at].text == "--":
            return words[at + 1 :]
        at += 2 if words[at].text in takes_value else 1
    return words[at:]


def _without_clusters(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """``-vS`` as ``-S``."""
    return tuple(replace(word, text=re.sub(r"^-[a-zA-Z0]+S", "-S", word.text)) for word in words)


def _takes_code(text: str, options: Sequence[str]) -> bool:
    """Whether code stands behind this option, alone or at the end of a cluster (``-Ic``)."""
    if text in options:
        return True
    return bool(re.match(r"-\w", text)) and any(len(one) == 2 and text.endswith(one[1]) for one in options)


def _behind(program: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command a wrapper runs."""
    takes_value, leading = rules.WRAPPERS[program]
    rest = _skip_options(words, takes_value)
    while rest and program in ("env", "sudo", "doas") and re.match(r"^\w+=", rest[0].text):
        rest = rest[1:]
    return rest[leading:]


def _option_text(words: tuple[Word, ...], *names: str) -> str:
    for number, word in enumerate(words):
        if word.text in names and number + 1 < len(words):
            return words[number + 1].text
        for name in names:
            if word.text.startswith(f"{name}=") or (
                len(name) == 2 and word.text.startswith(name) and len(word.text) > 2
            ):
                return word.text[len(name) :].lstrip("=")
    return ""


def _executed(words: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    """The commands behind -exec and its kin."""
    at = 0
    while at < len(words):
        if words[at].text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            end = at + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            yield words[at + 1 : end]
            at = end
        at += 1

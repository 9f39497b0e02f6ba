"""Reading a shell command line as a shell would, far enough to judge it: what runs, with which words, fed by what.

It never runs anything. What only a running shell could know (the value of a variable, the output of a command) is
marked as not known instead of guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from itertools import islice, pairwise

from hermes.core.dataclasses import dataclass

DEEPEST = 12
LONGEST = 30_000  # a longer one is asked about: judging must not hold up the event loop
MOST_BRACES = 256
_SEPARATORS = frozenset({";", ";;", "&", "&&", "||", "(", ")", "\n", ";&", ";;&"})
_PIPES = frozenset({"|", "|&"})
_OPERATORS = (
    "<<<", ";;&", "&>>", "<<-", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "<>", ">|", "&>",
    "|", "&", ";", "(", ")", "<", ">", "\n",
)  # fmt: skip
_OPERATOR_STARTS = frozenset(operator[0] for operator in _OPERATORS)
_BLANKS = " \t"
_ANSI_C = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_HEX = "0123456789abcdefABCDEF"
_NUMBERS = {"x": (_HEX, 16, 2), "u": (_HEX, 16, 4), "U": (_HEX, 16, 8)}
_KNOWN_VARIABLES = {"HOME": "~", "IFS": " "}
# Words that only open or close a compound command: what follows them runs.
_KEYWORDS = frozenset(
    {"{", "}", "!", "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "time", "coproc", "function"}
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quoting is undone. ``is_known`` is False where a value only a running shell has is part of it."""

    text: str
    is_known: bool = True
    is_bare: bool = True  # nothing in it was quoted
    globs: bool = False  # an unquoted * ? or [ is in it


@dataclass(frozen=True, slots=True)
class Redirect:
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """One command with its words. ``fed_text`` is what a here-document or here-string hands it, where that is known."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    assigns: tuple[tuple[str, Word], ...] = ()
    fed_text: str | None = None


Pipeline = tuple[Simple, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """All pipelines of a text in order, those inside substitutions and subshells too.

    ``trouble`` says why it cannot be read to its end.
    """

    pipelines: tuple[Pipeline, ...] = ()
    trouble: str = ""


def read(text: str) -> Script:
    """Read a command line. What cannot be read is said in ``trouble``, beside what could."""
    if len(text) > LONGEST:
        return Script(trouble="it is too long to be read")
    reader = _ShellReader(text)
    try:
        reader.read()
    except _UnreadableError as error:
        reader.trouble = reader.trouble or str(error)
    except RecursionError:
        reader.trouble = "it is nested too deeply"
    return Script(tuple(reader.pipelines), reader.trouble)


class _UnreadableError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _HereDocument:
    """A here-document that was announced and stands below the line. ``name`` marks the command it is for."""

    name: str
    end: str
    is_quoted: bool
    strips_tabs: bool


@dataclass(slots=True)
class _Building:
    """A word while it is read."""

    text: list[str] = field(default_factory=list)
    is_known: bool = True
    is_bare: bool = True
    globs: bool = False
    started: bool = False
    has_braces: bool = False  # an unquoted { is in it
    breaks: list[int] = field(default_factory=list)  # where an unquoted blank of a variable splits it

    def add(self, piece: str) -> None:
        self.text.append(piece)
        self.started = True

    def word(self) -> Word:
        return Word("".join(self.text), self.is_known, self.is_bare, self.globs)


class _ShellReader:
    def __init__(
        self,
        text: str,
        depth: int = 0,
        variables: dict[str, Word] | None = None,
        places: Counter[str] | None = None,
    ) -> None:
        self.text = text
        self.places = _places(text) if places is None else places  # those of the whole of which this is a part
        self.at = 0
        self.depth = depth
        self.variables: dict[str, Word] = variables if variables is not None else {}
        self.pipelines: list[Pipeline] = []
        self.trouble = ""
        self._pipeline: list[Simple] = []
        self._words: list[Word] = []
        self._redirects: list[Redirect] = []
        self._assigns: list[tuple[str, Word]] = []
        self._fed: str | None = None
        self._opened = ""  # the keyword before the first word
        self._waiting_documents: list[_HereDocument] = []
        if depth > DEEPEST:
            raise _UnreadableError("it is nested too deeply")

    def read(self) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in _BLANKS:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2  # here too, since a comment may begin behind it
            elif character == "#":
                self._skip_comment()
            elif self._is_arithmetic_command():
                pass
            elif operator := self._operator():
                self._take_operator(operator)
            else:
                self._take_words(self._read_word())
        self._end_pipeline()

    # Commands

    def _is_arithmetic_command(self) -> bool:
        """Whether ``((1 << 2))`` or ``for ((…))`` stood here, now read: the << in it begins no document."""
        if not self.text.startswith("((", self.at) or (self._words and self._words[0].text != "for"):
            return False
        body = self._arithmetic()
        if body is None:
            return False
        self._substitutions_in(body)
        return True

    def _arithmetic(self) -> str | None:
        """What stands between (( and )); None where these are brackets of commands, and then nothing is read."""
        start = self.at
        self.at += 1
        body = self._balanced("(", ")")
        if self.text.startswith(")", self.at):
            self.at += 1
            return body
        self.at = start
        return None

    def _operator(self) -> str:
        if self.text[self.at] not in _OPERATOR_STARTS:
            return ""
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                is_process = operator in ("<", ">") and self.text.startswith("(", self.at + 1)
                return "" if is_process else operator
        return ""

    def _take_operator(self, operator: str) -> None:
        self.at += len(operator)
        if operator == "\n":
            self._end_pipeline(keep_documents=True)
            self._read_documents()
        elif operator in _SEPARATORS:
            self._end_pipeline()
        elif operator in _PIPES:
            self._end_command()
        else:
            self._redirect(operator)

    def _redirect(self, operator: str) -> None:
        if (
            self._words
            and self._words[-1].is_bare
            and self._words[-1].text.isdigit()
            and self.text[self.at - len(operator) - 1].isdigit()
        ):
            self._words.pop()  # the 2 of 2>
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1
        start = self.at
        words = self._read_word() if self.at < len(self.text) and not self._operator() else []
        target = words[0] if words else Word("", is_known=False)
        if operator in ("<<", "<<-"):
            if "$" in self.text[start : self.at] or "`" in self.text[start : self.at] or self._is_in_subscript():
                self.trouble = "where a document ends cannot be told"
            name = f"\0document {len(self._waiting_documents)}"
            self._waiting_documents.append(_HereDocument(name, target.text, not target.is_bare, operator == "<<-"))
            self._fed = name
        elif operator == "<<<":
            self._fed = target.text if target.is_known else None
            if not target.is_known:
                self._redirects.append(Redirect("<<<", target))
        else:
            self._redirects.append(Redirect(operator, target))

    def _is_in_subscript(self) -> bool:
        return bool(self._words) and "[" in self._words[-1].text and self._words[0].text not in ("[", "[[")

    def _ends_head(self, word: Word) -> bool:
        """``for x do``, ``if [[ … ]] then`` and ``coproc NAME {``: what follows runs, with no separator before it."""
        if not word.is_bare or not self._words:
            return False
        first = self._words[0].text
        if first == "[[" and word.text == "]]":
            return True
        if first in ("for", "select") and word.text == "do":
            return len(self._words) <= 2
        return self._opened == "coproc" and word.text == "{" and len(self._words) == 1

    def _take_words(self, words: list[Word]) -> None:
        for word in words:
            if self._ends_head(word):
                self._end_pipeline()
                continue
            if not self._words:
                if word.is_bare and word.text in _KEYWORDS:
                    self._opened = word.text
                    continue
                if self._opened == "function" or (self._opened == "time" and word.text in ("-p", "--")):
                    self._opened = "" if self._opened == "function" else "time"  # its name, or an option
                    continue
                name, equals, value = word.text.partition("=")
                name = name.removesuffix("+")
                if equals and name.isidentifier():
                    self._assigns.append((name, replace(word, text=value)))
                    continue
            self._words.append(word)

    def _end_command(self) -> None:
        if self._words or self._redirects or self._fed is not None or self._assigns:
            self._pipeline.append(Simple(tuple(self._words), tuple(self._redirects), tuple(self._assigns), self._fed))
            self._remember()
        self._words, self._redirects, self._assigns, self._fed = [], [], [], None
        self._opened = ""

    def _remember(self) -> None:
        """What was assigned is known to the commands that follow, so that ``X=rm; $X -rf /`` hides nothing."""
        given = self._assigns if not self._words else []
        if self._words and self._words[0].text in ("export", "declare", "local", "readonly", "typeset"):
            pairs = ((*word.text.partition("="), word) for word in self._words[1:])
            given = given + [(name, replace(word, text=value)) for name, equals, value, word in pairs if equals]
        for name, value in given:
            self.variables[name] = value
        if self._words and self._words[0].text in ("for", "select", "read"):
            for word in self._words[1:2]:
                self.variables.pop(word.text, None)

    def _end_pipeline(self, *, keep_documents: bool = False) -> None:
        self._end_command()
        if self._pipeline:
            self.pipelines.append(tuple(self._pipeline))
        self._pipeline = []
        if not keep_documents and self.at >= len(self.text):
            self._waiting_documents = []

    def _read_documents(self) -> None:
        for document in self._waiting_documents:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at += len(line) + 1
                bare = line.lstrip("\t") if document.strips_tabs else line
                if bare == document.end:
                    break
                lines.append(bare)
            body = "\n".join(lines)
            if not document.is_quoted and ("$(" in body or "`" in body):
                self._substitutions_in(body)
            self._feed(document, body)
        self._waiting_documents = []

    def _substitutions_in(self, body: str) -> None:
        inner = _ShellReader(body, self.depth + 1, self.variables, self.places)
        building = _Building()
        while inner.at < len(body):
            if body[inner.at] in "$`":
                inner._expand(building)
            else:
                inner.at += 1
        self.pipelines.extend(inner.pipelines)

    def _feed(self, document: _HereDocument, body: str) -> None:
        """Hand the document to the command that asked for it."""
        self.pipelines = [
            tuple(replace(one, fed_text=body) if one.fed_text == document.name else one for one in pipeline)
            for pipeline in self.pipelines
        ]

    # Words

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _read_word(self) -> list[Word]:
        building = _Building()
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in "<>" and self.text.startswith("(", self.at + 1):
                self._process(building)
            elif character in _BLANKS or self._operator():
                break
            else:
                self._take_character(character, building)
        return self._split(building)

    def _take_character(self, character: str, building: _Building) -> None:
        match character:
            case "\\":
                self._escaped(building)
            case "'":
                self._single(building)
            case '"':
                self._double(building)
            case "$" | "`":
                if self.text.startswith("$'", self.at):
                    self._ansi_c(building)
                elif self.text.startswith('$"', self.at):
                    self.at += 1
                else:
                    self._expand(building, splits=True)
            case _:
                building.globs = building.globs or character in "*?["
                building.has_braces = building.has_braces or character == "{"
                building.add(character)
                self.at += 1

    def _escaped(self, building: _Building) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following != "\n":
            building.add(following)
            building.is_bare = False
        self.at += 2

    def _single(self, building: _Building) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _UnreadableError("a quote is not closed")
        building.add(self.text[self.at + 1 : end])
        building.is_bare = False
        self.at = end + 1

    def _double(self, building: _Building) -> None:
        self.at += 1
        building.is_bare = False
        building.started = True
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                building.add(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif character in "$`":
                self._expand(building)
            else:
                building.add(character)
                self.at += 1
        raise _UnreadableError("a quote is not closed")

    def _ansi_c(self, building: _Building) -> None:
        self.at += 2
        building.is_bare = False
        building.started = True
        while self.at < len(self.text) and self.text[self.at] != "'":
            if self.text[self.at] != "\\":
                building.add(self.text[self.at])
                self.at += 1
                continue
            self.at += 1
            building.add(self._ansi_c_escape())
        if self.at >= len(self.text):
            raise _UnreadableError("a quote is not closed")
        self.at += 1

    def _ansi_c_escape(self) -> str:
        kind = self.text[self.at : self.at + 1]
        digits, base, longest = _NUMBERS.get(kind, ("01234567", 8, 3))
        start = self.at + (1 if kind in _NUMBERS else 0)
        end = start
        while end < len(self.text) and end - start < longest and self.text[end] in digits:
            end += 1
        if end > start:
            self.at = end
            return chr(min(int(self.text[start:end], base), 0x10FFFF))
        self.at += 1
        return _ANSI_C.get(kind, kind)

    # Expansions

    def _process(self, building: _Building) -> None:
        self.at += 1
        body = self._balanced("(", ")")
        self._inside(body)
        building.add("/dev/fd/63")
        building.is_known = False
        building.globs = False

    def _expand(self, building: _Building, *, splits: bool = False) -> None:
        if self.text[self.at] == "`":
            found = _BACKQUOTED.match(self.text, self.at)
            if found is None:
                raise _UnreadableError("a backquote is not closed")
            self._inside(re.sub(r"\\([`\\$])", r"\1", found[1]))
            self.at = found.end()
            self._unknown(building)
            return
        self.at += 1
        following = self.text[self.at : self.at + 1]
        if self.text.startswith("((", self.at) and (body := self._arithmetic()) is not None:
            self._substitutions_in(body)
            self._unknown(building)
        elif following == "(":
            self._inside(self._balanced("(", ")"))
            self._unknown(building)
        elif following == "{":
            self._parameter(self._balanced("{", "}"), building, splits=splits)
        elif following.isalpha() or following == "_":
            end = self.at
            while end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
                end += 1
            name, self.at = self.text[self.at : end], end
            self._variable(name, building, splits=splits)
        elif following and following in "0123456789@*#?$!-":
            self.at += 1
            self._unknown(building)
        else:
            building.add("$")

    def _parameter(self, inside: str, building: _Building, *, splits: bool) -> None:
        if inside.replace("_", "a").isalnum():
            self._variable(inside, building, splits=splits)
            return
        if "$(" in inside or "`" in inside:
            self._substitutions_in(inside)
        name, _, default = inside.partition(":-")
        if default and name not in self.variables and "$" not in default:
            building.add(default.strip("'\""))
        self._unknown(building)

    def _variable(self, name: str, building: _Building, *, splits: bool) -> None:
        known = self.variables.get(name)
        value = _KNOWN_VARIABLES.get(name)
        if known is not None:
            value = known.text if known.is_known and self._is_settled(name) else None
        if value is None:
            self._unknown(building)
            return
        if splits and (" " in value or "\t" in value or "\n" in value):
            self._split_into(value, building)
        else:
            building.add(value)

    def _is_settled(self, name: str) -> bool:
        """Whether it gets a value in one place only. Which of two counts (a subshell, ``||``, ``read``) is not told."""
        return self.places[name] <= 1

    def _split_into(self, value: str, building: _Building) -> None:
        pieces = value.split()
        if value[:1].isspace() or not pieces:
            building.breaks.append(len("".join(building.text)))
        for number, piece in enumerate(pieces):
            building.add(piece)
            if number < len(pieces) - 1 or value[-1:].isspace():
                building.breaks.append(len("".join(building.text)))

    def _split(self, building: _Building) -> list[Word]:
        """The words a finished one becomes: split where a variable held blanks, multiplied where braces say so."""
        if not building.started and not building.breaks:
            return []
        whole = building.word()
        cuts = [0, *building.breaks, len(whole.text)]
        texts = [whole.text[start:end] for start, end in pairwise(cuts)]
        texts = [text for text in texts if text] if building.breaks else texts
        if not building.has_braces:
            return [replace(whole, text=text) for text in texts]
        spread = [one for text in texts for one in islice(_braces(text), MOST_BRACES + 1)]
        is_all = len(spread) <= MOST_BRACES and (whole.is_bare or spread == texts)
        return [replace(whole, text=text, is_known=whole.is_known and is_all) for text in spread[:MOST_BRACES]]

    def _unknown(self, building: _Building) -> None:
        building.is_known = False
        building.started = True

    def _inside(self, body: str) -> None:
        inner = _ShellReader(body, self.depth + 1, self.variables, self.places)
        inner.read()
        self.pipelines.extend(inner.pipelines)
        self.trouble = self.trouble or inner.trouble

    def _balanced(self, opening: str, closing: str) -> str:
        """The text between the bracket at the present place and its partner; quotes inside are respected."""
        start = self.at + 1
        depth = 0
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                self.at += 1
            elif character == "'" and opening == "(":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise _UnreadableError("a quote is not closed")
                self.at = end
            elif character == '"' and opening == "(":
                self._skip_double()
            elif character == opening:
                depth += 1
            elif character == closing:
                depth -= 1
                if depth == 0:
                    self.at += 1
                    return self.text[start : self.at - 1]
            self.at += 1
        raise _UnreadableError("a bracket is not closed")

    def _skip_double(self) -> None:
        """From an opening double quote to the closing one, which may stand behind a substitution with its own."""
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            if self.text[self.at] == "\\":
                self.at += 2
            elif self.text.startswith("$(", self.at):
                self.at += 1
                self._balanced("(", ")")
            else:
                self.at += 1


_NAME = re.compile(r"(?<![\w$-])(?<!\$\{)[A-Za-z_]\w*|(?<!\w)-\w{2,40}")


def _places(text: str) -> Counter[str]:
    """How often each name stands where it could get a value: not behind a $, and in ``printf -vNAME`` too."""
    found: Counter[str] = Counter()
    for name in _NAME.findall(text):
        found.update([name] if name[0] != "-" else [name[at:] for at in range(2, len(name))])
    return found


_BACKQUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.-?\d{1,9})?")


def _braces(text: str) -> Iterator[str]:
    """``/{bin,etc}`` is two words, ``{a{b,c},d}`` three and ``{1..9}`` nine."""
    found = _first_braces(text)
    if found is None:
        yield text
        return
    start, end, choices = found
    for choice in choices:
        for inner in _braces(choice):
            for rest in _braces(text[end + 1 :]):
                yield f"{text[:start]}{inner}{rest}"


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    """The leftmost braces that mean several words: where they stand, and what they offer."""
    found: tuple[int, int, list[int]] | None = None
    opened: list[tuple[int, list[int]]] = []
    for at, character in enumerate(text):
        if character == "{":
            opened.append((at, []))
        elif character == "," and opened:
            opened[-1][1].append(at)
        elif character == "}" and opened:
            start, commas = opened.pop()
            if (commas or _SEQUENCE.fullmatch(text, start + 1, at)) and (found is None or start < found[0]):
                found = (start, at, commas)
            if not opened and found is not None:
                break
    if found is None:
        return None
    start, end, commas = found
    if commas:
        return start, end, [text[before + 1 : after] for before, after in pairwise((start, *commas, end))]
    return start, end, _sequence(text[start + 1 : end])


def _sequence(text: str) -> list[str]:
    first, last = text.split("..")[:2]
    is_number = first.lstrip("-").isdigit()
    low, high = sorted((int(first), int(last)) if is_number else (ord(first), ord(last)))
    return [str(one) if is_number else chr(one) for one in range(low, min(high, low + MOST_BRACES) + 1)]

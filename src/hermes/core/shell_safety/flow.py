"""What passes from one command to the next: folders, standard input, known output."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.shell_safety.words import Word


@dataclass(frozen=True, slots=True)
class FoldersAfter:
    """The folders that a shell may be in after a command: on success, on failure."""

    ok: frozenset[str]
    fail: frozenset[str]

    @property
    def any(self) -> frozenset[str]:
        return self.ok | self.fail


@dataclass(frozen=True, slots=True)
class Feed:
    """What reaches the standard input of a command."""

    is_piped: bool = False
    is_fetched: bool = False
    is_odd: bool = False
    """An earlier command of the pipe names something that would need a question."""
    text: str | None = None


NO_FEED = Feed()
TAME_OUTPUT = re.compile(
    r"nproc|date( -u)?( ['\"]?\+[%A-Za-z0-9_.:]+['\"]?)?|whoami|id -u|id -g|uname( -[mrsn])?|hostname|arch|"
    r"git rev-parse (--short )?HEAD|git rev-parse --abbrev-ref HEAD|git branch --show-current|"
    r"git describe( --tags| --always)*|"
    r"wc -l < [\w./-]+|[^;&|`$<>]*\| wc -[lcw]|getconf _NPROCESSORS_ONLN|python3? --version"
)
"""Commands that print a number or a plain name."""


def literal_output(words: Sequence[Word], feed: Feed) -> str | None:
    """Return what ``echo`` or ``printf`` prints, if that is certain."""
    program, *rest = (word.text for word in words)
    if program not in ("echo", "printf") or not all(word.is_known for word in words):
        return feed.text if program == "cat" and len(words) == 1 else None
    text = " ".join(word for word in rest if not (program == "echo" and word in ("-n", "-e", "-ne", "-en", "-E")))
    if "\\" in text.replace("\\n", "") or ("%" in text and program == "printf"):
        return None
    return text.replace("\\n", "\n")

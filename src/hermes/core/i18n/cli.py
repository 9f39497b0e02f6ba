"""Say the sentences of the command line in Chinese.

The code holds them in English, where they are printed. This module finds the sentence by its English form and fills in
what the printed one was filled with. What the catalogue does not know stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hermes.core.i18n.cli_zh import cluster, dashboard, doctor, errors, examples, imports, profiles, state, wizard
from hermes.core.i18n.cli_zh import help as help_texts
from hermes.core.i18n.cli_zh import service as service_texts

SECTIONS: tuple[Mapping[str, str], ...] = (
    state.WORDS,
    state.STATUS,
    state.DOCTOR,
    doctor.CHECKS,
    doctor.AUDIT,
    doctor.REPAIRS,
    state.START,
    errors.ERRORS,
    errors.FAILURES,
    errors.SYSTEM,
    service_texts.SERVICE,
    service_texts.ELSEWHERE,
    service_texts.STATUS,
    service_texts.HELP,
    cluster.STATES,
    cluster.CLUSTER,
    profiles.PROFILES,
    dashboard.HELP,
    dashboard.SENTENCES,
    imports.IMPORTS,
    wizard.PROMPTS,
    wizard.MODEL,
    wizard.PLATFORM,
    wizard.TEST,
    help_texts.COMMANDS,
    help_texts.ARGPARSE,
    help_texts.VERBS,
    help_texts.OPTIONS,
    examples.EXAMPLES,
)
MAX_CHARS = 600  # a longer line is none of ours
MAX_DEPTH = 4  # what is filled in may be a sentence too
# A mark, an arrow or blanks in front of a sentence; columns; and where one sentence of a line ends.
_LEAD = re.compile(r"(?:[✓✗!→] | )*")
_COLUMNS = re.compile(r"(\S(?:.*?\S)?)( {2,})(?=\S)")
_JOINTS = re.compile(r"( → |; |(?<=[.!?]) (?=\S))")
_COUNT = re.compile(r"(\d+) ([a-z ]+?)(s?)")


def to_chinese(text: str) -> str:
    """Each line of a text in Chinese, as far as the catalogue knows it."""
    return "\n".join(_line(line, 0) if len(line) <= MAX_CHARS else line for line in text.split("\n"))


def display_width(text: str) -> int:
    """Measure the columns of a text: Chinese characters take two."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _line(line: str, depth: int) -> str:
    lead = _LEAD.match(line)
    start = lead.end() if lead is not None else 0
    head, body = line[:start], line[start:]
    rest = body[len(body.rstrip()) :]
    return head + _sentence(body.rstrip(), depth) + rest


def _sentence(text: str, depth: int) -> str:
    if not text or depth > MAX_DEPTH:
        return text
    if text in _exact():
        return _exact()[text]
    if text.endswith(".") and (whole := _exact().get(text[:-1])) is not None:
        return f"{whole}。"  # a summary as a sentence, whatever joints it has inside
    parts = [part for part in _JOINTS.split(text) if part]
    is_joined = len(parts) > 1 and "  " not in text
    if is_joined and all(_known(part, depth + 1) is not None for part in parts[::2]):
        return _joined(parts, depth)
    if (translated := _list(text, depth, is_whole=True) or _known(text, depth)) is not None:
        return translated
    if "  " in text:
        return "".join(_cells(text, depth))
    if is_joined:
        return _joined(parts, depth)
    if text.endswith(".") and (found := _sentence(text[:-1], depth + 1)) != text[:-1]:
        return f"{found}。"
    return _list(text, depth, is_whole=False) or text


def _joined(parts: Sequence[str], depth: int) -> str:
    """Sentences of one line, each by itself; a Chinese full stop brings its own room."""
    translated = "".join(_sentence(part, depth + 1) if place % 2 == 0 else part for place, part in enumerate(parts))
    return re.sub(r"(?<=[。？！]) (?!→)", "", translated)


def _list(text: str, depth: int, *, is_whole: bool) -> str | None:
    """What is listed with commas; None where nothing of it is known, or with ``is_whole`` not all."""
    parts = text.split(", ")
    if len(parts) == 1:
        return None
    known = [_known(part, depth + 1) for part in parts]
    if None in known if is_whole else not any(known):
        return None
    return "，".join(
        translated if translated is not None else part for translated, part in zip(known, parts, strict=True)
    )


def _cells(text: str, depth: int) -> Iterator[str]:
    """The columns of a row, each as wide as before where that is possible."""
    end = 0
    for found in _COLUMNS.finditer(text):
        cell = _sentence(found[1], depth + 1)
        yield cell + " " * max(1, len(found[0]) - display_width(cell))
        end = found.end()
    yield _line(text[end:], depth + 1)


def _known(text: str, depth: int) -> str | None:
    """A whole sentence in Chinese; None for one that the catalogue does not hold."""
    if (exact := _exact().get(text)) is not None:
        return exact
    if counted := _COUNT.fullmatch(text):
        form = state.COUNTED.get(counted[2]) or state.COUNTED.get(counted[2] + counted[3])
        if form is not None:
            return form.format(counted[1])
    for pattern, form, has_columns in _patterns():
        if ("  " in text) == has_columns and (found := pattern.fullmatch(text)):
            values = [_line(value, depth + 1) for value in found.groups()]
            last = found[len(values)]
            if (
                last.endswith(".")
                and found.end(len(values)) == len(text)
                and values[-1] == last
                and not form.endswith("}")
            ):
                return form.format(*values[:-1], last[:-1]) + "。"  # the stop of the sentence, not of what is filled in
            return form.format(*values)
    return None


@lru_cache(maxsize=1)
def _exact() -> dict[str, str]:
    return {
        key[_LEAD.match(key).end() :]: translated.format()  # type: ignore[union-attr] # it matches nothing too
        for section in SECTIONS
        for key, translated in section.items()
        if "{}" not in key
    }


@lru_cache(maxsize=1)
def _patterns() -> list[tuple[re.Pattern[str], str, bool]]:
    """The sentences with gaps, those with the most words of their own first, and whether they have columns."""
    forms = [(key, translated) for section in SECTIONS for key, translated in section.items() if "{}" in key]
    forms.sort(key=lambda form: -len(form[0]))
    return [
        (re.compile("(.*?)".join(map(re.escape, key.split("{}")))), translated, "  " in key.strip())
        for key, translated in forms
    ]

"""The judge against real bash: what changes a folder outside of the workspace is never judged silent.

Every form runs in a sandbox of its own (bubblewrap, no network, an empty root); without one nothing is run. The long
form: HERMES_BASH_FORMS=5000.
"""

from __future__ import annotations

import gc
import os
import posixpath
import random
import time

import pytest

from hermes.core.shell_safety.judge import Verdict, judge
from tests.fakes import bash_forms, bash_sandbox
from tests.fakes.everyday_commands import EVERYDAY, SCRIPTS

pytestmark = pytest.mark.one_python

GENERATED = int(os.environ.get("HERMES_BASH_FORMS", "400"))
SEED = int(os.environ.get("HERMES_BASH_SEED", "20261115"))
RUN_ANYWAY = 120
"""Of the forms that ask, so many are run too: the list would prove nothing if they changed nothing."""


def verdict(form: str) -> Verdict:
    return judge(form, folder="/w", home="/home/u", resolve=_resolve, read=bash_sandbox.FILES.get)


def _resolve(path: str) -> str:
    """As the kernel does in the sandbox, where /w/link leads to /victim."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
        if parts == ["w", "link"]:
            parts = ["victim"]
    return "/" + "/".join(parts)


@pytest.mark.slow
@pytest.mark.timeout(1800 if GENERATED > 1000 else 300)
def test_no_form_that_changes_the_victim_is_judged_silent() -> None:
    if why := bash_sandbox.why_not():
        pytest.skip(f"{why}; these forms are never run without a sandbox")
    forms = [*bash_forms.LIST, *bash_forms.grammar(GENERATED, SEED)]
    assert len(forms) >= 500
    verdicts = {form: verdict(form) for form in forms}
    silent = [form for form, judged in verdicts.items() if not judged.asks and not judged.is_refused]
    assert [form for form in silent if bash_sandbox.changes_victim(form)] == []
    asked = [form for form in forms if verdicts[form].asks]
    sample = random.Random(SEED).sample(asked, RUN_ANYWAY)
    changing = sum(map(bash_sandbox.changes_victim, sample))
    print(f"{len(forms)} forms, {len(silent)} silent; of {RUN_ANYWAY} that ask, {changing} change the victim")
    assert changing > RUN_ANYWAY // 3, "the forms must do what they are there for"


def test_of_the_everyday_commands_hardly_any_asks() -> None:
    assert len(EVERYDAY) >= 200
    files = {f"/home/ana/work/{name}": text for name, text in SCRIPTS.items()}
    asked = [command for command in EVERYDAY if _everyday(command, files).dangers or _everyday(command, files).refusal]
    print(f"{len(asked)} of {len(EVERYDAY)} everyday commands ask: {asked}")
    assert len(asked) <= len(EVERYDAY) * 0.05


def _everyday(command: str, files: dict[str, str]) -> Verdict:
    return judge(command, folder="/home/ana/work", home="/home/ana", resolve=posixpath.normpath, read=files.get)


STRINGS = int(os.environ.get("HERMES_FUZZ_STRINGS", "10000"))
MARKS = "$(){}[]`'\"<>|&;\\ \n\t=~*?!#-/\x00\rabc"


@pytest.mark.timeout(600)
def test_random_and_mutated_text_is_judged_at_once() -> None:
    chance = random.Random(SEED)
    known = [*bash_forms.LIST, *EVERYDAY]
    verdict("touch a > b; cat c; python3 -c 'print(1)'; node -e 1; sed -i s/a/b/ c")  # grammar and patterns are loaded
    gc.collect()
    gc.freeze()  # what the test runner holds is not the judge's to collect
    slowest, worst = 0.0, ""
    for number in range(STRINGS):
        text = _text(number, chance, known)
        began = time.thread_time()
        verdict(text)
        if (took := time.thread_time() - began) > slowest:
            slowest, worst = took, text
    gc.unfreeze()
    print(f"{STRINGS} texts, the slowest took {slowest * 1000:.1f} ms: {worst[:60]!r}")
    assert slowest < 0.5  # ten times the promise


def _text(number: int, chance: random.Random, known: list[str]) -> str:
    if number % 5 < 2:
        return chance.randbytes(chance.randrange(1, 300)).decode("utf-8", "replace")
    if number % 5 == 2:
        return "".join(chance.choices(MARKS, k=chance.randrange(1, 200)))
    text = chance.choice(known)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(3):
            case 0:
                text = text[:at] + text[at + chance.randrange(1, 5) :]
            case 1:
                text = text[:at] + chance.choice(MARKS) + text[at:]
            case _:
                text = text[:at] + chance.choice(known)[:300] + text[at:]
    return text

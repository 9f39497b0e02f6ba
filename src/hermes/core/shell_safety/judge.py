"""Judge a command line, or a piece of Python, before it runs.

``judge`` walks the syntax tree of a command line. To change something outside of the working folder a command must name
that place, compute a word, or run code. So a program that is not known to only read asks when one of its words names a
place outside, is not known, or is the name of a dangerous program. What is known to be dangerous asks by its class.
Nothing here touches a file: links are resolved and scripts are read by functions that are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.shell_safety.classes import CLASSES as CLASSES
from hermes.core.shell_safety.classes import Danger as Danger
from hermes.core.shell_safety.findings import Read, Resolve, Site
from hermes.core.shell_safety.judging import Judging
from hermes.core.shell_safety.places import is_secret as is_secret
from hermes.core.shell_safety.walk import walk_text


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge decided about a command.

    ``refusal``: the reason why everybody is refused. ``dangers``: what a person must approve. Neither: it runs.
    """

    refusal: str = ""
    dangers: tuple[Danger, ...] = ()
    only_reads: bool = False

    @property
    def is_refused(self) -> bool:
        return bool(self.refusal)

    @property
    def asks(self) -> bool:
        return bool(self.dangers) and not self.refusal

    def describe(self, words: Texts) -> str:
        """Say what a person reads before the decision."""
        return self.refusal or words.GAP.join(CLASSES[danger].says(words) for danger in self.dangers)

    def subject(self, back_end: str) -> str:
        """Name what a standing grant would allow; '' if it cannot be granted."""
        if not self.asks or not all(CLASSES[danger].grantable for danger in self.dangers):
            return ""
        return f"terminal/{back_end}: {'+'.join(sorted(self.dangers))}"

    def with_danger(self, danger: Danger) -> Verdict:
        if danger in self.dangers:
            return self
        return Verdict(self.refusal, (*self.dangers, danger), self.only_reads)


def judge(
    command: str,
    *,
    touches_host: bool = True,
    is_shared: bool = False,
    folder: str = "",
    home: str = "",
    mounted: Collection[str] = (),
    workspace: str = "",
    resolve: Resolve | None = None,
    read: Read | None = None,
) -> Verdict:
    """Judge a command line before it runs.

    ``touches_host`` is False in a sandbox, where most classes need no approval; the hard list holds there too.
    ``is_shared``: several people work in the workspace, so deleting folders is asked about in a sandbox too.
    ``folder`` is where it would run, ``workspace`` the folder whose files it may change (``folder`` if not given) and
    ``home`` the user's home, all absolute. ``mounted`` names devices that are in use.
    """
    judging = Judging(Site(folder, workspace or folder, home.rstrip("/"), frozenset(mounted), resolve, read), walk_text)
    judging.text(command, 0, frozenset({folder}))
    if judging.opens_outside and _DESCRIPTORS.search(command):
        judging.ask(Danger.UNJUDGED)
    if Danger.UNJUDGED in judging.found and not judging.refusal and "=" in command:
        # Once more with every variable holding what was last set: what is refused is refused in this form too.
        hopeful = Judging(judging.site, walk_text, is_trial=True)
        hopeful.text(command, 0, frozenset({folder}))
        judging.refusal = hopeful.refusal
    return _verdict(judging, command, touches_host=touches_host, is_shared=is_shared)


def judge_python(
    source: str,
    *,
    touches_host: bool = True,
    is_shared: bool = False,
    folder: str = "",
    home: str = "",
    resolve: Resolve | None = None,
    read: Read | None = None,
) -> Verdict:
    """Judge a piece of Python by the rule of ``python3 -c``."""
    judging = Judging(Site(folder, folder, home.rstrip("/"), frozenset(), resolve, read), walk_text)
    judging.python(source)
    return _verdict(judging, source, touches_host=touches_host, is_shared=is_shared)


_DESCRIPTORS = re.compile(r"/dev/(stdin|fd)|/proc/|dev.*(fd|stdin)")
"""A name by which a file that is open for reading can be opened for writing."""

_DELETES = re.compile(
    r"\b(?:rm|rmdir|shred|trash|unlink|rimraf|rmtree|removedirs|rmSync|rmdirSync|remove_dir_all|RemoveAll)\b|-delete\b"
)
"""Words by which code, or a command that cannot be judged, deletes folders."""


def _verdict(judging: Judging, text: str, *, touches_host: bool, is_shared: bool) -> Verdict:
    if judging.refusal:
        return Verdict(refusal=judging.refusal)
    if not touches_host and is_shared and {Danger.CODE, Danger.UNJUDGED} & judging.found and _DELETES.search(text):
        judging.ask(Danger.DELETE_TREE)
    found = (danger for danger in Danger if danger in judging.found)
    dangers = tuple(
        danger
        for danger in found
        if touches_host or CLASSES[danger].in_sandbox or (is_shared and CLASSES[danger].in_shared)
    )
    return Verdict(dangers=dangers, only_reads=judging.only_reads and not judging.found)

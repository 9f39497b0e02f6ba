"""Share what the pages of the setup wizard have in common."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.manifest import Manifest
from hermes.core.people.access import DmPolicy
from hermes.hosting.translation import tr

WIDTH = 78


@dataclass(frozen=True, slots=True)
class PlatformPage:
    """A platform that was gone through: what is to be written, by dotted key, and who we are there."""

    manifest: Manifest
    account: str
    changes: Mapping[str, str]
    name: str
    dm_policy: DmPolicy


def describe_left(done: Sequence[str]) -> str:
    if not done:
        return "Setup ended. Nothing was written."
    return f"Setup ended. Set up: {', '.join(done)}. Nothing else was written."


def wrap(text: str) -> str:
    translated = tr(text)
    if not translated.isascii():
        from hermes.cli.chat import lines

        return "\n".join(
            lines.text_of(row) for row in lines.wrap(lines.plain(translated), WIDTH, others=lines.plain("  "))
        )
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)

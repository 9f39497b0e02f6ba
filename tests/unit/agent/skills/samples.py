"""Skills written by a test."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
---
name: {name}
description: What it is for.
---

# When to Load

Now and then.
"""


def write_skill(folder: Path, name: str, text: str = "", **files: str) -> Path:
    """``files`` by name, with ``__`` for a slash and ``_md`` for its end."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_text(text or GOOD.format(name=name.rpartition("/")[2]), "utf-8")
    for file, content in files.items():
        path = place / (file.replace("__", "/").removesuffix("_md") + ".md")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")
    return place

"""SKILL.md is read tolerantly in its form, and strictly in what could act."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.skills.parse import MAX_BYTES, Skill, SkillError, Variable, parse, read_skill
from tests.unit.agent.skills.samples import write_skill

WHOLE = """\
---
name: invoices
description: >
  Sort the month's invoices,
  für das Finanzamt und 税务局.
version: 1.0
platforms: [Telegram, linux]
required_environment_variables:
  - INVOICE_TOKEN
  - name: INVOICE_URL
    prompt: where the service is
related_skills: [devops/server-care]
unknown: {deep: [1, two]}
---

# When to Load

→ jeden Monat。 See [limits](references/limits.md).
"""


def test_everything_a_skill_may_say_is_read(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "money/invoices", WHOLE)
    assert read_skill(folder, "money") == Skill(
        "invoices",
        "Sort the month's invoices, für das Finanzamt und 税务局.",
        folder,
        "money",
        (Variable("INVOICE_TOKEN"), Variable("INVOICE_URL", "where the service is")),
        ("telegram", "linux"),
        "1.0",
        ("devops/server-care",),
    )
    assert "→ jeden Monat。" in parse((folder / "SKILL.md").read_bytes()).body


@pytest.mark.parametrize("change", ["bom", "crlf", "both", "no name"])
def test_the_form_does_not_matter(tmp_path: Path, change: str) -> None:
    text = WHOLE.replace("\n", "\r\n") if change in {"crlf", "both"} else WHOLE
    if change == "no name":
        text = text.replace("name: invoices\n", "", 1)
    folder = write_skill(tmp_path, "invoices")
    (folder / "SKILL.md").write_bytes(text.encode("utf-8-sig" if change in {"bom", "both"} else "utf-8"))
    assert read_skill(folder).name == "invoices"
    assert "\r" not in parse((folder / "SKILL.md").read_bytes()).body


@pytest.mark.parametrize(
    "text, reason",
    [
        ("# Just text\n", "does not begin with front matter"),
        ("---\nname: a\n", "not closed"),
        ("---\nname: a\n---\n", "no description"),
        ("---\nname: ../x\ndescription: d\n---\n", "'../x' is not usable"),
        ("---\nname: a\ndescription: [b]\n---\n", "`description` in its front matter should be one text"),
        ("---\n- a\n- b\n---\n", "holds something else"),
        ("---\nname: [unclosed\n---\n", "not valid YAML"),
        ("---\nname: a\ndescription: !!python/object/apply:os.system ['id']\n---\n", "the YAML tag"),
        ("---\nname: a\ndescription: !own {a: 1}\n---\n", "the YAML tag '!own'"),
        ("---\na: &x [1]\nb: *x\ndescription: d\n---\n", "a YAML alias (line 2)"),
        ("---\n? [a, b]\n: c\n---\n", "a key that is no text"),
        ("---\ndescription: " + "[" * 50 + "]" * 50 + "\n---\n", "nested too deeply"),
        ("---\ndescription: " + "x" * 9000 + "\n---\n", "longer than 8,192"),
        ("---\nname: a\ndescription: d\nrequired_environment_variables: ['A B']\n---\n", "no name of a variable"),
    ],
)
def test_what_is_wrong_with_a_skill_is_said(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SkillError) as caught:
        read_skill(write_skill(tmp_path, "a", text))
    assert reason in str(caught.value)


def test_a_skill_that_is_too_long_not_utf8_or_no_file_is_not_read(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "a", "---\n" + "x" * MAX_BYTES)
    with pytest.raises(SkillError, match="longer than 65,536 bytes"):
        read_skill(folder)
    (folder / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n")
    with pytest.raises(SkillError, match="not UTF-8"):
        read_skill(folder)
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to("/etc/hostname")
    with pytest.raises(SkillError, match="it is a link"):
        read_skill(folder)

"""The screen of `gateway run`."""

from __future__ import annotations

from hermes.hosting import banner


def test_the_first_start_reads_as_it_should() -> None:
    model = "built-in, fetching once: 54 of 127 MB. All else works meanwhile."
    api = banner.api_line("http://127.0.0.1:8642", "hermes")
    skills = "Done: 14 new, 0 updated, 0 unchanged. 14 total bundled."
    assert banner.facts(home="~/.hermes", is_new=True, model=model, api=api, skills=skills) == [
        "Home     ~/.hermes, new, readable by you alone",
        "Syncing bundled skills into ~/.hermes/skills/ ...  Done: 14 new, 0 updated, 0 unchanged. 14 total bundled.",
        "Model    built-in, fetching once: 54 of 127 MB. All else works meanwhile.",
        "API      http://127.0.0.1:8642/v1   (its key: hermes api-key show)",
        "Chats    none yet",
    ]


def test_chats_and_warnings_join() -> None:
    lines = banner.facts(
        home="~/.hermes",
        is_new=False,
        model="m",
        api="h",
        chats=["telegram @b, connected"],
        warnings=["Nobody."],
    )
    assert lines[0] == "Home     ~/.hermes, readable by you alone"
    assert lines[-2:] == ["Chats    telegram @b, connected", "WARNING  Nobody."]


def test_only_a_person_is_told_what_to_type() -> None:
    assert banner.closing(seconds=0.84, command="hermes", is_terminal=False) == ["Gateway started in 0.8 s."]
    told = "\n".join(banner.closing(seconds=0.8, command="./scripts/hermes", is_terminal=True))
    assert "./scripts/hermes gateway status" in told
    assert "Closing this window stops it." in told


def test_the_box_is_a_box() -> None:
    assert len({len(line) for line in banner.opening()}) == 1


def test_a_home_is_shown_as_people_write_it() -> None:
    assert banner.short_home("/home/ana/.hermes", "/home/ana") == "~/.hermes"
    assert banner.short_home("/home/anabel/.hermes", "/home/ana") == "/home/anabel/.hermes"

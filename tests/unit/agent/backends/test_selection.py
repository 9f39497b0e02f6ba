"""Who works where: roles × settings × what the machine can do."""

from __future__ import annotations

from itertools import product

import pytest

from hermes.agent.backends.base import BackendName
from hermes.agent.backends.selection import Availability, choose
from hermes.config.agent_settings import OthersTerminal, OwnerTerminal, TerminalConfig
from hermes.core.roles import PersonRole

ALL = Availability()
NOTHING = Availability("no bwrap here", "no Landlock here", "no docker here", "no ssh here")
ONLY_LANDLOCK = Availability(bubblewrap="no bwrap here")
OWNER, ADMIN, USER, GUEST = PersonRole.OWNER, PersonRole.ADMIN, PersonRole.USER, PersonRole.GUEST


@pytest.mark.parametrize(
    "role, backend, others, available, expected",
    [
        (OWNER, "auto", "auto", ALL, "local"),
        (OWNER, "auto", "none", NOTHING, "local"),
        (OWNER, "local", "auto", NOTHING, "local"),
        (OWNER, "bubblewrap", "auto", ALL, "bubblewrap"),
        (OWNER, "bubblewrap", "auto", ONLY_LANDLOCK, None),
        (OWNER, "landlock", "auto", ONLY_LANDLOCK, "landlock"),
        (OWNER, "docker", "auto", ALL, "docker"),
        (OWNER, "docker", "auto", NOTHING, None),
        (OWNER, "ssh", "auto", ALL, "ssh"),
        (OWNER, "ssh", "auto", NOTHING, None),
        *((role, *row) for role in (ADMIN, USER) for row in (
            ("auto", "auto", ALL, "bubblewrap"),
            ("auto", "auto", ONLY_LANDLOCK, "landlock"),
            ("auto", "auto", NOTHING, None),
            ("local", "auto", ALL, "bubblewrap"),
            ("ssh", "auto", ALL, "bubblewrap"),
            ("docker", "auto", ALL, "bubblewrap"),
            ("auto", "bubblewrap", ONLY_LANDLOCK, None),
            ("auto", "landlock", ALL, "landlock"),
            ("auto", "docker", ALL, "docker"),
            ("auto", "docker", NOTHING, None),
            ("local", "none", ALL, None),
        )),
        (GUEST, "local", "auto", ALL, None),
        (GUEST, "auto", "docker", ALL, None),
    ],
)  # fmt: skip
def test_the_table(role: PersonRole, backend: str, others: str, available: Availability, expected: str | None) -> None:
    config = TerminalConfig(backend=OwnerTerminal(backend), others=OthersTerminal(others))
    choice = choose(config, available, role)
    assert choice.backend == (BackendName(expected) if expected else None)
    assert bool(choice.why) == (expected is None)


def test_nobody_but_the_owner_ever_leaves_a_sandbox() -> None:
    places = (BackendName.BUBBLEWRAP, BackendName.LANDLOCK, BackendName.DOCKER, None)
    for role, backend, others, available in product(
        (ADMIN, USER, GUEST), OwnerTerminal, OthersTerminal, (ALL, NOTHING, ONLY_LANDLOCK)
    ):
        assert choose(TerminalConfig(backend=backend, others=others), available, role).backend in places


def test_without_a_sandbox_people_are_told_why() -> None:
    why = choose(TerminalConfig(), NOTHING, USER).why
    assert why == (
        "There is no terminal for you: it needs a sandbox, but no bwrap here, and no Landlock here. "
        "The owner can install bubblewrap."
    )
    assert "no docker here" in choose(TerminalConfig(backend=OwnerTerminal.DOCKER), NOTHING, OWNER).why

"""The files of the image, and its entry point as an ordinary process; ``tests/e2e/test_image.py`` is the long form."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes.hosting.parent import Settings
from tests.fakes.programs import needs

CLONE = Path(__file__).parents[2]
ENTRYPOINT = CLONE / "docker" / "entrypoint"
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give root up")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as a builder reads it: comments out, continued lines joined."""
    lines = [line for line in (CLONE / "Dockerfile").read_text().splitlines() if not re.match(r"\s*#", line)]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


REPORT = """#!/bin/sh
echo "$(id -u):$(id -g) $HERMES_HOME $HOME $*"
"""
"""Stands in for Python: reports who runs it, with what."""


def run_entrypoint(data: Path, *words: str, entrypoint: Path = ENTRYPOINT, **environ: str) -> tuple[int, str, str]:
    python = data.parent / "python"
    python.write_text(REPORT)
    python.chmod(0o755)
    path = {"PATH": os.environ["PATH"], "HERMES_HOME": str(data), "HERMES_PYTHON": str(python)}
    done = subprocess.run(
        [str(entrypoint), *words], env={**path, **environ}, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def data() -> Iterator[Path]:
    """A new volume that other users can reach, as they cannot reach the folders of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "data").mkdir()
        yield Path(folder) / "data"


def test_every_file_that_the_image_is_made_of_reaches_the_builder() -> None:
    rules = [line for line in (CLONE / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*", "nothing reaches the builder unless it is named: no keys, no homes"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert {source.split("/")[0] for source in copied} == let_in
    for source in copied:
        assert (CLONE / source).exists(), source
    assert os.access(ENTRYPOINT, os.X_OK), "the builder keeps the mode"


def test_the_image_is_small_starts_as_the_command_line_and_is_checked_by_status() -> None:
    found = instructions()
    of_kind = dict(found)
    assert [rest for word, rest in found if word == "FROM"] == ["${BASE} AS build", "${BASE}"]
    assert next(rest for word, rest in found if word == "ARG").startswith("BASE=python:3.13-slim")
    assert of_kind["ENTRYPOINT"] == '["hermes"]'
    assert of_kind["CMD"] == '["gateway", "run"]'
    assert of_kind["HEALTHCHECK"].endswith('CMD ["hermes", "gateway", "status"]')
    assert of_kind["VOLUME"] == "/opt/data"
    assert "HERMES_HOME=/opt/data" in of_kind["ENV"]
    runs = " ".join(rest for word, rest in found if word == "RUN")
    assert "/usr/local/bin/hermes" in runs, "on the PATH for docker exec"
    assert not re.search(r"\b(gcc|build-essential|g\+\+)\b", runs)
    assert "--only-binary :all:" in runs


def test_the_compose_file_is_the_one_that_people_know() -> None:
    file: dict[str, Any] = yaml.safe_load((CLONE / "compose.yml").read_text())
    hermes, postgres = file["services"]["hermes"], file["services"]["postgres"]
    assert (hermes["image"], hermes["container_name"], hermes["command"]) == ("hermes-gateway", "hermes", "gateway run")
    assert (hermes["restart"], hermes["mem_limit"], hermes["cpus"]) == ("unless-stopped", "3500m", "2.5")
    assert hermes["volumes"] == ["${HERMES_DATA:-~/.hermes}:/opt/data"]
    assert {"TZ", "HERMES_UID", "HERMES_GID", "HERMES_DATABASE_URL"} <= hermes["environment"].keys()
    assert int(hermes["stop_grace_period"].removesuffix("s")) > Settings("/home", []).drain_seconds
    assert postgres["profiles"] == ["postgres"], "only for those who ask for it"
    assert {source.partition(":")[0] for source in postgres["volumes"]} <= file["volumes"].keys()


@as_root
@needs("setpriv", "util-linux")
def test_root_is_given_up_and_a_new_volume_gets_its_owner(data: Path) -> None:
    (data / "link").symlink_to("/etc/hostname")
    (data / ".env").write_text("A=1\n")
    before = os.stat("/etc/hostname").st_uid
    told = run_entrypoint(data, "gateway", "run", HERMES_UID="4711", HERMES_GID="4712")
    who = f"4711:4712 {data} {data}/agent-home"
    assert told == (0, f"{who} -P -m hermes gateway run\n", "Dropping root privileges (uid 4711, gid 4712)\n")
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in (data, *data.rglob("*"))}
    assert owners == {(4711, 4712)}
    assert os.stat("/etc/hostname").st_uid == before, "a link of the agent leads root nowhere"


@as_root
@needs("setpriv", "util-linux")
def test_without_numbers_the_owner_of_the_volume_is_taken_and_output_stays_clean(data: Path) -> None:
    os.chown(data, 5001, 5002)
    code, output, notes = run_entrypoint(data, "pairing", "list", "--json", "a b")
    assert (code, output[:10], notes) == (0, "5001:5002 ", "")
    assert output.endswith(" -P -m hermes pairing list --json a b\n")
    made = (data / "agent-home").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (5001, 5002, 0o700)


@as_root
@needs("setpriv", "util-linux")
def test_a_volume_of_root_is_given_to_the_user_of_the_image(data: Path) -> None:
    assert run_entrypoint(data, "doctor")[1].startswith("1000:1000 ")
    assert (data.stat().st_uid, data.stat().st_gid) == (1000, 1000)


@as_root
@pytest.mark.parametrize("value", ["ann", "10 00", "-1", "1;id"])
def test_a_user_that_is_no_number_is_refused_before_anything_changes(data: Path, value: str) -> None:
    code, output, notes = run_entrypoint(data, "--version", HERMES_UID=value)
    assert (code, output, "are numbers" in notes) == (78, "", True)
    assert data.stat().st_uid == 0


@as_root
def test_root_stays_root_only_if_that_is_asked_for(data: Path) -> None:
    code, output, notes = run_entrypoint(data, "--version", HERMES_UID="0", HERMES_GID="0")
    assert (code, output[:4], notes) == (0, "0:0 ", "Running as root, as HERMES_UID asks.\n")


def test_the_other_name_is_the_gateway_command(data: Path) -> None:
    other = data.parent / "hermes-gateway"
    other.symlink_to(ENTRYPOINT)
    own = {"HERMES_UID": str(os.getuid()), "HERMES_GID": str(os.getgid())}
    assert run_entrypoint(data, "status", entrypoint=other, **own)[1].endswith(" -P -m hermes gateway status\n")

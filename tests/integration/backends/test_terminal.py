"""The tool `terminal` on the owner's machine: what runs, what is told of it, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import time

import pytest

from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from tests.fakes.programs import needs
from tests.integration.backends.conftest import House, patience, processes_of, running, until_running

OWNER = PersonRole.OWNER


async def test_output_and_exit_code_come_back(house: House) -> None:
    told = await house.sh(house.person(role=OWNER), "echo one; echo two >&2; exit 3")
    assert told == "Exit code 3.\none\ntwo"
    assert not list((house.home / "outputs").glob("*")) if (house.home / "outputs").exists() else True


async def test_a_command_runs_in_the_folder_that_was_asked_for(house: House) -> None:
    ana = house.person(role=OWNER)
    (ana.workspace / "a b").mkdir()
    assert (await house.sh(ana, "pwd", folder="a b")).endswith(f"{ana.workspace}/a b")
    with pytest.raises(ToolError, match="outside the workspace"):
        await house.sh(ana, "pwd", folder="..")
    with pytest.raises(ToolError, match="There is no folder 'c'"):
        await house.sh(ana, "pwd", folder="c")


@pytest.mark.parametrize(
    "text", ["$(touch x) `id` \\ \"quoted\" 'single' ; & | * ~ ü 𝄞", "a\nb\tc", "-n --", "'; echo injected #"]
)
async def test_every_byte_of_a_command_reaches_the_shell(house: House, text: str) -> None:
    ana = house.person(role=OWNER)
    told = await house.sh(ana, f"cat <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT")
    assert told == f"Exit code 0.\n{text}"
    assert not (ana.workspace / "x").exists()


async def test_bytes_that_are_no_text_do_no_harm(house: House) -> None:
    told = await house.sh(house.person(role=OWNER), r"printf 'a\377b\000c'")
    assert told.startswith("Exit code 0.\na\ufffdb")


async def test_a_command_reads_nothing_from_us(house: House) -> None:
    assert await house.sh(house.person(role=OWNER), "cat; echo end") == "Exit code 0.\nend"


async def test_a_signal_is_named(house: House) -> None:
    told = await house.sh(house.person(role=OWNER), "kill -SEGV $$")
    assert told.startswith("Exit code 139 (SIGSEGV).")


async def test_a_command_has_usual_signals(house: House) -> None:
    """Ours are not passed on: whoever sends an interrupt or a termination inside is heard."""
    told = await house.sh(house.person(role=OWNER), "grep -E 'SigIgn|SigBlk' /proc/self/status")
    ignored = {line.split()[0]: int(line.split()[1], 16) for line in told.splitlines()[1:]}
    assert ignored["SigBlk:"] == 0
    assert ignored["SigIgn:"] & (1 << 1 | 1 << 14) == 0


async def test_of_a_long_output_both_ends_are_shown_and_the_rest_can_be_read(house: House) -> None:
    ana = house.person(role=OWNER)
    told = await house.sh(ana, "seq 1 20000")
    assert told.startswith("Exit code 0.\n1\n2\n3\n")
    assert told.endswith("\n19999\n20000")
    assert len(told) < 25_000
    how = told.split("read on with ")[1].split(" …]")[0]
    process_id = how.split("id='")[1].split("'")[0]
    offset = int(how.split("offset=")[1].rstrip(")"))
    seen = "".join(f"{number}\n" for number in range(1, 20001))[:offset]
    while True:
        page = (await house.call(ana, "process", action="log", id=process_id, offset=offset)).text
        *lines, last = page.splitlines(keepends=True)
        seen += "".join(lines)
        if "That is all" in last:
            break
        offset = int(last.split("offset=")[1].split(".")[0])
    assert seen.split() == [str(number) for number in range(1, 20001)]


async def test_an_endless_output_is_bounded(house: House) -> None:
    ana = house.person(role=OWNER)
    told = await house.sh(ana, "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end")
    assert told.endswith("the end")
    [kept] = (house.home / "outputs").iterdir()
    assert 8_000_000 < kept.stat().st_size < 9_000_000
    assert kept.stat().st_mode & 0o777 == 0o600
    assert b"bytes were not kept" in kept.read_bytes()


async def test_a_command_that_takes_too_long_is_ended_and_what_it_said_is_told(house: House, mark: str) -> None:
    began = time.monotonic()
    told = await house.sh(house.person(role=OWNER), f"echo so far; sleep {mark}", timeout=1)
    assert time.monotonic() - began < 20
    assert told.startswith("Stopped: it had not ended after 1 s.")
    assert told.endswith("so far")


async def test_what_a_command_leaves_behind_is_ended_with_it(house: House, mark: str) -> None:
    began = time.monotonic()
    told = await house.sh(house.person(role=OWNER), f"sleep {mark} & echo started")
    assert time.monotonic() - began < 20
    assert "What it had left running was ended with it." in told
    assert told.endswith("started")
    assert not running(mark)


@pytest.mark.parametrize("command", ["sleep {0}", "trap '' TERM; sleep {0}; sleep {0}", "(sleep {0} | cat) & wait"])
async def test_a_cancelled_call_ends_its_whole_group_before_it_returns(house: House, mark: str, command: str) -> None:
    call = asyncio.create_task(house.sh(house.person(role=OWNER), command.format(mark)))
    await until_running(mark)
    async with asyncio.timeout(20):
        while not house.groups:  # noqa: ASYNC110 - it runs a moment before its group is noted
            await asyncio.sleep(0.01)
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < patience(command)
    assert not processes_of(house.groups[0])
    assert not running(mark)
    assert not (house.home / "outputs").exists()


async def test_a_command_may_end_in_order(house: House) -> None:
    ana = house.person(role=OWNER)
    call = asyncio.create_task(house.sh(ana, "trap 'echo tidy > tidied; exit' TERM; touch ready; sleep 1000 & wait"))
    async with asyncio.timeout(20):
        while not (ana.workspace / "ready").exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (ana.workspace / "tidied").read_text() == "tidy\n"


@pytest.mark.parametrize(
    "arguments, why",
    [
        ({"command": " "}, "is empty"),
        ({"command": "true", "timeout": 9999}, "1 to 3600 seconds"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "x" * 200_000}, "longer than 120,000 bytes"),
        ({"command": "sleep 9 &", "background": True}, "Leave out the &"),
    ],
)
async def test_what_cannot_run_is_told(house: House, arguments: dict[str, object], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await house.call(house.person(role=OWNER), "terminal", **arguments)


@needs("python3")
async def test_code_runs_where_commands_run(house: House) -> None:
    ana = house.person(role=OWNER)
    output = await house.call(ana, "execute_code", code="import os\nprint(os.getcwd())\nprint('ü' * 3)")
    assert output.text == f"Exit code 0.\n{ana.workspace}\nüüü"
    with pytest.raises(ToolError, match="is empty"):
        await house.call(ana, "execute_code", code="")


@needs("python3")
async def test_code_and_commands_see_the_same_scrubbed_environment(house: House) -> None:
    house.environ |= {
        "OPENAI_API_KEY": "sk-abcdef",
        "HERMES_BASE_URL": "http://x",
        "HERMES_PROFILE": "work",
        "MINE": "yes",
    }
    house.set(env_passthrough=("MINE",))
    ana = house.person(role=PersonRole.OWNER)
    by_code = (await house.call(ana, "execute_code", code="import os\nprint(*sorted(os.environ), sep='\\n')")).text
    by_shell = await house.sh(ana, "env | cut -d= -f1 | sort")
    for told in (by_code, by_shell):
        names = set(told.splitlines()[1:]) - {"_", "PWD", "OLDPWD", "SHLVL", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
        assert names == {"PATH", "HOME", "LANG", "TERM", "HERMES_HOME", "HERMES_PROFILE", "MINE"}


async def test_a_guest_has_no_terminal(house: House) -> None:
    with pytest.raises(ToolError, match="needs the role user"):
        await house.sh(house.person(role=PersonRole.GUEST), "true")

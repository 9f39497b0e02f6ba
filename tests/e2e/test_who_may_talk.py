"""Who may talk, with real processes: a code, an approval by socket and by file, a revocation, an edited allowlist."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from hermes.hosting import paths
from tests.e2e.terminal import Terminal
from tests.fakes.telegram import FakeTelegram

ANA, BEN, EVE = 5550142, 5550188, 66
SECONDS = 30


async def hermes(terminal: Terminal, *words: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, beside the loop that plays Telegram."""
    return await asyncio.to_thread(terminal.hermes, *words)


async def here(terminal: Terminal, *words: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, where it is only asked."""
    return await asyncio.to_thread(terminal.here, *words)


async def told(telegram: FakeTelegram, user: int, text: str, *, name: str, expect: str) -> str:
    before = len(telegram.texts(user))
    telegram.user_says(text, chat=user, name=name)
    await telegram.wait_for(lambda: any(expect in said for said in telegram.texts(user)[before:]), SECONDS)
    return next(said for said in telegram.texts(user)[before:] if expect in said)


def code_in(text: str) -> str:
    found = re.search(r"pairing code: `?(\w{8})", text)
    assert found is not None, text
    return found[1]


async def tried(terminal: Terminal, *words: str) -> tuple[int, str]:
    done = await here(terminal, "gateway", "test", *words)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(180)
async def test_one_gateway_from_its_first_stranger_to_its_last(tmp_path: Path, telegram: FakeTelegram) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": telegram.token, "TELEGRAM_BASE_URL": telegram.url}
    with Terminal(tmp_path, **environ) as terminal:
        await _check_platform_test_without_gateway(terminal, telegram)
        await asyncio.to_thread(terminal.start_gateway)
        await _check_pairing_by_socket(terminal, telegram)
        await _check_pairing_by_file_and_revocation(terminal, telegram)
        await _check_edited_allowlist_counts_within_a_second(terminal, telegram)
        await _check_platform_test_with_gateway(terminal, telegram)


async def _check_platform_test_without_gateway(terminal: Terminal, telegram: FakeTelegram) -> None:
    code, said = await tried(terminal, "telegram")
    assert (code, "no home channel" in said, "✓ telegram is @test_bot" in said) == (2, True, True)
    code, said = await tried(terminal, "telegram", "--to", "7")
    assert (code, "The gateway is not running" in said) == (0, True)
    assert len(telegram.texts(7)) == 1
    assert (await tried(terminal, "nowhere"))[0] == 2


async def _check_pairing_by_socket(terminal: Terminal, telegram: FakeTelegram) -> None:
    shown = await told(telegram, ANA, "hi, are you there?", name="Ana", expect="pairing code")
    code = code_in(shown)
    assert f"hermes pairing approve telegram {code}" in shown
    assert code in (await here(terminal, "pairing", "list")).stdout
    standing = await here(terminal, "doctor", "--user", str(ANA))
    assert (standing.returncode, f"with the code {code}" in standing.stdout) == (1, True)
    wrong = await here(terminal, "pairing", "approve", "telegram", "WRONGONE")
    assert wrong.returncode == 1
    assert f"No such code. Waiting: telegram {code}, Ana, 0 min ago" in wrong.stderr
    done = await hermes(terminal, "pairing", "approve", "telegram", code)
    assert done.stdout == (
        f"✓ Ana (telegram {ANA}) may talk now. First to be approved here, so they are the owner. Nothing to restart.\n"
    )
    await told(telegram, ANA, "hello", name="Ana", expect="echo: hello")
    standing = await here(terminal, "doctor", "--user", f"telegram:{ANA}")
    assert standing.returncode == 0
    assert standing.stdout.startswith(f"✓ telegram {ANA} (Ana, owner): answered\n  approved by pairing, ")


async def _check_pairing_by_file_and_revocation(terminal: Terminal, telegram: FakeTelegram) -> None:
    # A second container: the same folder, and a socket that leads nowhere.
    code = code_in(await told(telegram, BEN, "me too", name="Ben", expect="pairing code"))
    reached = paths.socket(str(terminal.home))
    os.rename(reached, f"{reached}.hidden")
    try:
        done = await hermes(terminal, "pairing", "approve", "telegram", code)
        assert done.stdout == f"✓ Ben (telegram {BEN}) may talk now. Nothing to restart.\n", done.stderr
    finally:
        os.rename(f"{reached}.hidden", reached)
    await told(telegram, BEN, "hello", name="Ben", expect="echo: hello")

    assert (await here(terminal, "pairing", "revoke", "telegram", str(BEN))).returncode == 0
    await told(telegram, BEN, "and now?", name="Ben", expect="pairing code")
    assert not [said for said in telegram.texts(BEN) if "echo: and now?" in said]


async def _check_edited_allowlist_counts_within_a_second(terminal: Terminal, telegram: FakeTelegram) -> None:
    home = terminal.home
    await told(telegram, EVE, "let me in", name="Eve", expect="pairing code")
    (home / ".env").write_text(f"TELEGRAM_ALLOWED_USERS={EVE}\n")
    async with asyncio.timeout(20):  # it is taken up within a second
        while (await here(terminal, "doctor", "--user", str(EVE))).returncode:
            pass
    await told(telegram, EVE, "hello", name="Eve", expect="echo: hello")
    (home / ".env").write_text("TELEGRAM_ALLOWED_USERS=1\n")
    async with asyncio.timeout(20):
        while not (await here(terminal, "doctor", "--user", str(EVE))).returncode:
            pass
    before = len(telegram.texts(EVE))
    telegram.user_says("still?", chat=EVE, name="Eve")
    await told(telegram, ANA, "anything new?", name="Ana", expect="echo: anything new?")
    assert not [said for said in telegram.texts(EVE)[before:] if "echo" in said]


async def _check_platform_test_with_gateway(terminal: Terminal, telegram: FakeTelegram) -> None:
    code, said = await tried(terminal, "telegram", "--to", "7")
    assert code == 0
    assert re.search(r"✓ A test message is in telegram:7, [\d.]+ s there and back", said)
    assert len(telegram.texts(7)) == 2
    telegram.block(7)
    code, said = await tried(terminal, "telegram", "--to", "7")
    assert (code, "did not arrive: Telegram refused sendMessage: Forbidden" in said) == (1, True)
    telegram.refuse_credentials()
    code, said = await tried(terminal, "telegram", "--to", "7")
    assert (code, "Telegram refused getMe: Unauthorized" in said) == (1, True)

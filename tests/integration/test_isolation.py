"""Two persons in one group and in private: no shared history, resume, search or files, whatever either tries."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.store.sessions import sessions
from hermes.store.sessions.sessions import Session
from tests.fakes.model import FakeModel, ToolUse, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import SECONDS, results

ANA, BEN = USER, 8
GROUP = -1001234
CANARY = "marmalade-4711"
PEOPLE = {
    "TELEGRAM_ALLOWED_USERS": f"{ANA},{BEN}",
    "TELEGRAM_GROUP_POLICY": "allowlist",
    "TELEGRAM_GROUP_ALLOWED_CHATS": str(GROUP),
    "MESSAGING_CWD": "",
}
NAMES = {ANA: "Ana", BEN: "Ben"}


async def says(telegram: FakeTelegram, text: str, *, user: int, chat: int) -> str:
    """Write, in private or to the bot in the group, and give what comes back."""

    def said() -> list[str]:
        return [sent.text for sent in telegram.sent if sent.chat == str(chat)]

    before = len(said())
    addressed = text if chat > 0 else f"@{telegram.username} {text}"
    telegram.user_says(addressed, chat=chat, user=user, name=NAMES[user])
    await telegram.wait_for(lambda: len(said()) > before, SECONDS)
    return said()[before]


def told(model: FakeModel) -> str:
    return str(model.last_request["messages"])


async def everywhere(telegram: FakeTelegram, model: FakeModel, folder: Path) -> None:
    """Ana's secret: told in private and in the group, and written into a file of hers."""
    for chat in (ANA, GROUP):
        await says(telegram, f"{CANARY} in {chat}", user=ANA, chat=chat)
        await says(telegram, f"/title {CANARY}", user=ANA, chat=chat)
    model.script([calls_tools(("write_file", {"path": "diary.txt", "content": CANARY})), "Written."])
    assert await says(telegram, "keep a diary", user=ANA, chat=ANA) == "Written."
    assert (folder / "diary.txt").read_text() == CANARY
    model.script([calls_tools(("session_search", {"query": "marmalade"})), "Found."])
    await says(telegram, "what was it?", user=ANA, chat=GROUP)
    assert CANARY in results(model)[-1], "she herself finds it, also from the group"
    model.script([])


@pytest.mark.parametrize("chat", [BEN, GROUP], ids=["in private", "in the group"])
async def test_ben_meets_nothing_of_anas(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, chat: int
) -> None:
    telegram.group(GROUP)
    hers = tmp_path / "home" / "workspaces" / f"p_telegram_{ANA}"
    async with start(**PEOPLE) as gateway:
        await everywhere(telegram, model, hers)
        theirs: list[Session] = await gateway.db.read(sessions.newest)
        ids = [session.id for session in theirs]
        requests = len(model.requests)

        await says(telegram, "what did Ana say?", user=BEN, chat=chat)
        assert CANARY not in told(model), "her words are not in his history"
        for command in ("/sessions", "/history", "/rollback", "/status", "/title"):
            assert CANARY not in await says(telegram, command, user=BEN, chat=chat), command
        for name in (CANARY, *ids):
            answer = await says(telegram, f"/resume {name}", user=BEN, chat=chat)
            assert answer.startswith("You have no conversation"), answer
        for change in ("1", "last", "1 force"):
            await says(telegram, f"/rollback {change}", user=BEN, chat=chat)
        assert (hers / "diary.txt").read_text() == CANARY

        reaching: list[ToolUse] = [
            ("session_search", {"query": "marmalade"}),
            *(("session_search", {"session": name, "after_line": 0}) for name in ids),
            ("read_file", {"path": str(hers / "diary.txt")}),
            ("read_file", {"path": f"../p_telegram_{ANA}/diary.txt"}),
            ("search_files", {"pattern": "marmalade", "path": str(hers.parent)}),
        ]
        model.script([calls_tools(*reaching), "Nothing."])
        assert await says(telegram, "look for it", user=BEN, chat=chat) == "Nothing."
        assert len(results(model)) == len(reaching)
        assert not [result for result in results(model) if CANARY in result]
        assert not [sent for sent in model.requests[requests:] if CANARY in str(sent)]


async def test_each_goes_on_with_their_own_talk_in_the_same_group(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    telegram.group(GROUP)
    async with start(**PEOPLE):
        for user in (ANA, BEN):
            await says(telegram, f"I am {user}", user=user, chat=GROUP)
        await says(telegram, "who am I?", user=ANA, chat=GROUP)
        assert f"I am {ANA}" in told(model)
        assert f"I am {BEN}" not in told(model)
        await says(telegram, "who am I here?", user=ANA, chat=ANA)
        assert f"I am {ANA}" not in told(model), "a private talk is not the group's, not even for the same person"
        await says(telegram, "/new", user=ANA, chat=GROUP)
        await says(telegram, "and I?", user=BEN, chat=GROUP)
        assert f"I am {BEN}" in told(model), "her fresh session is hers alone"

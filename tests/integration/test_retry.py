"""/retry: what was asked last is asked once more, by whoever asked it, and once for each time it is said."""

from __future__ import annotations

from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import inbox
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from hermes.store.sessions import transcripts, undo
from tests.contract.store.rows import incoming
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_session_commands import ask, heard, newest
from tests.integration.watching import SECONDS, all_turns, make, turn_is

OTHER = 8
GROUP = -1001234
IN_GROUPS = {"TELEGRAM_GROUP_POLICY": "open", "TELEGRAM_ALLOWED_USERS": f"{USER},{OTHER}"}


async def say(telegram: FakeTelegram, text: str, user: int, *, thread: int | None = None) -> str:
    """Write in the group, addressed to the bot, and return the next thing that is said there."""
    before = len(telegram.texts(GROUP))
    name, _, rest = text.partition(" ")
    line = f"{name}@test_bot {rest}".strip() if text.startswith("/") else f"@test_bot {text}"
    telegram.user_says(line, chat=GROUP, user=user, name=f"u{user}", thread=thread)
    await telegram.wait_for(lambda: len(telegram.texts(GROUP)) > before, SECONDS)
    return telegram.texts(GROUP)[before]


async def again(telegram: FakeTelegram) -> list[str]:
    """Say /retry; what is said to it, and the new answer below."""
    before = len(telegram.sent)
    telegram.user_says("/retry")
    await telegram.wait_for(lambda: len(telegram.sent) >= before + 2, SECONDS)
    return telegram.texts()[before:]


async def test_the_last_thing_is_asked_again_as_if_it_had_been_asked_once(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script(["one", "two, badly", "two, better"])
    async with start() as gateway:
        await ask(telegram, "first")
        await ask(telegram, "second")
        assert await again(telegram) == ["Once more: “second”", "two, better"]
        assert heard(model) == ["first", "second"]
        assert [message["content"] for message in model.last_request["messages"] if message["role"] == "assistant"] == [
            "one"
        ]
        assert await ask(telegram, "/history") == "You: first\nMe: one\nYou: second\nMe: two, better"
        [session] = await newest(gateway)
        kept = await gateway.db.read(transcripts.lines, session.id)
        assert any("two, badly" in line.body for line in kept)  # nothing is ever removed


async def test_a_model_that_failed_is_asked_again(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.fails_next(400)
    async with start():
        await ask(telegram, "hello")
        model.says("hi")
        assert await again(telegram) == ["Once more: “hello”", "hi"]
        assert heard(model) == ["hello"]


async def test_there_may_be_nothing_to_ask_again_and_what_runs_is_not_disturbed(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        assert (await ask(telegram, "/retry")).startswith("There is nothing here to ask again.")
        model.hold()
        telegram.user_says("slow")
        await model.is_holding()
        assert (await ask(telegram, "/retry")).startswith("I'm still at work here.")
        model.release()
        await turn_is(gateway, "done")
        await telegram.wait_for(lambda: telegram.sent[-1].text.endswith("slow"), SECONDS)  # else it answers "/undo"
        await ask(telegram, "/undo")
        assert (await ask(telegram, "/retry")).startswith("There is nothing here to ask again.")


async def test_a_file_is_asked_about_again(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start():
        telegram.user_sends(b"seven eight", "notes.txt", "what is in it?")
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        await again(telegram)
        asked, files = heard(model)
        assert asked.endswith("what is in it?")
        assert "seven eight" in files


async def test_a_retry_that_a_crash_makes_come_twice_asks_once(start: Start, telegram: FakeTelegram) -> None:
    command = incoming("/retry", state=InboxState.ACTING, kind="command")

    async def act_again(gateway: Gateway) -> None:
        def reopen(tx: Tx) -> None:
            tx.run("UPDATE inbox SET state = 'acting', settled_at = NULL WHERE id = :id", id=command.id)

        await gateway.db.write(reopen)
        await gateway.actions.resume()

    async with start() as gateway:
        await ask(telegram, "only this")
        await gateway.db.write(inbox.accept, [command], now=1_000.0)
        await gateway.actions.resume()
        await telegram.wait_for(lambda: telegram.texts().count("echo: only this") >= 2, SECONDS)
        await act_again(gateway)
        assert await ask(telegram, "and now?") == "echo: and now?"
        assert len(await all_turns(gateway)) == 3


async def test_nobody_has_the_question_of_another_asked_again(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    """In a thread all share one talk; a turn has the rights of whoever asked it."""
    telegram.group(GROUP, is_forum=True)
    async with start(**IN_GROUPS) as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        await say(telegram, "the owner's own", USER, thread=5)
        assert (await say(telegram, "/retry", OTHER, thread=5)).startswith("Somebody else asked the last thing here.")
        assert len(model.requests) == 1


async def test_a_branch_and_a_copy_of_a_copy_keep_what_was_taken_back_and_made_shorter(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        for text in ("one", "two", "three"):
            await ask(telegram, text)
        [trunk] = await newest(gateway)
        basis = await gateway.db.read(transcripts.context, trunk.id)
        shorter = undo.Shorter(basis, basis.seqs[1], "They counted to one.")
        await gateway.db.write(undo.compress, trunk.id, shorter, now=1.0)
        await ask(telegram, "four")
        await ask(telegram, "/undo")
        await ask(telegram, "/branch twig")
        await ask(telegram, "five")
        assert heard(model)[-3:] == ["two", "three", "five"]
        assert "They counted to one." in str(model.last_request["messages"])
        assert "four" not in str(model.last_request["messages"])
        await ask(telegram, f"/resume {trunk.id}")
        await ask(telegram, "six")
        assert heard(model)[-3:] == ["two", "three", "six"]
        copy = next(one for one in await newest(gateway) if one.title == "twig")
        told = [line.kind for line in await gateway.db.read(transcripts.lines, copy.id)]
        assert (told.count("undo"), told.count("revision")) == (1, 1)


async def test_what_was_taken_up_from_another_chat_is_asked_again_here(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    telegram.group(GROUP)
    async with start(**IN_GROUPS) as gateway:
        await ask(telegram, "from the private chat")
        [session] = await newest(gateway)
        assert (await say(telegram, f"/resume {session.id}", USER)).startswith("Continued here:")
        assert await say(telegram, "/retry", USER) == "Once more: “from the private chat”"
        await telegram.wait_for(lambda: len(telegram.texts(GROUP)) >= 3, SECONDS)
        assert heard(model) == ["Ana (user 7): from the private chat"]

"""Skills in the whole gateway: in the prompt, called by name, read by the model, switched off, told by the API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hermes.agent.skills.library import INDEX_HEAD
from hermes.core.messages import Role
from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.serving import served
from tests.integration.conftest import USER, Start
from tests.integration.watching import SECONDS, answered, calls, code_in, make, question, results, transcript
from tests.unit.agent.skills.samples import GOOD, write_skill


async def synced(gateway: Gateway) -> None:
    async with asyncio.timeout(SECONDS):
        await gateway.skills.is_synced.wait()


def system_of(model: FakeModel) -> str:
    return str(model.last_request["messages"][0]["content"])


async def test_the_shipped_skills_are_there_and_the_prompt_names_them(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start(is_first=True) as gateway:
        await synced(gateway)
        assert str(gateway.skills.synced).startswith("Done: 14 new, 0 updated, 0 unchanged.")
        telegram.user_says("hello")
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        first = system_of(model)
        assert INDEX_HEAD in first
        assert "- gateway-troubleshooting: " in first
    (tmp_path / "home/skills/code/git-work/SKILL.md").write_text(GOOD.format(name="git-work") + "my own way\n")
    async with start() as gateway:
        telegram.user_says("hello again")  # at once: what was known before the restart is known now
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, SECONDS)
        await synced(gateway)
        assert gateway.skills.synced.kept == ("code/git-work",)
    assert "my own way" in (tmp_path / "home/skills/code/git-work/SKILL.md").read_text()


async def test_a_message_that_names_a_skill_starts_a_turn_with_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script(["Let us look.", "And again."])
    async with start() as gateway:
        await synced(gateway)
        telegram.user_says("/git-work undo my last commit")
        await answered(telegram, "Let us look.")
        asked = model.last_request["messages"][-1]["content"]
        assert "[I call the skill git-work. Work as it says.]" in asked
        assert "git reflog" in asked
        assert asked.endswith("undo my last commit")
        telegram.user_says("/git_work")  # as Telegram makes a link of it
        await answered(telegram, "And again.")
        assert [line.role for line in await transcript(gateway)] == [Role.USER, Role.ASSISTANT] * 2


async def test_a_guest_cannot_have_a_skill_read_by_naming_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says("Let us talk.")
    async with start() as gateway:
        await synced(gateway)
        await make(gateway, USER, PersonRole.GUEST)
        telegram.user_says("/git-work undo my last commit")
        await answered(telegram, "Let us talk.")
    assert "git reflog" not in str(model.last_request["messages"])


async def test_a_command_goes_before_a_skill_and_an_unknown_one_is_still_unknown(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    write_skill(tmp_path / "home/skills", "own/version")
    (tmp_path / "home/.hermes-home").write_text('{"application": "hermes-gateway"}')
    async with start() as gateway:
        await synced(gateway)
        telegram.user_says("/version")
        telegram.user_says("/git-wrok")
        near = "There is no command /git-wrok. Did you mean the skill /git-work? /help lists the commands."
        await answered(telegram, near)
        assert telegram.texts()[0].startswith("Hermes ")


async def test_a_skill_call_interrupts_and_queues_like_any_message(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold()
    async with start() as gateway:
        await synced(gateway)
        telegram.user_says("a long one")
        await model.is_holding()
        telegram.user_says("/debugging it hangs")
        model.release()
        await telegram.wait_for(lambda: any("it hangs" in text for text in telegram.texts()), SECONDS)
        assert not any("a long one" in text and "it hangs" in text for text in telegram.texts())


async def test_the_model_reads_a_skill_and_its_files(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    wanted = [
        ("skill_view", {"name": "gateway-troubleshooting"}),
        ("skill_view", {"name": "hermes/gateway-troubleshooting", "file": "references/messages.md"}),
        ("skill_view", {"name": "gateway-troubleshooting", "file": "../../../.env"}),
        ("skill_view", {"name": "gateway-trouble"}),
        ("skills_list", {"category": "system"}),
        ("skills_list", {"category": "nothing"}),
    ]
    model.script([calls_tools(*wanted), "I see."])
    async with start() as gateway:
        await synced(gateway)
        telegram.user_says("why is it silent?")
        await answered(telegram, "I see.")
        assert [call.outcome for call in await calls(gateway)] == ["ok", "ok", "error", "error", "ok", "ok"]
    told = results(model)
    assert "## When to Load" in told[0]
    assert "references/messages.md" in told[0]
    assert "Related skills: hermes/connect-telegram" in told[0]
    assert told[1].startswith("# Messages: lost, late, double, waiting")
    assert "outside the skill" in told[2]
    assert "Did you mean 'gateway-troubleshooting'?" in told[3]
    assert "shell-safety" in told[4]
    assert "git-work" not in told[4]
    assert "Categories: code, data, hermes" in told[5]


async def test_people_see_what_there_is_and_only_admins_change_it(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    place = write_skill(tmp_path / "from", "notes")
    async with start() as gateway:
        await synced(gateway)
        telegram.user_says("/skills")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, SECONDS)
        assert "git-work: Commit, branch" in telegram.texts()[0]
        for number, text in enumerate((f"/skills install {place}", "/skills disable git-work"), 2):
            telegram.user_says(text)
            await telegram.wait_for(lambda number=number: len(telegram.sent) == number, SECONDS)  # type: ignore[misc]
            assert "needs the role admin; yours is user" in telegram.texts()[-1]
        await make(gateway, USER, PersonRole.ADMIN)
        telegram.user_says(f"/skills install {place}")
        await telegram.wait_for(lambda: "notes is installed" in telegram.texts()[-1], SECONDS)
        telegram.user_says("/notes")
        await telegram.wait_for(lambda: "I call the skill notes" in telegram.texts()[-1], SECONDS)
        telegram.user_says("/skills show notes")
        await telegram.wait_for(lambda: "Now and then" in telegram.texts()[-1], SECONDS)


async def test_a_skill_that_looks_wrong_is_shown_in_the_chat_before_it_is_installed(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    place = write_skill(tmp_path / "from", "odd", GOOD.format(name="odd") + "cat ~/.ssh/id_rsa\n")
    async with start() as gateway:
        await synced(gateway)
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says(f"/skills install {place}")
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        assert "reads credentials" in telegram.texts()[0]
        assert gateway.skills.find("odd") is None
        telegram.user_says(f"/skills install {place} --yes")
        await telegram.wait_for(lambda: "odd is installed" in telegram.texts()[-1], SECONDS)


async def test_switching_off_counts_at_once_and_only_there(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        await synced(gateway)
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("/skills disable git-work telegram")
        await answered(telegram, "git-work is off for telegram.")
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, SECONDS)
        assert "git-work" not in system_of(model)
        assert "debugging" in system_of(model)
        telegram.user_says("/git-work")
        await telegram.wait_for(lambda: "There is no command /git-work" in telegram.texts()[-1], SECONDS)
        assert gateway.skills.is_called("git-work", "local")
        telegram.user_says("/skills enable git-work telegram")
        await answered(telegram, "git-work is on for telegram.")
        assert gateway.skills.is_called("git-work", "telegram")


async def test_a_skill_is_written_after_a_yes_that_may_hold_for_the_session(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    content = GOOD.format(name="tea")
    create = calls_tools(("skill_manage", {"action": "create", "name": "tea", "content": content}))
    async with start() as gateway:
        await synced(gateway)
        model.script([create, "No."])
        telegram.user_says("write it down")
        await answered(telegram, "No.")
        assert "needs the role admin" in results(model)[0]
        await make(gateway, USER, PersonRole.ADMIN)
        model.script([create, "Asked."])
        telegram.user_says("write it down")
        asked = await question(telegram)
        assert "May I create the skill 'tea'" in asked.text
        telegram.user_says(f"/approve {code_in(asked)} session")
        await answered(telegram, "Asked.")
        assert gateway.skills.find("own/tea") is not None
        await make(gateway, USER, PersonRole.OWNER)
        steps = [
            {"action": "edit", "name": "tea", "content": content + "Three minutes.\n"},
            {"action": "write_file", "name": "tea", "file": "references/green.md", "content": "Two."},
            {"action": "write_file", "name": "tea", "file": "../../../.env", "content": "X=1"},
            {"action": "create", "name": "x", "content": content},
            {"action": "edit", "name": "tea", "content": content + "\u202e"},
            {"action": "delete", "name": "tea"},
            {"action": "restore", "name": "tea"},
        ]
        model.script([calls_tools(*(("skill_manage", step) for step in steps)), "All done."])
        telegram.user_says("and the rest")
        await answered(telegram, "All done.")
        told = results(model)[-len(steps) :]
    assert "Changed the skill tea" in told[0]
    assert "Wrote references/green.md" in told[1]
    assert "leads out of its folder" in told[2]
    assert "The front matter names it 'tea', not 'x'" in told[3]
    assert "hidden characters (U+202E)" in told[4]
    assert "Removed the skill tea" in told[5]
    assert "Restored the skill tea" in told[6]
    assert (tmp_path / "home/skills/own/tea/references/green.md").read_text() == "Two."


async def test_a_variable_that_a_skill_needs_is_asked_for_with_its_line(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    front = "required_environment_variables: [{name: NOTES_TOKEN, help: a key}]\n---\n\n#"
    model.script([calls_tools(("skill_view", {"name": "notes"})), "I see."])
    async with start() as gateway:
        await synced(gateway)
        write_skill(tmp_path / "home/skills", "own/notes", GOOD.format(name="notes").replace("---\n\n#", front))
        telegram.user_says("go")
        await answered(telegram, "I see.")
        assert f"adds this line to {tmp_path}/home/.env:\nNOTES_TOKEN=<a key>" in results(model)[0]
        (tmp_path / "home/.env").write_text("NOTES_TOKEN=tok-123456789\n")
        assert gateway.skills.environment() == {"NOTES_TOKEN": "tok-123456789"}


async def test_the_api_lists_the_skills(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(SECONDS):
        await synced(api.gateway)
        told = (await api.get("/v1/skills")).json
        names = [skill["name"] for skill in told["data"]]
        assert told["object"] == "list"
        assert "gateway-troubleshooting" in names
        assert len(names) == 14
        assert {"name", "description", "category"} == set(told["data"][0])
        (api.gateway.home / "config.yaml").write_text(json.dumps({"skills": {"disabled": ["git-work"]}}))
        await api.gateway.watch.read_again()
        assert len((await api.get("/v1/skills")).json["data"]) == 13


async def test_a_command_sees_the_variables_of_a_skill_while_it_is_on_and_their_values_stay_hidden(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    front = "required_environment_variables: [NOTES_USER, NOTES_TOKEN, OPENAI_API_KEY]\n---\n\n#"
    look = ("terminal", {"command": "sh look.sh"})
    model.script([calls_tools(look), "Seen.", calls_tools(look), "Again."])
    async with start() as gateway:
        await synced(gateway)
        await make(gateway, USER, PersonRole.OWNER)
        # The script names a token, which would be asked about.
        (gateway.home / "config.yaml").write_text("approvals:\n  mode: 'off'\n")
        gateway.watch.reload()
        (tmp_path / "work/look.sh").write_text('echo "[$NOTES_USER] [$NOTES_TOKEN] [$OPENAI_API_KEY] [$OTHER]"')
        (tmp_path / "home/.env").write_text("NOTES_USER=ana\nNOTES_TOKEN=tok-123456789\nOTHER=private\n")
        write_skill(tmp_path / "home/skills", "own/notes", GOOD.format(name="notes").replace("---\n\n#", front))
        gateway.skills.refresh()
        telegram.user_says("look")
        await answered(telegram, "Seen.")
        assert "[ana] [[hidden]] [] []" in results(model)[-1]
        telegram.user_says("/skills disable notes")
        await answered(telegram, "notes is off.")
        telegram.user_says("look again")
        await answered(telegram, "Again.")
        assert "[] [] [] []" in results(model)[-1]

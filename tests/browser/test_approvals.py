"""An approval of a chat on a phone is answered in the browser."""

from __future__ import annotations

from pathlib import Path

from hermes.core.roles import PersonRole
from tests.browser.conftest import Desk
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.watching import answered, dangers, make, question, turn_is


async def test_approval_asked_on_telegram_is_answered_in_the_browser(
    desk: Desk, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    page = await desk.signed_in("approvals")
    await page.wait_text("Nothing waits for an answer")
    await make(desk.api.gateway, 7, PersonRole.OWNER)
    model.script([calls_tools(("danger", {"text": "bang\u202e"})), "All done."])
    telegram.user_says("do it")
    await question(telegram)
    await turn_is(desk.api.gateway, "waiting")
    await page.wait("document.querySelector('.approval')")  # it appears by itself
    await page.click(".approval details summary")
    shown = await page.text(".approval")
    assert "⟨U+202E⟩" in shown or "\\u202e" in shown  # a mark that would turn the text around is shown by its number
    assert "\u202e" not in shown
    await page.wait("document.querySelector('nav.side .badge')?.innerText === '1'")
    assert dangers(tmp_path) == []
    await page.press_button("Approve", ".approval")
    await answered(telegram, "All done.")
    await page.wait_text("Nothing waits for an answer")
    assert len(dangers(tmp_path)) == 1
    assert page.problems == []

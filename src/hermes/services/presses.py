"""Act on a pressed button: answer an approval, let a stranger in or refuse, say who is the owner."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hermes.config import Config
from hermes.core.approval import read_button
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError, PlatformError
from hermes.core.i18n.en import Texts
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage, Press
from hermes.core.people.access import OWNER_NO, OWNER_YES
from hermes.core.people.pairing import read_button as read_pairing_button
from hermes.core.ports import Adapter, AnswersPresses
from hermes.core.roles import Action, PersonRole, may
from hermes.services.approvals import AnswerOutcome, Approvals
from hermes.services.inbound.answers import Answers, words_for
from hermes.services.people.owners import Owners
from hermes.services.people.pairing import Pairings
from hermes.store import people
from hermes.store.db import Database
from hermes.store.people import Person

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PressResult:
    """The sentence about a press, and whether the press changed anything."""

    text: str
    counts: bool = False


class Presses:
    """Acts on stored presses. Their effect may run twice after a crash: the second time finds it decided."""

    def __init__(
        self,
        db: Database,
        config: Callable[[], Config],
        approvals: Approvals,
        pairings: Pairings,
        owners: Owners,
        answers: Answers,
        adapter_of: Callable[[Target], Adapter | None],
    ) -> None:
        self._db = db
        self._config = config
        self._approvals = approvals
        self._pairings = pairings
        self._owners = owners
        self._answers = answers
        self._adapter_of = adapter_of

    async def act(self, event_id: str, press: Press) -> None:
        result = await self._decide(press)
        is_shown = await self._show_presser(press, result.text)
        # A press in vain is nobody's business but the presser's.
        is_private = is_shown and not result.counts
        message = None if is_private else OutboundMessage(press.session_key.target, result.text)
        await self._answers.settle(event_id, message)

    async def _decide(self, press: Press) -> PressResult:
        platform = press.session_key.platform
        person = await self._db.read(people.find, platform, press.sender_id)
        words = words_for(self._config(), person, press)
        if (decision := read_pairing_button(press.data)) is not None:
            return await self._decide_pairing(person, words, *decision)
        if press.data in (OWNER_YES, OWNER_NO):
            is_owner = press.data == OWNER_YES
            answer = await self._owners.answer(press.session_key, press.sender_id, words, is_owner=is_owner)
            return PressResult(answer.text, counts=answer.counts)
        button = read_button(press.data)
        if button is None:
            return PressResult(words.OLD_BUTTON)
        answered = await self._approvals.answer(
            button.approval_id, allow=button.allow, scope=button.scope, platform=platform, sender_id=press.sender_id
        )
        return PressResult(answered.sentence(words, allow=button.allow), counts=answered.answer is AnswerOutcome.TAKEN)

    async def _decide_pairing(
        self, person: Person | None, words: Texts, platform: str, code: str, approve: bool
    ) -> PressResult:
        """Everybody in a chat may press the button under a stranger's request; only some may decide."""
        if person is None or not may(PersonRole(person.role), Action.MANAGE_PEOPLE):
            return PressResult(words.NOT_YOURS_TO_LET_IN)
        by = person.name or person.id
        try:
            if approve:
                approved = await self._pairings.approve(platform, code, by=by, words=words)
                name = approved.pairing.name or approved.pairing.user_id
                return PressResult(words.MAY_TALK_NOW.format(name=name), counts=True)
            refused = await self._pairings.refuse(platform, code, by=by, words=words)
            return PressResult(words.SENT_AWAY.format(name=refused.name or refused.user_id), counts=True)
        except GatewayError as error:
            return PressResult(str(error))

    async def _show_presser(self, press: Press, text: str) -> bool:
        """Stop the button's spinner. Return whether the presser saw the text; if not, the chat gets it."""
        adapter: object = self._adapter_of(press.session_key.target)
        if not isinstance(adapter, AnswersPresses) or not press.press_id:
            return False
        try:
            return await adapter.answer_press(press.press_id, text)
        except PlatformError as error:
            log.info("Press not answered", extra={"platform": press.session_key.platform, "reason": str(error)})
            return False

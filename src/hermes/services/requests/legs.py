"""Put the gateway's own steps back between the legs of a client's tool loop.

A client that sends the whole conversation knows only its own calls. What the gateway ran before it handed a call out
is in the transcript of that turn; without it the model would do it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.core.messages import ChatMessage, Role
from hermes.services.requests.outcomes import read_record
from hermes.services.requests.requests import PLATFORM
from hermes.store import codec, inbox, people
from hermes.store.db import Tx
from hermes.store.turns import client_calls, turns

MAX_LEGS = 200
"""Messages with calls that are looked up, the newest first: a longer loop has other troubles."""


def with_steps(tx: Tx, sender_id: str, messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the conversation with each message that holds calls of ours replaced by all that its turn did."""
    person = people.find(tx, PLATFORM, sender_id)
    legs = [index for index, message in enumerate(messages) if message.tool_calls][-MAX_LEGS:]
    if person is None or not legs:
        return tuple(messages)
    steps = {index: found for index in legs if (found := _steps_of_leg(tx, person.id, messages, index))}
    if not steps:
        return tuple(messages)
    theirs = {call.id for index in steps for call in messages[index].tool_calls}
    ours = {call.id for found in steps.values() for message in found for call in message.tool_calls} - theirs
    whole: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if index in steps:
            whole += steps[index]
        elif not _is_about(message, ours):  # some clients send back what they were shown of our calls
            whole.append(message)
    return tuple(whole)


def _steps_of_leg(tx: Tx, person_id: str, messages: Sequence[ChatMessage], index: int) -> list[ChatMessage]:
    """What the turn did that handed out these calls; [] where it is unknown, or another conversation's."""
    calls = messages[index].tool_calls
    turn_id = client_calls.find_turn(tx, person_id, calls[0].id)
    turn = turns.get(tx, turn_id) if turn_id else None
    row = next((row for row in inbox.of_turn(tx, turn_id) if row.kind == "request"), None) if turn else None
    if turn is None or row is None:
        return []
    asked = codec.load_request(row.body).messages
    if _last_words(asked) != _last_words(messages[:index]):
        return []  # ids that a model counts from zero repeat; the question tells the conversations apart
    steps = list(read_record(tx, row, turn).messages)
    known = {call.id for message in steps for call in message.tool_calls}
    return steps if known.issuperset(call.id for call in calls) else []


def _last_words(messages: Iterable[ChatMessage]) -> str:
    """The newest message of the user."""
    return next((message.text for message in reversed(list(messages)) if message.role is Role.USER), "")


def _is_about(message: ChatMessage, calls: set[str]) -> bool:
    """Tell whether a message holds nothing but these calls, or the result of one of them."""
    if message.role is Role.TOOL:
        return message.tool_call_id in calls
    return bool(message.tool_calls) and not message.text and calls.issuperset(call.id for call in message.tool_calls)

"""The sentences people read in a chat, in one place."""

from __future__ import annotations

REPEAT_MARK = "↻"

WAITS_FOR_APPROVAL = (
    "I'm waiting for an answer to my question above, so this waits in line. /approve, /deny, or /stop to drop it."
)
STRANGER = (
    "Hi~ I don't recognize you yet!\nAsk the bot owner to add your id {sender_id} to {setting}.\n"
    "(Is this your own bot? Put that line into ~/.hermes/.env; nothing has to be restarted.)"
)
SET_ASIDE_AFTER_DEATHS = (
    "I set your last message aside: I stopped unexpectedly {deaths} times while working on it. "
    "Owner: `hermes trace {turn_id}` shows how far it came."
)
FAILED = "Something in me broke while I worked on this ({reason}). It is recorded: `hermes trace {turn_id}`."
TIMED_OUT = "I stopped after {minutes} minutes without finishing. Say it again, perhaps in smaller steps."
EMPTY_REPLY = "My model answered with nothing. Ask again, or in other words."
SHUTTING_DOWN = "⚠️ Gateway shutting down — Your current task will be interrupted. It goes on after the restart."
LOOPING = "I made the same call {count} times with the same result, so I stopped there."
ASKED_BELOW = "I have a question first:"
INTERRUPTED_MARK = "… (interrupted)"
APPROVAL = (
    "May I run `{name}`?\n```\n{arguments}\n```\n{question}\n"
    "/approve {code} or /deny {code}. Good for {minutes} min, then I go on without it."
)
APPROVAL_EXPIRED = "Nobody answered in {minutes} minutes, so it did not run. Do not try it again unless the user asks."
APPROVAL_DENIED = "The user said no{reason}. Do not try it again; choose another way or ask."
APPROVAL_CANCELLED = "The question was withdrawn ({reason}); it did not run."
COMMAND_FAILED = "That command failed: {reason}"
UNKNOWN_COMMAND = "There is no command /{name}.{nearest} /help lists them."
NOT_ALLOWED = "/{name} needs the role {role}; yours is {mine}."
FILE_NOT_FETCHED = "[{name}: could not be fetched: {reason}]"

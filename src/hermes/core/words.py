"""The sentences people read in a chat, in one place: English here, every other language in a class that follows it.

A sentence is a class attribute with named placeholders. Write it here and in ``words_zh``; a test misses whatever is
not in both. Use it as ``words.NAME.format(…)`` with the words of whoever reads it: ``ctx.words`` in a command,
``work.words`` in a turn, ``words_of(pick(…))`` elsewhere. What only a model reads is not here.
"""

from __future__ import annotations


class Words:
    # Who may talk
    STRANGER = (
        "Hi~ I don't recognize you yet!\nAsk the bot owner to add your id {sender_id} to {setting}.\n"
        "(Is this your own bot? Put that line into ~/.hermes/.env; nothing has to be restarted.)"
    )
    PAIRING = (
        "Hi~ I don't recognize you yet!\nHere's your pairing code: `{code}`\nAsk the bot owner to run:\n"
        "hermes pairing approve {platform} {code}\n"
        "(Is this your own bot? Then run it yourself, where Hermes runs. The code is good for an hour.)"
    )
    TOO_MANY_STRANGERS = (
        "Hi~ I don't recognize you yet, and several others are waiting to be let in. Please write again in an hour."
    )
    SOMEBODY = "Somebody"
    STRANGER_AT_THE_DOOR = (
        "{who} would like to talk to me.\nLet them in with the button, or: hermes pairing approve {platform} {code}"
    )
    STRANGERS_QUEUE = (
        "{who} would like to talk to me too, but others on {platform} are waiting already. "
        "Decide about those first: hermes pairing list"
    )
    LET_IN_BUTTON = "Approve"
    SEND_AWAY_BUTTON = "Refuse"
    LET_IN = "You're in! Ask me anything, or /help. /sethome makes this chat the place for reminders and alerts."
    LET_IN_NAMED = (
        "You're in, {name}! Ask me anything, or /help. /sethome makes this chat the place for reminders and alerts."
    )
    NOT_YOURS_TO_LET_IN = "Letting somebody in takes an admin or the owner."
    MAY_TALK_NOW = "{name} may talk now."
    SENT_AWAY = "{name} was sent away, without a word. They may ask again in an hour."
    NO_SUCH_CODE = "No such code."
    PAIRING_LOCKED = (
        "Too many wrong codes for {platform}: approving is locked for {minutes} more min. On the machine itself it "
        "still works: hermes pairing approve"
    )

    # How a turn ends
    SET_ASIDE_AFTER_DEATHS = (
        "I set your last message aside: I stopped unexpectedly {deaths} times while working on it. "
        "Owner: `hermes trace {turn_id}` shows how far it came."
    )
    FAILED = "Something in me broke while I worked on this ({reason}). It is recorded: `hermes trace {turn_id}`."
    TIMED_OUT = "I stopped after {minutes} minutes without finishing. Say it again, perhaps in smaller steps."
    EMPTY_REPLY = "My model answered with nothing. Ask again, or in other words."
    SHUTTING_DOWN = "⚠️ Gateway shutting down — Your current task will be interrupted. It goes on after the restart."
    LOOPING = "I made the same call {count} times with the same result, so I stopped there."
    RENEWED_IDLE = "It was quiet here for {span}, so this is a fresh session. /resume last goes on with the one before."
    RENEWED_DAILY = (
        "A new day began at {hour}:00, so this is a fresh session. /resume last goes on with the one before."
    )
    INTERRUPTED_MARK = "… (interrupted)"

    # Approvals
    WAITS_FOR_APPROVAL = (
        "I'm waiting for an answer to my question above, so this waits in line. /approve, /deny, or /stop to drop it."
    )
    ASKED_BELOW = "I have a question first:"
    APPROVAL = "May I run `{name}`{where}?\n```\n{arguments}\n```\n{question}"
    APPROVAL_CUT = "[not shown: {more:,} more characters]"
    APPROVAL_ANSWER = "/approve {code} or /deny {code} [reason]. Good for {span}, then I go on without it."
    APPROVAL_ANSWER_SCOPED = (
        "/approve {code}, /approve {code} session (no more questions of this kind in this session), "
        "/approve {code} always, or /deny {code} [reason]. Good for {span}, then I go on without it."
    )
    APPROVAL_BUTTONS = "Press a button, or type {typed}"
    APPROVAL_TAKES_ADMIN = "It touches this machine, so an admin or the owner must answer."
    APPROVAL_TIMEOUTS = (
        "I asked {count} times and nobody answered, so I stopped here; nothing of it ran. Write when you are there, "
        "and I ask again."
    )
    APPROVE_BUTTON = "Approve"
    DENY_BUTTON = "Deny"
    APPROVE_SESSION_BUTTON = "Approve for session"
    APPROVE_ALWAYS_BUTTON = "Always"
    CARD_ALLOWED = "✓ Approved by {who}."
    CARD_ALLOWED_SESSION = "✓ Approved by {who}, for this session too."
    CARD_ALLOWED_ALWAYS = "✓ Approved by {who}, from now on always. /approvals shows and revokes it."
    CARD_DENIED = "✗ Denied by {who}."
    CARD_DENIED_BECAUSE = "✗ Denied by {who}: {reason}"
    CARD_EXPIRED = "⌛ Expired: nobody answered in {span}, so it did not run."
    CARD_WITHDRAWN = "Withdrawn ({reason}); it did not run."
    SOMEBODY_ANSWERED = "somebody"

    # Commands
    COMMAND_FAILED = "That command failed: {reason}"
    UNKNOWN_COMMAND = "There is no command /{name}. /help lists them."
    UNKNOWN_COMMAND_NEAR = "There is no command /{name}. Did you mean /{nearest}? /help lists them."
    NOT_ALLOWED = "/{name} needs the role {role}; yours is {mine}."
    OLD_BUTTON = "That button is not one of mine any more."
    LANGUAGE_IS = "I speak English with you. /language zh: 中文; /language auto: as you write."
    LANGUAGE_SET = "From now on I speak English with you."
    LANGUAGE_AUTO = "From now on I speak as you write, English or Chinese."
    LANGUAGE_FIXED = "The owner chose English for everybody here (`language: {language}`), so that holds."
    LANGUAGE_UNKNOWN = "I speak English and Chinese: /language en, /language zh or /language auto."

    # Files
    FILE_NOT_SENT = "({name} was not sent: {reason})"
    FILE_NOT_TAKEN = "{name} did not arrive: {reason}"
    FILE_LIES_AT = "📎 {name}: {path}"
    FILE_TOO_BIG = "it has {size}, and {most} is the most that can be sent here"
    FILE_IS_EMPTY = "it is empty"
    FILES_TOO_MANY = "an answer carries {most} files at most"
    FILE_NOT_COPIED = "it could not be copied ({reason})"
    FILE_HERE_CANNOT = "no files can be had or sent here"
    FILE_DID_NOT_COME = "I could not get {name}: {reason}"
    FILE_TOO_BIG_TO_GET = "it has {size}, and {most} is the most that I can get here"
    FILE_TOO_SLOW = "it took longer than {span}"
    FILES_TOO_MANY_TO_GET = "{most} files at a time are taken"

    # Voice
    NOT_HEARD = "I have your voice message, but could not hear what you say: {reason}."
    NOT_SAID = "(I could not say this aloud: {reason}.)"
    VOICE_ON = "on: a voice message is answered aloud too."
    VOICE_OFF = "off: I say nothing aloud."
    VOICE_ONLY_WHEN_ASKED = "only-when-asked: I say something aloud only when you ask for it."
    VOICE_NOW = "{now} Others: {others}."

    # Tools at work
    TOOL_PROGRESS_OFF = "You see only my answers, nothing of the tools I use."
    TOOL_PROGRESS_NEW = "You see a line whenever I take up another tool."
    TOOL_PROGRESS_ALL = "You see a line for every call of a tool."
    TOOL_PROGRESS_VERBOSE = "You see every call of a tool with its arguments, and the first line of what came of it."
    TOOL_PROGRESS_NOW = "{now} Others: {others}."
    TOOL_PROGRESS_UNKNOWN = "There is no {word!r}. {usage}"

    def span(self, seconds: float) -> str:
        """A length of time as people say it: 45 seconds, 5 minutes, 2 hours."""
        for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
            if seconds >= size * 1.5 or (seconds >= size and seconds % size == 0):
                count = round(seconds / size)
                return f"{count} {name}{'' if count == 1 else 's'}"
        count = max(1, round(seconds))
        return f"{count} second{'' if count == 1 else 's'}"

    def amount(self, size: int) -> str:
        """A number of bytes as people say it."""
        for unit, name in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")):
            if size >= unit:
                return f"{size / unit:.1f} {name}".replace(".0 ", " ")
        return f"{size} bytes"

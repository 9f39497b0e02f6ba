"""The English sentences that people read in chats; other languages are subclasses.

A sentence is a class attribute with named placeholders. Write it here and in ``zh.py``; a test reports sentences that
are not in both. Use it as ``words.NAME.format(…)`` with the texts of the reader: ``ctx.words`` in a command,
``work.words`` in a turn, ``words_of(pick(…))`` elsewhere. Texts that only a model reads are not here.
"""

from __future__ import annotations


class Texts:
    LANGUAGE = "en"
    GAP = " "
    """Between two sentences."""

    # At the command line
    BANNER = "Welcome to Hermes Agent! Type your message or /help for commands."
    HOW_TO_LEAVE = "/exit — Leave; Ctrl+D does too"
    CHAT_HINT = "Tab completes, @ adds a file, Alt+Enter begins a new line, Ctrl+R searches, Ctrl+C stops."
    CHAT_THINKING = "thinking"
    CHAT_WRITING = "writing"
    CHAT_STOPS = "Ctrl+C stops"
    CHAT_STOPPING = "stopping"
    CHAT_INTERRUPTS = "Enter interrupts it with a new message"
    CHAT_QUEUES = "Enter queues a message for after it"
    CHAT_STEERS = "Enter passes a message to it while it works"
    CHAT_PRESS_AGAIN = "Ctrl+C again leaves"
    CHAT_MAY_I = "May I run this?"
    CHAT_WHY = "Why I ask: {why}"
    CHAT_YES = "Yes"
    CHAT_YES_SESSION = "Yes, and do not ask again in this session"
    CHAT_YES_ALWAYS = "Yes, always: do not ask again"
    CHAT_NO = "No"
    CHAT_NO_WHY = "No, and say why"
    CHAT_REASON = "why not"
    CHAT_CHOOSE = "arrows, a number or a letter; Esc answers later"
    CHAT_TOO_LONG = "It has {count:,} characters: read all of it. To approve it, press Esc and type /approve {proof}"
    CHAT_ANSWER_LATER = "Not answered yet: /approve {code} or /deny {code}"
    CHAT_OWN_WORDS = "Something else: I type it"
    CHAT_PASTED = "[pasted {count} lines]"
    CHAT_PICK = "Which conversation? Type to search."
    CHAT_PICK_NOTHING = "There are no conversations yet."
    CHAT_LINES = "lines"
    CHAT_TOKENS = "{count} tokens"
    CHAT_CONTEXT = "context {percent} %"
    CHAT_WAITING = "{count} waiting"
    CHAT_VERBOSE_ON = "Results of tools are shown below their lines. /verbose hides them again."
    CHAT_VERBOSE_OFF = "Tools are shown as one line each. /verbose shows their results."
    CHAT_FROM = "begun on {platform}"
    CHAT_VIA = "via {origin}"
    CHAT_ELSEWHERE = "This conversation goes on in {platform} now. What you type here brings it back."
    CHAT_BACK = "Brought back from {platform}."
    CHAT_REASONING_ON = "The model's reasoning is shown, dimmed. /reasoning hide hides it again."
    CHAT_REASONING_OFF = "The model's reasoning is hidden. /reasoning show shows it."
    CHAT_RESTARTED = "the gateway was restarted; going on"
    CHAT_QUEUED = "waits in line until you answered: {codes}"
    CHAT_LOOK = "Look: {command}"
    CHAT_MORE_LINES = "… {count} more lines"
    CHAT_FILE_ADDED = "added {name} ({size})"
    CHAT_FILE_LEFT_OUT = "left out {name}: {reason}"

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
    SOMEBODY = "Somebody"
    STRANGER_AT_THE_DOOR = (
        "{who} would like to talk to me.\nLet them in with the button, or: hermes pairing approve {platform} {code}"
    )
    STRANGERS_QUEUE = (
        "{who} would like to talk to me too. Many strangers are writing on {platform}, so I announce no more of them "
        "for an hour. See them all: hermes pairing list"
    )
    CARD_GAVE_WAY = "Gave way to newer requests. To approve it: hermes pairing approve PLATFORM --user ID"
    LET_IN_BUTTON = "Approve"
    SEND_AWAY_BUTTON = "Refuse"
    LET_IN = "You're in! Ask me anything, or /help. /sethome makes this chat the place for reminders and alerts."
    LET_IN_NAMED = (
        "You're in, {name}! Ask me anything, or /help. /sethome makes this chat the place for reminders and alerts."
    )
    OWNER_ASK = (
        "Is this you, the owner? Only {id} may write to me, and nobody is my owner yet. As the owner your commands run "
        "on my machine itself and you may approve what touches it; else they stay in a sandbox.\n"
        "Answer /owner yes or /owner no."
    )
    OWNER_YES_BUTTON = "Yes, I am the owner"
    OWNER_NO_BUTTON = "No"
    OWNER_CONFIRMED = "You are my owner now. From your next message on, commands run on my machine itself."
    OWNER_DECLINED = (
        "All right, I will not ask again; your commands stay in a sandbox. To set the owner on the machine:  "
        "`hermes people role {id} owner`"
    )
    OWNER_ALREADY = "You are my owner."
    OWNER_ONLY_PRIVATELY = "That works only in a private chat."
    OWNER_AT_MACHINE = (
        "Only a person at the machine can make you the owner: `hermes people role {id} owner`, or the setting "
        "`owners` (GATEWAY_OWNERS={id})."
    )
    OWNER_USAGE = "/owner yes or /owner no."
    NOT_YOURS_TO_LET_IN = "Only an admin or the owner can approve people."
    MAY_TALK_NOW = "{name} may talk now."
    SENT_AWAY = "{name} was refused, without a message. They may ask again in an hour."
    NO_SUCH_CODE = "No such code."
    NOBODY_WAITS = (
        "No request is waiting on {platform}. A stranger who writes to the bot there gets a new code, which is valid "
        "for an hour."
    )
    PAIRING_LOCKED = (
        "Too many wrong codes for {platform}: approving is locked for {minutes} more min. On the machine itself it "
        "still works: hermes pairing approve"
    )

    # How a turn ends
    SET_ASIDE_AFTER_DEATHS = (
        "I set your last message aside: I stopped unexpectedly {deaths} times while working on it. "
        "Owner: `hermes trace {turn_id}` shows how far it came."
    )
    FAILED = "Something in me broke while I worked on this. Owner: `hermes trace {turn_id}` shows how far it came."
    TIMED_OUT = "I stopped after {span} without finishing. Say it again, perhaps in smaller steps."
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
    APPROVAL = "May I run `{name}`?\n{what}\n{question}"
    APPROVAL_WHERE = "May I run `{name}` {where}?\n{what}\n{question}"
    APPROVAL_CUT = "[… {more:,} characters are not shown here …]"
    APPROVAL_LONG_FILE = (
        "That is only a part: all {count:,} characters are in {file}. Read it; its last line shows how to approve it."
    )
    APPROVAL_LONG_MESSAGES = (
        "That is only a part: all {count:,} characters are in the messages above. Read them; their last line tells how "
        "to approve it."
    )
    APPROVAL_LONG_HERE = "It has {count:,} characters. Read all of it; the last line shows how to approve it."
    APPROVAL_LONG_ELSEWHERE = (
        "That is only a part of {count:,} characters, and no more fits into this chat. Read all of it on the machine: "
        "`hermes approvals show {code}`"
    )
    APPROVAL_DENY = "/deny {code} [reason]. Good for {span}, then I go on without it."
    APPROVAL_AT_END = "To approve: /approve {proof}"
    APPROVAL_AT_END_SCOPED = (
        "To approve: /approve {proof}, or /approve {proof} session (no more questions of this kind in this session), "
        "or /approve {proof} always"
    )
    APPROVAL_AT_END_SHARED = (
        "To approve: /approve {proof}, or /approve {proof} session (no more questions about this tool until /new)"
    )
    APPROVAL_ANSWER = "/approve {code} or /deny {code} [reason]. Good for {span}, then I go on without it."
    APPROVAL_ANSWER_SCOPED = (
        "/approve {code}, /approve {code} session (no more questions of this kind in this session), "
        "/approve {code} always, or /deny {code} [reason]. Good for {span}, then I go on without it."
    )
    APPROVAL_ANSWER_SHARED = (
        "/approve {code}, /approve {code} session (no more questions about this tool until /new), "
        "or /deny {code} [reason]. Good for {span}, then I go on without it."
    )
    APPROVAL_BUTTONS = "Press a button, or type {typed}"
    APPROVAL_TAKES_ADMIN = "It touches this machine, so an admin or the owner must answer."
    APPROVAL_TAKES_NAMED_KEY = (
        "It touches this machine, and this API key stands in a file that my own commands can read. Answer in a "
        "terminal (`hermes approvals approve {code}`), in a chat, or with a named key of an admin."
    )
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
    CARD_REFUSED = "✗ Refused by {who}."
    CARD_EXPIRED = "⌛ Expired: nobody answered in {span}, so it did not run."
    CARD_WITHDRAWN = "Withdrawn ({reason}); it did not run."
    SOMEBODY_ANSWERED = "somebody"

    # Commands
    COMMAND_FAILED = "That command failed: {reason}"
    COMMAND_BROKE = "That command failed. Owner: `hermes logs --level error` shows why."
    UNKNOWN_COMMAND = "There is no command /{name}. /help lists them."
    UNKNOWN_COMMAND_NEAR = "There is no command /{name}. Did you mean /{nearest}? /help lists them."
    UNKNOWN_COMMAND_SKILL = "There is no command /{name}. Did you mean the skill /{nearest}? /help lists the commands."
    NOT_ALLOWED = "/{name} needs the role {role}; yours is {mine}."
    OLD_BUTTON = "That button is not one of mine any more."
    LANGUAGE_IS = "I speak English with you. /language zh: 中文; /language auto: as you write."
    LANGUAGE_SET = "From now on I speak English with you."
    LANGUAGE_AUTO = "From now on I speak as you write, English or Chinese."
    LANGUAGE_FIXED = "The owner chose English for everybody here (`language: {language}`), so that holds."
    LANGUAGE_UNKNOWN = "I speak English and Chinese: /language en, /language zh or /language auto."

    HELP_HEAD = "Just write to me. Besides:"
    HELP_LINE = "{heading}: {names}"
    HELP_FOOT = "/commands explains each of them, /help NAME one."
    HELP_TALK = "This conversation"
    HELP_WORK = "While I work"
    HELP_ANSWERS = "How I answer"
    HELP_ABILITIES = "What I can use"
    HELP_ABOUT = "About us"
    HELP_CARE = "For admins and the owner"
    HELP_MORE = "More"
    HELP_ALSO = "Also: {names}."
    HELP_ROLE = "For the role {role} and above."
    STATUS_IDLE = "I'm here, nothing running."
    STATUS_WORKING = "I'm here, working on your message for {span} now ({turn})."
    STATUS_ASKING = "I'm here and wait for your answer: /approve {code} or /deny {code}."
    STATUS_CHATS = "Chats: {names}."
    STATUS_NO_CHATS = "Chats: none."
    STATUS_DOWN = "Not connected: {names}."
    STATUS_WAITING = "In line behind that: {count}."
    STATUS_QUESTIONS = "Questions for you: {count} (/approvals)."
    STATUS_MODEL = "Model: {model}."
    STATUS_MODEL_CHOSEN = "Model: {model}, chosen here."
    STATUS_MODEL_SETTLED = "Model: {model}, set for this chat."
    STATUS_PERSONALITY = "Personality: {name}."
    STATUS_SESSION = "Session: {title}, {lines}."
    STATUS_NO_SESSION = "Session: none yet; your next message begins one."
    STATUS_BUSY = "While I work, {meaning} (/busy)."
    NONE = "none"
    WHOAMI = "{name}: {platform} {sender_id}, role {role}. This chat is {lane}."
    WHOAMI_YOU = "you"
    VERSION = "Hermes {version}"

    # Asking again, what was spent, who I am
    RETRY = "Once more: “{text}”"
    RETRY_NOTHING = "There is nothing here to ask again. Just write to me."
    RETRY_BUSY = "I'm still at work here. /stop first, then /retry."
    RETRY_NOT_YOURS = "Somebody else asked the last thing here. Only they can have it asked again."
    USAGE_SESSION = "This session: {spent}"
    USAGE_YOU = "You, today: {spent}"
    USAGE_EVERYBODY = "Everybody, today: {spent}"
    USAGE_SPENT = "{prompt:,} tokens in, {completion:,} out (turns: {turns:,})"
    USAGE_NOBODY = "(nobody in particular)"
    PERSONALITY_NOW = "Here I am “{name}”."
    PERSONALITY_OWN = "Here I am myself."
    PERSONALITY_OTHERS = (
        "I can be: {names}. /personality NAME changes it for this chat, /personality default goes back."
    )
    PERSONALITY_NONE = "There are no others. The owner adds some under `personalities:` in config.yaml."
    PERSONALITY_CHOSEN = "From the next message on I am “{name}” here. /personality default goes back."
    PERSONALITY_DEFAULT = "From the next message on I am again as the owner set me up here."
    PERSONALITY_UNKNOWN = "There is no personality “{name}”. I can be: {names}."
    PERSONALITY_NEAR = "There is no personality “{name}”. Did you mean {nearest}? I can be: {names}."
    PERSONALITY_NOT_YOURS = "Several people share this conversation, so an admin or the owner chooses who I am in it."

    # /approve, /deny, /approvals
    APPROVALS_NOTHING_HERE = "Nothing is waiting for an answer here."
    APPROVALS_NO_SUCH = "There is no such question here."
    APPROVE_UNREAD = "I do not know what {word!r} means there: /approve [CODE|all] [session|always]."
    APPROVALS_REVOKED = "Revoked: {grant}. I ask again from now on."
    APPROVALS_NO_GRANT = "There is no such grant."
    APPROVALS_USAGE = "/approvals shows what waits and what is granted; /approvals revoke ID ends a grant."
    APPROVALS_MORE = "… and {count} more: `hermes approvals list` and `hermes approvals grants` show all."
    APPROVALS_NOTHING = "Nothing waits for an answer, and nothing is granted for longer."
    GRANT_SESSION = "{subject} (in one session)"
    GRANT_ALWAYS = "{subject} (always)"
    APPROVED_OF = "Approved {count} of {all}."
    DENIED_OF = "Denied {count} of {all}."
    OTHERS_ANSWER = "{count} must be answered by an admin or the owner."
    ANSWERED_MEANWHILE = "{count} had been answered meanwhile."
    ASKED_AFTER = "Asked after you wrote: {questions}"
    WHICH_QUESTION = "Which one? Answer with its code. {questions}"
    ANSWER_ALLOWED = "Approved, going on."
    ANSWER_ALLOWED_SESSION = "Approved, going on. I will not ask about this kind again in this session."
    ANSWER_ALLOWED_ALWAYS = "Approved, going on. I will not ask about this kind again; /approvals shows and revokes it."
    ANSWER_ALLOWED_ONCE = "Approved, going on. Only this once: a thing of this kind is asked about each time."
    ANSWER_DENIED = "Denied. I'll find another way."
    ANSWER_UNSEEN = (
        "Not approved: it was too long to be shown whole. Read all of it; its last line shows how to approve it. "
        "On the machine: `hermes approvals show {code}`"
    )
    UNSEEN_OF = "{count} are too long to be approved with a bare yes: the code of each stands at the end of its text."
    ANSWER_NOT_YOURS = "This one is not yours to answer: it needs an admin or the owner."
    ANSWER_NO_SUCH = "There is no such question."
    ANSWER_WAS_ALLOWED = "It was already allowed by {who}."
    ANSWER_WAS_DENIED = "It was already denied by {who}."
    ANSWER_WITHDRAWN = "That question was withdrawn ({reason})."
    ANSWER_TOO_LATE = "Too late: nobody answered in time, so it did not run."

    # /busy, /new, /stop
    BUSY_INTERRUPT = "a new message stops what I do and comes next"
    BUSY_QUEUE = "each message waits its turn"
    BUSY_STEER = "a new message is handed to me after the current tool call"
    BUSY_SET = "{mode}: {meaning}."
    BUSY_NOW = "{mode}: {meaning}. Others: {others} (/busy {first})."
    FRESH_SESSION = "Fresh session."
    STOPPED = "Stopped."
    NOTHING_RUNNING = "Nothing was running."
    STOPPED_TURN = " The turn that was running has been stopped."
    STOPPED_ONE = " 1 message that was waiting is set aside."
    STOPPED_MANY = " {count} messages that were waiting are set aside."

    # /compress
    COMPRESS_NOTHING = "There is nothing here to make shorter yet."
    COMPRESS_AT_IT = "I'm at it and will tell you. Go on writing, nothing waits for it."
    COMPRESS_NOT_DONE = "I left the conversation as it is. {reason}"
    COMPRESS_STOPPING = "I am about to stop."
    COMPRESS_DONE = (
        "{lines} ({before:,} characters) → {after:,} characters. From now on I read the summary in their place. "
        "The lines are kept: /undo brings them back."
    )
    COMPRESS_WOULD = (
        "{lines} ({before:,} characters) → {after:,} characters. Nothing is changed. I would read this:\n\n{summary}"
    )
    COMPRESS_UNREAD = (
        "I did not understand that. /compress makes it shorter, /compress --preview shows how it would be."
    )
    COMPRESS_UNDONE = "It was undone, and there is still room."
    COMPRESS_WENT_ON = "The conversation went another way meanwhile."
    COMPRESS_TOO_LITTLE = "There is too little here to make it shorter."
    COMPRESS_NO_GAIN = "The summary would be no shorter than what it stands for."

    # /model, /reasoning
    MODEL_NOT_YOURS = (
        "In this chat only an admin or the owner chooses the model. "
        "Owner: `model.users_may_choose: true` lets users choose in their own chats."
    )
    MODEL_WHICH = "Which one? /model list shows what there is."
    MODEL_CHOSEN = "{model}, chosen for this chat. The default is {default}: /model default goes back."
    MODEL_GONE = "{default}, since {model}, chosen for this chat, is not configured any more."
    MODEL_DEFAULT = "{default}, the default."
    MODEL_SETTLED = "{default}, set for this chat by the owner."
    MODEL_THINKS = " It thinks: {level} (/reasoning)."
    MODEL_OTHERS = " /model list shows others."
    MODEL_IS_DEFAULT = "{default} (the default)"
    MODEL_HOW = "/model use NAME; any model of these providers, as provider/model."
    MODEL_BACK = "This chat uses the default again: {default}."
    MODEL_FROM_NOW = "This chat uses {model} from the next message on. /model default goes back."
    MODEL_NO_PROVIDER = "There is no provider {provider!r}. Known: {known}."
    MODEL_NO_KEY = "{provider} has no key. Set {variable}, or choose another model."
    MODEL_ONLY_BUILT_IN = "I have only the built-in model, so {model} cannot answer. On the machine: hermes setup"
    MODEL_WHICH_OF = "Which model of {provider}? Write {provider}/MODEL."
    REASONING_LOW = "a little thinking, quick answers"
    REASONING_MEDIUM = "some thinking"
    REASONING_HIGH = "as much thinking as it takes, slower and dearer"
    REASONING_OFF = "no thinking, where the model can leave it"
    REASONING_CHOSEN = "chosen for this chat"
    REASONING_NOW = "Thinking here is {level}: {meaning}. Others: {others}."
    REASONING_FREE = "Thinking here is as the model likes. Others: {others}."
    REASONING_UNKNOWN = "There is no {word!r}. Choose one: {levels}, default."
    REASONING_DEFAULT = "Thinking here is as the model likes again."
    REASONING_SET = "{level}: {meaning}. It counts from the next message on."

    # /sethome, /platforms, /platform, /restart
    HOME_NOT_HERE = (
        "The terminal cannot be home: nobody reads reminders and alerts here when it is closed. Send /sethome in a chat"
        " of a messaging platform."
    )
    HOME_SET = "This chat is home now: reminders and alerts come here. Chat id {chat}, as a target {target}."
    PLATFORMS_NONE = "No platforms connected. The owner sets one up: hermes gateway setup"
    PLATFORM_USAGE = "Say /platform pause NAME or /platform resume NAME. Names: {names}."
    PLATFORM_OWN = (
        "You would not hear from me here again. Do that from another chat, or on the machine: hermes config set"
    )
    PLATFORM_ON = "{account} is switched on."
    PLATFORM_PAUSED = "{account} is paused: nothing is received or sent there."
    RESTART_BACK = "I'm back."
    RESTART_NOBODY = "Nobody would start me again here. Run `hermes gateway run`, which keeps the gateway up."
    RESTART_BEGUN = "Restarting. What I am working on goes on afterwards."

    # /rollback, /undo
    ROLLBACK_UNREAD = "I did not understand that. {usage}: /rollback alone shows the numbers."
    ROLLBACK_REMOVED = (
        "Change {number} is taken back: {name} is removed again. /rollback shows all; this one can be taken back too."
    )
    ROLLBACK_RESTORED = (
        "Change {number} is taken back: {name} is as it was before. /rollback shows all; this one can be taken back "
        "too."
    )
    ROLLBACK_NOTHING = "I have changed no files of yours in this chat that I could bring back."
    ROLLBACK_LIST = "What I changed in files here, the newest first:"
    ROLLBACK_HOW = "/rollback last takes back the newest, /rollback N that one."
    ROLLBACK_TAKEN_BACK = " (taken back)"
    ROLLBACK_NEW = " (new)"
    ROLLBACK_GONE = " (removed)"
    ROLLBACK_DAY = "%d %b %H:%M"
    ROLLBACK_NO_SUCH = "There is no such change in this chat."
    ROLLBACK_NONE_LEFT = "There is nothing to take back."
    ROLLBACK_ALREADY = "Change {number} has been taken back already."
    UNDO_UNREAD = "I did not understand that. {usage}: how many exchanges to take back, 1 to {most}."
    UNDO_BUSY = "I'm still at work here. /stop first, then /undo."
    UNDO_NOTHING = "There is nothing here to take back."
    UNDO_REVISION = (
        "The compression is taken back: I read all the lines again. /undo once more takes back the last exchange."
    )
    UNDO_ONE = (
        "Taken back: “{text}” and everything after it. I act as if it had not been said; what was done stays done."
    )
    UNDO_SEVERAL = "Taken back: the last {count} exchanges, from “{text}” on. I act as if they had not been said."

    # /sessions, /resume, /branch, /title, /history
    SESSIONS_NONE = "There is no conversation of yours yet. Just write to me."
    SESSIONS_HOW = "/resume NUMBER continues one here; /branch continues with a copy of this one."
    SESSIONS_LINE = "{number}. {title}, {lines}, {day}"
    SESSIONS_HERE = " ← here"
    SESSION_TITLE = "“{title}”"
    SESSIONS_NONE_HERE = "Nothing was said here before. Just write to me."
    RESUME_UNKNOWN = "You have no conversation {name!r}. /sessions lists them."
    RESUME_HERE = "That one is going on here already."
    RESUME_BUSY = "I am working in that conversation just now. Wait for it, or /stop it there."
    RESUMED = "Continued here: {title}, {lines}. /history shows where we were."
    BRANCH_NOTHING = "There is nothing to branch off yet. Just write to me."
    BRANCHED = "This is a copy now, {lines}. The other one rests: /sessions lists both."
    TITLE_NONE = "There is no conversation here yet. Just write to me."
    TITLE_IS = "This is {title}. /title NAME changes that."
    TITLE_SET = "This conversation is “{name}” now."
    HISTORY_NONE = "Nothing was said here yet."
    HISTORY_YOU = "You: {text}"
    HISTORY_ME = "Me: {text}"

    # /skills, /tools
    SKILLS_HELP = (
        "/skills lists them, /skills show NAME shows one. "
        "Admins: /skills enable NAME [PLATFORM], /skills disable NAME [PLATFORM], /skills install SOURCE."
    )
    SKILLS_NONE = "There are no skills here."
    SKILLS_HOW = "Load one with /NAME and what you want; I also find them myself."
    SKILLS_OFF = "Off here: {names}"
    SKILLS_QUOTE = "That has a quote without its end."
    SKILLS_SOURCE = "Name one folder, archive or git address: /skills install SOURCE [--yes] [--replace]"
    SKILL_INSTALLED = "{name} is installed: {about}"
    SKILL_LOAD = "Load it with /{name}."
    TOOLS_NONE = "We can talk; there are no tools for you here."
    TOOLS_LIST = "Toolset {toolset}, as {role}:"
    TOOLS_GROUP = "{group} ({about}): {names}"
    TOOLS_OTHER = "{group}: {names}"

    # Files
    ACCOUNT_SIGNED_OUT = "{account} is signed out. {reason}"
    WRITE_TO_GET_THE_REST = "⏸ I can send no more here until you write again. What is left comes then."
    COULD_NOT_BE_SENT_EARLIER = "⏳ This could not be sent earlier:"
    FILE_NOT_SENT = "({name} was not sent: {reason})"
    FILE_NOT_TAKEN = "{name} did not arrive: {reason}"
    MOVED_FROM_NODE = "↪ This conversation moved from {before} to {here}. Files and processes of {before} are not here."
    FILE_LIES_AT = "📎 {name}: {path}"
    FILE_TOO_BIG = "it has {size}, and {most} is the most that can be sent here"
    FILE_IS_EMPTY = "it is empty"
    FILE_NOT_FOR_GUESTS = "guests are sent no files"
    FILE_NOT_AMONG_OTHERS = (
        "somebody with fewer rights writes in this conversation too. Tell me to use send_message: I will ask you first"
    )
    FILE_HOLDS_KEYS = "files of its kind hold keys or passwords, and those are not sent"
    FILES_TOO_MANY = "an answer carries {most} files at most"
    FILE_NOT_COPIED = "it could not be copied ({reason})"
    FILE_HERE_CANNOT = "files can be neither received nor sent here"
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
    TOOL_PROGRESS_NEW = "You see a line whenever I use another tool."
    TOOL_PROGRESS_ALL = "You see a line for every call of a tool."
    TOOL_PROGRESS_VERBOSE = "You see every call of a tool with its arguments, and the first line of its result."
    TOOL_PROGRESS_NOW = "{now} Others: {others}."
    TOOL_PROGRESS_UNKNOWN = "There is no {word!r}. {usage}"

    # While it works
    WAITS_IN_LINE = (
        "I'm still at work on what came before, so this waits in line and comes next. /stop ends what I'm doing; "
        "/busy interrupt lets new messages go first."
    )
    TAKEN_INTO_ACCOUNT = "Noted. I take it into account with my next step."
    QUEUE_USAGE = "/queue TEXT: I answer it in a turn of its own, after what I'm doing now."
    STEER_USAGE = "/steer TEXT: I take it into account in what I'm doing now, with my next step."
    CUT_OFF_LENGTH = "(My model reached its limit here. Say “go on” for the rest.)"
    CUT_OFF_FILTER = "(My model's provider stopped the answer here with its content filter. Ask in other words.)"
    WRITTEN_ELSEWHERE = "💻 {where}: {text}"
    FROM_DASHBOARD = "Dashboard"
    BACKGROUND_HEADER = "🧵 In the background: “{task}”"
    BACKGROUND_BEGUN = "I work on it in the background and tell you here when it is done: “{task}”. /agents shows it."
    BACKGROUND_USAGE = "/background TEXT: I work on it beside this chat, and tell you here when it is done."
    BACKGROUND_FULL = "{count} tasks already run in the background for you. Wait for one of them, or: /agents stop"
    KANBAN_EMPTY = "The board is empty. Add a task: /kanban add TITLE. Let me do one: /kanban do TITLE"
    KANBAN_USAGE = (
        "/kanban shows the board. /kanban add TITLE adds a task, /kanban do TITLE lets me do it. With the number of a "
        "task: /kanban show N, ready N, done N, block N WHY, unblock N, comment N TEXT, wait N M, archive N"
    )
    KANBAN_ADDED = "Added: {task}"
    KANBAN_BEGUN = "Added: {task}\nI report the result here. To follow it: /kanban show {number}"
    KANBAN_WAITS = "Waits for {task}"
    AGENTS_NONE = "Nothing runs for you right now."
    AGENTS = "For you at work:\n{lines}\nTo end one: /agents stop {example}. All of them: /agents stop all"
    AGENT_LINE = "`{name}` {where}, since {span}: {task}"
    AGENT_LINE_WAITS = "`{name}` {where}, since {span}: {task} (waits for an answer to its question)"
    AGENT_HERE = "in this chat"
    AGENT_ELSEWHERE = "in another chat"
    AGENT_IN_BACKGROUND = "in the background"
    AGENT_HANDED_ON = "a subtask of mine"
    AGENT_BY_API = "through the API"
    AGENT_STOPPED = "Stopped: {tasks}"
    AGENT_UNKNOWN = "Nothing of that name runs for you. /agents lists what does."

    # Jobs
    ASK_SCHEDULE = "It wants to schedule a message to {targets}: “{text}”"
    JOB_RUN_FAILED = "I could not do this: {reason}"
    JOB_FAILED = "The job “{name}” failed: {reason}\nI write again only if I pause it. /cron history {id}"
    JOB_PAUSED = (
        "I paused the job “{name}”, which keeps failing: {reason}\nFailures in a row: {count}. /cron resume {id}"
    )
    JOB_UNDELIVERED = "The answer of the job “{name}” could not be delivered: {reason}\n/cron history {id}"
    JOB_STOPPED = "I paused the job “{name}”: {reason}."
    JOB_BAD_SCHEDULE = "“{text}” is no schedule I know. Did you mean: {nearest}?"
    JOB_EMPTY = "A job needs a text: what should I do or say?"
    JOB_UNKNOWN = "There is no job “{name}”. All jobs: /cron, or `hermes cron list`."
    JOB_SEVERAL = "“{name}” names several jobs. Use an id: {ids}"
    JOB_IS_DONE = "The job “{name}” is done: no time is left at which it would run."
    JOB_ONLY_HERE = "Your jobs can answer in the chat where you make them, and nowhere else."
    JOB_NO_ZONE = "There is no time zone “{zone}”. Write one like Asia/Shanghai."
    JOB_NOT_FOR_GUESTS = "Guests cannot schedule anything."
    JOB_NO_FIELD = "A job has no “{name}”. It has: {fields}"
    JOB_TOO_LONG = "That is too long for a job. The most characters it takes: {count:,}"
    JOB_SCRIPT_ROLE = "Scripts run on the machine itself, so only an admin or the owner can schedule one."
    JOB_NO_FOLDER = "{folder} is no folder in which a job of yours can work."
    JOB_CATCH_UP = "“{value}” is no way to catch up. There are: {known}"
    JOB_NO_SKILL = "There is no skill “{name}”. /skills lists them."
    JOB_BY_ID = "Name the chat by its id, for example slack:C0123: a job cannot look for names."
    JOB_REPEAT = "How many times a job runs is a whole number from 1 to {most:,}."
    JOB_GRANTS_MANY = "These are too many grants for one job. The most it carries: {most}"
    JOB_MANY = "You have as many jobs as are possible: {most}. Remove one first."
    JOB_QUIET = "“{text}” are no quiet hours. Write them like 22:00-07:00."
    JOB_NO_SCRIPT = "Script not found: {path}. In {folder}: {known}"
    CRON_NONE = "There are no jobs yet. For example: /cron add 30m tea is ready"
    CRON_LINE = "`{id}` {name}: {schedule}, next {next}"
    CRON_LINE_OFF = "`{id}` {name}: {schedule}, {state}"
    CRON_LIST = "Jobs:\n{lines}"
    CRON_MORE = "… and {count} more"
    CRON_MADE = "⏰ Scheduled: “{name}”, {schedule}, next {next}. It goes to {where}. To cancel: /cron remove {id}"
    CRON_CHANGED = "Changed: “{name}”, {schedule}, next {next}. It goes to {where}."
    CRON_PAUSED = "Paused: “{name}”. /cron resume {id}"
    CRON_RESUMED = "“{name}” runs again, next {next}."
    CRON_RUNS = "“{name}” runs now."
    CRON_REMOVED = "Removed: “{name}”."
    CRON_HERE = "this chat"
    CRON_NO_HISTORY = "“{name}” has not been due yet."
    CRON_HISTORY = "“{name}”:\n{lines}"
    CRON_STATUS_ON = "Jobs run. {active} active, {paused} paused; next {next}."
    CRON_STATUS_OFF = "Jobs do not run: {reason}."
    CRON_STATUS_STOPPED = "the timer does not run"
    CRON_OVERDUE = "{count} overdue."
    CRON_USAGE = (
        "/cron: your jobs\n/cron add WHEN TEXT: /cron add 30m tea is ready, or /cron add weekdays at 8 news\n"
        "  --no-agent sends TEXT as it stands, --name NAME, --deliver TARGET, --repeat N, --tz ZONE\n"
        "/cron show|pause|resume|run|remove|history JOB\n/cron edit JOB --schedule WHEN --prompt TEXT\n/cron status\n"
        "WHEN: 30m; every 2h; 0 8 * * 1-5; 2026-03-01T09:00; tomorrow 9:00; weekdays at 8"
    )

    def job_state(self, state: str) -> str:
        """Name the state of a job, of a due time, of a run or of a delivery."""
        return state

    # Models that fail. A clause goes on from PROVIDER_DID.
    PROVIDER_DID = "My model ({provider}) {clause}"
    PROVIDER_FAILED = "{what}. {cure}."
    FELL_BACK = "{what}. I answered with the fallback, {fallback}."
    NO_FALLBACK = "{what}, and there is no fallback. {cure}."
    FALLBACKS_FAILED = "{what}, and the fallback ({names}) failed too. {cure}."
    ASKED_AGAIN = "{what}. I asked once more; the answer starts over."
    AND = " and "
    PROVIDER_AUTH = "does not accept the key"
    PROVIDER_QUOTA = "says the account is out of credit"
    PROVIDER_RATE = "says that too many requests came at once"
    PROVIDER_RATE_WAIT = "says that too many requests came at once and asks to wait {seconds:.0f} s"
    PROVIDER_CONTEXT = "says this conversation has grown too long for it"
    PROVIDER_MODEL = "does not know the model that is configured"
    PROVIDER_NO_SUCH_MODEL = "does not know the model “{model}”"
    PROVIDER_REQUEST = "refused the request"
    PROVIDER_REFUSED = "refused the request: {detail}"
    PROVIDER_TRANSIENT = "did not answer"
    PROVIDER_EMPTY = "answered with nothing"
    PROVIDER_UNREACHABLE = "could not be reached ({reason})"
    NO_CONNECTION_IN_TIME = "no connection in time"
    PROVIDER_BROKE_OFF = "broke off in the middle of its answer"
    PROVIDER_BROKE_OFF_BECAUSE = "broke off in the middle of its answer ({reason})"
    PROVIDER_SILENT = "said nothing for {seconds:g} s"
    PROVIDER_OVER_DEADLINE = "did not finish within {seconds:g} s"
    PROVIDER_TROUBLE = "has a problem of its own"
    PROVIDER_TROUBLE_BECAUSE = "has a problem of its own ({reason})"
    PROVIDER_OVERLOADED = "is overloaded at the moment"
    PROVIDER_NO_KEY = "needs a key, and none is set"
    PROVIDER_ODD_KEY = "has a key with characters that no key has (a stray quote, space or line break?)"
    PROVIDER_WEB_PAGE = "answered with a web page instead of an answer; its base_url is probably not an API address"
    PROVIDER_NO_SUCH_ADDRESS = "has nothing at this address; its base_url is probably wrong (does it lack /v1?)"
    PROVIDER_MOVED = "says that it has moved; its base_url needs the new address"
    PROVIDER_UNREADABLE = "sent something that cannot be read"
    PROVIDER_TOO_LONG = "used up its token limit before it said anything"
    PROVIDER_FILTERED = "stopped the answer with its content filter"
    CURE_AUTH = "Owner: check the key, then `hermes doctor`"
    CURE_QUOTA = "Owner: check the key and credit, then `hermes doctor`"
    CURE_RATE = "Please try again in a moment"
    CURE_CONTEXT = "/new starts a fresh session"
    CURE_MODEL = "Owner: set `model.default` to a model of this provider, then `hermes doctor`"
    CURE_REQUEST = "Owner: `hermes doctor` shows the provider and model in use"
    CURE_TRANSIENT = "Please try again in a moment. Owner: `hermes doctor` shows more"
    CURE_EMPTY = "Please ask again, perhaps in other words"
    ANSWER_ENDED_EARLY = "The model's answer ended before it began."

    # The built-in model
    BUILT_IN_HINT = (
        "(built-in model: English small talk, no tools, no web. "
        "For real work: hermes setup, or put OPENAI_API_KEY or OPENROUTER_API_KEY into {env})"
    )
    BUILT_IN_NOTHING = "The built-in model found nothing to say to that."
    BUILT_IN_CROWD = (
        "The built-in model answers one message at a time, and too many are waiting. Ask again in a minute."
    )
    BUILT_IN_FAILED = "The built-in model failed ({reason}). Ask again, or use a real model."
    BUILT_IN_NO_FORMAT = "The built-in model cannot answer in the requested format. Use a real model."
    BUILT_IN_MISSING = "The built-in model is not here yet. {reason}"
    BUILT_IN_COMING = "The built-in model is still being fetched: {done} of {total} MB. Ask again in a minute."

    # What is asked before a tool runs
    ASK_WRITE_RUNS = "May I write {path}? It is not an ordinary file: what is written there runs by itself later."
    ASK_WRITE_KEYS = "May I write {path}? It is not an ordinary file: it contains keys or decides who has access."
    ASK_READ_KEYS = "May I read {path}? It contains keys, and the model's provider would see them."
    ASK_SEND = "Send this to {targets}?\n{text}"
    ASK_SKILL = "May I {action} the skill {name!r}, which everybody's agent reads here?"
    ASK_SHARED = "Use {name}? Somebody with fewer rights ({role}) writes in this conversation too, so I ask first."
    ASK_BROKEN = "Run {name}? (Its own rule for when to ask has failed.)"
    CLARIFY = "A number, or your own words."
    WHERE_FILES = "files in {folder}"
    WHERE_LOCAL = "on this machine, in {folder}"
    WHERE_GUARDED = "in a sandbox on this machine, in {folder}"
    WHERE_OUTSIDE = "OUTSIDE the sandbox, on this machine, in {folder}"
    ASK_OUTSIDE = "It asks to run outside the sandbox, with all rights of your account."
    ASK_OUTSIDE_REASON = "It asks to run outside the sandbox, with all rights of your account. Its reason: {reason}"
    WHERE_SANDBOX = "in a sandbox (with network), in {folder}"
    WHERE_SANDBOX_OFFLINE = "in a sandbox (without network), in {folder}"
    WHERE_CONTAINER = "in a container of {image} (with network), in {folder}"
    WHERE_CONTAINER_OFFLINE = "in a container of {image} (without network), in {folder}"
    WHERE_LANDLOCK_OFFLINE = "under Landlock (without network), in {folder}"
    WHERE_SSH = "over ssh on {host}, in {folder}"
    WHERE_SSH_HOME = "the home there"
    DANGER_DELETE_TREE = "It deletes folders with everything in them."
    DANGER_DELETE_ALL = "It deletes everything in the folder it works in, or a whole home."
    DANGER_FORMAT = "It formats or partitions a disk."
    DANGER_DEVICE = "It writes to a device."
    DANGER_PERMISSIONS = "It changes owners or permissions of whole folders, or lets everybody write."
    DANGER_SERVICES = "It stops, starts or changes services of this machine."
    DANGER_GATEWAY = (
        "It stops or restarts the gateway itself. There is a safe way that lets running work finish: the owner types "
        "/restart in a chat, or `hermes gateway restart` on this machine."
    )
    DANGER_KILL = "It ends processes."
    DANGER_NETWORK_TO_SHELL = "It runs a program straight from the network."
    DANGER_ACCOUNTS = "It changes who may log in or what runs by schedule: users, sudoers, cron, SSH keys."
    DANGER_PACKAGES = "It installs or removes software of this machine."
    DANGER_ROOT = "It runs with the rights of another user (sudo)."
    DANGER_GIT = "It throws away commits or changes that may exist nowhere else."
    DANGER_HERMES_HOME = "It names the folder in which Hermes keeps its settings and secrets."
    DANGER_SECRETS = "It may show passwords, keys or tokens."
    DANGER_POWER = "It shuts this machine down or restarts it."
    DANGER_CONTAINER = "It starts a container that can reach this machine, or removes one with its data."
    DANGER_DATABASE = "It drops or empties a database."
    DANGER_SYSTEM_FILES = (
        "It writes to the system's own folders, or to a file that other programs run or obey by themselves."
    )
    DANGER_NETWORK = "It changes the network or the firewall of this machine, or opens it to others."
    DANGER_KERNEL = "It changes the kernel or mounts."
    DANGER_REMOTE = "It runs a command on another machine."
    DANGER_SENDS = "It sends data to another machine."
    DANGER_DETACHES = "It starts work that goes on after this command, where I cannot stop it."
    DANGER_OUTSIDE = "It may change files outside of the working folder."
    DANGER_CODE = "It runs code, and I cannot tell from its text what the code does."
    DANGER_UNJUDGED = "I cannot tell from its text what it would run."
    DANGER_NOT_ONLY_READING = "It may change something (approvals.mode is 'unknown')."
    DANGER_EVERY = "I ask before every command (approvals.mode is 'all')."

    def summary(self, _command: str, english: str) -> str:
        """What a command is for; in English it says so itself."""
        return english

    def group(self, _name: str, english: str) -> str:
        """What a group of tools is for; in English it says so itself."""
        return english

    def role(self, name: str) -> str:
        return name

    def state(self, english: str) -> str:
        """How an account of a platform stands."""
        return english

    def reason(self, english: str) -> str:
        """Why something ended, where the reason is one of ours."""
        return english

    def span(self, seconds: float) -> str:
        """A length of time as people say it: 45 seconds, 5 minutes, 2 hours."""
        for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
            if seconds >= size * 1.5 or (seconds >= size and seconds % size == 0):
                count = round(seconds / size)
                return f"{count} {name}{'' if count == 1 else 's'}"
        count = max(1, round(seconds))
        return f"{count} second{'' if count == 1 else 's'}"

    def lines(self, count: int) -> str:
        """How long a conversation is."""
        return f"{count:,} line{'' if count == 1 else 's'}"

    def amount(self, size: int) -> str:
        """A number of bytes as people say it."""
        for unit, name in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")):
            if size >= unit:
                return f"{size / unit:.1f} {name}".replace(".0 ", " ")
        return f"{size} bytes"

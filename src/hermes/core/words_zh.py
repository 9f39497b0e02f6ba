"""The sentences people read in a chat, in Simplified Chinese."""

from __future__ import annotations

from hermes.core.words import Words


class Chinese(Words):
    # Who may talk
    STRANGER = (
        "你好～我还不认识你！\n请让机器人的主人把你的 ID {sender_id} 加到 {setting} 里。\n"
        "（这是你自己的机器人？那就把这一行写进 ~/.hermes/.env，不用重启。）"
    )
    PAIRING = (
        "你好～我还不认识你！\n这是你的配对码：`{code}`\n请让机器人的主人运行：\n"
        "hermes pairing approve {platform} {code}\n"
        "（这是你自己的机器人？那就在运行 Hermes 的机器上自己执行一下。配对码一小时内有效。）"
    )
    TOO_MANY_STRANGERS = "你好～我还不认识你，前面还有几位在等主人同意。请一小时后再发一条消息给我。"
    SOMEBODY = "有人"
    STRANGER_AT_THE_DOOR = "{who} 想和我聊天。\n点按钮同意，或运行：hermes pairing approve {platform} {code}"
    STRANGERS_QUEUE = "{who} 也想和我聊天，不过 {platform} 上已经有人在排队。先处理他们：hermes pairing list"
    LET_IN_BUTTON = "同意"
    SEND_AWAY_BUTTON = "拒绝"
    LET_IN = "欢迎！有事尽管说，/help 看看我会什么。发 /sethome，提醒和通知就会发到这个聊天。"
    LET_IN_NAMED = "欢迎你，{name}！有事尽管说，/help 看看我会什么。发 /sethome，提醒和通知就会发到这个聊天。"
    NOT_YOURS_TO_LET_IN = "只有管理员或主人可以放人进来。"
    MAY_TALK_NOW = "{name} 现在可以和我聊天了。"
    SENT_AWAY = "已经悄悄回绝 {name}。一小时后对方可以再来问。"
    NO_SUCH_CODE = "没有这个配对码。"
    PAIRING_LOCKED = (
        "{platform} 上输错配对码的次数太多，{minutes} 分钟内不能再批准。在本机上仍然可以：hermes pairing approve"
    )

    # How a turn ends
    SET_ASIDE_AFTER_DEATHS = (
        "你的上一条消息我先搁下了：处理它时我意外中断了 {deaths} 次。"
        "主人可以用 `hermes trace {turn_id}` 看看做到了哪一步。"
    )
    FAILED = "处理这件事时我自己出错了（{reason}）。已经记录下来：`hermes trace {turn_id}`。"
    TIMED_OUT = "做了 {minutes} 分钟还没做完，我先停下了。请再说一次，或者分成几小步。"
    EMPTY_REPLY = "模型什么也没回答。请再问一次，或者换个说法。"
    SHUTTING_DOWN = "⚠️ 网关即将关闭，正在做的事会先停一下，重启后接着做。"
    LOOPING = "同样的操作我做了 {count} 次，结果都一样，所以停在这里。"
    RENEWED_IDLE = "这里安静了 {span}，所以开了新会话。/resume last 可以接着聊之前的。"
    RENEWED_DAILY = "{hour}:00 起算新的一天，所以开了新会话。/resume last 可以接着聊之前的。"
    INTERRUPTED_MARK = "…（已中断）"

    # Approvals
    WAITS_FOR_APPROVAL = "我还在等上面那个问题的答复，这条先排队。请 /approve、/deny，或者 /stop 放弃。"
    ASKED_BELOW = "我先问一下："
    APPROVAL = "可以运行 `{name}`{where} 吗？\n```\n{arguments}\n```\n{question}"
    APPROVAL_CUT = "[还有 {more:,} 个字符没有显示]"
    APPROVAL_ANSWER = "/approve {code} 同意，/deny {code} [理由] 拒绝。{span}内有效，过后我就不做这一步了。"
    APPROVAL_ANSWER_SCOPED = (
        "/approve {code} 同意，/approve {code} session 同意且本次会话不再问同类的事，"
        "/approve {code} always 以后都同意，/deny {code} [理由] 拒绝。{span}内有效，过后我就不做这一步了。"
    )
    APPROVAL_BUTTONS = "点按钮，或输入 {typed}"
    APPROVAL_TAKES_ADMIN = "这会动到这台机器，要由管理员或主人来答复。"
    APPROVAL_TIMEOUTS = "我问了 {count} 次都没人答复，就先停在这里，什么也没运行。你在的时候说一声，我再问。"
    APPROVE_BUTTON = "同意"
    DENY_BUTTON = "拒绝"
    APPROVE_SESSION_BUTTON = "本次会话都同意"
    APPROVE_ALWAYS_BUTTON = "以后都同意"
    CARD_ALLOWED = "✓ {who} 已同意。"
    CARD_ALLOWED_SESSION = "✓ {who} 已同意，本次会话里也不再问。"
    CARD_ALLOWED_ALWAYS = "✓ {who} 已同意，以后都不再问。/approvals 可以查看和撤销。"
    CARD_DENIED = "✗ {who} 已拒绝。"
    CARD_DENIED_BECAUSE = "✗ {who} 已拒绝：{reason}"
    CARD_EXPIRED = "⌛ 已过期：{span}内没人答复，所以没有运行。"
    CARD_WITHDRAWN = "已撤回（{reason}），没有运行。"
    SOMEBODY_ANSWERED = "有人"

    # Commands
    COMMAND_FAILED = "这个命令没有成功：{reason}"
    UNKNOWN_COMMAND = "没有 /{name} 这个命令。/help 可以看到全部命令。"
    UNKNOWN_COMMAND_NEAR = "没有 /{name} 这个命令。你是想用 /{nearest} 吗？/help 可以看到全部命令。"
    NOT_ALLOWED = "/{name} 需要 {role} 身份，你现在是 {mine}。"
    OLD_BUTTON = "这个按钮已经失效了。"
    LANGUAGE_IS = "我现在和你说中文。/language en：English；/language auto：看你怎么写。"
    LANGUAGE_SET = "好的，以后我都和你说中文。"
    LANGUAGE_AUTO = "好的，以后你写中文我就说中文，写英文我就说英文。"
    LANGUAGE_FIXED = "主人给所有人定了中文（`language: {language}`），以它为准。"
    LANGUAGE_UNKNOWN = "我会说中文和英文：/language zh、/language en 或 /language auto。"

    # Files
    FILE_NOT_SENT = "（{name} 没有发出去：{reason}）"
    FILE_NOT_TAKEN = "{name} 没有送到：{reason}"
    FILE_LIES_AT = "📎 {name}：{path}"
    FILE_TOO_BIG = "它有 {size}，这里最多能发 {most}"
    FILE_IS_EMPTY = "它是空的"
    FILES_TOO_MANY = "一条回答最多带 {most} 个文件"
    FILE_NOT_COPIED = "复制不了（{reason}）"
    FILE_HERE_CANNOT = "这里收发不了文件"
    FILE_DID_NOT_COME = "{name} 我没拿到：{reason}"
    FILE_TOO_BIG_TO_GET = "它有 {size}，这里我最多能拿 {most}"
    FILE_TOO_SLOW = "等了{span}还没传完"
    FILES_TOO_MANY_TO_GET = "一次最多收 {most} 个文件"

    # Voice
    NOT_HEARD = "语音收到了，但没听出你说什么：{reason}。"
    NOT_SAID = "（这段没能念出来：{reason}。）"
    VOICE_ON = "on：你发语音，我也用语音回答。"
    VOICE_OFF = "off：我不出声。"
    VOICE_ONLY_WHEN_ASKED = "only-when-asked：你要我说，我才出声。"
    VOICE_NOW = "{now}还可以选：{others}。"

    # Tools at work
    TOOL_PROGRESS_OFF = "只给你看回答，用了什么工具不显示。"
    TOOL_PROGRESS_NEW = "每换一个工具，给你显示一行。"
    TOOL_PROGRESS_ALL = "每用一次工具，给你显示一行。"
    TOOL_PROGRESS_VERBOSE = "每用一次工具，给你看参数和结果的第一行。"
    TOOL_PROGRESS_NOW = "{now}还可以选：{others}。"
    TOOL_PROGRESS_UNKNOWN = "没有 {word!r} 这一项。{usage}"

    def span(self, seconds: float) -> str:
        for size, name in ((86400, "天"), (3600, "小时"), (60, "分钟")):
            if seconds >= size * 1.5 or (seconds >= size and seconds % size == 0):
                return f"{round(seconds / size)} {name}"
        return f"{max(1, round(seconds))} 秒"

    def amount(self, size: int) -> str:
        return f"{size} 字节" if size < 1000 else super().amount(size)

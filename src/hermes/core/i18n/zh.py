"""The sentences people read in a chat, in Simplified Chinese."""

from __future__ import annotations

from hermes.core.i18n.en import Texts

SUMMARIES = {
    "agents": "现在有哪些事在为你做",
    "approvals": "看看有什么等你答复，以及你长期同意过什么",
    "approve": "同意我问的事",
    "kanban": "任务看板",
    "background": "在后台做一件事，不占用这个聊天",
    "branch": "复制这个会话，接着聊",
    "busy": "我忙的时候，新消息怎么处理",
    "commands": "全部命令，逐个说明",
    "compress": "把这段对话压缩一下",
    "cron": "定时做事，或者反复做",
    "deny": "拒绝我问的事",
    "help": "可以对我说什么",
    "history": "这个会话最近的几行",
    "language": "我和你说什么语言",
    "model": "这里由哪个模型回答",
    "owner": "告诉我你是不是主人",
    "new": "在这里开始新会话",
    "personality": "我在这里是谁",
    "platform": "打开或暂停一个平台",
    "platforms": "我连着哪些平台",
    "queue": "等我做完手上的事再说的话",
    "reasoning": "我想得多深",
    "restart": "重启网关；手上的事重启后接着做",
    "resume": "在这里接着聊以前的会话",
    "retry": "把上一个问题再问一遍",
    "rollback": "看看我改过哪些文件，或者撤回",
    "sessions": "你的会话，最近的在前",
    "sethome": "提醒和通知都发到这个聊天",
    "skills": "我有哪些技能",
    "status": "我忙不忙，连着哪些平台",
    "steer": "对我手上的事补充一句",
    "stop": "停下手上的事",
    "title": "给这个会话起个名字",
    "tools": "在这里我能为你用哪些工具",
    "undo": "撤回最近一轮或几轮对话",
    "usage": "这里和今天用了多少 token",
    "verbose": "我用工具时给你看多少",
    "version": "这是哪个版本的 Hermes",
    "voice": "什么时候用语音回答",
    "whoami": "在我这里你是谁",
}
GROUPS = {
    "files": "读、写、改和查找文件",
    "terminal": "运行命令，也可以在后台",
    "code": "运行 Python",
    "web": "搜索网络，阅读网页",
    "vision": "看图片",
    "planning": "列步骤清单",
    "talk": "向你提问",
    "delegation": "把任务分出去做",
    "messaging": "给别的聊天发消息",
    "memory": "查以前的对话",
    "skills": "读专门任务的做法",
    "schedule": "以后再做的事",
    "voice": "用语音说话",
    "kanban": "维护任务看板，并让任务得到完成",
}
ROLES = {"owner": "主人", "admin": "管理员", "user": "用户", "guest": "访客"}
JOB_STATES = {
    "active": "启用", "paused": "已暂停", "done": "完成", "ran": "已运行", "late": "补跑", "missed": "错过",
    "skipped": "跳过", "open": "进行中", "silent": "无需发送", "failed": "失败", "stopped": "被停止", "none": "",
    "waiting": "发送中", "sent": "已送达",
}  # fmt: skip
STATES = {
    "connecting": "连接中",
    "connected": "已连接",
    "unreachable": "连不上",
    "silent": "没有动静",
    "conflict": "被别的程序占用",
    "signed out": "已退出登录",
    "broken": "出错了",
    "paused": "已暂停",
    "not configured": "还没配置好",
    "elsewhere": "在另一个节点上",
}
REASONS = {
    "its maker may not give orders here any more": "创建它的人已经不能在这里下达指令",
    "paused by hand": "手动暂停",
    "quiet hours": "安静时段",
    "the owner": "主人",
    "interrupted by a newer message": "被新消息打断",
    "stopped": "已停止",
    "a fresh session was started": "开始了新会话",
    "the turn ended": "这一轮结束了",
    "it took too long": "用时太久",
    "the model repeated one call": "模型一直重复同一步",
    "nobody answered what it asked": "一直没人答复",
    "crashed three times while it ran": "运行时中断了三次",
}


class Chinese(Texts):
    LANGUAGE = "zh"
    GAP = ""

    # At the command line
    BANNER = "欢迎使用 Hermes Agent！直接输入消息，/help 查看命令。"
    HOW_TO_LEAVE = "/exit — 退出；Ctrl+D 也行"
    CHAT_HINT = "Tab 补全，@ 加文件，Alt+Enter 换行，Ctrl+R 搜索，Ctrl+C 停止。"
    CHAT_THINKING = "思考中"
    CHAT_WRITING = "回答中"
    CHAT_STOPS = "Ctrl+C 停止"
    CHAT_STOPPING = "正在停止"
    CHAT_INTERRUPTS = "回车发送新消息并打断它"
    CHAT_QUEUES = "回车发送的消息排在它之后"
    CHAT_STEERS = "回车发送的消息会在它工作时交给它"
    CHAT_PRESS_AGAIN = "再按一次 Ctrl+C 离开"
    CHAT_MAY_I = "可以运行这个吗？"
    CHAT_WHY = "为什么问：{why}"
    CHAT_YES = "可以"
    CHAT_YES_SESSION = "可以，本次会话不再问"
    CHAT_YES_ALWAYS = "可以，以后都不再问"
    CHAT_NO = "不可以"
    CHAT_NO_WHY = "不可以，并说明原因"
    CHAT_REASON = "为什么不"
    CHAT_CHOOSE = "用方向键、数字或字母选择；Esc 稍后回答"
    CHAT_TOO_LONG = "共 {count:,} 个字符，请全部读完。要同意，请按 Esc，然后输入 /approve {proof}"
    CHAT_ANSWER_LATER = "还没有回答：/approve {code} 或 /deny {code}"
    CHAT_OWN_WORDS = "都不是：我自己输入"
    CHAT_PASTED = "[粘贴了 {count} 行]"
    CHAT_PICK = "哪一个对话？输入文字即可搜索。"
    CHAT_PICK_NOTHING = "还没有对话。"
    CHAT_LINES = "行"
    CHAT_TOKENS = "{count} 个 token"
    CHAT_CONTEXT = "上下文 {percent} %"
    CHAT_WAITING = "{count} 条等待中"
    CHAT_VERBOSE_ON = "工具的结果会显示在它下面。再次输入 /verbose 就隐藏。"
    CHAT_VERBOSE_OFF = "每个工具只显示一行。/verbose 显示结果。"
    CHAT_FROM = "始于 {platform}"
    CHAT_VIA = "来自 {origin}"
    CHAT_ELSEWHERE = "这个对话现在在 {platform} 上继续。在这里输入就会把它接回来。"
    CHAT_BACK = "已从 {platform} 接回。"
    CHAT_REASONING_ON = "模型的思考过程会以暗色显示。/reasoning hide 隐藏。"
    CHAT_REASONING_OFF = "模型的思考过程已隐藏。/reasoning show 显示。"
    CHAT_RESTARTED = "网关已重启，继续"
    CHAT_QUEUED = "排队等待，直到你回答：{codes}"
    CHAT_LOOK = "查看：{command}"
    CHAT_MORE_LINES = "… 还有 {count} 行"
    CHAT_FILE_ADDED = "已加入 {name}（{size}）"
    CHAT_FILE_LEFT_OUT = "没有加入 {name}：{reason}"

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
    SOMEBODY = "有人"
    STRANGER_AT_THE_DOOR = "{who} 想和我聊天。\n点按钮同意，或运行：hermes pairing approve {platform} {code}"
    STRANGERS_QUEUE = (
        "{who} 也想和我聊天。{platform} 上有很多陌生人来信，"
        "所以接下来一小时我不再逐个来问。查看全部：hermes pairing list"
    )
    CARD_GAVE_WAY = "已让位给更新的请求。按 ID 放行：hermes pairing approve PLATFORM --user ID"
    LET_IN_BUTTON = "同意"
    SEND_AWAY_BUTTON = "拒绝"
    LET_IN = "欢迎！有事尽管说，/help 看看我会什么。发 /sethome，提醒和通知就会发到这个聊天。"
    LET_IN_NAMED = "欢迎你，{name}！有事尽管说，/help 看看我会什么。发 /sethome，提醒和通知就会发到这个聊天。"
    OWNER_ASK = (
        "你就是主人吗？只有 {id} 可以给我发消息，而我还没有主人。主人的命令直接在我所在的机器上运行，"
        "也可以批准涉及这台机器的事；否则命令只在沙箱里运行。\n请回答 /owner yes 或 /owner no。"
    )
    OWNER_YES_BUTTON = "是，我是主人"
    OWNER_NO_BUTTON = "不是"
    OWNER_CONFIRMED = "现在你是我的主人了。从你的下一条消息起，命令直接在我所在的机器上运行。"
    OWNER_DECLINED = "好的，不会再问；你的命令留在沙箱里。在本机上可以这样指定主人：`hermes people role {id} owner`"
    OWNER_ALREADY = "你就是我的主人。"
    OWNER_ONLY_PRIVATELY = "这件事只在私聊里决定。"
    OWNER_AT_MACHINE = (
        "只有在本机上的人才能指定你是主人：`hermes people role {id} owner`，或者设置 `owners`（GATEWAY_OWNERS={id}）。"
    )
    OWNER_USAGE = "/owner yes 或 /owner no。"
    NOT_YOURS_TO_LET_IN = "只有管理员或主人可以放人进来。"
    MAY_TALK_NOW = "{name} 现在可以和我聊天了。"
    SENT_AWAY = "已经悄悄回绝 {name}。一小时后对方可以再来问。"
    NO_SUCH_CODE = "没有这个配对码。"
    NOBODY_WAITS = "{platform} 上没有人在等待。在那里给机器人发消息的人会收到新的配对码，一小时内有效。"
    PAIRING_LOCKED = (
        "{platform} 上输错配对码的次数太多，{minutes} 分钟内不能再批准。在本机上仍然可以：hermes pairing approve"
    )

    # How a turn ends
    SET_ASIDE_AFTER_DEATHS = (
        "你的上一条消息我先搁下了：处理它时我意外中断了 {deaths} 次。"
        "主人可以用 `hermes trace {turn_id}` 看看做到了哪一步。"
    )
    FAILED = "处理这件事时我自己出错了。主人：`hermes trace {turn_id}` 可以看到进行到了哪一步。"
    TIMED_OUT = "做了{span}还没做完，我先停下了。请再说一次，或者分成几小步。"
    EMPTY_REPLY = "模型什么也没回答。请再问一次，或者换个说法。"
    SHUTTING_DOWN = "⚠️ 网关即将关闭，正在做的事会先停一下，重启后接着做。"
    LOOPING = "同样的操作我做了 {count} 次，结果都一样，所以停在这里。"
    RENEWED_IDLE = "这里安静了 {span}，所以开了新会话。/resume last 可以接着聊之前的。"
    RENEWED_DAILY = "{hour}:00 起算新的一天，所以开了新会话。/resume last 可以接着聊之前的。"
    INTERRUPTED_MARK = "…（已中断）"

    # Approvals
    WAITS_FOR_APPROVAL = "我还在等上面那个问题的答复，这条先排队。请 /approve、/deny，或者 /stop 放弃。"
    ASKED_BELOW = "我先问一下："
    APPROVAL = "可以运行 `{name}` 吗？\n{what}\n{question}"
    APPROVAL_WHERE = "可以运行 `{name}`{where}吗？\n{what}\n{question}"
    APPROVAL_CUT = "[…… 这里有 {more:,} 个字符没有显示 ……]"
    APPROVAL_LONG_FILE = "上面只是一部分：全部 {count:,} 个字符在文件 {file} 里。请读完，最后一行写着怎么同意。"
    APPROVAL_LONG_MESSAGES = "上面只是一部分：全部 {count:,} 个字符在前面几条消息里。请读完，最后一行写着怎么同意。"
    APPROVAL_LONG_HERE = "共 {count:,} 个字符。请全部读完，最后一行写着怎么同意。"
    APPROVAL_LONG_ELSEWHERE = (
        "上面只是 {count:,} 个字符中的一部分，这个聊天放不下全部。请在本机上读完：`hermes approvals show {code}`"
    )
    APPROVAL_DENY = "/deny {code} [理由] 拒绝。{span}内有效，过后我就不做这一步了。"
    APPROVAL_AT_END = "同意请发：/approve {proof}"
    APPROVAL_AT_END_SCOPED = (
        "同意请发：/approve {proof}，或 /approve {proof} session（本次会话里这类事不再问），或 /approve {proof} always"
    )
    APPROVAL_AT_END_SHARED = "同意请发：/approve {proof}，或 /approve {proof} session（到 /new 为止不再问这个工具）"
    APPROVAL_ANSWER = "/approve {code} 同意，/deny {code} [理由] 拒绝。{span}内有效，过后我就不做这一步了。"
    APPROVAL_ANSWER_SCOPED = (
        "/approve {code} 同意，/approve {code} session 同意且本次会话不再问同类的事，"
        "/approve {code} always 以后都同意，/deny {code} [理由] 拒绝。{span}内有效，过后我就不做这一步了。"
    )
    APPROVAL_ANSWER_SHARED = (
        "/approve {code}、/approve {code} session（到 /new 为止不再问这个工具），或 /deny {code} [原因]。"
        "{span}内有效，过时我就不做这件事，继续往下。"
    )
    APPROVAL_BUTTONS = "点按钮，或输入 {typed}"
    APPROVAL_TAKES_ADMIN = "这会动到这台机器，要由管理员或主人来答复。"
    APPROVAL_TAKES_NAMED_KEY = (
        "这会影响本机，而当前的 API 密钥保存在文件中，我自己的命令也能读到它。请在终端里回答"
        "（`hermes approvals approve {code}`），或在聊天中回答，或使用管理员的具名密钥。"
    )
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
    CARD_REFUSED = "✗ {who} 已拒绝。"
    CARD_EXPIRED = "⌛ 已过期：{span}内没人答复，所以没有运行。"
    CARD_WITHDRAWN = "已撤回（{reason}），没有运行。"
    SOMEBODY_ANSWERED = "有人"

    # Commands
    COMMAND_FAILED = "这个命令没有成功：{reason}"
    COMMAND_BROKE = "这个命令没有成功。主人：`hermes logs --level error` 可以看到原因。"
    UNKNOWN_COMMAND = "没有 /{name} 这个命令。/help 可以看到全部命令。"
    UNKNOWN_COMMAND_NEAR = "没有 /{name} 这个命令。你是想用 /{nearest} 吗？/help 可以看到全部命令。"
    UNKNOWN_COMMAND_SKILL = "没有 /{name} 这个命令。你是想用 /{nearest} 这个技能吗？/help 可以看到全部命令。"
    NOT_ALLOWED = "/{name} 需要{role}身份，你现在是{mine}。"
    OLD_BUTTON = "这个按钮已经失效了。"
    LANGUAGE_IS = "我现在和你说中文。/language en：English；/language auto：看你怎么写。"
    LANGUAGE_SET = "好的，以后我都和你说中文。"
    LANGUAGE_AUTO = "好的，以后你写中文我就说中文，写英文我就说英文。"
    LANGUAGE_FIXED = "主人给所有人定了中文（`language: {language}`），以它为准。"
    LANGUAGE_UNKNOWN = "我会说中文和英文：/language zh、/language en 或 /language auto。"

    HELP_HEAD = "直接跟我说话就行。另外还有这些命令："
    HELP_LINE = "{heading}：{names}"
    HELP_FOOT = "/commands 逐个说明，/help NAME 说明其中一个。"
    HELP_TALK = "这段对话"
    HELP_WORK = "我在忙的时候"
    HELP_ANSWERS = "我怎么回答"
    HELP_ABILITIES = "我能用什么"
    HELP_ABOUT = "关于我和你"
    HELP_CARE = "给管理员和主人"
    HELP_MORE = "其他"
    HELP_ALSO = "也可以写：{names}。"
    HELP_ROLE = "需要{role}或更高的身份。"
    STATUS_IDLE = "我在，现在没有在忙的事。"
    STATUS_WORKING = "我在，正在处理你的消息，已经 {span}（{turn}）。"
    STATUS_ASKING = "我在，正等你答复：/approve {code} 或 /deny {code}。"
    STATUS_CHATS = "已连接：{names}。"
    STATUS_NO_CHATS = "还没有连接任何聊天平台。"
    STATUS_DOWN = "没连上：{names}。"
    STATUS_WAITING = "后面排队的消息：{count} 条。"
    STATUS_QUESTIONS = "等你答复的问题：{count} 个（/approvals）。"
    STATUS_MODEL = "模型：{model}。"
    STATUS_MODEL_CHOSEN = "模型：{model}，在这里选定的。"
    STATUS_MODEL_SETTLED = "模型：{model}，为这个聊天设定的。"
    STATUS_PERSONALITY = "性格：{name}。"
    STATUS_SESSION = "会话：{title}，{lines}。"
    STATUS_NO_SESSION = "会话：还没有，下一条消息就开始。"
    STATUS_BUSY = "我忙的时候，{meaning}（/busy）。"
    NONE = "无"
    WHOAMI = "{name}：{platform} {sender_id}，身份是{role}。这个聊天是 {lane}。"
    WHOAMI_YOU = "你"
    VERSION = "Hermes {version} 版"

    # Asking again, what was spent, who I am
    RETRY = "再来一次：“{text}”"
    RETRY_NOTHING = "这里没有可以重问的内容，直接跟我说话就行。"
    RETRY_BUSY = "我还在忙。先 /stop，再 /retry。"
    RETRY_NOT_YOURS = "上一个问题是别人问的，只有本人才能让我重来。"
    USAGE_SESSION = "本次会话：{spent}"
    USAGE_YOU = "你今天：{spent}"
    USAGE_EVERYBODY = "所有人今天：{spent}"
    USAGE_SPENT = "输入 {prompt:,} 个 token，输出 {completion:,} 个（{turns:,} 轮）"
    USAGE_NOBODY = "（不属于任何人）"
    PERSONALITY_NOW = "我在这里是“{name}”。"
    PERSONALITY_OWN = "我在这里就是我自己。"
    PERSONALITY_OTHERS = "我可以是：{names}。用 /personality NAME 换成别的，/personality default 换回来。"
    PERSONALITY_NONE = "没有别的了。主人可以在 config.yaml 的 `personalities:` 里添加。"
    PERSONALITY_CHOSEN = "从下一条消息起，我在这里是“{name}”。/personality default 换回来。"
    PERSONALITY_DEFAULT = "从下一条消息起，我在这里按主人的设定来。"
    PERSONALITY_UNKNOWN = "没有“{name}”这个性格。我可以是：{names}。"
    PERSONALITY_NEAR = "没有“{name}”这个性格，你是想说 {nearest} 吗？我可以是：{names}。"
    PERSONALITY_NOT_YOURS = "这段对话由几个人共用，只有管理员或主人能决定我是谁。"

    # /approve, /deny, /approvals
    APPROVALS_NOTHING_HERE = "这里没有等你答复的问题。"
    APPROVALS_NO_SUCH = "这里没有这个问题。"
    APPROVE_UNREAD = "看不懂 {word!r} 是什么意思：/approve [CODE|all] [session|always]。"
    APPROVALS_REVOKED = "已撤销：{grant}。以后我会再问。"
    APPROVALS_NO_GRANT = "没有这条授权。"
    APPROVALS_USAGE = "/approvals 查看等待答复的问题和已有的授权；/approvals revoke ID 撤销一条授权。"
    APPROVALS_MORE = "… 还有 {count} 条：`hermes approvals list` 和 `hermes approvals grants` 可以看全部。"
    APPROVALS_NOTHING = "没有等待答复的问题，也没有长期授权。"
    GRANT_SESSION = "{subject}（仅一次会话）"
    GRANT_ALWAYS = "{subject}（一直有效）"
    APPROVED_OF = "{all} 个里同意了 {count} 个。"
    DENIED_OF = "{all} 个里拒绝了 {count} 个。"
    OTHERS_ANSWER = "有 {count} 个要由管理员或主人答复。"
    ANSWERED_MEANWHILE = "有 {count} 个刚才已经有人答复了。"
    ASKED_AFTER = "你发消息之后才问的：{questions}"
    WHICH_QUESTION = "是哪一个？请带上编号答复。{questions}"
    ANSWER_ALLOWED = "已同意，我接着做。"
    ANSWER_ALLOWED_SESSION = "已同意，我接着做。本次会话里同类的事不再问。"
    ANSWER_ALLOWED_ALWAYS = "已同意，我接着做。同类的事以后不再问；/approvals 可以查看和撤销。"
    ANSWER_ALLOWED_ONCE = "已同意，我接着做。只限这一次：这类事每次都要问。"
    ANSWER_DENIED = "已拒绝。我换个办法。"
    ANSWER_UNSEEN = (
        "没有同意：内容太长，没有全部显示出来。请读完，最后一行写着怎么同意。在本机上：`hermes approvals show {code}`"
    )
    UNSEEN_OF = "有 {count} 个太长，不能直接同意：各自的代码写在内容的末尾。"
    ANSWER_NOT_YOURS = "这个不归你答复，要由管理员或主人来。"
    ANSWER_NO_SUCH = "没有这个问题。"
    ANSWER_WAS_ALLOWED = "{who} 已经同意过了。"
    ANSWER_WAS_DENIED = "{who} 已经拒绝过了。"
    ANSWER_WITHDRAWN = "那个问题已经撤回了（{reason}）。"
    ANSWER_TOO_LATE = "晚了一步：一直没人答复，所以没有运行。"

    # /busy, /new, /stop
    BUSY_INTERRUPT = "新消息会打断我正在做的事，先处理新消息"
    BUSY_QUEUE = "消息一条一条排队"
    BUSY_STEER = "当前这步工具用完后，就把新消息交给我"
    BUSY_SET = "{mode}：{meaning}。"
    BUSY_NOW = "{mode}：{meaning}。还可以选：{others}（/busy {first}）。"
    FRESH_SESSION = "新会话开始了。"
    STOPPED = "已停下。"
    NOTHING_RUNNING = "现在没有在忙的事。"
    STOPPED_TURN = "刚才在做的事已经停了。"
    STOPPED_ONE = "还有 1 条排队的消息，先搁下了。"
    STOPPED_MANY = "还有 {count} 条排队的消息，先搁下了。"

    # /compress
    COMPRESS_NOTHING = "这里还没有可以压缩的内容。"
    COMPRESS_AT_IT = "正在压缩，好了告诉你。你接着聊，不用等。"
    COMPRESS_NOT_DONE = "对话保持原样。{reason}"
    COMPRESS_STOPPING = "我马上要停机了。"
    COMPRESS_DONE = "{lines}（{before:,} 个字符）→ {after:,} 个字符。以后我读摘要，原文都留着，/undo 可以恢复。"
    COMPRESS_WOULD = "{lines}（{before:,} 个字符）→ {after:,} 个字符。什么都没改。压缩后我会读这个：\n\n{summary}"
    COMPRESS_UNREAD = "没看懂。/compress 压缩对话，/compress --preview 先看看压缩后的样子。"
    COMPRESS_UNDONE = "之前的压缩被撤销了，现在还有空间。"
    COMPRESS_WENT_ON = "压缩的时候，对话已经往别处走了。"
    COMPRESS_TOO_LITTLE = "内容太少，不用压缩。"
    COMPRESS_NO_GAIN = "摘要不会比原文短。"

    # /model, /reasoning
    MODEL_NOT_YOURS = (
        "这个聊天里只有管理员或主人可以选模型。主人设置 `model.users_may_choose: true` 后，用户就能在自己的聊天里选。"
    )
    MODEL_WHICH = "要哪一个？/model list 可以看有哪些。"
    MODEL_CHOSEN = "{model}，是这个聊天选的。默认是 {default}，/model default 可以换回去。"
    MODEL_GONE = "{default}。这个聊天选的 {model} 已经不在配置里了。"
    MODEL_DEFAULT = "{default}，默认模型。"
    MODEL_SETTLED = "{default}，主人为这个聊天设定的。"
    MODEL_THINKS = "思考强度：{level}（/reasoning）。"
    MODEL_OTHERS = "/model list 看看别的。"
    MODEL_IS_DEFAULT = "{default}（默认）"
    MODEL_HOW = "/model use NAME；这些服务商的任何模型都行，写成 provider/model。"
    MODEL_BACK = "这个聊天换回默认模型：{default}。"
    MODEL_FROM_NOW = "从下一条消息起，这个聊天用 {model}。/model default 可以换回去。"
    MODEL_NO_PROVIDER = "没有 {provider!r} 这个服务商。已有：{known}。"
    MODEL_NO_KEY = "{provider} 还没有密钥。请设置 {variable}，或者换一个模型。"
    MODEL_ONLY_BUILT_IN = "现在只有内置小模型，用不了 {model}。请在本机运行：hermes setup"
    MODEL_WHICH_OF = "要 {provider} 的哪个模型？请写 {provider}/MODEL。"
    REASONING_LOW = "稍微想想，回答快"
    REASONING_MEDIUM = "想一想再答"
    REASONING_HIGH = "想透了再答，慢一些也贵一些"
    REASONING_OFF = "不思考直接答（模型支持的话）"
    REASONING_CHOSEN = "这个聊天选的"
    REASONING_NOW = "现在的思考强度是 {level}：{meaning}。还可以选：{others}。"
    REASONING_FREE = "现在的思考强度由模型自己定。还可以选：{others}。"
    REASONING_UNKNOWN = "没有 {word!r} 这一项。请选：{levels}、default。"
    REASONING_DEFAULT = "思考强度又由模型自己定了。"
    REASONING_SET = "{level}：{meaning}。从下一条消息起生效。"

    # /sethome, /platforms, /platform, /restart
    HOME_NOT_HERE = "终端不能接收提醒和通知：关掉以后就没人看了。请到聊天平台的某个聊天里发 /sethome。"
    HOME_SET = "这个聊天现在是主聊天，提醒和通知都会发到这里。聊天 ID {chat}，作为目标写 {target}。"
    PLATFORMS_NONE = "还没有连接任何平台。主人可以运行：hermes gateway setup"
    PLATFORM_USAGE = "请用 /platform pause NAME 或 /platform resume NAME。可选：{names}。"
    PLATFORM_OWN = "那样你在这里就收不到我的消息了。请在别的聊天里操作，或在本机运行：hermes config set"
    PLATFORM_ON = "{account} 已打开。"
    PLATFORM_PAUSED = "{account} 已暂停：那边不收也不发消息。"
    RESTART_BACK = "我回来了。"
    RESTART_NOBODY = "这里没有人能把我再启动起来。请运行 `hermes gateway run`，它会让网关一直在线。"
    RESTART_BEGUN = "正在重启。手上的事重启后接着做。"

    # /rollback, /undo
    ROLLBACK_UNREAD = "没看懂。{usage}：单发 /rollback 可以看编号。"
    ROLLBACK_REMOVED = "第 {number} 处改动已撤回：{name} 又删掉了。/rollback 看全部；这一次撤回也能再撤回。"
    ROLLBACK_RESTORED = "第 {number} 处改动已撤回：{name} 恢复原样。/rollback 看全部；这一次撤回也能再撤回。"
    ROLLBACK_NOTHING = "在这个聊天里，我没有改过你的文件，没什么可恢复的。"
    ROLLBACK_LIST = "我在这里改过的文件，最近的在前："
    ROLLBACK_HOW = "/rollback last 撤回最近一处，/rollback N 撤回第 N 处。"
    ROLLBACK_TAKEN_BACK = "（已撤回）"
    ROLLBACK_NEW = "（新建）"
    ROLLBACK_GONE = "（已删除）"
    ROLLBACK_DAY = "%m-%d %H:%M"
    ROLLBACK_NO_SUCH = "这个聊天里没有这处改动。"
    ROLLBACK_NONE_LEFT = "没有可以撤回的改动。"
    ROLLBACK_ALREADY = "第 {number} 处改动已经撤回过了。"
    UNDO_UNREAD = "没看懂。{usage}：要撤回几轮对话，1 到 {most}。"
    UNDO_BUSY = "我还在忙。先 /stop，再 /undo。"
    UNDO_NOTHING = "这里没有可以撤回的内容。"
    UNDO_REVISION = "压缩已撤回：我又会读全部原文。再发一次 /undo 就撤回最近一轮对话。"
    UNDO_ONE = "已撤回“{text}”和后面的回答。我就当没说过；已经做了的事不会变。"
    UNDO_SEVERAL = "已撤回最近 {count} 轮对话，从“{text}”开始。我就当没说过。"

    # /sessions, /resume, /branch, /title, /history
    SESSIONS_NONE = "你还没有会话。直接跟我说话就行。"
    SESSIONS_HOW = "/resume NUMBER 在这里接着聊；/branch 复制一份这个会话继续聊。"
    SESSIONS_LINE = "{number}. {title}，{lines}，{day}"
    SESSIONS_HERE = " ← 当前"
    SESSION_TITLE = "《{title}》"
    SESSIONS_NONE_HERE = "这里之前什么也没聊过，直接跟我说话就行。"
    RESUME_UNKNOWN = "你没有 {name!r} 这个会话。/sessions 可以看全部。"
    RESUME_HERE = "这里聊的就是它。"
    RESUME_BUSY = "那个会话里我正忙着。等一等，或者去那边 /stop。"
    RESUMED = "接上了：{title}，{lines}。/history 看看聊到哪儿了。"
    BRANCH_NOTHING = "还没有可以复制的内容。直接跟我说话就行。"
    BRANCHED = "现在是副本，{lines}。原来的先放着，/sessions 里两个都在。"
    TITLE_NONE = "这里还没有会话。直接跟我说话就行。"
    TITLE_IS = "这是 {title}。/title NAME 可以改名。"
    TITLE_SET = "这个会话现在叫《{name}》。"
    HISTORY_NONE = "这里还没有说过话。"
    HISTORY_YOU = "你：{text}"
    HISTORY_ME = "我：{text}"

    # /skills, /tools
    SKILLS_HELP = (
        "/skills 列出技能，/skills show NAME 看其中一个。"
        "管理员：/skills enable NAME [PLATFORM]、/skills disable NAME [PLATFORM]、/skills install SOURCE。"
    )
    SKILLS_NONE = "这里没有技能。"
    SKILLS_HOW = "发 /NAME 加上你要做的事就能用；我自己也会找。"
    SKILLS_OFF = "这里关掉的：{names}"
    SKILLS_QUOTE = "引号没有成对。"
    SKILLS_SOURCE = "请给一个文件夹、压缩包或 git 地址：/skills install SOURCE [--yes] [--replace]"
    SKILL_INSTALLED = "{name} 已装好：{about}"
    SKILL_LOAD = "发 /{name} 就能用。"
    TOOLS_NONE = "我们可以聊天；这里没有给你用的工具。"
    TOOLS_LIST = "工具集 {toolset}，身份{role}："
    TOOLS_GROUP = "{group}（{about}）：{names}"
    TOOLS_OTHER = "{group}：{names}"

    # Files
    ACCOUNT_SIGNED_OUT = "{account} 已掉线，需要重新登录。{reason}"
    WRITE_TO_GET_THE_REST = "⏸ 在你回复之前，这里暂时发不出更多消息了；回复任意内容，剩下的就会发来。"
    COULD_NOT_BE_SENT_EARLIER = "⏳ 之前未能发出的消息："
    FILE_NOT_SENT = "（{name} 没有发出去：{reason}）"
    FILE_NOT_TAKEN = "{name} 没有送到：{reason}"
    MOVED_FROM_NODE = "↪ 这个对话从 {before} 转到了 {here}。{before} 上的文件和进程不在这里。"
    FILE_LIES_AT = "📎 {name}：{path}"
    FILE_TOO_BIG = "它有 {size}，这里最多能发 {most}"
    FILE_IS_EMPTY = "它是空的"
    FILE_NOT_FOR_GUESTS = "访客不能收文件"
    FILE_NOT_AMONG_OTHERS = "这个对话里也有权限较低的人在发言。叫我用 send_message 发，我会先问你"
    FILE_HOLDS_KEYS = "这类文件存有密钥或密码，不会发送"
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

    # While it works
    WAITS_IN_LINE = "我还在做前面的事，这条先排队，接着就做。/stop 停下手上的事；/busy interrupt 让新消息优先。"
    TAKEN_INTO_ACCOUNT = "收到，下一步就会考虑进去。"
    QUEUE_USAGE = "/queue 内容：做完手上的事，再单独回答这一条。"
    STEER_USAGE = "/steer 内容：手上的事从下一步起就按这个来。"
    CUT_OFF_LENGTH = "（模型的长度到这里用完了。说一声“继续”就接着讲。）"
    CUT_OFF_FILTER = "（模型服务商的内容过滤在这里拦住了回答。请换个说法再问。）"
    WRITTEN_ELSEWHERE = "💻 {where}：{text}"
    FROM_DASHBOARD = "控制台"
    BACKGROUND_HEADER = "🧵 后台任务：“{task}”"
    BACKGROUND_BEGUN = "我在后台做，做完在这里告诉你：“{task}”。/agents 可以查看。"
    BACKGROUND_USAGE = "/background 内容：我在后台做，不占用聊天，做完在这里告诉你。"
    BACKGROUND_FULL = "已经有 {count} 个后台任务在为你运行。请等一个做完，或者：/agents stop"
    KANBAN_EMPTY = "看板是空的。添加任务：/kanban add 标题。让我来做：/kanban do 标题"
    KANBAN_USAGE = (
        "/kanban 显示看板。/kanban add 标题 添加任务，/kanban do 标题 让我来做。用任务编号：/kanban show N、ready N、"
        "done N、block N 原因、unblock N、comment N 内容、wait N M、archive N"
    )
    KANBAN_ADDED = "已添加：{task}"
    KANBAN_BEGUN = "已添加：{task}\n结果会发到这里。查看进展：/kanban show {number}"
    KANBAN_WAITS = "等待 {task}"
    AGENTS_NONE = "现在没有正在为你做的事。"
    AGENTS = "正在为你做：\n{lines}\n停掉一个：/agents stop {example}。全部停掉：/agents stop all"
    AGENT_LINE = "`{name}` {where}，已 {span}：{task}"
    AGENT_LINE_WAITS = "`{name}` {where}，已 {span}：{task}（在等问题的答复）"
    AGENT_HERE = "在这个聊天里"
    AGENT_ELSEWHERE = "在另一个聊天里"
    AGENT_IN_BACKGROUND = "在后台"
    AGENT_HANDED_ON = "由我分派"
    AGENT_BY_API = "通过 API"
    AGENT_STOPPED = "已停下：{tasks}"
    AGENT_UNKNOWN = "没有叫这个名字的任务。/agents 列出正在做的。"

    # Jobs
    ASK_SCHEDULE = "它要安排一条定时消息，发到 {targets}：“{text}”"
    JOB_RUN_FAILED = "这件事没做成：{reason}"
    JOB_FAILED = "定时任务“{name}”失败了：{reason}\n之后只有在它被暂停时我才会再说。/cron history {id}"
    JOB_PAUSED = "定时任务“{name}”连续失败 {count} 次，我把它暂停了。最后一次的原因：{reason}\n/cron resume {id}"
    JOB_UNDELIVERED = "定时任务“{name}”的回答送不到：{reason}\n/cron history {id}"
    JOB_STOPPED = "我把定时任务“{name}”暂停了：{reason}。"
    JOB_BAD_SCHEDULE = "看不懂时间“{text}”。是不是想写：{nearest}？"
    JOB_EMPTY = "定时任务需要一段文字：要我做什么，或者说什么？"
    JOB_UNKNOWN = "没有名为“{name}”的定时任务。用 /cron 或 `hermes cron list` 查看。"
    JOB_SEVERAL = "“{name}”对应好几个定时任务。请用编号：{ids}"
    JOB_IS_DONE = "定时任务“{name}”已经结束，没有剩下的时间点了。"
    JOB_ONLY_HERE = "你的定时任务只能发到创建它的聊天里。"
    JOB_NO_ZONE = "没有时区“{zone}”。请写成 Asia/Shanghai 这样。"
    JOB_NOT_FOR_GUESTS = "访客不能安排定时任务。"
    JOB_NO_FIELD = "定时任务没有“{name}”这一项。有：{fields}"
    JOB_TOO_LONG = "这对定时任务来说太长了：最多 {count:,} 个字符。"
    JOB_SCRIPT_ROLE = "脚本直接在这台机器上运行，只有管理员或主人才能安排。"
    JOB_NO_FOLDER = "{folder} 不是你的定时任务可以使用的文件夹。"
    JOB_CATCH_UP = "没有“{value}”这种补跑方式。有：{known}"
    JOB_NO_SKILL = "没有名为“{name}”的技能。用 /skills 查看。"
    JOB_BY_ID = "请用编号指定聊天，例如 slack:C0123：定时任务不能按名称查找。"
    JOB_REPEAT = "运行次数是 1 到 {most:,} 之间的整数。"
    JOB_GRANTS_MANY = "一个定时任务最多带 {most} 个许可。"
    JOB_MANY = "你已经有 {most} 个定时任务，不能再多了。请先删除一个。"
    JOB_QUIET = "“{text}”不是安静时段。请写成 22:00-07:00 这样。"
    JOB_NO_SCRIPT = "Script not found：找不到脚本 {path}。{folder} 里有：{known}"
    CRON_NONE = "还没有定时任务。例如：/cron add 30m 茶泡好了"
    CRON_LINE = "`{id}` {name}：{schedule}，下次 {next}"
    CRON_LINE_OFF = "`{id}` {name}：{schedule}，{state}"
    CRON_LIST = "定时任务：\n{lines}"
    CRON_MORE = "……还有 {count} 个"
    CRON_MADE = "⏰ 已安排：“{name}”，{schedule}，下次 {next}。发到{where}。取消：/cron remove {id}"
    CRON_CHANGED = "已修改：“{name}”，{schedule}，下次 {next}。发到{where}。"
    CRON_PAUSED = "已暂停：“{name}”。/cron resume {id}"
    CRON_RESUMED = "“{name}”恢复运行，下次 {next}。"
    CRON_RUNS = "“{name}”现在开始运行。"
    CRON_REMOVED = "已删除：“{name}”。"
    CRON_HERE = "这个聊天"
    CRON_NO_HISTORY = "“{name}”还没有到过时间。"
    CRON_HISTORY = "“{name}”：\n{lines}"
    CRON_STATUS_ON = "定时任务在运行。启用 {active} 个，暂停 {paused} 个；下次 {next}。"
    CRON_STATUS_OFF = "定时任务没有运行：{reason}。"
    CRON_STATUS_STOPPED = "定时器没有运行"
    CRON_OVERDUE = "有 {count} 个已经过了时间。"
    CRON_USAGE = (
        "/cron：你的定时任务\n/cron add 时间 内容：例如 /cron add 30m 茶泡好了，或 /cron add 工作日8点 看新闻\n"
        "  --no-agent 原样发送内容，--name 名称，--deliver 目标，--repeat 次数，--tz 时区\n"
        "/cron show|pause|resume|run|remove|history 任务\n/cron edit 任务 --schedule 时间 --prompt 内容\n/cron status\n"
        "时间：30m；every 2h；0 8 * * 1-5；2026-03-01T09:00；明天9点；工作日8点"
    )

    def job_state(self, state: str) -> str:
        return JOB_STATES.get(state, state)

    # Models that fail. A clause goes on from PROVIDER_DID.
    PROVIDER_DID = "我的模型（{provider}）{clause}"
    PROVIDER_FAILED = "{what}。{cure}。"
    FELL_BACK = "{what}。这次由备用模型 {fallback} 回答。"
    NO_FALLBACK = "{what}，也没有备用模型。{cure}。"
    FALLBACKS_FAILED = "{what}，备用模型（{names}）也失败了。{cure}。"
    ASKED_AGAIN = "{what}。我又问了一次，回答从头开始。"
    AND = "、"
    PROVIDER_AUTH = "不接受这个密钥"
    PROVIDER_QUOTA = "说账户余额不足"
    PROVIDER_RATE = "说请求太频繁"
    PROVIDER_RATE_WAIT = "说请求太频繁，要等 {seconds:.0f} 秒"
    PROVIDER_CONTEXT = "说这段对话太长，放不下了"
    PROVIDER_MODEL = "不认识配置里的模型"
    PROVIDER_NO_SUCH_MODEL = "不认识模型“{model}”"
    PROVIDER_REQUEST = "拒绝了请求"
    PROVIDER_REFUSED = "拒绝了请求：{detail}"
    PROVIDER_TRANSIENT = "没有回应"
    PROVIDER_EMPTY = "什么也没回答"
    PROVIDER_UNREACHABLE = "连不上（{reason}）"
    NO_CONNECTION_IN_TIME = "连接超时"
    PROVIDER_BROKE_OFF = "回答到一半断了"
    PROVIDER_BROKE_OFF_BECAUSE = "回答到一半断了（{reason}）"
    PROVIDER_SILENT = "{seconds:g} 秒没有动静"
    PROVIDER_OVER_DEADLINE = "{seconds:g} 秒内没有答完"
    PROVIDER_TROUBLE = "自己出了故障"
    PROVIDER_TROUBLE_BECAUSE = "自己出了故障（{reason}）"
    PROVIDER_OVERLOADED = "现在太忙，顾不过来"
    PROVIDER_NO_KEY = "需要密钥，但还没有设置"
    PROVIDER_ODD_KEY = "的密钥里有不该有的字符（多了引号、空格或换行？）"
    PROVIDER_WEB_PAGE = "回了一个网页，而不是答案；base_url 多半不是 API 地址"
    PROVIDER_NO_SUCH_ADDRESS = "在这个地址上什么也没有；base_url 多半写错了（是不是少了 /v1？）"
    PROVIDER_MOVED = "说地址换了；base_url 要改成新地址"
    PROVIDER_UNREADABLE = "发来的内容读不懂"
    PROVIDER_TOO_LONG = "还没开口就用完了 token 上限"
    PROVIDER_FILTERED = "的内容过滤器拦下了回答"
    CURE_AUTH = "请主人检查密钥，再运行 `hermes doctor`"
    CURE_QUOTA = "请主人检查密钥和余额，再运行 `hermes doctor`"
    CURE_RATE = "请过一会儿再试"
    CURE_CONTEXT = "/new 可以开始新会话"
    CURE_MODEL = "请主人把 `model.default` 设成这家服务商的模型，再运行 `hermes doctor`"
    CURE_REQUEST = "请主人运行 `hermes doctor`，看看现在用的服务商和模型"
    CURE_TRANSIENT = "请过一会儿再试。主人可以运行 `hermes doctor` 了解详情"
    CURE_EMPTY = "请再问一次，或者换个说法"
    ANSWER_ENDED_EARLY = "模型还没开始回答就结束了。"

    # The built-in model
    BUILT_IN_HINT = (
        "（内置小模型：只会简单的英文闲聊，没有工具，不能上网。"
        "要做正事，请运行 hermes setup，或把 OPENAI_API_KEY 或 OPENROUTER_API_KEY 写进 {env}）"
    )
    BUILT_IN_NOTHING = "内置小模型不知道怎么接这句话。"
    BUILT_IN_CROWD = "内置小模型一次只能回答一条消息，现在排队的太多。请一分钟后再问。"
    BUILT_IN_FAILED = "内置小模型出错了（{reason}）。请再问一次，或者接入真正的模型。"
    BUILT_IN_NO_FORMAT = "内置小模型不能按指定的格式回答。请接入真正的模型。"
    BUILT_IN_MISSING = "内置小模型还没装好。{reason}"
    BUILT_IN_COMING = "内置小模型还在下载：{done} / {total} MB。请一分钟后再问。"

    # What is asked before a tool runs
    ASK_WRITE_RUNS = "可以写 {path} 吗？这不是普通文件：写进去的内容以后会自动运行。"
    ASK_WRITE_KEYS = "可以写 {path} 吗？这不是普通文件：里面有密钥，或者决定谁能登录。"
    ASK_READ_KEYS = "可以读 {path} 吗？那里有密钥，模型的服务商会看到。"
    ASK_SEND = "把这段话发到 {targets}？\n{text}"
    ASK_SKILL = "可以对技能 {name!r} 做 {action} 吗？这里所有人的助手都会读它。"
    ASK_SHARED = "使用 {name}？这个对话里也有权限较低的人（{role}）在发言，所以我先问一下。"
    ASK_BROKEN = "运行 {name}？（它自己的提问规则出错了。）"
    CLARIFY = "回数字，或者直接说。"
    WHERE_FILES = "（{folder} 里的文件）"
    WHERE_LOCAL = "（本机，{folder}）"
    WHERE_GUARDED = "（本机沙箱内，{folder}）"
    WHERE_OUTSIDE = "（沙箱外，本机，{folder}）"
    ASK_OUTSIDE = "它请求在沙箱外运行，拥有你的账户的全部权限。"
    ASK_OUTSIDE_REASON = "它请求在沙箱外运行，拥有你的账户的全部权限。它的理由：{reason}"
    WHERE_SANDBOX = "（沙箱，可上网，{folder}）"
    WHERE_SANDBOX_OFFLINE = "（沙箱，不能上网，{folder}）"
    WHERE_CONTAINER = "（{image} 容器，可上网，{folder}）"
    WHERE_CONTAINER_OFFLINE = "（{image} 容器，不能上网，{folder}）"
    WHERE_LANDLOCK_OFFLINE = "（Landlock，不能上网，{folder}）"
    WHERE_SSH = "（ssh 到 {host}，{folder}）"
    WHERE_SSH_HOME = "那边的主目录"
    DANGER_DELETE_TREE = "它会删除文件夹和里面的一切。"
    DANGER_DELETE_ALL = "它会删光当前文件夹，或者整个主目录。"
    DANGER_FORMAT = "它会格式化磁盘或重新分区。"
    DANGER_DEVICE = "它会直接写入设备。"
    DANGER_PERMISSIONS = "它会改整个文件夹的所有者或权限，或者让所有人都能写。"
    DANGER_SERVICES = "它会停止、启动或改动这台机器的服务。"
    DANGER_GATEWAY = (
        "它会停止或重启网关本身。有更稳妥的办法，能让手上的事做完：主人在聊天里发 /restart，"
        "或在本机运行 `hermes gateway restart`。"
    )
    DANGER_KILL = "它会结束进程。"
    DANGER_NETWORK_TO_SHELL = "它会直接运行从网上下载的程序。"
    DANGER_ACCOUNTS = "它会改动谁能登录、什么定时运行：用户、sudoers、cron、SSH 密钥。"
    DANGER_PACKAGES = "它会给这台机器安装或卸载软件。"
    DANGER_ROOT = "它会用别的用户的权限运行（sudo）。"
    DANGER_GIT = "它会丢掉可能只此一份的提交或改动。"
    DANGER_HERMES_HOME = "它提到了 Hermes 存放设置和密钥的文件夹。"
    DANGER_SECRETS = "它可能会显示密码、密钥或令牌。"
    DANGER_POWER = "它会关机或重启这台机器。"
    DANGER_CONTAINER = "它会启动能碰到这台机器的容器，或者连数据一起删掉容器。"
    DANGER_DATABASE = "它会删除或清空数据库。"
    DANGER_SYSTEM_FILES = "它会写系统文件夹，或者其他程序会自动运行或遵从的文件。"
    DANGER_NETWORK = "它会改动这台机器的网络或防火墙，或者向外开放。"
    DANGER_KERNEL = "它会改动内核或挂载。"
    DANGER_REMOTE = "它会在另一台机器上运行命令。"
    DANGER_SENDS = "它会把数据发送到另一台机器。"
    DANGER_DETACHES = "它启动的工作在这条命令结束后还会继续，我停不了它。"
    DANGER_OUTSIDE = "它可能会改动工作文件夹以外的文件。"
    DANGER_CODE = "它会运行代码，从文字上看不出代码的作用。"
    DANGER_UNJUDGED = "从文字上看不出它会运行什么。"
    DANGER_NOT_ONLY_READING = "它可能会改动东西（approvals.mode 为 'unknown'）。"
    DANGER_EVERY = "每条命令我都先问（approvals.mode 为 'all'）。"

    def summary(self, command: str, english: str) -> str:
        return SUMMARIES.get(command, english)

    def group(self, name: str, english: str) -> str:
        return GROUPS.get(name, english)

    def role(self, name: str) -> str:
        return ROLES.get(name, name)

    def state(self, english: str) -> str:
        return STATES.get(english, english)

    def reason(self, english: str) -> str:
        return REASONS.get(english, english)

    def span(self, seconds: float) -> str:
        for size, name in ((86400, "天"), (3600, "小时"), (60, "分钟")):
            if seconds >= size * 1.5 or (seconds >= size and seconds % size == 0):
                return f"{round(seconds / size)} {name}"
        return f"{max(1, round(seconds))} 秒"

    def lines(self, count: int) -> str:
        return f"{count:,} 行"

    def amount(self, size: int) -> str:
        return f"{size} 字节" if size < 1000 else super().amount(size)

"""The help texts of settings in Chinese, by their English text. Read where a page asks for Chinese."""

from __future__ import annotations

HELPS = {
    # agent, api, approvals
    "what a message does while a turn runs": "一轮回答进行中时，新消息如何处理",
    "equal tool calls in a row before the next one is refused": "连续相同的工具调用达到此数后，拒绝下一次",
    "how long to wait for the rest of a message that seems incomplete": "消息看起来还没写完时，等待后续的时间",
    "model calls in one turn; then the model is asked for a summary": "一轮中调用模型多少次后要求它总结",
    "text put before every conversation": "放在每个对话最前面的文字",
    "show in the chat which tool runs": "在聊天中显示正在使用的工具",
    "a line for each new tool, each call, or with arguments and results; `/verbose` chooses for a chat": (
        "每个新工具一行、每次调用一行，或连同参数和结果；`/verbose` 可为单个聊天选择"
    ),
    "how long a turn may take": "一轮回答最长可用的时间",
    "folder the tools work in": "工具工作的文件夹",
    "also store the output of jobs in `cron/output`": "任务的输出也保存到 `cron/output`",
    "further host names of the port": "该端口的其他主机名",
    "how long a stream stays open after an approval request": "显示问题之后，流保持打开的时间",
    "origins that may call from a browser": "允许从浏览器调用的来源（origin）",
    "whether the HTTP port opens": "是否打开 HTTP 端口",
    "address it listens on": "监听的地址",
    "Bearer key of the API": "API 的 Bearer 密钥",
    "requests of one key that run at the same time": "一个密钥同时运行的请求数",
    "parts of one message": "一条消息的部分数",
    "the largest request body": "请求正文的上限",
    "text of one message": "一条消息的文字上限",
    "port it listens on": "监听的端口",
    "how long a request over a limit waits": "超出限制的请求等待的时间",
    "requests per minute of one key; 0: no limit": "按每个密钥计；0：不限制",
    "how often the same approval request may expire before the turn ends": "同一个问题这么多次无人回答时，结束这一轮",
    "which commands ask first: `dangerous`, `unknown` (all that are not known to only read), `all`, `off` (none of the "
    "owner's)": (
        "哪些命令先询问：`dangerous`（危险的）、`unknown`（所有不确定只是读取的）、`all`（全部）、"
        "`off`（仅限所有者的命令不询问）"
    ),
    "how long an approval request waits for an answer": "批准请求等待回答的时间",
    # backup, checkpoints, compression, cron
    "whether backups are made while the gateway runs": "网关运行时是否自动备份",
    "hours between two backups": "两次备份之间的小时数",
    "where backups are kept; empty: `backups` in the home": "备份存放的位置；留空：主目录中的 `backups`",
    "days after which automatic backups are deleted": "自动备份保留的天数",
    "megabytes that automatic backups may take": "自动备份可占用的空间（MB）",
    "whether backups contain `workspaces/`": "备份是否包含 `workspaces/`",
    "days for which `/rollback` can undo a change": "`/rollback` 可以撤回多久以内的改动",
    "megabytes for copies of changed files": "保存文件旧版本的空间（MB）",
    "number of changes kept for one person": "每个人保留的改动数",
    "megabytes of copies for one person": "每个人的改动可占用的空间（MB）",
    "share of the context window at which a conversation is compressed": "达到上下文窗口的多大比例时压缩",
    "whether long conversations are compressed automatically": "长对话是否自动压缩",
    "`provider/model` that writes the summary; empty: the chat's own": (
        "撰写摘要的 `provider/model`；留空：使用回答的模型"
    ),
    "whether jobs run": "是否执行定时任务",
    "hours in which no job runs, as `22:00-07:00`; a job can have its own": (
        "不执行任务的时段，例如 `22:00-07:00`；任务可有自己的时段"
    ),
    "how long the script of a job may run": "任务的脚本最长可用的时间",
    # dashboard, database, delivery, gateway, kanban, language, logs
    "path under which a reverse proxy shows the gateway, such as `/hermes`": (
        "反向代理提供网关时使用的路径，例如 `/hermes`"
    ),
    "whether the gateway serves the dashboard": "是否提供控制台页面和登录",
    "seconds to wait for that gateway": "等待该网关的秒数",
    "health address of a gateway on another machine": "另一台机器上的网关的地址",
    "days without use after which a sign-in ends": "登录多少天未使用后失效",
    "addresses or networks of proxies whose X-Forwarded headers are trusted": (
        "信任其 X-Forwarded 请求头的代理地址或网段"
    ),
    "name of this gateway among several on one PostgreSQL; empty: the name of the machine": (
        "多个网关共用一个 PostgreSQL 时，本网关的名称；留空：使用机器名"
    ),
    "PostgreSQL instead of SQLite in the home folder": "使用 PostgreSQL，代替主目录中的 SQLite",
    "how long Hermes tries to send an answer": "未发出的回答重试多久",
    "how long Hermes tries to send a notice": "通知重试多久",
    "how long an answer waits for the person's next message, where the platform requires one": "暂存的回答保留多久",
    "ids with access on every platform; `telegram:42` has access on Telegram only": (
        "在所有平台上允许的 id；`telegram:42` 只在 Telegram 上允许"
    ),
    "whether the agent runs its ready tasks": "是否执行已就绪的任务",
    "tasks that the agent works on at the same time": "同时处理的看板任务数",
    "whether a finished task waits in `review` until a person completes it": (
        "完成的任务是否停在 `review`，由人确认完成"
    ),
    "how long one run of a task may take": "一次执行任务最长可用的时间",
    "language of the gateway's own texts; empty: each person's own": "网关自身文字的语言；留空：按每个人的语言",
    "format of the log; `json`: one object per line": "日志的格式；`json`：每行一个对象",
    "lowest level that is logged": "记录的最低日志级别",
    # model, providers, proxy
    "the dialect of the provider's API": "服务商 API 的协议",
    "in place of the provider's own address": "代替服务商默认地址的地址",
    "tokens that a model accepts, unless `context_windows` names the model": (
        "模型可接受的 token 数（`context_windows` 中列出的除外）"
    ),
    "the model that answers": "回答用的模型",
    "the provider that decides the endpoint": "模型服务商，决定访问的地址",
    "whether users, not only admins, may choose the model of their own chat": (
        "普通用户（不只是管理员）是否可以为自己的聊天选择模型"
    ),
    "who owns this gateway, as `telegram:5550142`: their commands run on this machine; `local`: only the person at "
    "it": ("网关的所有者，例如 `telegram:5550142`：其命令在本机运行；`local`：只有在本机操作的人"),
    "its key": "它的密钥",
    "name of the environment variable that holds the key": "存放密钥的环境变量名",
    "further keys, used when one fails": "备用密钥，一个失败时使用",
    "the dialect of its API": "它的 API 协议",
    "root of the provider's API": "服务商 API 的根地址",
    "the model if none is named": "未指定模型时使用的模型",
    "proxy for this provider": "访问该服务商的代理",
    "proxy for all other addresses": "其他所有地址的代理",
    "proxy for `http://` and `ws://` addresses": "`http://` 和 `ws://` 地址的代理",
    "proxy for `https://` and `wss://` addresses": "`https://` 和 `wss://` 地址的代理",
    "hosts reached without a proxy": "不经代理访问的主机",
    # platforms
    "everybody may write": "允许所有人",
    "ids that may write; `*`: everybody": "允许写消息的 id；`*`：所有人",
    "in place of `agent.busy_mode`": "代替 `agent.busy_mode`",
    "who may write in direct chats": "谁可以私聊",
    "`false` switches it off": "`false` 表示关闭",
    "groups of policy `allowlist`": "`allowlist` 策略允许的群",
    "earlier lines of a group that the model sees when addressed": "在群里被叫到时，模型能看到之前的多少行",
    "in which groups the agent answers": "回答哪些群",
    "chat for reminders and alerts": "接收提醒和警报的聊天",
    "name of that chat in texts": "它在文字中的名称",
    "proxy for this platform": "该平台使用的代理",
    "in groups, answer only when addressed": "在群里只在被叫到时回答",
    "Ids of the server channels in which the bot listens, including their threads; empty: all.": (
        "它监听的服务器频道的 id（包括其中的子区）；留空：全部。"
    ),
    "A mention in a channel opens a thread for the conversation; false: the bot answers in the channel.": (
        "在频道中提及它会开启一个子区继续对话；false：在频道中回答。"
    ),
    "Root of the REST API.": "REST API 的根地址。",
    "Ids of server channels in which the bot answers every message, without a mention.": (
        "无需提及、所有消息都视为对它说的服务器频道的 id。"
    ),
    "Address of Discord's gateway for new sessions; ws:// or wss://.": "Discord 网关新会话的起始地址；ws:// 或 wss://。",
    "Ids of server channels in which the bot never listens, even if it is mentioned.": (
        "它不监听的服务器频道的 id，无论谁在那里提及它。"
    ),
    "The bot's token: discord.com/developers/applications, your application, Bot, Reset Token.": (
        "机器人的 token：discord.com/developers/applications，你的应用，Bot，Reset Token。"
    ),
    "The bot's AppID, a number: q.qq.com, your bot, development settings.": (
        "机器人的 AppID（数字）：q.qq.com，你的机器人，开发设置。"
    ),
    "Root of the bot API; a bot that is not published yet has https://sandbox.api.sgroup.qq.com.": (
        "机器人 API 的根地址；尚未发布的机器人使用 https://sandbox.api.sgroup.qq.com。"
    ),
    "The bot's AppSecret (clientSecret), shown once beside the AppID; a new one invalidates the old one.": (
        "机器人的 AppSecret（clientSecret），在 AppID 旁只显示一次；重新生成后旧的失效。"
    ),
    "false sends plain text only, and no buttons, for a bot that may not use Markdown.": (
        "false：只发送纯文本，不带按钮，适用于不能使用 Markdown 的机器人。"
    ),
    "Address that issues access tokens.": "获取 access token 的地址。",
    "The app-level token, xapp-…, with the scope connections:write: your app, Basic Information.": (
        "应用级 token（xapp-…），权限范围 connections:write：你的应用，Basic Information。"
    ),
    "Root of the Web API, which also returns the address of the socket.": "Web API 的根地址；它也给出 socket 的地址。",
    "The app's bot token, xoxb-…: api.slack.com/apps, your app, OAuth & Permissions.": (
        "应用的 bot token（xoxb-…）：api.slack.com/apps，你的应用，OAuth & Permissions。"
    ),
    "Root of the Bot API server; change it for a server of your own.": (
        "Bot API 服务器的根地址；使用自己的服务器时修改。"
    ),
    "Calls per second in one chat; 0: no limit.": "向一个聊天发送的频率上限；0：不限制。",
    "Calls per minute in one group; 0: no limit.": "向一个群发送的频率上限；0：不限制。",
    "How long one request waits at Telegram for new messages, 1 to 50 seconds.": (
        "每次请求在 Telegram 等待新消息的时间，1 到 50 秒。"
    ),
    "The bot's own id, which ends in @im.bot. `hermes weixin login` writes it.": (
        "机器人自己的 id，以 @im.bot 结尾。由 `hermes weixin login` 写入。"
    ),
    "Root of the iLink API; signing in finds the right one.": "iLink API 的根地址；登录时会找到正确的地址。",
    "How many messages may follow one message of a person; the rest waits for the person's next one.": (
        "对一条消息最多回复几个气泡；其余的等对方下一条消息。"
    ),
    "Root of the file server.": "文件服务器的根地址。",
    "Root of the QR code server.": "二维码服务器的根地址。",
    "The bot's token. `hermes weixin login` shows a QR code and writes the token when it was scanned.": (
        "机器人的 token。`hermes weixin login` 显示二维码，扫描后写入 token。"
    ),
    "Id of the person who scanned the code (…@im.wechat). `hermes weixin login` writes it.": (
        "扫码者的 id（…@im.wechat）。由 `hermes weixin login` 写入。"
    ),
    "true switches it on; `hermes whatsapp` writes it when the phone is linked.": (
        "true 表示打开；手机绑定后由 `hermes whatsapp` 写入。"
    ),
    "Groups (…@g.us) in which the bot answers every message.": "所有消息都视为对它说的群（…@g.us）。",
    "Regular expressions; a group message that matches one counts as a mention.": (
        "正则表达式；群消息匹配其一即视为对它说的。"
    ),
    "self-chat: you write in the chat with yourself. bot: people write to a separate number.": (
        "self-chat：在与自己的聊天中对话。bot：别人写给它自己的号码。"
    ),
    "Seconds that npm may take to install the bridge.": "npm 安装桥接程序最长可用的秒数。",
    # retention, sessions, skills
    "days that finished messages, deliveries, turns and approvals are kept": (
        "已处理的消息、投递、回答和批准保留的天数"
    ),
    "days that outputs of jobs, old logs and damaged stores set aside are kept": (
        "任务的输出、旧日志以及移开的损坏存储保留的天数"
    ),
    "megabytes for outputs, and for damaged stores set aside; the oldest are deleted first": (
        "输出和移开的损坏存储可占用的空间（MB）；先删除最旧的"
    ),
    "megabytes of `state.db` above which finished rows are deleted early": (
        "`state.db` 超过多少 MB 时提前删除已处理的记录"
    ),
    "days that messages of refused strangers are kept": "被拒绝的陌生人的消息保留的天数",
    "days that sessions of single API requests and of subtasks are kept after their last use": (
        "单次 API 请求和子任务的会话在最后使用后保留的天数"
    ),
    "each person in a group has a session; `false`: all share one": "群里每个人有自己的会话；`false`：共用一个",
    "hour of `daily`": "`daily` 的时刻（小时）",
    "minutes without a message for `idle`": "`idle` 的静默时间",
    "when to start a new session": "何时开始新会话",
    "whether people are notified of a new session": "开始新会话时是否通知",
    "disabled skills": "已关闭的技能",
    # stt, terminal, timezone, tracing, tts, vision
    "key for speech to text": "它的密钥（没有自己的密钥时）",
    "program for `command`, with `{audio}` and `{language}`": "`command` 使用的程序，可含 `{audio}` 和 `{language}`",
    "spoken language; empty: detected": "所说的语言；留空：自动识别",
    "the provider's model": "服务商的模型",
    "speech-to-text provider; empty: `openai` if it can be used": "由谁转写；留空：可用时使用 `openai`",
    "how long a transcription may take": "转写最长可用的时间",
    "where the owner's commands run": "所有者的命令在哪里运行",
    "image of the containers": "容器的镜像",
    "further variables for commands of the owner and of admins": "所有者和管理员的命令也能看到的环境变量",
    "CPU time of one command, all its processes together": "所有进程合计的 CPU 时间",
    "the largest file that a command may write": "可写入的最大文件",
    "memory of one command, all its processes together": "所有进程合计的内存",
    "processes of one command at the same time": "一个命令同时运行的进程数",
    "size of `/tmp`, which is memory in bubblewrap and containers": "它的 `/tmp`，在 bubblewrap 和容器中占用内存",
    "all files of a personal workspace": "个人工作区所有文件的大小",
    "whether sandboxes and containers have a network": "沙箱和容器是否有网络",
    "where everybody else's commands run": "其他人的命令在哪里运行",
    "folder on that machine in which commands start; empty: the home there": (
        "命令在那台机器上的起始文件夹；留空：那里的主目录"
    ),
    "machine of the ssh back end": "ssh 后端的机器",
    "file of the private key": "私钥文件",
    "file of known host keys; empty: ssh's own": "已知主机密钥文件；留空：ssh 自己的文件",
    "its port": "它的端口",
    "how long a command may take if the agent sets no other limit": "未另行指定时，命令最长可用的时间",
    "time zone of schedules, resets and logs; empty: the machine's": "定时、重置和日志的时区；留空：本机时区",
    "OpenTelemetry collector that traces are sent to; empty: none": "接收追踪的 OpenTelemetry 收集器；留空：无",
    "headers for the collector: `name=value,other=value`": "发给收集器的请求头：`name=value,other=value`",
    "name of this gateway in the traces": "本网关在追踪中的名称",
    "key for text to speech": "服务商的密钥（没有自己的密钥时）",
    "program for `command`, with `{text_file}`, `{output}` and `{voice}`": (
        "`command` 使用的程序，可含 `{text_file}`、`{output}` 和 `{voice}`"
    ),
    "key of ElevenLabs": "ElevenLabs 的密钥",
    "the provider's model; empty: its default": "服务商的模型；留空：默认模型",
    "text-to-speech provider": "由谁朗读",
    "how long speech synthesis may take": "朗读最长可用的时间",
    "the voice; empty: the provider's default": "声音；留空：服务商的默认声音",
    "`provider/model` that looks at pictures; empty: the chat's own": "看图片的 `provider/model`；留空：聊天自己的模型",
    "whether the chat's model receives incoming pictures; `auto`: if its name is known to support them": (
        "是否把收到的图片交给聊天的模型；`auto`：名称表明它能看图时"
    ),
    # web, webhooks
    "hosts of your own network that the web tools may read for you": "网页工具可以为你读取的内网主机",
    "key of the Brave Search API": "Brave Search API 的密钥",
    "how much of one page is read": "一个网页最多读取多少",
    "ports the web tools may connect to": "网页工具可以连接的端口",
    "search service; empty: the first configured": "搜索服务；留空：第一个已配置的",
    "root of a SearXNG server": "SearXNG 服务器的根地址",
    "key of Tavily": "Tavily 的密钥",
    "how long one page may take": "读取一个网页最长可用的时间",
    "whether the port opens when there is a route": "有路由时是否打开端口",
    "the largest body": "正文的上限",
    "deliveries a minute for each route": "每个路由每分钟的投递数",
    "secret of routes without their own": "没有自己密钥的路由使用的密钥",
}


def help_in_chinese(text: str) -> str:
    """Return a help text in Chinese; one that is not known, such as that of a plugin's setting, stays as it is."""
    if text in HELPS:
        return HELPS[text]
    from hermes.core.i18n.cli import to_chinese

    return to_chinese(text)

"""Help: what commands, verbs and options do."""

from __future__ import annotations

from hermes.core.i18n.cli_zh import backup

COMMANDS = {
    **backup.HELP,
    **backup.BACKUP,
    **backup.UPDATE_HELP,
    **backup.UPDATE,
    "Hermes {}: one AI agent on every chat you use.": "Hermes {}：一个 AI 助手，你的每个聊天软件都能用。",
    "chat with the agent": "和它聊天",
    "ask one question, print the answer, exit (--json: as JSON)": "问一次，打印回答后退出（--json：输出 JSON）",
    "also read settings from this file": "同时读取这个文件里的设置",
    "use this profile: an agent with its own home": "用于这个配置档：有自己主目录的助手",
    "Import the home of hermes-agent or OpenClaw: settings, keys, people, sessions, skills, jobs": (
        "从 hermes-agent 或 OpenClaw 搬过来：设置、密钥、用户、对话、技能、定时任务"
    ),
    "Run several agents on one machine: list, create, show, remove": "并存多个助手：list、create、show、remove",
    "show the options and examples of a command": "某个命令的用法",
    "Chat and set up": "聊天和设置",
    "See what happens": "查看运行情况",
    "Messages and people": "消息和用户",
    "Automate": "自动化",
    "Configure the agent": "配置助手",
    "Data and versions": "数据和版本",
    "Chat with the agent (the same as no command at all)": "和助手聊天（与不带命令相同）",
    "Set up a model and a chat platform, question by question": "一问一答地设置模型和聊天平台",
    "Run and check the gateway, connect chats: run, start, stop, restart, status, install, setup, test": (
        "运行、检查网关，连接聊天平台：run、start、stop、restart、status、install、setup、test"
    ),
    "Send a message to a chat": "向聊天发送消息",
    "Show what happened to a message, a turn or a delivery": "显示一条消息、一轮对话或一次投递的经过",
    "Show the state of the gateway on one screen": "一屏显示网关的状态",
    "Show the log, or follow it": "显示日志，或持续跟踪",
    "List, show, export, rename and delete conversations": "列出、查看、导出、改名和删除对话",
    "Sign in to Weixin (WeChat) with a QR code": "扫二维码登录微信",
    "Link WhatsApp with a QR code; installs the bridge first": "扫二维码关联 WhatsApp；会先安装桥接程序",
    "List pairing requests and approve them": "列出并批准配对请求",
    "List people, assign roles, link accounts": "列出用户、分配角色、关联账号",
    "List, read, install, remove, enable and disable skills": "列出、阅读、安装、移除、启用和停用技能",
    "List, enable and disable the agent's tools on each platform": "列出、启用和停用助手在各平台上的工具",
    "Show, set, explain and check the configuration": "显示、修改、解释和检查配置",
    "List models, choose one, test it": "列出、选择和测试模型",
    "Answer the agent's approval requests; list and revoke grants": "回答助手的批准请求；列出和撤销许可",
    "Create, list, show and revoke API keys": "创建、列出、显示和撤销 API 密钥",
    "Print the manifest for the Slack app": "打印 Slack 应用的清单",
    "Find problems, name the command that fixes each, repair what can be repaired": (
        "查找问题，给出解决每个问题的命令，修复能修复的"
    ),
    "List security risks: files, ports, people, keys": "列出安全风险：文件、端口、用户、密钥",
    "Show the versions of Hermes, Python and SQLite": "显示 Hermes、Python 和 SQLite 的版本",
    "Print the completion script for bash, zsh or fish": "打印 bash、zsh 或 fish 的补全脚本",
    "Ask one question, print the answer, exit.": "问一个问题，打印回答后退出。",
    "Schedule jobs: create, list, edit, pause, resume, run, remove, status, history": ("安排和管理定时任务"),
    "Receive webhooks of other programs: subscribe, list, remove, test": ("接收其他程序发来的通知"),
    "Show the machines that share one database, drain one of them": "显示共用一个数据库的机器，让其中一台交出工作",
    "Copy the store into another database, recover a damaged one": "把存储复制到另一个数据库，恢复损坏的存储",
    "Keep a board of tasks, and let the agent do them": "维护任务看板，让助手完成任务",
}

ARGPARSE = {
    "positional arguments": "参数",
    "options": "选项",
    "show this help message and exit": "显示帮助后退出",
    "usage: {}": "用法：{}",
    "examples:": "示例：",
    "example:": "示例：",
    "the following arguments are required: {}": "缺少参数：{}",
    "one of the arguments {} is required": "需要其中一个参数：{}",
    "unrecognized arguments: {}": "无法识别的参数：{}",
    "argument {}: invalid choice: {} (choose from {})": "参数 {}：{} 不可用（可选：{}）",
    "argument {}: expected one argument": "参数 {}：需要一个值",
    "argument {}: not allowed with argument {}": "参数 {} 不能与 {} 同时使用",
    "argument {}: {} is not a usable name: take a-z, 0-9, _ and -.": (
        "参数 {}：{} 不能用作名称：请用 a-z、0-9、_ 和 -。"
    ),
    "argument {}: invalid {} value: {}": "参数 {0}：{2} 不是有效的值",
    "{}: error: {}": "{}：错误：{}",
}

VERBS = {
    "run in the foreground; restarts itself after a crash": "在前台运行；崩溃后自动重启",
    "run in the background": "在后台运行",
    "finish running work, then stop": "完成手头的工作，然后停止",
    "finish running work, then start again; paused platforms are resumed": (
        "完成手头的工作，然后重新启动；恢复被暂停的平台"
    ),
    "show the state; exit code 0 running, 1 degraded, stalled or dead, 3 not running": (
        "显示状态；退出码 0 运行中，1 异常、停滞或已死，3 未运行"
    ),
    "connect a chat platform, test its token, choose who may write": "连接聊天平台，测试令牌，选择谁可以发消息",
    "check accounts on their platforms, send a test message, ask the model for an answer": (
        "检查各平台账号，发送测试消息，并让模型回答一次"
    ),
    "set a damaged state.db aside, start with a new one, and verify the start": (
        "移开无法使用的 state.db，用新的启动，并验证启动"
    ),
    "list security risks, and how to remove each": "列出安全风险，以及如何消除",
    "write the readable rows of a damaged file into a new file": "把损坏文件中还能读出的每一行放入新文件",
    "print the default key": "打印默认密钥",
    "create a named key with a role": "创建一个带角色的命名密钥",
    "list the named keys, without their secrets": "列出命名密钥，不显示密钥内容",
    "revoke a named key": "撤销一个命名密钥",
    "list the requests that wait for an answer": "列出等待回答的请求",
    "approve a request": "批准一个请求",
    "deny a request; the agent reads the reason": "拒绝一个请求；原因会告诉助手",
    "list what is allowed without asking, who allowed it, and when": "列出无需询问的许可，由谁在何时给出",
    "revoke a grant: the agent asks again": "撤销一个许可：助手会再次询问",
    "show the settings that are set": "显示已设置的项",
    "print one value": "打印一个值",
    "change one value": "修改一个值",
    "show where a value comes from": "显示一个值的来源",
    "look for mistakes": "查找错误",
    "print the paths of the configuration files": "打印配置文件的路径",
    "list the models to choose from": "列出可选的模型",
    "choose the model for new answers": "选择今后回答用的模型",
    "make one small call and report what fails": "做一次小调用，报告失败之处",
    "list waiting requests and approved people": "列出等待的请求和已批准的人",
    "approve the request with this code, or the person with this id": "批准带这个代码的请求，或这个 id 的人",
    "withdraw a person's access": "收回某人的访问权",
    "discard the waiting requests": "丢弃等待的请求",
    "list everybody the agent knows": "列出助手认识的所有人",
    "assign a role to a person": "给某人分配角色",
    "link another account to a person": "把另一个账号关联到某人",
    "list the newest conversations": "列出最新的对话",
    "show a conversation": "显示一个对话",
    "print a conversation as JSON lines": "以 JSON 行打印一个对话",
    "change the title of a conversation": "修改对话的标题",
    "delete a conversation, or everything from one import": "删除一个对话，或一次导入的全部内容",
    "import sessions of hermes-agent or of another home": "导入 hermes-agent 或另一个主目录的会话",
    "delete ended conversations that have been idle for long": "删除早已结束且长期闲置的对话",
    "restore lost conversations from the transcript files": "从记录文件恢复丢失的对话",
    "list the skills, and which are disabled": "列出技能，以及哪些被停用",
    "read a skill": "阅读一个技能",
    "install a skill from a folder, an archive or a git address": "从文件夹、压缩包或 git 地址安装技能",
    "remove a skill, or restore it": "移除或恢复一个技能",
    "enable a skill": "启用一个技能",
    "disable a skill": "停用一个技能",
    "copy the bundled skills into the home": "把自带的技能复制到主目录",
    "check a skill for dangerous content": "检查技能是否含有危险内容",
    "print the app manifest: scopes, events, Socket Mode, the command /hermes": (
        "打印应用清单：权限、事件、Socket Mode、命令 /hermes"
    ),
    "list the tools of each platform": "列出各平台的工具",
    "enable a group, a toolset or a tool": "启用一组工具、一个工具集或一个工具",
    "disable a group, a toolset or a tool": "停用一组工具、一个工具集或一个工具",
    "sign in: scan a QR code with the phone": "登录：用手机扫二维码",
    "link a phone (the default)": "关联手机（默认）",
    "only install the bridge (needs Node.js and npm)": "只安装桥接程序（需要 Node.js 和 npm）",
    "show a whole request; its last line shows how to approve it": "显示请求的全部内容；最后一行说明如何批准",
    "show every machine that works on this database": "显示使用这个数据库的每台机器",
    "have a machine hand its work over to the others": "让一台机器把工作交给其他机器",
    "copy every table into an empty database, compare counts and checksums": (
        "把每张表复制到空数据库，并比较行数和校验和"
    ),
    "list the jobs": "列出定时任务",
    "create a job": "新建定时任务",
    "change a job": "修改定时任务",
    "pause a job": "暂停定时任务",
    "resume a paused job": "恢复被暂停的定时任务",
    "run a job now": "立即运行定时任务",
    "delete a job": "删除定时任务",
    "show whether jobs run, and which is next": "显示定时任务是否在运行，以及下一个",
    "show the due times of a job and their outcomes": "显示定时任务每次到期的结果",
    "create or change a route": "新建或修改路由",
    "list the routes": "列出路由",
    "delete a route": "删除路由",
    "send a signed sample to a route": "向路由发送一个带签名的示例",
    "create the board, if there is none": "没有看板时新建看板",
    "add a task": "添加任务",
    "list the tasks of a board": "列出看板上的任务",
    "show a task with its history": "显示任务及其历史",
    "move a task to another column": "把任务移到另一列",
    "assign a task to the agent or to somebody else": "把任务分配给助手或其他人",
    "change the title, text or limits of a task": "修改任务的标题、正文或限制",
    "write a comment below a task": "在任务下写评论",
    "attach a web address to a task": "给任务附上一个网址",
    "let a task wait for another": "让任务等待另一个任务",
    "mark a task as blocked, with the reason": "把任务标记为受阻，并说明原因",
    "make a blocked task ready again": "让受阻的任务重新就绪",
    "mark a task as done": "把任务标记为完成",
    "take a task off the board": "把任务移出看板",
    "follow what happens on the board": "跟踪看板上发生的事",
    "count the tasks of each column, and show whether the agent works on tasks": (
        "统计各列的任务数，并显示助手是否在处理任务"
    ),
}

OPTIONS = {
    "name of the conversation (default: cli)": "对话的名称（默认：cli）",
    "plain text, as over a pipe": "纯文本，与管道输出相同",
    "show the conversation so far and continue it": "显示到目前为止的对话并继续",
    "continue an earlier conversation; without ID, pick one from a list": "接着以前的对话；不给 ID 则从列表中选择",
    "print JSON": "输出 JSON",
    "print one JSON object": "输出一个 JSON 对象",
    "print one JSON object per line": "每行输出一个 JSON 对象",
    "ask one question and exit": "问一个问题后退出",
    "the same as --output-format json": "与 --output-format json 相同",
    "text: the answer; json: one object; stream-json: every event as a line, the result last": (
        "text：回答；json：一个对象；stream-json：每个事件一行，结果在最后"
    ),
    "stop the turn after so long and exit with 124": "超过这个时间就停止，并以 124 退出",
    "answer questions with yes: none, safe (what runs in a sandbox), all (default: none)": (
        "哪些批准请求自动同意：none、safe（在沙箱中运行的）、all（默认：none）"
    ),
    "the question; - reads it from stdin": "问题；- 表示从标准输入读取",
    "stop the running gateway of this home first": "先停止这个主目录正在运行的网关",
    "explain why this person is answered or not": "解释为什么回答或不回答这个人",
    "for example telegram; without one: choose from a list": "例如 telegram；不给则从列表中选择",
    "token of the bot; - reads it from stdin": "机器人的令牌；- 表示从标准输入读取",
    "another setting of the platform; may be repeated": "平台的其他设置；可以重复",
    "who may write in a direct chat": "谁可以私聊",
    "allowed user ids, separated by commas": "允许的用户 id，用逗号分隔",
    "in which groups the agent answers": "助手在哪些群里回答",
    "group ids for the policy allowlist, separated by commas": "allowlist 策略的群 id，用逗号分隔",
    "name of a further account on the same platform": "同一平台上另一个账号的名称",
    "install the missing package of the platform": "安装平台缺少的软件包",
    "save without testing": "不测试直接保存",
    "ask no questions; settings that are not given stay as they are": "不提问；没有给出的设置保持不变",
    "start the gateway if it is not running": "网关没有运行时启动它",
    "<platform>[@<account>], for example telegram; without one: every account that is set up": (
        "<平台>[@<账号>]，例如 telegram；不填则测试所有已设置的账号"
    ),
    "do not ask the model for an answer": "不让模型回答",
    "keep the old state.db in backups/": "把旧的 state.db 保留在 backups/ 中",
    "ask no question; without --keep-backup the old state.db is deleted": (
        "不询问；没有 --keep-backup 时删除旧的 state.db"
    ),
    "how long to watch the start": "观察启动多长时间",
    "repair what can be repaired, and report it": "修复能修复的，并说明做了什么",
    "with --fix: ask no question": "与 --fix 一起：不询问",
    "revert the file changes of the last --fix": "撤销上次 --fix 对文件的改动",
    "make one small call to the model and to each fallback": "对模型和每个备用模型各做一次小调用",
    "the damaged database": "损坏的数据库",
    "the new file (default: FILE.recovered)": "新文件（默认：FILE.recovered）",
    "a chat instead of the home channel": "发到这个聊天，而不是主频道",
    "openai, ollama/qwen3, ...": "openai、ollama/qwen3 等",
    "the provider's key; - reads it from stdin": "提供商的密钥；- 表示从标准输入读取",
    "the provider's address": "提供商的地址",
    "where your commands run: with your rights (local), or in a sandbox (guarded)": (
        "你的命令在哪里运行：以你的权限（local），或在沙箱中（guarded）"
    ),
    "30d, 12w": "30d、12w",
    "30m, 2h, 1d, or a time like 2026-05-01T08:00": "30m、2h、1d，或 2026-05-01T08:00 这样的时间",
    "<platform>[@<account>] (its home channel), <platform>[@<account>]:<chat>[:<thread>], "
    "<platform>:#name, local, all, or several separated by commas": (
        "<平台>[@<账号>]（它的主频道）、<平台>[@<账号>]:<聊天>[:<话题>]、<平台>:#频道、local、all，多个用逗号分隔"
    ),
    "name in lists and above the answers": "列表中和回答上方显示的名称",
    "where the answer goes: local, all, a platform (its home channel), platform:chat; several with commas": (
        "回答发到哪里：local、all、平台（它的主频道）、平台:聊天；多个用逗号分隔"
    ),
    "script in the folder scripts of the home; it runs first, and the agent reads its output": (
        "主目录 scripts 文件夹中的脚本，先运行它，助手读取它的输出"
    ),
    "model, as provider/model": "模型，写作 提供商/模型",
    "folder in which the job works": "工作的文件夹",
    "what to do about due times missed while the gateway was down: run_once, run_all or skip": (
        "网关停止期间错过的时间怎么办：run_once、run_all 或 skip"
    ),
    "quiet hours without a run, such as 22:00-07:00": "不运行的时段，例如 22:00-07:00",
    "time zone of the schedule, such as Asia/Shanghai": "时间安排所用的时区，例如 Asia/Shanghai",
    "test this model instead of the one in use": "测试这个模型，而不是当前的模型",
    "a folder, an archive, or an address with https:// or file://": "文件夹、压缩包，或 https://、file:// 地址",
    "a home, its sessions folder, or one .jsonl file": "主目录、其 sessions 文件夹，或一个 .jsonl 文件",
    "also show settings left at their default": "也显示保持默认值的设置",
    "an id, or platform:user": "id，或 平台:用户",
    "another file of the skill, such as references/x.md": "技能的其他文件，例如 references/x.md",
    "code of the request, or all": "请求的代码，或 all",
    "do not ask for confirmation": "不要求确认",
    "folder for the skill (default: installed)": "技能的文件夹（默认：installed）",
    "follow new entries; Ctrl+C ends": "跟踪新的条目；Ctrl+C 结束",
    "for example agent.busy_mode, or an environment name such as HERMES_MODEL": (
        "例如 agent.busy_mode，或 HERMES_MODEL 这样的环境变量名"
    ),
    "for example openrouter/openai/gpt-4o-mini": "例如 openrouter/openai/gpt-4o-mini",
    "for example terminal, web or send_message": "例如 terminal、web 或 send_message",
    "how long the approval is valid (default: once)": "批准多久有效（默认：once）",
    "id of an event (ev_…), turn (t_…), delivery (ob_…) or approval (ap_…); without: the latest messages": (
        "事件（ev_…）、对话轮（t_…）、投递（ob_…）或批准（ap_…）的 id；不给则列出最近的消息"
    ),
    "id of the grant (gr_…)": "许可的 id（gr_…）",
    "id of the session (s_…)": "会话的 id（s_…）",
    "install despite warnings": "有警告也安装",
    "link with a code typed on this phone": "在这部手机上输入代码来关联",
    "list messages that could not be delivered": "列出无法投递的消息",
    "name of another account on this platform": "这个平台上另一个账号的名称",
    "name of the bot (default: Hermes)": "机器人的名字（默认：Hermes）",
    "name of the key": "密钥的名称",
    "name of the skill, if the source has several": "技能的名称（来源中有多个时）",
    "name of the skill, or category/name": "技能的名称，或 类别/名称",
    "number of conversations (default: 20)": "对话数量（默认：20）",
    "number of entries (default: 50)": "条目数量（默认：50）",
    "number of messages (default: 20)": "消息数量（默认：20）",
    "numbers that may write to the bot, separated by commas": "可以给机器人发消息的号码，用逗号分隔",
    "only entries of this platform or component": "只看这个平台或组件的条目",
    "only list what would be deleted": "只列出会被删除的内容",
    "only list what would be imported": "只列出会被导入的内容",
    "only on this platform": "只在这个平台上",
    "only this conversation": "只看这个对话",
    "only this platform": "只看这个平台",
    "only this session": "只看这个会话",
    "reason for the agent": "告诉助手的原因",
    "replace the installed skill of the same name": "替换已安装的同名技能",
    "restore the removed skill": "恢复被移除的技能",
    "restore this skill (or all) to the bundled version": "把这个技能（或全部）恢复为自带版本",
    "role of the key (default: user)": "密钥的角色（默认：user）",
    "send an undelivered message again": "重新发送未投递的消息",
    "such as telegram, local or api": "例如 telegram、local 或 api",
    "telegram, weixin, ...": "telegram、weixin 等",
    "the account to link, as platform:user": "要关联的账号，写作 平台:用户",
    "the message; - reads it from stdin": "消息；- 表示从标准输入读取",
    "the new role": "新的角色",
    "the new value; - reads it from stdin": "新的值；- 表示从标准输入读取",
    "the pairing code the person was shown": "对方看到的配对代码",
    "the person the account belongs to: an id, or platform:user": "账号所属的人：id，或 平台:用户",
    "the person's id on that platform instead": "改用此人在该平台上的 id",
    "the person's id on that platform": "此人在该平台上的 id",
    "this level and above": "这个级别及以上",
    "wait for the delivery, at most a minute": "等待投递，最多一分钟",
    "your own number, or a separate one for the bot": "你自己的号码，或机器人单独的号码",
    "the gateway's tools for requests that do not say: none, or tools and toolsets (default: all)": (
        "请求没有指定时可用的网关工具：none，或工具和工具集（默认：all）"
    ),
    "code of the request": "请求的代码",
    "your own id: your commands run on this machine, not in a sandbox": (
        "你自己的 id：你的命令直接在本机运行，不在沙箱中"
    ),
    "the name or the id of a node": "节点的名称或 id",
    "let the node take work again": "让节点重新接收工作",
    "postgresql://… or sqlite:///PATH": "postgresql://… 或 sqlite:///PATH",
    "the source (default: the configured database)": "来源（默认：配置的数据库）",
    "delete what the destination holds": "删除目标数据库中已有的内容",
    "what to do; with --no-agent, the text to send": "要做的事；用 --no-agent 时是要发送的内容",
    "its id or name": "定时任务的 id 或名称",
    "a new schedule, which counts from now": "新的时间安排，从现在起生效",
    "a new prompt": "新的提示词",
    "how many due times (default: 20)": "显示多少次到期记录（默认：20）",
    "how many times it runs; 0: no limit": "运行多少次；0：不限",
    "what its runs may do without asking, as in `hermes approvals grants`": (
        "运行时无需询问即可做的事，写法同 `hermes approvals grants`"
    ),
    "send the prompt, or the output of the script, unchanged": "原样发送提示词或脚本的输出",
    "how the sender signs: github, gitlab, stripe, slack, svix, hermes (or auto)": (
        "发送方的签名方式：github、gitlab、stripe、slack、svix、hermes（或 auto）"
    ),
    "the sender's secret; - reads it from stdin; without it a new one is created": (
        "发送方的密钥；- 表示从标准输入读取；不给则生成新的"
    ),
    "events that count, separated by commas: push, pull_request.opened, invoice.*": (
        "要处理的事件，用逗号分隔：push、pull_request.opened、invoice.*"
    ),
    "what to do, with fields of the payload as {pull_request.title}": (
        "要做的事，可以引用内容中的字段，如 {{pull_request.title}}"
    ),
    "where the answer goes: a platform (its home channel) or platform:chat": (
        "回答发到哪里：平台（它的主频道）或 平台:聊天"
    ),
    "send the filled-in prompt itself, without the agent": "不经过助手，直接发送填好的提示词",
    "skills to read first, separated by commas": "先阅读的技能，用逗号分隔",
    "role of its turns: guest (no tools; the default) or user": "运行时的角色：guest（没有工具；默认）或 user",
    "JSON to send; - reads it from stdin": "要发送的 JSON；- 表示从标准输入读取",
    "name of the route, the last part of its address": "路由的名称，即地址的最后一段",
    "what is to be done": "要做什么",
    "assign it to the agent and make it ready": "分配给助手并设为就绪",
    "task that must be done first": "必须先完成的任务",
    "column (default: todo)": "列（默认：todo）",
    "the new title": "新标题",
    "only this column": "只看这一列",
    "only tasks of this assignee": "只看分配给此人的任务",
    "the column": "列",
    "agent, a person, profile:NAME; '' for nobody": "agent、某人、profile:NAME；'' 表示不分配给任何人",
    "the comment": "评论内容",
    "the address": "网址",
    "its title": "网址的标题",
    "number of the task that must be done first": "必须先完成的任务的编号",
    "no longer wait for it": "不再等待它",
    "name of the board (default: main)": "看板的名称（默认：main）",
    "the text of the task": "任务的正文",
    "a higher one goes first (default: 0)": "数值大的先做（默认：0）",
    "folder the agent works in": "助手工作的文件夹",
    "how long one run may take": "一次运行最长多久",
    "runs before it is blocked": "运行几次后标记为受阻",
    "number of the task": "任务的编号",
}

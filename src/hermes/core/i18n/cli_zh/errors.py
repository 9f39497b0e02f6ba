"""Errors: what went wrong, in our words and in those of the system."""

from __future__ import annotations

FAILURES = {
    "its host name is unknown": "找不到它的主机名",
    "its certificate is not trusted": "它的证书不受信任",
    "the encrypted connection failed": "加密连接失败",
    "the proxy did not let us through": "代理不让通过",
    "the proxy did not answer in time": "代理没有及时回应",
    "its address is not an http address": "它的地址不是 http 地址",
    "its address is not valid": "它的地址无效",
    "it redirects without end": "它不停地重定向",
    "it refused the connection": "它拒绝了连接",
    "no connection in time": "没有及时连上",
    "no answer in time": "没有及时回应",
    "the connection was closed": "连接被关闭",
    "it ended too early": "它结束得太早",
    "its answer cannot be read": "无法读取它的回应",
    "a package is missing": "缺少软件包",
    "there was not enough memory": "内存不足",
    "the connection failed": "连接失败",
    "an unexpected error; the log has the details": "意外的错误；详情见日志",
}

SYSTEM = {
    # The system's own words: os.strerror.
    "connection refused": "连接被拒绝",
    "Connection refused": "连接被拒绝",
    "connection reset by peer": "连接被对方重置",
    "network is unreachable": "网络不可达",
    "no route to host": "没有到主机的路由",
    "permission denied": "没有权限",
    "Permission denied": "没有权限",
    "no such file or directory": "没有这个文件或目录",
    "No such file or directory": "没有这个文件或目录",
    "no space left on device": "设备上没有空间",
    "read-only file system": "只读文件系统",
    "not a directory": "不是目录",
    "is a directory": "是一个目录",
}

ERRORS = {
    "Look: {}": "查看：{}",
    "Start it: {} gateway run": "启动：{} gateway run",
    "Did you mean `{}`?": "你是想输入 `{}` 吗？",
    "Did you mean {}?": "你是指 {} 吗？",
    "There is no command {}.": "没有命令 {}。",
    "`{} --help` lists what there is.": "`{} --help` 列出所有命令。",
    "There are: {}.": "有：{}。",
    "A verb is missing: {}": "缺少动作：{}",
    "{} takes the path of a file with lines NAME=value; {} is not a file.": (
        "{} 需要一个内容为 NAME=value 的文件路径；{} 不是。"
    ),
    "There is nothing to ask. For example: {}": "没有要问的内容。例如：{}",
    "It asks first: {}": "需要先批准：{}",
    "Allow it: {}": "批准：{}",
    "The answer then waits here: {}": "之后回答在这里：{}",
    "What happened: {}": "经过：{}",
    "There was no answer within {} s. The turn was stopped.": "{} 秒内没有回答。这一轮已停止。",
    "Approved: {}": "已批准：{}",
    "The system reports: {}": "系统报告：{}",
    "The gateway is not running.": "网关没有运行。",
    "The gateway stopped three times before it answered.": "网关在回答之前停止了三次。",
    "The gateway stopped before it answered.": "网关在回答之前停止了。",
    "The gateway ended before it had answered.": "网关在回答之前结束了。",
    "The gateway is stalled: it holds the home and has not answered for {} s.": (
        "网关停滞了：它占用主目录，但 {} 秒没有回应。"
    ),
    "The gateway holds the home and has not answered for {} s.": "网关占用主目录，但 {} 秒没有回应。",
    "The gateway is starting. I wait up to {} s for it.": "网关正在启动。最多等待 {} 秒。",
    "The gateway cannot start: {}. It keeps trying.": "网关无法启动：{}。它会不断重试。",
    "The gateway could not start ({}) and tries again at {}.": "网关无法启动（{}），将在 {} 重试。",
    "Now: {} gateway restart     Why: {} logs": "立即重试：{} gateway restart     原因：{} logs",
    "{} works alone in this home. I wait up to {} s for its end.": "{} 正独占这个主目录。最多等待 {} 秒。",
    "{} works alone in this home.": "{} 正独占这个主目录。",
    "Any number can work at once while the gateway runs: {} gateway start": (
        "网关运行时可以同时使用任意多个：{} gateway start"
    ),
    "{} holds this home and is stopped.": "{} 占用这个主目录，而且已被暂停。",
    "Let it go on with `fg` where it was started, or end it: kill -9 {}": (
        "在启动它的地方用 `fg` 让它继续，或结束它：kill -9 {}"
    ),
    "Nothing is stored in {} yet.": "{} 中还没有存储任何内容。",
    "Another process has just taken the home.": "另一个进程刚刚占用了主目录。",
    "The home did not open within {} s.": "主目录在 {} 秒内没有打开。",
    "{} needs the gateway, and it is not running.": "{} 需要网关，而它没有运行。",
    "That is too long for one message: {} characters, and {} can be sent.": "一条消息放不下：{} 个字符，最多 {} 个。",
    "{} cannot be the home folder: {}": "{} 不能作为主目录：{}",
    "Or set HERMES_HOME to a folder of yours.": "或者把 HERMES_HOME 设为你自己的文件夹。",
    "{} is in use by {}. One process at a time owns a home; end that one first.": (
        "{} 正被 {} 占用。一个主目录同时只能由一个进程使用；请先结束那一个。"
    ),
    "The disk of {} is full: your quota is used up": "{} 所在的磁盘已满：配额用完了",
    "delete some files of yours there": "删除那里的一些文件",
    "The disk of {} is read-only": "{} 所在的磁盘是只读的",
    "The disk of {} fails (input/output error)": "{} 所在的磁盘出错（输入/输出错误）",
    "copy what matters away; then: dmesg": "先备份重要内容；然后：dmesg",
    "The disk of {} is full": "{} 所在的磁盘已满",
    "delete some files; nothing else is needed": "删除一些文件即可",
    "free some space; nothing else is needed": "腾出一些空间即可",
    "{} belongs to {} and cannot be used by {}": "{} 属于 {}，{} 无法使用",
    "{} cannot be entered or written (its mode is {})": "无法进入或写入 {}（权限是 {}）",
    "{} cannot be read and written (its mode is {})": "无法读写 {}（权限是 {}）",
    "{} is locked by {}": "{} 被 {} 锁定",
    "let it finish, or end it: kill {}": "等它完成，或结束它：kill {}",
    "This command runs in the agent's own terminal.": "这个命令在助手自己的终端里运行。",
    "The agent cannot answer its own questions or change its gateway.": (
        "助手不能回答自己的问题，也不能改动自己的网关。"
    ),
    "Type the command in a terminal that you opened yourself, or answer in a chat.": (
        "请在你自己打开的终端里输入这个命令，或在聊天中回答。"
    ),
    # What the configuration says of itself: the place stands in front.
    "is not set, so nothing can run in docker.": "没有设置，所以无法在 docker 中运行。",
    "is not set, so nothing can run over ssh.": "没有设置，所以无法通过 ssh 运行。",
    "Name an image.": "请指定一个镜像。",
    "Name a machine.": "请指定一台机器。",
    "Name a model.": "请指定一个模型。",
    "Known: {}.": "已知：{}。",
    "Add a line {}=… to .env; it is used at once.": "在 .env 中加一行 {}=…；立即生效。",
    "Name one in model.provider, or set its key, for example OPENAI_API_KEY.": (
        "在 model.provider 中指定一个，或设置它的密钥，例如 OPENAI_API_KEY。"
    ),
    "Write your own there; it is used at once.": "在那里写上你自己的值；立即生效。",
    "The last good value stays.": "保留上一个有效的值。",
    "The default stays: {}.": "保留默认值：{}。",
    "What it said before stays in force.": "之前的内容继续有效。",
    "Set {}, then run `hermes doctor`.": "设置 {}，然后运行 `hermes doctor`。",
    'telegram account "{}" has no token.': "telegram 账号“{}”没有令牌。",
    '{} account "{}" has no {}.': "{} 账号“{}”没有 {}。",
    "{}: {} is unknown.": "{}：{} 未知。",
    "{} is unknown.": "{} 未知。",
}

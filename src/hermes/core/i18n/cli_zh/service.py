"""The gateway as a service: ``gateway install`` and ``uninstall``, and what ``status`` says of it."""

from __future__ import annotations

SERVICE = {
    "Unit file {}:": "单元文件 {}：",
    "Commands:": "命令：",
    "These settings exist only in this shell; the service does not get them: {}.": (
        "这些设置只在当前 shell 里，服务看不到：{}。"
    ),
    "Put them into {}, which only you can read.": "请把它们写进 {}，那个文件只有你能读。",
    "Nothing was written (--dry-run).": "什么都没有写入（--dry-run）。",
    "Nothing was changed (--dry-run).": "什么都没有改动（--dry-run）。",
    "Nothing was changed.": "什么都没有改动。",
    "Nothing more was done.": "没有再做别的。",
    "Install it?": "要安装吗？",
    "Remove the service?": "要移除这个服务吗？",
    "This runs in the agent's own terminal. Type it in a terminal that you opened yourself.": (
        "这是智能体自己的终端。请在你自己打开的终端里输入。"
    ),
    "{} was not written by this command, so it stays as it is.": "{} 不是由这个命令写的，所以保持原样。",
    "{} was not written by `hermes gateway install`, so it stays as it is.": (
        "{} 不是由 `hermes gateway install` 写的，所以保持原样。"
    ),
    "{} was written by somebody else just now, so it stays as it is. Repeat the command.": (
        "{} 刚刚被别人写入，所以保持原样。请重新运行命令。"
    ),
    "To replace it, move it away first: {}; mv {} {}": "要替换它，请先移走：{}; mv {} {}",
    "{} was changed by hand, so it stays as it is.": "{} 被手动改过，所以保持原样。",
    "Keep your lines with `{}` and repeat this with --replace; the present file is kept as .old": (
        "请用 `{}` 保留你的改动，再加 --replace 重新运行；现在的文件会保留为 .old"
    ),
    "The service {} serves another home, {}.": "服务 {} 属于另一个主目录 {}。",
    "Remove it there first: hermes gateway uninstall": "请先在那里移除：hermes gateway uninstall",
    "systemd knows a unit {} already, from {}. It is another program's and stays.": (
        "systemd 已经有一个单元 {}，来自 {}。它不是我们的，没有动它。"
    ),
    "The service manager cannot be used: {}.": "无法使用服务管理器：{}。",
    "The service of the system belongs to the user {}.": "系统服务属于用户 {}。",
    "Repeat the command with sudo.": "请用 sudo 重新运行。",
    "The service manager of your account cannot be reached: {}.": "无法连接你账户的服务管理器：{}。",
    "Log in as this user (ssh, not su), or install it for the system: sudo hermes gateway install --system": (
        "请直接登录这个用户（用 ssh，不要用 su），或安装到系统：sudo hermes gateway install --system"
    ),
    "only root may install a service of the system": "只有 root 可以安装系统服务",
    "systemctl does not answer": "systemctl 没有回应",
    "launchctl does not answer": "launchctl 没有回应",
    "{} is not installed": "没有安装 {}",
    "The user {} could not be created: {}": "无法创建用户 {}：{}",
    "The service could not start: {}": "服务无法启动：{}",
    "{} cannot be run as {}: {}": "无法以用户 {1} 运行 {0}：{2}",
    "{} cannot be run: {}": "无法运行 {}：{}",
    "{} cannot run Hermes as {}: {}": "{} 无法以用户 {} 运行 Hermes：{}",
    "{} cannot run Hermes: {}": "{} 无法运行 Hermes：{}",
    "{} cannot be the home folder as {}: {}": "用户 {1} 不能以 {0} 为主目录：{2}",
    "it does not end": "它没有结束",
    "it says nothing": "它什么都没说",
    "Install Hermes where that user can read it, for example below /opt, or name another user: --run-as NAME": (
        "请把 Hermes 安装在那个用户能读的位置，例如 /opt 下，或换一个用户：--run-as NAME"
    ),
    "{} did not accept the unit: {}": "{} 没有接受这个单元：{}",
    "{} did not start the gateway: {}": "{} 没有启动网关：{}",
    "{} did not stop the gateway: {}": "{} 没有停止网关：{}",
    "{} did not stop: {}": "{} 没有停止：{}",
    "{}. Type: {}": "{}。请输入：{}",
    "Gateway started in {} s by {}.": "网关由 {1} 在 {0} 秒内启动。",
    "The gateway is still starting after {} s; {} says: {}. Look: {}": "{} 秒后网关仍在启动；{} 显示：{}。查看：{}",
    "A gateway runs for this home. It finishes its work and stops; the service takes its place.": (
        "这个主目录已有网关在运行。它会完成手头的工作后停止，由服务接替。"
    ),
    "{} starts the gateway now and after every crash.": "{} 现在启动网关，每次崩溃后也会重新启动。",
    "launchd starts it when you log in, and stops it when you log out.": "launchd 在你登录时启动它，在你注销时停止它。",
    "{} lingers: the service starts with the machine and outlives every log-out.": (
        "{} 已启用 linger：服务随机器启动，注销后也继续运行。"
    ),
    "{} lingers now: the service starts with the machine and outlives every log-out.": (
        "已为 {} 启用 linger：服务随机器启动，注销后也继续运行。"
    ),
    "Services of a user end when the user logs out, and start at the next log-in, unless the user lingers.": (
        "用户的服务在注销时结束，下次登录时才启动，除非为用户启用 linger。"
    ),
    "Let the services of {} run without a log-in ({})?": "让 {} 的服务在没有登录时也运行（{}）？",
    "The service ends when {} logs out": "{} 注销时服务会结束",
    "Lingering was refused ({})": "启用 linger 被拒绝（{}）",
    "no reason given": "没有说明原因",
    "Watching it for {} s.": "我观察它 {} 秒。",
    "The gateway stayed up for {} s without a restart.": "网关持续运行了 {} 秒，没有重启。",
    "The gateway did not stay up.": "网关没有保持运行。",
    "The gateway restarted during this time.": "观察期间网关重启了。",
    "The gateway was not ready after {} s.": "{} 秒后网关仍未就绪。",
    "{} says: {}. The last lines: {}": "{} 显示：{}。最后几行日志：{}",
    "No service of Hermes serves {}.": "没有 Hermes 服务使用 {}。",
    "The service {} is removed. {} stays as it is. Run it by hand: {} gateway start": (
        "服务 {} 已移除。{} 保持原样。手动运行：{} gateway start"
    ),
    "The gateway is a service of {}, which would start it again. Stop the service first: {} gateway stop": (
        "网关是 {} 的服务，会被它重新启动。请先停止服务：{} gateway stop"
    ),
    "No service of the system is installed. Install one: sudo hermes gateway install --system": (
        "没有安装系统服务。安装：sudo hermes gateway install --system"
    ),
    "--run-as names the user of a service of the system. Add --system.": (
        "--run-as 指定系统服务的用户。请加上 --system。"
    ),
    "On macOS the service is an agent of your own account. Leave --system out.": (
        "在 macOS 上，服务是你自己账户的代理。请去掉 --system。"
    ),
    "There is no user {} on this machine. Create it, or leave --run-as out.": (
        "这台机器上没有用户 {}。请创建它，或去掉 --run-as。"
    ),
}

ELSEWHERE = {
    "Windows has no service manager that Hermes can use. Two ways work:": (
        "Windows 没有 Hermes 能用的服务管理器。有两种办法："
    ),
    "install Hermes inside WSL2 and type this command there": "在 WSL2 里安装 Hermes，并在那里输入这个命令",
    "Task Scheduler": "任务计划程序",
    "This WSL2 runs without systemd, so it has no services. Three ways work:": (
        "这个 WSL2 没有启用 systemd，所以没有服务。有三种办法："
    ),
    "with systemd": "启用 systemd",
    "put [boot] and systemd=true into /etc/wsl.conf, type `wsl --shutdown` in Windows, open WSL again and repeat this command": (  # noqa: E501 - one line of the screen
        "在 /etc/wsl.conf 写入 [boot] 和 systemd=true，在 Windows 中输入 `wsl --shutdown`，重新打开 WSL 并重复这个命令"
    ),
    "by Windows": "由 Windows",
    "by hand": "手动",
    "at every boot": "每次开机",
    "crontab -e, and the line: @reboot {} gateway start": "crontab -e，加入一行：@reboot {} gateway start",
    "(until the next reboot)": "（到下次重启为止）",
    "(until WSL is shut down)": "（到 WSL 关闭为止）",
    "This machine runs {} instead of systemd, so no unit can be installed. Two ways work:": (
        "这台机器运行的是 {} 而不是 systemd，无法安装单元。有两种办法："
    ),
    "another init": "其他 init",
    "In a container, the container's own restart policy does it: see docs/containers.md.": (
        "在容器里，由容器自己的重启策略负责：见 docs/containers.md。"
    ),
}

STATUS = {
    "{} starts with the machine and after a crash": "{} 随机器启动，崩溃后重新启动",
    "{} does not start with the machine": "{} 不会随机器启动",
    "{} ends when {} logs out": "{1} 注销时 {0} 会结束",
    "{} is installed and {}": "{} 已安装，状态 {}",
    "{} serves another home, {}": "{} 属于另一个主目录 {}",
    "unsupervised: it runs by hand, though {} is installed": "无人看管：手动运行，虽然已安装 {}",
    "hermes gateway stop, then hermes gateway start": "先 hermes gateway stop，再 hermes gateway start",
    "not loaded": "未加载",
}

HELP = {
    "install the gateway as a service that starts with the machine": "把网关安装为随机器启动的服务",
    "stop the service and remove its unit; the data stays": "停止服务并移除其单元；数据保留",
    "the system service, not that of your account": "系统的服务，而不是你账户的服务",
    "show what would be done, change nothing": "只显示会做什么，不改动",
    "ask no questions": "不提问",
    "with --system: run as this user (default: a new user hermes)": (
        "与 --system 一起：以这个用户运行（默认：新用户 hermes）"
    ),
    "replace a unit that was changed by hand; the old file is kept as .old": "替换被手动改过的单元；旧文件保留为 .old",
    "keep it running after you log out, without asking": "注销后也继续运行，不提问",
    "stop it when you log out": "注销时结束",
    "how long to watch the status (default: 30)": "观察状态多少秒（默认 30）",
    "keep it running: a service of systemd or launchd that starts with the machine": (
        "保持运行：systemd 或 launchd 的服务，随机器启动"
    ),
    "show the unit and the commands, change nothing": "显示单元和命令，不改动",
    "for the whole machine, under a separate user": "为整台机器安装，使用专门的用户",
    "stop the service and remove it; the data stays": "停止并移除服务；数据保留",
}

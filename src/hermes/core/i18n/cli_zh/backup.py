"""Backups, updates and the way back: ``backup``, ``update``, ``rollback``."""

from __future__ import annotations

HELP = {
    "Back up the home and restore it: create, list, verify, restore": "备份和恢复主目录：create、list、verify、restore",
    "make a backup without stopping the gateway": "在一切照常运行时做备份",
    "list the backups, the newest first": "列出备份，最新的在前",
    "read the whole backup and compare every checksum": "完整读取一个备份，核对所有校验和",
    "replace the current files with a backup; they are kept for --undo": (
        "用备份的状态替换现在的状态，现在的会另行保存"
    ),
    "the file to write (default: a new one in the backup folder)": "要生成的文件（默认：备份目录里的新文件）",
    "add .env and other keys, encrypted": "加入 .env 和其他密钥（加密）",
    "add the files of workspaces/": "加入 workspaces/ 里的文件",
    "make an hourly backup, and delete old ones": "做每小时的备份，并删除旧备份",
    "a file, a name from the list, or latest": "文件、列表里的名字，或 latest",
    "do not ask": "不询问",
    "revert the last restore": "撤销上次恢复",
    "accept a backup that another home made": "接受由另一个主目录做的备份",
    "read the passphrase from FILE; - is stdin": "从这里读取口令；- 表示标准输入",
    "make a backup now, and print its path": ("立即备份，不影响运行中的网关；会显示文件位置"),
    "with .env and other keys, encrypted with a passphrase": "包含 .env 和其他密钥，用口令加密",
    "the newest first": "最新的在前",
    "read the whole file and compare every checksum": "完整读取并核对所有校验和",
    "go back to it; the current files are kept for --undo": "回到这个备份；现在的内容会另行保存",
}

BACKUP = {
    "{}; {}, {}.": "{}；{}，{}。",
    "It contains no secrets: copy .env yourself, or use --with-secrets.": (
        "其中没有密钥：请自行保存 .env，或使用 --with-secrets。"
    ),
    "It does not contain the PostgreSQL database: use pg_dump for that.": (
        "其中没有 PostgreSQL 数据库：请用 pg_dump 备份它。"
    ),
    "{} of {} by Hermes {}; {}, {}.": "{}，共 {}，由 Hermes {} 制作；{}，{}。",
    "{} of {} by Hermes {}, with secrets; {}, {}.": "{}，共 {}，由 Hermes {} 制作，含密钥；{}，{}。",
    "{} is whole: {} of {} by Hermes {}.": "{} 完好：{}，共 {}，由 Hermes {} 制作。",
    "{} is whole: {} of {} by Hermes {}, with secrets.": "{} 完好：{}，共 {}，由 Hermes {} 制作，含密钥。",
    "{} of {} by Hermes {}": "{}，共 {}，由 Hermes {} 制作",
    "{} of {} by Hermes {}, with secrets": "{}，共 {}，由 Hermes {} 制作，含密钥",
    "There is no backup in {}. Make one: {} backup create": "{} 里没有备份。做一个：{} backup create",
    "{} is whole: {}.": "{} 完好：{}。",
    "Another home made it: the checksums are right, the signature was not checked.": (
        "它不是由这个主目录制作的，所以只能核对校验和。"
    ),
    "Its secrets are encrypted; with the passphrase they are checked too.": "其中的密钥已加密；给出口令就会一并检查。",
    "Name the backup to restore, or type --undo. The list: hermes backup list": (
        "请指明要恢复的备份，或使用 --undo。查看备份：hermes backup list"
    ),
    "Revert the last restore?": "放回上次恢复时另存的内容吗？",
    "Go back to {}? The current files are kept for --undo.": "回到 {} 吗？现在的内容会另行保存。",
    "Interrupted. {}": "已中断。{}",
    "The gateway completes the restore when it starts.": "网关启动时会完成恢复。",
    "The restore is complete.": "恢复已完成。",
    "Installed is {}.": "已安装的版本是 {}。",
    "Type it again: {}": "请重新输入：{}",
    "Type the same command again: an import adds only what is missing.": "请重新输入同一条命令：导入只添加缺少的内容。",
    "Nothing was changed.": "没有做任何更改。",
    "Restored. The replaced files are in {}.": "已恢复。原来的内容在 {}。",
    "To undo: {} backup restore --undo": "撤销：{} backup restore --undo",
    "config.yaml lacks {}, which this home does not know.": "config.yaml 缺少 {}，这个主目录里也没有。",
    "Look for <secret:…> in it: {} config path": "在其中查找 <secret:…>：{} config path",
    "Its secrets were not restored, because no passphrase was given.": "没有给出口令，所以没有恢复其中的密钥。",
    "{} is in use by {}. Stop that process first, then restore.": "{} 正被 {} 使用。请先结束它，再恢复。",
    "There is no terminal to ask for confirmation. Repeat it with --yes.": "没有终端可以询问确认。请加上 --yes 再试。",
    "A passphrase is needed: --passphrase-file FILE, or {}.": "需要口令：--passphrase-file FILE，或 {}。",
    "Passphrase for the secrets:": "密钥的口令：",
    "The two passphrases differ. No backup was made.": "两次输入的口令不同。没有生成任何文件。",
    # Why an archive is refused, or none is made.
    "{} ends too early: it is not complete.": "{} 提前结束：文件不完整。",
    "{} is damaged.": "{} 已损坏。",
    "{} is damaged: {} is not as it was written.": "{} 已损坏：{} 与写入时不同。",
    "{} is damaged: its list of files cannot be read.": "{} 已损坏：无法读取文件清单。",
    "{} is no backup of Hermes.": "{} 不是 Hermes 的备份。",
    "{} was changed after it was made: its list of files is not the signed one.": (
        "{} 在制作之后被改动过：文件清单与签名不符。"
    ),
    "{} was changed after it was made: its list names {} where it holds {}.": (
        "{} 在制作之后被改动过：清单里是 {}，实际是 {}。"
    ),
    "{} was changed after it was made: {} is no plain file (a link or a device).": (
        "{} 在制作之后被改动过：{} 不是普通文件（是链接或设备）。"
    ),
    "{} was changed after it was made: it goes on behind its last file.": (
        "{} 在制作之后被改动过：最后一个文件之后还有内容。"
    ),
    "{} was changed after it was made: a part of it is larger than listed.": (
        "{} 在制作之后被改动过：其中一部分比清单上的大。"
    ),
    "{} was made by a newer Hermes. Update Hermes first: hermes update": (
        "{} 由更新版本的 Hermes 制作。请先更新 Hermes：hermes update"
    ),
    "{} names a file outside the home: {}": "{} 指向主目录之外的文件：{}",
    "{} names a file that no backup of Hermes holds: {}": "{} 含有 Hermes 备份里不会有的文件：{}",
    "{} names a file twice.": "{} 把一个文件列了两次。",
    "{} was not made by this home, so only its checksums can be checked. If you trust it: --other-home": (
        "{} 不是由这个主目录制作的，只能核对校验和。如果你信任它：--other-home"
    ),
    "{} holds {} MB, and {} has {} MB left.": "{} 有 {} MB，而 {} 只剩 {} MB。",
    "There is no backup {}. The list: hermes backup list": "没有备份 {}。查看备份：hermes backup list",
    "The passphrase is not that of {}, or its secrets were changed after it was made.": (
        "口令与 {} 不符，或其中的密钥在制作之后被改动过。"
    ),
    "A passphrase for secrets has at least {} characters.": "密钥的口令至少要有 {} 个字符。",
    "No backup was made: it needs {} MB, and {} has {} MB left.": "没有做备份：需要 {} MB，而 {} 只剩 {} MB。",
    "No backup was made: {} is damaged ({}). Look: hermes doctor": "没有做备份：{} 已损坏（{}）。查看：hermes doctor",
    "No backup was made: {} cannot be read ({}). Look: hermes doctor": (
        "没有做备份：无法读取 {}（{}）。查看：hermes doctor"
    ),
    "Another backup of this home is being made. Try again in a moment.": "正在为这个主目录做另一个备份。请稍后再试。",
    "A gateway was started during the restore. Nothing was changed; type it again.": (
        "恢复期间启动了网关。没有做任何更改；请重新输入。"
    ),
    "There is nothing to take back: no restore has set anything aside.": "没有可撤销的：还没有恢复过任何备份。",
    "A restore is not finished yet. It ends with the next start: hermes gateway restart": (
        "上一次恢复还没有完成。下次启动时会完成：hermes gateway restart"
    ),
}

UPDATE_HELP = {
    "Install a new version, after a test on a copy": "更新到新版本，先在副本上试运行",
    "Return to the version from before the last update": "回到上次更新之前的版本",
    "only show what is new": "只显示有什么新版本",
    "return to the version from before the last update": "回到上次更新之前的版本",
    "back up, test the new version on a copy, switch to it, restart the gateway": (
        "备份，在副本上试运行新版本，切换过去，重启网关"
    ),
    "the same as hermes rollback": "回到之前的版本，与 hermes rollback 相同",
    "return to the version from before the last update; a second run returns to the newer one": (
        "回到上次更新之前的版本；再运行一次就撤销"
    ),
    "without a question": "不询问",
}

UPDATE = {
    "{} is the newest.": "{} 已是最新版本。",
    "New: {}; installed: {}. Install it: {} update": "新版本：{}；现在是 {}。更新：{} update",
    "{} is installed. Back to {}: {} rollback": "已安装 {}。回到 {}：{} rollback",
    "{} is installed again.": "已重新安装 {}。",
    "Backing up the home …": "正在备份主目录 …",
    "Preparing {} beside {} …": "正在 {1} 旁边准备 {0} …",
    "Testing the new version on a copy: migrations, a start, one answer …": (
        "正在副本上试运行新版本：迁移、启动、一次回答 …"
    ),
    "Switching to {} …": "正在切换到 {} …",
    "The new version does not run here: switching back to {} …": "新版本在这里无法运行，正在换回 {} …",
    "The stores are too new for it: restoring those of the backup; the current ones are in {} …": (
        "存储对它来说太新：恢复备份里的存储，现在的存储保存在 {} …"
    ),
    "The stores are too new for it: restoring those as they were before it; the current ones are in {} …": (
        "存储对它来说太新：恢复更新前的存储，现在的存储保存在 {} …"
    ),
    "The stores change with the next start.": "存储会在下次启动时更换。",
    "{} did not start, so the old version was put back.": "{} 启动失败，已换回原来的版本。",
    "The database is PostgreSQL: its migrations are not tried on a copy, and it is not in the backup.": (
        "数据库是 PostgreSQL：不会在副本上试迁移，也不在备份里。"
    ),
    "Back it up first: {}": "请先备份它：{}",
    "There is no version to go back to: no update was made here.": "没有可以回去的版本：这里还没有更新过。",
    "Go back from {} to {}?": "从 {} 回到 {} 吗？",
    "It cannot read the current stores: those of {} are restored; the current ones are set aside.": (
        "它读不了现在的存储，所以恢复 {} 里的存储；现在的会另行保存。"
    ),
    "Another update is running. Wait until it has ended.": "另一个更新正在进行。请等它结束。",
    "The new version does not start (exit code {}):": "新版本无法启动（退出码 {}）：",
    "The new version was not ready after {} s.": "新版本在 {} 秒后仍未就绪。",
    "The new version gave no answer: {}": "新版本没有回答：{}",
    "The new version refused a question: {}": "新版本拒绝了提问：{}",
    "The new version answered a test question wrongly: {}": "新版本答非所问：{}",
    "The new version would lose rows of {}: {} has {} of {}.": "新版本会丢失 {} 的数据：{} 只剩 {}/{} 行。",
    "{} failed: there is no program {}.": "{}失败：没有程序 {}。",
    "{} took more than {} minutes.": "{}超过了 {} 分钟。",
    "Files of the clone were changed here ({}), and an update would overwrite them.": (
        "克隆里的文件被改动过（{}），更新会覆盖它们。"
    ),
    "This clone has commits that {} has not, so it cannot be updated by itself.": (
        "这个克隆有 {} 没有的提交，无法自动更新。"
    ),
    "The clone {} follows no remote branch, so there is nowhere to look for updates.": (
        "克隆 {} 没有跟踪远程分支，不知道去哪里找更新。"
    ),
    "Update it: {}": "更新它：{}",
    "This Hermes runs from the git worktree {}, which only git updates.": (
        "这个 Hermes 在 git 工作树 {} 里，只能用 git 更新。"
    ),
    "This Hermes is neither a git clone nor installed in a virtual environment.": (
        "这个 Hermes 既不是 git 克隆，也不在虚拟环境里。"
    ),
}

"""Imports: help and sentences of `hermes import` and `hermes config migrate`."""

from __future__ import annotations

IMPORTS = {
    "settings, keys, people, sessions, jobs, tasks, skills and texts of hermes-agent": (
        "hermes-agent 的设置、密钥、用户、对话、定时任务、看板任务、技能和文本"
    ),
    "settings, keys, people, sessions, jobs, skills and texts of OpenClaw": (
        "OpenClaw 的设置、密钥、用户、对话、定时任务、技能和文本"
    ),
    "the home of the other gateway": "另一个网关的主目录",
    "only show what would be imported": "只显示会搬来什么",
    "also import settings that decide where messages and keys are sent: base_url, proxies, api, tracing": (
        "也搬来决定文字和密钥发往何处的设置：base_url、代理、api、tracing"
    ),
    "These settings decide where messages and keys are sent:": "这些设置决定文字和密钥发往何处：",
    "Import them, too?": "也搬过来吗？",
    "it decides where messages and keys are sent: check it, and import it with --addresses": (
        "它决定文字和密钥发往何处：请核对，再用 --addresses 搬来"
    ),
    "its provider has no address without --addresses": "没有 --addresses，它的提供方就没有地址",
    "show what would be imported; nothing is written": "显示会搬来什么；不写入任何内容",
    "import it; a second import changes nothing": "搬过来；再做一次不会改变任何内容",
    "from ~/.openclaw": "从 ~/.openclaw 搬来",
    "{} in {}: this would be imported. Nothing was written.": "{1} 中的 {0}：会搬来这些。没有写入任何内容。",
    "{} in {} is imported. Nothing was changed there.": "{1} 中的 {0} 已搬来。那里没有任何改动。",
    "{} in {}: nothing new. Nothing was changed.": "{1} 中的 {0}：没有新内容。没有任何改动。",
    "Differences from the other home:": "与那里不同的：",
    "… and {} more (--json shows the first hundred)": "… 还有 {} 条（--json 显示前一百条）",
    "Import it: {}": "搬过来：{}",
    "To delete the imported sessions: {}": "撤回搬来的对话：{}",
    "Stop {} before you start the gateway here: only one gateway gets a bot's messages.": (
        "在这里启动网关之前先停止 {}：一个机器人只能在一处回答。"
    ),
    "Take it over": "搬过来",
    "(shows what would be imported; changes nothing)": "（显示会搬来什么；那里不会改变）",
    "Import it into {} now?": "现在搬到 {} 吗？",
    "Then: {}": "然后：{}",
    "There is no import from {}. There are: {}.": "不能从 {} 搬来。可以：{}。",
    "There is no folder {}. Name the home of {}.": "没有文件夹 {}。请写出 {} 的主目录。",
    "That is this home itself. Name the home of the other gateway.": "这就是当前主目录。请写出另一个网关的主目录。",
    "{} is not a home of {}: it contains none of {}.": "{0} 不是 {1} 的主目录：里面没有 {2}。",
    "Hermes has no setting of this name": "这里没有这个名字的设置",
    "it decides what the agent may do or where data is: set it here yourself": (
        "它决定助手可以做什么或数据放在哪里：请在这里自己设置"
    ),
    "what an older gateway.json would move into config.yaml": "旧的 gateway.json 会移到 config.yaml 的内容",
    "move the settings of an older gateway.json into config.yaml": "把旧的 gateway.json 的设置移到 config.yaml",
    "only show what would be moved": "只显示会移动什么",
    "{}: set elsewhere, which stays": "{}：别处已设置，保持不变",
    "{} stays: correct these lines, then do it again.": "{} 保留不动：改正这些行，再做一次。",
    "{} would be moved. Nothing was written.": "会移动 {} 项。没有写入任何内容。",
    "{} moved. The old file is {}.": "已移动 {} 项。旧文件是 {}。",
    "There is no {}: nothing is to be moved.": "没有 {}：没有要移动的内容。",
}

"""Profiles: help and sentences of `hermes profile` and `-p NAME`."""

from __future__ import annotations

PROFILES = {
    "list the profiles: state, ports, folder": "列出配置档：状态、端口、文件夹",
    "create a profile with its own home and ports": "新建配置档，有自己的主目录和端口",
    "show one profile": "显示一个配置档",
    "delete a profile with everything it stores": "删除配置档及其存储的全部内容",
    "name of the profile: a-z, 0-9, - and _": "配置档的名字：a-z、0-9、- 和 _",
    "copy settings, model keys and SOUL.md of this home, but no chat platform": (
        "复制这个主目录的设置、模型密钥和 SOUL.md，但不复制聊天平台"
    ),
    "create a second agent with its own ports": "新建第二个助手，有自己的端口",
    "with the settings and model keys of this one, without its chats": "带上当前的设置和模型密钥，不带聊天平台",
    "connect a separate bot to it": "给它一个自己的机器人",
    "run it beside the first": "与第一个并存运行",
    "all profiles: state, ports, folder": "所有配置档：状态、端口、文件夹",
    "the same for one profile": "只看一个配置档",
    "delete it with everything it stores": "删除它及其存储的全部内容",
    "Invalid profile name {}: the name {}.": "配置档不能叫 {}：名字{}。",
    "is empty": "为空",
    "has more than {} characters": "超过 {} 个字符",
    "has other characters than a-z, 0-9, - and _, or does not begin with a letter or digit": (
        "含有 a-z、0-9、- 和 _ 以外的字符，或不以字母或数字开头"
    ),
    "There is no profile {}. Create it: {}": "没有配置档 {}。新建：{}",
    "There is no profile {}. There are: {}.": "没有配置档 {}。现有：{}。",
    "The profile {} was created: {}, ports {}.": "配置档 {} 已建好：{}，端口 {}。",
    "A model: {} setup     A chat: {} gateway setup     Run it: {} gateway start": (
        "模型：{} setup     聊天：{} gateway setup     运行：{} gateway start"
    ),
    "The profile default always exists: it is the home itself.": "配置档 default 一直都在：它就是主目录本身。",
    "{} already exists. Use it: {}": "{} 已经有了。使用它：{}",
    "The profile default is the home itself, which holds the other profiles. It stays.": (
        "配置档 default 就是主目录本身，其他配置档都在里面，不能删除。"
    ),
    "{} is a link. Remove the link by hand.": "{} 是一个链接。请手动删除链接。",
    "The gateway of this profile is running. Stop it first: {}": "这个配置档的网关正在运行。先停止：{}",
    "Delete {} with all its conversations?": "删除 {} 及其全部对话？",
    "Nothing was deleted. To delete it without a question: {}": "没有删除任何内容。不再询问直接删除：{}",
    "The profile {} is deleted.": "配置档 {} 已删除。",
    "profile": "配置档",
    "profile {}": "配置档 {}",
}

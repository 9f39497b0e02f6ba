"""The setup wizard: ``setup``, ``gateway setup`` and ``gateway test``."""

from __future__ import annotations

PROMPTS = {
    "[Enter keeps {}]": "[回车保留 {}]",
    "(not shown while you type)": "（输入时不显示）",
    "y or n, please.": "请输入 y 或 n。",
    "One number from 1 to {}, please.": "请输入 1 到 {} 之间的一个数字。",
    "and {} more: type a part of a name to see those with it": "还有 {} 个：输入名称的一部分来筛选",
    "{} is not in the list. Use it anyway?": "{} 不在其中。仍然使用吗？",
    "Numbers, for example 1 or 1,3": "数字，例如 1 或 1,3",
    "Numbers from 1 to {}, with commas between them, please.": "请输入 1 到 {} 的数字，用逗号分隔。",
    "Choose": "请选择",
    "Setup ended. Nothing was written.": "已离开。没有写入任何内容。",
    "Setup ended. Set up: {}. Nothing else was written.": "已离开。已设置：{}。没有写入其他内容。",
    "Nothing was written.": "没有写入任何内容。",
    "--no-check saves it anyway.": "--no-check 可以强制写入。",
    "There is no terminal to ask questions. Use one line instead:": ("这里无法提问（没有终端）。请用一行命令代替："),
    "(--key - reads stdin)": "（--key - 从标准输入读取）",
    "--dm-policy pairing | open | allowlist (with --allow ID,ID) | disabled;   --token - reads stdin": (
        "--dm-policy pairing | open | allowlist（配合 --allow ID,ID）| disabled；   --token - 从标准输入读取"
    ),
    "What now?": "接下来？",
    "Try again": "再试一次",
    "what you typed is kept, and can be changed": "保留已输入的内容，可以修改",
    "Another one": "换一个",
    "choose a provider once more": "重新选择提供商",
    "Keep it": "保留",
    "save it anyway": "仍然写入",
    "Keep it anyway?": "仍然保留吗？",
    "Done? Then I try again.": "好了吗？我再试一次。",
    "{} is needed.": "需要 {}。",
}

MODEL = {
    "Choose the model, where the agent's commands run, and the chats that reach it.": (
        "依次设置：回答用的模型、助手的命令在哪里运行、通过哪个聊天联系它。"
    ),
    "Enter keeps the value in brackets. Ctrl+C leaves setup.": "回车保留方括号里的值，Ctrl+C 离开。",
    "All set. Say hello here too; /exit leaves.": "设置完成。也可以在这里打个招呼；/exit 离开。",
    "The model": "模型",
    "Where commands run": "命令在哪里运行",
    "Reach it from a chat on your phone too?": "也想在手机的聊天软件里联系它吗？",
    "── Model {}": "── 模型 {}",
    "── Commands {}": "── 命令 {}",
    "a key from platform.openai.com/api-keys": "密钥来自 platform.openai.com/api-keys",
    "many models with one key, from openrouter.ai/keys": "一个密钥用多种模型，来自 openrouter.ai/keys",
    "a key from console.anthropic.com": "密钥来自 console.anthropic.com",
    "any OpenAI-compatible address": "任何兼容 OpenAI 的地址",
    "English small talk, no key, no tools": "英语闲聊，不需要密钥，没有工具",
    "Which model answers?": "用哪个模型回答？",
    "does not run at {}": "没有在 {} 运行",
    "runs here, offers {}": "在本机运行，提供 {}",
    "no model yet": "还没有模型",
    "Other": "其他",
    "Built-in": "内置模型",
    "Key": "密钥",
    "API key": "API 密钥",
    "Model": "模型",
    "Address": "地址",
    "Address, such as https://host/v1": "地址，例如 https://host/v1",
    "The API is at {}/v1; setup uses this address.": "API 在 {}/v1，就用它。",
    "Once more, then. Enter keeps what you typed.": "那就再来一次。回车保留已输入的内容。",
    "There is no provider {}. Known: {}; another one needs its --base-url.": (
        "没有提供商 {}。已知：{}；其他的需要 --base-url。"
    ),
    "Which model of {}? Say --model {}/MODEL.": "用 {} 的哪个模型？请写 --model {}/MODEL。",
    "Asking {} …": "正在询问 {} ……",
    "Asking {} / {} …": "正在询问 {} / {} ……",
    "{}: {} What you type can be kept and tried later.": "{}：{} 输入的内容可以保留，以后再试。",
    "a web page answers there, not a model's API. Most addresses of APIs end in /v1.": (
        "那里回应的是网页，不是模型的 API。大多数 API 地址以 /v1 结尾。"
    ),
    "it answers {} when it is asked for its models.": "询问模型列表时它回应 {}。",
    "{} answers in {} ms": "{} 在 {} 毫秒内回应",
    "{} and wants a key": "{}，需要密钥",
    "{} without a key and offers {}": "{}，不需要密钥，提供 {}",
    "{} refuses this key ({}).": "{} 拒绝这个密钥（{}）。",
    "{} / {}, answered in {} s": "{} / {}，{} 秒内回答",
    "{} / {}: the {}. {}": "{} / {}：{}。{}",
    "Where do the agent's commands run on this machine?": "它的命令在这台机器上运行：",
    "as you": "以你的身份",
    "with your account's rights; dangerous commands ask first": "你的账户能做的都能做；危险的会先询问",
    "in a sandbox": "在沙箱里",
    "can write only to its workspace, sees no keys": "只能写入工作区，看不到密钥",
    "A command that needs more than the sandbox allows asks each time.": "命令需要超出沙箱允许的权限时，每次都会询问。",
}

PLATFORM = {
    "Select platforms to configure:": "选择要设置的平台：",
    "not set up": "未设置",
    "incomplete: no {}": "不完整：没有 {}",
    "set up": "已设置",
    "There is no platform {}. Known: {}.": "没有平台 {}。已知：{}。",
    "--set takes KEY=VALUE, not {}.": "--set 需要 KEY=VALUE，而不是 {}。",
    "{} needs its {}.": "{} 需要 {}。",
    "{} has no setting {}. It has: {}.": "{} 没有设置 {}。它有：{}。",
    "{} needs a package that is not installed yet ({}).": "{} 需要一个尚未安装的软件包（{}）。",
    "{} needs a package that is missing ({}).": "{} 缺少一个软件包（{}）。",
    "Install it: {}": "安装：{}",
    "Install it now?": "现在安装吗？",
    "Installing …": "正在安装……",
    "Installed": "已安装",
    "Signed in as {}": "已登录为 {}",
    "Linked as {}": "已关联为 {}",
    "That is not {}. The account that is linked may write.": "那不是 {}。已关联的账号可以发消息。",
    "That is the chat with yourself: WhatsApp, New chat, your own name at the top.": (
        "那是和自己的聊天：WhatsApp，新聊天，最上面你自己的名字。"
    ),
    "pip could not install it: {}.": "pip 无法安装：{}。",
    "By hand: {}": "手动安装：{}",
    "it took longer than {} minutes": "超过了 {} 分钟",
    "exit code {}": "退出码 {}",
    "pip installed it, but {} is still not found here. Type the same command again.": (
        "pip 已安装，但这里仍找不到 {}。请再输入一次同样的命令。"
    ),
    "Sign in again with a QR code?": "重新扫二维码登录吗？",
    "Sign in with a QR code?": "扫二维码登录吗？",
    "{} has no sign-in by QR code.": "{} 不支持扫二维码登录。",
    "Scan it with the app on your phone": "请用手机上的应用扫描",
    "Scan it with the app on your phone, or open this link there:": "请用手机上的应用扫描，或在手机上打开这个链接：",
    "This window is too small for the code: it takes {} columns and {} lines, or a smaller font.": (
        "窗口太小，放不下二维码：需要 {} 列 {} 行，或更小的字体。"
    ),
    "{}, answered in {} s": "{}，{} 秒内回应",
    "{} did not answer within {} s.": "{} 在 {} 秒内没有回应。",
    "Who may write to it?": "谁可以给它发消息？",
    "Pairing": "配对",
    "strangers get a code, and you approve it (recommended)": "陌生人得到代码，由你批准（推荐）",
    "Allow all": "允许所有人",
    "anybody who finds it may use it, at your cost": "任何找到它的人都能用，费用由你承担",
    "Allow listed": "只允许名单",
    "only the ids that you name": "只有你列出的 id",
    "Nobody": "没有人",
    "no direct messages at all": "完全没有私聊",
    "Anybody at all may then use your agent and your model. Really?": "那样任何人都能使用你的助手和模型。确定吗？",
    "Ids, with commas between them": "id，用逗号分隔",
    "At least one, or nobody gets in.": "至少一个，否则没有人能用。",
    "Does it answer in groups?": "它在群里回答吗？",
    "No": "不",
    "silent in groups (recommended)": "在群里不说话（推荐）",
    "Listed groups": "列出的群",
    "in the groups that you name, when it is mentioned": "在你列出的群里，被提到时回答",
    "Every group": "所有群",
    "wherever somebody adds it, when it is mentioned": "任何把它加进去的群，被提到时回答",
    "Groups by id (empty: only people it knows)": "群 id（留空：只回答认识的人）",
    "The policy allowlist needs ids: --allow ID,ID. Nothing was written.": (
        "allowlist 策略需要 id：--allow ID,ID。没有写入任何内容。"
    ),
    "Nothing to change.": "没有要修改的。",
    "Written to {}, readable by you alone": "已写入 {}，只有你能读取",
    "Bot token": "机器人令牌",
    "App-level token": "应用级令牌",
    "Bot id": "机器人 id",
    "Mode, self-chat or bot": "模式，self-chat 或 bot",
    # How to get a token, and how people find their ids.
    "In Telegram, open a chat with @BotFather (blue tick) and send /newbot.": (
        "在 Telegram 中打开与 @BotFather（有蓝勾）的聊天，发送 /newbot。"
    ),
    "Give the bot a name, then a user name that ends in bot.": "给机器人取名，再取一个以 bot 结尾的用户名。",
    "Copy the token it answers with: digits, a colon, letters.": "复制它回复的令牌：数字、冒号、字母。",
    "A number such as 5550142. @userinfobot tells you yours.": "一个数字，例如 5550142。@userinfobot 会告诉你你的 id。",
    "Run `hermes slack manifest` and copy what it prints.": "运行 `hermes slack manifest` 并复制它的输出。",
    "https://api.slack.com/apps: Create New App, From a manifest, paste it.": (
        "https://api.slack.com/apps：Create New App，From a manifest，粘贴。"
    ),
    "Install App, then copy the Bot User OAuth Token: xoxb-…": "Install App，然后复制 Bot User OAuth Token：xoxb-…",
    "Same app: Basic Information, App-Level Tokens, Generate.": (
        "同一个应用：Basic Information，App-Level Tokens，Generate。"
    ),
    "Add the scope connections:write, and copy the token: xapp-…": "添加权限 connections:write，复制令牌：xapp-…",
    "A member id such as U0123ABCD: in Slack, your profile, the three dots, Copy member ID.": (
        "成员 id，例如 U0123ABCD：在 Slack 中打开你的资料，点三个点，Copy member ID。"
    ),
    "Open https://q.qq.com, sign in, and create a bot (or open yours).": (
        "打开 https://q.qq.com，登录并创建机器人（或打开已有的）。"
    ),
    "Its development settings show the AppID, a number.": "开发设置中有 AppID，是一个数字。",
    "On the same page, make the AppSecret and copy it: it is shown once.": (
        "在同一页面生成 AppSecret 并复制：只显示一次。"
    ),
    "An openid such as E4F4AEA33253A2797FB897C50B81D7ED. The bot shows it to strangers who write.": (
        "openid，例如 E4F4AEA33253A2797FB897C50B81D7ED。陌生人给机器人发消息时会看到自己的。"
    ),
    "`{}` shows a QR code: scan it with WeChat on the phone.": "`{}` 会显示二维码：用手机微信扫描。",
    "It writes the token by itself.": "令牌会自动写入。",
    "An id such as o9cq8AbCd@im.wechat. The log and `hermes pairing list` show who wrote.": (
        "id，例如 o9cq8AbCd@im.wechat。日志和 `hermes pairing list` 会显示谁发过消息。"
    ),
    "A phone number with its country code, digits alone, such as 15551234567.": (
        "带国家代码的电话号码，只有数字，例如 15551234567。"
    ),
    "A number of 17 to 20 digits. Settings, Advanced, Developer Mode; then right-click yourself, Copy User ID.": (
        "17 到 20 位的数字。设置、高级、开发者模式；然后右键点自己，复制用户 ID。"
    ),
    # After it was written
    "Start the gateway now?": "现在启动网关吗？",
    "Then write to it: {}": "然后给它发消息：{}",
    "It answers with a code: {} pairing approve {} CODE": "它会回复一个代码：{} pairing approve {} CODE",
    "Written, but the gateway cannot be asked from here: {}": "已写入，但从这里无法询问网关：{}",
    "{} is not connected yet. Look: {} gateway status": "{} 还没有连接。查看：{} gateway status",
    "{} is connected": "{} 已连接",
    "Write to it: {}": "给它发消息：{}",
    "Write to it on {}.": "在 {} 上给它发消息。",
    "Now say hello to it from your phone: {}": "现在用手机向它打个招呼：{}",
    "Waiting for your first message … (Ctrl+C: later)": "等待你的第一条消息……（Ctrl+C：以后再说）",
    "Nobody wrote. Later: {} pairing list": "没有人发消息。以后：{} pairing list",
    "Nobody was approved. To see who waits: {} pairing list": "没有批准任何人。查看谁在等待：{} pairing list",
    "{} may talk now, and is the owner here.": "{} 现在可以聊天了，并且是这里的所有者。",
    "{} may talk now.": "{} 现在可以聊天了。",
    "Later, then: {} pairing list shows who wrote, with the code.": (
        "那就以后：{} pairing list 会显示谁发过消息以及代码。"
    ),
    "Somebody wrote. To prove that it was you, type the code in the bot's answer.": (
        "有人发了消息。为证明是你，请输入机器人回复中的代码。"
    ),
    "Code on your phone (Enter: later)": "手机上的代码（回车：以后再说）",
    "No request has this code. Read it again, or write once more for a new one.": (
        "没有请求使用这个代码。请再看一遍，或再发一条消息获取新代码。"
    ),
    # Who the owner is
    "Is {} you, the owner?": "{} 是你（所有者）吗？",
    "None of them": "都不是",
    "all of them work in a sandbox": "他们都在沙箱中工作",
    "The owner's commands run on this machine itself; everybody else's stay in a sandbox.": (
        "所有者的命令直接在本机运行；其他人的命令都在沙箱中。"
    ),
    "Which of them is you, the owner?": "其中哪一个是你（所有者）？",
}

TEST = {
    "Test message from Hermes: this chat can be reached.": "Hermes 的测试消息：可以联系到这个聊天。",
    "{} is not set up.": "{} 没有设置。",
    "it is {}": "状态是 {}",
    "not started": "未启动",
    "/sethome in a chat there, or {} gateway test {} --to CHAT": (
        "在那里的聊天中发 /sethome，或 {} gateway test {} --to CHAT"
    ),
    "No message was sent: there is no home channel.": "没有发送消息：没有主频道。",
    "{} is {}, answered in {} s": "{} 是 {}，{} 秒内回应",
    "{} can be reached, answered in {} s": "可以连接 {}，{} 秒内回应",
    "The gateway is not running, so nobody listens; the test message is sent without it.": (
        "网关没有运行，所以没有人接听；测试消息不经过它发送。"
    ),
    "The gateway is not connected: {}.": "网关没有连接：{}。",
    "The gateway is connected, last frame {} s ago": "网关已连接，{} 秒前收到数据",
    "The message to {} did not arrive: {}": "发往 {} 的消息没有送达：{}",
    "A test message is in {}, {} s there and back": "测试消息已到 {}，往返 {} 秒",
}

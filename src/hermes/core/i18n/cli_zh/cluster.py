"""Several machines on one database: ``cluster``, and what ``status`` and ``doctor`` tell of nodes."""

from __future__ import annotations

STATES = {
    "living": "运行中",
    "draining": "正在交出工作",
    "left": "已离开",
    "gone": "已消失",
    "free": "空闲",
    "schema": "结构",
    "cluster": "集群",
}

CLUSTER = {
    "node": "节点",
    "this one": "本节点",
    "on {}": "位于 {}",
    "{} takes work again.": "{} 重新接收工作。",
    "{} has nothing in hand. Stop it there: {} gateway stop": "{} 手头没有工作了。可以在那里停止它：{} gateway stop",
    "{} takes no more work and still has {}.": "{} 不再接收工作，但还有 {}。",
    "No gateway works on this database now. Start one: {} gateway start": (
        "现在没有网关使用这个数据库。启动一个：{} gateway start"
    ),
    "the oldest for {}": "最早的已等 {}",
    "readable from {} on": "{} 及以上版本可读",
    "last heard of {} ago ({})": "{} 前最后一次有消息（{}）",
    "lease {} s": "租约还剩 {} 秒",
    "lease over": "租约已过期",
    "process {}": "进程 {}",
    "its clock differs from the database's by {} s": "它的时钟与数据库相差 {} 秒",
    "This gateway stores in state.db, so it is the only one there.": "这个网关使用 state.db，所以那里只有它一个。",
    "Several machines need HERMES_DATABASE_URL.": "多台机器需要设置 HERMES_DATABASE_URL。",
    "{} nodes are called {}. Type the id of one: {}": "有 {} 个节点叫 {}。请输入其中一个的 id：{}",
    "No living node is called {}.": "没有运行中的节点叫 {}。",
    # hermes doctor
    "no gateway works on this database": "没有网关使用这个数据库",
    "{} is silent: its lease is over, and its work moves to other nodes": (
        "{} 没有响应：它的租约已过期，工作正移到其他节点"
    ),
    "the clock of {} is {} s ahead of the database's": "{} 的时钟比数据库快 {} 秒",
    "the clock of {} is {} s behind the database's": "{} 的时钟比数据库慢 {} 秒",
    "set it there: {}": "在那里校准：{}",
    "{} does not reach {} ({})": "{} 连不上 {}（{}）",
    "{} does not reach {} ({}): {}": "{} 连不上 {}（{}）：{}",
    "the nodes run different versions ({}) → update the older ones, one after the other": (
        "各节点的版本不同（{}） → 逐个更新较旧的节点"
    ),
    # What nodes tell each other, and of themselves.
    "The node {} is gone.": "节点 {} 已消失。",
    "The node {} did not answer within {} s.": "节点 {} 在 {} 秒内没有回应。",
    "This node does not know {}. It may run an older version.": "这个节点不认识 {}。它的版本可能较旧。",
    "The other node failed at {}; its log says how.": "另一个节点执行 {} 时失败；详情见它的日志。",
    "The database needs schema {}, and the node {} knows {} at most.": "数据库需要结构版本 {}，而节点 {} 最多支持 {}。",
    "It takes no more work.": "它不再接收工作。",
    "Update Hermes there, then restart it.": "请在那里更新 Hermes，然后重启它。",
}

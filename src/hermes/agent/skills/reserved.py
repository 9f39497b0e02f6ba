"""Name the variables no skill may request: Hermes' keys, loader variables."""

from __future__ import annotations

import re

_OURS = (
    r"HERMES_.*|API_SERVER_.*|GATEWAY_.*|MESSAGING_CWD"
    r"|(TELEGRAM|DISCORD|SLACK|WHATSAPP|SIGNAL|MATRIX|QQ|WEIXIN|WECOM|FEISHU|DINGTALK|EMAIL)_.*"
    r"|(OPENAI|OPENROUTER|ANTHROPIC)_API_KEY(_\d+)?"
)
_CHANGES_PROGRAMS = (
    r"PATH|HOME|USER|LOGNAME|SHELL|IFS|ENV|BASH_.*|LD_.*|DYLD_.*|PYTHON.*|NODE_OPTIONS|PERL5?.*|RUBY(OPT|LIB)"
    r"|GIT_.*|SSH_.*|DBUS_.*|XDG_.*|PROMPT_COMMAND|PS[0-9]|.*_PRELOAD|JAVA_TOOL_OPTIONS|(HTTPS?|ALL|NO)_PROXY"
)


def is_reserved(name: str) -> bool:
    upper = name.upper()
    return re.fullmatch(f"{_OURS}|{_CHANGES_PROGRAMS}", upper) is not None

"""``hermes tools``: list and switch the agent's tools per platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.core.errors import ConfigError
from hermes.hosting.terminal import err, out, out_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hermes.agent.toolkit.schema import Tool
    from hermes.agent.toolkit.toolsets import Access
    from hermes.config import Config, Loaded

EXAMPLES = """\
  hermes tools list                                   the tools of each platform (--json for programs)
  hermes tools list --platform telegram               every tool of one platform, and whether it is enabled
  hermes tools disable terminal --platform telegram   a group, a toolset or one tool; takes effect within a second
  hermes tools enable terminal --platform telegram
"""

VERBS = {
    "list": "list the tools of each platform",
    "enable": "enable a group, a toolset or a tool",
    "disable": "disable a group, a toolset or a tool",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    for verb, of_verb in add_verbs(parser, VERBS, EXAMPLES).items():
        if verb != "list":
            of_verb.add_argument("name", help="for example terminal, web or send_message")
        of_verb.add_argument("--platform", required=verb != "list", default="", help="such as telegram, local or api")


def run(args: argparse.Namespace) -> int:
    from hermes.agent.toolkit.toolsets import mistakes

    home = home_folder()
    refuse_foreign(home)
    loaded = load_config(home)
    platform = args.platform
    if platform and platform not in _platforms(loaded.config):
        raise ConfigError(f"There is no platform {platform!r}. Known: {', '.join(_platforms(loaded.config))}.")
    for mistake in mistakes(loaded.config, _tools()):
        err(f"! {mistake}")
    if args.verb != "list":
        return _switch(loaded, args.name, platform, on=args.verb == "enable", as_json=args.as_json)
    return _one(loaded.config, platform, as_json=args.as_json) if platform else _all(loaded.config, args.as_json)


def _tools() -> list[Tool]:
    from hermes.agent.toolkit.schema import tools_of
    from hermes.agent.toolkit.toolsets import FINDING
    from hermes.app.tools import TOOLS

    return [tool for tool in tools_of(*TOOLS) if tool.group != FINDING]


def _platforms(config: Config) -> list[str]:
    return [*config.platforms, "api"]


def _all(config: Config, as_json: bool) -> int:
    from hermes.agent.toolkit.toolsets import access_of

    tools = _tools()
    by_platform = {platform: access_of(config, platform) for platform in _platforms(config)}
    if as_json:
        out_json({platform: _toolset_to_dict(access, tools) for platform, access in by_platform.items()})
        return 0
    for platform, access in by_platform.items():
        groups = dict.fromkeys(tool.group for tool in tools)
        off = [group for group in groups if not any(_has(access, tool) for tool in tools if tool.group == group)]
        off += [tool.name for tool in tools if tool.group not in off and not _has(access, tool)]
        without = f"all but {', '.join(off)}" if off else "all groups"
        out(f"{platform}  {access.name}: {without}")
    out(f"See one: {command_name()} tools list --platform telegram")
    return 0


def _one(config: Config, platform: str, *, as_json: bool) -> int:
    from hermes.agent.toolkit.toolsets import access_of

    access, tools = access_of(config, platform), _tools()
    if as_json:
        out_json(_toolset_to_dict(access, tools))
        return 0
    out(f"{platform} has the toolset {access.name}")
    width = max(len(tool.name) for tool in tools)
    for tool in sorted(tools, key=lambda tool: (tool.group, tool.name)):
        mark = "✓" if _has(access, tool) else "–"
        needs = " (not set up yet)" if tool.name in access.unready else ""
        out(f"  {mark} {tool.name:<{width}}  {tool.group}, role {tool.mark.role} or higher{needs}")
    return 0


def _toolset_to_dict(access: Access, tools: Sequence[Tool]) -> dict[str, object]:
    return {
        "toolset": access.name,
        "tools": [
            {
                "name": tool.name,
                "group": tool.group,
                "role": tool.mark.role.value,
                "enabled": _has(access, tool),
                "configured": tool.name not in access.unready,
            }
            for tool in tools
        ],
    }


def _has(access: Access, tool: Tool) -> bool:
    return access.has(tool.group, tool.name)


def _switch(loaded: Loaded, name: str, platform: str, *, on: bool, as_json: bool) -> int:
    """Off: a name in ``disabled``. On: taken out there, and where the toolset lacks it, a name in ``enabled``."""
    from hermes.agent.toolkit.toolsets import access_of, known_names
    from hermes.config.agent_settings import NO_CHOICE
    from hermes.config.edit import set_list
    from hermes.config.keys import nearest
    from hermes.store.home import make_home

    tools, home = _tools(), loaded.config.home
    if name not in (known := known_names(loaded.config, [tool.name for tool in tools])):
        near = nearest(name, known)
        advice = f"Did you mean {near}?" if near else f"`{command_name()} tools list` shows what there is."
        raise ConfigError(f"There is no group, toolset or tool {name!r}. {advice}")
    make_home(home)
    choice = loaded.config.tools.get(platform, NO_CHOICE)
    enabled = [other for other in choice.enabled if other != name]
    disabled = [other for other in choice.disabled if other != name]
    if tuple(enabled) != choice.enabled:
        set_list(loaded, f"tools.{platform}.enabled", enabled)
    if tuple(disabled) != choice.disabled or not on:
        set_list(loaded, f"tools.{platform}.disabled", disabled if on else [*disabled, name])
    now = load_config(home)
    if on and not _is_on(access_of(now.config, platform), name, tools):
        set_list(now, f"tools.{platform}.enabled", [*enabled, name])
        now = load_config(home)
    is_on = _is_on(access_of(now.config, platform), name, tools)
    if as_json:
        out_json({"name": name, "platform": platform, "enabled": is_on})
    else:
        out(f"✓ {name} is {'on' if is_on else 'off'} for {platform}.")
    return 0


def _is_on(access: Access, name: str, tools: Sequence[Tool]) -> bool:
    """Whether all that a name stands for is there."""
    from hermes.agent.toolkit.toolsets import TOOLSETS

    groups = TOOLSETS.get(name, (name,))
    matching = [tool for tool in tools if name == tool.name or tool.group in groups]
    return all(_has(access, tool) for tool in matching)

"""``hermes dashboard``: open the dashboard with a one-time link, list and end its sign-ins."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes.cli.support.client import NOT_RUNNING, GatewayClient, Standalone
from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import complain, note, say
from hermes.cli.support.tables import table
from hermes.core.durations import format_time
from hermes.hosting.terminal import out, out_result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

EXAMPLES = """\
  hermes dashboard                       open the browser, signed in; the link works once, for 5 minutes
  hermes dashboard --no-open             only print the link
  hermes dashboard open --print          print the link alone, also into a pipe
  hermes dashboard list                  who is signed in, from where, since when
  hermes dashboard revoke si_1k4m9x2c    revoke a sign-in; `all` revokes every one
"""

VERBS = {
    "open": "open the dashboard in a browser (the default)",
    "list": "list the valid sign-ins",
    "revoke": "revoke a sign-in",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES, without_json=("open",))
    added["open"].add_argument("--no-open", action="store_true", help="print the link, and open no browser")
    added["open"].add_argument(
        "--print", action="store_true", dest="only_print", help="print the link alone, and open no browser"
    )
    added["revoke"].add_argument("id", help="id of the sign-in, or `all`")


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    if args.verb == "open":
        return _open(home, opens=not (args.no_open or args.only_print), is_plain=args.only_print)
    with GatewayClient(home, Standalone.NEVER) as client:
        if args.verb == "list":
            answer = client.ask("dashboard.list")
            return out_result(answer, listing(answer), as_json=args.as_json)
        answer = client.ask("dashboard.revoke", {"id": args.id})
        return out_result(answer, [f"✓ Sign-ins ended: {answer['count']}."], as_json=args.as_json)


def listing(sign_ins: list[Mapping[str, Any]]) -> list[str]:
    if not sign_ins:
        return [f"Nobody is signed in. Sign in: {command_name()} dashboard"]
    rows = [
        (each["id"], each["name"], each["role"], _when(each["created_at"]), _when(each["seen_at"]), each["address"])
        for each in sign_ins
    ]
    return table(("id", "signed in by", "role", "since", "last seen", "address"), rows)


def _when(at: float) -> str:
    return format_time("%Y-%m-%d %H:%M", at)


def _open(home: Path, *, opens: bool, is_plain: bool) -> int:
    from hermes.hosting.lifecycle import look

    if look(home, command_name()).snapshot is None and (remote := _remote(home)) is not None:
        return remote
    with GatewayClient(home, Standalone.NEVER) as client:
        is_opened = opens and has_screen(os.environ) and _browse(client)
        made = client.ask("dashboard.link") if not is_opened else {}
    if is_plain:
        out(made["url"])
        return 0
    if is_opened:
        say("✓ The dashboard is open in your browser.")
        return 0
    if not sys.stdout.isatty():
        # A log or a file would keep the link; whoever wants that asks for it.
        note(f"The link is shown on a terminal only. For a pipe: {command_name()} dashboard open --print")
        return 1
    say("Open this link in a browser. It works once, for 5 minutes:")
    out(f"  {made['url']}")
    if line := tunnel(os.environ, made["host"], made["port"]):
        say("From another machine, type this there first, and keep it open:")
        out(f"  {line}")
    return 0


def has_screen(environ: Mapping[str, str]) -> bool:
    """Tell whether a browser can show up here: not over ssh, and not without a display."""
    if environ.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _browse(client: GatewayClient) -> bool:
    """Open the browser without a link among its arguments that another user of this machine could use."""
    import webbrowser

    from hermes.servers.dashboard.peers import knows_users

    if knows_users():
        return webbrowser.open(client.ask("dashboard.link", {"uid": os.getuid()})["url"])
    return webbrowser.open(private_page(client.ask("dashboard.link")["url"]))


def private_page(url: str) -> str:
    """Write a page that leads to a link, and that only this user can read; return its address."""
    import html
    import tempfile
    from pathlib import Path

    descriptor, name = tempfile.mkstemp(suffix=".html", prefix="hermes-")  # 0600
    os.close(descriptor)
    page = Path(name)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}">', encoding="utf-8")
    return page.as_uri()


def tunnel(environ: Mapping[str, str], host: str, port: int) -> str:
    """Return the line that makes a port of this machine alone reachable from another; '' where it is open anyway."""
    if host not in ("127.0.0.1", "localhost", "[::1]", "::1"):
        return ""
    connection = environ.get("SSH_CONNECTION", "").split()
    machine = connection[2] if len(connection) == 4 else os.uname().nodename
    user = environ.get("USER") or environ.get("LOGNAME") or "USER"
    return f"ssh -L {port}:127.0.0.1:{port} {user}@{machine}"


def _remote(home: Path) -> int | None:
    """Say where the dashboard of a gateway on another machine is; None where none is configured."""
    from hermes.servers.dashboard.remote import look

    config = load_config(home).config.dashboard
    if not config.health_url:
        return None
    found = look(config.health_url, config.health_timeout)
    if not found.is_running:
        complain(found.sentence)
        return NOT_RUNNING
    say(found.sentence)
    say(f"Open {found.base}/dashboard/ and sign in with an API key of that gateway.")
    return 0

"""Own the home folder: whose it is, who may read it, how secrets are written."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, ForeignHomeError
from hermes.store.private_files import write_private

MARKER = ".hermes-home"
HERMES_AGENT = "hermes-agent"
APPLICATION = "hermes-gateway"
SECRET_BYTES = 32

_CONFIG_FILES = frozenset({".env", "config.yaml", "gateway.json", "logs", "run", "SOUL.md", "agent-home", "lost+found"})
"""What a person may put into a home before the first start; what our image and a new disk put there."""


class Whose(StrEnum):
    NEW = "new"  # not there, or holding nothing but configuration a person wrote
    OURS = "ours"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class HomeState:
    """Whose a folder is. ``description`` of a foreign one reads like ``hermes-agent (412 sessions, telegram)``."""

    whose: Whose
    description: str = ""


def inspect_home(home: Path) -> HomeState:
    """Say whose the folder is. Reads only: nothing in it changes, not even a time."""
    if marker(home) is not None:
        return HomeState(Whose.OURS)
    if home.parent.name == "profiles":  # a profile in the home of another program would be a change there
        above = inspect_home(home.parent.parent)
        if above.description.startswith(HERMES_AGENT):
            return above
    try:
        names = {entry.name for entry in os.scandir(home)}
    except FileNotFoundError:
        return HomeState(Whose.NEW)
    except NotADirectoryError:
        raise ConfigError(f"{home} is not a folder.\n  Set HERMES_HOME to a folder of yours.") from None
    if names <= _CONFIG_FILES:
        return HomeState(Whose.NEW)
    return HomeState(Whose.FOREIGN, describe_foreign(home, names))


def marker(home: Path) -> dict[str, object] | None:
    """What our marker says, or None when the folder has none of ours."""
    try:
        record = json.loads((home / MARKER).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return {}  # our name, damaged: still our home
    return record if isinstance(record, dict) and record.get("application", APPLICATION) == APPLICATION else None


def make_home(home: Path, clock: Callable[[], float] = time.time) -> HomeState:
    """Create the home, or take it as ours if it is; raises ForeignHomeError and touches nothing if it is not."""
    state = inspect_home(home)
    if state.whose is Whose.FOREIGN:
        raise ForeignHomeError(f"{home} belongs to {state.description}. I have changed nothing there.")
    make_private_folder(home)
    if state.whose is Whose.NEW:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock()))
        write_private(home / MARKER, json.dumps({"application": APPLICATION, "created": stamp}) + "\n")
    narrow(home)
    return state


# Permissions


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can enter; those above it are made private too, if they are new."""
    if not folder.is_dir():
        if not folder.parent.is_dir():
            make_private_folder(folder.parent)
        with contextlib.suppress(FileExistsError):  # somebody else was quicker
            folder.mkdir(0o700)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


KEPT_OPEN = frozenset({"workspaces", "skills", "profiles"})
"""Folders whose modes are left as they are: a person's own content, and homes that see to theirs themselves."""


def narrow(home: Path) -> None:
    """Take every file of ours, at any depth, from group and others. Does not follow links."""
    for folder, folders, files in os.walk(home):
        if Path(folder) == home:
            folders[:] = [name for name in folders if name not in KEPT_OPEN]
        for name, mode in [*((name, 0o700) for name in folders), *((name, 0o600) for name in files)]:
            narrow_one(os.path.join(folder, name), mode)


def narrow_one(path: str | Path, mode: int = 0o600) -> None:
    try:
        found = os.lstat(path)
        if found.st_mode & 0o077 and not os.path.islink(path):
            os.chmod(path, mode | (found.st_mode & 0o100))
    except FileNotFoundError:
        return  # gone meanwhile: nothing to protect


# Another program's home


def describe_foreign(home: Path, names: set[str]) -> str:
    """Say whose a home looks, from what can be read without changing it."""
    found = []
    if "state.db" in names:
        found += _counted(home / "state.db", "sessions", "session")
    if "kanban.db" in names:
        found += _counted(home / "kanban.db", "tasks", "task")
    found += _platforms(home)
    its_own = {"state.db", "kanban.db", ".update_check", "gateway_state.json"}
    looks_like_hermes_agent = bool(names & its_own) or {"config.yaml", "skills"} <= names
    program = HERMES_AGENT + _version(home) if looks_like_hermes_agent else "another program"
    if not found:
        shown = sorted(names)[:4]
        found = [", ".join(shown) + (", …" if len(names) > len(shown) else "")]
    return f"{program} ({', '.join(found)})"


def read_only(path: Path, *, check_same_thread: bool = True) -> sqlite3.Connection:
    """Open a database file without a lock, a journal or a changed time."""
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    return sqlite3.connect(address, uri=True, check_same_thread=check_same_thread)


def _counted(path: Path, table: str, noun: str) -> list[str]:
    try:
        with contextlib.closing(read_only(path)) as connection:
            count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    except sqlite3.Error:
        return []
    return [f"{count} {noun if count == 1 else noun + 's'}"]


_KNOWN_PLATFORMS = (
    ("TELEGRAM_BOT_TOKEN", "telegram"),
    ("DISCORD_BOT_TOKEN", "discord"),
    ("SLACK_BOT_TOKEN", "slack"),
    ("WEIXIN_", "weixin"),
    ("QQ_", "qq"),
    ("WECOM_", "wecom"),
    ("FEISHU_", "feishu"),
    ("DINGTALK_", "dingtalk"),
    ("MATRIX_", "matrix"),
    ("WHATSAPP_", "whatsapp"),
    ("SIGNAL_", "signal"),
    ("EMAIL_", "email"),
)


def _platforms(home: Path) -> list[str]:
    try:
        lines = (home / ".env").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    keys = [line.partition("=")[0].strip().removeprefix("export ") for line in lines if line.partition("=")[2].strip()]
    return [name for prefix, name in _KNOWN_PLATFORMS if any(key.startswith(prefix) for key in keys)]


def _version(home: Path) -> str:
    """The version that hermes-agent wrote down when it last looked for updates."""
    try:
        version = json.loads((home / ".update_check").read_text(encoding="utf-8"))["ver"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f" {str(version).removesuffix('.0')}"


def own_secret(path: Path) -> bytes:
    """Random bytes that belong to this home: made once, kept in a file of mode 0600."""
    try:
        kept = bytes.fromhex(path.read_text("ascii"))
    except (FileNotFoundError, ValueError):
        kept = b""
    if len(kept) < SECRET_BYTES:
        kept = secrets.token_bytes(SECRET_BYTES)
        write_private(path, kept.hex() + "\n")
    return kept

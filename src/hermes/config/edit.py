"""Change one setting in the files, and leave everything else in them as it was, comments too."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hermes.config.dotenv import parse_dotenv
from hermes.config.explain import find_key
from hermes.config.layers import Loaded
from hermes.config.resolved import Rank
from hermes.config.trees import Items, Leaf, Table, Tree, read_yaml
from hermes.config.values import Key, Kind, looks_unfilled, parse
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.i18n.failures import describe_failure
from hermes.store.private_files import write_private

LOCK_SECONDS = 10.0
LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class SettingChange:
    """``file`` is where the value was written. ``note`` says when something that is heard earlier hides it."""

    key: str
    file: Path
    note: str = ""


def set_value(loaded: Loaded, name: str, text: str) -> SettingChange:
    """Write one setting: a secret, or one that already stands in `.env`, goes there; the others to `config.yaml`.

    The file is replaced as a whole by one that only its owner can read. Raises ConfigError, and writes
    nothing, when the value is not usable or the file cannot be changed without disturbing the rest of it.
    """
    return set_values(loaded, {name: text})[0]


def set_values(loaded: Loaded, values: Mapping[str, str]) -> list[SettingChange]:
    """Several settings that belong together: whoever watches a file sees all that changes in it at once."""
    contents: dict[Path, str] = {}
    with _alone(loaded.files.config, loaded.files.env):
        changes = [_edit(loaded, contents, name, text) for name, text in values.items()]
        for file, content in contents.items():
            write_private(file, content)
    return changes


@contextlib.contextmanager
def _alone(*files: Path) -> Iterator[None]:
    """Be the only one who changes files of these folders: a change reads a whole file and writes it back.

    A command, a chat and the dashboard may do so at once, in several processes. Locks of folders leave no file behind.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    with contextlib.ExitStack() as stack:
        for folder in sorted({file.parent for file in files}):
            if not folder.is_dir():
                continue  # writing the file says what is wrong
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise ConfigError(f"Another process is changing {folder}. Try again in a moment.") from None
                    time.sleep(LOOK_SECONDS)
        yield


def edited_file(loaded: Loaded, name: str, text: str) -> tuple[Path, str]:
    """The file that holds a setting, and its content with the new value; nothing is written."""
    contents: dict[Path, str] = {}
    file = _edit(loaded, contents, name, text).file
    return file, contents[file]


def set_usable(
    loaded: Loaded, values: Mapping[str, str], *, is_dry: bool = False
) -> tuple[list[SettingChange], dict[str, str]]:
    """Write the settings that can be written. Returns them, and for each other one why it was left out.

    ``is_dry``: nothing is written, but all is checked.
    """
    contents: dict[Path, str] = {}
    changes, refused = [], {}
    with _alone(loaded.files.config, loaded.files.env):
        for name, text in values.items():
            try:
                changes.append(_edit(loaded, contents, name, text))
            except ConfigError as error:
                refused[name] = str(error).partition("\n")[0]
        for file, content in contents.items() if not is_dry else ():
            write_private(file, content)
    return changes, refused


def set_variables(file: Path, values: Mapping[str, str]) -> None:
    """Write lines NAME=value into a `.env`, in place of lines of the same names. All values are of one line."""
    with _alone(file):
        content = _read(file)
        for name, text in values.items():
            content = _with_env_line(content, name, text)
        write_private(file, content)


def _edit(loaded: Loaded, contents: dict[Path, str], name: str, text: str) -> SettingChange:
    """Change one setting in the text of its file. ConfigError: the value is not usable, or the file is not."""
    key = find_key(loaded, name)
    _check(key, text)
    variable = _variable(loaded, key)
    file = loaded.files.env if variable else loaded.files.config
    content = contents[file] if file in contents else _read(file)
    contents[file] = _with_env_line(content, variable, text) if variable else _with_yaml_value(content, key, text)
    return SettingChange(str(key), file, _hidden_by(loaded, key, Rank.HOME_ENV if variable else Rank.YAML))


def check_value(loaded: Loaded, name: str, text: str | None) -> str:
    """Return the full name of a setting that can have this value; None stands for its default. Raises ConfigError."""
    key = find_key(loaded, name)
    if text is not None:
        _check(key, text)
    return str(key)


def unset_value(loaded: Loaded, name: str) -> SettingChange:
    """Take one setting out of `.env` and `config.yaml`, so that its default counts. Raises ConfigError, as above."""
    with _alone(loaded.files.config, loaded.files.env):
        return _unset(loaded, find_key(loaded, name))


def _unset(loaded: Loaded, key: Key) -> SettingChange:
    file = loaded.files.config
    content = _read(file)
    before, _ = read_yaml(content.encode(), "config.yaml")
    if before is not None and key.path in _flat(before):
        rows = content.split("\n")
        place, row = before, -1
        for part in key.path[:-1]:
            below = place.entries[part]
            if not isinstance(below, Table):
                raise ConfigError(f"config.yaml is written in a way that {key} cannot be changed in; edit it by hand.")
            row = _row_of(rows, part, row + 1, below.line - 1)
            place = below
        row = _row_of(rows, key.path[-1], row + 1, len(rows) - 1)
        changed = "\n".join([*rows[:row], *rows[row + 1 :]])
        after, _ = read_yaml(changed.encode(), "config.yaml")
        left = {path: value for path, value in _flat(before).items() if path != key.path}
        # A section that is empty now is written as one without a value.
        kept = {path: value for path, value in _flat(after).items() if value is not None} if after is not None else {}
        if after is None or kept != {path: value for path, value in left.items() if value is not None}:
            raise ConfigError(f"config.yaml is written in a way that {key} cannot be taken out of; edit it by hand.")
        write_private(file, changed)
    env = loaded.files.env
    text = _read(env)
    lines, _ = parse_dotenv(text.encode(), ".env")
    gone = {lines[each].line - 1 for each in key.env if each in lines}
    if gone:
        write_private(env, "\n".join(row for number, row in enumerate(text.split("\n")) if number not in gone))
    return SettingChange(str(key), file, _hidden_by(loaded, key, Rank.HOME_ENV))


def set_list(loaded: Loaded, name: str, items: Sequence[str]) -> SettingChange:
    """Write a list into `config.yaml`, also an empty one. Raises ConfigError, and writes nothing, as ``set_value``."""
    if items:
        return set_value(loaded, name, ", ".join(items))
    key = find_key(loaded, name)
    file = loaded.files.config
    with _alone(file):
        write_private(file, _with_yaml_value(_read(file), key, ""))
    return SettingChange(str(key), file, _hidden_by(loaded, key, Rank.YAML))


def _check(key: Key, text: str) -> None:
    if looks_unfilled(key, text):
        if not text.strip():
            cure = f"`hermes config explain {key}` names the line to take out, if you want the default."
            raise ConfigError(f"{key}: an empty text is not a value. {cure}")
        raise ConfigError(f"{key}: that is an example, not a value.")
    try:
        parse(key, text)
    except ValueError as error:
        raise ConfigError(f"{key} {error}") from None
    if "\n" in text or "\r" in text:
        raise ConfigError(f"{key}: a text of several lines is written into config.yaml by hand.")


def _variable(loaded: Loaded, key: Key) -> str:
    there = loaded.layers.home_env or {}
    for name in key.env:
        if name in there:
            return name
    return key.env[0] if key.env and key.kind in (Kind.SECRET, Kind.SECRETS) else ""


def _hidden_by(loaded: Loaded, key: Key, rank: Rank) -> str:
    resolved = loaded.sources.get(key.path)
    earlier = [entry.source for entry in resolved.entries if entry.source.rank < rank] if resolved else []
    return f"{earlier[0]} sets {earlier[0].written} and is heard first." if earlier else ""


def _with_env_line(content: str, name: str, text: str) -> str:
    quoted = "'" + text + "'" if "'" not in text else '"' + re.sub(r'([\\"$])', r"\\\1", text) + '"'
    is_plain = re.fullmatch(r"[\w.,:/@+*=-]*", text) is not None
    line = f"{name}={text if is_plain else quoted}"
    lines, _ = parse_dotenv(content.encode(), ".env")
    rows = content.split("\n")
    if name in lines:
        rows[lines[name].line - 1] = line
        return "\n".join(rows)
    return content + ("\n" if content and not content.endswith("\n") else "") + line + "\n"


def _with_yaml_value(content: str, key: Key, text: str) -> str:
    before, _ = read_yaml(content.encode(), "config.yaml")
    if before is None:
        raise ConfigError("config.yaml cannot be read as it is: `hermes config check` names the line.")
    value = _yaml_list(text) if key.kind is Kind.LIST else _yaml_scalar(text)
    changed = _edited(content.split("\n"), before, key.path, value)
    after, _ = read_yaml("\n".join(changed).encode(), "config.yaml")
    # Judged by what the file then says, not by how it was edited.
    above = {key.path[:count] for count in range(1, len(key.path))}
    kept = {path: value for path, value in _flat(before).items() if path not in above}  # there it is an empty section
    if after is None or _flat(after) != {**kept, key.path: _typed(key, text)}:
        raise ConfigError(f"config.yaml is written in a way that {key} cannot be changed in safely; edit it by hand.")
    return "\n".join(changed)


def _edited(rows: list[str], tree: Table, path: tuple[str, ...], value: str) -> list[str]:
    """Replace the line of the key, or add lines below the deepest section that is there."""
    place, depth, row = tree, 0, -1
    while depth < len(path) - 1:
        below = place.entries.get(path[depth])
        if isinstance(below, Leaf) and below.text is None:  # a section whose last setting was cleared
            below = Table({}, len(rows))
        if not isinstance(below, Table):
            break
        row = _row_of(rows, path[depth], row + 1, below.line - 1)
        place, depth = below, depth + 1
    if depth == len(path) - 1 and path[-1] in place.entries:
        row = _row_of(rows, path[-1], row + 1, len(rows) - 1)
        indent = rows[row][: len(rows[row]) - len(rows[row].lstrip())]
        comment = re.search(r"\s+#[^'\"]*$", rows[row])
        return [*rows[:row], f"{indent}{path[-1]}: {value}{comment[0] if comment else ''}", *rows[row + 1 :]]
    indent = _indent_below(rows, row)
    added = [f"{indent}{'  ' * step}{name}:" for step, name in enumerate(path[depth:])]
    added[-1] += f" {value}"
    if row >= 0:
        return [*rows[: row + 1], *added, *rows[row + 1 :]]
    tail = [""] if rows and rows[-1] == "" else []
    return [*rows[: len(rows) - len(tail)], *added, *(tail or [""])]


def _row_of(rows: list[str], name: str, first: int, last: int) -> int:
    for row in range(first, min(last, len(rows) - 1) + 1):
        if re.match(rf"\s*['\"]?{re.escape(name)}['\"]?\s*:", rows[row]):
            return row
    raise ConfigError(f"config.yaml is written in a way that {name} was not found in; edit it by hand.")


def _indent_below(rows: list[str], row: int) -> str:
    if row < 0:
        return ""
    own = len(rows[row]) - len(rows[row].lstrip())
    for line in rows[row + 1 :]:
        if line.strip() and not line.lstrip().startswith("#"):
            depth = len(line) - len(line.lstrip())
            return " " * (depth if depth > own else own + 2)
    return " " * (own + 2)


def _yaml_scalar(text: str) -> str:
    is_plain = re.fullmatch(r"[A-Za-z0-9_./][\w./+-]*", text) is not None and text.casefold() != "null"
    return text if is_plain else "'" + text.replace("'", "''") + "'"


def _yaml_list(text: str) -> str:
    return "[" + ", ".join(_yaml_scalar(item.strip()) for item in text.split(",") if item.strip()) + "]"


Flat = dict[tuple[str, ...], str | tuple[str, ...] | None]


def _typed(key: Key, text: str) -> str | tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip()) if key.kind is Kind.LIST else text


def _flat(tree: Tree, path: tuple[str, ...] = ()) -> Flat:
    match tree:
        case Leaf(text):
            return {path: text}
        case Items(items):
            return {path: tuple(item.text or "" if isinstance(item, Leaf) else repr(_flat(item)) for item in items)}
        case Table(entries):
            return {key: value for name, sub in entries.items() for key, value in _flat(sub, (*path, name)).items()}


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file.name} cannot be read: {describe_failure(error)}.") from None

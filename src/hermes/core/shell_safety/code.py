"""Judge code for an interpreter: only code that plainly computes runs unasked.

Python is parsed; for the others every name in the code must be on a short list. Everything else asks, as code. The same
rule judges ``python3 -c`` and the tool that runs code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.core.shell_safety.places import names

if TYPE_CHECKING:
    import ast

MAX_CODE = 50_000

INTERPRETERS: dict[str, tuple[str, ...]] = {
    "python": ("-c",),
    "pypy": ("-c",),
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "node": ("-e", "--eval", "-p", "--print"),
    "nodejs": ("-e", "--eval", "-p", "--print"),
    "php": ("-r",),
    "deno": ("eval",),
    "bun": ("-e", "--eval"),
    "lua": ("-e",),
    "luajit": ("-e",),
    "osascript": ("-e",),
    "Rscript": ("-e",),
    "R": ("-e",),
    "julia": ("-e", "-E", "--eval", "--print"),
    "tclsh": (),
    "wish": (),
    "expect": ("-c",),
    "guile": ("-c",),
    "ghc": ("-e",),
    "scala": ("-e",),
    "groovy": ("-e",),
    "elixir": ("-e", "--eval"),
    "erl": ("-eval",),
    "racket": ("-e",),
    "sbcl": ("--eval",),
    "octave": ("--eval",),
    "ocaml": ("-e",),
    "swift": ("-e",),
    "jshell": (),
    "irb": (),
    "ipython": ("-c",),
    "ts-node": ("-e", "-p"),
    "raku": ("-e",),
}
"""Interpreters, and the options behind which code stands."""

_SAFE_MODULES = names(
    "json sys math re datetime time collections itertools functools string textwrap statistics random decimal "
    "fractions "
    "typing dataclasses enum operator platform calendar pprint uuid hashlib base64 binascii struct csv difflib "
    "unicodedata "
    "bisect heapq copy numbers cmath secrets html locale keyword token tokenize ast dis types abc contextlib io "
    "pathlib "
    "zlib colorsys array sysconfig __future__ email.utils urllib.parse ipaddress zoneinfo graphlib reprlib tomllib"
)
_SAFE_ATTRIBUTES_OF_SYS = names(
    "version version_info argv path platform maxsize executable byteorder stdin stdout stderr exit getsizeof prefix "
    "getrecursionlimit implementation getdefaultencoding float_info int_info base_prefix flags"
)
_BAD_NAMES = names(
    "exec eval compile __import__ getattr setattr delattr globals locals vars breakpoint memoryview __builtins__ "
    "__loader__ "
    "help input __spec__"
)
_FINE_DUNDERS = names(
    "__version__ __file__ __doc__ __name__ __dict__ __len__ __main__ __all__ __path__ __init__ __str__ __repr__"
)
_BAD_ATTRIBUTES = names(
    "unlink rmdir rename touch mkdir chmod lchmod symlink_to hardlink_to link_to write_text write_bytes open "
    "rmtree removedirs system popen spawn spawnl spawnv execv execve fork kill modules setprofile settrace "
    "addaudithook "
    "home expanduser cwd absolute resolve parent parents walk _getframe meta_path path_hooks modules displayhook "
    "excepthook "
    "ctypes os subprocess shutil builtins loader f_globals f_builtins gi_frame cr_frame tb_frame func_globals mro"
)


def judge_python(code: str, leads_out: Callable[[str], bool], imports: Callable[[str], None]) -> bool:
    """Tell whether Python only computes, prints and uses files of the folder.

    ``imports`` is called with every module that is not of the standard library: it may be a file of the folder.
    """
    import ast

    if len(code) > MAX_CODE:
        return False
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    waiting: list[ast.AST] = [tree]
    foreign: set[str] = set()
    steps = 0
    while waiting:
        node = waiting.pop()
        steps += 1
        if steps > 5_000:
            return False
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    if not _is_fine_module(alias.name):
                        return False
                    if not _is_safe_module(alias.name):
                        imports(alias.name)
                        foreign.add((alias.asname or alias.name).split(".")[0])
            case ast.ImportFrom(module=module, names=aliases, level=level):
                if level or not _is_fine_module(module or ""):
                    return False
                if any(
                    alias.name in _BAD_ATTRIBUTES or alias.name == "*" or alias.name.startswith("__")
                    for alias in aliases
                ):
                    return False
                if module == "io" or (
                    module == "sys" and any(alias.name not in _SAFE_ATTRIBUTES_OF_SYS for alias in aliases)
                ):
                    return False
                if not _is_safe_module(module or ""):
                    imports(module or "")
                    foreign |= {alias.asname or alias.name for alias in aliases}
            case ast.Name(id=name):
                if name in _BAD_NAMES or (name.startswith("__") and name not in _FINE_DUNDERS):
                    return False
            case ast.Attribute(value=value, attr=attr):
                if attr.startswith("_") and attr not in _FINE_DUNDERS:
                    return False
                if isinstance(value, ast.Name) and value.id == "sys" and attr not in _SAFE_ATTRIBUTES_OF_SYS:
                    return False
                if isinstance(value, ast.Name) and value.id == "io" and attr not in ("StringIO", "BytesIO"):
                    return False
                if attr in _BAD_ATTRIBUTES and not _is_plain_write(node, leads_out):
                    return False
            case ast.Call(func=ast.Name(id="open")):
                if not _is_plain_open(node, leads_out):
                    return False
            case ast.Call(func=func):
                if foreign and _root_name(func) in foreign and not _has_plain_arguments(node, leads_out):
                    return False
            case ast.Constant(value=str() as text):
                if leads_out(text):
                    return False
            case ast.Global() | ast.Nonlocal():
                return False
            case _:
                pass
        waiting.extend(ast.iter_child_nodes(node))
    return _opens_are_calls(tree)


def _opens_are_calls(tree: ast.AST) -> bool:
    import ast

    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return all(
        id(node) in called
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "open")
        or (isinstance(node, ast.Attribute) and node.attr in _WRITES)
    )


_WRITES = names("write_text write_bytes touch mkdir open")


def _is_safe_module(name: str) -> bool:
    return name in _SAFE_MODULES


def _is_fine_module(name: str) -> bool:
    import sys

    return name in _SAFE_MODULES or (
        bool(name) and name.split(".")[0] not in sys.stdlib_module_names and name.split(".")[0] not in _RISKY_PACKAGES
    )


_RISKY_PACKAGES = names(
    "requests httpx aiohttp urllib3 paramiko fabric invoke sh plumbum pexpect psutil docker boto3 hermes cffi "
    "pip setuptools "
    "distutils _posixsubprocess tree_sitter joblib dill cloudpickle keyring"
)


def _root_name(node: ast.AST) -> str:
    import ast

    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _has_plain_arguments(call: ast.Call, leads_out: Callable[[str], bool]) -> bool:
    """Tell whether all arguments are literals: a computed one may be any path."""
    import ast

    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(
        isinstance(one, ast.Constant) and not (isinstance(one.value, str) and leads_out(one.value)) for one in given
    )


def _is_plain_open(call: ast.Call, leads_out: Callable[[str], bool]) -> bool:
    import ast

    if not call.args:
        return False
    path = call.args[0]
    mode: ast.expr | None = call.args[1] if len(call.args) > 1 else None
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), mode)
    if any(keyword.arg in (None, "opener", "file") for keyword in call.keywords):
        return False
    if isinstance(path, ast.Attribute):  # sys.argv and the like
        return False
    if mode is not None and not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)):
        return False
    is_read = mode is None or (isinstance(mode, ast.Constant) and set(str(mode.value)) <= set("rbt"))
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        return not leads_out(path.value)
    return is_read and isinstance(path, ast.Name)


def _is_plain_write(node: ast.Attribute, leads_out: Callable[[str], bool]) -> bool:
    """Tell whether the path is a literal, as in ``Path('out.txt').write_text``."""
    import ast

    if node.attr not in _WRITES:
        return False
    match node.value:
        case ast.Call(func=ast.Name(id="Path"), args=[ast.Constant(value=str() as path)], keywords=[]):
            return not leads_out(path)
        case _:
            return False


_FINE_WORDS = names(
    "console log JSON stringify parse Math max min floor ceil round abs sqrt pow random PI process version "
    "versions argv "
    "length map filter reduce forEach join split push slice concat includes indexOf keys values entries Object Array "
    "String Number Boolean Date now toISOString toString toFixed const let var function return if else for of in "
    "new true "
    "false null undefined typeof print say puts p echo printf sprintf int float str len size each do end lc uc ucfirst "
    "reverse sort keys scalar while my our undef nil self upto times to_s to_i upcase downcase RUBY_VERSION phpversion "
    "PHP_VERSION PHP_EOL strlen strtoupper strtolower count array date n t r s i j k x y z a b c d e f g v if "
    "unless and or not"
)
_STRINGS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n$#`]|\\.)*\"")
_SUBSTITUTION = re.compile(
    r"(?<![\w$@%])(?:s|tr|y)([/|#,!])(?:(?!\1)[^\\`$@(]|\\.|\$(?=\1))*\1(?:(?!\1)[^\\`@(]|"
    r"\\.)*\1[gimsx]*(?=\s*(?:;|$|\}))"
)


def is_plain_code(code: str, leads_out: Callable[[str], bool]) -> bool:
    """Tell whether code of another language consists of known words."""
    if len(code) > MAX_CODE or "`" in code or leads_out(code):
        return False
    bare = _SUBSTITUTION.sub(" ", code)
    for text in _STRINGS.findall(bare):
        if leads_out(text[1:-1]):
            return False
    bare = _STRINGS.sub(" ", bare)
    if re.search(r"[|`\\]|<\(|=~\s*[^/\sms]|\$\{|%x|\bqx|<[^=\s]*>|::|->\s*\(", bare):
        return False
    return all(word in _FINE_WORDS or word.isdigit() for word in re.findall(r"[A-Za-z_]\w*|\d+", bare))


_RISKY_SCRIPT = re.compile(
    r"rmtree|\bos\.(remove|unlink|rmdir|rename|replace|system|popen|exec|spawn|kill|chmod|chown|symlink|link|"
    r"truncate|fork)|"
    r"\.unlink\(|\.rmdir\(|shutil\.(move|copy|rmtree|chown)|subprocess|Popen|pty\.|ctypes|child_process|execSync|"
    r"execFile|"
    r"\bfs\.(rm|unlink|write|append|rename|chmod|cp|copy)|FileUtils|\bunlink\b|\bsystem\b\s*[(\"']|"
    r"\bexec\b\s*[(\"']|\bqx\b|`|"
    r"shell_exec|passthru|proc_open|Deno\.(run|Command|remove|writeText)|\beval\b|__import__|importlib|marshal|pickle|"
    r"b64decode|fromhex|\.hermes|HERMES|socket\.|/etc/|/proc/|\.ssh|environ|rmdir"
)


def is_plain_script(code: str, leads_out: Callable[[str], bool]) -> bool:
    """Tell whether a script deletes nothing, runs nothing and stays in its folder."""
    if len(code) > MAX_CODE or "\0" in code or _RISKY_SCRIPT.search(code):
        return False
    return not any(leads_out(text[1:-1]) for text in re.findall(r"'[^'\n]*'|\"[^\"\n]*\"", code))

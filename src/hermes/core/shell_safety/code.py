"""Judge code of other languages than Python, and whole scripts.

Every name in the code must be on a short list. Everything else asks, as code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.python_code import MAX_CODE

if TYPE_CHECKING:
    pass


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
_STRINGS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n$#@`]|\\.)*\"")
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
    if re.search(r"[\w)\]]\s*\[\s*(?!\d+\s*\])", bare):  # a member by a name that may be anything
        return False
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


_REACHING = names(
    "os shutil subprocess ctypes socket importlib builtins pty signal multiprocessing pickle marshal runpy codecs "
    "posix nt _io tempfile fileinput"
)
_SCRIPT_MAY_TAKE = names(
    "path environ getcwd sep linesep getenv listdir walk scandir cpu_count name PathLike fspath which"
)
_HIDES_NAMES = names(
    "exec eval compile __import__ globals locals vars __builtins__ __loader__ __spec__ attrgetter methodcaller"
)


def is_plain_script(code: str, leads_out: Callable[[str], bool], *, is_python: bool = False) -> bool:
    """Tell whether a script deletes nothing, runs nothing and stays in its folder.

    The names are looked for as they stand there; Python that gives one of them another name is not plain.
    """
    if len(code) > MAX_CODE or "\0" in code or _RISKY_SCRIPT.search(code):
        return False
    if is_python and _renames(code):
        return False
    return not any(leads_out(text[1:-1]) for text in re.findall(r"'[^'\n]*'|\"[^\"\n]*\"", code))


def _renames(code: str) -> bool:
    """Tell whether Python reaches a module by an alias or a computed name."""
    import ast

    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    bases = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                if any(alias.asname and alias.name.split(".")[0] in _REACHING for alias in aliases):
                    return True
            case ast.ImportFrom(module=module, names=aliases):
                if (module or "").split(".")[0] in _REACHING and any(
                    alias.name not in _SCRIPT_MAY_TAKE for alias in aliases
                ):
                    return True
            case ast.Name(id=name):
                if name in _HIDES_NAMES or (name in _REACHING and id(node) not in bases):
                    return True
            case ast.Attribute(attr=attr):
                if attr in _HIDES_NAMES or attr in ("__globals__", "__subclasses__", "__dict__", "__code__", "modules"):
                    return True
            case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
                if not isinstance(name, ast.Constant):
                    return True
            case _:
                pass
    return False

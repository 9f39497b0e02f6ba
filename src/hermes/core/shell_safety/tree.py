"""Parse a command line, and reject trees that bash may read differently.

The grammar is an approximation of bash. So a tree counts only if every byte of the text is in a node or is plain white
space, and if no word holds a character that bash would not leave in a word. Everything else is "not understood", and
the judge asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.core.dataclasses import dataclass

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

MAX_BYTES = 32_000
MAX_TANGLES = 300
"""How often an opening of each kind may occur outside of quotes: error recovery takes quadratic time beyond."""

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\u0085\u00a0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]"
)
PRIVATE = re.compile(r"[\ue000-\uf8ff]")
ODD = "\ue0ff"
"""Stands for a character that bash takes for a letter and the grammar for a blank."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed text.

    ``root`` is None if the text was not parsed at all. ``is_sound``: bash certainly reads it in the same way.
    """

    root: Node | None
    source: bytes
    is_sound: bool
    documents: dict[int, str]
    """Bodies of here-documents that were cut out before parsing, by the place of their ``<<`` in ``source``."""


def parse(text: str) -> Parsed:
    """Parse a text, and check that bash would read it in the same way."""
    is_odd = bool(CONTROL.search(text) or PRIVATE.search(text))
    clean = PRIVATE.sub("?", CONTROL.sub(ODD, text)) if is_odd else text
    clean = _DASH.sub(r"\1\\-", clean)
    clean, documents = _cut_documents(clean)
    source = clean.encode("utf-8", "replace")
    if len(source) > MAX_BYTES or _is_tangled(clean):
        return Parsed(None, source, False, {})
    root = _parser().parse(source.translate(_ASCII)).root_node
    is_sound = not is_odd and not root.has_error and _is_sound(root, source)
    by_byte = {len(clean[:at].encode("utf-8", "replace")): body for at, body in documents.items()}
    if by_byte and is_sound:
        starts = {node.start_byte for node in _nodes_of(root, "heredoc_redirect")}
        is_sound = by_byte.keys() <= starts
    return Parsed(root, source, is_sound, by_byte)


# The grammar's scanner asks the C library about characters, which reads outside of its tables for those beyond ASCII
# and ends the process. To bash they are all letters, so each of their bytes becomes one harmless letter for the parser.
_ASCII = bytes(byte if byte < 0x80 else 0x78 for byte in range(256))

_language: Language | None = None


def _parser() -> Parser:
    global _language
    import tree_sitter

    if _language is None:
        import tree_sitter_bash

        _language = tree_sitter.Language(tree_sitter_bash.language())
    return tree_sitter.Parser(_language)


# The grammar drops the word in ``python3 - <<END``; an escaped dash means the same and is kept.
_DASH = re.compile(r"(\b(?:python[\d.]*|node|ruby|perl|bash|sh|cat) )-(?= <<)")
_DOCUMENT = re.compile(r"<<(-?)[ \t]*(['\"])(\w+)\2[^\n'\"`\\]*\n")
CUT_CHARACTERS = 1_000


def _cut_documents(text: str) -> tuple[str, dict[int, str]]:
    """Cut long quoted here-documents out of a text: nothing in them is syntax."""
    if len(text) < CUT_CHARACTERS:
        return text, {}
    kept: list[str] = []
    found: dict[int, str] = {}
    done = length = 0
    for match in _DOCUMENT.finditer(text):
        if match.start() < done:
            continue
        end = re.compile(rf"^{'	*' if match[1] else ''}{match[3]}$", re.MULTILINE).search(text, match.end())
        if end is None:
            break
        found[length + match.start() - done] = text[match.end() : end.start()]
        kept.append(text[done : match.end()])
        length += match.end() - done
        done = end.start()
    kept.append(text[done:])
    return "".join(kept), found


_QUOTED = re.compile(r"'[^']*'")
_OPENINGS = ("${", "((", "[[", "=(", "$[", "<<", "$(", "`", "<(")


def _is_tangled(text: str) -> bool:
    if len(text) < 2_000:
        return False
    bare = _QUOTED.sub("''", text)
    return (
        any(bare.count(one) > MAX_TANGLES for one in _OPENINGS) or abs(bare.count(")") - bare.count("(")) > MAX_TANGLES
    )


def _nodes_of(root: Node, kind: str) -> list[Node]:
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if node.type == kind:
            found.append(node)
        waiting.extend(node.children)
    return found


# A word: escaped characters, and those that mean nothing to bash. A $ only where no name follows it.
_WORD = re.compile(r"(?:\\[^\n]|\\\n|[^\s\\|&;<>()$`\"']|\$(?![\w({\['\"@*#?$!-]))*")
_CONTENT = re.compile(r"(?:\\.|[^\\`$\"]|\$(?![\w({\[@*#?$!-]))*", re.DOTALL)
_ANSI_C = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*")
_BLANK_IN_LINE = re.compile(rb"(?:[ \t]|\\\n)*")
_ONE_LINE = frozenset({"command", "file_redirect", "declaration_command", "unset_command", "variable_assignments"})
_TIGHT = frozenset({"concatenation", "variable_assignment", "simple_expansion", "subscript"})
_HIDES = re.compile(r"\$\(|`|[<>]\(|\$\{|\$\[")
_FREE = frozenset({"heredoc_body", "heredoc_content"})  # the judge reads these bodies anew


def _is_sound(root: Node, source: bytes) -> bool:
    waiting = [root]
    if _BLANK.fullmatch(source, 0, root.start_byte) is None or _BLANK.fullmatch(source, root.end_byte) is None:
        return False
    while waiting:
        node = waiting.pop()
        kind = node.type
        children = node.children
        if not children:
            if not _is_sound_leaf(kind, node, source):
                return False
            continue
        if kind == "heredoc_redirect":
            if not _is_sound_document(node, source):
                return False
        elif kind == "string":
            at = node.start_byte
            for child in children:
                if (
                    child.start_byte != at
                    and _CONTENT.fullmatch(source[at : child.start_byte].decode("utf-8", "replace")) is None
                ):
                    return False
                at = child.end_byte
        elif kind not in _FREE:
            allowed = _BLANK_IN_LINE if kind in _ONE_LINE else _BLANK
            at = node.start_byte
            for child in children:
                if child.start_byte != at and (
                    (kind in _TIGHT and not _is_in_loop_head(node))
                    or allowed.fullmatch(source, at, child.start_byte) is None
                ):
                    return False
                at = child.end_byte
        waiting.extend(children)
    return True


def _is_in_loop_head(node: Node) -> bool:
    """Tell whether a node is in ``for ((i = 0; …))``: blanks are allowed there."""
    return node.parent is not None and node.parent.type == "c_style_for_statement"


def _is_sound_leaf(kind: str, node: Node, source: bytes) -> bool:
    match kind:
        case "word" | "variable_name" | "number" | "file_descriptor" | "test_operator" | "special_variable_name":
            return _WORD.fullmatch(text_of(node, source)) is not None
        case "string_content":
            return _CONTENT.fullmatch(text_of(node, source)) is not None
        case "raw_string":
            text = text_of(node, source)
            return len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1]
        case "ansi_c_string":
            return _ANSI_C.fullmatch(text_of(node, source)) is not None
        case "comment":
            before = source[node.start_byte - 1 : node.start_byte]
            return before in (b"", b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")") and b"\n" not in _bytes(
                node, source
            )
        case "regex" | "extglob_pattern":
            return _HIDES.search(text_of(node, source)) is None
        case "string":
            return _bytes(node, source) == b'""'
        case "heredoc_start" | "heredoc_end" | "heredoc_body" | "heredoc_content":
            return True  # looked at with the whole document
        case _:
            return not node.is_named or node.start_byte == node.end_byte


_START = re.compile(r"""(['"]?)(\w+)\1""")


def _is_sound_document(node: Node, source: bytes) -> bool:
    """Check that a here-document ends at the first line that is its delimiter."""
    start = next((one for one in node.children if one.type == "heredoc_start"), None)
    end = next((one for one in node.children if one.type == "heredoc_end"), None)
    if start is None or end is None:
        return False
    name = _START.fullmatch(text_of(start, source))
    line_end = source.find(b"\n", start.end_byte)
    if name is None or line_end < 0:
        return False
    rest = source[start.end_byte : line_end]
    if b"<<" in rest or b"'" in rest or b'"' in rest or b"\\" in rest or b"`" in rest or b"#" in rest:
        return False
    strips = source[node.start_byte : start.start_byte].lstrip(b"0123456789").startswith(b"<<-")
    at = line_end + 1
    while at <= len(source):
        following = source.find(b"\n", at)
        following = len(source) if following < 0 else following
        line = source[at:following]
        bare = line.lstrip(b"\t") if strips else line
        if bare == name[2].encode():
            return end.end_byte == following and end.start_byte >= at
        at = following + 1
    return False


def _bytes(node: Node, source: bytes) -> bytes:
    return source[node.start_byte : node.end_byte]


def text_of(node: Node, source: bytes) -> str:
    return _bytes(node, source).decode("utf-8", "replace")


def document_text(node: Node, parsed: Parsed) -> str:
    """Return the body of a here-document as the text has it."""
    cut = parsed.documents.get(node.start_byte)
    if cut is not None:
        return cut
    start = next((one for one in node.children if one.type == "heredoc_start"), None)
    end = next((one for one in node.children if one.type == "heredoc_end"), None)
    if start is None or end is None:
        return ""
    line_end = parsed.source.find(b"\n", start.end_byte)
    return parsed.source[line_end + 1 : end.start_byte].decode("utf-8", "replace")

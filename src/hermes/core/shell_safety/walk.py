"""Walk the tree of a command line, tracking folders and variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hermes.core.shell_safety import dangerous, running, tree
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.command import CommandRun
from hermes.core.shell_safety.findings import name_word
from hermes.core.shell_safety.flow import NO_FEED, TAME_OUTPUT, Feed, FoldersAfter, literal_output
from hermes.core.shell_safety.judging import Judging
from hermes.core.shell_safety.paths import NOWHERE, few, path_tokens
from hermes.core.shell_safety.words import SPLITS, TAME, UNKNOWN, Variables, Word, Words, is_plain_name

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NESTING = 60


class Walk:
    """The walk through one text: its tree, its variables and its commands."""

    def __init__(self, judging: Judging, parsed: tree.Parsed, text: str, depth: int, feed: Feed) -> None:
        self._judging = judging
        self._parsed = parsed
        self._source = parsed.source
        self._depth = depth
        self._feed = feed
        self._nesting = 0
        self._here: frozenset[str] = frozenset()
        folder = judging.site.folder
        self._variables = Variables(text, judging.site.home, folder, is_hopeful=judging.is_trial)
        self._words = Words(self._source, self._variables, self._inside)
        self._moves = bool(_MOVES.search(text))
        self._numbers = (
            set(re.findall(r"(\w+)", " ".join(_ARITHMETIC.findall(text)))) if _ARITHMETIC.search(text) else set()
        )

    def run(self, root: Node, folders: frozenset[str]) -> FoldersAfter:
        ends = self._visit(root, folders, self._feed)
        if self._words.has_prompt:
            self._judging.ask(Danger.UNJUDGED)
        return ends

    # Statements

    def _visit(self, node: Node, folders: frozenset[str], feed: Feed) -> FoldersAfter:
        self._nesting += 1
        try:
            if self._nesting > MAX_NESTING:
                self._judging.ask(Danger.UNJUDGED)
                return FoldersAfter(folders, folders)
            match node.type:
                case "program" | "do_group" | "else_clause" | "ERROR":
                    return self._sequence(node.children, folders, feed)
                case "compound_statement":
                    if node.children and node.children[0].type == "((":
                        self._words.arithmetic(node)
                        return FoldersAfter(folders, folders)
                    return self._sequence(node.children, folders, feed)
                case "list":
                    return self._list(node, folders, feed)
                case "pipeline":
                    return self._pipeline(node.children, folders, feed)
                case "redirected_statement":
                    return self._redirected(node, folders, feed)
                case "command":
                    return self._command(node, folders, feed, ())
                case "declaration_command" | "unset_command":
                    return self._declaration(node, folders)
                case "variable_assignment":
                    self._assign(node, folders, for_command=False)
                    return FoldersAfter(folders, folders)
                case "variable_assignments":
                    for child in node.children:
                        self._assign(child, folders, for_command=False)
                    return FoldersAfter(folders, folders)
                case "test_command":
                    self._here = folders
                    if re.search(r"-v\s+(?!\w+(\s|$))", self._text(node)):
                        self._judging.ask(Danger.UNJUDGED)  # the name of a variable may hold a command
                    self._words.arithmetic(node)
                    return FoldersAfter(folders, folders)
                case "negated_command":
                    ends = self._sequence(node.children, folders, feed)
                    return FoldersAfter(ends.fail, ends.ok)
                case "subshell":
                    before = self._variables.copy()
                    self._sequence(node.children, folders, feed)
                    self._variables.leave(before)
                    return FoldersAfter(folders, folders)
                case "if_statement" | "case_statement" | "elif_clause" | "case_item":
                    return self._branches(node, folders, feed)
                case "while_statement" | "for_statement" | "c_style_for_statement":
                    return self._loop(node, folders, feed)
                case "function_definition":
                    return self._function(node, folders)
                case "comment" | "heredoc_body" | "heredoc_start" | "heredoc_end" | "heredoc_content":
                    return FoldersAfter(folders, folders)
                case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                    self._redirects([node], folders)
                    return FoldersAfter(folders, folders)
                case _:
                    if node.is_named:
                        self._here = folders
                        self._words.words(node)
                    return FoldersAfter(folders, folders)
        finally:
            self._nesting -= 1

    def _sequence(self, nodes: Iterable[Node], folders: frozenset[str], feed: Feed) -> FoldersAfter:
        ends = FoldersAfter(folders, folders)
        for node in nodes:
            if node.is_named:
                ends = self._visit(node, few(ends.any), feed)
        return ends

    def _list(self, node: Node, folders: frozenset[str], feed: Feed) -> FoldersAfter:
        """Judge ``a && b || c``: the tree leans to the left, as deep as the list is long."""
        items: list[tuple[str, Node]] = []
        current: Node = node
        while current.type == "list":
            children = current.children
            operator = next((one.type for one in children if not one.is_named), ";")
            named = [one for one in children if one.is_named]
            items.extend((operator, one) for one in reversed(named[1:]))
            current = named[0]
        ends = self._visit(current, folders, feed)
        before = self._variables.copy()
        for operator, item in reversed(items):
            if operator == "&&":
                right = self._visit(item, few(ends.ok), feed)
                ends = FoldersAfter(right.ok, ends.fail | right.fail)
            else:
                right = self._visit(item, few(ends.fail), feed)
                ends = FoldersAfter(ends.ok | right.ok, right.fail)
        self._variables.leave(before)
        return ends

    def _pipeline(self, stages: Sequence[Node], folders: frozenset[str], feed: Feed) -> FoldersAfter:
        before = self._variables.copy()
        out = folders
        for stage in stages:
            if not stage.is_named:
                continue
            self._last: Feed = Feed(is_odd=True)
            fetched = self._judging.swap_fetches(False)
            asked = len(self._judging.found)
            out = out | self._visit(stage, folders, feed).any
            is_fetch = self._judging.fetches
            self._judging.swap_fetches(fetched or is_fetch)
            feed = Feed(
                True,
                feed.is_fetched or is_fetch,
                feed.is_odd or self._last.is_odd or len(self._judging.found) > asked,
                self._last.text,
            )
        self._variables.leave(before)
        return FoldersAfter(few(out), few(out))

    def _branches(self, node: Node, folders: frozenset[str], feed: Feed) -> FoldersAfter:
        out = folders
        before = self._variables.copy()
        current = folders
        for child in node.children:
            if child.is_named:
                current = current | self._visit(child, few(current | out), feed).any
        self._variables.leave(before)
        out = few(out | current)
        return FoldersAfter(out, out)

    def _loop(self, node: Node, folders: frozenset[str], feed: Feed) -> FoldersAfter:
        text = self._text(node)
        inner = folders | {NOWHERE} if _MOVES.search(text) else folders
        before = self._variables.copy()
        if node.type == "for_statement":
            self._loop_variable(node, folders)
        for child in node.children:
            if child.is_named and child.type not in ("variable_name",):
                field_words = node.type == "for_statement" and child.type not in ("do_group", "compound_statement")
                if field_words:
                    continue
                self._visit(child, inner, feed)
        self._variables.leave(before)
        return FoldersAfter(inner, inner)

    def _loop_variable(self, node: Node, folders: frozenset[str]) -> None:
        self._here = folders
        name = node.child_by_field_name("variable")
        values = [word for child in node.children_by_field_name("value") for word in self._words.words(child)]
        for word in values:
            self._name(word, folders, "for")
        if name is None:
            return
        is_tame = bool(values) and all(is_plain_name(word) for word in values)
        if len(values) == 1 and values[0].is_known:
            self._variables.set(self._text(name), values[0].text)
        else:
            self._variables.set(self._text(name), TAME if is_tame else UNKNOWN)

    def _function(self, node: Node, folders: frozenset[str]) -> FoldersAfter:
        """Judge the body of a function, which may be called in any folder with any words."""
        before = self._variables.copy()
        inner = folders | {NOWHERE} if self._moves else folders
        for child in node.children:
            if child.is_named and child.type != "word":
                self._visit(child, inner, NO_FEED)
        self._variables.leave(before)
        return FoldersAfter(inner, inner)

    # Redirections

    def _redirected(self, node: Node, folders: frozenset[str], feed: Feed) -> FoldersAfter:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        extra: list[Word] = []
        fed = feed
        after: list[Node] = []
        self._here = folders
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                fed = self._document(redirect, folders, extra, after)
            elif redirect.type == "herestring_redirect":
                fed = self._herestring(redirect)
            else:
                extra.extend(self._extra_words(redirect))
                if any(child.type == "<" for child in redirect.children):
                    fed = Feed(is_piped=True)
        if body is None:
            self._redirects(redirects, folders)
            ends = FoldersAfter(folders, folders)
        elif body.type == "command":
            ends = self._command(body, folders, fed, tuple(extra))
            self._redirects(redirects, folders)
        else:
            if extra:
                self._judging.ask(Danger.UNJUDGED)
            ends = self._visit(body, folders, fed)
            self._redirects(redirects, few(self._here | folders if body.type != "list" else self._here))
        for one in after:
            if one.type == "pipeline":
                is_odd = Danger.UNJUDGED in self._judging.found
                last = getattr(self, "_last", NO_FEED)
                piped = Feed(True, self._judging.fetches, is_odd, last.text)
                ends = FoldersAfter(ends.ok | self._pipeline(one.children, ends.any, piped).any, ends.fail)
            else:
                ends = self._visit(one, ends.any, NO_FEED)
        return ends

    def _document(self, redirect: Node, folders: frozenset[str], extra: list[Word], after: list[Node]) -> Feed:
        """Judge a here-document and the rest of the line on which it starts."""
        body = tree.document_text(redirect, self._parsed)
        for child in redirect.children:
            if child.type == "file_redirect":
                self._redirects([child], folders)
                extra.extend(self._extra_words(child))
            elif child.type in ("pipeline", "command", "list", "redirected_statement", "subshell"):
                after.append(child)
            elif child.type in ("word", "string", "raw_string", "concatenation", "simple_expansion", "expansion"):
                extra.extend(self._words.words(child))
        start = next((one for one in redirect.children if one.type == "heredoc_start"), None)
        is_quoted = start is not None and self._text(start)[:1] in ("'", '"')
        if not is_quoted and re.search(r"\$[({\[]|`", body):
            self._document_body(redirect)
            return Feed(is_piped=True, text=None)
        return Feed(is_piped=True, text=body if is_quoted or "$" not in body else None)

    def _document_body(self, redirect: Node) -> None:
        """Judge the substitutions in a here-document; ask if the tree lacks one."""
        body = next((one for one in redirect.children if one.type == "heredoc_body"), None)
        if body is None:
            self._judging.ask(Danger.UNJUDGED)
            return
        rest, at = [], body.start_byte
        for child in body.children:
            if child.type in ("heredoc_content",):
                continue
            rest.append(self._source[at : child.start_byte])
            at = child.end_byte
            self._words.words(child)
        rest.append(self._source[at : body.end_byte])
        if re.search(rb"(?<!\\)(?:\$[({\[]|`)", b" ".join(rest)):
            self._judging.ask(Danger.UNJUDGED)

    def _herestring(self, redirect: Node) -> Feed:
        words = [word for child in redirect.children if child.is_named for word in self._words.words(child)]
        is_known = all(word.is_known or word.is_tame for word in words)
        return Feed(is_piped=True, text=" ".join(word.text for word in words) if is_known else None)

    def _extra_words(self, redirect: Node) -> list[Word]:
        """Return the words behind a redirection (``rm >log -rf x``).

        The grammar takes them for further targets.
        """
        found = redirect.children_by_field_name("destination")
        return [word for child in found[1:] for word in self._words.words(child)]

    def _redirects(self, redirects: Sequence[Node], folders: frozenset[str]) -> None:
        for redirect in redirects:
            if redirect.type != "file_redirect":
                continue
            operator = next((child.type for child in redirect.children if not child.is_named), "")
            targets = redirect.children_by_field_name("destination")[:1]
            for word in [word for target in targets for word in self._words.words(target)]:
                self._redirect(operator, word, folders)

    def _redirect(self, operator: str, word: Word, folders: frozenset[str]) -> None:
        self._name(word, folders, "")
        text = word.text
        is_number = operator in (">&", "<&", ">&-", "<&-") and re.fullmatch(r"\d*-?", text) is not None
        if operator in ("<", "<<<", "<&", "<&-"):
            if text.startswith(("/dev/tcp/", "/dev/udp/")):
                self._judging.ask(Danger.NETWORK)
            if self._judging.names_secret(word, folders):
                self._judging.ask(Danger.SECRETS)
            if not word.is_known or not all(map(self._judging.is_inside, self._judging.paths(text, folders))):
                self._judging.opens_outside = True
            return
        if is_number or text.startswith("/dev/fd/"):
            return
        self._judging.changes()
        if not word.is_tame or (word.globs and not is_plain_name(word)):
            self._judging.ask(Danger.UNJUDGED)
        for path in self._judging.paths(text, folders):
            self._judging.written(path, may_be_temporary=True)

    # Substitutions

    def _inside(self, node: Node) -> str:
        """Judge a substitution; return a mark for what is known about its output."""
        text = self._text(node)
        folders = self._here
        before = self._variables.copy()
        if text.startswith("`"):
            inner = re.sub(r"\\([`\\$])", r"\1", text[1:-1])
            self._judging.text(inner, self._depth + 1, folders)
        else:
            here = self._here
            self._sequence(node.children, folders, NO_FEED)
            self._here = here
        self._variables.leave(before)
        bare = text[2:-1].strip() if text.startswith("$(") else text[1:-1].strip()
        if bare == "pwd" and len(folders) == 1 and next(iter(folders)) not in ("", NOWHERE):
            return next(iter(folders))
        return TAME if TAME_OUTPUT.fullmatch(bare) else SPLITS

    # Commands

    def _command(self, node: Node, folders: frozenset[str], feed: Feed, extra: tuple[Word, ...]) -> FoldersAfter:
        self._here = folders
        words: list[Word] = []
        assigned: list[tuple[str, str]] = []
        has_name = False
        redirects: list[Node] = []
        for child in node.children:
            match child.type:
                case "variable_assignment":
                    assigned.append(self._assign(child, folders, for_command=True))
                case "file_redirect":
                    redirects.append(child)
                    words.extend(self._extra_words(child))
                    if any(one.type == "<" for one in child.children):
                        feed = Feed(is_piped=True)
                case "herestring_redirect":
                    feed = self._herestring(child)
                case "command_name":
                    has_name = True
                    inner = child.children[0] if child.children else child
                    words.extend(self._words.words(inner))
                case "subshell" | "command" | "ERROR":
                    self._visit(child, folders, feed)
                case _ if child.is_named:
                    words.extend(self._words.words(child))
                case _:
                    words.extend([Word(child.type)] if child.type not in ("$",) else [])
        words.extend(extra)
        self._redirects(redirects, folders)
        if words and words[0].text == "" and not words[0].is_quoted:
            words = words[1:]
        if not has_name or not words:
            for name, value in assigned:
                self._variables.set(name, value)
            return FoldersAfter(folders, folders)
        for name, value in assigned:
            self._exported(name, value, folders)
        run = CommandRun(self, self._judging, folders, feed, self._depth)
        self._last = NO_FEED
        ends = run.judge(words)
        self._last = Feed(is_odd=run.is_odd, text=literal_output(words, feed))
        return ends

    def _assign(self, node: Node, folders: frozenset[str], *, for_command: bool) -> tuple[str, str]:
        self._here = folders
        if node.type != "variable_assignment":
            if node.is_named:
                self._words.words(node)
            return "", UNKNOWN
        name_node, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name_node is None:
            return "", UNKNOWN
        if name_node.type == "subscript":
            self._words.arithmetic(name_node)
        name = self._text(name_node).partition("[")[0]
        value = self._words.value(value_node) if value_node is not None else ""
        is_added = "+=" in self._text(node)[: len(self._text(name_node)) + 2]
        if is_added or name_node.type == "subscript" or (value_node is not None and value_node.type == "array"):
            value = UNKNOWN
        if running.takes_over(name) and value not in running.PLAIN_VALUES and not self._judging.may_set(name):
            self._judging.ask(Danger.UNJUDGED)
        if name in self._numbers and not re.fullmatch(rf"[\w\s+*/%().{TAME}-]*", value):
            self._judging.ask(Danger.UNJUDGED)
        self._name(Word(value), folders, "")
        if not for_command:
            self._variables.set(name, value)
        return name, value

    def _exported(self, name: str, value: str, folders: frozenset[str]) -> None:
        """Judge a variable of a program's environment: the program may write there."""
        for token in path_tokens(value):
            for path in self._judging.paths(token, folders):
                if not self._judging.is_inside(path) and not _READ_MOSTLY.match(path):
                    self._judging.ask(Danger.UNJUDGED if name == "PYTHONPATH" else Danger.OUTSIDE)

    def _declaration(self, node: Node, folders: frozenset[str]) -> FoldersAfter:
        self._here = folders
        children = node.children
        keyword = children[0].type if children else "declare"
        words: list[Word] = []
        for child in children[1:]:
            if child.type == "variable_assignment":
                name, value = self._assign(child, folders, for_command=False)
                if keyword == "export" or keyword in ("declare", "typeset"):
                    self._exported(name, value, folders)
                words.append(Word(name))
            elif child.is_named:
                found = self._words.words(child)
                words += found
                if child.type not in ("word", "variable_name"):
                    self._variables.is_poisoned = True
        options = "".join(word.text[1:] for word in words if word.text[:1] in ("-", "+"))
        if "n" in options or "i" in options or any(not word.is_known for word in words):
            self._variables.is_poisoned = True
        if "i" in options:
            self._judging.ask(Danger.UNJUDGED)
        texts = [word.text for word in words]
        for rule in dangerous.rules_of(keyword):
            if rule.test(texts):
                self._judging.ask(rule.danger)
        for word in words:
            self._name(word, folders, keyword)
        return FoldersAfter(folders, folders)

    def poison(self) -> None:
        self._variables.is_poisoned = True

    @property
    def moves(self) -> bool:
        return self._moves

    def _name(self, word: Word, folders: frozenset[str], program: str) -> None:
        name_word(self._judging, word, folders, program)

    def _text(self, node: Node) -> str:
        return tree.text_of(node, self._source)


def walk_text(
    judging: Judging,
    parsed: tree.Parsed,
    root: Node,
    text: str,
    depth: int,
    feed: Feed,
    folders: frozenset[str],
) -> FoldersAfter:
    """Judge one parsed text from its first command to its last."""
    return Walk(judging, parsed, text, depth, feed).run(root, folders)


_MOVES = re.compile(r"(?<![\w.-])(cd|pushd|popd)(?![\w-])|chdir|-C\b")
_ARITHMETIC = re.compile(
    r"\(\(.{0,300}?\)\)|\$\[[^]]{0,300}\]|\blet\s+[^;&|\n]{0,300}|(?<!\S)\S{1,200}\s+-(?:eq|ne|lt|le|gt|"
    r"ge)\s+\S{1,200}|"
    r"\b\w{1,60}\[[^]]{0,300}\]|\$\{\w{1,60}:(?![-=?+])[^}]{0,300}\}",
    re.DOTALL,
)
_READ_MOSTLY = re.compile(r"^/(usr|opt|lib|lib64|nix|bin)(/|$)")

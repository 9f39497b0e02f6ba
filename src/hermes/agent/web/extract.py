"""Extract text from a web page: headings, paragraphs, lists, tables, links.

Pure and synchronous; whoever calls it does so in a thread. One walk over the tree, without recursion, so that a page of
ten thousand nested elements costs no more than a flat one. What people cannot see on the page is left out: it is where
words meant for models alone are hidden.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from hermes.agent.web.charsets import known_charset
from hermes.core.dataclasses import dataclass

MAX_NODES = 400_000
MAX_CHARS = 2_000_000
MAX_SECONDS = 10.0
MAX_LINK_CHARS = 500
# Less than this in <main> or <article> means that the page puts its text elsewhere.
MIN_MAIN_CHARS = 200

NEVER_SHOWN = frozenset(
    {
        "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed", "canvas", "audio",
        "video", "select", "button", "input", "textarea", "dialog", "head",
    }
)  # fmt: skip
FURNITURE = frozenset({"nav", "footer", "aside", "header"})
FURNITURE_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search", "menu"})
MAIN = frozenset({"main", "article"})
BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
        "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr",
        "html", "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody",
        "tfoot", "thead", "tr", "ul",
    }
)  # fmt: skip
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
INVISIBLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?<![-\w])opacity\s*:\s*0(?![.\d])|font-size\s*:\s*0(?![.\d])", re.I
)
BLANKS = re.compile(r"[ \t\n\r\f]+")


class Region(Enum):
    MAIN = "main"
    PLAIN = "plain"
    FURNITURE = "furniture"


@dataclass(frozen=True, slots=True)
class Page:
    """``note`` says what is missing from ``text``, in a sentence, or nothing."""

    title: str
    text: str
    note: str = ""


def page_of(html: bytes, charset: str, base: str) -> Page:
    """Read a page. ``charset`` is what the server said; ``base`` the address that links are relative to."""
    tree = LexborHTMLParser(decoded(html, charset))
    found = tree.css_first("base[href]")
    writer = _Writer(_link(base, found.attributes.get("href") or "") or base if found is not None else base)
    note = _walk(tree.root, writer) if tree.root is not None else ""
    named = tree.css_first("title")
    title = named.text() if named is not None else ""
    if not title.strip():
        meta = tree.css_first("meta[property='og:title']")
        title = (meta.attributes.get("content") or "") if meta is not None else ""
    return Page(BLANKS.sub(" ", title).strip()[:300], writer.text(), note)


def decoded(body: bytes, charset: str) -> str:
    """As the server says, else as the page says, else UTF-8. An unknown name of a charset is as good as none."""
    found = re.search(rb"<meta[^>]{0,200}charset=[\"']?([\w.:-]{2,40})", body[:4096], re.I)
    marked = "utf-8-sig" if body.startswith(b"\xef\xbb\xbf") else ""
    for candidate in (marked, charset, found[1].decode() if found else ""):
        if name := known_charset(candidate):
            try:
                return body.decode(name, "replace")
            except (LookupError, ValueError):
                continue
    return body.decode("utf-8", "replace")


@dataclass(slots=True)
class _TextBlock:
    text: str
    region: Region


@dataclass(slots=True)
class _Writer:
    """Collects blocks of text. A link or a piece of code is put around what was written since it opened."""

    base: str
    blocks: list[_TextBlock] = field(default_factory=list)
    size: int = 0
    _line: list[str] = field(default_factory=list)
    _prefix: str = ""
    _regions: list[Region] = field(default_factory=lambda: [Region.PLAIN])
    _lists: list[int] = field(default_factory=list)
    _link_from: int = -1
    _link_to: str = ""
    _pre: int = 0
    _quotes: int = 0

    def say(self, text: str) -> None:
        if not self._pre:
            text = BLANKS.sub(" ", text)
            if not self._line or self._line[-1].endswith((" ", "\n")):
                text = text.lstrip(" ")
        if text:
            self._line.append(text)

    def enter(self, node: LexborNode, tag: str) -> None:
        if tag in BLOCKS:
            self.flush()
            self._regions.append(_region(node, tag, self._regions[-1]))
        if tag in HEADINGS:
            self._prefix = HEADINGS[tag]
        elif tag in ("ul", "ol", "menu"):
            self._lists.append(0 if tag == "ol" else -1)
        elif tag == "li":
            self._prefix = "  " * (min(len(self._lists), 8) - 1) + "- "
            if self._lists and self._lists[-1] >= 0:
                self._lists[-1] += 1
                self._prefix = f"{self._prefix[:-2]}{self._lists[-1]}. "
        elif tag == "pre":
            self._pre += 1
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "br":
            self._line.append("\n")
        elif tag in ("td", "th") and self._line:
            self._line.append(" | ")
        elif tag == "img" and (alt := (node.attributes.get("alt") or "").strip()):
            self.say(f"[image: {alt[:200]}]")
        elif tag == "a":
            self._open_link(_link(self.base, node.attributes.get("href") or ""))
        elif tag == "code" and not self._pre:
            self._line.append("`")

    def leave(self, tag: str) -> None:
        if tag == "a":
            self._close_link()
            self._link_to = ""
        elif tag == "code" and not self._pre:
            self._line.append("`")
        if tag in BLOCKS:
            self.flush()
            self._regions.pop()
        if tag in ("ul", "ol", "menu"):
            self._lists.pop()
        elif tag == "pre":
            self._pre -= 1
        elif tag == "blockquote":
            self._quotes -= 1

    def flush(self) -> None:
        """End the block that is being written. A link that is still open goes on in the next one."""
        link = self._link_to
        self._close_link()
        text = "".join(self._line).strip("\n" if self._pre else " \n")
        self._line.clear()
        if text.strip(" `|\n"):
            self._keep(text)
            self._prefix = ""
        self._open_link(link)

    def text(self) -> str:
        """What the page is about: its main part where it has one, else all but the furniture, else everything."""
        self.flush()
        for regions in ({Region.MAIN}, {Region.MAIN, Region.PLAIN}):
            chosen = [block for block in self.blocks if block.region in regions]
            if sum(len(block.text) for block in chosen) >= MIN_MAIN_CHARS:
                return _joined(chosen)
        return _joined(self.blocks)

    def _keep(self, text: str) -> None:
        if self._pre:
            text = f"```\n{text}\n```"
        else:
            text = self._prefix + "\n".join(line.strip() for line in text.split("\n") if line.strip())
        if self._quotes:
            text = "\n".join(f"> {line}" for line in text.split("\n"))
        self.blocks.append(_TextBlock(text, self._regions[-1]))
        self.size += len(text)

    def _open_link(self, link: str) -> None:
        self._link_from, self._link_to = len(self._line), link

    def _close_link(self) -> None:
        if not self._link_to or self._link_from < 0 or self._pre:
            return
        shown = "".join(self._line[self._link_from :]).strip()
        if shown and "](" not in shown:
            lead = " " if self._line[self._link_from].startswith(" ") else ""
            self._line[self._link_from :] = [f"{lead}[{shown}]({self._link_to})"]
        self._link_from = -1


def _region(node: LexborNode, tag: str, around: Region) -> Region:
    role = (node.attributes.get("role") or "").lower()
    if around is Region.FURNITURE:
        return Region.FURNITURE
    if tag in MAIN or role == "main":
        return Region.MAIN
    # The header of an article holds its heading; the header of the page does not.
    if role in FURNITURE_ROLES or (tag in FURNITURE and not (tag == "header" and around is Region.MAIN)):
        return Region.FURNITURE
    return around


def _joined(blocks: list[_TextBlock]) -> str:
    """Items of a list stand line by line, everything else with an empty line between."""
    parts: list[str] = []
    was_item = False
    for block in blocks:
        is_item = re.match(r"\s*(?:-|\d+\.) ", block.text) is not None
        if parts:
            parts.append("\n" if is_item and was_item else "\n\n")
        parts.append(block.text)
        was_item = is_item
    return "".join(parts)


def _link(base: str, href: str) -> str:
    """Return the whole address of a link, or nothing for what leads nowhere else (a place on this page, a script)."""
    href = href.strip()
    if not href or href.startswith("#") or len(href) > MAX_LINK_CHARS:
        return ""
    try:
        whole = urljoin(base, href)
    except ValueError:
        return ""
    if not whole.startswith(("http://", "https://")) or any(letter.isspace() for letter in whole):
        return ""
    return whole.replace("(", "%28").replace(")", "%29")


def _walk(root: LexborNode, writer: _Writer) -> str:
    """Write the whole tree; the answer is a sentence when it had to stop early."""
    ends_at = time.monotonic() + MAX_SECONDS
    for count, (node, tag, is_enter) in enumerate(_events(root)):
        if is_enter and tag == "-text":
            writer.say(node.text_content or "")
        elif is_enter:
            writer.enter(node, tag)
        else:
            writer.leave(tag)
        if writer.size > MAX_CHARS or count > MAX_NODES or (count % 256 == 0 and time.monotonic() > ends_at):
            return "The page is too large to be read to its end."
    return ""


def _events(root: LexborNode) -> Iterator[tuple[LexborNode, str, bool]]:
    """Every visible element as it opens and closes, and every text, in the order of the page."""
    stack: list[tuple[LexborNode, str, bool]] = [(root, root.tag or "", True)]
    while stack:
        node, tag, is_enter = stack.pop()
        yield node, tag, is_enter
        if not is_enter or tag == "-text":
            continue
        stack.append((node, tag, False))
        children = []
        child = node.first_child
        while child is not None:
            name = child.tag or ""
            if name == "-text" or not (name.startswith(("-", "!")) or _is_unseen(child, name)):
                children.append((child, name, True))
            child = child.next
        stack.extend(reversed(children))


def _is_unseen(node: LexborNode, tag: str) -> bool:
    if tag in NEVER_SHOWN:
        return True
    attributes = node.attributes
    if "hidden" in attributes or (attributes.get("aria-hidden") or "").lower() == "true":
        return True
    style = attributes.get("style")
    return bool(style) and INVISIBLE.search(style or "") is not None

"""Write the few marks that Slack and WhatsApp share: ``*bold*``, ``_italic_``, ``~struck~``, code.

There is no way to escape a mark. A mark that is meant literally, or that touches a letter from outside, gets an
invisible space beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.markdown.blocks import GAP, Span, Style, Token, fenced


class FewMarks(Style):
    bold, italic, strike, quote = "*", "_", "~", "> "

    def escaped(self, span: Span) -> str:
        return (GAP if span.text in "*_~`" else "") + self.text(span.text)

    def code(self, span: Span) -> str:
        return f"`{self.text(span.text)}`"

    def code_block(self, text: str, _info: str) -> str:
        return fenced(self.text(text))

    def join(self, tokens: Sequence[Token]) -> str:
        written = [""]
        role_before = ""
        for text, role in tokens:
            if not text:
                continue
            if role == "opens":
                touches = role_before == "closes" or written[-1][-1:].isalnum()
            else:
                touches = role_before == "closes" and text[0].isalnum()
            written += (GAP, text) if touches else (text,)
            role_before = role
        return "".join(written)

"""Read one document in a child: `python child.py html|pdf|docx CHARSET BASE`.

A hostile document can make any reader work for hours or take gigabytes, and a thread cannot be stopped. This can: it
has bounds on time and memory that the kernel keeps, and when its time is up it is gone, whatever became of its parent.

Out: one JSON object, ``{"title": ..., "text": ..., "note": ...}`` or ``{"trouble": "a sentence"}``.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

CPU_SECONDS = 20
ALL_SECONDS = 40
MEMORY_BYTES = 1 << 30


def main(kind: str, charset: str, base: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.alarm(ALL_SECONDS)
    # Started with -I, so our own package is found by where this file lies and nothing else.
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    body = sys.stdin.buffer.read()
    try:
        result = _parse(kind, body, charset, base)
    except MemoryError:
        result = {"trouble": "It takes more memory to read than is allowed."}
    except RecursionError:
        result = {"trouble": "It is nested too deeply to be read."}
    # Half characters would end in an error here: they are written as \u escapes, and are cleaned where text is stored.
    sys.stdout.write(json.dumps(result))


def _parse(kind: str, body: bytes, charset: str, base: str) -> dict[str, Any]:
    if kind == "html":
        from hermes.agent.web.extract import page_of

        page = page_of(body, charset, base)
        return {"title": page.title, "text": page.text, "note": page.note}
    if kind == "docx":
        from hermes.agent.web.docx import UnreadableDocxError, docx_of

        try:
            return {"title": "", "text": docx_of(body), "note": ""}
        except UnreadableDocxError as error:
            return {"trouble": str(error)}
    from hermes.agent.web.pdf import UnreadablePdfError, pdf_of

    try:
        title, text, note = pdf_of(body)
    except UnreadablePdfError as error:
        return {"trouble": str(error)}
    return {"title": title, "text": text, "note": note}


if __name__ == "__main__":
    main(*sys.argv[1:4])

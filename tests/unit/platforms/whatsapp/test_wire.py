"""Our messages as the bridge's requests, its refusals and its health as our errors."""

from __future__ import annotations

import pytest

from hermes.core.errors import (
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.keys import Target
from hermes.core.markdown.blocks import GAP
from hermes.core.messages import Attachment, AttachmentKind, OutboundMessage
from hermes.platforms.whatsapp import wire
from hermes.platforms.whatsapp.markdown import render
from hermes.platforms.whatsapp.wire import Health, Me

ANA = Target("whatsapp", "4915550000007@s.whatsapp.net")
GROUP = Target("whatsapp", "120363000000000001@g.us")


@pytest.mark.parametrize(
    "source, written",
    [
        ("**bold** and __bold__", "*bold* and *bold*"),
        ("*italic* and _italic_", "_italic_ and _italic_"),
        ("~~gone~~", "~gone~"),
        ("***both***", "*_both_*"),
        ("# Heading", "*Heading*"),
        ("## A **bold** one ##", "*A bold one*"),
        ("- one\n* two\n+ [x] three", "- one\n- two\n- ☑ three"),
        ("# See https://x.org", "*See https://x.org*"),
        ("> said", "> said"),
        ("[words](https://x.org/a_b_c)", "words (https://x.org/a_b_c)"),
        ("[https://x.org](https://x.org) <https://y.org>", "https://x.org https://y.org"),
        ("![cat](https://x.org/c.png)", "cat (https://x.org/c.png)"),
        ("`a*b*c` stays", "`a*b*c` stays"),
        ("```python\nprint('**')\n```", "```\nprint('**')\n```"),
        (r"\*not bold\*", f"{GAP}*not bold{GAP}*"),
        ("a**b**c", f"a{GAP}*b*{GAP}c"),
        ("snake_case_name 2 * 3 * 4", "snake_case_name 2 * 3 * 4"),
        ("---", "———"),
        ("| a | b |\n|---|---|\n| 1 | **2** |", "```\na  b\n─  ─\n1  2\n```"),
        ("你**好**吗", f"你{GAP}*好*{GAP}吗"),
        ("see https://x.org/_a_/*b*", "see https://x.org/_a_/*b*"),
    ],
)
def test_markdown_is_written_as_the_phone_reads_it(source: str, written: str) -> None:
    assert render(source) == written


def test_a_table_that_would_grow_beyond_all_reason_is_shown_as_it_was_written() -> None:
    table = f"|{'wide ' * 300}|b|\n|-|-|\n" + "|a|b|\n" * 350
    _, body = wire.text_call(OutboundMessage(ANA, table), "")
    assert body["message"] == table


def test_a_text_goes_with_its_prefix_its_quote_and_an_id_that_stays_the_same() -> None:
    message = OutboundMessage(ANA, "**hi**", reply_to="3A01", idempotency_key="ob_1")
    path, body = wire.text_call(message, "⚕ *Hermes*\n")
    assert path == "send"
    assert body == {
        "chatId": ANA.chat,
        "message": "⚕ *Hermes*\n*hi*",
        "messageId": wire.message_id("ob_1"),
        "replyTo": "3A01",
    }
    assert wire.message_id("ob_1") == wire.message_id("ob_1") != wire.message_id("ob_2")
    assert len(wire.message_id("ob_1")) == 22
    assert wire.message_id("ob_1").startswith("3EB0")


def test_an_edit_names_what_it_replaces_and_keeps_the_prefix() -> None:
    message = OutboundMessage(ANA, "more", replaces="3EB0AA", idempotency_key="ob_1")
    assert wire.text_call(message, "⚕ ") == ("edit", {"chatId": ANA.chat, "message": "⚕ more", "messageId": "3EB0AA"})


def test_whom_a_text_names_in_a_group_is_told() -> None:
    _, body = wire.text_call(OutboundMessage(GROUP, "@4915550000007 and @+15551234567, not a@123456.org"), "")
    assert body["mentions"] == ["4915550000007@s.whatsapp.net", "15551234567@s.whatsapp.net"]
    assert "mentions" not in wire.text_call(OutboundMessage(ANA, "@4915550000007"), "")[1]


@pytest.mark.parametrize(
    "kind, size, sent_as, is_voice",
    [
        (AttachmentKind.IMAGE, 10, "image", False),
        (AttachmentKind.VIDEO, 10, "video", False),
        (AttachmentKind.VIDEO, 17_000_000, "document", False),
        (AttachmentKind.AUDIO, 10, "audio", False),
        (AttachmentKind.VOICE, 10, "audio", True),
        (AttachmentKind.VOICE, 17_000_000, "document", False),
        (AttachmentKind.DOCUMENT, 10, "document", False),
    ],
)
def test_a_file_goes_as_what_whatsapp_shows_best(kind: AttachmentKind, size: int, sent_as: str, is_voice: bool) -> None:
    file = Attachment(kind, path="/tmp/a.bin", name="a.bin", mime="x/y", size=size)
    path, body = wire.file_call(OutboundMessage(ANA, "*look*", attachment=file), file, "⚕ ")
    assert (path, body["mediaType"], body.get("voice", False)) == ("send-media", sent_as, is_voice)
    assert (body["caption"], body["filePath"], body["mime"]) == ("⚕ _look_", "/tmp/a.bin", "x/y")
    assert "caption" not in wire.file_call(OutboundMessage(ANA, "", attachment=file), file, "⚕ ")[1]


@pytest.mark.parametrize(
    "chat, jid",
    [
        ("15551234567", "15551234567@s.whatsapp.net"),
        ("+1 (555) 123-4567", "15551234567@s.whatsapp.net"),
        ("15551234567@c.us", "15551234567@s.whatsapp.net"),
        ("2000@lid", "2000@lid"),
        (GROUP.chat, GROUP.chat),
    ],
)
def test_a_number_alone_is_a_chat(chat: str, jid: str) -> None:
    assert wire.jid_of(chat) == jid


@pytest.mark.parametrize(
    "status, code, error",
    [
        ("connected", None, None),
        ("starting", None, None),
        ("connecting", 428, None),
        ("disconnected", 515, None),
        ("disconnected", 408, UnreachableError),
        ("disconnected", 428, UnreachableError),
        ("disconnected", 500, UnreachableError),
        ("disconnected", 503, UnreachableError),
        ("disconnected", None, UnreachableError),
        ("waiting_for_scan", None, CredentialsError),
        ("logged_out", 401, CredentialsError),
        ("logged_out", 403, CredentialsError),
        ("logged_out", 411, CredentialsError),
        ("replaced", 440, ConflictError),
        ("something new", None, UnreachableError),
    ],
)
def test_how_the_connection_is_tells_who_acts(status: str, code: int | None, error: type | None) -> None:
    trouble = Health.of({"status": status, "code": code}).trouble
    assert type(trouble) is (error or type(None))
    if isinstance(trouble, CredentialsError):
        assert "`hermes whatsapp`" in str(trouble)
    if code and trouble is not None:
        assert str(code) in str(trouble)


@pytest.mark.parametrize(
    "status, code, error",
    [
        (400, "bad_request", RejectedError),
        (401, "wrong_token", UnreachableError),
        (403, "restricted", RejectedError),
        (404, "no_such_chat", RejectedError),
        (409, "too_old", RejectedError),
        (410, "media_gone", RejectedError),
        (413, "too_large", RejectedError),
        (422, "no_such_file", RejectedError),
        (429, "slow_down", RateLimitedError),
        (500, "failed", OutcomeUnknownError),
        (502, "not_sent", UnreachableError),
        (502, "media_failed", UnreachableError),
        (503, "not_connected", UnreachableError),
        (504, "outcome_unknown", OutcomeUnknownError),
        (599, "", OutcomeUnknownError),
    ],
)
def test_a_refusal_tells_who_acts(status: int, code: str, error: type[PlatformError]) -> None:
    told = wire.refusal("send", status, {"error": "No  such\nthing.", "code": code, "retryAfter": 7})
    assert isinstance(told, error)
    assert "\n" not in str(told)


def test_a_wait_that_is_none_is_a_minute() -> None:
    for wait in (None, -1, "7", True, 1e9):
        error = wire.refusal("send", 429, {"code": "slow_down", "retryAfter": wait})
        assert isinstance(error, RateLimitedError)
        assert error.retry_after == 60


def test_who_we_are_is_told_by_number_or_by_the_hidden_id() -> None:
    me = Me.of({"id": "4915550000001:3@s.whatsapp.net", "lid": "1000:3@lid", "name": "Her\nmes"})
    assert me is not None
    assert (me.id, me.jid, me.display_name) == (
        "4915550000001",
        "4915550000001@s.whatsapp.net",
        "Her mes (+4915550000001)",
    )
    hidden = Me.of({"id": "", "lid": "1000@lid"})
    assert hidden is not None
    assert (hidden.id, hidden.jid) == ("1000@lid", "1000@lid")
    assert Me.of({}) is Me.of(None) is None

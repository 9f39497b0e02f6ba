"""Items as the bridge hands them over."""

from __future__ import annotations

from typing import Any

from hermes.core.messages import Json
from hermes.platforms.whatsapp.parse import Reader
from hermes.platforms.whatsapp.wire import Me

ME = "4915550000001@s.whatsapp.net"
ANA = "4915550000007@s.whatsapp.net"
ANA_LID = "200000000000007@lid"
GROUP = "120363000000000001@g.us"
BOT = Reader("main", Me("4915550000001", "100000000000001", "Hermes"), is_self_chat_only=False)
SELF = Reader("main", BOT.me, is_self_chat_only=True, prefix="⚕ *Hermes*\n")


def item(**more: Any) -> Json:
    """A text of Ana's."""
    return {
        "cursor": 1,
        "kind": "message",
        "messageId": "3A01",
        "chatId": ANA,
        "chatPhone": "4915550000007",
        "chatName": "Ana",
        "isGroup": False,
        "senderId": ANA,
        "senderPhone": "4915550000007",
        "senderName": "Ana",
        "fromMe": False,
        "fromOwner": False,
        "isSelfChat": False,
        "timestamp": 1_700_000_000,
        "body": "hello",
        "hasMedia": False,
        "mediaType": "",
        "mediaUrls": [],
        "mime": "",
        "fileName": "",
        "size": 0,
        "seconds": 0,
        "voice": False,
        "hasQuotedMessage": False,
        "quotedMessageId": "",
        "quotedParticipant": "",
        "quotedFromMe": False,
        "quotedText": "",
        "mentions": [],
        "isForwarded": False,
        "albumId": "",
        "nativeType": "conversation",
        "nativeMetadata": {},
        **more,
    }


def note(**more: Any) -> Json:
    """What the owner writes in the chat with themself."""
    own = {"chatId": ME, "chatPhone": "4915550000001", "senderId": ME, "senderPhone": "4915550000001"}
    return item(**{**own, "fromMe": True, "fromOwner": True, "isSelfChat": True, **more})


def in_group(**more: Any) -> Json:
    return item(chatId=GROUP, chatPhone="", isGroup=True, **more)


SAMPLES = (
    item(),
    note(),
    in_group(mentions=[ME], body="@4915550000001 soup?"),
    item(hasMedia=True, mediaType="image", mime="image/jpeg", size=1000, body=""),
    item(hasMedia=True, mediaType="audio", mime="audio/ogg; codecs=opus", voice=True, body=""),
    item(hasQuotedMessage=True, quotedMessageId="3EB0AA", quotedFromMe=True, quotedText="yes"),
    item(kind="edit", targetId="3A00"),
    item(kind="delete", targetId="3A00"),
    item(kind="vote", pollId="3EB0AA", options=["Yes"]),
    item(nativeType="locationMessage", body="", nativeMetadata={"latitude": 1.5, "longitude": 2.5, "name": "Café"}),
    item(nativeType="contactMessage", body="", nativeMetadata={"contacts": [{"name": "Bo", "vcard": "BEGIN:VCARD"}]}),
    {"cursor": 9, "kind": "unreadable", "messageId": "", "chatId": "", "error": "TypeError", "raw": "{}"},
)

"""Messages in the shapes of the protocol sheet."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def text(words: str) -> Json:
    return {"type": 1, "create_time_ms": 1_760_000_000_000, "is_completed": True, "text_item": {"text": words}}


def message(*items: Json, **more: Any) -> Json:
    return {
        "seq": 101,
        "message_id": 7492913259736648968,
        "from_user_id": "o9cq8AAA@im.wechat",
        "to_user_id": "44b9b8ec@im.bot",
        "client_id": "c-1",
        "create_time_ms": 1_760_000_000_000,
        "update_time_ms": 1_760_000_000_000,
        "session_id": "s-1",
        "message_type": 1,
        "message_state": 2,
        "context_token": "CK3E-opaque",
        "item_list": list(items),
        **more,
    }


_RAW_KEY = "AAECAwQFBgcICQoLDA0ODw=="
_HEX_KEY = "MDAwMTAyMDMwNDA1MDYwNzA4MDkwYTBiMGMwZDBlMGY="
_FULL = "https://novac2c.cdn.weixin.qq.com/c2c/download?encrypted_query_param=EQP-1"

IMAGE: Json = {
    "type": 2,
    "image_item": {
        "aeskey": "000102030405060708090a0b0c0d0e0f",
        "media": {"encrypt_query_param": "EQP-1", "aes_key": _RAW_KEY, "encrypt_type": 1, "full_url": _FULL},
        "mid_size": 32,
    },
}
_SPEECH: Json = {
    "encode_type": 6,
    "sample_rate": 24000,
    "bits_per_sample": 16,
    "playtime": 3200,
    "media": {"encrypt_query_param": "EQP-2", "aes_key": _HEX_KEY},
}
VOICE: Json = {"type": 3, "voice_item": {**_SPEECH, "text": "turn on the light"}}
SILENT_VOICE: Json = {"type": 3, "voice_item": _SPEECH}
FILE: Json = {
    "type": 4,
    "file_item": {
        "file_name": "a.pdf",
        "len": "5",
        "media": {"encrypt_query_param": "EQP-3", "aes_key": _HEX_KEY},
    },
}
VIDEO: Json = {
    "type": 5,
    "video_item": {
        "video_size": 32,
        "play_length": 7,
        "media": {"encrypt_query_param": "EQP-4", "aes_key": _HEX_KEY},
    },
}
OLD_QUOTE: Json = {
    "type": 1,
    "text_item": {"text": "what is this?"},
    "ref_msg": {"title": "photo", "message_item": {"type": 2, "image_item": IMAGE["image_item"]}},
}
PARTIAL_QUOTE: Json = {
    "type": 1,
    "text_item": {"text": "explain"},
    "ref_msg": {
        "svr_id": 7492913259736648968,
        "partial_text": {
            "start": "brown",
            "end": "fox",
            "startindex": 0,
            "endindex": 0,
            "quotemd5": "fdd929ffb0a167ab33e8b1a8905858cf",
        },
    },
}

ALL = [
    message(text("hello")),
    message(IMAGE),
    message(VOICE),
    message(SILENT_VOICE),
    message(FILE, text("look")),
    message(VIDEO),
    message(OLD_QUOTE),
    message(PARTIAL_QUOTE),
    message(text("hi"), group_id="g1@chatroom"),
]

"""What arrives: every payload of the sheet, and ten thousand that nobody should send."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.core.errors import OutcomeUnknownError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import AttachmentKind, Ignored, InboundEvent, InboundMessage, Press, Unreadable
from hermes.platforms.qq import parse, wire
from hermes.platforms.qq.parse import Me, Place, Scene

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
RECORDED = [
    '{"op":0,"s":2,"t":"C2C_MESSAGE_CREATE","id":"C2C_MESSAGE_CREATE:abc","d":{"id":"ROBOT1.0_aaa!","author":'
    '{"user_openid":"E4F4AEA3"},"content":"hi","timestamp":"2026-03-01T10:00:00+08:00","message_type":0,'
    '"message_scene":{"source":"default","ext":["msg_idx=REFIDX_1"]},"attachments":[{"content_type":"image/jpeg",'
    '"filename":"a.jpg","height":10,"width":10,"size":5,"url":"https://multimedia.nt.qq.com.cn/download?x=1"}]}}',
    '{"op":0,"s":3,"t":"GROUP_AT_MESSAGE_CREATE","id":"G:1","d":{"id":"ROBOT1.0_bbb","group_openid":"C9F778FE",'
    '"author":{"member_openid":"B1"},"content":" /help","timestamp":"2026-03-01T10:00:01+08:00"}}',
    '{"op":0,"s":4,"t":"GROUP_MESSAGE_CREATE","id":"G:2","d":{"id":"ROBOT1.0_ccc","group_openid":"C9F778FE",'
    '"author":{"member_openid":"B2"},"content":"not for the bot","timestamp":"2026-03-01T10:00:02+08:00"}}',
    '{"op":0,"s":5,"t":"AT_MESSAGE_CREATE","id":"A:1","d":{"id":"08f1","guild_id":"187","channel_id":"100010",'
    '"author":{"id":"1234","username":"abc","bot":false},"member":{"nick":"abc","roles":["1"]},'
    '"content":"<@!9001> hi","timestamp":"2026-03-01T10:00:03+08:00","seq":101}}',
    '{"op":0,"s":6,"t":"DIRECT_MESSAGE_CREATE","id":"D:1","d":{"id":"08f2","guild_id":"18700000000001",'
    '"channel_id":"100011","author":{"id":"1234","username":"abc"},"content":"hi",'
    '"timestamp":"2026-03-01T10:00:04+08:00"}}',
    '{"op":0,"s":7,"t":"INTERACTION_CREATE","id":"I:1","d":{"id":"30540ff7-9d8f","type":11,"version":1,"scene":"c2c",'
    '"chat_type":2,"user_openid":"E4F4AEA3","timestamp":"2026-03-01T10:00:05+08:00","data":{"type":11,"resolved":'
    '{"button_data":"ap:7f3c:allow","button_id":"allow","user_id":"E4F4AEA3"}}}}',
    '{"op":0,"s":8,"t":"FRIEND_ADD","id":"F:1","d":{"openid":"E4F4AEA3","timestamp":1760000000}}',
    '{"op":0,"s":9,"t":"GROUP_ADD_ROBOT","id":"GA:1","d":{"group_openid":"C9F778FE","op_member_openid":"B1",'
    '"timestamp":1760000000}}',
]
FRAMES: list[dict[str, Any]] = [json.loads(text) for text in RECORDED]


def read(frame: object, me: Me = Me()) -> InboundEvent:  # noqa: B008 - frozen
    return wire.understand(frame, me, NOW)


def changed(number: int, **more: Any) -> dict[str, Any]:
    frame = FRAMES[number]
    return {**frame, "d": {**frame["d"], **more}}


def message(frame: object, me: Me = Me()) -> InboundMessage:  # noqa: B008 - frozen
    event = read(frame, me)
    assert isinstance(event, InboundMessage), event
    return event


def test_a_private_message_is_a_dm_with_its_picture() -> None:
    said = message(FRAMES[0])
    assert str(said.session_key) == "agent:main:qq:dm:E4F4AEA3"
    assert (said.sender_id, said.text, said.message_id, said.keys) == (
        "E4F4AEA3",
        "hi",
        "ROBOT1.0_aaa!",
        ("msg:ROBOT1.0_aaa!",),
    )
    assert said.sent_at == datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
    [picture] = said.attachments
    assert (picture.kind, picture.name, picture.size) == (AttachmentKind.IMAGE, "a.jpg", 5)
    assert picture.file_id == "https://multimedia.nt.qq.com.cn/download?x=1"


def test_in_a_group_the_space_where_the_mention_was_is_gone() -> None:
    said = message(FRAMES[1])
    assert (said.text, said.sender_id, said.is_addressed) == ("/help", "B1", True)
    assert said.session_key == SessionKey("qq", ChatKind.GROUP, "group/C9F778FE")


def test_what_a_group_says_among_itself_is_not_addressed() -> None:
    assert not message(FRAMES[2]).is_addressed


def test_in_a_guild_our_own_name_is_no_part_of_what_is_said() -> None:
    said = message(FRAMES[3])
    assert (said.text, said.sender_id, said.sender_name) == ("hi", "1234", "abc")
    assert said.session_key == SessionKey("qq", ChatKind.GROUP, "channel/100010")


def test_a_direct_chat_of_a_guild_is_a_dm_too() -> None:
    said = message(FRAMES[4])
    assert said.session_key == SessionKey("qq", ChatKind.DM, "direct/18700000000001")


def test_a_press_carries_who_pressed_and_the_very_same_session_key_as_a_message() -> None:
    press = read(FRAMES[5])
    assert isinstance(press, Press)
    assert press.session_key == message(FRAMES[0]).session_key
    assert (press.sender_id, press.data, press.press_id) == ("E4F4AEA3", "ap:7f3c:allow", "30540ff7-9d8f")
    assert press.keys == ("press:30540ff7-9d8f",)


def test_a_press_in_a_group_is_the_members_who_pressed() -> None:
    more = {"scene": "group", "chat_type": 1, "group_openid": "C9F778FE", "group_member_openid": "B2"}
    press = read(changed(5, **more))
    assert isinstance(press, Press)
    assert (press.sender_id, press.session_key) == ("B2", message(FRAMES[1]).session_key)


def test_a_press_in_a_guild_says_under_which_message() -> None:
    data = {"type": 11, "resolved": {"button_data": "x", "user_id": "1234", "message_id": "08f9"}}
    press = read(changed(5, scene="guild", chat_type=0, channel_id="100010", data=data))
    assert isinstance(press, Press)
    assert (press.sender_id, press.message_id) == ("1234", "08f9")
    assert press.session_key == message(FRAMES[3]).session_key


def test_a_press_is_known_by_its_number_where_the_scene_has_no_name() -> None:
    frame = changed(5)
    del frame["d"]["scene"]
    assert isinstance(read(frame), Press)
    assert isinstance(read(changed(5, scene="moon")), Unreadable)


@pytest.mark.parametrize("kind", [2001, 2002])
def test_a_query_of_settings_is_no_press(kind: int) -> None:
    assert isinstance(read(changed(5, data={"type": kind})), Ignored)


@pytest.mark.parametrize("number", [6, 7])
def test_a_greeting_gives_the_right_to_answer(number: int) -> None:
    assert isinstance(read(FRAMES[number]), Ignored)
    expected = Place(Scene.C2C, "E4F4AEA3") if number == 6 else Place(Scene.GROUP, "C9F778FE")
    assert parse.place_of(FRAMES[number]) == expected


def test_a_face_is_shown_by_its_name() -> None:
    ext = base64.b64encode(json.dumps({"text": "smile"}).encode()).decode()
    text = f'well <faceType=1,faceId="14",ext="{ext}"> and <faceType=3,faceId="",ext="?">'
    assert message(changed(0, content=text)).text == "well [smile] and [face]"


def test_a_voice_message_has_its_transcript_and_its_wav() -> None:
    voice = {
        "content_type": "voice",
        "url": "//multimedia.nt.qq.com.cn/a.silk",
        "voice_wav_url": "//multimedia.nt.qq.com.cn/a.wav",
        "asr_refer_text": "hello there",
    }
    said = message(changed(0, content="", attachments=[voice]))
    assert said.text == "hello there"
    [sound] = said.attachments
    assert (sound.kind, sound.mime) == (AttachmentKind.VOICE, "audio/wav")
    assert sound.file_id == "https://multimedia.nt.qq.com.cn/a.wav"
    assert sound.is_written_down, "nobody has to hear it once more"
    [beside] = message(changed(0, content="listen", attachments=[voice])).attachments
    assert not beside.is_written_down, "what is said stands nowhere"
    [bare] = message(changed(0, content="", attachments=[{"content_type": "voice", "url": "//x.qq.com/a"}])).attachments
    assert (bare.file_id, bare.mime) == ("https://x.qq.com/a", "")


def test_a_quote_is_shown_and_known_as_ours() -> None:
    me = Me(sent_text={"REFIDX_2": "the answer is 42"}.get)
    elements = [{"content": "the answer is 42", "attachments": [], "msg_idx": "REFIDX_2"}]
    quote = message(changed(0, message_type=103, msg_elements=elements), me).quote
    assert quote is not None
    assert (quote.text, quote.from_us) == ("the answer is 42", True)
    scene = {"ext": ["ref_msg_idx=REFIDX_2", "msg_idx=REFIDX_3"]}
    quote = message(changed(0, message_scene=scene), me).quote
    assert quote is not None
    assert (quote.text, quote.from_us) == ("the answer is 42", True)
    assert message(changed(0, message_scene=scene)).quote is None


def test_messages_of_bots_and_empty_ones_are_ignored() -> None:
    assert isinstance(read(changed(3, author={"id": "1", "bot": True})), Ignored)
    assert isinstance(read(changed(0, content=" ", attachments=[])), Ignored)


def test_a_time_that_cannot_be_read_does_not_cost_the_message() -> None:
    assert message(changed(0, timestamp="soon")).sent_at == NOW
    assert message(changed(0, timestamp=1e300)).sent_at == NOW
    assert message(changed(0, timestamp="2026-03-01T10:00:00")).sent_at.hour == 2, "QQ's own time zone"
    told = datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)
    assert message(changed(0, timestamp=1760000000)).sent_at == told
    assert message(changed(0, timestamp="1760000000")).sent_at == told
    assert message(changed(0, timestamp="9" * 400)).sent_at == NOW


@pytest.mark.parametrize(
    "frame",
    [
        "not JSON at all",
        None,
        [1],
        {**FRAMES[0], "d": "text"},
        changed(0, author={}),
        changed(0, id=5),
        changed(0, id=""),
        changed(0, id="\ud800"),
        changed(0, content=["hi"]),
        changed(0, attachments="many"),
        changed(5, data={}),
    ],
)
def test_what_cannot_be_read_is_kept_with_a_key(frame: object) -> None:
    event = read(frame)
    assert isinstance(event, Unreadable)
    assert event.raw
    assert event.keys == read(frame).keys
    assert event.keys[0].startswith("raw:")


def test_two_frames_that_cannot_be_read_have_two_keys() -> None:
    assert read(changed(0, id=5)).keys != read(changed(0, id=6)).keys
    assert read("{one").keys != read("{two").keys


def test_an_id_stays_one_part_of_its_address() -> None:
    assert wire.path_of(Place(Scene.C2C, "A/../B?x=1#y")) == "/v2/users/A%2F..%2FB%3Fx%3D1%23y"


@pytest.mark.parametrize(
    "body, status, kind",
    [
        ({"code": 500, "err_code": 40034024}, 400, wire.TicketSpentError),
        ({"code": 40034024}, 400, wire.TicketSpentError),
        ({"err_code": True, "code": "x"}, 400, wire.RefusedError),
        ({"code": 304036}, 500, wire.RefusedError),  # meant as such, whatever the status says
        ({}, 500, OutcomeUnknownError),
        ({}, 999, OutcomeUnknownError),
        ({}, 418, wire.RefusedError),
    ],
)
def test_the_closer_number_of_a_refusal_counts(body: dict[str, Any], status: int, kind: type[Exception]) -> None:
    assert type(wire.refusal("a message", status, body, {})) is kind


def test_an_unknown_kind_is_ignored() -> None:
    assert read({"op": 0, "s": 1, "t": "GUILD_FIREWORKS", "d": {}}) == Ignored("GUILD_FIREWORKS")


def test_half_a_surrogate_pair_spoils_one_letter() -> None:
    frame = wire.decode(RECORDED[0].replace('"hi"', '"h\\ud83di"'))
    assert message(frame).text == "h\ud83di", "intake makes it storable, as for every platform"
    assert wire.decode("{nonsense") == "{nonsense"
    assert wire.decode(b'{"op":\xff}') == '{"op":�}'


def mutated(chance: random.Random, value: Any, depth: int = 0) -> Any:
    """The same, with some things in it replaced, taken out, doubled or nested."""
    strange: tuple[Any, ...] = (
        None,
        True,
        -1,
        2**70,
        1e308,
        "",
        "\0",
        "\ud800",
        "x" * 3000,
        [],
        {},
        [[]],
        {"id": {}},
        "2026-99-99",
    )
    if chance.random() < 0.12:
        return chance.choice(strange)
    if isinstance(value, dict):
        kept = {key: mutated(chance, each, depth + 1) for key, each in value.items() if chance.random() > 0.04}
        if chance.random() < 0.05:
            kept[chance.choice(["id", "d", "t", "author", "data", "scene"])] = chance.choice(strange)
        return kept
    if isinstance(value, list):
        return [mutated(chance, each, depth + 1) for each in value] * chance.choice((1, 1, 1, 2))
    return value


def test_ten_thousand_strange_frames_do_no_harm() -> None:
    chance = random.Random(6)
    kinds: set[type] = set()
    for number in range(10_000):
        frame = mutated(chance, FRAMES[number % len(FRAMES)])
        event = read(frame)
        kinds.add(type(event))
        if isinstance(frame, dict):
            parse.place_of(frame)
        if isinstance(event, InboundMessage | Press | Unreadable):
            assert all(isinstance(key, str) and key for key in event.keys)
    assert kinds == {InboundMessage, Press, Ignored, Unreadable}

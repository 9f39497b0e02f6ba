"""`/v1/conversations`, `/v1/responses/input_tokens` and `/v1/responses/compact`."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from tests.fakes.model import FakeModel, calls_tools
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

PATH, RESPONSES = "/v1/conversations", "/v1/responses"


def heard(model: FakeModel) -> list[str]:
    """What the model was told last, without the system's words."""
    return [str(one["content"]) for one in model.last_request["messages"] if one["role"] != "system"]


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in items]


async def made(api: Served, **body: Any) -> dict[str, Any]:
    answer = await api.post(PATH, body)
    assert answer.status == 200, answer.body
    return dict(answer.json)


async def test_a_conversation_is_made_used_listed_and_forgotten(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(30):
        one = await made(api, metadata={"topic": "food"}, items=[{"role": "user", "content": "We need milk."}])
        assert (one["object"], one["metadata"]) == ("conversation", {"topic": "food"})
        path = f"{PATH}/{one['id']}"
        assert (await api.get(path)).json == one
        assert texts((await api.get(f"{path}/items")).json["data"]) == ["We need milk."]

        model.script([calls_tools(("search_files", {"pattern": "x"})), "Milk it is."])
        answer = await api.post(RESPONSES, {"input": "what else?", "conversation": one["id"]})
        assert answer.json["conversation"] == {"id": one["id"]}
        assert heard(model)[:2] == ["We need milk.", "what else?"]
        added = await api.post(f"{path}/items", {"items": [{"role": "user", "content": "And bread."}]})
        assert texts(added.json["data"]) == ["And bread."]
        model.says("Noted.")
        await api.post(RESPONSES, {"input": "done", "conversation": {"id": one["id"]}})
        assert heard(model)[-3:] == ["Milk it is.", "And bread.", "done"]

        listed = (await api.get(f"{path}/items?order=asc&limit=100")).json
        assert texts(listed["data"]) == [
            "We need milk.",
            "what else?",
            "function_call",
            "function_call_output",
            "Milk it is.",
            "And bread.",
            "done",
            "Noted.",
        ]
        item = listed["data"][1]
        assert (await api.get(f"{path}/items/{item['id']}")).json == item
        page = (await api.get(f"{path}/items?order=asc&limit=2&after={item['id']}")).json
        assert (page["data"], page["has_more"]) == (listed["data"][2:4], True)

        changed = await api.post(path, {"metadata": {"topic": "drinks"}})
        assert changed.json == {**one, "metadata": {"topic": "drinks"}}
        gone = await api.call("DELETE", path)
        assert gone.json == {"id": one["id"], "object": "conversation.deleted", "deleted": True}
        assert (await api.get(path)).error["code"] == "conversation_not_found"


async def test_a_conversation_belongs_to_its_key(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(30):
        path = f"{PATH}/{(await made(api))['id']}"
        bob = await api.new_key("bob", "user")
        for method, where, body in (
            ("GET", path, None),
            ("POST", path, {"metadata": {}}),
            ("DELETE", path, None),
            ("GET", f"{path}/items", None),
            ("POST", f"{path}/items", {"items": []}),
        ):
            assert (await api.call(method, where, body, **bob)).status == 404
        assert (await api.get(path)).status == 200


async def test_items_that_cannot_be_taken_in_are_refused_when_they_are_added(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(30):
        bad = await api.post(PATH, {"items": [{"type": "video"}]})
        assert (bad.status, bad.error["param"]) == (400, "items[0].type")
        many = await api.post(PATH, {"items": [{"role": "user", "content": "x"}] * 21})
        assert (many.status, many.error["code"]) == (400, "too_many_items")


async def test_tokens_are_counted_with_the_conversation_before(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(30):
        alone = (await api.post(f"{RESPONSES}/input_tokens", {"input": "x" * 400})).json
        assert alone == {"object": "response.input_tokens", "input_tokens": 100}
        first = (await api.post(RESPONSES, {"input": "y" * 4000})).json
        body = {"input": "x" * 400, "previous_response_id": first["id"], "instructions": "z" * 400}
        assert (await api.post(f"{RESPONSES}/input_tokens", body)).json["input_tokens"] > 2000
        assert (await api.post(f"{RESPONSES}/input_tokens", {})).error["code"] == "missing_input"


async def test_a_compacted_conversation_goes_on_from_its_summary(start: Start, model: FakeModel) -> None:
    talk = [
        {"role": "user", "content": "My cat is called Mia."},
        {"role": "assistant", "content": "A fine name."},
        {"role": "user", "content": "She is four."},
    ]
    async with served(start) as api, asyncio.timeout(30):
        model.says("The cat Mia is four years old.")
        short = (await api.post(f"{RESPONSES}/compact", {"model": "hermes", "input": talk})).json
        assert short["object"] == "response.compaction"
        assert [item["type"] for item in short["output"]] == ["message", "message", "compaction"]
        assert short["usage"]["total_tokens"] == 19
        answer = await api.post(RESPONSES, {"input": [*short["output"], {"role": "user", "content": "Her name?"}]})
        assert answer.status == 200
        assert "The cat Mia is four years old." in heard(model)[-2]
        forged = {"type": "compaction", "encrypted_content": "AAAA"}
        refused = await api.post(RESPONSES, {"input": [forged, talk[0]]})
        assert (refused.status, refused.error["code"]) == (400, "invalid_compaction")

        first = (await api.post(RESPONSES, {"input": "hello"})).json
        model.says("They greeted.")
        chain = await api.post(f"{RESPONSES}/compact", {"previous_response_id": first["id"]})
        assert chain.json["output"][-1]["type"] == "compaction"
        model.fails_next(401, "wrong key")
        assert (await api.post(f"{RESPONSES}/compact", {"input": talk})).status == 502


async def test_a_picture_of_a_conversation_is_listed_as_it_was_sent(start: Start) -> None:
    picture = f"data:image/png;base64,{base64.b64encode(bytes(3000)).decode()}"
    said = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": picture}]
    async with served(start) as api, asyncio.timeout(30):
        one = await made(api)
        body = {"input": [{"role": "user", "content": said}], "conversation": one["id"]}
        assert (await api.post(RESPONSES, body)).status == 200
        items = (await api.get(f"{PATH}/{one['id']}/items?order=asc")).json["data"]
        assert items[0]["content"][1]["image_url"] == picture

"""Sampling fields of a request."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.messages import Sampling
from hermes.servers.api.bodies import ChatRequestBody, ResponseRequestBody, decode
from hermes.servers.api.errors import ApiError
from hermes.servers.api.input.sampling import read_effort, read_sampling


def chat(**fields: Any) -> Sampling | None:
    return read_sampling(decode({"messages": [], **fields}, ChatRequestBody))


def test_request_without_such_fields_has_none() -> None:
    assert chat() is None
    assert chat(stop=None, stop_sequences=[], logprobs=False, parallel_tool_calls=None, top_p=None) is None


def test_fields_are_read_as_they_are_sent() -> None:
    found = chat(top_p=0.5, presence_penalty=-1, frequency_penalty=1.5, seed=7, stop="END", parallel_tool_calls=False)
    assert found == Sampling(0.5, -1, 1.5, 7, ("END",), False)
    assert chat(stop=["a", "b"], top_logprobs=2) == Sampling(stop=("a", "b"), logprobs=True, top_logprobs=2)


def test_responses_ask_for_log_probabilities_by_what_they_include() -> None:
    body = decode({"input": "x", "include": ["message.output_text.logprobs"]}, ResponseRequestBody)
    assert read_sampling(body) == Sampling(logprobs=True)


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"logprobs": False, "top_logprobs": 2}, "top_logprobs"),
        ({"top_p": 2}, "top_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"top_logprobs": 21}, "top_logprobs"),
    ],
)
def test_value_out_of_range_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        chat(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_effort_of_openai_is_one_of_ours() -> None:
    assert [read_effort(word, "x") for word in (None, "none", "minimal", "medium", "xhigh")] == [
        "",
        "off",
        "low",
        "medium",
        "high",
    ]
    with pytest.raises(ApiError):
        read_effort("much", "x")

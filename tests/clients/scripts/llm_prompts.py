"""The `llm` package, with the gateway as a model of its OpenAI plugin."""

from __future__ import annotations

import llm
from llm.default_plugins.openai_models import Chat
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

model = Chat(MODEL, model_name=MODEL, api_base=BASE_URL, supports_tools=True)
model.key = KEY


def ask(text: str, **more: object) -> str:
    return model.prompt(text, key=KEY, **more).text()


def stream() -> str:
    return "".join(model.prompt("deploy stream", key=KEY, stream=True))


def chain(text: str) -> str:
    return model.chain(text, key=KEY, tools=[llm.Tool.function(get_weather)]).text()


def approval() -> str:
    talk = model.conversation()
    question = talk.prompt("danger chat", key=KEY).text()
    return talk.prompt(f"/approve {code_in(question)}", key=KEY).text()


def stop() -> int:
    seen = 0
    for _ in model.prompt("slow chat", key=KEY, stream=True):
        seen += 1
        if seen == STOP_AFTER:
            break
    return seen


main(
    chat=lambda: ask("hello", stream=False),
    stream=stream,
    own_tools=lambda: chain("weather"),
    gateway_tool=lambda: ask("deploy chat"),
    both=lambda: chain("both chat"),
    approval=approval,
    retry=lambda: ask("broken chat", stream=False),
    stop=stop,
)

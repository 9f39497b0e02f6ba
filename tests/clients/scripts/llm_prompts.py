"""The `llm` package, with the gateway as a model of its OpenAI plugin."""

from __future__ import annotations

import llm
from llm.default_plugins.openai_models import Chat
from scenarios import BASE_URL, KEY, MODEL, STOP_AFTER, code_in, get_weather, main

model = Chat(MODEL, model_name=MODEL, api_base=BASE_URL, supports_tools=True)
model.key = KEY


def ask(text: str, **more: object) -> str:
    return model.prompt(text, key=KEY, **more).text()


def stream(text: str) -> str:
    return "".join(model.prompt(text, key=KEY, stream=True))


def chain(text: str) -> str:
    return model.chain(text, key=KEY, tools=[llm.Tool.function(get_weather)]).text()


def approval(text: str) -> str:
    talk = model.conversation()
    question = talk.prompt(text, key=KEY).text()
    return talk.prompt(f"/approve {code_in(question)}", key=KEY).text()


def stop(text: str) -> int:
    seen = 0
    for _ in model.prompt(text, key=KEY, stream=True):
        seen += 1
        if seen == STOP_AFTER:
            break
    return seen


main(
    {
        "chat": lambda text: ask(text, stream=False),
        "stream": stream,
        "own_tools": chain,
        "gateway_tool": ask,
        "both": chain,
        "approval": approval,
        "retry": lambda text: ask(text, stream=False),
        "stop": stop,
    }
)

"""The whole gateway on a fake QQ, with a model that can be made to ask for leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.app.tools import TOOLS
from hermes.services.gateway import Gateway
from tests.fakes import tools
from tests.fakes.jumping import JumpingLoop, LoopClock
from tests.fakes.model import Answer, FakeModel, Json, Reply, calls_tools, last_user_text
from tests.fakes.qq import FakeQQ, openid


class AskingModel(FakeModel):
    """Echoes; a message that begins with "note" makes it use a tool that has to be allowed."""

    def _answer_to(self, body: Json) -> Answer:
        said = last_user_text(body).splitlines()[-1]
        if said.startswith("note") and body["messages"][-1]["role"] != "tool":
            return calls_tools(("note", {"text": said}))
        result = body["messages"][-1].get("content") if body["messages"][-1]["role"] == "tool" else ""
        return Reply(text=f"echo: {said}" + (f" ({str(result).splitlines()[0]})" if result else ""))


@asynccontextmanager
async def gateway_on(
    folder: Path, qq: FakeQQ, model: FakeModel, loop: JumpingLoop, clock: LoopClock
) -> AsyncIterator[Gateway]:
    """Ana (7) and Bo (8) may talk to it, and so may every group."""
    (folder / "work").mkdir(exist_ok=True)
    environ = {
        **qq.environ,
        "QQ_ALLOWED_USERS": f"{openid(7)},{openid(8)}",
        "QQ_GROUP_POLICY": "open",
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": model.url,
        "MESSAGING_CWD": str(folder / "work"),
        "SESSION_RESET_MODE": "none",
    }
    setting = GatewayOptions(home=folder / "home", environ=environ, cwd=folder, tools=(*TOOLS, tools), clock=clock)
    async with open_gateway(setting) as gateway:
        loop.watch(gateway.db)
        await qq.wait_for(lambda: qq.is_listening)
        yield gateway

"""Looking at pictures: which are shown to a model, and what is said when it cannot see."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hermes.agent.models.embedded.model import LABEL as BUILT_IN
from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.agent.tools.vision import vision
from hermes.agent.vision import MAX_IMAGE_BYTES, VisionModel, can_see, kind_of
from hermes.agent.web.safe_http import GuardedWeb
from hermes.config import WebConfig
from hermes.core.errors import ModelError, ModelErrorKind, ToolError
from hermes.core.messages import Role
from hermes.core.ports import ModelEvent, ModelReply, ModelRequest, TextDelta
from tests.fakes.web import PUBLIC, FakeNet, FakeSite

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class SeeingModel:
    """Says what it is told to; remembers what it was asked."""

    label: str = "openai / gpt-4o-mini"
    has_tools: bool = True
    answer: str = "A single dot."
    provider: str = "openai"
    error: ModelError | None = None
    asked: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        yield TextDelta(self.answer)
        yield ModelReply(self.answer, provider=self.provider)


@pytest.fixture
def model() -> SeeingModel:
    return SeeingModel()


@pytest.fixture
async def site() -> AsyncIterator[FakeSite]:
    async with FakeSite() as site:
        yield site


@pytest.fixture
def seeing(context: ToolContext, model: SeeingModel, site: FakeSite) -> ToolContext:
    net = FakeNet(places={PUBLIC: site.port})
    net.name("example.org", PUBLIC)
    web = GuardedWeb(lambda: WebConfig(max_bytes=20_000), resolve=net.resolve, place=net.place)
    return replace(context, parts=Parts(VisionModel(lambda _: model), web))


async def look(ctx: ToolContext, image: str, question: str = "What is it?") -> str:
    told = await vision(ctx, image, question)
    assert isinstance(told, str)
    return told


async def refusal(ctx: ToolContext, image: str, question: str = "What is it?") -> str:
    with pytest.raises(ToolError) as caught:
        await look(ctx, image, question)
    return str(caught.value)


async def test_a_picture_of_the_workspace_is_shown_to_the_model(
    seeing: ToolContext, model: SeeingModel, workspace: Path
) -> None:
    (workspace / "dot.png").write_bytes(PNG)
    told = await look(seeing, "dot.png")
    assert "A single dot." in told
    assert told.startswith("[Begin ")
    [request] = model.asked
    question = request.messages[-1]
    assert (question.role, question.text) == (Role.USER, "What is it?")
    assert question.images[0].url == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert not request.tools


async def test_a_picture_of_the_web_is_fetched_by_us_not_by_the_provider(
    seeing: ToolContext, model: SeeingModel, site: FakeSite
) -> None:
    site.serves("/dot", PNG, "image/png")
    assert "A single dot." in await look(seeing, "https://example.org/dot".replace("https", "http"))
    assert model.asked[0].messages[-1].images[0].url.startswith("data:image/png;base64,")


@pytest.mark.parametrize("url", ["http://127.0.0.1/dot.png", "http://169.254.169.254/x", "HTTP://localhost/x.png"])
async def test_the_web_is_guarded_here_too(seeing: ToolContext, model: SeeingModel, url: str) -> None:
    await refusal(seeing, url)
    assert not model.asked


@pytest.mark.parametrize(
    "path,told",
    [
        ("missing.png", "There is no file"),
        ("../outside.txt", "outside the workspace"),
        ("hermes/.env", "closed to tools"),
        ("notes", "is a folder"),
        ("notes/plan.txt", "no picture"),
        ("file:///etc/passwd", "is an address"),
    ],
)
async def test_a_path_is_guarded_and_must_be_a_picture(
    seeing: ToolContext, model: SeeingModel, path: str, told: str
) -> None:
    assert told in await refusal(seeing, path)
    assert not model.asked


async def test_a_picture_that_is_too_large_is_refused(seeing: ToolContext, workspace: Path, site: FakeSite) -> None:
    with (workspace / "large.png").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_IMAGE_BYTES + 1)
    assert "too large" in await refusal(seeing, "large.png")
    site.serves("/large", PNG + bytes(30_000), "image/png")
    assert "larger than 20,000 bytes" in await refusal(seeing, "http://example.org/large")


@pytest.mark.parametrize(
    "data,kind",
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_a_picture_is_known_by_its_first_bytes(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind


@pytest.mark.parametrize("data", [b"", b"<svg></svg>", b"%PDF-1.4", b"RIFF\0\0\0\0WAVE", b"BM\0\0", b"\x89PNG"])
def test_anything_else_is_no_picture(data: bytes) -> None:
    with pytest.raises(ToolError, match="PNG, JPEG, GIF and WebP"):
        kind_of(data)


async def test_the_built_in_model_is_known_to_see_nothing(
    seeing: ToolContext, model: SeeingModel, workspace: Path
) -> None:
    (workspace / "dot.png").write_bytes(PNG)
    model.label = BUILT_IN
    assert "vision.model" in await refusal(seeing, "dot.png")
    assert not model.asked
    model.label, model.provider = "openai / gpt-4o", BUILT_IN  # it fell back on it
    assert "cannot look at pictures" in await refusal(seeing, "dot.png")


@pytest.mark.parametrize(
    "kind,text,told",
    [
        (ModelErrorKind.REQUEST, "refused the request: this model does not support image input", "vision.model"),
        (ModelErrorKind.MODEL, "no endpoints found that support image input", "vision.model"),
        (ModelErrorKind.AUTH, "does not accept the key", "could not be looked at. My model"),
    ],
)
async def test_a_model_that_refuses_is_told_with_what_to_do(
    seeing: ToolContext, model: SeeingModel, workspace: Path, kind: ModelErrorKind, text: str, told: str
) -> None:
    (workspace / "dot.png").write_bytes(PNG)
    model.error = ModelError(kind, f"My model (openai) {text}.")
    assert told in await refusal(seeing, "dot.png")


async def test_a_question_is_needed(seeing: ToolContext) -> None:
    assert "'question'" in await refusal(seeing, "dot.png", "  ")


@pytest.mark.parametrize(
    "name,sees",
    [
        ("openai/gpt-4o-mini", True),
        ("gpt-5", True),
        ("o3", True),
        ("anthropic/claude-haiku-5-5", True),
        ("google/gemini-2.5-flash", True),
        ("qwen2.5-vl:7b", True),
        ("llava:13b", True),
        ("llama3.2-vision", True),
        ("smollm2-135m-instruct", False),
        ("gpt-3.5-turbo", False),
        ("llama-3.1-8b", False),
        ("deepseek-chat", False),
        ("fake-1", False),
    ],
)
def test_whether_a_model_sees_is_read_from_its_name(name: str, sees: bool) -> None:
    assert can_see(name) is sees

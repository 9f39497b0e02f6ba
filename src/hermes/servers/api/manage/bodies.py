"""Bodies of the routes behind the dashboard, declared as those of ``servers.api.bodies`` are."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hermes.servers.api.bodies import Name

Value = Annotated[str, Meta(max_length=20_000)]
Words = Annotated[str, Meta(min_length=1, max_length=100_000)]


class SignInBody(msgspec.Struct):
    code: Annotated[Name, Meta(description="of a link that `hermes dashboard` printed; works once")] | None = None
    key: Annotated[Name, Meta(description="an API key")] | None = None


class PersonChangeBody(msgspec.Struct):
    role: Literal["owner", "admin", "user", "guest"]


class LinkBody(msgspec.Struct):
    account: Annotated[Name, Meta(min_length=3, description="platform:user, such as telegram:5550142")]


class PlatformChangeBody(msgspec.Struct):
    settings: dict[Name, Value]


class PlatformTestBody(msgspec.Struct):
    settings: dict[Name, Value] = {}


class LoginAnswerBody(msgspec.Struct):
    text: Annotated[str, Meta(min_length=1, max_length=1000)]


class ModelTestBody(msgspec.Struct):
    provider: Name = ""
    model: Name = ""


class SettingsChangeBody(msgspec.Struct):
    settings: Annotated[dict[Name, Value | None], Meta(description="null: back to the default")]


class SteerBody(msgspec.Struct):
    text: Words

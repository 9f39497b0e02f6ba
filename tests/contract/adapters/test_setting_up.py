"""What set-up and the rules for groups ask of every platform, so that those to come inherit both."""

from __future__ import annotations

import asyncio

import pytest

from hermes.cli.wizard.platform import offered
from hermes.core.errors import CredentialsError
from hermes.core.keys import ChatKind
from hermes.core.manifest import Manifest
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Describes
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.server import FakeServer

SCREEN = 80


@pytest.mark.parametrize("manifest", offered(), ids=lambda manifest: manifest.id)
def test_a_person_can_answer_what_it_asks(manifest: Manifest) -> None:
    asked = [setting for setting in manifest.settings if setting.required or setting.asked]
    assert asked, "a platform that asks for nothing cannot be set up"
    assert manifest.ids, "say how a person finds their id"
    for setting in asked:
        assert setting.label, f"{setting.key} has no name that a person reads"
        assert setting.help or setting.get, f"nobody is told how to come by {setting.key}"
        assert all(len(f"  1. {line}") <= SCREEN for line in setting.get)
        assert setting.env.startswith(manifest.id.upper())


async def test_it_tells_who_it_is_without_running(server: FakeServer) -> None:
    async with asyncio.timeout(20), server.adapter() as adapter:
        if not isinstance(adapter, Describes):
            pytest.skip(f"{server.platform} has no name of its own")
        name = await adapter.describe()
    assert name.strip() == name != ""
    assert "\n" not in name


@pytest.mark.plays("credentials")
async def test_credentials_that_are_refused_are_told_as_such_when_it_is_tried(server: FakeServer) -> None:
    server.refuse_credentials()
    async with asyncio.timeout(20), server.adapter() as adapter:
        assert isinstance(adapter, Describes), "a token is tried at once when it is typed"
        with pytest.raises(CredentialsError) as refused:
            await adapter.describe()
    assert not [secret for secret in server.secrets if secret in str(refused.value)]


@pytest.mark.plays("groups")
async def test_in_a_group_a_mention_and_a_reply_are_for_us_and_nothing_else_is(
    server: FakeServer, inbox: Inbox
) -> None:
    async with asyncio.timeout(20), server.adapter() as adapter, receiving(adapter, inbox):
        server.user_says_in_group("lunch?", to_us=False)
        server.user_says_in_group("what do you think?", to_us=True)
        apart, mention = await inbox.message(), await inbox.message()
        await adapter.send(OutboundMessage(mention.session_key.target, "Soup."))
        server.user_answers(server.sent[-1], "which?")
        reply = await inbox.message()
    assert [each.is_addressed for each in (apart, mention, reply)] == [False, True, True]
    assert {each.session_key.kind for each in (apart, mention, reply)} == {ChatKind.GROUP}
    assert mention.text == "what do you think?", "our own name is no part of what is said to us"

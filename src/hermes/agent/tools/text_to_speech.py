"""text_to_speech: send a text as a voice message."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from hermes.agent.messaging import FileSender, GeneratedFile
from hermes.agent.speech.tts import Speech, Synthesizer
from hermes.agent.toolkit.context import ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.agent.workspace.files import place_of
from hermes.core.errors import ToolError
from hermes.core.keys import LOCAL
from hermes.core.messages import AttachmentKind
from hermes.core.roles import PersonRole
from hermes.store.db import Tx

FOLDER = "voice-memos"
SENT = "Said aloud: the voice message is on its way to this chat. Do not repeat its words in your reply."
SENT_AS_FILE = "Said aloud: the sound is on its way to this chat as a file. Do not repeat its words in your reply."


@tool(toolset="voice", seconds=240, is_personal=False)
async def text_to_speech(ctx: ToolContext, text: str) -> ToolOutput:
    """Say a text aloud, as a voice message to this chat. Only when the person wants to hear something.

    Plain sentences, as they are to be heard, without markup.
    """
    synthesizer = ctx.parts.get(Synthesizer)
    if await synthesizer.is_silent(str(ctx.origin)):
        raise ToolError("This chat wants nothing said aloud (/voice off). Write it instead.")
    post, target = ctx.parts.get(FileSender), ctx.origin.target
    limits = post.limits(target)
    as_voice = limits.media and limits.voice
    speech = await synthesizer.say(text, as_voice=as_voice, started_group=ctx.started_group)
    if not limits.media:
        return ToolOutput(f"Said aloud: the sound lies in {await asyncio.to_thread(_keep, ctx, speech)}.")
    is_voice = speech.is_voice and limits.voice
    kind = AttachmentKind.VOICE if is_voice else AttachmentKind.AUDIO
    made = GeneratedFile(speech.data, f"voice{speech.ending}", speech.mime, kind, f"ob_{ctx.call_id}.voice")
    parcel = await post.pack(target, made, str(ctx.origin))

    def store(tx: Tx) -> None:
        parcel.store(tx, now=post.now())

    return ToolOutput(SENT if is_voice else SENT_AS_FILE, effect=store, after=lambda: post.due(parcel.rows))


def _keep(ctx: ToolContext, speech: Speech) -> str:
    """Where there is no chat that takes files: in the owner's home at this machine, else in the workspace."""
    name = f"{FOLDER}/{ctx.call_id.replace(':', '-') or 'memo'}{speech.ending}"
    at_home = ctx.origin.platform == LOCAL and ctx.role is PersonRole.OWNER
    with place_of(replace(ctx, workspace=Path.home()) if at_home else ctx, name, makes_folders=True) as place:
        place.write(speech.data, token=ctx.call_id, mode=0o600)
        return str(place.target)

"""Prepare a turn that nobody began by writing: run its script, read its skills, or take its plain message."""

from __future__ import annotations

import asyncio

from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import ModelReply
from hermes.core.requests import SILENT
from hermes.core.roles import Action, may
from hermes.core.text import storable
from hermes.services.turns.turn import PreparationError, RunningTurn, TurnServices
from hermes.store.db import Tx
from hermes.store.entries import job_slots
from hermes.store.turns import steps

MARK = "[prepared for this run]"
INTERRUPTED = "the gateway stopped while the script {name} ran, and a script is not run twice for one due time"
NOT_ALLOWED = "the maker of the job may not run scripts on this machine any more"


async def prepare(parts: TurnServices, work: RunningTurn) -> ModelReply | None:
    """Return the answer where no model is to be asked; else add what the model reads first, and None."""
    options = work.options
    output = await _script_output(parts, work) if options.script else ""
    if options.answer:
        text = output if options.script else options.answer
        return ModelReply(text.strip() or SILENT)
    if work.steps or work.history[-1].text.startswith(MARK):
        return None  # done before a crash
    lines = [MARK]
    if options.script:
        lines.append(f"Output of the script {options.script}:\n{output.strip() or '(nothing)'}")
    if options.skills:
        lines.append(await asyncio.to_thread(parts.skill_texts, options.skills))
    message = ChatMessage(Role.USER, "\n\n".join(lines))
    now = parts.clock.now()
    await parts.db.write(steps.add_message, work.begun.claim, work.turn, message, now=now)
    work.history.append(message)
    return None


async def _script_output(parts: TurnServices, work: RunningTurn) -> str:
    """Run the script once for its slot. A script that a crash cut off is not run again: it may have acted."""
    from hermes.services.cron import scripts  # loaded when the first script is run

    options, db = work.options, parts.db
    if not may(work.role, Action.APPROVE_HOST):
        raise PreparationError(NOT_ALLOWED)
    if not await db.write(job_slots.begin_script, options.job, options.slot):
        return await db.read(_stored_output, options.job, options.slot, options.script)
    output, error = "", ""
    try:
        output = await scripts.run(
            parts.config().home,
            options.script,
            folder=options.folder,
            seconds=parts.config().cron.script_seconds,
        )
    except scripts.ScriptFailedError as failed:
        error = str(failed)
    output, error = parts.toolbox.hide(storable(output)), parts.toolbox.hide(storable(error))
    await db.write(job_slots.end_script, options.job, options.slot, output=output, error=error)
    if error:
        raise PreparationError(error)
    return output


def _stored_output(tx: Tx, job_id: str, slot: float, name: str) -> str:
    found = job_slots.slot_of(tx, job_id, slot)
    if found is None or found.script_state == "started":
        raise PreparationError(INTERRUPTED.format(name=name))
    if found.script_state == "failed":
        raise PreparationError(found.script_output)
    return found.script_output

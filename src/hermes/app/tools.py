"""Make the tools, the commands and the parts that they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from hermes.agent.backends.terminals import Terminals
from hermes.agent.messaging import MessageSender, OutgoingFiles
from hermes.agent.skills.library import SkillLibrary
from hermes.agent.speech.tts import Synthesizer
from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.agent.workspace.folders import WorkspaceFolders
from hermes.config import Config, ConfigWatch, EnvFiles, secret_variables
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.keys import LOCAL, SessionKey, Target
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole
from hermes.core.secret import Redactor
from hermes.services.http import ProxyRules, make_session
from hermes.services.outbound.alerts import home_channels
from hermes.services.outbound.media import Media
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import chat_settings
from hermes.store.db import Database
from hermes.store.outbox import OutboxKind, Outgoing

TOOLS: tuple[str, ...] = (
    "hermes.agent.tools.clarify",
    "hermes.agent.tools.cronjobs",
    "hermes.agent.tools.delegate_task",
    "hermes.agent.tools.execute_code",
    "hermes.agent.tools.find_tools",
    "hermes.agent.tools.kanban",
    "hermes.agent.tools.patch",
    "hermes.agent.tools.process",
    "hermes.agent.tools.read_file",
    "hermes.agent.tools.search_files",
    "hermes.agent.tools.send_message",
    "hermes.agent.tools.session_search",
    "hermes.agent.tools.skill_manage",
    "hermes.agent.tools.skill_view",
    "hermes.agent.tools.skills_list",
    "hermes.agent.tools.terminal",
    "hermes.agent.tools.text_to_speech",
    "hermes.agent.tools.todo",
    "hermes.agent.tools.vision",
    "hermes.agent.tools.web_extract",
    "hermes.agent.tools.web_search",
    "hermes.agent.tools.write_file",
)
"""Where the tools are. They are imported when the gateway answers already: see docs/adr/0014."""
COMMANDS: tuple[str, ...] = (
    "hermes.services.commands.about",
    "hermes.services.commands.agents",
    "hermes.services.commands.approve",
    "hermes.services.commands.settings.busy",
    "hermes.services.commands.sessions.compress",
    "hermes.services.commands.cron",
    "hermes.services.commands.kanban",
    "hermes.services.commands.settings.language",
    "hermes.services.commands.settings.model",
    "hermes.services.commands.owner",
    "hermes.services.commands.settings.personality",
    "hermes.services.commands.places",
    "hermes.services.commands.settings.reasoning",
    "hermes.services.commands.restart",
    "hermes.services.commands.sessions.retry",
    "hermes.services.commands.rollback",
    "hermes.services.commands.sessions.session",
    "hermes.services.commands.sessions.sessions",
    "hermes.services.commands.skills",
    "hermes.services.commands.tools",
    "hermes.services.commands.sessions.undo",
    "hermes.services.commands.usage",
    "hermes.services.commands.settings.verbose",
    "hermes.services.commands.settings.voice",
)


class ToolFactory:
    """Makes the parts of one home. ``parts`` is filled when all services are there; tools ask it by type."""

    def __init__(
        self, home: Path, environ: Mapping[str, str], redactor: Redactor, clock: Clock, watch: ConfigWatch
    ) -> None:
        self._home = home
        self._environ = environ
        self._redactor = redactor
        self._clock = clock
        self._watch = watch
        self.workspaces = WorkspaceFolders(home / "workspaces")
        self.parts = Parts()

    def _config(self) -> Config:
        return self._watch.current

    def _env_files(self) -> EnvFiles:
        return EnvFiles.of(self._home, self._environ)

    def post(self, outbox_writer: OutboxWriter, media: Media) -> MessageSender:
        def write(target: Target, text: str, key: str) -> list[Outgoing]:
            return outbox_writer.rows(OutboundMessage(target, text), OutboxKind.REPLY, key=key)

        async def mail(ctx: ToolContext, target: Target, text: str) -> OutgoingFiles:
            made = await media.compose(
                OutboundMessage(target, text), lambda: ctx, ENGLISH, turn_id="", lane=str(ctx.origin)
            )
            return OutgoingFiles(made.rows, made.files, made.refused)

        return MessageSender(write, mail, outbox_writer.due, lambda: home_channels(self._config()), self._clock.now)

    def open_http(self) -> aiohttp.ClientSession:
        return make_session(ProxyRules.of(self._config().proxies))

    def synthesizer(self, db: Database) -> Synthesizer:
        async def is_silent(lane: str) -> bool:
            return (await db.read(chat_settings.of_lane, lane)).voice == "off"

        return Synthesizer(self._config, self.open_http, is_silent)

    def open_proxied(self, url: str) -> aiohttp.ClientSession | None:
        rules = ProxyRules.of(self._config().proxies)
        return make_session(rules, auto_decompress=False) if rules.proxy_for(url) is not None else None

    def skills(self) -> SkillLibrary:
        files = self._env_files()
        return SkillLibrary(
            self._home,
            lambda: self._config().skills,
            value_of=lambda name: self._environ.get(name) or files.get(name),
            own_variables=lambda: secret_variables(self._watch.loaded),
            learn=self._redactor.learn,
            now=self._clock.now,
        )

    def terminals(self, db: Database, skills: SkillLibrary, host: str = "") -> Terminals:
        files = self._env_files()
        return Terminals(
            self._home,
            self._environ,
            self._config,
            db,
            self._clock,
            look_up=files.get,
            more_variables=skills.environment,  # the names; asked this way, their values are hidden from now on
            mask=self._redactor.mask,
            host=host,
        )

    def _may_work_in(self, folder: str) -> bool:
        """Not in our own home, whose folders are closed to tools."""
        if not folder or not os.path.isdir(folder):
            return False
        return not Path(os.path.realpath(folder)).is_relative_to(self._home.resolve())

    def context(self, key: SessionKey, person_id: str, role: str, folder: str = "") -> ToolContext:
        """Tools of the owner work in the home folder of whoever runs us, everybody else's in a folder of their own.

        On the machine's own command line the owner's work in the ``folder`` in which that is.
        """
        home = self._home
        workspace = self._config().agent.workspace
        is_shared = workspace is not None
        if key.platform in (LOCAL, "cron", "task") and role == PersonRole.OWNER and self._may_work_in(folder):
            workspace = Path(folder)
        if workspace is None:
            workspace = Path.home() if role == PersonRole.OWNER else self.workspaces.of(person_id)
        return ToolContext(
            "",
            key,
            person_id,
            workspace,
            forbidden=(home,),
            role=PersonRole(role or PersonRole.GUEST),
            parts=self.parts,
            is_shared=is_shared,
        )

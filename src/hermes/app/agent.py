"""Make the agent: models, skills, tools and what they work with, and the turns that use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes.agent.delegation import Delegation
from hermes.agent.entries import BoardAccess, Scheduling
from hermes.agent.messaging import FileSender
from hermes.agent.models.embedded.model import EmbeddedModel
from hermes.agent.prompt import PromptBuilder
from hermes.agent.session_search import SessionSearch
from hermes.agent.skills.enable import SkillSwitches
from hermes.agent.skills.render import SkillCalls
from hermes.agent.speech.stt import Transcriber
from hermes.agent.todos import TodoLists
from hermes.agent.toolkit.context import Parts
from hermes.agent.toolkit.schema import tools_of
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.toolkit.toolsets import Accesses
from hermes.agent.vision import VisionModel
from hermes.agent.web.reader import DocumentReader
from hermes.agent.web.safe_http import GuardedWeb
from hermes.agent.web.search.service import WebSearch
from hermes.agent.workspace.checkpoints import Checkpoints
from hermes.app.outbound import OutboundServices
from hermes.app.startup import ServiceContext
from hermes.services.approvals import Approvals
from hermes.services.models import Models
from hermes.services.outbound.media import Media
from hermes.services.outbound.voice_reply import VoiceReply
from hermes.services.prompt_context import surroundings_of, today
from hermes.services.requests.background import Background
from hermes.services.requests.requests import Requests
from hermes.services.requests.subtasks import Subtasks
from hermes.services.restart import RestartRequest
from hermes.services.turns import TurnRunner, TurnServices
from hermes.services.turns.attachments import Attachments
from hermes.services.turns.compression import Compression
from hermes.services.turns.lanes import Lanes

if TYPE_CHECKING:
    from hermes.agent.kanban import Board
    from hermes.services.cron.for_tools import ToolJobs


class AgentServices:
    """``parts``, which tools ask for by class, needs the lazily made services and is a call of its own."""

    def __init__(self, context: ServiceContext, outbound: OutboundServices) -> None:
        self._context = context
        self._outbound = outbound
        db, clock, config, home = context.db, context.clock, context.config, context.home
        options, tool_factory = context.options, context.tool_factory
        # Models and what they are given
        self.embedded = EmbeddedModel(home, context.startup.fetcher, wait_seconds=options.model_wait_seconds)
        self.models = Models(config, self.embedded, clock)
        self.skills = skills = tool_factory.skills()
        self.prompts = PromptBuilder(
            surroundings=lambda: surroundings_of(config()),
            today=lambda: today(config(), clock.now()),
            skills=lambda key, role: skills.index(key.platform, role),
        )
        self.toolbox = Toolbox(lambda: tools_of(*options.tools), access=Accesses(config), redact=context.redact)
        self.compression = Compression(db, clock, config, self.models.named, outbound.send)
        # What tools work with
        self.synthesizer = tool_factory.synthesizer(db)
        self.reader = DocumentReader()
        self.media = Media(outbound.spool, outbound.outbox_writer, self.synthesizer)
        self.session_search = SessionSearch(db, home, clock)
        self.checkpoints = Checkpoints(db, clock, home, lambda: config().checkpoints)
        self.terminals = tool_factory.terminals(db, skills, context.node_name)
        # Turns
        self.lanes = self._lanes()
        self.approvals = Approvals(db, clock, self.lanes.wake, outbound.cards, outbound.outbox_writer.due_target)
        self.requests = Requests(db, clock, context.bus, self.lanes, context.redact)

    def _runner(self) -> TurnRunner:
        context, outbound = self._context, self._outbound
        transcriber = Transcriber(context.config, context.tool_factory.open_http)
        return TurnRunner(
            TurnServices(
                context.db,
                context.clock,
                context.bus,
                outbound.outbox_writer,
                outbound.presenter,
                context.config,
                self.models.model_for,
                self.toolbox,
                self.prompts,
                context.tool_factory.context,
                Attachments(outbound.supervisor.reader_of, transcriber, self.reader),
                outbound.cards,
                self.compression.grown,
                self.media,
                VoiceReply(self.synthesizer, self.media, outbound.outbox_writer),
                outbound.spool,
                context.node.check if context.node is not None else None,
                context.node_name,
                self._skill_texts,
            )
        )

    def _lanes(self) -> Lanes:
        context, node = self._context, self._context.node
        compose = SkillCalls(self.skills, self.prompts.compose).compose
        lanes = Lanes(
            context.db,
            self._runner(),
            compose,
            context.config,
            context.clock,
            context.owner,
            self._outbound.outbox_writer,
        )
        if node is not None:
            takes_any = context.options.serves_all or not node.has_others()
            lanes.join(node.name, lambda lane: node.wakeups.send("lane", lane), takes_any=takes_any)
        return lanes

    def _skill_texts(self, names: Sequence[str]) -> str:
        from hermes.services.cron.for_tools import skill_texts  # with the first job that names skills

        return skill_texts(self.skills, names)

    def parts(self, jobs: Callable[[], ToolJobs], board: Callable[[], Board]) -> Parts:
        """Return what tools ask for by class."""
        context, outbound = self._context, self._outbound
        db, clock, config, watch = context.db, context.clock, context.config, context.watch
        tool_factory, outbox_writer = context.tool_factory, outbound.outbox_writer
        return Parts(
            self.toolbox,
            self.compression,
            self.session_search,
            self.checkpoints,
            TodoLists(db, clock),
            tool_factory.post(outbox_writer, self.media),
            Delegation(Subtasks(db, self.requests, self.lanes).run),
            GuardedWeb(lambda: config().web, tool_factory.open_proxied),
            self.reader,
            WebSearch(lambda: config().web, tool_factory.open_http),
            self.synthesizer,
            FileSender(outbox_writer.capabilities, self.media.pack, outbox_writer.due, clock.now),
            VisionModel(lambda key: self.models.named(config().vision.model, key)),
            self.terminals,
            self.skills,
            SkillSwitches(lambda: watch.loaded, watch.read_again),
            RestartRequest(context.options.restart, clock.now()),
            outbound.supervisor,
            outbound.presenter,
            Background(db, self.requests, self.lanes),
            Scheduling(jobs),
            BoardAccess(board),
        )

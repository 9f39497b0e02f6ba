"""Take webhooks: find the route, make the prompt, store the event with the names of its delivery."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from hermes.agent.web.untrusted import framed, without_unseen
from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.entries.webhook_prompt import RULE, render, render_plain, whole
from hermes.core.errors import GatewayError
from hermes.core.keys import LOCAL, AccountKey, ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import Clock
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.core.roles import PersonRole
from hermes.core.secret import Redactor, Secret
from hermes.core.targets.names import recipients
from hermes.core.text import one_line, storable
from hermes.services.outbound.alerts import home_channels
from hermes.services.turns.lanes import Lanes
from hermes.store import codec, inbox, people
from hermes.store.db import Database, Tx
from hermes.store.entries import webhooks
from hermes.store.entries.webhooks import WebhookRow
from hermes.store.inbox import InboxState, Incoming

PLATFORM = "webhook"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ROLES = (PersonRole.GUEST, PersonRole.USER)
SIGNATURES = ("auto", "github", "gitlab", "stripe", "slack", "svix", "hermes")
MAX_PROMPT_CHARS = 20_000
BRIEFING = (
    "A program reports something over a webhook, and nobody is writing. Your last message is delivered to a chat by "
    "itself. Say there what a person should know. If there is nothing worth telling, answer with [SILENT] alone."
)


@dataclass(frozen=True, slots=True)
class WebhookRoute:
    """Where a sender posts to. ``is_configured``: it stands in the configuration, which only its owner edits."""

    name: str
    secret: str
    signature: str = "auto"
    events: tuple[str, ...] = ()
    prompt: str = ""
    skills: tuple[str, ...] = ()
    deliver: str = ""
    deliver_only: bool = False
    role: PersonRole = PersonRole.GUEST
    enabled: bool = True
    rate_limit: int = 30
    is_configured: bool = False


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """One request that proved who sent it. ``keys`` name it for good."""

    event: str
    payload: Any
    keys: tuple[str, ...]
    id: str


class Webhooks:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        config: Callable[[], Config],
        lanes: Lanes,
        redactor: Redactor,
        changed: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._lanes = lanes
        self._redactor = redactor
        self._changed = changed
        self._subscribed: dict[str, WebhookRoute] = {}

    async def load(self) -> None:
        """Read the subscribed routes; their secrets are hidden from logs and prompts from now on."""
        rows = await self._db.read(webhooks.listed)
        self._redactor.learn([Secret(row.secret) for row in rows])
        self._subscribed = {row.name: _route(row, self._config().webhooks.rate_limit) for row in rows}

    def routes(self) -> dict[str, WebhookRoute]:
        """Return every route by its name. Those of the configuration go before subscribed ones."""
        settings = self._config().webhooks
        configured = {
            name: WebhookRoute(
                name,
                (route.secret or settings.secret or Secret("")).reveal(),
                route.signature,
                route.events,
                route.prompt,
                route.skills,
                route.deliver,
                route.deliver_only,
                PersonRole(route.role),
                route.enabled,
                route.rate_limit or settings.rate_limit,
                is_configured=True,
            )
            for name, route in settings.routes.items()
        }
        return {**self._subscribed, **configured}

    # Subscribing

    async def subscribe(self, fields: Mapping[str, Any]) -> WebhookRoute:
        """Make a route, or change the one of this name. Without a secret it gets a new one."""
        name = str(fields.get("name") or "")
        if not NAME.fullmatch(name):
            raise GatewayError("A route is named with small letters, digits, - and _, for example github-issues.")
        known = self.routes().get(name)
        if known is not None and known.is_configured:
            raise GatewayError(
                f"The route {name} stands in the configuration (webhooks.routes.{name}). Change it there."
            )
        row = WebhookRow(
            name=name,
            secret=_text(fields, "secret") or (known.secret if known else f"whsec_{secrets.token_urlsafe(32)}"),
            signature=_choice(fields, "signature", SIGNATURES, "auto"),
            events=",".join(_names(fields.get("events"))),
            prompt=_text(fields, "prompt")[:MAX_PROMPT_CHARS],
            skills=",".join(_names(fields.get("skills"))),
            deliver=_text(fields, "deliver"),
            deliver_only=int(bool(fields.get("deliver_only"))),
            role=_choice(fields, "role", tuple(map(str, ROLES)), PersonRole.GUEST.value),
            created_at=self._clock.now(),
        )
        if row.deliver_only and not (row.prompt and row.deliver):
            raise GatewayError("A route that only delivers needs a prompt, which is its message, and a deliver target.")
        self.targets(row.deliver)
        await self._db.write(webhooks.add, row)
        await self.load()
        self._changed()
        return self._subscribed[name]

    async def remove(self, name: str) -> None:
        known = self.routes().get(name)
        if known is not None and known.is_configured:
            raise GatewayError(
                f"The route {name} stands in the configuration (webhooks.routes.{name}). Remove it there."
            )
        if not await self._db.write(webhooks.remove, name):
            raise GatewayError(f"There is no route {one_line(name, 64)}. Look: hermes webhook list")
        await self.load()
        self._changed()

    def targets(self, deliver: str) -> tuple[str, ...]:
        """Return the targets of a route; none: the answer is kept and not sent. GatewayError in words."""
        if deliver in ("", "log", "none"):
            return ()
        homes = {AccountKey(LOCAL): "", **home_channels(self._config())}
        try:
            return tuple(map(str, recipients(deliver, origin=None, homes=homes)))
        except ValueError as error:
            raise GatewayError(str(error)) from None

    # Taking

    async def accept(self, route: WebhookRoute, delivery: WebhookDelivery) -> bool:
        """Store a delivery and wake its lane. False: it came before. What a sender wrote chooses no target."""
        request = self._request(route, delivery)
        incoming = Incoming(
            id=f"ev_wh_{_digest(route.name, delivery.keys[0])}",
            keys=tuple(f"{PLATFORM}:{route.name}:{_digest(key)}" for key in delivery.keys),
            lane=str(request.session_key),
            platform=PLATFORM,
            account="main",
            kind="webhook",
            sender_id=route.name,
            body=codec.dump(request),
            state=InboxState.QUEUED,
            ready_at=self._clock.now(),
            role=route.role.value,
        )
        is_new = await self._db.write(_accept, incoming, route, now=self._clock.now())
        if is_new:
            self._lanes.wake(incoming.lane)
        return is_new

    def _request(self, route: WebhookRoute, delivery: WebhookDelivery) -> AgentRequest:
        is_plain = route.deliver_only
        filled = render_plain(route.prompt, delivery.payload, without_unseen) if is_plain else _prompt(route, delivery)
        text = self._redactor(storable(filled))
        digest = _digest(route.name, delivery.keys[0])
        return AgentRequest(
            RequestKind.RUN,
            SessionKey(PLATFORM, ChatKind.DM, f"{route.name}-{digest}"),
            route.name,
            (ChatMessage(Role.USER, text),),
            TurnOptions(
                instructions=f"{BRIEFING}\n{RULE}",
                deliver=self.targets(route.deliver),
                answer=text if is_plain else "",
                skills=() if is_plain else route.skills,
                may_be_silent=not is_plain,
            ),
        )


def _prompt(route: WebhookRoute, delivery: WebhookDelivery) -> str:
    """The operator's template with a stranger's fields, or the whole payload in a frame."""
    if route.prompt and "{payload}" not in route.prompt:
        return render(route.prompt, delivery.payload, without_unseen)
    asked = route.prompt.replace("{payload}", "").strip() or "Tell what happened in a few sentences."
    source = f"the webhook {route.name}" + (f", event {delivery.event}" if delivery.event else "")
    return f"{render(asked, delivery.payload, without_unseen)}\n\n{framed(whole(delivery.payload), source)}"


def _accept(tx: Tx, incoming: Incoming, route: WebhookRoute, *, now: float) -> bool:
    person = people.ensure(
        tx,
        people.first_id(PLATFORM, route.name),
        platform=PLATFORM,
        user_id=route.name,
        name=f"webhook {route.name}",
        role=route.role.value,
        now=now,
    )
    if person.role != route.role.value:
        people.set_role(tx, person.id, route.role.value)
    [accepted] = inbox.accept(tx, [incoming], now=now)
    return accepted.is_new


def _route(row: WebhookRow, rate_limit: int) -> WebhookRoute:
    return WebhookRoute(
        row.name,
        row.secret,
        row.signature,
        tuple(filter(None, row.events.split(","))),
        row.prompt,
        tuple(filter(None, row.skills.split(","))),
        row.deliver,
        bool(row.deliver_only),
        PersonRole(row.role) if row.role in ROLES else PersonRole.GUEST,
        rate_limit=rate_limit,
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _text(fields: Mapping[str, Any], name: str) -> str:
    return storable(str(fields.get(name) or "")).strip()


def _names(value: Any) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else list(value or ())
    return [storable(str(part)).strip() for part in parts if str(part).strip()]


def _choice(fields: Mapping[str, Any], name: str, known: tuple[str, ...], default: str) -> str:
    value = _text(fields, name) or default
    if value not in known:
        raise GatewayError(f"{name} is one of {', '.join(known)}, not {one_line(value, 40)!r}.")
    return value

"""Sign people in to the dashboard, know them by their cookie, and end sign-ins.

A cookie is accepted only from our own page: the browser says which page asks (``Origin``, ``Sec-Fetch-Site``), and a
request that changes something repeats a token that no other page can read. Only hashes of cookies and codes are stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from hermes import __version__
from hermes.core.i18n.languages import pick
from hermes.core.roles import Action, PersonRole, may
from hermes.core.text import one_line, storable
from hermes.servers.api.auth import DASHBOARD_COOKIE, ApiKeys
from hermes.servers.api.bodies import decode
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.limits import WrongKeys
from hermes.servers.api.manage.bodies import SignInBody
from hermes.servers.api.parse import read_body
from hermes.servers.api.security import READING_METHODS
from hermes.servers.app import json_response
from hermes.store import people
from hermes.store.api import sign_ins
from hermes.store.api.api_keys import DEFAULT_NAME, hash_of
from hermes.store.api.sign_ins import SignIn
from hermes.store.ids import new_id

CSRF_HEADER = "X-Hermes-CSRF"
NAME_OF_LINK = "dashboard"
"""The name of callers whom a link of `hermes dashboard` signed in."""
SEEN_SECONDS = 60.0
"""How often the use of a sign-in is noted."""
MAX_AGENT_CHARS = 120

SIGN_IN = web.RequestKey("sign_in", SignIn)

PAGES: tuple[tuple[str, Action], ...] = (
    ("chat", Action.TALK),
    ("overview", Action.SEE_COUNTS),
    ("messages", Action.READ_ALL),
    ("approvals", Action.READ_OWN),
    ("people", Action.MANAGE_PEOPLE),
    ("jobs", Action.READ_OWN),
    ("board", Action.READ_OWN),
    ("sessions", Action.READ_OWN),
    ("platforms", Action.SEE_DETAILS),
    ("skills", Action.READ_OWN),
    ("models", Action.SEE_DETAILS),
    ("logs", Action.SEE_DETAILS),
    ("settings", Action.SEE_DETAILS),
    ("usage", Action.READ_OWN),
)

log = logging.getLogger(__name__)


class Dashboard:
    """Who is signed in. One for each server, made by the first request that needs it."""

    def __init__(self, parts: ApiParts, keys: ApiKeys) -> None:
        self._gateway = parts.gateway
        self._db = parts.gateway.db
        self._clock = parts.gateway.clock
        self._keys = keys
        self._wrong = WrongKeys(parts.gateway.clock)

    # The gate

    async def caller(self, request: web.Request) -> Caller:
        """Return the caller of a request that shows a cookie. Raises ApiError where the cookie does not count."""
        token = cookie_of(request)
        check_own_page(request)
        sign_in = await self._db.read(sign_ins.find, hash_of(token), now=self._clock.now()) if token else None
        caller = await self._caller_of(sign_in) if sign_in is not None else None
        if caller is None or sign_in is None:
            raise signed_out()
        if request.method not in READING_METHODS:
            check_csrf(request, token)
        request[SIGN_IN] = sign_in
        await self._note_use(sign_in)
        return caller

    async def _caller_of(self, sign_in: SignIn) -> Caller | None:
        if not sign_in.key_hash:
            # Whoever types `hermes dashboard` sits at the machine. The cookie stands in no file of the gateway.
            return Caller(NAME_OF_LINK, PersonRole.OWNER, DEFAULT_NAME)
        return await self._keys.with_hash(sign_in.key_hash)

    async def _note_use(self, sign_in: SignIn) -> None:
        now = self._clock.now()
        if now - sign_in.seen_at >= SEEN_SECONDS:
            await self._db.write(sign_ins.saw, sign_in.id, now=now, until=now + self._seconds)

    @property
    def _seconds(self) -> float:
        return self._gateway.config.dashboard.sign_in_days * 86400.0

    # The routes

    async def sign_in(self, request: web.Request) -> web.Response:
        """``{code}`` of a link, once, or ``{key}``."""
        if not self._gateway.config.dashboard.enabled:
            raise not_found("The dashboard is switched off (dashboard.enabled).", code="dashboard_off")
        check_own_page(request)
        body = decode(await read_body(request), SignInBody)
        if bool(body.code) == bool(body.key):
            raise bad_request("Send either the code of a link, or an API key.", code="missing_field", param="code")
        key_hash = await self._proven(request, body)
        now, token = self._clock.now(), secrets.token_urlsafe(32)
        made = SignIn(
            new_id("si"),
            hash_of(token),
            key_hash,
            one_line(storable(request.remote or ""), 64),
            one_line(storable(request.headers.get(hdrs.USER_AGENT, "")), MAX_AGENT_CHARS),
            now,
            now,
            now + self._seconds,
        )
        await self._db.write(sign_ins.add, made)
        caller = await self._caller_of(made)
        if caller is None:
            raise signed_out()  # the key was revoked this moment
        log.info("Dashboard signed in", extra={"sign_in": made.id, "key": caller.name, "address": made.address})
        request[CALLER], request[SIGN_IN] = caller, made
        response = json_response(await self._session(request, token))
        self._set_cookie(request, response, token, int(self._seconds))
        return response

    async def _proven(self, request: web.Request, body: SignInBody) -> str:
        """Return the hash of the key that was shown, '' for a code. Raises ApiError for a wrong one."""
        if body.code:
            from hermes.servers.dashboard.peers import may_redeem

            is_theirs = await asyncio.to_thread(may_redeem, body.code, request.transport)
            if is_theirs and await self._db.write(sign_ins.redeem, hash_of(body.code), now=self._clock.now()):
                return ""
            words = "This link was used already, or is too old. Make another: hermes dashboard"
            if not is_theirs:
                words = "This link is for the user who opened it. For another browser: hermes dashboard --no-open"
            refusal = ApiError(401, words, code="invalid_code", kind="authentication_error")
        else:
            key = (body.key or "").strip()
            if await self._keys.who(key) is not None:
                return hash_of(key)
            words = "This API key is not known here, or it was revoked. List the keys: hermes api-key list"
            refusal = ApiError(401, words, code="invalid_api_key", kind="authentication_error")
        raise self._wrong.refuse(request) or refusal

    async def session(self, request: web.Request) -> web.Response:
        if SIGN_IN not in request:
            raise signed_out()  # a key was shown, and no cookie
        return json_response(await self._session(request, cookie_of(request)))

    async def _session(self, request: web.Request, token: str) -> dict[str, object]:
        caller, sign_in = request[CALLER], request[SIGN_IN]
        config, node = self._gateway.config, self._gateway.node
        person = await self._db.read(people.find, "api", caller.sender_id)
        spoken = (person.language if person is not None else "") or _accepted(request)
        return {
            "object": "dashboard.session",
            "id": sign_in.id,
            "name": caller.name,
            "role": caller.role.value,
            "csrf": csrf_of(token),
            "language": pick(config.language, spoken),
            "version": __version__,
            "node": node.name if node is not None else "",
            "base_path": base_path_of(config.dashboard.base_path),
            "pages": [name for name, action in PAGES if may(caller.role, action)],
            "signed_in_at": sign_in.created_at,
            "expires_at": sign_in.expires_at,
        }

    async def sign_out(self, request: web.Request) -> web.Response:
        sign_in = request.get(SIGN_IN)
        if sign_in is None:
            raise signed_out()
        await self._db.write(sign_ins.revoke, sign_in.id)
        response = json_response({"id": sign_in.id, "object": "dashboard.sign_in", "deleted": True})
        self._set_cookie(request, response, "", 0)
        return response

    async def listed(self, request: web.Request) -> web.Response:
        found = await self._visible(request[CALLER])
        current = request.get(SIGN_IN)
        return json_response(
            {
                "object": "list",
                "data": [
                    {
                        "id": each.id,
                        "object": "dashboard.sign_in",
                        "name": caller.name,
                        "role": caller.role.value,
                        "created_at": each.created_at,
                        "seen_at": each.seen_at,
                        "expires_at": each.expires_at,
                        "address": each.address,
                        "agent": each.agent,
                        "is_this": current is not None and each.id == current.id,
                    }
                    for each, caller in found
                ],
            }
        )

    async def revoke(self, request: web.Request) -> web.Response:
        name = request.match_info["sign_in_id"]
        if not any(each.id == name for each, _ in await self._visible(request[CALLER])):
            words = f"There is no sign-in {name[:80]!r} for this key. GET /api/dashboard/sign-ins lists them."
            raise not_found(words, code="sign_in_not_found")
        await self._db.write(sign_ins.revoke, name)
        return json_response({"id": name, "object": "dashboard.sign_in", "deleted": True})

    async def _visible(self, caller: Caller) -> list[tuple[SignIn, Caller]]:
        """Return the sign-ins that count, with whose they are: all for the owner, else those of the same key."""
        found = await self._db.read(sign_ins.listed, now=self._clock.now())
        known = [(each, await self._caller_of(each)) for each in found]
        sees_all = may(caller.role, Action.MANAGE_KEYS)
        return [(each, whose) for each, whose in known if whose is not None and (sees_all or whose.id == caller.id)]

    def _set_cookie(self, request: web.Request, response: web.Response, token: str, seconds: int) -> None:
        response.set_cookie(
            cookie_name(request),
            token,
            max_age=seconds,
            path=f"{base_path_of(self._gateway.config.dashboard.base_path)}/",
            httponly=True,
            samesite="Strict",
            secure=request.scheme == "https",
        )


# Rules


def cookie_name(request: web.Request) -> str:
    """Name the cookie after the port: browsers share cookies among the ports of one host."""
    try:
        port = urlsplit(f"//{request.headers.get(hdrs.HOST, '')}").port
    except ValueError:
        port = None
    return f"{DASHBOARD_COOKIE}_{port}" if port else DASHBOARD_COOKIE


def cookie_of(request: web.Request) -> str:
    return request.cookies.get(cookie_name(request), "")


def csrf_of(token: str) -> str:
    """Return the token that our own page repeats with each change; the cookie cannot be computed from it."""
    return hashlib.sha256(f"csrf:{token}".encode()).hexdigest()


def check_csrf(request: web.Request, token: str) -> None:
    shown = request.headers.get(CSRF_HEADER, "")
    if shown and hmac.compare_digest(shown.encode("utf-8", "replace"), csrf_of(token).encode()):
        return
    code = "csrf_wrong" if shown else "csrf_missing"
    words = f"A change with the dashboard's cookie needs the header {CSRF_HEADER}: GET /api/dashboard/session has it."
    raise ApiError(403, words, code=code, kind="permission_error")


def check_own_page(request: web.Request) -> None:
    """Refuse a cookie that another page sends, also one of a listed origin or of another port of this host."""
    origin, host = request.headers.get(hdrs.ORIGIN), request.headers.get(hdrs.HOST, "")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    try:
        is_ours = origin is None or urlsplit(origin).netloc.casefold() == host.casefold()
    except ValueError:
        is_ours = False
    if is_ours and site in ("same-origin", "none"):
        return
    words = "Only the dashboard's own page may use its cookie. Other programs send an API key."
    raise ApiError(403, words, code="origin_not_allowed", kind="permission_error")


def signed_out() -> ApiError:
    words = "Nobody is signed in here, or the sign-in has ended. Sign in with a link (hermes dashboard) or an API key."
    return ApiError(401, words, code="signed_out", kind="authentication_error")


def base_path_of(setting: str) -> str:
    """Return ``/hermes`` for ``hermes``, ``/hermes`` and ``/hermes/``; '' for none."""
    bare = setting.strip().strip("/")
    return f"/{bare}" if bare else ""


def _accepted(request: web.Request) -> str:
    """Return the language that the browser asks for first, of those there are."""
    first = request.headers.get(hdrs.ACCEPT_LANGUAGE, "").split(",")[0].strip().casefold()
    return "zh" if first.startswith("zh") else "en" if first.startswith("en") else ""

"""`/api/platforms`: how each platform stands, its settings, a test, pausing, and signing in by QR code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from hermes.config.explain import explain_key
from hermes.config.values import looks_unfilled
from hermes.core.keys import LOCAL, MAIN, AccountKey
from hermes.core.manifest import Manifest, Setting, SettingKind
from hermes.core.roles import Action
from hermes.core.text import storable
from hermes.servers.api.bodies import decode
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.manage.bodies import LoginAnswerBody, PlatformChangeBody, PlatformTestBody
from hermes.servers.api.manage.demand import demand, demand_own_hand
from hermes.servers.api.manage.login import PlatformLogin
from hermes.servers.api.manage.settings import write_settings
from hermes.servers.api.parse import read_body
from hermes.servers.api.watch.overview import platform_to_dict, translated
from hermes.servers.app import json_response
from hermes.services.adapters import probe

TEXTS = ("sentence", "cure", "help", "label", "get", "ids", "lines", "question")


class PlatformRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self._logins: dict[str, PlatformLogin] = {}

    async def end(self, _app: web.Application) -> None:
        for login in self._logins.values():
            await login.stop()

    # Showing

    async def listed(self, request: web.Request) -> web.Response:
        demand(request[CALLER], Action.SEE_DETAILS)
        shown = [self._to_dict(manifest) for name, manifest in self._gateway.manifests.items() if name != LOCAL]
        return json_response(translated(request, {"object": "list", "data": shown}, TEXTS))

    async def show(self, request: web.Request) -> web.Response:
        demand(request[CALLER], Action.SEE_DETAILS)
        return self._response(request, self._manifest(request))

    def _response(self, request: web.Request, manifest: Manifest) -> web.Response:
        return json_response(translated(request, self._to_dict(manifest), TEXTS))

    def _to_dict(self, manifest: Manifest) -> dict[str, Any]:
        config = self._gateway.config
        accounts = [
            platform_to_dict(each)
            for each in self._gateway.supervisor.status()
            if AccountKey.parse(each["account"]).platform == manifest.id
        ]
        known = config.account(manifest.id)
        steps = [line for setting in manifest.settings for line in setting.get]
        return {
            "name": manifest.id,
            "object": "platform",
            "label": manifest.title,
            "is_set_up": known is not None and known.is_mentioned and not known.missing,
            "is_enabled": known is not None and known.enabled,
            "missing": list(known.missing) if known is not None else [],
            "accounts": [{**each, "is_paused": each["state"] in ("off", "paused")} for each in accounts],
            "settings": [self._setting(manifest, each) for each in manifest.settings],
            "has_login": manifest.sign_in is not None,
            "get": steps,
            "ids": manifest.ids,
            "link": manifest.link,
        }

    def _setting(self, manifest: Manifest, setting: Setting) -> dict[str, Any]:
        loaded = self._gateway.watch.loaded
        explanation = explain_key(loaded, loaded.schema.keys["platforms", manifest.id, setting.key])
        return {
            "name": setting.key,
            "label": setting.label or setting.key,
            "help": setting.help,
            "type": setting.kind.value,
            "is_secret": setting.kind is SettingKind.SECRET,
            "is_required": setting.required,
            "is_asked": setting.required or setting.asked,
            "value": explanation.value,
            "is_set": any(not each.note for each in explanation.stated),
            "source": explanation.winner,
            "env": setting.env,
        }

    # Changing

    async def change(self, request: web.Request) -> web.Response:
        """``{settings: {token: …}}``: written into the files of this node, and taken up at once."""
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        body = decode(await read_body(request), PlatformChangeBody)
        known = {each.key for each in manifest.settings}
        if not body.settings:
            raise bad_request("settings is empty.", code="invalid_value", param="settings")
        for name in body.settings:
            if name not in known and name not in ("enabled", "allowed_users", "home_channel"):
                words = f"{manifest.title} has no setting {name[:80]!r}. It has {', '.join(sorted(known))}."
                raise ApiError(400, words, code="unknown_setting", param=name)
        prefix = f"platforms.{manifest.id}."
        try:
            await write_settings(self._gateway, {f"{prefix}{name}": text for name, text in body.settings.items()})
        except ApiError as error:
            raise ApiError(
                400, error.message, code=error.code, param=(error.param or "").removeprefix(prefix)
            ) from None
        return self._response(request, manifest)

    async def test(self, request: web.Request) -> web.Response:
        """Ask the platform who we are, with these settings or those that are written."""
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        body = decode(await read_body(request) if await request.read() else {}, PlatformTestBody)
        values = _values(manifest, body.settings)
        tried = await probe.described(manifest, self._gateway.config, MAIN, values)
        ok = not tried.failure
        words = f"Signed in as {tried.name}." if ok and tried.name else "It answers." if ok else tried.failure
        outcome = {"object": "platform.test", "ok": ok, "name": tried.name, "sentence": words, "cure": tried.cure}
        return json_response(translated(request, {**outcome, "seconds": round(tried.seconds, 3)}, TEXTS))

    async def pause(self, request: web.Request) -> web.Response:
        return await self._switched(request, "false")

    async def resume(self, request: web.Request) -> web.Response:
        return await self._switched(request, "true")

    async def _switched(self, request: web.Request, value: str) -> web.Response:
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        known = self._gateway.config.account(manifest.id)
        if known is None or not known.is_mentioned:
            raise ApiError(409, f"{manifest.title} is not set up yet.", code="not_set_up", kind="conflict_error")
        await write_settings(self._gateway, {f"platforms.{manifest.id}.enabled": value})
        if value == "true":
            self._gateway.supervisor.resume(AccountKey(manifest.id, MAIN))
        return self._response(request, manifest)

    # Signing in

    async def begin_login(self, request: web.Request) -> web.Response:
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        if manifest.sign_in is None:
            words = f"{manifest.title} has no sign-in by QR code. Set its settings instead."
            raise ApiError(409, words, code="no_login", kind="conflict_error")
        login = self._logins.get(manifest.id)
        if login is None or login.is_over:
            login = self._logins[manifest.id] = PlatformLogin(self._gateway, manifest)
            login.start()
        return self._login_response(request, login, 202)

    async def login(self, request: web.Request) -> web.Response:
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        login = self._logins.get(manifest.id)
        if login is None:
            return json_response({"object": "platform.login", "state": "idle", **PlatformLogin.nothing()})
        wait = request.query.get("after", "")
        await login.changed(wait)
        return self._login_response(request, login)

    async def answer_login(self, request: web.Request) -> web.Response:
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        body = decode(await read_body(request), LoginAnswerBody)
        login = self._logins.get(manifest.id)
        if login is None or not login.answer(storable(body.text)):
            raise ApiError(409, "Nothing is asked just now.", code="nothing_asked", kind="conflict_error")
        return self._login_response(request, login)

    async def end_login(self, request: web.Request) -> web.Response:
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        manifest = self._manifest(request)
        login = self._logins.pop(manifest.id, None)
        if login is not None:
            await login.stop()
        return json_response({"id": manifest.id, "object": "platform.login", "deleted": True})

    def _login_response(self, request: web.Request, login: PlatformLogin, status: int = 200) -> web.Response:
        return json_response(translated(request, login.to_dict(), TEXTS), status)

    def _manifest(self, request: web.Request) -> Manifest:
        name = storable(request.match_info["name"])
        manifest = self._gateway.manifests.get(name)
        if manifest is None or name == LOCAL:
            raise not_found(f"There is no platform {name[:80]!r}. GET /api/platforms lists them.", code="no_platform")
        return manifest


def _values(manifest: Manifest, given: Mapping[str, str]) -> dict[str, Any]:
    """Parse settings as the files would be. ApiError names the one that is wrong."""
    from hermes.config.keys import platform_keys
    from hermes.config.values import parse

    keys = {key.path[-1]: key for key in platform_keys(manifest)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        key = keys.get(name)
        if key is None:
            raise ApiError(400, f"{manifest.title} has no setting {name[:80]!r}.", code="unknown_setting", param=name)
        if looks_unfilled(key, text):
            raise ApiError(400, f"{name} is empty, or an example.", code="invalid_setting", param=name)
        try:
            values[name] = parse(key, text)
        except ValueError as error:
            raise ApiError(400, f"{name} {error}", code="invalid_setting", param=name) from None
    return values

"""`/api/settings`: every setting with its value and where the value comes from; changed in the files, validated."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from hermes.config import Loaded, known_keys
from hermes.config.edit import check_value, set_values, unset_value
from hermes.config.explain import explain_key
from hermes.config.values import Key, Kind
from hermes.core.errors import ConfigError
from hermes.core.roles import Action
from hermes.core.text import storable
from hermes.servers.api.bodies import decode
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.manage.bodies import SettingsChangeBody
from hermes.servers.api.manage.demand import demand, demand_own_hand
from hermes.servers.api.parse import read_body
from hermes.servers.api.watch.overview import translated
from hermes.servers.app import json_response
from hermes.services.gateway import Gateway

MAX_CHANGES = 100
MAX_VALUE_CHARS = 2000
TYPES = {
    Kind.SECRET: "secret",
    Kind.SECRETS: "secret",
    Kind.NUMBER: "number",
    Kind.DURATION: "number",
    Kind.WHOLE: "whole",
    Kind.FLAG: "flag",
    Kind.LIST: "list",
    Kind.CHOICE: "choice",
    Kind.URL: "url",
}
SECRET_KINDS = (Kind.SECRET, Kind.SECRETS)


class SettingRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway

    async def listed(self, request: web.Request) -> web.Response:
        """``?query=``: those whose name, environment name or help holds these words. ``?language=zh``: in Chinese."""
        demand(request[CALLER], Action.SEE_DETAILS)
        words = storable(request.query.get("query", "")).casefold()
        loaded = self._gateway.watch.loaded
        every = [setting_to_dict(loaded, name, key) for name, key in known_keys(loaded).items()]
        translations = zip(every, translated(request, every, ("help",)), strict=True)
        shown = [
            setting
            for plain, setting in translations
            if not words
            or words in f"{plain['name']} {' '.join(plain['env'])} {plain['help']} {setting['help']}".casefold()
        ]
        return json_response({"object": "list", "data": sorted(shown, key=lambda setting: str(setting["name"]))})

    async def change(self, request: web.Request) -> web.Response:
        """``{settings: {name: text or null}}``: all of them are written, or none."""
        demand_own_hand(request[CALLER], Action.CHANGE_CONFIG)
        body = decode(await read_body(request), SettingsChangeBody)
        if not 0 < len(body.settings) <= MAX_CHANGES:
            raise bad_request(f"settings names 1 to {MAX_CHANGES} settings.", code="invalid_value", param="settings")
        notes = await write_settings(self._gateway, body.settings)
        loaded = self._gateway.watch.loaded
        keys = known_keys(loaded)
        shown = [setting_to_dict(loaded, name, keys[name]) for name in notes if name in keys]
        translations = [{**setting, "note": notes[str(setting["name"])]} for setting in shown]
        return json_response({"object": "list", "data": translated(request, translations, ("help",))})


async def write_settings(gateway: Gateway, values: dict[str, str | None]) -> dict[str, str]:
    """Write settings into the files and take them up; return the note of each by its full name.

    ApiError 400 names the setting that is wrong, and then nothing was written. A value may be cleared by None. Changes
    that come at once are written one after the other.
    """
    async with gateway.watch.editing:
        return await _write_alone(gateway, values)


async def _write_alone(gateway: Gateway, values: dict[str, str | None]) -> dict[str, str]:
    loaded = gateway.watch.loaded
    notes: dict[str, str] = {}
    for name, value in values.items():
        try:
            key = check_value(loaded, name, value)
        except ConfigError as error:
            code = "unknown_setting" if "There is no setting" in str(error) else "invalid_setting"
            raise ApiError(400, str(error), code=code, param=name) from None
        notes[key] = ""
    try:
        changes = await asyncio.to_thread(_write, loaded, values)
    except ConfigError as error:
        raise ApiError(400, str(error), code="invalid_setting", param=next(iter(values))) from None
    except OSError as error:
        words = f"The settings cannot be written: {error.strerror or error}."
        raise ApiError(503, words, code="settings_not_written", kind="server_error") from None
    await gateway.watch.read_again()
    return {**notes, **changes}


def _write(loaded: Loaded, values: dict[str, str | None]) -> dict[str, str]:
    given = {name: value for name, value in values.items() if value is not None}
    changes = set_values(loaded, given) if given else []
    changes += [unset_value(loaded, name) for name, value in values.items() if value is None]
    return {change.key: change.note for change in changes}


def setting_to_dict(loaded: Loaded, name: str, key: Key) -> dict[str, Any]:
    explanation = explain_key(loaded, key)
    counts = next((each for each in explanation.stated if not each.note), None)
    is_secret = key.kind in SECRET_KINDS
    return {
        "name": name,
        "object": "setting",
        "value": explanation.value[:MAX_VALUE_CHARS],
        "written": counts.value[:MAX_VALUE_CHARS] if counts is not None and not is_secret else "",
        "source": explanation.winner,
        "default": explanation.default[:MAX_VALUE_CHARS],
        "type": TYPES.get(key.kind, "text"),
        "choices": list(key.choices) if key.kind is Kind.CHOICE else [],
        "help": explanation.help,
        "env": list(explanation.env),
        "is_set": counts is not None,
        "is_secret": is_secret,
        "section": name.partition(".")[0] if "." in name else "",
        "needs_restart": key.needs_restart,
        "note": "",
    }

"""Build the typed snapshot from resolved keys, with the checks that look at more than one key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.config.agent_settings import (
    AgentConfig,
    ModelConfig,
    OwnerTerminal,
    ProviderConfig,
    TerminalConfig,
    WebConfig,
)
from hermes.config.automation import CronConfig
from hermes.config.keys import Schema
from hermes.config.providers import EMBEDDED, KNOWN, KnownProvider
from hermes.config.schema import (
    AccountConfig,
    ChatConfig,
    Config,
    Persona,
    Problem,
    ResetPolicy,
    ResetSettings,
    SessionsConfig,
)
from hermes.config.setting import Path as KeyPath
from hermes.config.setting import Section, declared_by
from hermes.config.values import Key, looks_unfilled, parse
from hermes.core.keys import LOCAL, MAIN
from hermes.core.lane import DOORS
from hermes.core.manifest import Manifest
from hermes.core.people.access import EVERYBODY, AccessPolicy, DmPolicy, GroupPolicy
from hermes.core.secret import Secret
from hermes.core.targets.patterns import ChatPattern

if TYPE_CHECKING:
    from hermes.config.resolved import Resolved


_Section = TypeVar("_Section")
_DECLARED: Any = object()
"""Stands for the default of a declaration."""


class Builder:
    """Builds one snapshot. What looks odd is added to ``problems``."""

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        schema: Schema,
        resolved: Mapping[KeyPath, Resolved],
        problems: list[Problem],
    ) -> None:
        self._home = home
        self._environ = environ
        self._schema = schema
        self._resolved = resolved
        self._problems = problems
        self._platforms = {manifest.id for manifest in schema.manifests}
        names = dict.fromkeys((*KNOWN, *self._names_under("providers")))
        if self._get("model", "base_url") and self._get("model", "provider"):
            names.setdefault(self._get("model", "provider"))  # `model:` alone describes it
        self._providers = {name: self._provider(name) for name in names}

    def config(self) -> Config:
        model, sessions = self._model(), self._sessions()
        accounts = {manifest.id: MappingProxyType(self._accounts(manifest)) for manifest in self._schema.manifests}
        return self._section(
            Config,
            (),
            home=self._home,
            model=model,
            providers=MappingProxyType(self._providers),
            platforms=MappingProxyType(accounts),
            agent=self._agent(),
            sessions=sessions,
            chats=self._chats(model.provider, sessions),
            model_routes=self._model_routes(),
            terminal=self._terminal(),
            web=self._web(),
            owners=self._owners(),
            cron=self._cron(),
        )

    def _section(self, of: type[_Section], prefix: KeyPath, **given: Any) -> _Section:
        """Fill a class with the values of its settings. ``given`` are fields that take more than that."""
        for name, declared in declared_by(of).items():  # type: ignore[arg-type] # a class is hashable
            if name in given:
                continue
            path = (*prefix, *declared.path)
            if path[-1:] == ("*",):
                given[name] = self._by_name(path[:-1], declared.of if isinstance(declared, Section) else None)
            elif isinstance(declared, Section):
                given[name] = self._section(declared.of, path)
            else:
                found = self._resolved.get(path)
                given[name] = declared.default if found is None else found.value
        return of(**given)

    def _by_name(self, prefix: KeyPath, of: type[Any] | None = None) -> Mapping[str, Any]:
        """What stands under names that the owner chose: a section each, or one value."""
        names = self._names_under(*prefix)
        if of is not None:
            return MappingProxyType({name: self._section(of, (*prefix, name)) for name in names})
        values = {name: self._resolved[(*prefix, name)].value for name in names}
        return MappingProxyType({name: value for name, value in values.items() if value is not None})

    def _get(self, *path: str, default: Any = _DECLARED) -> Any:
        """The value of a key, else the ``default``. Keys under names that the owner chose need one."""
        found = self._resolved.get(path)
        if found is not None and found.value is not None:
            return found.value
        return self._schema.keys[path].default if default is _DECLARED else default

    def _names_under(self, *prefix: str) -> list[str]:
        size = len(prefix)
        return list(dict.fromkeys(path[size] for path in self._resolved if path[:size] == prefix and len(path) > size))

    def _warn(self, where: str, text: str, hint: str, repair: tuple[str, ...] = ()) -> None:
        self._problems.append(Problem("warning", where, text, hint, repair))

    def _agent(self) -> AgentConfig:
        folder: str = self._get("agent", "workspace", default="")
        if folder == "~" or folder.startswith("~/"):
            folder = str(Path(self._environ.get("HOME") or Path.home()) / folder[2:])
        return self._section(AgentConfig, ("agent",), workspace=Path(folder) if folder else None)

    def _terminal(self) -> TerminalConfig:
        terminal = self._section(TerminalConfig, ("terminal",))
        if "docker" in (terminal.backend, terminal.others) and not terminal.docker_image:
            self._warn("terminal.docker_image", "is not set, so nothing can run in docker.", "Name an image.")
        if terminal.backend is OwnerTerminal.SSH and not terminal.ssh_host:
            self._warn("terminal.ssh_host", "is not set, so nothing can run over ssh.", "Name a machine.")
        return terminal

    def _cron(self) -> CronConfig:
        cron = self._section(CronConfig, ("cron",))
        if cron.quiet_hours:
            from hermes.core.entries.job_slots import QuietHours  # few have any

            try:
                QuietHours.parse(cron.quiet_hours)
            except ValueError as error:
                self._warn("cron.quiet_hours", "counts as empty.", str(error))
        return cron

    def _web(self) -> WebConfig:
        ports = [str(port) for port in self._get("web", "ports")]
        numbers = [int(port) for port in ports if port.isascii() and port.isdigit() and 0 < int(port) < 65536]
        if len(numbers) < len(ports):
            self._warn("web.ports", "holds something that is no port, which is left out.", "Ports are 1 to 65535.")
        return self._section(WebConfig, ("web",), ports=tuple(numbers))

    # Sessions and chats

    def _sessions(self) -> SessionsConfig:
        prefix = ("sessions",)
        general = self._reset((*prefix, "reset"), ResetPolicy())
        narrower = {
            field: MappingProxyType(
                {name: self._reset((*prefix, field, name), general) for name in self._names_under(*prefix, field)}
            )
            for field in ("reset_by_platform", "reset_by_kind")
        }
        return self._section(SessionsConfig, prefix, reset=general, **narrower)

    def _reset(self, prefix: KeyPath, inherited: ResetPolicy) -> ResetPolicy:
        return ResetPolicy(
            **{name: self._get(*prefix, name, default=getattr(inherited, name)) for name in declared_by(ResetSettings)}
        )

    def _chats(self, provider: str, sessions: SessionsConfig) -> tuple[tuple[ChatPattern, ChatConfig], ...]:
        found = {ChatPattern.parse(name): name for name in self._names_under("chats")}
        chats = {pattern: self._chat(name, pattern, provider, sessions) for pattern, name in found.items()}
        known = self._platforms | DOORS
        for pattern in chats:
            if pattern.platform not in known:
                self._warn("chats", f"names the platform {pattern.platform!r}.", f"Known: {', '.join(sorted(known))}.")
        return tuple(sorted(chats.items(), key=lambda item: item[0].narrowness))

    def _chat(self, name: str, pattern: ChatPattern, provider: str, sessions: SessionsConfig) -> ChatConfig:
        prefix = ("chats", name)
        wider = sessions.reset_by_platform.get(pattern.platform) or sessions.reset
        has_reset = bool(self._names_under(*prefix, "reset"))
        return self._section(
            ChatConfig,
            prefix,
            model=self._model_of_chat(self._get(*prefix, "model", default=""), provider),
            persona=self._persona_of_chat(name),
            reset=self._reset((*prefix, "reset"), wider) if has_reset else None,
        )

    def _model_of_chat(self, wanted: str, current: str) -> str:
        """As ``provider/model``. A name without a provider that can be asked is a model of the one in use."""
        if not wanted or ("model_routes", wanted) in self._resolved:
            return str(self._get("model_routes", wanted, default="")) if wanted else ""
        provider = self._providers.get(wanted.partition("/")[0])
        always = {current, EMBEDDED, *(known.name for known in KNOWN.values() if known.is_local)}
        if provider is None or not (provider.name in always or self._is_configured(provider)):
            return f"{current}/{wanted}"
        return wanted if "/" in wanted else f"{wanted}/{provider.default_model}"

    def _persona_of_chat(self, name: str) -> Persona | None:
        if text := self._get("chats", name, "persona", default=""):
            return Persona(text)
        wanted = self._get("chats", name, "personality", default="")
        text = self._get("personalities", wanted, default="") if wanted else ""
        if wanted and not text:
            known = ", ".join(self._names_under("personalities")) or "none"
            self._warn(f"chats.{name}.personality", f"names {wanted!r}, and there is none.", f"Known: {known}.")
        return Persona(text, wanted) if text else None

    # Providers and the model

    def _provider(self, name: str) -> ProviderConfig:
        known = KNOWN.get(name, KnownProvider(name, "", ""))
        prefix = ("providers", name)
        keys = self._keys(name, self._get(*prefix, "api_key_env", default=""))
        return self._section(
            ProviderConfig,
            prefix,
            name=name,
            api_key=keys[0] if keys else None,
            api_keys=keys,
            base_url=self._get(*prefix, "base_url", default=known.base_url),
            api_mode=self._get(*prefix, "api_mode", default=known.api_mode),
            default_model=self._get(*prefix, "default_model", default=known.default_model),
        )

    def _keys(self, name: str, api_key_env: str) -> tuple[Secret, ...]:
        """All keys of a provider: those in the variables that are named, else the one; then the further ones."""
        single = self._get("providers", name, "api_key", default=None)
        variables = api_key_env.split(",") if api_key_env else []
        named = {variable: self._key_in(name, variable) if len(variables) > 1 else single for variable in variables}
        for variable, key in named.items():
            if key is None:
                self._warn(
                    f"providers.{name}.api_key_env",
                    f"names {variable}, which is not set.",
                    f"Add a line {variable}=… to .env; it is used at once.",
                )
        found = [key for key in named.values() if key] or [single] * bool(single)
        return tuple(dict.fromkeys((*found, *self._get("providers", name, "api_keys", default=()))))

    def _key_in(self, name: str, variable: str) -> Secret | None:
        """The key that one of several variables holds, in the place that is heard first."""
        resolved = self._resolved.get(("providers", name, "api_key"))
        for entry in resolved.entries if resolved else ():
            if entry.source.written == variable and not looks_unfilled(entry.key, entry.raw):
                try:
                    key: Secret = parse(entry.key, entry.raw)
                except ValueError:  # reported when the key itself is resolved
                    continue
                return key
        return None

    def _model(self) -> ModelConfig:
        wanted: str = self._get("model", "default")
        prefix = wanted.partition("/")[0] if "/" in wanted else ""
        provider = self._chosen_provider(wanted, prefix)
        is_vendor_name = provider in KNOWN and KNOWN[provider].is_relay and prefix in KNOWN
        if prefix in self._providers and prefix != provider and not is_vendor_name:
            self._warn(
                "model.default",
                f"is {wanted!r}, but model.provider is {provider}, so it is asked of {provider}.",
                f"Set model.provider to {prefix} if you meant that one.",
                ("set", "model.provider", prefix),
            )
        elif provider == EMBEDDED and wanted and wanted != KNOWN[EMBEDDED].default_model:
            self._warn(
                "model.default",
                f"is {wanted!r}, but no provider of it is set up, so the built-in model answers.",
                "Name one in model.provider, or set its key, for example OPENAI_API_KEY.",
            )
        for fallback in self._get("model", "fallbacks"):
            no_provider = f"names {fallback!r}, and there is no provider {fallback.partition('/')[0]}."
            self._is_route(fallback, "model.fallbacks", no_provider)
        own = self._providers.get(provider)
        default = wanted or (own.default_model if own else "")
        if not default:
            self._warn("model.default", f"is not set, and provider {provider} has no default.", "Name a model.")
        api_mode = self._get("model", "api_mode") or (own.api_mode if own else "")
        return self._section(ModelConfig, ("model",), default=default, provider=provider, api_mode=api_mode)

    def _chosen_provider(self, wanted: str, prefix: str) -> str:
        """The one that was named; else the model's own prefix; else the first that was configured; else ours."""
        if named := self._get("model", "provider"):
            folded = {name.casefold(): name for name in self._providers}
            found = named if named in self._providers else folded.get(named.casefold())
            if found is None and not self._get("model", "base_url"):
                hint = f"Known: {', '.join(self._providers)}. Add providers.{named}.base_url."
                text = f"names {named!r}, which is not configured."
                self._problems.append(Problem("error", "model.provider", text, hint))
            return str(found or named)
        if prefix in self._providers and self._is_configured(self._providers[prefix]):
            return prefix
        configured = [name for name, provider in self._providers.items() if self._is_configured(provider)]
        owners_own = [name for name in configured if name not in KNOWN]
        # A local server alone names no model.
        ready = [name for name in configured if wanted or self._providers[name].default_model]
        return next(iter((*owners_own, *(name for name in ready if name != EMBEDDED))), EMBEDDED)

    def _is_configured(self, provider: ProviderConfig) -> bool:
        """A key is enough where the address is known; an address is enough for servers that ask for no key."""
        return bool(provider.api_key) or ("providers", provider.name, "base_url") in self._resolved

    def _is_route(self, route: str, where: str, text: str) -> bool:
        """Whether a ``provider/model`` names a provider there is; where not, the owner is warned."""
        if route.partition("/")[0] in self._providers:
            return True
        self._warn(where, text, f"Write provider/model; known: {', '.join(self._providers)}.")
        return False

    def _model_routes(self) -> Mapping[str, str]:
        text = "leads to {!r}, and there is no such provider, so the default model answers."
        routes = self._by_name(("model_routes",)).items()
        return MappingProxyType(
            {name: to for name, to in routes if self._is_route(to, f"model_routes.{name}", text.format(to))}
        )

    # Platforms

    def _accounts(self, manifest: Manifest) -> dict[str, AccountConfig]:
        further = self._names_under("platforms", manifest.id, "accounts")
        accounts = {MAIN: self._account(manifest, ("platforms", manifest.id))}
        for name in further:
            accounts[name] = self._account(manifest, ("platforms", manifest.id, "accounts", name))
        for name, account in accounts.items():
            if account.is_mentioned and account.enabled and not (name == MAIN and further):
                self._check_required(manifest, name, account)
        return accounts

    def _account(self, manifest: Manifest, prefix: KeyPath) -> AccountConfig:
        main = ("platforms", manifest.id)
        # What makes an account itself is its own; rules, addresses and proxies hold for the whole platform.
        own_only = {setting.key for setting in manifest.settings if setting.required}
        own_only |= {"enabled", "home_channel", "home_channel_name"}
        given: dict[str, Any] = {}
        for key in self._schema.of_platform[manifest.id]:
            last = key.path[-1]
            found = self._resolved.get((*prefix, last))
            if found is None and prefix != main and last not in own_only:
                found = self._resolved.get((*main, last))
            given[last] = key.default if found is None or found.value is None else found.value
        users = {manifest.tidy_id(user) for user in (*given["allowed_users"], *self._allowed_everywhere(manifest.id))}
        access = AccessPolicy(
            dm_policy=DmPolicy(given["dm_policy"]),
            group_policy=GroupPolicy(given["group_policy"]),
            allowed_users=frozenset(users - {EVERYBODY}),
            allow_all=given["allow_all_users"] or self._get("gateway", "allow_all_users") or EVERYBODY in users,
            group_allowed_chats=frozenset(map(manifest.tidy_group, given["group_allowed_chats"])),
            require_mention=given["require_mention"],
        )
        return AccountConfig(
            **{name: given[name] for name, declared in declared_by(AccountConfig).items() if isinstance(declared, Key)},
            values=MappingProxyType({setting.key: given[setting.key] for setting in manifest.settings}),
            access=access,
            missing=tuple(each.key for each in manifest.settings if each.required and not given[each.key]),
            is_mentioned=any(path[:-1] == prefix for path in self._resolved),
        )

    def _allowed_everywhere(self, platform: str) -> Iterator[str]:
        """The ids of gateway.allowed_users that count on a platform: bare ones, and those that name it."""
        for user in self._get("gateway", "allowed_users"):
            named, colon, user_id = user.partition(":")
            if not colon or named not in self._platforms:  # some platforms' own ids hold a colon
                yield user
            elif named == platform:
                yield user_id
        for owner in self._get("owners"):
            named, _, user_id = owner.partition(":")
            if named == platform and user_id.strip() not in ("", EVERYBODY):
                yield user_id.strip()

    def _owners(self) -> tuple[str, ...]:
        """The owners as ``platform:id``, ids as the platform writes them. A bare id could be anybody."""
        tidy = {manifest.id: manifest.tidy_id for manifest in self._schema.manifests}
        found = []
        for written in self._get("owners"):
            platform, _, user = written.partition(":")
            if written == LOCAL:
                found.append(LOCAL)
            elif platform in tidy and user.strip() and user.strip() != EVERYBODY:
                found.append(f"{platform}:{tidy[platform](user.strip())}")
            else:
                known = ", ".join(sorted(tidy))
                hint = f"Write platform:id, for example telegram:5550142. Platforms: {known}."
                self._warn("owners", f"names {written!r}, which is nobody's id on a platform; it is left out.", hint)
        return tuple(dict.fromkeys(found))

    def _check_required(self, manifest: Manifest, name: str, account: AccountConfig) -> None:
        under = f"platforms.{manifest.id}" + ("" if name == MAIN else f".accounts.{name}")
        for setting in manifest.settings:
            if setting.key in account.missing:
                or_env = f" or {setting.env}" if setting.env and name == MAIN else ""
                text = f'{manifest.id} account "{name}" has no {setting.key}.'
                hint = f"Set {under}.{setting.key}{or_env}, then run `hermes doctor`."
                self._problems.append(Problem("error", under, text, hint))

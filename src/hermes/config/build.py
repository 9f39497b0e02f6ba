"""From resolved keys to the typed snapshot, with the checks that look at more than one key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.config.keys import Path as KeyPath
from hermes.config.keys import Schema
from hermes.config.providers import EMBEDDED, KNOWN, KnownProvider
from hermes.config.schema import (
    AccountConfig,
    AgentConfig,
    ApiConfig,
    ApprovalsConfig,
    BusyMode,
    ChatConfig,
    CheckpointsConfig,
    CompressionConfig,
    Config,
    DelegationConfig,
    DeliveryConfig,
    LogsConfig,
    ModelConfig,
    OthersTerminal,
    OwnerTerminal,
    Persona,
    Problem,
    ProviderConfig,
    ProxyConfig,
    ResetMode,
    ResetPolicy,
    SessionsConfig,
    SkillsConfig,
    SttConfig,
    TerminalConfig,
    ToolChoice,
    ToolProgressMode,
    TtsConfig,
    VisionConfig,
    WebConfig,
)
from hermes.config.values import looks_unfilled, parse
from hermes.core.access import EVERYBODY, AccessPolicy, DmPolicy, GroupPolicy
from hermes.core.chat_pattern import ChatPattern
from hermes.core.keys import MAIN
from hermes.core.lane import DOORS
from hermes.core.manifest import Manifest
from hermes.core.secret import Secret

if TYPE_CHECKING:
    from hermes.config.resolved import Resolved


_Section = TypeVar("_Section")


def config(
    home: Path,
    environ: Mapping[str, str],
    schema: Schema,
    resolved: Mapping[KeyPath, Resolved],
    problems: list[Problem],
) -> Config:
    return _Builder(home, environ, schema, resolved, problems).config()


class _Builder:
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

    def config(self) -> Config:
        providers = self._providers()
        model, sessions = self._model(providers), self._sessions()
        return Config(
            home=self._home,
            model=model,
            providers=MappingProxyType(providers),
            platforms=MappingProxyType(
                {manifest.id: MappingProxyType(self._accounts(manifest)) for manifest in self._schema.manifests}
            ),
            database_url=self._get("database", "url"),
            language=self._get("language"),
            timezone=self._get("timezone"),
            agent=self._agent(),
            sessions=sessions,
            personalities=self._chosen("personalities"),
            chats=self._chats(model.provider, providers, sessions),
            checkpoints=self._section(CheckpointsConfig, "checkpoints"),
            delivery=self._section(DeliveryConfig, "delivery"),
            approvals=self._approvals(),
            delegation=self._section(DelegationConfig, "delegation"),
            api=self._section(ApiConfig, "api"),
            model_routes=self._model_routes(providers),
            terminal=self._terminal(),
            web=self._web(),
            vision=self._section(VisionConfig, "vision"),
            tts=self._section(TtsConfig, "tts"),
            stt=self._section(SttConfig, "stt"),
            tools=self._tools(),
            toolsets=self._chosen("toolsets"),
            context_windows=self._chosen("context_windows"),
            compression=self._section(CompressionConfig, "compression"),
            skills=self._skills(),
            logs=self._section(LogsConfig, "logs"),
            proxies=self._proxies(),
            always_log_local=self._get("always_log_local"),
        )

    def _get(self, *path: str) -> Any:
        found = self._resolved.get(path)
        return self._schema.keys[path].default if found is None else found.value

    def _values(self, kind: type[Any], section: str) -> dict[str, Any]:
        """The values of a section whose keys are named as the fields of its class."""
        return {field.name: self._get(section, field.name) for field in fields(kind)}

    def _section(self, kind: type[_Section], section: str) -> _Section:
        return kind(**self._values(kind, section))

    def _given(self, *path: str, default: Any = None) -> Any:
        """A value under a name the owner chose, where the table has no default of its own."""
        found = self._resolved.get(path)
        return default if found is None or found.value is None else found.value

    def _names_under(self, *prefix: str) -> list[str]:
        size = len(prefix)
        return list(dict.fromkeys(path[size] for path in self._resolved if path[:size] == prefix and len(path) > size))

    def _warn(self, where: str, text: str, hint: str) -> None:
        self._problems.append(Problem("warning", where, text, hint))

    def _agent(self) -> AgentConfig:
        workspace = self._get("agent", "workspace")
        mode = ToolProgressMode(self._get("agent", "tool_progress_mode"))
        return AgentConfig(
            max_iterations=self._get("agent", "max_iterations"),
            busy_mode=BusyMode(self._get("agent", "busy_mode")),
            workspace=self._folder(workspace) if workspace else None,
            tool_progress=mode if self._get("agent", "tool_progress") else ToolProgressMode.OFF,
            persona=self._get("agent", "persona"),
            join_pause_seconds=self._get("agent", "join_pause_seconds"),
            turn_timeout_seconds=self._get("agent", "turn_timeout_seconds"),
            identical_call_limit=self._get("agent", "identical_call_limit"),
        )

    def _approvals(self) -> ApprovalsConfig:
        return ApprovalsConfig(
            timeout_seconds=self._get("approvals", "timeout_seconds"),
            timeout_by_platform=self._by_name("approvals", "timeout_by_platform"),
            identical_timeouts=self._get("approvals", "identical_timeouts"),
        )

    def _proxies(self) -> ProxyConfig:
        return ProxyConfig(
            https=self._get("proxy", "https"),
            http=self._get("proxy", "http"),
            all=self._get("proxy", "all"),
            no_proxy=self._get("proxy", "none"),
        )

    def _terminal(self) -> TerminalConfig:
        given = self._values(TerminalConfig, "terminal")
        backend, others = OwnerTerminal(given["backend"]), OthersTerminal(given["others"])
        if "docker" in (backend.value, others.value) and not given["docker_image"]:
            self._warn("terminal.docker_image", "is not set, so nothing can run in docker.", "Name an image.")
        if backend is OwnerTerminal.SSH and not given["ssh_host"]:
            self._warn("terminal.ssh_host", "is not set, so nothing can run over ssh.", "Name a machine.")
        return TerminalConfig(**{**given, "backend": backend, "others": others})

    def _web(self) -> WebConfig:
        given = self._values(WebConfig, "web")
        numbers = [port for port in given["ports"] if port.isascii() and port.isdigit() and 0 < int(port) < 65536]
        if len(numbers) < len(given["ports"]):
            self._warn("web.ports", "holds something that is no port, which is left out.", "Ports are 1 to 65535.")
        return WebConfig(**{**given, "ports": tuple(map(int, numbers))})

    def _folder(self, text: str) -> Path:
        if text == "~" or text.startswith("~/"):
            return Path(self._environ.get("HOME") or Path.home()) / text[2:]
        return Path(text)

    def _sessions(self) -> SessionsConfig:
        general = self._reset(("sessions", "reset"), ResetPolicy())

        def by_name(section: str) -> Mapping[str, ResetPolicy]:
            prefix = ("sessions", section)
            return MappingProxyType(
                {name: self._reset((*prefix, name), general) for name in self._names_under(*prefix)}
            )

        return SessionsConfig(
            general,
            by_name("reset_by_platform"),
            by_name("reset_by_kind"),
            self._get("sessions", "reset_notice"),
            self._get("sessions", "group_sessions_per_user"),
        )

    # Single chats

    def _chats(
        self, current: str, providers: Mapping[str, ProviderConfig], sessions: SessionsConfig
    ) -> tuple[tuple[ChatPattern, ChatConfig], ...]:
        found = {
            ChatPattern.parse(name): self._chat(name, current, providers, sessions)
            for name in self._names_under("chats")
        }
        for pattern in found:
            self._check_platform(pattern)
        return tuple(sorted(found.items(), key=lambda item: item[0].narrowness))

    def _chat(
        self, name: str, current: str, providers: Mapping[str, ProviderConfig], sessions: SessionsConfig
    ) -> ChatConfig:
        busy_mode = self._given("chats", name, "busy_mode")
        has_reset = any(path[:3] == ("chats", name, "reset") for path in self._resolved)
        platform = ChatPattern.parse(name).platform
        wider = sessions.reset_by_platform.get(platform) or sessions.reset
        return ChatConfig(
            model=self._model_of_chat(name, current, providers),
            persona=self._persona_of_chat(name),
            toolsets=self._given("chats", name, "toolsets", default=()),
            busy_mode=BusyMode(busy_mode) if busy_mode else None,
            reset=self._reset(("chats", name, "reset"), wider) if has_reset else None,
            group_sessions_per_user=self._given("chats", name, "group_sessions_per_user"),
        )

    def _model_of_chat(self, name: str, current: str, providers: Mapping[str, ProviderConfig]) -> str:
        """As ``provider/model``. A name without a provider that can be asked is a model of the one in use."""
        wanted: str = self._given("chats", name, "model", default="")
        if not wanted or ("model_routes", wanted) in self._resolved:
            return str(self._given("model_routes", wanted, default="")) if wanted else ""
        provider = providers.get(wanted.partition("/")[0])
        if provider is None or not (provider.name in (current, EMBEDDED) or self._is_usable(provider)):
            return f"{current}/{wanted}"
        return wanted if "/" in wanted else f"{wanted}/{provider.default_model}"

    def _persona_of_chat(self, name: str) -> Persona | None:
        if text := self._given("chats", name, "persona", default=""):
            return Persona(text)
        wanted = self._given("chats", name, "personality", default="")
        text = self._given("personalities", wanted, default="") if wanted else ""
        if wanted and not text:
            known = ", ".join(self._names_under("personalities")) or "none"
            self._warn(f"chats.{name}.personality", f"names {wanted!r}, and there is none.", f"Known: {known}.")
        return Persona(text, wanted) if text else None

    def _check_platform(self, pattern: ChatPattern) -> None:
        known = {manifest.id for manifest in self._schema.manifests} | DOORS
        if pattern.platform not in known:
            self._warn("chats", f"names the platform {pattern.platform!r}.", f"Known: {', '.join(sorted(known))}.")

    def _reset(self, prefix: KeyPath, inherited: ResetPolicy) -> ResetPolicy:
        return ResetPolicy(
            mode=ResetMode(self._given(*prefix, "mode", default=inherited.mode)),
            at_hour=self._given(*prefix, "at_hour", default=inherited.at_hour),
            idle_minutes=self._given(*prefix, "idle_minutes", default=inherited.idle_minutes),
        )

    def _skills(self) -> SkillsConfig:
        prefix = ("skills", "platform_disabled")
        off = {name: self._given(*prefix, name, default=()) for name in self._names_under(*prefix)}
        return SkillsConfig(self._get("skills", "disabled"), MappingProxyType(off))

    # Providers and the model

    def _providers(self) -> dict[str, ProviderConfig]:
        names = dict.fromkeys((*KNOWN, *self._names_under("providers")))
        if self._get("model", "base_url") and self._get("model", "provider"):
            names.setdefault(self._get("model", "provider"))  # `model:` alone describes it
        return {name: self._provider(name) for name in names}

    def _provider(self, name: str) -> ProviderConfig:
        known = KNOWN.get(name, KnownProvider(name, "", ""))
        key_env = self._given("providers", name, "api_key_env", default="")
        keys = self._keys(name, key_env.split(",") if key_env else [])
        return ProviderConfig(
            name=name,
            base_url=self._given("providers", name, "base_url", default=known.base_url),
            api_key=keys[0] if keys else None,
            api_keys=keys,
            api_key_env=key_env,
            api_mode=self._given("providers", name, "api_mode", default=known.api_mode),
            default_model=self._given("providers", name, "default_model", default=known.default_model),
            proxy=self._given("providers", name, "proxy", default=""),
        )

    def _keys(self, name: str, variables: list[str]) -> tuple[Secret, ...]:
        """All keys of a provider: those in the variables that are named, else the one; then the further ones."""
        one = self._given("providers", name, "api_key")
        named = {variable: self._key_in(name, variable) if len(variables) > 1 else one for variable in variables}
        for variable, key in named.items():
            if key is None:
                self._warn(
                    f"providers.{name}.api_key_env",
                    f"names {variable}, which is not set.",
                    f"Add a line {variable}=… to .env; it is used at once.",
                )
        found = [key for key in named.values() if key] or [one] * bool(one)
        return tuple(dict.fromkeys((*found, *self._given("providers", name, "api_keys", default=()))))

    def _key_in(self, name: str, variable: str) -> Secret | None:
        """The key that one of several variables holds, in the place that is heard first."""
        resolved = self._resolved.get(("providers", name, "api_key"))
        for entry in resolved.entries if resolved else ():
            if entry.source.written == variable and not looks_unfilled(entry.key, entry.raw):
                try:
                    key: Secret = parse(entry.key, entry.raw)
                except ValueError:  # told when the key itself is resolved
                    continue
                return key
        return None

    def _model(self, providers: Mapping[str, ProviderConfig]) -> ModelConfig:
        wanted = self._get("model", "default")
        provider = self._chosen_provider(wanted, providers)
        prefix = wanted.partition("/")[0] if "/" in wanted else ""
        self._check_prefix(wanted, prefix, provider, providers)
        self._check_fallbacks(providers)
        own = providers.get(provider)
        default = wanted or (own.default_model if own else "")
        if not default:
            self._warn("model.default", f"is not set, and provider {provider} has no default.", "Name a model.")
        return ModelConfig(
            default=default,
            provider=provider,
            base_url=self._get("model", "base_url"),
            api_mode=self._get("model", "api_mode") or (own.api_mode if own else ""),
            fallbacks=self._get("model", "fallbacks"),
            users_may_choose=self._get("model", "users_may_choose"),
            context_window=self._get("model", "context_window"),
        )

    def _chosen_provider(self, wanted: str, providers: Mapping[str, ProviderConfig]) -> str:
        """The one that was named; else the model's own prefix; else the first that was configured; else ours."""
        named: str = self._get("model", "provider")
        if named:
            return self._known_or_warned(named, providers)
        prefix = wanted.partition("/")[0] if "/" in wanted else ""
        if prefix in providers and self._is_configured(providers[prefix]):
            return prefix
        owners_own = [name for name in providers if name not in KNOWN and self._is_configured(providers[name])]
        ready = [
            name
            for name in KNOWN
            if name != EMBEDDED
            and self._is_configured(providers[name])
            and (wanted or providers[name].default_model)  # a local server alone names no model
        ]
        return next(iter((*owners_own, *ready)), EMBEDDED)

    def _known_or_warned(self, named: str, providers: Mapping[str, ProviderConfig]) -> str:
        if named in providers:
            return named
        folded = {name.casefold(): name for name in providers}
        if named.casefold() in folded:
            return folded[named.casefold()]
        if not self._get("model", "base_url"):
            hint = f"Known: {', '.join(providers)}. Add providers.{named}.base_url."
            self._problems.append(
                Problem("error", "model.provider", f"names {named!r}, which is not configured.", hint)
            )
        return named

    def _is_configured(self, provider: ProviderConfig) -> bool:
        """A key is enough where the address is known; an address is enough for servers that ask for no key."""
        return bool(provider.api_key) or ("providers", provider.name, "base_url") in self._resolved

    def _is_usable(self, provider: ProviderConfig) -> bool:
        known = KNOWN.get(provider.name)
        return self._is_configured(provider) or (known is not None and known.is_local)

    def _check_prefix(self, wanted: str, prefix: str, provider: str, providers: Mapping[str, ProviderConfig]) -> None:
        is_vendor_name = provider in KNOWN and KNOWN[provider].is_relay and prefix in KNOWN
        if prefix in providers and prefix != provider and not is_vendor_name:
            self._warn(
                "model.default",
                f"is {wanted!r}, but model.provider is {provider}, so it is asked of {provider}.",
                f"Set model.provider to {prefix} if you meant that one.",
            )
        elif provider == EMBEDDED and wanted and wanted != KNOWN[EMBEDDED].default_model:
            self._warn(
                "model.default",
                f"is {wanted!r}, but no provider of it is set up, so the built-in model answers.",
                "Name one in model.provider, or set its key, for example OPENAI_API_KEY.",
            )

    def _check_fallbacks(self, providers: Mapping[str, ProviderConfig]) -> None:
        for fallback in self._get("model", "fallbacks"):
            name = fallback.partition("/")[0]
            if name not in providers:
                self._warn(
                    "model.fallbacks",
                    f"names {fallback!r}, and there is no provider {name}.",
                    f"Write provider/model; known: {', '.join(providers)}.",
                )

    def _model_routes(self, providers: Mapping[str, ProviderConfig]) -> Mapping[str, str]:
        routes = {}
        for name in self._names_under("model_routes"):
            route = self._given("model_routes", name, default="")
            if route.partition("/")[0] in providers:
                routes[name] = route
            else:
                self._warn(
                    f"model_routes.{name}",
                    f"leads to {route!r}, and there is no such provider, so the default model answers.",
                    f"Write provider/model; known: {', '.join(providers)}.",
                )
        return MappingProxyType(routes)

    def _tools(self) -> Mapping[str, ToolChoice]:
        return MappingProxyType(
            {
                name: ToolChoice(
                    toolset=self._given("tools", name, "toolset", default=""),
                    enabled=self._given("tools", name, "enabled", default=()),
                    disabled=self._given("tools", name, "disabled", default=()),
                )
                for name in self._names_under("tools")
            }
        )

    def _by_name(self, *prefix: str) -> Mapping[str, Any]:
        return MappingProxyType({name: self._given(*prefix, name) for name in self._names_under(*prefix)})

    def _chosen(self, section: str) -> Mapping[str, Any]:
        """A section that is names of the owner's choice, with one value each."""
        return MappingProxyType({name: self._given(section, name) for name in self._names_under(section)})

    # Platforms

    def _accounts(self, manifest: Manifest) -> dict[str, AccountConfig]:
        further = self._names_under("platforms", manifest.id, "accounts")
        accounts = {MAIN: self._account(manifest, ("platforms", manifest.id))}
        for name in further:
            accounts[name] = self._account(manifest, ("platforms", manifest.id, "accounts", name))
        for name, account in accounts.items():
            if account.is_mentioned and account.enabled and account.missing and not (name == MAIN and further):
                self._tell_missing(manifest, name, account)
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
        required = [setting.key for setting in manifest.settings if setting.required]
        is_mentioned = any(path[:-1] == prefix for path in self._resolved)
        busy_mode = given["busy_mode"]
        return AccountConfig(
            enabled=given["enabled"],
            values=MappingProxyType({setting.key: given[setting.key] for setting in manifest.settings}),
            access=self._access(manifest, given),
            home_channel=given["home_channel"],
            home_channel_name=given["home_channel_name"],
            proxy=given["proxy"],
            busy_mode=BusyMode(busy_mode) if busy_mode else None,
            group_context_lines=given["group_context_lines"],
            missing=tuple(key for key in required if not given[key]),
            is_mentioned=is_mentioned,
        )

    def _access(self, manifest: Manifest, given: Mapping[str, Any]) -> AccessPolicy:
        named = (*given["allowed_users"], *self._allowed_everywhere(manifest.id))
        users = frozenset(manifest.tidy_id(user) for user in named)
        return AccessPolicy(
            dm_policy=DmPolicy(given["dm_policy"]),
            group_policy=GroupPolicy(given["group_policy"]),
            allowed_users=users - {EVERYBODY},
            allow_all=given["allow_all_users"] or self._get("gateway", "allow_all_users") or EVERYBODY in users,
            group_allowed_chats=frozenset(map(manifest.tidy_group, given["group_allowed_chats"])),
            require_mention=given["require_mention"],
        )

    def _allowed_everywhere(self, platform: str) -> Iterator[str]:
        """The ids of gateway.allowed_users that count on a platform: bare ones, and those that name it."""
        platforms = {manifest.id for manifest in self._schema.manifests}
        for user in self._get("gateway", "allowed_users"):
            named, colon, user_id = user.partition(":")
            if not colon or named not in platforms:  # some platforms' own ids hold a colon
                yield user
            elif named == platform:
                yield user_id

    def _tell_missing(self, manifest: Manifest, name: str, account: AccountConfig) -> None:
        for setting in manifest.settings:
            if setting.key not in account.missing:
                continue
            under = f"platforms.{manifest.id}" + ("" if name == MAIN else f".accounts.{name}")
            or_env = f" or {setting.env}" if setting.env and name == MAIN else ""
            self._problems.append(
                Problem(
                    "error",
                    under,
                    f'{manifest.id} account "{name}" has no {setting.key}.',
                    f"Set {under}.{setting.key}{or_env}, then run `hermes doctor`.",
                )
            )

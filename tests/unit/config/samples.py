"""A home folder with files in it, and a platform to configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hermes.config import AccountConfig, Config, Loaded, Problem, load
from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.ports import Adapter

TOKEN = "5550142:a-token-of-a-bot"


def _no_adapter(_: AdapterParts) -> Adapter:
    raise NotImplementedError


TELEGRAM = Manifest(
    id="telegram",
    title="Telegram",
    settings=(
        Setting("token", "TELEGRAM_BOT_TOKEN", SettingKind.SECRET, required=True),
        Setting("base_url", "TELEGRAM_BASE_URL", default="https://api.telegram.org"),
        Setting("poll_seconds", "TELEGRAM_POLL_SECONDS", SettingKind.NUMBER, default=25),
    ),
    build=_no_adapter,
)
QQ = Manifest(
    id="qq",
    title="QQ",
    settings=(
        Setting("app_id", "QQ_APP_ID", required=True),
        Setting("client_secret", "QQ_CLIENT_SECRET", SettingKind.SECRET, required=True),
    ),
    build=_no_adapter,
)
LOCAL = Manifest(id="local", title="Local", settings=(), build=_no_adapter, always_on=True)
MANIFESTS = (TELEGRAM, QQ, LOCAL)


@dataclass
class Home:
    """What a person would write, and what the gateway makes of it."""

    path: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def cwd(self) -> Path:
        return self.path / "work"

    def write(
        self,
        *,
        env: str | bytes | None = None,
        named_env: str | None = None,
        folder_env: str | None = None,
        yaml: str | bytes | None = None,
        json: str | bytes | None = None,
    ) -> Home:
        self.cwd.mkdir(exist_ok=True)
        if named_env is not None:
            self.environ["HERMES_ENV_FILE"] = str(self.path / "named.env")
        files = ((".env", env), ("named.env", named_env), ("work/.env", folder_env))
        for name, content in (*files, ("config.yaml", yaml), ("gateway.json", json)):
            if content is not None:
                (self.path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def set(self, **variables: str) -> Home:
        self.environ.update(variables)
        return self

    def load(self, previous: Loaded | None = None) -> Loaded:
        return load(self.path, self.environ, self.cwd, MANIFESTS, previous)

    @property
    def config(self) -> Config:
        return self.load().config

    @property
    def telegram(self) -> AccountConfig:
        return self.config.platforms["telegram"]["main"]

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.load().problems

    @property
    def said(self) -> str:
        return "\n".join(map(str, self.problems))


def revealed(values: Mapping[str, object], key: str) -> str:
    from hermes.core.secret import Secret

    value = values[key]
    assert isinstance(value, Secret)
    return value.reveal()

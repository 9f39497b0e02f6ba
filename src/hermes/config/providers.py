"""List the providers known by name, and find a provider's key at the moment it is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.config.agent_settings import ProviderConfig
from hermes.config.dotenv import parse_dotenv
from hermes.config.files import setting_files
from hermes.config.values import is_placeholder
from hermes.core.dataclasses import dataclass
from hermes.core.secret import Secret

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class KnownProvider:
    """``default_model`` answers when a key is all that was given. ``is_relay``: its model names begin with a vendor.

    ``is_local``: a server on this machine that asks for no key; used when its address is set or it is named.
    """

    name: str
    base_url: str
    default_model: str
    is_relay: bool = False
    api_mode: str = "chat_completions"
    is_local: bool = False


# The order is the order of choice when several keys are there and none was named.
KNOWN: Mapping[str, KnownProvider] = {
    provider.name: provider
    for provider in (
        KnownProvider("openai", "https://api.openai.com/v1", "gpt-4o-mini"),
        KnownProvider("openrouter", "https://openrouter.ai/api/v1", "openai/gpt-4o-mini", is_relay=True),
        KnownProvider("anthropic", "https://api.anthropic.com/v1", "claude-haiku-5-5", api_mode="anthropic_messages"),
        KnownProvider("ollama", "http://127.0.0.1:11434/v1", "", is_local=True),
        KnownProvider("lmstudio", "http://127.0.0.1:1234/v1", "", is_local=True),
        KnownProvider(EMBEDDED, "", "smollm2-135m-instruct"),
    )
}


def env_prefix(name: str) -> str:
    """``my-relay`` → ``MY_RELAY``: what stands before ``_API_KEY`` and ``_BASE_URL``."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()


ENV_FILE = "HERMES_ENV_FILE"


def named_env_file(environ: Mapping[str, str]) -> Path | None:
    """Return the file that `--env-file` names; only the process environment can set it."""
    named = environ.get(ENV_FILE, "").strip()
    return Path(os.path.abspath(os.path.expanduser(named))) if named else None


class EnvFiles:
    """The `.env` files, read again when they change. A look costs one stat per file."""

    @classmethod
    def of(cls, home: Path, environ: Mapping[str, str]) -> EnvFiles:
        """Return the files that are read: the one named at the start, then the home's."""
        named = named_env_file(environ)
        return cls((*([named] if named is not None else []), setting_files(home, environ).env))

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._read: dict[Path, tuple[tuple[int, int, int], Mapping[str, str]]] = {}

    def get(self, name: str) -> str | None:
        for path in self._paths:
            value = self._values(path).get(name)
            if value is not None:
                return value
        return None

    def all(self) -> dict[str, str]:
        """Every variable they name; of one that several name, the first counts."""
        found: dict[str, str] = {}
        for path in reversed(self._paths):
            found.update(self._values(path))
        return found

    def _values(self, path: Path) -> Mapping[str, str]:
        try:
            stat = os.stat(path)
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                lines, _ = parse_dotenv(path.read_bytes(), path.name)
                known = stamp, {name: line.value for name, line in lines.items()}
                self._read[path] = known
        except OSError:  # gone or not readable: as if it named nothing; load() says so to the owner
            return {}
        return known[1]


def resolve_key(provider: ProviderConfig, environ: Mapping[str, str], env_files: EnvFiles) -> Secret | None:
    """The key of a provider as it is now: from the variable that ``api_key_env`` names, or ``<NAME>_API_KEY``.

    It is looked for in the process environment, then in the `.env` files as they are on disk, and
    after that the loaded key counts. A caller needs no reload to see a key that was added since.
    """
    names = (provider.api_key_env or f"{env_prefix(provider.name)}_API_KEY").split(",")
    for found in (place for name in names for place in (environ.get(name), env_files.get(name))):
        if found is not None and not is_placeholder(found):
            return Secret(found.strip())
    return provider.api_key

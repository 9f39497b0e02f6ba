"""List what a sandbox mounts: programs and their settings, no user data."""

from __future__ import annotations

import os
from pathlib import Path

PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")

# Of /etc only what programs read to find each other, names, certificates and time: never the whole folder, which holds
# password hashes, private keys and other people's settings, all readable where the gateway runs as root.
SETTINGS = (
    "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
    "fonts", "gitconfig", "group", "hosts", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "locale.alias", "locale.conf", "magic", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust",
    "pki/tls/certs", "pki/tls/cert.pem", "profile", "protocols", "python3", "resolv.conf", "services", "ssl/certs",
    "ssl/cert.pem", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip


def programs(home: Path) -> list[Path]:
    """Return the folders of programs that exist here. One in which the gateway's own home lies is left out."""
    found = (Path(name) for name in PROGRAMS)
    return [path for path in found if path.is_dir() and not _holds(path, home)]


def settings() -> list[Path]:
    return [path for path in (Path("/etc", name) for name in SETTINGS) if path.exists()]


def _holds(folder: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))

"""List the classes of danger: what each says to a person, and where it matters."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts


class Danger(StrEnum):
    DELETE_TREE = "delete_tree"
    DELETE_ALL = "delete_all"
    FORMAT = "format"
    DEVICE = "device"
    PERMISSIONS = "permissions"
    SERVICES = "services"
    GATEWAY = "gateway"
    KILL = "kill"
    NETWORK_TO_SHELL = "network_to_shell"
    ACCOUNTS = "accounts"
    PACKAGES = "packages"
    ROOT = "root"
    GIT = "git"
    HERMES_HOME = "hermes_home"
    SECRETS = "secrets"
    POWER = "power"
    CONTAINER = "container"
    DATABASE = "database"
    SYSTEM_FILES = "system_files"
    NETWORK = "network"
    KERNEL = "kernel"
    REMOTE = "remote"
    SENDS = "sends"
    DETACHES = "detaches"
    OUTSIDE = "outside"
    CODE = "code"
    UNJUDGED = "unjudged"
    NOT_ONLY_READING = "not_only_reading"
    EVERY = "every"


@dataclass(frozen=True, slots=True)
class Class:
    """A class of dangerous commands: what it says to a person, where it matters.

    ``in_sandbox``: it is asked about in a sandbox too, since it destroys what the sandbox may write, or acts outside
    of it; ``in_shared``: in a sandbox whose workspace several people share. ``grantable``: a person may allow it for a
    session or for good; the others are asked about each time.
    """

    says: Callable[[Texts], str]
    in_sandbox: bool = False
    in_shared: bool = False
    grantable: bool = True


CLASSES: dict[Danger, Class] = {
    Danger.DELETE_TREE: Class(lambda words: words.DANGER_DELETE_TREE, in_shared=True),
    Danger.DELETE_ALL: Class(lambda words: words.DANGER_DELETE_ALL, in_sandbox=True),
    Danger.FORMAT: Class(lambda words: words.DANGER_FORMAT, grantable=False),
    Danger.DEVICE: Class(lambda words: words.DANGER_DEVICE, grantable=False),
    Danger.PERMISSIONS: Class(lambda words: words.DANGER_PERMISSIONS),
    Danger.SERVICES: Class(lambda words: words.DANGER_SERVICES),
    Danger.GATEWAY: Class(lambda words: words.DANGER_GATEWAY, grantable=False),
    Danger.KILL: Class(lambda words: words.DANGER_KILL),
    Danger.NETWORK_TO_SHELL: Class(lambda words: words.DANGER_NETWORK_TO_SHELL, grantable=False),
    Danger.ACCOUNTS: Class(lambda words: words.DANGER_ACCOUNTS),
    Danger.PACKAGES: Class(lambda words: words.DANGER_PACKAGES),
    Danger.ROOT: Class(lambda words: words.DANGER_ROOT),
    Danger.GIT: Class(lambda words: words.DANGER_GIT, in_sandbox=True),
    Danger.HERMES_HOME: Class(lambda words: words.DANGER_HERMES_HOME, grantable=False),
    Danger.SECRETS: Class(lambda words: words.DANGER_SECRETS),
    Danger.POWER: Class(lambda words: words.DANGER_POWER, grantable=False),
    Danger.CONTAINER: Class(lambda words: words.DANGER_CONTAINER),
    Danger.DATABASE: Class(lambda words: words.DANGER_DATABASE, in_sandbox=True),
    Danger.SYSTEM_FILES: Class(lambda words: words.DANGER_SYSTEM_FILES),
    Danger.NETWORK: Class(lambda words: words.DANGER_NETWORK),
    Danger.KERNEL: Class(lambda words: words.DANGER_KERNEL),
    Danger.REMOTE: Class(lambda words: words.DANGER_REMOTE),
    Danger.SENDS: Class(lambda words: words.DANGER_SENDS),
    Danger.DETACHES: Class(lambda words: words.DANGER_DETACHES, grantable=False),
    Danger.OUTSIDE: Class(lambda words: words.DANGER_OUTSIDE),
    Danger.CODE: Class(lambda words: words.DANGER_CODE),
    Danger.UNJUDGED: Class(lambda words: words.DANGER_UNJUDGED, grantable=False),
    Danger.NOT_ONLY_READING: Class(lambda words: words.DANGER_NOT_ONLY_READING),
    Danger.EVERY: Class(lambda words: words.DANGER_EVERY, in_sandbox=True, grantable=False),
}

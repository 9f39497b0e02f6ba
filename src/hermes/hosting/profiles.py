"""Find the home of a profile: an agent of its own, under `profiles/NAME` of the home.

Every start imports this module: standard library only, and little of it.
"""

from __future__ import annotations

import os

FOLDER = "profiles"
DEFAULT = "default"
MARKER = ".hermes-home"
MAX_NAME_CHARS = 32
UNIT = "hermes-gateway"
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def why_no_name(name: str) -> str:
    """Half a sentence on why a profile cannot have this name; '' when it can."""
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_CHARS:
        return f"has more than {MAX_NAME_CHARS} characters"
    if not _LETTERS.issuperset(name) or name[0] in "-_":
        return "has other characters than a-z, 0-9, - and _, or does not begin with a letter or digit"
    return ""


def home_of(environ: Mapping[str, str]) -> str:
    """The home that HERMES_HOME and HERMES_PROFILE name together. A name that is no name is left out."""
    given = os.path.abspath(os.path.expanduser(environ.get("HERMES_HOME") or "~/.hermes"))
    name = environ.get("HERMES_PROFILE", "")
    if why_no_name(name):
        return given
    return home_in(root_of(given, name), name)


def home_in(root: str, name: str) -> str:
    return root if name == DEFAULT else os.path.join(root, FOLDER, name)


def root_of(home: str, known_as: str = "") -> str:
    """The home that the profile of this home stands in; the home itself when it is no profile.

    A folder `…/profiles/NAME` is a profile where a home of ours stands above it, or where ``known_as`` says so.
    """
    above, name = os.path.split(home)
    root = os.path.dirname(above)
    if os.path.basename(above) != FOLDER or why_no_name(name):
        return home
    is_profile = name == known_as or root == os.path.expanduser("~/.hermes") or _is_ours(root)
    return root if is_profile else home


def profile_of(home: str) -> str:
    """The name of the profile whose home this is; '' for a home that is no profile."""
    return "" if root_of(home) == home else os.path.basename(home)


def unit_name(home: str) -> str:
    """The name of the service that runs the gateway of this home: `hermes-gateway-work` for the profile work."""
    name = profile_of(home)
    return f"{UNIT}-{name}" if name else UNIT


def names(root: str) -> list[str]:
    """The profiles of a home, in order. A folder without our marker is none."""
    try:
        found = os.listdir(os.path.join(root, FOLDER))
    except OSError:
        return []
    return sorted(name for name in found if not why_no_name(name) and _is_ours(home_in(root, name)))


def _is_ours(home: str) -> bool:
    return os.path.exists(os.path.join(home, MARKER))

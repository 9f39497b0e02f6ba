"""``hermes gateway setup``: ask a platform's settings by its manifest, test them, write them all at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.cli.support.prompts import Choice, LeftError, Questions, at_terminal
from hermes.cli.support.screen import complain, say
from hermes.cli.wizard.page import PlatformPage, describe_left, wrap
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, PlatformError
from hermes.core.keys import MAIN
from hermes.core.manifest import Manifest, Setting, SettingKind
from hermes.core.people.access import EVERYBODY, DmPolicy, GroupPolicy
from hermes.core.secret import Secret
from hermes.hosting.terminal import err
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.config import AccountConfig, Loaded
    from hermes.services.adapters.probe import Tried

USAGE_ERROR = 2
INTERRUPTED = 130

# The order in which platforms are offered; others that were installed come after these.
ORDER = (
    *("telegram", "discord", "slack", "matrix", "mattermost", "whatsapp", "whatsapp_cloud", "signal", "email", "sms"),
    *("dingtalk", "feishu", "wecom", "wecom_callback", "weixin", "qq"),
)

DM_POLICIES = (
    Choice(DmPolicy.PAIRING, "Pairing", "strangers get a code, and you approve it (recommended)"),
    Choice(DmPolicy.OPEN, "Allow all", "anybody who finds it may use it, at your cost"),
    Choice(DmPolicy.ALLOWLIST, "Allow listed", "only the ids that you name"),
    Choice(DmPolicy.DISABLED, "Disable", "no direct messages at all"),
)
GROUP_POLICIES = (
    Choice(GroupPolicy.DISABLED, "No", "silent in groups (recommended)"),
    Choice(GroupPolicy.ALLOWLIST, "Listed groups", "in the groups that you name, when it is mentioned"),
    Choice(GroupPolicy.OPEN, "Every group", "wherever somebody adds it, when it is mentioned"),
)


@dataclass(frozen=True, slots=True)
class Flags:
    """What was said on the command line; '' where nothing was."""

    values: Mapping[str, str] = field(default_factory=dict)
    dm_policy: str = ""
    allow: str = ""
    group_policy: str = ""
    groups: str = ""
    account: str = MAIN
    is_checked: bool = True
    installs: bool = False
    owner: str = ""


def flags_of(args: argparse.Namespace) -> Flags:
    """Raises ConfigError for what cannot be understood."""
    values = {}
    for setting in args.settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set takes KEY=VALUE, not {setting!r}.")
        values[key] = value
    if args.token:
        values["token"] = sys.stdin.readline().strip() if args.token == "-" else args.token  # noqa: S105 - no secret
    return Flags(
        values,
        args.dm_policy,
        args.allow,
        args.group_policy,
        args.groups,
        args.account,
        is_checked=not args.no_check,
        installs=args.install,
        owner=args.owner,
    )


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    refuse_foreign(home)
    ask = None if args.yes else at_terminal()
    if ask is None and not args.platforms:
        err(tr(no_terminal(offered())))
        return USAGE_ERROR
    try:
        return set_up(home, args.platforms, flags_of(args), ask, is_started=args.start)
    except ConfigError as error:
        complain(error)
        return 1


def set_up(
    home: Path,
    names: Sequence[str],
    flags: Flags,
    ask: Questions | None,
    *,
    is_started: bool,
    done: list[str] | None = None,
) -> int:
    """Set up these platforms one after the other, asking which when none is named. ``done`` was written before."""
    from hermes.cli.wizard.start import follow

    done = done if done is not None else []
    try:
        for manifest in _chosen(home, names, ask):
            loaded = load_config(home)
            page = Wizard(loaded, manifest, flags, ask).page()
            write(home, loaded, page.changes)
            done.append(manifest.title)
            follow(home, page, ask, is_started=is_started)
    except (KeyboardInterrupt, LeftError):
        say(f"\n{describe_left(done)}")
        return INTERRUPTED
    except MissingError as error:
        complain(f"{error}\n{no_terminal((error.manifest,))}")
        return USAGE_ERROR
    return 0


def offered() -> tuple[Manifest, ...]:
    """The platforms there are, in the order of the list."""
    from hermes.services.adapters.registry import find_platforms

    found = [manifest for manifest in find_platforms().manifests.values() if not manifest.always_on]
    places = {name: place for place, name in enumerate(ORDER)}
    return tuple(sorted(found, key=lambda manifest: (places.get(manifest.id, len(ORDER)), manifest.title)))


def _chosen(home: Path, names: Sequence[str], ask: Questions | None) -> list[Manifest]:
    from hermes.services.adapters.registry import find_platforms

    known = {manifest.id: manifest for manifest in offered()}
    unknown = [name for name in names if name not in known]
    if unknown:
        why = f"There is no platform {unknown[0]!r}. Known: {', '.join(known)}."
        raise ConfigError(find_platforms().broken.get(unknown[0], why))
    if names or ask is None:
        return [known[name] for name in names]
    config = load_config(home).config
    choices = [Choice(manifest.id, manifest.title, _state(config.account(manifest.id))) for manifest in known.values()]
    chosen = ask.several("Select platforms to configure:", choices, "1" if len(choices) == 1 else "")
    return [known[name] for name in chosen]


def _state(account: AccountConfig | None) -> str:
    if account is None or not account.is_mentioned:
        return "not set up"
    if account.missing:
        return f"incomplete: no {', '.join(account.missing)}"
    hints = [value.hint() for value in account.values.values() if isinstance(value, Secret) and value]
    parts = ["set up", *hints, f"direct messages: {account.access.dm_policy.value}"]
    return ", ".join(parts if account.enabled else [*parts, "switched off"])


def no_terminal(manifests: Sequence[Manifest]) -> str:
    """Render the flags to type where nobody can be asked."""
    lines = ["There is no terminal to ask questions. Use one line instead:"]
    for manifest in manifests:
        needed = [setting.key for setting in manifest.settings if setting.required]
        flags_needed = " ".join("--token TOKEN" if key == "token" else f"--set {key}=VALUE" for key in needed)
        lines.append(f"  {command_name()} gateway setup {manifest.id} {flags_needed} --dm-policy pairing --yes")
    lines.append("  --dm-policy pairing | open | allowlist (with --allow ID,ID) | disabled;   --token - reads stdin")
    return "\n".join(lines)


class MissingError(ConfigError):
    """A value that nobody said and nobody can be asked for."""

    def __init__(self, manifest: Manifest, key: str) -> None:
        super().__init__(f"{manifest.title} needs its {key}.")
        self.manifest = manifest


class Wizard:
    """The questions of one platform. ``ask`` None: the flags are all there is."""

    def __init__(self, loaded: Loaded, manifest: Manifest, flags: Flags, ask: Questions | None) -> None:
        self._loaded = loaded
        self._manifest = manifest
        self._flags = flags
        self._ask = ask
        self._shown: set[str] = set()  # settings whose steps are on the screen already
        self._refused: dict[str, str] = {}  # what was typed and not taken: offered again
        self._present = loaded.config.account(manifest.id, flags.account)
        self._signed_in_by = ""  # who scanned the code: they may talk
        own = f".accounts.{flags.account}" if flags.account != MAIN else ""
        self._prefix = f"platforms.{manifest.id}{own}"

    def page(self) -> PlatformPage:
        """Everything that is to be written; nothing is yet. Raises ConfigError in words."""
        if self._ask is not None:
            title = self._manifest.title + (f", account {self._flags.account}" * (self._flags.account != MAIN))
            self._ask.say(f"\n── {title} {'─' * max(0, 60 - len(title))}")
        self._install_what_is_missing()
        values, name = self._login()
        access = self._access()
        changes = {f"{self._prefix}.{key}": value for key, value in {**values, **access}.items()}
        changes |= self._owner(access.get("allowed_users", ""))
        if self._present is not None and self._present.is_mentioned and not self._present.enabled:
            changes[f"{self._prefix}.enabled"] = "true"
        chosen = access.get("dm_policy") or self._policy_now()
        return PlatformPage(self._manifest, self._flags.account, changes, name, DmPolicy(chosen))

    def _install_what_is_missing(self) -> None:
        """Before anything is typed that could not be tried: the package, if somebody says yes to it."""
        from hermes.cli.support.install import install, missing_module
        from hermes.services.adapters.registry import missing_package

        manifest, ask = self._manifest, self._ask
        if not manifest.extra or (ask is None and not self._flags.installs):
            return  # where nobody can be asked, trying the account says what is missing
        if not (module := missing_module(manifest)):
            return
        if ask is not None and not self._flags.installs:
            ask.say(wrap(f"{manifest.title} needs a package that is not installed yet ({module})."))
        if not self._flags.installs and not (ask is not None and ask.yes("Install it now?", default=True)):
            raise ConfigError(f"{missing_package(manifest, ImportError(name=module))}\n  Nothing was written.")
        say("  Installing …")
        install(manifest)
        say("✓ Installed")

    # The account

    def _login(self) -> tuple[dict[str, str], str]:
        """What makes the account, tried at the platform: again and again until it is good or left as it is."""
        known = [setting.key for setting in self._manifest.settings]
        for key in self._flags.values:
            if key not in known:
                raise ConfigError(f"{self._manifest.title} has no setting {key!r}. It has: {', '.join(known)}.")
        given = {**self._flags.values, **self._scanned()}
        while True:
            wanted = [setting for setting in self._manifest.settings if setting.required or setting.asked]
            values = {key: value for setting in wanted for key, value in self._value(setting, given)}
            values |= {key: value for key, value in given.items() if key not in values}
            tried = self._tried(values)
            if tried is None or not tried.failure:
                return values, tried.name if tried else ""
            if self._ask is None:
                hint = "" if tried.is_refused else " --no-check saves it anyway."
                cure = f"\n  → {tried.cure}" if tried.cure else ""
                raise ConfigError(f"{_plain(tried.failure)} Nothing was written.{hint}{cure}")
            self._ask.say(wrap(f"✗ {_plain(tried.failure)}"))
            if tried.cure:
                self._ask.say(wrap(f"  → {tried.cure}"))
                if self._ask.yes("Done? Then I try again.", default=True):
                    given = values  # it was right: nobody types it once more
                    continue
            if not tried.is_refused and self._ask.yes("Keep it anyway?", default=False):
                return values, ""
            given, self._refused = {}, values  # what was said on the command line was wrong too

    def _scanned(self) -> Mapping[str, str]:
        """What a code gave that a phone scanned, where the platform is signed in to so. Nothing: it is typed."""
        manifest, ask, present = self._manifest, self._ask, self._present
        if manifest.sign_in is None or ask is None or self._flags.values:
            return {}
        is_in = present is not None and present.is_mentioned and present.is_ready
        question = "Sign in again with a QR code?" if is_in else "Sign in with a QR code?"
        if not ask.yes(question, default=not is_in):
            return {}
        from hermes.cli.wizard.qr_login import sign_in

        try:
            signed = sign_in(manifest, self._loaded.config, self._flags.account, ask)
        except PlatformError as error:
            raise ConfigError(f"{error} Nothing was written.") from None
        self._signed_in_by = signed.owner
        return signed.values

    def _value(self, setting: Setting, given: Mapping[str, str]) -> list[tuple[str, str]]:
        """The key with its new value; nothing when the present one stays."""
        now = self._present.values.get(setting.key) if self._present is not None else None
        if setting.key in given:
            return [(setting.key, given[setting.key])]
        if refused := self._refused.get(setting.key):
            now = Secret(refused) if setting.kind is SettingKind.SECRET else refused
        if self._ask is None:
            if setting.required and not now:
                raise MissingError(self._manifest, setting.key)
            return []
        return self._ask_setting(setting, now, self._ask)

    def _ask_setting(self, setting: Setting, now: Any, ask: Questions) -> list[tuple[str, str]]:
        if not now and setting.key not in self._shown:
            self._shown.add(setting.key)
            for number, step in enumerate(setting.get, 1):
                ask.say(f"  {number}. {step}")
        label = setting.label or setting.key
        while True:
            if setting.kind is SettingKind.SECRET:
                typed = ask.secret(label, now.hint() if isinstance(now, Secret) and now else "")
            else:
                typed = ask.line(label, "" if now is None else str(now))
            if typed and typed != str(now):
                return [(setting.key, typed)]
            if now or not setting.required:
                kept = self._refused.get(setting.key)  # written nowhere yet
                return [(setting.key, kept)] if kept else []
            ask.say(wrap(f"  {label} is needed. {setting.help}"))

    def _tried(self, values: Mapping[str, str]) -> Tried | None:
        """None when it is not to be tried."""
        if not self._flags.is_checked:
            return None
        from hermes.cli.support.account_probe import describe

        secrets = {setting.key for setting in self._manifest.settings if setting.kind is SettingKind.SECRET}
        typed = {key: Secret(value) if key in secrets else value for key, value in values.items()}
        if self._ask is not None:
            self._ask.say(f"  Asking {self._manifest.title} …")
        tried = describe(self._manifest, self._loaded.config, self._flags.account, typed)
        if not tried.failure:
            say(f"✓ {tried.name or self._manifest.title}, answered in {tried.seconds:.1f} s")
        return tried

    # Who may talk

    def _policy_now(self) -> str:
        return self._present.access.dm_policy.value if self._present is not None else DmPolicy.PAIRING.value

    def _access(self) -> dict[str, str]:
        flags, ask = self._flags, self._ask
        access: dict[str, str] = {}
        policy = flags.dm_policy
        if not policy and ask is not None:
            policy = self._ask_policy(ask)
        if policy and (
            policy != self._policy_now() or (*self._prefix.split("."), "dm_policy") not in self._loaded.sources
        ):
            access["dm_policy"] = policy
        listed, present = flags.allow, [each for each in self._listed_now().split(",") if each]
        if not listed and self._signed_in_by and self._signed_in_by not in present:
            listed = ",".join([*present, self._signed_in_by])
        if not listed and ask is not None and policy == DmPolicy.ALLOWLIST:
            listed = self._ask_ids(ask)
        if listed:
            access["allowed_users"] = listed
        elif policy == DmPolicy.ALLOWLIST and not self._listed_now():
            raise ConfigError("The policy allowlist needs ids: --allow ID,ID. Nothing was written.")
        return access | self._groups()

    def _ask_policy(self, ask: Questions) -> str:
        ask.say()
        while True:
            policy = ask.one("Who may write to it?", DM_POLICIES, self._policy_now())
            sure = "Anybody at all may then use your agent and your model. Really?"
            if policy != DmPolicy.OPEN or policy == self._policy_now() or ask.sure(sure):
                return policy

    def _listed_now(self) -> str:
        return ",".join(sorted(self._present.access.allowed_users)) if self._present is not None else ""

    def _ask_ids(self, ask: Questions) -> str:
        if self._manifest.ids:
            ask.say(f"  {self._manifest.ids}")
        while True:
            ids = ask.line("Ids, with commas between them", self._listed_now())
            if ids.replace(",", " ").strip():
                return "" if ids == self._listed_now() else ids
            ask.say("  At least one, or nobody gets in.")

    def _owner(self, listed: str) -> dict[str, str]:
        """Who of the ids that are let in is the owner: said by a flag, or asked when new ids are stored."""
        tidy, known = self._manifest.tidy_id, self._loaded.config.owners
        ids = [tidy(each) for each in listed.replace(",", " ").split() if each != EVERYBODY]
        chosen = tidy(self._flags.owner.strip()) if self._flags.owner else ""
        if not chosen and self._ask is not None and ids and not self._has_owner():
            chosen = self._ask_owner(self._ask, ids)
        name = f"{self._manifest.id}:{chosen}"
        return {"owners": ",".join([*known, name])} if chosen and name not in known else {}

    def _has_owner(self) -> bool:
        """Whether the settings name one on this platform. Who became it in a chat is in the store."""
        return any(name.startswith(f"{self._manifest.id}:") for name in self._loaded.config.owners)

    def _ask_owner(self, ask: Questions, ids: Sequence[str]) -> str:
        """The id of whoever sits here; '' for none of them."""
        ask.say(wrap("  The owner's commands run on this machine itself; everybody else's stay in a sandbox."))
        if len(ids) == 1:
            return ids[0] if ask.sure(f"Is {ids[0]} you, the owner?") else ""
        nobody = Choice("none", "None of them", "all of them work in a sandbox")
        choices = [*(Choice(each, each) for each in ids), nobody]
        chosen = ask.one("Which of them is you, the owner?", choices, nobody.name)
        return "" if chosen == nobody.name else chosen

    def _groups(self) -> dict[str, str]:
        flags, ask = self._flags, self._ask
        present = self._present.access if self._present is not None else None
        now = present.group_policy.value if present is not None else GroupPolicy.DISABLED.value
        policy = flags.group_policy
        if not policy and ask is not None:
            ask.say()
            policy = ask.one("Does it answer in groups?", GROUP_POLICIES, now)
        listed = ",".join(sorted(present.group_allowed_chats)) if present is not None else ""
        groups = flags.groups
        if not groups and ask is not None and policy == GroupPolicy.ALLOWLIST:
            groups = ask.line("Groups by id (empty: only people it knows)", listed)
        access = {"group_policy": policy} if policy and policy != now else {}
        return access | ({"group_allowed_chats": groups} if groups and groups != listed else {})


# Writing


def write(home: Path, loaded: Loaded, changes: Mapping[str, str]) -> None:
    """All of it, undisturbed by Ctrl+C, and what hides it from the gateway is said."""
    if not changes:
        say("  Nothing to change.")
        return
    from hermes.config.edit import set_values
    from hermes.store.home import make_home

    make_home(home)
    with undisturbed():
        written = set_values(loaded, changes)
    files = ", ".join(sorted({change.file.name for change in written}))
    say(f"✓ Written to {files}, readable by you alone")
    for note in dict.fromkeys(change.note for change in written if change.note):
        say(wrap(f"! {note}"))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl+C waits until the files are whole."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _plain(failure: str) -> str:
    """What is wrong, without the lines that tell where to write it: here it is asked for again."""
    first = failure.partition("\n")[0].strip()
    return first if first.endswith((".", "?", "!")) else f"{first}."

"""List the files that need a question before a tool writes or reads them.

One list for all tools: commands, ``write_file``, ``patch`` and skills use it.
"""

from __future__ import annotations

import fnmatch
import re


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


DISKS = re.compile(
    r"^/dev/((s|h|v|xv|u)d[a-z]+\d*|nvme\d+n\d+(p\d+)?|mmcblk\d+(p\d+)?|r?disk\d+(s\d+)*|dm-\d+|md\d+|mapper/.+|"
    r"disk/.+|root|mtd.*|zd\d+|bcache\d+|nbd\d+)$"
)
FIRST_DISKS = re.compile(
    r"^/dev/((s|h|v|xv)da\d*|nvme0n1(p\d+)?|mmcblk0(p\d+)?|r?disk[01](s\d+)*|root|mapper/.*root.*)$"
)
HARMLESS_DEVICES = re.compile(r"^/dev/(null|zero|full|stdin|stdout|stderr|tty|fd/\d+|u?random|pts/\d+)$")
ROOTS = names(
    "/ /bin /boot /dev /etc /home /lib /lib32 /lib64 /opt /proc /root /run /sbin /srv /sys /usr /usr/bin /usr/lib "
    "/usr/local /usr/sbin /usr/share /var /var/lib /System /Library /Applications /Users /private /Volumes /boot/efi "
    "/efi"
)
"""Folders without which a machine does not run, or in which everybody's files are."""

SYSTEM = re.compile(
    r"^/(etc|usr|bin|sbin|lib|lib32|lib64|opt|var/(lib|spool|mail|db)|sys|proc|run/systemd|root|System|Library)(/|$)"
)
BOOT = re.compile(r"^/(boot|efi)(/|$)|^/sys/firmware/efi")
ACCOUNT_FILES = re.compile(
    r"^/etc/(passwd|shadow|group|gshadow|sudoers|crontab|anacrontab|cron\.|pam\.|ssh/|security/|profile)|"
    r"(^|/)\.ssh(/|$)|(^|/)authorized_keys2?$|/var/spool/cron|(^|/)cron(tab|\.d|\.daily|\.hourly)(/|$)"
)

# What runs by itself, or decides what other programs run. Matched against the end of a real path, case aside; a pattern
# with a slash needs the folders too. Makefiles and package.json are not here: they run when somebody asks for it.
_RUNS_BY_ITSELF = (
    # shells and sessions
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
    ".xinitrc", ".xsession", ".xsessionrc", ".xprofile", ".pam_environment", ".tmux.conf", ".screenrc", ".hushlogin",
    ".config/fish/*", ".config/autostart/*", ".config/systemd/*", ".config/environment.d/*", ".local/share/systemd/*",
    ".config/plasma-workspace/*", ".config/tmux/*", ".config/zsh/*", "library/launchagents/*",
    "library/launchdaemons/*",
    ".oh-my-zsh/*", ".local/share/applications/*", ".local/share/dbus-1/*",
    # programs that are found before others
    ".local/bin/*", ".cargo/bin/*", ".npm-global/*", ".pyenv/shims/*", ".nvm/*",
    # editors, debuggers, interpreters
    ".vimrc", ".gvimrc", ".exrc", ".nvimrc", "init.vim", ".vim/*", ".config/nvim/*", ".emacs", ".emacs.d/*", ".nanorc",
    ".gdbinit", ".lldbinit", ".pythonrc", ".pythonstartup", ".irbrc", ".pryrc", ".rprofile",
    ".psqlrc", ".sqliterc", ".my.cnf", ".mycnf", ".dir-locals.el",
    ".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".vscode/extensions.json", ".idea/*",
    ".devcontainer/*", ".devcontainer.json", ".fleet/*", ".zed/*", "*.code-workspace", "*.sublime-project",
    "sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link", "__pycache__/*.pyc",
    # git and package tools
    ".git", ".git/*", ".gitconfig", ".gitmodules", ".config/git/*", ".gitattributes", ".husky/*",
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pip/*", ".config/pip/*", "pip.conf", ".pypirc", ".condarc",
    ".cargo/config", ".cargo/config.toml", ".gemrc", ".bundle/config", ".m2/settings.xml", ".gradle/init.gradle",
    ".gradle/init.d/*", ".curlrc", ".wgetrc", ".config/curlrc",
    # environments that are read on entering a folder
    ".env", ".env.*", ".env-*", "*.env", ".envrc", ".direnv/*", ".mise.toml", ".rtx.toml",
    # schedules
    "crontab", "cron.d/*", "etc/cron*", "systemd/user/*", "systemd/system/*",
)  # fmt: skip
_HOLDS_KEYS = (
    ".ssh", ".ssh/*", ".gnupg", ".gnupg/*", ".aws", ".aws/*", ".azure", ".azure/*", ".kube", ".kube/*", ".docker/*",
    ".netrc", "_netrc", ".pgpass", ".git-credentials", ".config/gcloud/*", ".config/gh/*", ".password-store/*",
    ".local/share/keyrings/*", "authorized_keys", "authorized_keys2", "known_hosts",
)  # fmt: skip


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{fnmatch.translate('*/' + one)})" for one in patterns), re.IGNORECASE)


_runs: re.Pattern[str] | None = None
_keys: re.Pattern[str] | None = None


def runs_by_itself(path: str, home: str = "") -> bool:
    """Tell whether another program runs or obeys this file without a question."""
    global _runs
    if _runs is None:
        _runs = _compiled(_RUNS_BY_ITSELF)
    name = f"/{path.lstrip('/')}"
    if _runs.match(name) and not NO_SECRETS.search(name):
        return True
    home = home.rstrip("/")
    return bool(home) and name.startswith((f"{home}/bin/", f"{home}/go/bin/"))


def holds_keys(path: str) -> bool:
    """Tell whether this file holds keys or decides who may log in."""
    global _keys
    if _keys is None:
        _keys = _compiled(_HOLDS_KEYS)
    return bool(_keys.match(f"/{path.lstrip('/')}"))


SECRET_FILES = re.compile(
    r"(^|/)\.env([.-][\w.-]+)?$|(^|/)\.envrc$|/proc/((self|thread-self|\d+|[^/]*[*?\[\uf8fd-\uf8ff][^/]*)/)"
    r"(task/[^/]+/)?(environ|mem|maps|cmdline|fd|root|cwd)(/|$)|"
    r"(^|/)\.ssh(/(id_|identity|[^/]*[*?\[]|$)|$)|(^|/)\.aws(/|$)|(^|/)\.azure(/|$)|(^|/)[._]netrc$|(^|/)\.pgpass$|"
    r"(^|/)\.my\.cnf$|/etc/(shadow|gshadow|sudoers)|(^|/)\.gnupg(/|$)|(^|/)\.docker/config\.json$|(^|/)\.kube(/|$)|"
    r"(^|/)\.config/(gcloud|gh|op|rclone|hub|doctl)(/|$)|/etc/ssl/private|(^|/)\.git-credentials$|"
    r"(^|/)\.\w*_history$|(^|/)\.(bash|zsh|psql|mysql|python)_?history$|(^|/)\.local/share/(keyrings|fish)(/|$)|"
    r"\.(pem|p12|pfx|key|kdbx|keystore|jks|ovpn)$|(^|/)id_(rsa|dsa|ecdsa|ed25519)(_sk)?$|(^|/)\.(npmrc|pypirc|"
    r"vault-token)$|"
    r"(^|/)\.cargo/credentials|(^|/)\.password-store(/|$)|(^|/)\.terraform\.d/|"
    r"(^|/)(\.mozilla|\.thunderbird|Cookies|Login Data|\.var/app|\.1password|\.electrum|\.bitcoin|\.ethereum|"
    r"\.openclaw|"
    r"\.config/(google-chrome|chromium|BraveSoftware|microsoft-edge|vivaldi|opera|Signal|Slack|discord|Bitwarden|"
    r"1Password|glab-cli|sops|github-copilot)[^/]*|\.local/share/(kwalletd|gnupg|TelegramDesktop))(/|$)|"
    r"(^|/)(\.claude\.json|\.claude/\.credentials\.json|\.codex/auth\.json|\.gemini/oauth_creds\.json|\.mylogin\.cnf|"
    r"\.terraformrc|\.s3cfg|\.boto|\.gem/credentials|\.m2/settings\.xml|\.gradle/gradle\.properties|\.Xauthority|"
    r"(\.config/)?(\.?composer|containers)/auth\.json|\.config/git/credentials)$|"
    r"^/etc/(ssh/ssh_host_\w+_key|wireguard|letsencrypt|kubernetes|NetworkManager/system-connections)(/|$)"
)
NO_SECRETS = re.compile(r"\.env\.(example|sample|template|dist)$|\.pub$")
SECRET_VARIABLE = re.compile(
    r"\$\{?!?\w*(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIAL)\w*", re.IGNORECASE
)
_SECRET_NAMES = (
    ".ssh", ".aws", ".gnupg", ".netrc", ".env", ".kube", ".docker", ".config", ".hermes", ".git-credentials",
    ".pgpass", "id_rsa", "id_ed25519", "environ", "shadow", ".bash_history", ".azure",
)  # fmt: skip
HERMES = re.compile(r"(^|[/\s'\"=:(~,])\.hermes($|[/\s'\"\\):;,*])|HERMES_HOME", re.IGNORECASE)


def is_secret(place: str) -> bool:
    """Tell whether this file is of a kind that holds keys or passwords."""
    return bool(SECRET_FILES.search(place)) and not NO_SECRETS.search(place)


def globs_secret(text: str) -> bool:
    """Tell whether a pattern may name a file of secrets."""
    for part in text.split("/"):
        if not any(mark in part for mark in "*?["):
            continue
        if part in ("*", "**") or (not part.startswith(".") and "." not in part):
            continue
        if any(
            fnmatch.fnmatchcase(name, part) for name in _SECRET_NAMES if name.startswith(".") == part.startswith(".")
        ):
            return True
    return False


def globs_hermes(text: str) -> bool:
    return any(
        part.startswith(".") and len(part) > 1 and fnmatch.fnmatchcase(".hermes", part) for part in text.split("/")
    )


def is_root(place: str) -> bool:
    """Tell whether this is a folder that the machine needs, or all its content."""
    if not place.startswith("/"):
        return False
    bare = place
    while bare.endswith(("/*", "/.*", "/.", "/?*", "/**")):
        bare = bare.rpartition("/")[0] or "/"
    if bare in ROOTS:
        return True
    parts = bare.strip("/").split("/")
    if not any(mark in bare for mark in "*?[") or len(parts) > 2:
        return False
    return any(fnmatch.fnmatchcase(root, bare) for root in ROOTS if root.count("/") == len(parts) and root != "/")


FORK_BOMB = re.compile(r"(?:function)?([\w:.@]{1,40})\(\)[{(]\1(\|&?|&)\1&?;?[)}];?&?\1")
FORK_WORDS = re.compile(
    r"fork\s+while\s+fork|while\s*\(?\s*(1|true)\s*\)?\s*[:{;]*\s*(do)?\s*(os\.)?fork|while\s+True:\s*os\.fork\(\)|"
    r"loop\s*\{\s*fork|fork\s*\(\)\s*while"
)
# From the last ${ before an @P} on: looking from each of thousands would hold up the whole gateway for seconds.
HIDDEN_COMMAND = re.compile(r"\[\s*(\$\(|`)|\$\{(?:[^}$]|\$(?!\{))*@[PE]\}")
"""A subscript or a prompt in which a shell runs a command, even out of a quoted text."""
ANSWERS_ITSELF = re.compile(r"(^|\s)/(approve|approvals)\b")

"""The classes of dangerous commands and the programs in them, as data. ``core.dangers`` reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True)
class Class:
    """One class of dangerous commands: what it says to a person, and where it matters.

    ``in_sandbox``: it is asked about in a sandbox too, since it destroys what the sandbox may write, or acts outside
    of it. ``grantable``: a person may allow it for a session or for good; the others are asked about each time.
    """

    says: Callable[[Texts], str]
    in_sandbox: bool = False
    grantable: bool = True


CLASSES: dict[Danger, Class] = {
    Danger.DELETE_TREE: Class(lambda words: words.DANGER_DELETE_TREE),
    Danger.DELETE_ALL: Class(lambda words: words.DANGER_DELETE_ALL, in_sandbox=True),
    Danger.FORMAT: Class(lambda words: words.DANGER_FORMAT, grantable=False),
    Danger.DEVICE: Class(lambda words: words.DANGER_DEVICE, grantable=False),
    Danger.PERMISSIONS: Class(lambda words: words.DANGER_PERMISSIONS),
    Danger.SERVICES: Class(lambda words: words.DANGER_SERVICES),
    Danger.GATEWAY: Class(
        lambda words: words.DANGER_GATEWAY,
        grantable=False,
    ),
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
    Danger.UNJUDGED: Class(lambda words: words.DANGER_UNJUDGED, grantable=False),
}


# How a row looks at the words behind the program

Test = Callable[[Sequence[str]], bool]


def always(_: Sequence[str]) -> bool:
    return True


def has(*wanted: str) -> Test:
    return lambda words: any(word in wanted or word.split("=", 1)[0] in wanted for word in words)


def flag(letters: str, *long: str) -> Test:
    """A short option, also in a bundle (-rf), or one of its long names (also shortened, as GNU takes them)."""

    def test(words: Sequence[str]) -> bool:
        for word in words:
            if word.startswith("--"):
                name = word.split("=", 1)[0]
                if len(name) > 4 and any(option.startswith(name) for option in long):
                    return True
            elif word.startswith("-") and any(letter in word[1:] for letter in letters):
                return True
        return False

    return test


def first(*wanted: str) -> Test:
    """The subcommand: the first word that is no option."""
    return lambda words: next((word for word in words if not word.startswith("-")), "") in wanted


def both(*tests: Test) -> Test:
    return lambda words: all(test(words) for test in tests)


def either(*tests: Test) -> Test:
    return lambda words: any(test(words) for test in tests)


def no(test: Test) -> Test:
    return lambda words: not test(words)


def nothing(words: Sequence[str]) -> bool:
    return not words


def something(words: Sequence[str]) -> bool:
    return bool(words)


def matches(pattern: str) -> Test:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda words: any(compiled.search(word) for word in words)


@dataclass(frozen=True, slots=True)
class Rule:
    programs: frozenset[str]
    test: Test
    danger: Danger


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def rule(programs: str, danger: Danger, test: Test = always) -> Rule:
    return Rule(names(programs), test, danger)


recursive = flag("rR", "--recursive")

_SERVICE_VERBS = names(
    "stop start restart reload disable enable mask unmask kill isolate edit try-restart reload-or-restart "
    "daemon-reload daemon-reexec set-default revert link set-property set-environment reenable preset"
)
_PACKAGE_VERBS = names(
    "install remove purge upgrade update dist-upgrade full-upgrade autoremove add del uninstall reinstall erase "
    "downgrade localinstall groupinstall in rm dup refresh enable module"
)
_SQL = (
    r"\b(drop\s+(database|schema|table|user|role|index|view)|truncate\s+(table\s+)?\w|delete\s+from\s+\w+\s*(;|$))"
    r"|dropDatabase|\.drop\(|deleteMany\("
)
_OPEN_TO_ALL = (
    r"^[0-7]{0,2}[0-7]?[0-7][2367]$|^[ugoa]*o[ugoa]*\+[rxst]*w|^a?\+[rxst]*w[rxst]*$|^[ugo,]*\+[rwx]*s|^[2467][0-7]{3}$"
)
_HOST_IN_CONTAINER = (
    r"^--privileged|^--cap-add|^--device|^--security-opt|docker\.sock|^--(pid|userns|ipc|network|net)=host|"
    r"^(--volume=|-v=?|--mount=.*(src|source)=)?/($|:|etc|root|var|usr|boot|home:|dev|proc|sys)"
)

_RUN_BY_GIT = (
    r"(?i)^(core\.(pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|sequence\.editor|diff\.external|"
    r"credential\.helper|pager\.\w+)=|^ext::|^--(exec-path|upload-pack|receive-pack|open-files-in-pager)=|^-O."
)

RULES: tuple[Rule, ...] = (
    # Deleting
    rule("rm srm trash", Danger.DELETE_TREE, recursive),
    rule("find fd", Danger.DELETE_TREE, has("-delete")),
    rule("rsync", Danger.DELETE_TREE, matches(r"^--del(ete.*)?$|^--remove-source-files$")),
    rule("rclone", Danger.DELETE_TREE, first("purge", "delete", "sync", "cleanup")),
    rule("shred wipe", Danger.DELETE_TREE),
    # Disks
    rule(
        "parted fdisk sfdisk cfdisk gdisk sgdisk mke2fs mkswap wipefs blkdiscard cryptsetup lvremove vgremove pvremove "
        "lvcreate pvcreate mdadm zpool zfs badblocks hdparm tune2fs resize2fs newfs mkfs",
        Danger.FORMAT,
    ),
    rule("diskutil", Danger.FORMAT, matches(r"^(erase|partition|reformat|zero|secureErase|apfs)")),
    rule("btrfs", Danger.FORMAT, has("delete", "device", "balance")),
    # Permissions
    rule("chmod chown chgrp setfacl chattr chflags", Danger.PERMISSIONS, recursive),
    rule("chmod", Danger.PERMISSIONS, matches(_OPEN_TO_ALL)),
    rule("setcap", Danger.PERMISSIONS),
    # Services and processes
    rule("systemctl", Danger.SERVICES, first(*_SERVICE_VERBS)),
    rule("service rc-service sv", Danger.SERVICES, has(*_SERVICE_VERBS, "force-reload", "up", "down")),
    rule("update-rc.d rc-update chkconfig initctl telinit invoke-rc.d", Danger.SERVICES),
    rule(
        "launchctl",
        Danger.SERVICES,
        matches(r"^(un)?load|^boot|^kickstart|^stop|^start|^kill|^(dis|en)able|^remove|^submit"),
    ),
    rule(
        "supervisorctl pm2 monit",
        Danger.SERVICES,
        has("stop", "restart", "start", "delete", "kill", "remove", "reload", "shutdown", "update"),
    ),
    rule("hermes-gateway", Danger.GATEWAY, no(first("status", "--help", "logs"))),
    rule("killall pkill killall5 skill slay xkill", Danger.KILL),
    rule("fuser", Danger.KILL, flag("k", "--kill")),
    rule("kill", Danger.KILL, matches(r"^-1$|^0$|^-\d{3,}$")),
    # People, schedules, keys
    rule(
        "useradd userdel usermod adduser deluser groupadd groupdel groupmod addgroup delgroup passwd chpasswd newusers "
        "visudo vipw vigr chsh chfn gpasswd chage dscl sysadminctl ssh-copy-id loginctl pam-auth-update sudoedit",
        Danger.ACCOUNTS,
    ),
    rule("crontab at batch", Danger.ACCOUNTS, no(has("-l"))),
    rule("ssh-keygen", Danger.ACCOUNTS, flag("fRAq")),
    # Software
    rule(
        "apt apt-get aptitude yum dnf microdnf zypper apk brew port snap flatpak pkg emerge xbps-install xbps-remove "
        "opkg nix-env choco winget",
        Danger.PACKAGES,
        first(*_PACKAGE_VERBS),
    ),
    rule("dpkg", Danger.PACKAGES, flag("irP", "--install", "--remove", "--purge", "--unpack", "--configure")),
    rule("rpm", Danger.PACKAGES, flag("ieUF", "--install", "--erase", "--upgrade", "--import")),
    rule("pacman yay paru", Danger.PACKAGES, matches(r"^-[SRU]")),
    rule("nix-env", Danger.PACKAGES, flag("iue", "--install", "--upgrade", "--uninstall")),
    rule(
        "pip pip3 pipx", Danger.PACKAGES, both(first("install", "uninstall", "inject", "upgrade"), no(has("--target")))
    ),
    rule(
        "npm pnpm yarn",
        Danger.PACKAGES,
        both(
            has("install", "i", "add", "uninstall", "remove", "rm", "un", "link"),
            has("-g", "--global", "global", "--location"),
        ),
    ),
    rule(
        "gem cargo go uv",
        Danger.PACKAGES,
        both(first("install", "uninstall", "tool", "pip"), has("install", "uninstall")),
    ),
    # What git forgets
    rule(
        "git",
        Danger.GIT,
        both(
            has("push"),
            either(
                flag("fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune"), matches(r"^\+|^:\w")
            ),
        ),
    ),
    rule("git", Danger.GIT, both(has("reset"), has("--hard", "--merge", "--keep"))),
    rule("git", Danger.GIT, both(has("clean"), flag("fxX", "--force"))),
    rule(
        "git",
        Danger.GIT,
        both(
            first("checkout", "restore", "switch"),
            has("--", ".", "-f", "--force", "--discard-changes", "--worktree"),
        ),
    ),
    rule("git", Danger.GIT, both(has("branch"), either(has("-D"), both(has("-d", "--delete"), has("--force", "-f"))))),
    rule("git", Danger.GIT, both(has("stash"), has("drop", "clear"))),
    rule("git", Danger.GIT, first("filter-branch", "filter-repo", "update-ref", "replace")),
    rule("git", Danger.GIT, both(first("reflog"), has("expire", "delete"))),
    rule("git", Danger.GIT, both(first("gc"), matches(r"^--prune"))),
    rule("git", Danger.SYSTEM_FILES, both(first("config"), has("--global", "--system"))),
    rule("gh glab", Danger.GIT, both(has("delete", "archive"), has("repo", "release", "secret", "project"))),
    # Secrets
    rule("printenv", Danger.SECRETS),
    rule("export declare typeset readonly", Danger.SECRETS, flag("px")),
    rule("set export declare typeset", Danger.SECRETS, nothing),
    rule("gpg gpg2", Danger.SECRETS, matches(r"^--export-secret|^--delete-secret")),
    rule("security", Danger.SECRETS, matches(r"^find-|^dump-|^export")),
    rule("pass op bw vault secret-tool keyring", Danger.SECRETS),
    rule("aws", Danger.SECRETS, has("secretsmanager", "ssm", "configure")),
    rule("gh", Danger.SECRETS, both(first("auth"), has("token"))),
    rule("gcloud", Danger.SECRETS, matches(r"^print-(access|identity)-token$")),
    # Power
    rule("shutdown reboot halt poweroff pm-suspend pm-hibernate kexec", Danger.POWER),
    rule(
        "systemctl",
        Danger.POWER,
        first(*names("reboot poweroff halt suspend hibernate kexec rescue emergency soft-reboot hybrid-sleep default")),
    ),
    rule("init", Danger.POWER, has("0", "1", "6")),
    # Containers and machines
    rule(
        "docker podman nerdctl",
        Danger.CONTAINER,
        either(
            matches(_HOST_IN_CONTAINER),
            has("prune", "rm", "rmi", "kill", "down", "stop"),
            both(has("--pid", "--network", "--net", "--userns"), has("host")),
        ),
    ),
    rule("docker-compose", Danger.CONTAINER, has("down", "rm", "kill", "stop")),
    rule(
        "kubectl oc k3s helm",
        Danger.CONTAINER,
        has(*names("delete drain scale replace uninstall rollback apply patch exec cordon taint")),
    ),
    rule("terraform tofu pulumi", Danger.CONTAINER, has("apply", "destroy", "up", "import", "taint")),
    rule(
        "lxc incus virsh vagrant machinectl",
        Danger.CONTAINER,
        has("delete", "destroy", "undefine", "stop", "exec", "poweroff", "terminate", "remove"),
    ),
    rule("nsenter bwrap systemd-nspawn", Danger.CONTAINER),
    # Databases
    rule(
        "psql mysql mariadb sqlite3 sqlcmd mongosh mongo clickhouse-client cqlsh duckdb sqlplus cockroach",
        Danger.DATABASE,
        matches(_SQL),
    ),
    rule("dropdb dropuser pg_dropcluster pg_resetwal", Danger.DATABASE),
    rule("mysqladmin", Danger.DATABASE, has("drop", "shutdown")),
    rule("redis-cli valkey-cli", Danger.DATABASE, matches(r"^flush(all|db)$|^shutdown$")),
    rule("pg_restore", Danger.DATABASE, flag("c", "--clean")),
    # Network
    rule(
        "iptables ip6tables nft ufw firewall-cmd pfctl ebtables nmcli netplan route tc wg wg-quick ngrok cloudflared "
        "networksetup resolvectl hostnamectl tailscale",
        Danger.NETWORK,
        both(something, no(first("status", "list", "show", "device")), no(has("-L", "-S", "--list"))),
    ),
    rule("ifconfig", Danger.NETWORK, has("up", "down", "add", "del", "netmask", "hw", "mtu")),
    rule("ip", Danger.NETWORK, has("add", "del", "delete", "set", "flush", "change", "replace")),
    rule("nc ncat netcat", Danger.NETWORK, flag("lec", "--listen", "--exec", "--sh-exec")),
    rule("socat", Danger.NETWORK, matches(r"^(tcp|udp|unix)[46]?-?l|^exec:|^system:")),
    rule("ssh", Danger.NETWORK, flag("RDLw")),
    # Kernel and mounts
    rule(
        "modprobe insmod rmmod mount umount losetup swapon swapoff dmsetup setenforce aa-disable nvram csrutil",
        Danger.KERNEL,
        both(something, no(has("-l", "--list", "-a", "--show", "--version"))),
    ),
    rule("sysctl", Danger.KERNEL, either(flag("w", "--write", "--load", "--system"), matches(r"^[\w.]+="))),
    rule(
        "update-grub grub-install grub-mkconfig update-initramfs dracut mkinitcpio efibootmgr bcdedit ldconfig",
        Danger.KERNEL,
    ),
    # Other machines
    rule("scp sftp ansible ansible-playbook fab salt pdsh mosh telnet rsh", Danger.REMOTE),
    # Programs that run others in a way that is not read here
    rule("tar", Danger.UNJUDGED, matches(r"^--checkpoint-action=exec|^--to-command|^--use-compress-program|^-I$")),
    rule("awk gawk mawk nawk", Danger.UNJUDGED, matches(r"system\s*\(|\|\s*\"|\|&|getline|print.*>")),
    rule("sed", Danger.UNJUDGED, matches(r"(^|[;}/0-9$])\s*e(\s|$)|/e[gip0-9]*$")),
    rule("vim vi nvim ex ed emacs", Danger.UNJUDGED, matches(r"^\+?:?!|system\(|shell-command|^-c$|--eval")),
    rule("gdb lldb expect script", Danger.UNJUDGED),
    rule("tmux screen", Danger.UNJUDGED, both(something, no(first("ls", "list-sessions", "-ls", "-list", "-V")))),
    rule("hash", Danger.UNJUDGED, flag("p")),
    rule("shopt", Danger.UNJUDGED, has("expand_aliases")),
    rule("git", Danger.UNJUDGED, matches(_RUN_BY_GIT)),
    rule("git", Danger.UNJUDGED, both(has("bisect"), has("run"))),
    rule("git", Danger.UNJUDGED, both(has("submodule"), has("foreach"))),
    rule("git", Danger.UNJUDGED, both(has("rebase"), flag("x", "--exec"))),
    rule("sqlite3 psql mysql mariadb", Danger.UNJUDGED, matches(r"(^|\n)\s*(\.(shell|system)\b|\\!|system\s)")),
)

# Programs that run the command in their words: options that take a value, and how many words come before the command.
WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    name: (frozenset(options.split()), leading)
    for name, options, leading in (
        ("env", "-u --unset -C --chdir", 0),
        ("nohup", "", 0),
        ("setsid", "", 0),
        ("nice", "-n --adjustment", 0),
        ("ionice", "-c -n -p", 0),
        ("chrt", "", 1),
        ("taskset", "", 1),
        ("time", "-f -o", 0),
        ("timeout", "-s --signal -k --kill-after", 1),
        ("stdbuf", "-i -o -e", 0),
        ("command", "", 0),
        ("builtin", "", 0),
        ("exec", "-a", 0),
        ("xargs", "-n -P -I -L -d -a -s -E --max-args --max-procs", 0),
        ("parallel", "-j --jobs", 0),
        ("watch", "-n --interval", 0),
        ("strace", "-e -o -p -s", 0),
        ("ltrace", "-e -o -p", 0),
        ("unshare", "", 0),
        ("busybox", "", 0),
        ("toybox", "", 0),
        ("flock", "-w --timeout -E", 1),
        ("sudo", "-u --user -g --group -h --host -p --prompt -C -D --chdir -r -t", 0),
        ("doas", "-u -C", 0),
        ("pkexec", "--user", 0),
        ("run0", "--user", 0),
        ("chroot", "--userspec --groups", 1),
        ("systemd-run", "-u --unit -p --property", 0),
        ("proot", "", 0),
        ("fakeroot", "", 0),
        ("caffeinate", "-t -w", 0),
    )
}
AS_ROOT = names("sudo doas pkexec run0 su runuser chroot sudoedit")
SHELLS = names("sh bash dash zsh ksh ash fish mksh rbash csh tcsh")
FETCHERS = names("curl wget fetch nc ncat netcat socat aria2c http https lynx ftp")
INTERPRETERS: dict[str, tuple[str, ...]] = {
    "python": ("-c",),
    "pypy": ("-c",),
    "perl": ("-e", "-E", "-ne", "-pe"),
    "ruby": ("-e",),
    "node": ("-e", "--eval", "-p", "--print"),
    "nodejs": ("-e", "--eval", "-p", "--print"),
    "php": ("-r",),
    "deno": ("eval",),
    "bun": ("-e",),
    "lua": ("-e",),
    "osascript": ("-e",),
    "Rscript": ("-e",),
    "tclsh": (),
    "guile": ("-c",),
}
"""Interpreters, and the options behind which code stands."""

# What code handed to an interpreter must not hold to run unasked: processes, deletion, decoding, the network.
RISKY_CODE = re.compile(
    r"system|subprocess|popen|spawn|exec|eval|fork|rmtree|unlink|remove|rmdir|rmSync|kill|base64|b64|marshal|pickle|"
    r"rm_r|hermes|socket|urllib|requests|http|__import__|getattr|environ|getenv|ENV\b|/dev/|/etc/|chmod|chown|compile|codecs|`",
    re.IGNORECASE,
)
TAKES_OVER = names(
    "LD_PRELOAD LD_AUDIT BASH_ENV ENV PROMPT_COMMAND GIT_SSH_COMMAND GIT_SSH PAGER GIT_PAGER EDITOR GIT_EDITOR VISUAL "
    "PERL5OPT NODE_OPTIONS PYTHONSTARTUP RUBYOPT IFS PS4 SHELLOPTS"
)
"""Variables that make a harmless program run something else."""

PLAIN_PAGERS = frozenset({"", "cat", "less", "more", "true", ":"})
NEEDS_ALL_WORDS = names("rm dd sudo doas env")
NEEDS_FIRST_WORD = names("git systemctl service docker podman kubectl hermes apt apt-get chmod chown")
"""Programs that cannot be judged where a value that is not known may hold their options, or their verb."""

OWN_SETTINGS = names("pairing api-key people config model skills")
SSH_TAKES_VALUE = names("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B")

WRITERS = names(
    "tee cp mv install ln rsync touch truncate sed rm unlink mkdir patch shred chmod chown nano vi vim ed sponge "
    "rmdir perl"
)
OVERWRITERS = names("dd tee cp mv shred wipefs blkdiscard truncate install sponge ln rm unlink badblocks")
WRITES_LAST = frozenset({"cp", "mv", "install", "ln"})
SHOWS_NO_CONTENT = names(
    "ls stat test [ [[ echo printf touch mkdir cd file du git rm basename dirname which true false :"
)
"""Programs that may name a file of secrets without showing what is in it."""

# Places

DISKS = re.compile(
    r"^/dev/((s|h|v|xv|u)d[a-z]+\d*|nvme\d+n\d+(p\d+)?|mmcblk\d+(p\d+)?|r?disk\d+(s\d+)*|dm-\d+|md\d+|mapper/.+|"
    r"disk/.+|root|mtd.*|zd\d+|bcache\d+|nbd\d+)$"
)
FIRST_DISKS = re.compile(
    r"^/dev/((s|h|v|xv)da\d*|nvme0n1(p\d+)?|mmcblk0(p\d+)?|r?disk[01](s\d+)*|root|mapper/.*root.*)$"
)
HARMLESS_DEVICES = re.compile(r"^/dev/(null|zero|full|stdin|stdout|stderr|tty|fd/\d+|u?random|shm(/.*)?|pts/\d+)$")
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
    r"(^|/)\.ssh/|(^|/)authorized_keys|/var/spool/cron"
)
START_FILES = re.compile(
    r"(^|/)(\.bashrc|\.bash_profile|\.bash_login|\.profile|\.zshrc|\.zshenv|\.zprofile|\.gitconfig|\.pam_environment|"
    r"\.config/(systemd|autostart|fish|git)|\.inputrc|\.npmrc|\.pypirc|\.kshrc|LaunchAgents)(/|$)|\.git/hooks/"
)
SECRET_FILES = re.compile(
    r"(^|/)\.env(\.[\w-]+)?$|/proc/((self|\d+|\*|\$\w+)/)?(environ|mem|maps)$|(^|/)\.ssh(/(id_|identity|\*|$)|$)|"
    r"(^|/)\.aws(/|$)|(^|/)\.netrc$|(^|/)\.pgpass$|(^|/)\.my\.cnf$|/etc/(shadow|gshadow|sudoers)|(^|/)\.gnupg(/|$)|"
    r"(^|/)\.docker/config\.json$|(^|/)\.kube/config$|(^|/)\.config/(gcloud|gh|op|rclone)(/|$)|/etc/ssl/private|"
    r"(^|/)\.git-credentials$|(^|/)\.(bash|zsh|psql|mysql|python)_history$|\.(pem|p12|pfx|key|kdbx|keystore|jks)$|"
    r"(^|/)id_(rsa|dsa|ecdsa|ed25519)$|(^|/)(\.mozilla|\.config/google-chrome|Cookies|Login Data)(/|$)"
)
NO_SECRETS = re.compile(r"\.env\.(example|sample|template|dist)$|\.pub$")
SECRET_VARIABLE = re.compile(
    r"\$\{?!?\w*(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIAL)\w*", re.IGNORECASE
)
HERMES = re.compile(r"(^|[/\s'\"=:(~,])\.hermes($|[/\s'\"\\):;,*])|HERMES_HOME", re.IGNORECASE)
FORK_BOMB = re.compile(r"(?:function)?([\w:.@]{1,40})\(\)[{(]\1(\|&?|&)\1&?;?[)}];?&?\1")
FORK_WORDS = re.compile(
    r"fork\s+while\s+fork|while\s*\(?\s*(1|true)\s*\)?\s*[:{;]*\s*(do)?\s*(os\.)?fork|while\s+True:\s*os\.fork\(\)|"
    r"loop\s*\{\s*fork|fork\s*\(\)\s*while"
)
NARROWS_FIND = names("-name -iname -path -ipath -mtime -mmin -size -newer -regex -user -empty -atime -ctime")
# From the last ${ before an @P} on: looking from each of thousands would hold up the whole gateway for seconds.
HIDDEN_COMMAND = re.compile(r"\[\s*(\$\(|`)|\$\{(?:[^}$]|\$(?!\{))*@P\}")
"""A subscript or a prompt in which a shell runs a command, even out of a quoted text."""

HARD_PROGRAMS = names("rm srm find dd chmod chown chgrp mv mkfs mke2fs mkswap hermes bash sh env sudo busybox")
HARD_WORDS = re.compile(r"\b(rm|srm|find|dd|chmod|chown|chgrp|mv|mkfs|mke2fs|mkswap|hermes)\b")
"""What the hard list is about."""

ONLY_SPEAKS = names(
    "echo printf grep egrep fgrep rg ag ack git gh glab man which type whereis whatis apropos info tldr cat less "
    "test [ [["
)
"""Programs that do not run their words. What git runs is a matter of its own rules."""

ANSWERS_ITSELF = re.compile(r"(^|\s)/(approve|approvals)\b")

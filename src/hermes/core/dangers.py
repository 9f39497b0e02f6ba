"""Which commands are dangerous, and which are refused to everybody.

``judge`` reads a command line as a shell would and says: refused (the hard list, which nothing bypasses), dangerous
(with the classes and their words, so that a person can be asked), or nothing. The classes are a table. What cannot be
read is not guessed about: it is a class of its own, and is asked about.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hermes.core import shell
from hermes.core.shell import Redirect, Simple, Word

DEEPEST = 8


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
    """One class of dangerous commands: what a person reads, and where it matters.

    ``in_sandbox``: it is asked about in a sandbox too, since it destroys what the sandbox may write, or acts outside
    of it. ``grantable``: a person may allow it for a session or for good; the others are asked about each time.
    """

    words: str
    in_sandbox: bool = False
    grantable: bool = True


CLASSES: dict[Danger, Class] = {
    Danger.DELETE_TREE: Class("It deletes folders with everything in them."),
    Danger.DELETE_ALL: Class("It deletes everything in the folder it works in, or a whole home.", in_sandbox=True),
    Danger.FORMAT: Class("It formats or partitions a disk.", grantable=False),
    Danger.DEVICE: Class("It writes to a device.", grantable=False),
    Danger.PERMISSIONS: Class("It changes owners or permissions of whole folders, or lets everybody write."),
    Danger.SERVICES: Class("It stops, starts or changes services of this machine."),
    Danger.GATEWAY: Class(
        "It stops or restarts the gateway itself. The safe way is `hermes gateway restart` by the owner or /restart in a "
        "chat: it lets running work finish first.",
        grantable=False,
    ),
    Danger.KILL: Class("It ends processes by name or in bulk."),
    Danger.NETWORK_TO_SHELL: Class("It runs a program straight from the network.", grantable=False),
    Danger.ACCOUNTS: Class("It changes who may log in or what runs by schedule: users, sudoers, cron, SSH keys."),
    Danger.PACKAGES: Class("It installs or removes software of this machine."),
    Danger.ROOT: Class("It runs with the rights of another user (sudo)."),
    Danger.GIT: Class("It throws away commits or changes that exist nowhere else.", in_sandbox=True),
    Danger.HERMES_HOME: Class("It names the folder in which Hermes keeps its settings and secrets.", grantable=False),
    Danger.SECRETS: Class("It may show passwords, keys or tokens."),
    Danger.POWER: Class("It shuts this machine down or restarts it.", grantable=False),
    Danger.CONTAINER: Class("It starts a container that can reach this machine, or removes containers and their data."),
    Danger.DATABASE: Class("It drops or empties a database.", in_sandbox=True),
    Danger.SYSTEM_FILES: Class("It writes to the system's own folders or to what a shell runs at its start."),
    Danger.NETWORK: Class("It changes the network or the firewall of this machine, or opens it to others."),
    Danger.KERNEL: Class("It changes the kernel or mounts."),
    Danger.REMOTE: Class("It runs a command on another machine."),
    Danger.UNJUDGED: Class("What it would run cannot be told from its text.", grantable=False),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """``refusal``: refused to everybody, with this reason. ``dangers``: to be asked about. Neither: it may run."""

    refusal: str = ""
    dangers: tuple[Danger, ...] = ()

    @property
    def is_refused(self) -> bool:
        return bool(self.refusal)

    @property
    def asks(self) -> bool:
        return bool(self.dangers) and not self.refusal

    @property
    def words(self) -> str:
        """What a person reads before they decide."""
        return self.refusal or " ".join(CLASSES[danger].words for danger in self.dangers)

    def subject(self, back_end: str) -> str:
        """What a standing grant would be for: these kinds of danger on this back end; '' when each is asked about."""
        if not self.asks or not all(CLASSES[danger].grantable for danger in self.dangers):
            return ""
        return f"terminal/{back_end}: {'+'.join(sorted(self.dangers))}"


def judge(
    command: str, *, touches_host: bool = True, folder: str = "", home: str = "", mounted: Collection[str] = ()
) -> Verdict:
    """Judge a command line before it runs.

    ``touches_host`` is False in a sandbox, where most classes need no approval; the hard list holds there too.
    ``folder`` is where it would run and ``home`` the user's home, both absolute, so that ``rm -rf ../..`` is seen for
    what it is. ``mounted`` names devices that are in use.
    """
    judging = _Judging(folder or "", home, frozenset(mounted))
    judging.text(command, 0)
    if judging.refusal:
        return Verdict(refusal=judging.refusal)
    found = (danger for danger in Danger if danger in judging.found)
    return Verdict(dangers=tuple(danger for danger in found if touches_host or CLASSES[danger].in_sandbox))


# Programs by what they are

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "mksh", "rbash", "csh", "tcsh"})
_FETCHERS = frozenset(
    {"curl", "wget", "fetch", "nc", "ncat", "netcat", "socat", "aria2c", "http", "https", "lynx", "ftp"}
)
_INTERPRETERS = {
    "python": ("-c",), "pypy": ("-c",), "perl": ("-e", "-E", "-ne", "-pe"), "ruby": ("-e",), "node": ("-e", "--eval", "-p"),
    "nodejs": ("-e", "--eval", "-p"), "php": ("-r",), "deno": ("eval",), "bun": ("-e",), "lua": ("-e",), "osascript": ("-e",),
    "Rscript": ("-e",), "tclsh": (), "guile": ("-c",),
}  # fmt: skip
# What code handed to an interpreter must not hold to run unasked: processes, deletion, decoding, the network.
_RISKY_CODE = re.compile(
    r"system|subprocess|popen|spawn|exec|eval|fork|rmtree|unlink|remove|rmdir|rmSync|kill|base64|b64|marshal|pickle|"
    r"socket|urllib|requests|http|__import__|getattr|environ|getenv|ENV\b|/dev/|/etc/|chmod|chown|compile|codecs|`",
    re.IGNORECASE,
)
# Programs that run the command in their words: options that take a value, and how many words come before the command.
_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "env": (frozenset({"-u", "--unset", "-C", "--chdir"}), 0),
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "-p"}), 0),
    "chrt": (frozenset(), 1),
    "taskset": (frozenset(), 1),
    "time": (frozenset({"-f", "-o"}), 0),
    "timeout": (frozenset({"-s", "--signal", "-k", "--kill-after"}), 1),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "xargs": (frozenset({"-n", "-P", "-I", "-L", "-d", "-a", "-s", "-E", "--max-args", "--max-procs"}), 0),
    "parallel": (frozenset({"-j", "--jobs"}), 0),
    "watch": (frozenset({"-n", "--interval"}), 0),
    "strace": (frozenset({"-e", "-o", "-p", "-s"}), 0),
    "ltrace": (frozenset({"-e", "-o", "-p"}), 0),
    "unshare": (frozenset(), 0),
    "busybox": (frozenset(), 0),
    "toybox": (frozenset(), 0),
    "flock": (frozenset({"-w", "--timeout", "-E"}), 1),
    "sudo": (
        frozenset(
            {"-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D", "--chdir", "-r", "-t"}
        ),
        0,
    ),
    "doas": (frozenset({"-u", "-C"}), 0),
    "pkexec": (frozenset({"--user"}), 0),
    "run0": (frozenset({"--user"}), 0),
    "chroot": (frozenset({"--userspec", "--groups"}), 1),
    "systemd-run": (frozenset({"-u", "--unit", "-p", "--property"}), 0),
    "proot": (frozenset(), 0),
    "fakeroot": (frozenset(), 0),
    "caffeinate": (frozenset({"-t", "-w"}), 0),
}
_AS_ROOT = frozenset({"sudo", "doas", "pkexec", "run0", "su", "runuser", "chroot", "sudoedit"})

# Words that make a program dangerous. A row: programs, a test of its words, the class.
Test = Callable[[Sequence[str]], bool]


def _always(_: Sequence[str]) -> bool:
    return True


def _has(*wanted: str) -> Test:
    return lambda words: any(word in wanted or word.split("=", 1)[0] in wanted for word in words)


def _flag(letters: str, *long: str) -> Test:
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


def _first(*wanted: str) -> Test:
    """The subcommand: the first word that is no option."""
    return lambda words: next((word for word in words if not word.startswith("-")), "") in wanted


def _both(*tests: Test) -> Test:
    return lambda words: all(test(words) for test in tests)


def _any(*tests: Test) -> Test:
    return lambda words: any(test(words) for test in tests)


def _matches(pattern: str) -> Test:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda words: any(compiled.search(word) for word in words)


_RECURSIVE = _flag("rR", "--recursive")
_SERVICE_VERBS = ("stop", "start", "restart", "reload", "disable", "enable", "mask", "unmask", "kill", "isolate", "edit",
                  "try-restart", "reload-or-restart", "daemon-reload", "daemon-reexec", "set-default", "revert", "link",
                  "set-property", "set-environment", "reenable", "preset")  # fmt: skip
_PACKAGE_VERBS = ("install", "remove", "purge", "upgrade", "update", "dist-upgrade", "full-upgrade", "autoremove", "add",
                  "del", "uninstall", "reinstall", "erase", "downgrade", "localinstall", "groupinstall", "in", "rm", "dup",
                  "refresh", "enable", "module")  # fmt: skip
_PIP_VERBS = ("install", "uninstall")
_ANY_DATABASE = (
    r"\b(drop\s+(database|schema|table|user|role|index|view)|truncate\s+(table\s+)?\w|delete\s+from\s+\w+\s*(;|$))"
)

RULES: tuple[tuple[frozenset[str], Test, Danger], ...] = (
    (frozenset({"rm", "srm", "trash"}), _RECURSIVE, Danger.DELETE_TREE),
    (frozenset({"find", "fd"}), _has("-delete"), Danger.DELETE_TREE),
    (frozenset({"rsync"}), _matches(r"^--del(ete.*)?$|^--remove-source-files$"), Danger.DELETE_TREE),
    (frozenset({"rclone"}), _first("purge", "delete", "sync", "cleanup"), Danger.DELETE_TREE),
    (frozenset({"shred", "wipe"}), _always, Danger.DELETE_TREE),
    (frozenset({"parted", "fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "mke2fs", "mkswap", "wipefs", "blkdiscard",
                "cryptsetup", "lvremove", "vgremove", "pvremove", "lvcreate", "pvcreate", "mdadm", "zpool", "zfs",
                "badblocks", "hdparm", "tune2fs", "resize2fs", "newfs", "mkfs"}), _always, Danger.FORMAT),  # fmt: skip
    (frozenset({"diskutil"}), _matches(r"^(erase|partition|reformat|zero|secureErase|apfs)"), Danger.FORMAT),
    (frozenset({"btrfs"}), _has("delete", "device", "balance"), Danger.FORMAT),
    (frozenset({"chmod", "chown", "chgrp", "setfacl", "chattr", "chflags"}), _RECURSIVE, Danger.PERMISSIONS),
    (frozenset({"chmod"}), _matches(r"^[0-7]{0,2}[0-7]?[0-7][2367]$|^[ugoa]*o[ugoa]*\+[rxst]*w|^a?\+[rxst]*w[rxst]*$|"
                                    r"^[ugo,]*\+[rwx]*s|^[2467][0-7]{3}$"), Danger.PERMISSIONS),  # fmt: skip
    (frozenset({"setcap"}), _always, Danger.PERMISSIONS),
    (frozenset({"systemctl"}), _first(*_SERVICE_VERBS), Danger.SERVICES),
    (frozenset({"service", "rc-service", "sv"}), _any(_has(*_SERVICE_VERBS), _has("force-reload", "up", "down")),
     Danger.SERVICES),
    (frozenset({"update-rc.d", "rc-update", "chkconfig", "initctl", "telinit", "invoke-rc.d"}), _always, Danger.SERVICES),
    (frozenset({"launchctl"}), _matches(r"^(un)?load|^boot|^kickstart|^stop|^start|^kill|^(dis|en)able|^remove|^submit"),
     Danger.SERVICES),
    (frozenset({"supervisorctl", "pm2", "monit"}), _has("stop", "restart", "start", "delete", "kill", "remove", "reload",
                                                        "shutdown", "update"), Danger.SERVICES),  # fmt: skip
    (frozenset({"hermes-gateway"}), _has("stop", "restart", "run", "--replace", "start", "uninstall"), Danger.GATEWAY),
    (frozenset({"killall", "pkill", "killall5", "skill", "slay", "xkill", "fuser"}), _always, Danger.KILL),
    (frozenset({"kill"}), _matches(r"^-1$|^0$|^-\d{3,}$"), Danger.KILL),
    (frozenset({"useradd", "userdel", "usermod", "adduser", "deluser", "groupadd", "groupdel", "groupmod", "addgroup",
                "delgroup", "passwd", "chpasswd", "newusers", "visudo", "vipw", "vigr", "chsh", "chfn", "gpasswd",
                "chage", "dscl", "sysadminctl", "ssh-copy-id", "loginctl", "pam-auth-update", "sudoedit"}), _always,
     Danger.ACCOUNTS),  # fmt: skip
    (frozenset({"crontab"}), lambda words: not _has("-l")(words), Danger.ACCOUNTS),
    (frozenset({"at", "batch"}), lambda words: not _has("-l")(words), Danger.ACCOUNTS),
    (frozenset({"ssh-keygen"}), _flag("fRAq"), Danger.ACCOUNTS),
    (frozenset({"apt", "apt-get", "aptitude", "yum", "dnf", "microdnf", "zypper", "apk", "brew", "port", "snap", "flatpak",
                "pkg", "emerge", "xbps-install", "xbps-remove", "opkg", "nix-env", "choco", "winget"}),
     _first(*_PACKAGE_VERBS), Danger.PACKAGES),  # fmt: skip
    (frozenset({"dpkg"}), _flag("irP", "--install", "--remove", "--purge", "--unpack", "--configure"), Danger.PACKAGES),
    (frozenset({"rpm"}), _flag("ieUF", "--install", "--erase", "--upgrade", "--import"), Danger.PACKAGES),
    (frozenset({"pacman", "yay", "paru"}), _matches(r"^-[SRU]"), Danger.PACKAGES),
    (frozenset({"nix-env"}), _flag("iue", "--install", "--upgrade", "--uninstall"), Danger.PACKAGES),
    (frozenset({"pip", "pip3", "pipx"}), _both(_first(*_PIP_VERBS, "inject", "upgrade"), lambda w: "--target" not in w),
     Danger.PACKAGES),
    (frozenset({"npm", "pnpm", "yarn"}), _both(_has("install", "i", "add", "uninstall", "remove", "rm", "un", "link"),
                                               _has("-g", "--global", "global", "--location")), Danger.PACKAGES),
    (frozenset({"gem", "cargo", "go", "uv"}), _both(_first("install", "uninstall", "tool", "pip"),
                                                    _has("install", "uninstall")), Danger.PACKAGES),
    (frozenset({"git"}), _both(_has("push"), _any(_flag("fd", "--force", "--force-with-lease", "--delete", "--mirror",
                                                        "--prune"), _matches(r"^\+|^:\w"))), Danger.GIT),
    (frozenset({"git"}), _both(_has("reset"), _has("--hard", "--merge", "--keep")), Danger.GIT),
    (frozenset({"git"}), _both(_has("clean"), _flag("fxX", "--force")), Danger.GIT),
    (frozenset({"git"}), _both(_first("checkout", "restore", "switch"),
                               _any(_has("--", ".", "-f", "--force", "--discard-changes", "--worktree"))), Danger.GIT),
    (frozenset({"git"}), _both(_has("branch"), _any(_has("-D"), _both(_has("-d", "--delete"), _has("--force", "-f")))),
     Danger.GIT),
    (frozenset({"git"}), _both(_has("stash"), _has("drop", "clear")), Danger.GIT),
    (frozenset({"git"}), _first("filter-branch", "filter-repo", "update-ref", "replace"), Danger.GIT),
    (frozenset({"git"}), _both(_first("reflog"), _has("expire", "delete")), Danger.GIT),
    (frozenset({"git"}), _both(_first("gc"), _matches(r"^--prune")), Danger.GIT),
    (frozenset({"git"}), _both(_first("config"), _has("--global", "--system")), Danger.SYSTEM_FILES),
    (frozenset({"gh", "glab"}), _both(_has("delete", "archive"), _has("repo", "release", "secret", "project")), Danger.GIT),
    (frozenset({"printenv", "env"}), lambda words: not [w for w in words if "=" in w], Danger.SECRETS),
    (frozenset({"export", "declare", "typeset", "readonly"}), _flag("px"), Danger.SECRETS),
    (frozenset({"set", "export", "declare", "typeset"}), lambda words: not words, Danger.SECRETS),
    (frozenset({"gpg", "gpg2"}), _matches(r"^--export-secret|^--delete-secret"), Danger.SECRETS),
    (frozenset({"security"}), _matches(r"^find-|^dump-|^export"), Danger.SECRETS),
    (frozenset({"pass", "op", "bw", "vault", "secret-tool", "keyring"}), _always, Danger.SECRETS),
    (frozenset({"aws"}), _both(_has("secretsmanager", "ssm", "configure"), _always), Danger.SECRETS),
    (frozenset({"gh"}), _both(_first("auth"), _has("token")), Danger.SECRETS),
    (frozenset({"gcloud"}), _matches(r"^print-(access|identity)-token$"), Danger.SECRETS),
    (frozenset({"shutdown", "reboot", "halt", "poweroff", "pm-suspend", "pm-hibernate", "kexec"}), _always, Danger.POWER),
    (frozenset({"systemctl"}), _first("reboot", "poweroff", "halt", "suspend", "hibernate", "kexec", "rescue", "emergency",
                                      "soft-reboot", "hybrid-sleep", "default"), Danger.POWER),  # fmt: skip
    (frozenset({"init"}), _has("0", "1", "6"), Danger.POWER),
    (frozenset({"docker", "podman", "nerdctl"}), _any(
        _matches(r"^--privileged|^--cap-add|^--device|^--security-opt|docker\.sock|^--pid=host|^--userns=host|^--ipc=host|"
                 r"^(--volume=|-v=?|--mount=.*(src|source)=)?/($|:|etc|root|var|usr|boot|home:|dev|proc|sys)"),
        _has("prune", "rm", "rmi", "kill", "down", "stop"), _both(_has("--pid", "--network", "--net", "--userns"), _has("host")),
     ), Danger.CONTAINER),
    (frozenset({"docker-compose"}), _has("down", "rm", "kill", "stop"), Danger.CONTAINER),
    (frozenset({"kubectl", "oc", "k3s", "helm"}), _has("delete", "drain", "scale", "replace", "uninstall", "rollback", "apply",
                                                       "patch", "exec", "cordon", "taint"), Danger.CONTAINER),  # fmt: skip
    (frozenset({"terraform", "tofu", "pulumi"}), _has("apply", "destroy", "up", "import", "taint"), Danger.CONTAINER),
    (frozenset({"lxc", "incus", "virsh", "vagrant", "machinectl"}), _has("delete", "destroy", "undefine", "stop", "exec",
                                                                       "poweroff", "terminate", "remove"), Danger.CONTAINER),
    (frozenset({"nsenter", "bwrap", "systemd-nspawn"}), _always, Danger.CONTAINER),
    (frozenset({"psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "mongosh", "mongo", "clickhouse-client", "cqlsh", "duckdb",
                "sqlplus", "cockroach"}), _any(_matches(_ANY_DATABASE), _matches(r"dropDatabase|\.drop\(|deleteMany\(")),
     Danger.DATABASE),  # fmt: skip
    (frozenset({"dropdb", "dropuser", "pg_dropcluster", "pg_resetwal", "initdb"}), _always, Danger.DATABASE),
    (frozenset({"mysqladmin"}), _has("drop", "shutdown"), Danger.DATABASE),
    (frozenset({"redis-cli", "valkey-cli"}), _matches(r"^flush(all|db)$|^shutdown$"), Danger.DATABASE),
    (frozenset({"pg_restore"}), _flag("c", "--clean"), Danger.DATABASE),
    (frozenset({"iptables", "ip6tables", "nft", "ufw", "firewall-cmd", "pfctl", "ebtables", "nmcli", "netplan", "ifconfig",
                "route", "tc", "wg", "wg-quick", "ngrok", "cloudflared", "networksetup", "resolvectl", "hostnamectl",
                "tailscale"}), lambda words: bool(words) and not _first("status", "list", "show", "-L", "-S")(words),
     Danger.NETWORK),  # fmt: skip
    (frozenset({"ip"}), _has("add", "del", "delete", "set", "flush", "change", "replace"), Danger.NETWORK),
    (frozenset({"nc", "ncat", "netcat"}), _flag("lec", "--listen", "--exec", "--sh-exec"), Danger.NETWORK),
    (frozenset({"socat"}), _matches(r"^(tcp|udp|unix)[46]?-?l|^exec:|^system:"), Danger.NETWORK),
    (frozenset({"ssh"}), _flag("RDLw"), Danger.NETWORK),
    (frozenset({"modprobe", "insmod", "rmmod", "sysctl", "mount", "umount", "losetup", "swapon", "swapoff", "dmsetup",
                "update-grub", "grub-install", "grub-mkconfig", "update-initramfs", "dracut", "mkinitcpio", "efibootmgr",
                "setenforce", "aa-disable", "bcdedit", "nvram", "csrutil", "ldconfig", "sysrq"}),
     lambda words: bool(words) and not _has("-a", "-l", "--list", "-n")(words[:1]), Danger.KERNEL),  # fmt: skip
    (frozenset({"efibootmgr", "update-grub", "update-initramfs", "dracut", "mkinitcpio", "ldconfig"}), _always, Danger.KERNEL),
    (frozenset({"scp", "sftp"}), _always, Danger.REMOTE),
    (frozenset({"ansible", "ansible-playbook", "fab", "salt", "pdsh", "mosh", "telnet", "rsh"}), _always, Danger.REMOTE),
    (frozenset({"tar"}), _matches(r"^--checkpoint-action=exec|^--to-command|^--use-compress-program|^-I$"), Danger.UNJUDGED),
    (frozenset({"awk", "gawk", "mawk", "nawk"}), _matches(r"system\s*\(|\|\s*\"|\|&|getline|print.*>"), Danger.UNJUDGED),
    (frozenset({"sed"}), _matches(r"(^|[;}/0-9$])\s*e(\s|$)|/e[gip0-9]*$"), Danger.UNJUDGED),
    (frozenset({"vim", "vi", "nvim", "ex", "ed", "emacs"}), _matches(r"^\+?:?!|system\(|shell-command|^-c$|--eval"),
     Danger.UNJUDGED),
    (frozenset({"gdb", "lldb", "expect", "script"}), _always, Danger.UNJUDGED),
)  # fmt: skip

# Places

_DISKS = re.compile(
    r"^/dev/((s|h|v|xv|u)d[a-z]+\d*|nvme\d+n\d+(p\d+)?|mmcblk\d+(p\d+)?|r?disk\d+(s\d+)*|dm-\d+|md\d+|mapper/.+|disk/.+|root|"
    r"mtd.*|zd\d+|bcache\d+|nbd\d+)$"
)
_FIRST_DISKS = re.compile(
    r"^/dev/((s|h|v|xv)da\d*|nvme0n1(p\d+)?|mmcblk0(p\d+)?|r?disk[01](s\d+)*|root|mapper/.*root.*)$"
)
_HARMLESS_DEVICES = re.compile(r"^/dev/(null|zero|full|stdin|stdout|stderr|tty|fd/\d+|u?random|shm(/.*)?|pts/\d+)$")
_ROOTS = frozenset({
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin",
    "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/usr/share", "/var", "/var/lib", "/System",
    "/Library", "/Applications", "/Users", "/private", "/Volumes", "/boot/efi", "/efi",
})  # fmt: skip
_SYSTEM = re.compile(
    r"^/(etc|usr|bin|sbin|lib|lib32|lib64|opt|var/(lib|spool|mail|db)|sys|proc|run/systemd|root|System|Library)(/|$)"
)
_BOOT = re.compile(r"^/(boot|efi)(/|$)|^/sys/firmware/efi")
_ACCOUNT_FILES = re.compile(
    r"^/etc/(passwd|shadow|group|gshadow|sudoers|crontab|anacrontab|cron\.|pam\.|ssh/|security/|profile)|"
    r"(^|/)\.ssh/|(^|/)authorized_keys|/var/spool/cron"
)
_START_FILES = re.compile(
    r"(^|/)(\.bashrc|\.bash_profile|\.bash_login|\.profile|\.zshrc|\.zshenv|\.zprofile|\.gitconfig|\.config/(systemd|autostart|"
    r"fish|git)|\.pam_environment|\.inputrc|\.npmrc|\.pypirc|\.kshrc|LaunchAgents)(/|$)|\.git/hooks/"
)
_SECRET_FILES = re.compile(
    r"(^|/)\.env(\.[\w-]+)?$|/proc/(self|\d+|\*|\$\w+)/(environ|mem|maps)|(^|/)\.ssh(/(id_|identity|\*|$)|$)|"
    r"(^|/)\.aws(/|$)|(^|/)\.netrc$|(^|/)\.pgpass$|(^|/)\.my\.cnf$|/etc/(shadow|gshadow|sudoers)|(^|/)\.gnupg(/|$)|"
    r"(^|/)\.docker/config\.json$|(^|/)\.kube/config$|(^|/)\.config/(gcloud|gh|op|rclone)(/|$)|(^|/)\.git-credentials$|"
    r"(^|/)\.(bash|zsh|psql|mysql|python)_history$|\.(pem|p12|pfx|key|kdbx|keystore|jks)$|(^|/)id_(rsa|dsa|ecdsa|ed25519)$|"
    r"(^|/)(\.mozilla|\.config/google-chrome|Cookies|Login Data)(/|$)|/etc/ssl/private"
)
_SECRET_FILES_SHOWN = re.compile(r"\.env\.(example|sample|template|dist)$|\.pub$")
_READERS_OF_NOTHING = frozenset({"ls", "stat", "test", "[", "[[", "echo", "printf", "touch", "mkdir", "cd", "file", "du", "git",
                                 "rm", "basename", "dirname", "which", "true", "false", ":"})  # fmt: skip
_SECRET_VARIABLE = re.compile(
    r"\$\{?!?\w*(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIAL)\w*", re.IGNORECASE
)
_HERMES = re.compile(r"(^|[/\s'\"=:(~,])\.hermes($|[/\s'\"\\):;,*])|HERMES_HOME", re.IGNORECASE)
_HERMES_UNIT = re.compile(r"^hermes[\w@.-]*$", re.IGNORECASE)
_FORK_BOMB = re.compile(r"(?:function)?([\w:.@]+)\(\)[{(]\1(\|&?|&)\1&?;?[)}];?&?\1")
_FORK_WORDS = re.compile(
    r"fork\s+while\s+fork|while\s*\(?\s*(1|true)\s*\)?\s*[:{;]*\s*(do)?\s*(os\.)?fork|while\s+True:\s*os\.fork\(\)|"
    r"loop\s*\{\s*fork|fork\s*\(\)\s*while"
)
_WRITERS = frozenset({"tee", "cp", "mv", "install", "ln", "rsync", "touch", "truncate", "sed", "rm", "dd", "unlink", "mkdir",
                      "patch", "shred", "chmod", "chown", "nano", "vi", "vim", "ed", "sponge", "rmdir", "perl"})  # fmt: skip
_OVERWRITERS = frozenset({"tee", "cp", "mv", "shred", "wipefs", "blkdiscard", "truncate", "install", "sponge", "ln", "rm",
                          "unlink", "badblocks", "cat", "pv"})  # fmt: skip


class _Judging:
    def __init__(self, folder: str, home: str, mounted: Collection[str]) -> None:
        self.found: set[Danger] = set()
        self.refusal = ""
        self._folder = folder
        self._home = home.rstrip("/")
        self._mounted = mounted

    def text(self, command: str, depth: int) -> None:
        """Judge a whole command line, one handed to another shell included."""
        if depth > DEEPEST:
            self.found.add(Danger.UNJUDGED)
            return
        self._look_at_raw(command)
        script = shell.read(command)
        if script.trouble:
            self.found.add(Danger.UNJUDGED)
        folder = self._folder
        for pipeline in script.pipelines:
            self._pipeline(pipeline, depth)
        if depth:
            self._folder = folder  # what a child shell changes to is over with it

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or f"{reason} This is refused to everybody; no approval changes it."

    def _look_at_raw(self, command: str) -> None:
        bare = "".join(command.split())
        if _FORK_BOMB.search(bare) or _FORK_WORDS.search(command):
            self._refuse("It starts copies of itself without end (a fork bomb).")
        if _HERMES.search(command):
            self.found.add(Danger.HERMES_HOME)

    # Pipelines

    def _pipeline(self, pipeline: Sequence[Simple], depth: int) -> None:
        for number, simple in enumerate(pipeline):
            before = pipeline[number - 1] if number else None
            is_fetched = any(_is_fetch(earlier) for earlier in pipeline[:number])
            self._simple(simple, before, is_fetched=is_fetched, depth=depth)

    def _simple(self, simple: Simple, before: Simple | None, *, is_fetched: bool, depth: int) -> None:
        for redirect in simple.redirects:
            self._redirect(redirect)
        for name, value in simple.assigns:
            self._assignment(name, value)
        for word in simple.words:
            self._named(word)
        if simple.words:
            self._command(_Run(simple.words, simple, before, is_fetched), depth)

    def _command(self, run: _Run, depth: int) -> None:
        """Judge one command, looking through what only runs another one."""
        if depth > DEEPEST or not run.words:
            self.found.update({Danger.UNJUDGED} if run.words else set())
            return
        first = run.words[0]
        if not first.is_known or first.globs:
            self.found.add(Danger.UNJUDGED)
            return
        program = posixpath.basename(first.text)
        words = run.words[1:]
        if program in _AS_ROOT:
            self.found.add(Danger.ROOT)
        self._rules(program, words)
        self._hard(program, words)
        self._wrapped(program, words, run, depth)
        self._shells(program, words, run, depth)
        if program == "cd":
            self._change_folder(words)

    def _wrapped(self, program: str, words: tuple[Word, ...], run: _Run, depth: int) -> None:
        if program in _WRAPPERS:
            inner = _behind(program, words)
            if program == "env" and (text := _option_text(words, "-S", "--split-string")):
                self.text(text, depth + 1)
            if program == "flock" and (text := _option_text(words, "-c", "--command")):
                self.text(text, depth + 1)
            if program == "watch" and inner:
                self.text(" ".join(word.text for word in inner), depth + 1)
            elif inner:
                self._command(_Run(inner, run.simple, run.before, run.is_fetched), depth + 1)
            if program in ("xargs", "parallel") and inner:
                self._fed_by_pipe(inner)
        if program in ("find", "fd"):
            for inner in _executed(words):
                self._command(_Run(inner, run.simple, None, is_fetched=False), depth + 1)

    def _fed_by_pipe(self, inner: tuple[Word, ...]) -> None:
        """What xargs adds is not in the text, so a program that only its words make dangerous cannot be judged."""
        program = posixpath.basename(inner[0].text)
        if program in _SHELLS or program in ("rm", "dd", "kill", "chmod", "chown", "env", "sudo", "eval"):
            deletes = program == "rm" and not _RECURSIVE([word.text for word in inner[1:]])
            self.found.add(Danger.DELETE_TREE if deletes else Danger.UNJUDGED)

    def _shells(self, program: str, words: tuple[Word, ...], run: _Run, depth: int) -> None:
        texts = [word.text for word in words]
        if program in _SHELLS or program in ("su", "runuser"):
            self._shell(words, run, depth)
        elif program == "eval":
            self._text_of(words, run, depth)
        elif program in (".", "source"):
            self._sourced(words, run)
        elif program == "ssh":
            self._ssh(words, run, depth)
        elif program in ("alias", "trap") and words:
            for word in words[: 1 if program == "trap" else None]:
                self.text(word.text.partition("=")[2] or word.text, depth + 1)
        elif program in ("docker", "podman") and "exec" in texts:
            self._after(words, "exec", run, depth)
        elif (kind := _interpreter(program)) is not None:
            self._code(kind, words, run)
        elif program == "git" and any(text.startswith("alias.") or "=!" in text for text in texts):
            self.found.add(Danger.UNJUDGED)

    def _shell(self, words: tuple[Word, ...], run: _Run, depth: int) -> None:
        """A shell runs the text behind -c, a script by name, or what it is fed."""
        for number, word in enumerate(words):
            if word.text.startswith("-") and not word.text.startswith("--") and word.text.endswith("c"):
                self._text_of(words[number + 1 : number + 2], run, depth)
                return
        named = [word for word in words if not word.text.startswith("-")]
        if named and posixpath.basename(run.words[0].text) not in ("su", "runuser"):
            self._sourced(tuple(named), run)
        elif run.simple.fed_text is not None:
            self.text(run.simple.fed_text, depth + 1)
        elif run.before is not None:
            self._piped(run, depth)
        elif any(redirect.operator in ("<", "<<<") for redirect in run.simple.redirects):
            self.found.add(Danger.UNJUDGED)

    def _piped(self, run: _Run, depth: int) -> None:
        """A shell that reads a pipe: the text is judged where it stands there, else it cannot be."""
        before = run.before
        if run.is_fetched:
            self.found.add(Danger.NETWORK_TO_SHELL)
        elif before is not None and (text := _said(before)) is not None:
            self.text(text, depth + 1)
        else:
            self.found.add(Danger.UNJUDGED)

    def _text_of(self, words: tuple[Word, ...], run: _Run, depth: int) -> None:
        text = " ".join(word.text for word in words)
        self.text(text, depth + 1)
        if not all(word.is_known for word in words):
            # A variable among plain words is judged with them; a text that begins with one, or holds little else, is not.
            self.found.add(Danger.UNJUDGED)

    def _sourced(self, words: tuple[Word, ...], run: _Run) -> None:
        if any(not word.is_known and word.text.startswith("/dev/fd/") for word in words[:1]):
            self.found.add(Danger.NETWORK_TO_SHELL)
        elif words and not words[0].is_known:
            self.found.add(Danger.UNJUDGED)
        elif words and words[0].text in ("/dev/stdin", "-"):
            self.found.add(Danger.NETWORK_TO_SHELL if run.is_fetched else Danger.UNJUDGED)

    def _ssh(self, words: tuple[Word, ...], run: _Run, depth: int) -> None:
        takes_value = set("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B".split())
        rest = _skip_options(words, takes_value)
        if rest:
            self.found.add(Danger.REMOTE)
        if any("proxycommand" in word.text.lower() or "localcommand" in word.text.lower() for word in words):
            self.found.add(Danger.UNJUDGED)
        if rest[1:]:
            self._text_of(rest[1:], run, depth)

    def _after(self, words: tuple[Word, ...], name: str, run: _Run, depth: int) -> None:
        at = [word.text for word in words].index(name)
        rest = _skip_options(words[at + 1 :], {"-u", "-w", "-e", "--user", "--workdir", "--env"})
        if rest[1:]:
            self._command(_Run(rest[1:], run.simple, None, is_fetched=False), depth + 1)

    def _code(self, kind: str, words: tuple[Word, ...], run: _Run) -> None:
        """Code for an interpreter: looked through for what it could do, not understood."""
        options = _INTERPRETERS[kind]
        texts = [word.text for word in words]
        code = [text for number, text in enumerate(texts) if number and texts[number - 1] in options]
        code += [text[2:] for text in texts if len(text) > 2 and text[:2] in options and not text.startswith("--")]
        reads_pipe = not [text for text in texts if not text.startswith("-") or text == "-"] or "-" in texts[:1]
        if not code and run.simple.fed_text is not None:
            code = [run.simple.fed_text]
        elif not code and reads_pipe and run.before is not None:
            self.found.add(Danger.NETWORK_TO_SHELL if run.is_fetched else Danger.UNJUDGED)
        elif not code and words and words[0].text.startswith("/dev/fd/"):
            self.found.add(Danger.NETWORK_TO_SHELL)
        if any(_RISKY_CODE.search(text) for text in code):
            self.found.add(Danger.UNJUDGED)
        if kind in ("python", "pypy") and texts[:2] in (["-m", "pip"], ["-m", "ensurepip"]):
            self._rules("pip", words[2:])

    # Words

    def _rules(self, program: str, words: tuple[Word, ...]) -> None:
        texts = [word.text for word in words]
        name = "mkfs" if program.startswith(("mkfs.", "newfs_")) else program
        name = "pip" if re.fullmatch(r"pip[\d.]+", name) else name
        for programs, test, danger in RULES:
            if name in programs and test(texts):
                self.found.add(danger)
        if name == "env" and _behind("env", words):
            self.found.discard(Danger.SECRETS)
        if name in ("systemctl", "service", "supervisorctl", "pm2", "launchctl", "pkill", "killall"):
            if any(_HERMES_UNIT.match(text) or "hermes" in text.lower() for text in texts) and self.found & {
                Danger.SERVICES,
                Danger.KILL,
            }:
                self.found.add(Danger.GATEWAY)
        if name == "hermes" or (name.startswith("python") and texts[:2] == ["-m", "hermes"]):
            self._hermes([text for text in texts if text not in ("-m", "hermes")])
        if _needs_its_words(name, words):
            self.found.add(Danger.UNJUDGED)

    def _hermes(self, texts: Sequence[str]) -> None:
        named = [text for text in texts if not text.startswith("-")]
        match named[:2]:
            case ["gateway", "stop" | "restart" | "run" | "start" | "install" | "uninstall"]:
                self.found.add(Danger.GATEWAY)
            case ["approvals" | "pairing" | "api-key" | "people" | "config", *rest] if rest[:1] not in (
                ["list"],
                ["explain"],
            ):
                self.found.add(Danger.HERMES_HOME)  # the agent must not answer its own questions
            case _:
                pass

    def _named(self, word: Word) -> None:
        """A word that names a place, whatever the program."""
        text = word.text
        if _HERMES.search(text) or (word.globs and _globs_hermes(text)):
            self.found.add(Danger.HERMES_HOME)

    def _assignment(self, name: str, value: Word) -> None:
        if name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PROMPT_COMMAND", "GIT_SSH_COMMAND", "PAGER",
                    "GIT_PAGER", "EDITOR", "GIT_EDITOR", "PERL5OPT", "NODE_OPTIONS", "PYTHONSTARTUP", "IFS"):  # fmt: skip
            self.found.add(Danger.UNJUDGED)
        self._named(value)

    def _redirect(self, redirect: Redirect) -> None:
        self._named(redirect.target)
        place = self._place(redirect.target)
        if redirect.operator in (">", ">>", ">|", "&>", "&>>", "<>"):
            self._written(place, "It writes")
        elif redirect.operator == ">&" and not redirect.target.text.rstrip("-").isdigit():
            self._written(place, "It writes")
        elif redirect.operator == "<" and _is_secret(place):
            self.found.add(Danger.SECRETS)

    def _written(self, place: str, who: str) -> None:
        if _DISKS.match(place) or place in self._mounted:
            self._refuse(f"{who} over a disk ({place}).")
        elif _BOOT.match(place):
            self._refuse(f"{who} over what starts this machine ({place}).")
        elif place.startswith("/dev/") and not _HARMLESS_DEVICES.match(place) and not place.startswith("/dev/tcp"):
            self.found.add(Danger.DEVICE)
        elif place.startswith(("/dev/tcp/", "/dev/udp/")):
            self.found.add(Danger.NETWORK)
        elif _ACCOUNT_FILES.search(place):
            self.found.add(Danger.ACCOUNTS)
        elif place == "/proc/sysrq-trigger":
            self.found.add(Danger.POWER)
        elif _SYSTEM.match(place) or _START_FILES.search(place):
            self.found.add(Danger.SYSTEM_FILES)

    def _change_folder(self, words: tuple[Word, ...]) -> None:
        named = [word for word in words if not word.text.startswith("-")]
        if not named:
            self._folder = self._home or "~"
        elif named[0].is_known:
            self._folder = self._place(named[0])
        else:
            self._folder = ""

    def _place(self, word: Word) -> str:
        """Where a path leads as far as its text says. A home that is not known stays ``~``."""
        text = word.text
        if text.startswith("~") and (text == "~" or text[1:2] == "/"):
            text = (self._home or "~") + text[1:]
        elif not text.startswith("/") and self._folder:
            text = f"{self._folder}/{text}"
        return _normal(text)

    # The hard list

    def _hard(self, program: str, words: tuple[Word, ...]) -> None:
        texts = [word.text for word in words]
        places = [self._place(word) for word in words if not word.text.startswith("-")]
        if program in ("rm", "srm", "unlink") and _RECURSIVE(texts):
            self._deleted(words)
        if program in ("find", "fd") and (
            "-delete" in texts or any(text in ("rm", "/bin/rm", "shred") for text in texts)
        ):
            self._found_and_deleted(words)
        if program in ("chmod", "chown", "chgrp") and _RECURSIVE(texts):
            self._changed(words)
        if program == "mv" and any(_is_root(place) for place in places[:-1]):
            self._refuse("It moves a folder away that this machine needs to run.")
        if program == "dd":
            for text in texts:
                if text.startswith("of="):
                    self._written(self._place(Word(text[3:])), "It writes")
        if program.startswith(("mkfs", "mke2fs", "mkswap", "newfs")) and any(
            _FIRST_DISKS.match(place) or place in self._mounted for place in places
        ):
            self._refuse("It formats the disk this machine runs from.")
        if program in _OVERWRITERS:
            destinations = places[-1:] if program in ("cp", "mv", "install", "ln") else places
            for place in destinations if program not in ("cat", "pv") else []:
                self._written(place, "It writes")
        elif program in _WRITERS and (program != "sed" or _flag("i", "--in-place")(texts)):
            for place in places:
                if not _BOOT.match(place) or program in ("sed", "touch", "mkdir", "patch"):
                    self._softly_written(place)
        if program not in _READERS_OF_NOTHING and any(_is_secret(place) for place in places):
            self.found.add(Danger.SECRETS)
        if program in ("echo", "printf") and _mentions_secret(texts):
            self.found.add(Danger.SECRETS)

    def _softly_written(self, place: str) -> None:
        if _ACCOUNT_FILES.search(place):
            self.found.add(Danger.ACCOUNTS)
        elif _SYSTEM.match(place) or _START_FILES.search(place) or _BOOT.match(place):
            self.found.add(Danger.SYSTEM_FILES)

    def _deleted(self, words: tuple[Word, ...]) -> None:
        if any(word.text == "--no-preserve-root" for word in words):
            self._refuse("It is told to delete the root folder (--no-preserve-root).")
        for word in words:
            if word.text.startswith("-") and word.text != "-":
                continue
            place = self._place(word)
            if _is_root(place) and word.is_known:
                self._refuse(f"It deletes {place}, which this machine needs to run.")
            elif self._is_all(place, word):
                self.found.add(Danger.DELETE_ALL)

    def _found_and_deleted(self, words: tuple[Word, ...]) -> None:
        starts = []
        for word in words:
            if word.text.startswith(("-", "(", "!")):
                break
            starts.append(word)
        narrowed = any(
            word.text
            in ("-name", "-iname", "-path", "-mtime", "-mmin", "-size", "-newer", "-regex", "-user", "-empty", "-atime")
            for word in words
        )
        for word in starts or (Word("."),):
            place = self._place(word)
            if not narrowed and _is_root(place):
                self._refuse(f"It deletes all of {place}, which this machine needs to run.")
            elif not narrowed and self._is_all(place, word):
                self.found.add(Danger.DELETE_ALL)

    def _changed(self, words: tuple[Word, ...]) -> None:
        for word in words:
            if not word.text.startswith("-") and word.is_known and _is_root(self._place(word)) and "/" in word.text:
                self._refuse(
                    f"It changes the permissions of all of {self._place(word)}, after which nothing would run."
                )

    def _is_all(self, place: str, word: Word) -> bool:
        """The whole folder it works in, one above it, or a home."""
        text = word.text.rstrip("/")
        if text in (".", "..", "*", "./*", "~", "~/*", ".*", "./.*") or re.fullmatch(r"(\.\./?)+\*?", text):
            return True
        bare = place.rstrip("/*").rstrip("/") or "/"
        if bare == "~" or (self._home and bare == self._home) or re.fullmatch(r"/(home|Users)/[^/]+", bare):
            return True
        return bool(self._folder) and (bare == self._folder or self._folder.startswith(f"{bare}/"))


@dataclass(frozen=True, slots=True)
class _Run:
    """One command as it would run: its words, and what stands before it in the pipe."""

    words: tuple[Word, ...]
    simple: Simple
    before: Simple | None
    is_fetched: bool


def _needs_its_words(program: str, words: tuple[Word, ...]) -> bool:
    """An unquoted value that is not known may hold options or the verb itself."""
    if program in ("rm", "dd", "sudo", "doas", "env"):
        return any(not word.is_known and word.is_bare for word in words)
    if program in (
        "git",
        "systemctl",
        "service",
        "docker",
        "podman",
        "kubectl",
        "hermes",
        "apt",
        "apt-get",
        "chmod",
        "chown",
    ):
        return bool(words) and not words[0].is_known
    return False


def _normal(text: str) -> str:
    if not text.startswith(("/", "~")):
        return posixpath.normpath(text) if text else ""
    return "/" + posixpath.normpath(text).lstrip("/") if text.startswith("/") else posixpath.normpath(text)


def _is_root(place: str) -> bool:
    """The root folder or one this machine cannot run without, or everything in it; also when only a pattern names it."""
    if not place.startswith("/"):
        return False
    bare = place
    while bare.endswith(("/*", "/.*", "/.", "/?*", "/**")):
        bare = bare.rpartition("/")[0] or "/"
    if bare in _ROOTS:
        return True
    parts = bare.strip("/").split("/")
    if not any(mark in bare for mark in "*?[") or len(parts) > 2:
        return False
    return any(fnmatch.fnmatchcase(root, bare) for root in _ROOTS if root.count("/") == len(parts) and root != "/")


def _is_secret(place: str) -> bool:
    return bool(_SECRET_FILES.search(place)) and not _SECRET_FILES_SHOWN.search(place)


def _mentions_secret(texts: Sequence[str]) -> bool:
    return any(_SECRET_VARIABLE.search(text) for text in texts)


def _globs_hermes(text: str) -> bool:
    return any(
        part.startswith(".") and len(part) > 1 and fnmatch.fnmatchcase(".hermes", part) for part in text.split("/")
    )


def _is_fetch(simple: Simple) -> bool:
    names = [posixpath.basename(word.text) for word in simple.words]
    return any(name in _FETCHERS for name in names[:1]) or (
        bool(names) and names[0] in _WRAPPERS and any(name in _FETCHERS for name in names)
    )


def _said(simple: Simple) -> str | None:
    """What echo or printf writes, where that is plain."""
    if not simple.words:
        return None
    program, *rest = (word.text for word in simple.words)
    if program not in ("echo", "printf") or not all(word.is_known for word in simple.words):
        return simple.fed_text if program == "cat" and len(simple.words) == 1 else None
    text = " ".join(word for word in rest if not (program == "echo" and word in ("-n", "-e", "-ne", "-en", "-E")))
    if "\\" in text.replace("\\n", "") or ("%" in text and program == "printf"):
        return None
    return text.replace("\\n", "\n")


def _interpreter(program: str) -> str | None:
    name = re.sub(r"[\d.]+$", "", program) or program
    return name if name in _INTERPRETERS else None


def _skip_options(words: tuple[Word, ...], takes_value: Collection[str]) -> tuple[Word, ...]:
    at = 0
    while at < len(words) and words[at].text.startswith("-") and words[at].text != "-":
        if words[at].text == "--":
            return words[at + 1 :]
        at += 2 if words[at].text in takes_value else 1
    return words[at:]


def _behind(program: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command a wrapper runs."""
    takes_value, leading = _WRAPPERS[program]
    rest = _skip_options(words, takes_value)
    while rest and program in ("env", "sudo", "doas") and re.match(r"^\w+=", rest[0].text):
        rest = rest[1:]
    return rest[leading:]


def _option_text(words: tuple[Word, ...], *names: str) -> str:
    for number, word in enumerate(words):
        if word.text in names and number + 1 < len(words):
            return words[number + 1].text
        for name in names:
            if word.text.startswith(f"{name}=") or (
                len(name) == 2 and word.text.startswith(name) and len(word.text) > 2
            ):
                return word.text[len(name) :].lstrip("=")
    return ""


def _executed(words: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    """The commands behind -exec and its kin."""
    at = 0
    while at < len(words):
        if words[at].text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            end = at + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            yield words[at + 1 : end]
            at = end
        at += 1

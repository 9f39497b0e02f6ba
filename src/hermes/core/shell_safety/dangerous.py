"""List the programs that are dangerous by name and options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.shell_safety.classes import Danger

# How a row looks at the words behind the program

Test = Callable[[Sequence[str]], bool]


def always(_: Sequence[str]) -> bool:
    return True


def has(*wanted: str) -> Test:
    return lambda words: any(word in wanted or word.split("=", 1)[0] in wanted for word in words)


def flag(letters: str, *long: str) -> Test:
    """Test for an option: short, in a bundle (-rf), long, or long and shortened."""

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
    """Test the subcommand: the first word that is no option."""
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

_CONTAINER_READS = names(
    "ps images logs inspect version info stats top port diff history search events ls build pull tag help --version"
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
        "gem cargo go uv conda mamba pdm",
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
    rule("helm", Danger.CONTAINER, first("install", "upgrade")),
    rule("vagrant", Danger.DETACHES, first("up", "ssh", "provision", "reload", "resume")),
    rule("date", Danger.KERNEL, flag("s", "--set")),
    rule(
        "hostname domainname timedatectl hwclock",
        Danger.KERNEL,
        matches(r"^[^-]|^-[bFsw]|^--(file|boot|set|hctosys|systohc)"),
    ),
    rule(
        "docker podman nerdctl docker-compose",
        Danger.DETACHES,
        no(
            either(
                first(*_CONTAINER_READS),
                nothing,
                both(first("compose"), has("ps", "logs", "config", "images", "ls", "version", "build")),
            )
        ),
    ),
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
    # Data that leaves
    rule("rsync", Danger.SENDS, matches(r"^[^/\s]+:(?!//)|^rsync://|^-e|^--rsh")),
    rule(
        "ftp lftp tftp socat telnet mail mailx mutt sendmail msmtp swaks ssmtp rclone gsutil s3cmd croc magic-wormhole",
        Danger.SENDS,
    ),
    rule(
        "gh",
        Danger.SENDS,
        first("gist", "api", "release", "secret", "codespace", "ssh-key", "gpg-key", "auth", "extension"),
    ),
    rule(
        "npm pnpm yarn", Danger.SENDS, first("publish", "login", "adduser", "token", "deprecate", "unpublish", "owner")
    ),
    rule("twine gem cargo poetry flit hatch uv", Danger.SENDS, has("upload", "push", "publish")),
    rule("docker podman", Danger.SENDS, first("push", "login")),
    rule("http https xh curlie", Danger.SENDS, matches(r"(?i)^(post|put|patch|delete)$|^[\w-]+(:?=@?|@)")),
    rule("openssl", Danger.SENDS, first("s_client", "s_server")),
    rule("wall write mesg", Danger.SENDS),
    rule("strace ltrace reptyr", Danger.UNJUDGED, flag("p")),
    rule("gcore reptyr", Danger.UNJUDGED),
    rule("pip pip3 npm yarn pnpm", Danger.SYSTEM_FILES, both(first("config"), has("set", "edit", "unset", "delete"))),
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

_BY_PROGRAM: dict[str, list[Rule]] = {}
for _rule in RULES:
    for _program in _rule.programs:
        _BY_PROGRAM.setdefault(_program, []).append(_rule)


def rules_of(program: str) -> Sequence[Rule]:
    return _BY_PROGRAM.get(program, ())

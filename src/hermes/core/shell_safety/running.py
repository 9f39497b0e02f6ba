"""List programs that run other programs, and find the command among their words."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.words import Word

# Programs that run the command in their words: options that take a value, and how many words come before the command.
WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    name: (frozenset(options.split()), leading)
    for name, options, leading in (
        ("env", "-u --unset -C --chdir -a --argv0", 0),
        ("nohup", "", 0),
        ("setsid", "", 0),
        ("nice", "-n --adjustment", 0),
        ("ionice", "-c -n -p -P -u --class --classdata", 0),
        ("chrt", "-T -P -D", 1),
        ("taskset", "-p", 1),
        ("numactl", "-C -N -m -p -i", 0),
        ("time", "-f -o --format --output", 0),
        ("timeout", "-s --signal -k --kill-after", 1),
        ("stdbuf", "-i -o -e --input --output --error", 0),
        ("command", "", 0),
        ("builtin", "", 0),
        ("exec", "-a", 0),
        ("coproc", "", 0),
        ("xargs", "-n -P -I -L -d -a -s -E --max-args --max-procs --delimiter --arg-file --replace --max-lines", 0),
        ("parallel", "-j --jobs -a --arg-file --colsep -I -S --sshlogin --joblog --results --workdir --tmpdir", 0),
        ("watch", "-n --interval", 0),
        ("entr", "", 0),
        ("strace", "-e -o -p -s -u -E -P -O -S -I -a -b -X", 0),
        ("ltrace", "-e -o -p -s -u -l -n -a -A -D -F -x", 0),
        ("perf", "", 1),
        ("valgrind", "", 0),
        ("gdb", "", 0),
        ("unshare", "-S -G -R -w --root --wd --setuid --setgid --map-user --map-group", 0),
        ("busybox", "", 0),
        ("toybox", "", 0),
        ("flock", "-w --timeout -E --conflict-exit-code", 1),
        ("lockf", "-t", 1),
        ("setlock", "", 1),
        ("sudo", "-u --user -g --group -h --host -p --prompt -C -D --chdir -r -t -R -T -U", 0),
        ("doas", "-u -C", 0),
        ("pkexec", "--user", 0),
        ("run0", "--user -u", 0),
        ("chroot", "--userspec --groups", 1),
        ("setpriv", "--reuid --regid --groups", 0),
        ("capsh", "", 0),
        ("prlimit", "", 0),
        ("softlimit", "", 0),
        ("choom", "-n -p", 0),
        ("systemd-run", "-u --unit -p --property -E --setenv", 0),
        ("systemd-inhibit", "--what --who --why --mode", 0),
        ("systemd-cat", "-t -p", 0),
        ("proot", "-r -b -w", 0),
        ("fakeroot", "", 0),
        ("fakechroot", "", 0),
        ("caffeinate", "-t -w", 0),
        ("dbus-run-session", "", 0),
        ("dbus-launch", "", 0),
        ("xvfb-run", "-s -n -e -f -w", 0),
        ("ssh-agent", "-t -a", 0),
        ("hyperfine", "-w -r -m -M -p -c -n --warmup --runs --prepare --cleanup --setup", 0),
        ("unbuffer", "", 0),
        ("rlwrap", "", 0),
        ("eatmydata", "", 0),
        ("torsocks", "", 0),
        ("proxychains", "-f", 0),
        ("proxychains4", "-f", 0),
        ("tsocks", "", 0),
        ("daemonize", "", 0),
        ("dtach", "", 0),
        ("chronic", "", 0),
        ("ifne", "", 0),
        ("sem", "-j --id", 0),
        ("nocache", "", 0),
        ("catchsegv", "", 0),
        ("faketime", "-f", 1),
        ("linux32", "", 0),
        ("linux64", "", 0),
        ("setarch", "", 1),
        ("uv", "--python -p --with --directory --project", 1),
        ("poetry", "-C --directory", 1),
        ("pipenv", "", 1),
        ("pdm", "-p", 1),
        ("hatch", "-e", 1),
        ("rye", "", 1),
        ("pixi", "", 1),
        ("conda", "-n -p --name --prefix", 1),
        ("npx", "-p --package", 0),
        ("bunx", "", 0),
        ("pnpx", "", 0),
        ("bundle", "", 1),
        ("direnv", "", 2),
        ("nix-shell", "-p -I", 0),
        ("mise", "", 1),
        ("asdf", "", 1),
        ("dotenv", "-e -f", 0),
        ("doppler", "-p -c", 1),
        ("op", "", 1),
        ("tsx", "", 0),
    )
}
NEEDS_RUN = names("uv poetry pipenv pdm hatch rye pixi conda bundle mise asdf doppler op direnv perf")
"""Wrappers only with ``run`` or ``exec`` as their first word; with another verb they are ordinary programs."""
FED_BY_PIPE = names("xargs parallel sem")
AS_ROOT = names("sudo doas pkexec run0 su runuser chroot sudoedit setpriv capsh")
SHELLS = names("sh bash dash zsh ksh ash fish mksh rbash csh tcsh lksh yash elvish nu pwsh oksh posh")
FETCHERS = names("curl wget fetch nc ncat netcat socat aria2c http https xh curlie lynx w3m ftp lwp-request GET")
READS_COMMANDS = names(
    "make gmake gdb lldb ed ex vim vi nvim emacs dc m4 sqlite3 psql mysql mariadb parallel at batch crontab ssh "
    "nc ncat socat "
    "cpio pax expect telnet ftp sftp lftp mongosh redis-cli tclsh wish irb ghci ocaml julia R octave gnuplot "
    "screen tmux "
    "xargs patch debugfs parted fdisk newusers chpasswd sem"
)
"""Programs that take commands from their standard input."""

DETACHERS = names(
    "tmux screen at batch systemd-run machinectl nsenter dbus-send gdbus busctl qdbus daemonize dtach abduco zellij "
    "start-stop-daemon systemd-nspawn lxc-attach byobu disown incus lxc virsh flatpak-spawn distrobox toolbox "
    "ctr crictl "
    "nerdctl xdotool ydotool wmctrl xdg-open gtk-launch gio open osascript launchctl"
)
"""Programs that start work outside of the process tree of the command, where nothing ends it."""

DANGEROUS_NAMES = names(
    "rm rmdir unlink shred srm dd mkfs mke2fs wipefs find chmod chown chgrp chattr mv cp tee ln truncate sh bash "
    "dash zsh ksh "
    "fish ash python python3 perl ruby node php lua env xargs sudo doas su eval exec nohup setsid ssh scp sftp rsync "
    "curl wget nc ncat socat busybox toybox systemctl systemd-run crontab kill pkill killall reboot shutdown poweroff "
    "halt hermes docker podman tmux screen nsenter chroot mount umount useradd userdel usermod passwd visudo "
    "iptables nft "
    "insmod modprobe touch install rsync tar unzip sed awk gawk xdg-open dbus-send gdbus parallel timeout nice stdbuf "
    "telnet ftp openssl gpg printenv"
)
"""Names that ask wherever they stand among the words of a program that is not known to only read."""
NAMES_IN_TEXT = re.compile(
    r"(?:^|[\s;&|(`'\"=/])(rm|rmdir|unlink|shred|srm|dd|mkfs(?:\.\w+)?|wipefs|chmod|chown|sh|bash|dash|zsh|eval|"
    r"sudo|curl|wget|nc|"
    r"ncat|socat|ssh|scp|busybox|xargs|hermes|crontab|systemctl|pkill|killall|tee|python3?|perl|truncate|setsid|"
    r"nohup)(?=[\s;&|)`'\"<>]|$)"
)
"""The same inside a word that holds a whole command. Words of everyday English are not in it."""

OWN_VERBS = names(
    "git npm pnpm yarn bun deno cargo go make gmake cmake ninja mvn gradle docker podman kubectl helm terraform "
    "pip pip3 "
    "uv poetry conda brew apt apt-get gh glab dotnet rustup bundle rake composer mix cabal stack nix tox nox "
    "pre-commit just "
    "task pixi pdm hatch pipenv meson bazel ansible vagrant hermes systemctl service snap flatpak"
)
"""Programs whose first word is a verb of their own: ``go env``, ``npm rm``, ``git mv``."""

TAKES_OVER = names(
    "LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH BASH_ENV ENV PROMPT_COMMAND GIT_SSH_COMMAND GIT_SSH PAGER GIT_PAGER "
    "MANPAGER EDITOR "
    "GIT_EDITOR VISUAL GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_ASKPASS SSH_ASKPASS GIT_EXEC_PATH "
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_TEMPLATE_DIR GIT_CONFIG GIT_CONFIG_GLOBAL "
    "GIT_CONFIG_SYSTEM GIT_CONFIG_COUNT PERL5OPT PERL5LIB PERL5DB PERLLIB NODE_OPTIONS NODE_PATH PYTHONSTARTUP "
    "PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONWARNINGS PYTHONPLATLIBDIR PYTHONUSERBASE PYTHONCASEOK "
    "RUBYOPT RUBYLIB IFS PS0 PS1 PS2 PS4 SHELLOPTS BASHOPTS BASH_XTRACEFD PATH CDPATH HOME SHELL LESSOPEN "
    "LESSCLOSE LESS "
    "BROWSER TAR_OPTIONS GREP_OPTIONS MAKEFLAGS MAKEFILES RSYNC_RSH CVS_RSH SSH_AUTH_SOCK DOCKER_HOST "
    "JAVA_TOOL_OPTIONS "
    "_JAVA_OPTIONS JDK_JAVA_OPTIONS GCONV_PATH LOCPATH TERMINFO TERMCAP TMPDIR HISTFILE MAIL MAILPATH FPATH "
    "RUSTC RUSTC_WRAPPER CC CXX LD AR GOFLAGS GOROOT npm_config_script_shell npm_config_prefix PIP_TARGET PIP_PREFIX "
    "PIP_INDEX_URL PIP_EXTRA_INDEX_URL ZDOTDIR INPUTRC VIMINIT EXINIT SUDO_ASKPASS LD_DEBUG_OUTPUT LD_PROFILE_OUTPUT "
    "MALLOC_TRACE BASH_LOADABLES_PATH EXECIGNORE GLOBIGNORE POSIXLY_CORRECT DBUS_SESSION_BUS_ADDRESS XDG_CONFIG_HOME "
    "XDG_DATA_HOME XDG_RUNTIME_DIR OPENSSL_CONF CURL_HOME WGETRC NETRC"
)
"""Variables that make a harmless program run something else, or write somewhere else."""
_TAKES_OVER = re.compile(
    r"(LD|DYLD|BASH_FUNC|GIT_CONFIG|GIT_TRACE|npm_config|NPM_CONFIG|PIP|UV|CARGO|BUNDLE|GEM|ANSIBLE|DOTNET|CORECLR|PHP|R|"
    r"JULIA|LUA|LESS|MAN|AWK)_?\w*(COMMAND|PAGER|KEY|VALUE|PARAMETERS|PRELOAD|AUDIT|PATH|INIT|HOOKS|SHELL|WRAPPER|RUSTC|"
    r"CONFIG|OPT|OPTS|RC|PROFILE|HOME|FILE|INI_SCAN_DIR|LIBRARY|%%)\w*|\w*(_PAGER|_EDITOR|_ASKPASS|_RSH|_CONFIG_PATH)|"
    r"BASH_FUNC_.*|HERMES_\w+|RIPGREP_CONFIG_PATH|ACKRC|SSLKEYLOGFILE|KUBECONFIG|FZF_DEFAULT_COMMAND|GCC_EXEC_PREFIX|COMPILER_PATH|"
    r"PYTEST_ADDOPTS|PYTEST_PLUGINS|PYTHONEXECUTABLE|PYTHONPYCACHEPREFIX|LUA_INIT\w*|GIT_COMMON_DIR"
)


def takes_over(name: str) -> bool:
    """Tell whether this variable makes a harmless program run or write other things."""
    return name in TAKES_OVER or _TAKES_OVER.fullmatch(name) is not None


PLAIN_VALUES = frozenset({"", "cat", "less", "more", "true", ":", "gcc", "g++", "clang", "clang++", "cc", "c++"})


def behind(program: str, words: Sequence[Word]) -> Sequence[Word] | None:
    """Return the command that a wrapper runs; None if an option is not known."""
    takes_value, leading = WRAPPERS[program]
    if program in NEEDS_RUN:
        if not words or words[0].text not in ("run", "exec", "x", "stat", "record"):
            return ()
        words = words[1:]
        leading = leading - 1
    rest = skip_options(words, takes_value)
    if rest is None:
        return None
    while rest and program in ("env", "sudo", "doas") and re.match(r"^\w+=", rest[0].text):
        rest = rest[1:]
    return rest[leading:]


def skip_options(words: Sequence[Word], takes_value: Collection[str]) -> Sequence[Word] | None:
    at = 0
    while at < len(words):
        word = words[at]
        if not word.text.startswith("-") or word.text == "-":
            if word.may_be_option() and word.text != "-":
                return None
            break
        if word.text == "--":
            return words[at + 1 :]
        at += 2 if word.text in takes_value else 1
    return words[at:]

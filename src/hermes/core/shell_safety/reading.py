"""Programs that only read, by name and options.

A row names the options with which a program does more: short letters, long names, and a test of all words where options
do not tell. With such an option, or with a word that could be one, a program counts as one that may change things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.words import Word

Test = Callable[[Sequence[Word]], bool]


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that only reads.

    ``short`` and ``long``: options that do more than read. ``only``: tells whether the words as a whole only read.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    only: Test | None = None

    @property
    def has_options(self) -> bool:
        return bool(self.short or self.long or self.only)


def _rows(*rows: tuple[str, str, str]) -> dict[str, Reader]:
    return {name: Reader(short, tuple(long.split())) for text, short, long in rows for name in text.split()}


_PLAIN = (
    "ls dir vdir cat head tail wc nl tac rev cut paste tr fold fmt expand unexpand comm join od hexdump hd "
    "strings cksum "
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum basename dirname realpath readlink stat du "
    "df pwd "
    "echo true false : test [ [[ seq yes sleep whoami id groups users who w uname uptime free ps pgrep pidof "
    "pstree vmstat iostat mpstat nproc arch lscpu lsblk lsusb lspci lsmod getconf locale tty cal diff cmp diff3 "
    "grep egrep "
    "fgrep zgrep bzgrep xzgrep zcat bzcat xzcat lzcat zstdcat which whereis whatis apropos column base64 base32 "
    "basenc expr factor numfmt tput clear jobs wait times umask nm readelf objdump size addr2line c++filt jq gron "
    "getent lsb_release shift return exit break continue zipinfo tldr cloc tokei scc colordiff pathchk "
    "printenv lsns findmnt ulimit dirs help logname hostid look tsort sensors nvidia-smi apt-cache dpkg-query "
    "lsattr getfacl getcap bat exa eza mediainfo xxhsum last lastlog lslogins ipcs runlevel acpi "
    "type bc netstat fc-list locate mlocate plocate duf dust procs"
)
_DOCKER = names("ps images logs inspect version info stats top port diff history search events ls")
READERS: dict[str, Reader] = {
    **{name: Reader() for name in _PLAIN.split()},
    **_rows(
        ("sort", "oTS", "--output --compress-program --temporary-directory"),
        ("shuf", "o", "--output"),
        ("sdiff", "o", "--output"),
        ("rg", "", "--pre --hostname-bin"),
        ("ag", "", "--pager"),
        ("ack", "", "--pager --output --ackrc"),
        ("tree", "oR", ""),
        ("file", "Cm", "--compile --magic-file"),
        ("man", "PHCL", "--pager --html --config-file"),
        ("info", "o", "--output --restore --dribble"),
        ("date", "s", "--set"),
        ("printf", "v", ""),
        ("yq", "i", "--inplace --in-place --split-exp --output"),
        ("xmllint", "o", "--output --shell"),
        ("most", "", ""),
        ("less more", "oOkK", "--log-file --LOG-FILE --lesskey-file --lesskey-src"),
        ("ss", "K", "--kill"),
        ("lsof", "D", ""),
        ("fd fdfind", "xX", "--exec --exec-batch"),
        ("hash", "p", ""),
        ("top htop", "w", ""),
        ("dmesg", "CcDEn", "--clear --read-clear --console-off --console-on --console-level"),
        ("journalctl", "", "--vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --relinquish-var"),
        ("delta", "", "--pager"),
    ),
    "mount": Reader(only=lambda words: not words),
    "uniq": Reader(only=lambda words: _operands(words) <= 1),
    "xxd": Reader(
        only=lambda words: _operands(words, r"\d+|0x[0-9a-fA-F]+") <= 1 and not _has(words, r"-\w*r.*|--rev.*")
    ),
    "hostname": Reader(only=lambda words: all(word.text in ("-f", "-s", "-i", "-I", "-d", "--fqdn") for word in words)),
    "history": Reader(only=lambda words: all(word.text.isdigit() for word in words)),
    "find": Reader(only=lambda words: _is_reading_find(words)),
    "sed": Reader(only=lambda words: _is_reading_sed(words)),
    "awk": Reader(only=lambda words: _is_reading_awk(words)),
    "tar": Reader(
        only=lambda words: (
            _first_is(words, r"-?[vz jJa]*t[vzjJaf]*|--list")
            and not _has(words, _TAR_RUNS)
            and not any(shortens(word.text, _TAR_RUNS_LONG) for word in words)
        )
    ),
    "bsdtar": Reader(only=lambda words: _first_is(words, r"-?t[vzjJf]*")),
    "unzip": Reader(only=lambda words: _first_is(words, r"-[lvZtzp]+")),
    "gzip": Reader(
        only=lambda words: (
            _all_options(words, r"-[lvtcdk]+|--list|--test|--stdout")
            and _has(words, r"-\w*[ltc]|--list|--test|--stdout")
        )
    ),
    "gunzip": Reader(only=lambda words: _has(words, r"-\w*[ltc]|--stdout")),
    "command": Reader(only=lambda words: _first_is(words, r"-[vV]")),
    "crontab": Reader(only=lambda words: [word.text for word in words] == ["-l"]),
    "git": Reader(only=lambda words: _is_reading_git(words)),
    "docker": Reader(only=lambda words: _is_verb(words, _DOCKER)),
    "podman": Reader(only=lambda words: _is_verb(words, _DOCKER)),
    "kubectl": Reader(
        only=lambda words: _is_verb(words, names("get describe logs version explain top api-resources cluster-info"))
    ),
    "systemctl": Reader(
        only=lambda words: _is_verb(
            words,
            names(
                "status list-units list-unit-files show cat is-active is-enabled is-failed list-timers "
                "list-dependencies list-sockets get-default"
            ),
        )
    ),
    "loginctl": Reader(
        only=lambda words: _is_verb(words, names("list-sessions list-users session-status user-status show-session"))
    ),
    "service": Reader(only=lambda words: len(words) == 2 and words[1].text == "status"),
    "apt": Reader(only=lambda words: _is_verb(words, names("list search show policy depends rdepends"))),
    "dpkg": Reader(
        only=lambda words: _first_is(
            words, r"-[lLsSp]|--list|--listfiles|--status|--search|--print-architecture|-c|--contents|-I"
        )
    ),
    "rpm": Reader(only=lambda words: _first_is(words, r"-q\w*|--query")),
    "brew": Reader(only=lambda words: _is_verb(words, names("list info search outdated deps doctor config"))),
    "snap": Reader(only=lambda words: _is_verb(words, names("list info find"))),
    "pip": Reader(only=lambda words: _is_verb(words, names("list show freeze check index search debug help"))),
    "npm": Reader(
        only=lambda words: _is_verb(
            words, names("ls list view info show outdated search root prefix bin whoami why help explain ping")
        )
    ),
    "cargo": Reader(only=lambda words: _is_verb(words, names("tree metadata search version help"))),
    "go": Reader(
        only=lambda words: (
            _is_verb(words, names("version list doc help env")) and not _has(words, r"-[wu]|-toolexec.*|-exec.*")
        )
    ),
    "rustup": Reader(only=lambda words: _is_verb(words, names("show which doc"))),
    "gh": Reader(only=lambda words: _is_reading_gh(words)),
    "ip": Reader(
        only=lambda words: (
            not words or (bool(words) and all(word.is_known for word in words) and not _has(words, _IP_CHANGES))
        )
    ),
    "ifconfig": Reader(only=lambda words: len(words) <= 1),
    "sysctl": Reader(only=lambda words: all(re.fullmatch(r"-[an]|[\w.]+", word.text) for word in words)),
    "hermes": Reader(
        only=lambda words: (
            _is_verb(words, names("status doctor logs version trace help"))
            and not any(not word.is_known or word.text in ("--fix", "--undo") for word in words)
        )
    ),
    "ssh-keygen": Reader(only=lambda words: _has(words, r"-l.*") and not _has(words, r"-[RAsyecI].*")),
    "openssl": Reader(only=lambda words: _is_verb(words, names("version ciphers list help"))),
}
READERS["pip3"] = READERS["pip"]
READERS["fdfind"] = READERS["fd"]
for _name in ("gawk", "mawk", "nawk"):
    READERS[_name] = READERS["awk"]
for _name in ("pnpm", "yarn"):
    READERS[_name] = READERS["npm"]

_TAR_RUNS = r"-[IF].*|-\w*[IF]"
_TAR_RUNS_LONG: tuple[str, ...] = (
    "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script", "--new-volume-script",
    "--rsh-command", "--rmt-command", "--index-file", "--listed-incremental", "--volno-file", "--delete", "--extract",
)  # fmt: skip
_IP_CHANGES = r"add|a|del|delete|d|set|flush|f|change|chg|replace|exec|append|up|down|-b.*|-batch.*|--?force"


def only_reads(program: str, words: Sequence[Word]) -> bool:
    """Tell whether a program with these words is known to change nothing."""
    if (
        len(words) == 1
        and words[0].text in ("--version", "--help", "-V", "-version")
        and re.fullmatch(r"[\w.+-]+", program)
    ):
        return program not in ("hermes-gateway",)
    reader = READERS.get(program)
    if reader is None:
        return False
    if not reader.has_options:
        return True
    if reader.only is not None:
        return all(word.is_known or not word.may_be_option() for word in words) and reader.only(words)
    if program in ("less", "more") and any(word.text.startswith("+") for word in words):
        return False  # a command of its own, which may start others
    return not any(_does_more(reader, word) for word in _options(words))


def _options(words: Sequence[Word]) -> list[Word]:
    """Return the words that may be options: all before a ``--``."""
    found = []
    for word in words:
        if word.text == "--":
            break
        if word.may_be_option():
            found.append(word)
    return found


def _does_more(reader: Reader, word: Word) -> bool:
    text = word.text
    if not word.is_known and (word.globs or not word.is_tame):
        return True
    if text.startswith("--"):
        name = text.split("=", 1)[0]
        return any(option.startswith(name) for option in reader.long)  # GNU takes a shortened name too
    return any(letter in text[1:] for letter in reader.short)


def _has(words: Sequence[Word], pattern: str) -> bool:
    return any(re.fullmatch(pattern, word.text) for word in words)


def _operands(words: Sequence[Word], number: str = r"(?!)") -> int:
    """Count the words that may be names of files; ``-`` is one."""
    return sum(
        word.text == "-" or not word.is_known or not (word.may_be_option() or re.fullmatch(number, word.text))
        for word in words
    )


def shortens(text: str, options: Sequence[str]) -> bool:
    """Tell whether this is one of the options, or a beginning of one.

    Most programs accept a shortened option.
    """
    name = text.split("=", 1)[0]
    return (
        len(name) > 2 and name.startswith("--") and name not in _WHOLE and any(one.startswith(name) for one in options)
    )


_WHOLE = names("--text --to --ex --re --format --data --cookie --hsts --out")


def _first_is(words: Sequence[Word], pattern: str) -> bool:
    return bool(words) and re.fullmatch(pattern, words[0].text) is not None


def _all_options(words: Sequence[Word], pattern: str) -> bool:
    return all(re.fullmatch(pattern, word.text) for word in words if word.text.startswith("-"))


def _is_verb(words: Sequence[Word], verbs: frozenset[str]) -> bool:
    """Test the first word; no option may stand before it.

    An option may take a value that looks like a verb.
    """
    return bool(words) and words[0].is_known and words[0].text in verbs


# find

_FIND_DOES = names("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")


def _is_reading_find(words: Sequence[Word]) -> bool:
    return not any(word.text in _FIND_DOES for word in words)


# sed

_ADDRESS = r"(?:\d+|\$|/(?:[^/\\]|\\.)*/I?|\\%(?:[^%\\]|\\.)*%)(?:~\d+)?"
_SED_COMMAND = re.compile(
    rf"\s*(?:{_ADDRESS}(?:\s*,\s*[+~]?(?:{_ADDRESS}))?)?\s*!?\s*(?:"
    r"[pdDPgGhHnNx=lFz{}]|[qQ]\d*|[btT:]\s*\w*|"
    r"[sy]([/|#,@!%_:+~])(?:(?!\1)[^\\\n]|\\.|\\\n)*\1(?:(?!\1)[^\\]|\\.|\\\n)*\1[gpiIm0-9]*|"
    r"[aic](?:\\\n?|\s)[^\n]*(?:\\\n[^\n]*)*)"
    r"\s*(?:[;\n]\s*|(?=\})|$)"
)


def is_plain_sed(script: str) -> bool:
    """Tell whether a sed script only edits: no ``w``, ``e``, ``r``, nothing unknown."""
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return not script[at:].strip(" ;\n}")
        at = found.end()
    return True


def sed_scripts(words: Sequence[Word]) -> list[Word] | None:
    """Return the scripts among the words of sed; None if an option is not understood."""
    scripts: list[Word] = []
    rest: list[Word] = []
    at = 0
    while at < len(words):
        text = words[at].text
        if text in ("-e", "--expression"):
            scripts += words[at + 1 : at + 2]
            at += 2
            continue
        if text.startswith("--expression="):
            scripts.append(Word(text.partition("=")[2]))
        elif match := re.fullmatch(r"-[nrEsuz]*e(.+)", text, re.DOTALL):
            scripts.append(Word(match[1]))
        elif re.fullmatch(r"-[nrEsuz]*e", text):
            scripts += words[at + 1 : at + 2]
            at += 1
        elif text.startswith("-") and len(text) > 1:
            if not re.fullmatch(
                r"-[nrEsuz]+|-[nrEsuz]*i[\w.]*|-[nrEsuz]+i|--in-place(=[\w.]+)?|--quiet|--silent|"
                r"--regexp-extended|--null-data|--separate|--posix|--debug|--sandbox|--unbuffered|--line-length=\d+|--version|--help|--",
                text,
            ):
                return None
        else:
            rest.append(words[at])
        at += 1
    return scripts or rest[:1]


def is_sed_in_place(words: Sequence[Word]) -> bool:
    return any(re.fullmatch(r"-[nrEsuz]*i.*|--in-place.*", word.text) for word in words)


def _is_reading_sed(words: Sequence[Word]) -> bool:
    scripts = sed_scripts(words)
    if scripts is None or is_sed_in_place(words):
        return False
    return all(script.is_known or script.is_tame for script in scripts) and all(
        is_plain_sed(script.plain()) for script in scripts
    )


# awk

_AWK_DOES = re.compile(
    r"system\s*\(|getline|\|&?|@load|@include|@namespace|@\w+\s*\(|\bprintf?\b[^;}\n]*>|inplace|ENVIRON|ARGV|ARGC|SYMTAB|FUNCTAB|\bclose\b|"
    r"\bfflush\b",
    re.DOTALL,
)


def _is_reading_awk(words: Sequence[Word]) -> bool:
    at = 0
    program: Word | None = None
    while at < len(words):
        text = words[at].text
        if text in ("-F", "-v"):
            at += 2
            continue
        if text == "--":
            at += 1
            program = words[at] if at < len(words) else None
            break
        if text.startswith("-") and len(text) > 1:
            if not re.fullmatch(r"-F.+|-v.+|--csv|--posix|--re-interval|-b|-P", text, re.DOTALL):
                return False
            at += 1
            continue
        program = words[at]
        break
    if program is None:
        return True
    return (program.is_known or program.is_quoted) and program.is_tame and is_plain_awk(program.text)


def is_plain_awk(program: str) -> bool:
    """Tell whether an awk program runs no program and writes no file."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', program.replace("\\\n", " "))
    bare = re.sub(r"\|\|", " or ", bare)
    return not _AWK_DOES.search(bare)


# git

_GIT_READS = names(
    "status log diff show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree cat-file name-rev grep "
    "whatchanged count-objects check-ignore check-attr merge-base show-ref for-each-ref diff-tree diff-index "
    "diff-files "
    "cherry var version help range-diff show-branch verify-commit verify-tag"
)
_GIT_DOES = (
    r"--output(=.*)?|--ext-diff|--textconv|-O.*|--open-files-in-pager.*|--exec.*|--upload-pack.*|-c|-C|--git-dir.*|"
    r"--work-tree.*|--config-env.*|--namespace.*|-p|--paginate|--filters"
)


_GIT_DOES_LONG = (
    "--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--exec", "--upload-pack", "--filters",
    "--no-index",
)  # fmt: skip


def _is_reading_git(words: Sequence[Word]) -> bool:
    rest = list(words)
    while rest and rest[0].text in ("--no-pager", "--no-optional-locks", "--literal-pathspecs"):
        rest = rest[1:]
    if not rest:
        return True
    verb, rest = rest[0].text, rest[1:]
    texts = [word.text for word in rest]
    if verb in _GIT_READS:
        if any(shortens(text, _GIT_DOES_LONG) for text in texts):
            return False
        shows_patch = verb in ("log", "diff", "show", "whatchanged", "diff-tree")
        return not any(
            re.fullmatch(_GIT_DOES, text) and not (shows_patch and text in ("-p", "-C", "-c")) for text in texts
        )
    match verb:
        case "branch":
            return all(
                re.fullmatch(
                    r"-[avrl]+|--list|--all|--remotes|--show-current|--merged|--no-merged|-vv|--contains.*|"
                    r"--sort=.*|--format=.*",
                    text,
                )
                for text in texts
            )
        case "tag":
            return all(
                re.fullmatch(r"-l|--list|-n\d*|--sort=.*|--contains.*|--points-at.*", text) for text in texts[:1]
            ) and (not texts or texts[0].startswith("-"))
        case "remote":
            return texts in ([], ["-v"], ["show"]) or texts[:1] == ["get-url"]
        case "stash":
            return texts[:1] in (["list"], ["show"])
        case "config":
            return (
                (texts[:1] and re.fullmatch(r"-l|--list|--get|--get-all|--get-regexp", texts[0]) is not None)
                or texts == ["list"]
                or (len(texts) == 1 and re.fullmatch(r"[\w.-]+", texts[0]) is not None)
            )
        case "worktree" | "submodule" | "bisect" | "notes" | "bundle":
            return texts[:1] in (["list"], ["status"], ["log"], ["verify"])
        case "reflog":
            return not texts or texts[0] in ("show", "HEAD") or texts[0].startswith("-")
        case _:
            return False


def _is_reading_gh(words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    return (
        len(texts) > 1
        and texts[0] in names("pr issue run repo release workflow")
        and texts[1] in names("list view status diff checks")
        and "--web" not in texts
    )

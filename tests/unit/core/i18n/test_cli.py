"""The command line in Chinese: no sentence is missing, none is left over, and what others wrote stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hermes
from hermes.cli.commands import COMMANDS
from hermes.core.i18n import cli
from hermes.core.i18n.cli import to_chinese
from hermes.core.i18n.cli_zh import cluster, errors, state
from hermes.core.i18n.cli_zh import help as help_texts

SOURCE = Path(hermes.__file__).parent
SPOKEN = (
    "cli/watch/status.py",
    "cli/home/backup.py",
    "cli/update/update.py",
    "cli/update/rollback.py",
    "cli/support/updates.py",
    "cli/checks/doctor.py",
    "cli/gateway.py",
    "cli/wizard/setup.py",
    "cli/checks/security.py",
    "cli/checks/access.py",
    "cli/checks/audit.py",
    "cli/checks/cluster.py",
    "cli/checks/config.py",
    "cli/checks/finding.py",
    "cli/checks/growth.py",
    "cli/checks/home.py",
    "cli/checks/jobs.py",
    "cli/checks/model.py",
    "cli/checks/network.py",
    "cli/checks/people.py",
    "cli/checks/ports.py",
    "cli/checks/service.py",
    "cli/checks/stores.py",
    "cli/repairs/recover.py",
    "cli/repairs/repairs.py",
    "cli/repairs/reset.py",
    "cli/repairs/undo.py",
    "cli/cluster.py",
    "cli/service/install.py",
    "cli/service/plan.py",
    "hosting/service/service_status.py",
    "hosting/service/services.py",
    "cli/wizard/flags.py",
    "cli/wizard/model.py",
    "cli/wizard/page.py",
    "cli/wizard/platform.py",
    "cli/wizard/start.py",
    "cli/wizard/terminal.py",
    "cli/wizard/test_message.py",
    "cli/support/prompts.py",
    "hosting/status.py",
    "hosting/lifecycle.py",
    "hosting/banner.py",
    "hosting/startup_report.py",
)
"""Files of which a person reads every sentence."""

NOT_SPOKEN = {
    ", with secrets", "Again: ", "hermes backup restore", "{} {}; {}, {}.",
    # Parts of a sentence, which are translated with the whole.
    " in {}", " until {}", " through {}", " and {} more", ", without a key", "; last backup {} ago", ", account {}",
    "; the last try failed: {}", "{} {} since {}", "{} {} → {} config check", "is {}", "{} answers {}. {}",
    "{} Nothing was written.{}{}", "{}, answered in {} s", "it is starting{}.", "{} {} safe in the inbox. {}",
    "{}{}, readable by you alone", "not running: {} {} → {} gateway run", "{}; nobody may write on {} → set {}",
    # Commands and names, the same in every language.
    "{} config set approvals.mode dangerous", "{} config set platforms.{}.dm_policy pairing", "{} approve {} {}",
    "{} gateway restart", "{} gateway setup {}", "{} logs --component {}", "{} trace {}", "→ {} doctor --user {}:{}",
    "{} setup --model openai/gpt-4o-mini --key KEY --yes     (--key - reads stdin)", "LM Studio", "--token TOKEN",
    "{} cannot be reached{}: {}", "{} reached in {} ms{}", "{}, answers in {} ms{}", "waits for approval since {}",
    "{} by {}", "{}, with the code {}", ", and is the owner here", "✓ {} may talk now{}.", "{} can be reached",
    "{} is {}",
    "Nothing is lost: {} {}.", "the process lives, its heart stopped {} ago{}.", "{} Gateway is {}: {}",
    ": it did not answer, was killed and is", ": it finished what it was doing and is",
    ": {} {} on after the next start",
    ": what it could not finish goes on, and it is", ": {} did not end in time and {} on now, and it is",
    "✓ Gateway restarted{} ready again after {}.", "not answered", "{} → {} gateway restart",
    "{} → {} logs --level warning", "{} / {}: the {}. {}", "{} Nothing was written.",
    "--set {}=VALUE", "{} gateway setup {} {} --dm-policy pairing --yes", "hermes chat", "of before",
    ", next {}", "{}; {} → {} config set owners {}", "ahead of", "{} does not reach {} ({}){}", "{} runs {}",
    "import sys; from hermes.hosting import paths; print(paths.why_unusable(sys.argv[1]))", " as {}",
    "{} cannot be run{}: {}{}", "{} cannot run Hermes{}: {}{}", "{} cannot be the home folder{}: {}.",
    "Task Scheduler   schtasks /Create /TN hermes-gateway /SC ONLOGON /TR \"{} gateway run\"",
    "journalctl {}-u {} -n 50 --no-pager", "launchctl bootout {}/{}", "launchctl bootstrap {} {}", "launchctl {} {}/{}",
    "{} its clock differs from the database's by {} s",
    "{} gateway run", "{} gateway status", "{} gateway start", "{} cron history {}", "timedatectl set-ntp true",
    "{} s {} the servers that were asked → {}", "as the servers that were asked", ", as the servers that were asked",
    ", the next in {}", "to {}", "→ {} model test", "Hermes {}, Python {}, SQLite {}", "{}, a free port",
    "{} is used {}, so the API cannot open it → {}", "{} to {} since {}{} → {}", "{} holds the home and is stopped{}",
    "{}: the {}. {} → {}", "{}: the {}. {}", "{}: {} → {} people role PERSON admin",
    "{} → {} config set platforms.{}.{}",
    "dm_policy pairing", "group_policy allowlist", "API_SERVER_KEY=$(openssl rand -hex 32)", "column {}.{}",
    "{} config explain web.allow_private_hosts", "mv {} {}", "hermes doctor", "hermes gateway reset", ". Start it",
    "{} is in use by {}{}", "only {} of the disk are free; {} → {}",
    "the disk is full in {} days at this pace; {} → {}",
    "{} answers {}: the provider has a problem; try later → {} model test",
    # What SQLite is asked.
    "PRAGMA application_id", "PRAGMA quick_check(1)", "SELECT name FROM sqlite_master", "SELECT COUNT(*) FROM sessions",
    "SELECT value FROM meta WHERE key = 'version'",
    # Endings of a line of `doctor --undo`, which are translated with the whole.
    "it leads out of the home", "there is a new one", "it was changed since; the old copy is {}", "it is gone",
    "its mode was changed since, to {}", "this version cannot undo {}",
}  # fmt: skip
WORDS = re.compile(r"[A-Za-z]{2,}[,.:;!?]? [A-Za-z{]")
QUIET_CALLS = {"debug", "info", "warning", "error", "exception", "getLogger", "create_task", "Thread"}


def templates(path: Path, *, quiet: bool = True) -> Iterator[str]:
    """Every text of a module that is no docstring, with ``{}`` for what is filled in."""

    def visit(node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Expr(value=ast.Constant()):
                return
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if quiet and name in QUIET_CALLS:
                return
            case ast.JoinedStr(values=values):
                yield "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in values)
                for value in values:
                    if isinstance(value, ast.FormattedValue):
                        yield from visit(value.value)
                return
            case ast.Constant(value=str() as text):
                yield text
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")))


def printing() -> Iterator[Path]:
    """The modules whose sentences reach a terminal."""
    for folder in ("cli", "hosting", "config"):
        yield from (SOURCE / folder).rglob("*.py")
    for pattern in (
        "platforms/*/__init__.py",
        "platforms/*/config.py",
        "services/adapters/*.py",
        "services/cluster/*.py",
        "servers/api/watch/*.py",
        "servers/api/manage/*.py",
        "store/home*.py",
        "store/backup/*.py",
    ):
        yield from SOURCE.glob(pattern)
    others = ("core/i18n/failures.py", "agent/models/embedded/download.py", "store/sqlite/recover_file.py")
    for name in ("app/lifespan.py", "servers/dashboard/remote.py", *others):
        yield SOURCE / name


def words_of(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text))


def is_chinese(text: str) -> bool:
    return re.search("[\u4e00-\u9fff]", text) is not None


def missing(texts: Iterator[str]) -> list[str]:
    return sorted(
        {
            line.strip()
            for text in texts
            for line in text.splitlines()
            if WORDS.search(line)
            and line not in state.COUNTED
            and line.strip() not in {part.strip() for part in NOT_SPOKEN}
            and not is_chinese(to_chinese(line.replace("{}", "X1")))
        }
    )


@pytest.mark.one_python
@pytest.mark.parametrize("name", SPOKEN)
def test_every_sentence_of_these_files_is_known_in_chinese(name: str) -> None:
    # Examples are laid out first: of each line, the part behind the command is a sentence.
    found = (text for text in templates(SOURCE / name) if not re.match(r"  (?:hermes|curl) ", text))
    assert missing(found) == []


def test_every_command_every_verb_and_every_option_is_explained_in_chinese() -> None:
    summaries = list(COMMANDS.values())
    examples: list[str] = []
    for path in (SOURCE / "cli").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.keyword(arg="help", value=ast.Constant(value=str() as text)):
                    summaries.append(text)
                case ast.Assign(targets=[ast.Name(id="VERBS")], value=ast.Dict(values=values)):
                    summaries += [str(value.value) for value in values if isinstance(value, ast.Constant)]
                case ast.Assign(targets=[ast.Name(id="EXAMPLES")], value=ast.Constant(value=str() as text)):
                    examples += [line.strip().partition("  ")[2].strip() for line in text.splitlines()]
    said = [text for text in (*summaries, *examples) if WORDS.search(text)]
    assert len(said) > 150
    assert [text for text in said if not is_chinese(to_chinese(text))] == []


@pytest.mark.one_python
def test_the_catalogue_holds_no_sentence_that_nobody_prints() -> None:
    """The words of each part between the gaps stand in the source, in at most three texts."""
    written = "|".join(words_of(text) for path in printing() for text in templates(path))

    def stands(part: str, texts: int = 3) -> bool:
        words = words_of(part).split()
        if not words:
            return True
        beginnings = [at for at in range(1, len(words) + 1) if " ".join(words[:at]) in written]
        return texts > 0 and any(stands(" ".join(words[at:]), texts - 1) for at in reversed(beginnings))

    stale = [
        key
        for section in cli.SECTIONS
        if section not in (state.WORDS, errors.SYSTEM, cluster.STATES, help_texts.ARGPARSE)
        for key in section
        if not all(map(stands, key.split("{}")))
    ]
    assert stale == []


@pytest.mark.one_python
@pytest.mark.parametrize("section", cli.SECTIONS)
def test_every_gap_of_a_sentence_is_filled_in_chinese_too(section: dict[str, str]) -> None:
    for key, said in section.items():
        gaps = key.count("{}")
        filled = said.format(*(f"<{number}>" for number in range(gaps)))
        kept = [number for number in range(gaps) if f"<{number}>" in filled]
        assert len(kept) >= gaps - 1, key  # a verb that agrees in number is not repeated


@pytest.mark.parametrize(
    "english, chinese",
    [
        ("✗ Gateway is not running: it was never started here.", "✗ 网关未运行：从未在这里启动过。"),
        (
            "✓ Gateway is running: up 3 h, kept up by systemd, heartbeat 0.4 s ago, 64 MB",
            "✓ 网关运行中：已运行 3 h，由 systemd 保持运行，0.4 s 前有心跳，64 MB",
        ),
        (
            "  telegram   connected    last frame 2 s ago     3 in, 4 out today",
            "  telegram   已连接       2 s 前收到数据         今天收 3，发 4",
        ),
        ("2 troubles, 1 hint.", "2 个问题，1 个提示。"),
        (
            "✗ There is no command 'foo'. `hermes --help` lists what there is.",
            "✗ 没有命令 'foo'。`hermes --help` 列出所有命令。",
        ),
    ],
)
def test_a_line_keeps_its_marks_its_columns_and_what_was_filled_in(english: str, chinese: str) -> None:
    assert to_chinese(english) == chinese


@pytest.mark.parametrize("text", ["", "   ", "hello world", "a → b", "x; y", "12:00 INFO Gateway started", "{}", "{0}"])
def test_what_the_catalogue_does_not_know_stays_as_it_is(text: str) -> None:
    assert to_chinese(text) == text


def test_a_value_with_braces_is_not_filled_in_again() -> None:
    assert to_chinese("✗ There is no command '{0}'.") == "✗ 没有命令 '{0}'。"


def test_a_long_line_of_a_stranger_takes_no_time() -> None:
    assert to_chinese("a; b → c. " * 2_000).startswith("a; b")


@pytest.mark.parametrize(
    "english, chinese",
    [
        ("  kept       messages of the last 1 min, models 203 MB", "  保留       最近 1 min 的消息，models 203 MB"),
        (
            "  26 files of 777 kB by Hermes 0.1.0; 35.6 kB, 0.6 s.",
            "  26 个文件，共 777 kB，由 Hermes 0.1.0 制作；35.6 kB，0.6 s。",
        ),
        (
            "✓ a.tar.gz is whole: 26 files of 777 kB by Hermes 0.1.0.",
            "✓ a.tar.gz 完好：26 个文件，共 777 kB，由 Hermes 0.1.0 制作。",
        ),
        (
            "Answer the agent's approval requests; list and revoke grants.",
            "回答助手的批准请求；列出和撤销许可。",
        ),
    ],
    ids=["status", "backup create", "backup verify", "a summary as a sentence"],
)
def test_a_sentence_made_of_parts_is_said_whole(english: str, chinese: str) -> None:
    assert to_chinese(english) == chinese

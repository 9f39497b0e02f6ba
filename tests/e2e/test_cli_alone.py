"""The command line with no gateway: it works on its own, and says what is missing."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.models.embedded.prompts import hint
from hermes.core.i18n.catalogue import CHINESE, ENGLISH
from hermes.store.home import make_home
from tests.e2e.panes import HAS_TMUX, Pane
from tests.e2e.terminal import COMMAND_SECONDS, Terminal
from tests.fakes.embedded import write_engine
from tests.unit.hosting.importers.test_hermes_agent import write_home


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with Terminal(tmp_path_factory.mktemp("alone")) as terminal:
        yield terminal


def test_asking_once_prints_the_answer_and_nothing_else(terminal: Terminal) -> None:
    done = terminal.hermes("-z", "hello")
    assert (done.stdout, done.stderr, done.returncode) == ("echo: hello\n", "", 0)
    assert stat.S_IMODE(terminal.home.stat().st_mode) == 0o700


def test_a_prompt_without_quotes_is_asked_whole(terminal: Terminal) -> None:
    assert terminal.here("-z", "hello", "there").stdout == "echo: hello there\n"


def test_a_prompt_comes_from_stdin_too(terminal: Terminal) -> None:
    assert terminal.here("-z", "-", typed="你好").stdout == "echo: 你好\n"


@pytest.mark.parametrize(
    "words",
    [["--json", "-z", "hello", "there"], ["-z", "--json", "hello", "there"], ["-z", "hello", "--json", "there"]],
    ids=["before", "between", "among the words"],
)
def test_json_may_stand_anywhere_beside_the_prompt(terminal: Terminal, words: list[str]) -> None:
    done = terminal.here(*words)
    assert json.loads(done.stdout)["answer"] == "echo: hello there"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_the_built_in_model_says_of_itself_stays_out_of_the_answer(tmp_path: Path, language: str) -> None:
    with Terminal(tmp_path, OPENAI_API_KEY="", OPENAI_BASE_URL="", HERMES_LANGUAGE=language) as terminal:
        make_home(terminal.home)
        write_engine(terminal.home)
        plain = terminal.hermes("-z", "hello")
        assert (plain.stdout, plain.stderr, plain.returncode) == (
            "Hello there!\n",
            f"{hint(terminal.home, language)}\n",
            0,
        )
        as_json = terminal.hermes("--json", "-z", "hello")
        assert (json.loads(as_json.stdout)["answer"], as_json.stderr) == ("Hello there!", plain.stderr)


@pytest.mark.parametrize("words", [["-z"], ["-z", "  "]], ids=["none", "blank"])
def test_an_empty_prompt_is_refused_with_an_example(terminal: Terminal, words: list[str]) -> None:
    done = terminal.here(*words)
    assert done.returncode == 2
    assert "nothing to ask" in done.stderr


def test_a_conversation_from_a_pipe_is_answered_line_by_line(terminal: Terminal) -> None:
    done = terminal.hermes(typed="one\n/whoami\ntwo\n/exit\nnever read\n")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[:2] == [ENGLISH.BANNER, "echo: one"]
    assert "role owner" in lines[2]
    assert lines[3:] == ["echo: two"]


def test_the_bare_word_exit_leaves_as_in_a_shell(terminal: Terminal) -> None:
    lines = terminal.here(typed="one\nexit\nnever read\n").stdout.splitlines()
    assert lines[1:] == ["echo: one"]


@pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed: apt-get install tmux")
async def test_ctrl_c_gives_up_a_line_and_twice_on_an_empty_one_leaves(terminal: Terminal, tmp_path: Path) -> None:
    with Pane(tmp_path, terminal.environ) as pane:
        pane.types(f"{sys.executable} -m hermes; echo left with $?")
        await pane.shows(ENGLISH.BANNER)
        await pane.shows("\n>")
        pane.types("one")
        await pane.shows("echo: one")
        pane.presses("h")
        await pane.shows("> h")
        pane.presses("C-c")
        pane.types("two")
        await pane.shows("echo: two")
        await pane.shows("echo: two\n>")
        pane.presses("C-c", "C-c")
        assert "echo: h" not in await pane.shows("left with 0")


def test_help_in_a_terminal_also_tells_how_to_leave(terminal: Terminal) -> None:
    lines = terminal.here(typed="/help\n/exit\n").stdout.splitlines()
    assert any(line.startswith("This conversation: /new, /stop, /retry") for line in lines)
    assert lines[-1] == "/exit — Leave; Ctrl+D does too"


def test_the_last_thing_is_asked_again_in_a_terminal_too(terminal: Terminal) -> None:
    lines = terminal.here("chat", "--session", "again", typed="only this\n/retry\n/exit\n").stdout.splitlines()
    assert lines[1:] == ["echo: only this", "Once more: “only this”", "echo: only this"]


def test_sessions_of_hermes_agent_are_brought_in_and_taken_back(terminal: Terminal, tmp_path: Path) -> None:
    old = write_home(tmp_path)
    would = terminal.here("sessions", "import", str(old), "--dry-run")
    assert "4 transcripts read: 3 sessions would come along." in would.stdout
    came = terminal.here("sessions", "import", str(old))
    assert (came.returncode, "3 sessions came along." in came.stdout) == (0, True)
    assert "line 3: not JSON; left out." in came.stderr
    batch = came.stdout.split()[-1]
    listed = json.loads(terminal.here("sessions", "list", "--json").stdout)
    assert any(session["key"] == "agent:main:telegram:dm:7" for session in listed)
    gone = terminal.here("sessions", "delete", batch, "--yes")
    assert f"✓ 3 sessions of {batch} deleted." in gone.stdout
    assert terminal.here("sessions", "import", str(tmp_path / "nowhere")).returncode == 1


def test_the_banner_is_the_one_people_know() -> None:
    assert ENGLISH.BANNER == "Welcome to Hermes Agent! Type your message or /help for commands."


def test_a_terminal_in_chinese_is_greeted_in_chinese(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    lines = terminal.here(typed="/exit\n").stdout.splitlines()
    assert lines == [CHINESE.BANNER]


def test_platforms_that_nobody_listens_to_are_named(terminal: Terminal) -> None:
    token = {"TELEGRAM_BOT_TOKEN": "123456:abcdefghijklmnopqrstuvwxyz1234567"}
    done = subprocess.run(
        terminal.command("chat"),
        env={**terminal.environ, **token},
        input="",
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert "Gateway is not running: nobody is answered on telegram. Start it: " in done.stdout


def test_what_was_said_alone_can_be_traced_and_read_afterwards(terminal: Terminal) -> None:
    asked = terminal.told("-z", "remember me")
    assert (asked["answer"], asked["state"]) == ("echo: remember me", "done")
    life = terminal.told("trace", asked["turn"])
    assert life["turn"]["state"] == "done"
    assert [letter["state"] for letter in life["letters"]] == ["sent"]
    assert "“remember me”" in terminal.here("trace", asked["event"]).stdout
    session = life["turn"]["session_id"]
    shown = terminal.told("sessions", "show", session)
    assert [line["message"]["role"] for line in shown["lines"]] == ["user", "assistant"]
    exported = terminal.here("sessions", "export", session).stdout
    assert [json.loads(line)["seq"] for line in exported.splitlines()] == [0, 1, 2]
    terminal.here("sessions", "delete", session, "--yes")
    (terminal.home.parent / "talk.jsonl").write_text(exported)
    assert (
        "1 session came along." in terminal.here("sessions", "import", str(terminal.home.parent / "talk.jsonl")).stdout
    )
    assert terminal.told("sessions", "show", session)["lines"] == shown["lines"]


def test_sessions_are_renamed_deleted_and_put_back(terminal: Terminal) -> None:
    session = terminal.told("trace", terminal.told("-z", "keep this")["turn"])["turn"]["session_id"]
    assert terminal.told("sessions", "rename", session, "Plans")["title"] == "Plans"
    assert terminal.told("sessions", "show", "Plans")["id"] == session
    refused = terminal.here("sessions", "delete", "Plans")  # nobody is there to be asked
    assert refused.returncode == 1
    assert f"sessions delete {session} --yes" in refused.stderr
    assert "There is no session 'Plants'" in terminal.here("sessions", "delete", "Plants").stderr
    file = terminal.home / "sessions" / f"{session}.jsonl"
    kept = file.read_text()
    assert terminal.told("sessions", "delete", session, "--yes")["id"] == session
    assert terminal.here("sessions", "show", session).returncode == 1
    assert not file.exists()
    file.write_text(kept)
    assert terminal.told("sessions", "rebuild", session)["restored"] == {session: 2}
    assert terminal.told("sessions", "show", session)["title"] == "Plans"


def test_what_needs_a_gateway_says_so_with_its_exit_code(terminal: Terminal) -> None:
    done = terminal.here("send", "telegram:42", "hi")
    assert done.returncode == 3
    assert "Nothing was sent. The gateway is not running. Start it:" in done.stderr
    status = terminal.here("status")
    assert status.returncode == 3
    assert "Gateway is not running" in status.stdout


def test_an_id_that_nobody_knows_is_a_clear_sentence(terminal: Terminal) -> None:
    done = terminal.here("trace", "t_nobody")
    assert (done.returncode, done.stderr) == (
        1,
        "✗ There is no message, turn or delivery 't_nobody' in this home.\n",
    )


def test_a_bad_value_is_refused_and_the_file_stays_as_it_was(terminal: Terminal) -> None:
    assert terminal.here("config", "set", "agent.busy_mode", "queue").returncode == 0
    before = (terminal.home / "config.yaml").read_text()
    done = terminal.here("config", "set", "agent.busy_mode", "sometimes")
    assert done.returncode == 1
    assert "interrupt, queue, steer" in done.stderr
    assert (terminal.home / "config.yaml").read_text() == before
    assert terminal.here("config", "get", "agent.busy_mode").stdout == "queue\n"
    assert "(was queue;" in terminal.here("config", "set", "agent.busy_mode", "interrupt").stdout


def test_a_secret_goes_to_the_env_file_and_is_never_shown(terminal: Terminal) -> None:
    done = terminal.here("config", "set", "TELEGRAM_BOT_TOKEN", "-", typed="123456:abcdefghijklmnopqrstuvwxyz98765\n")
    assert done.returncode == 0
    assert "abcdefgh" not in done.stdout
    env = terminal.home / ".env"
    assert "TELEGRAM_BOT_TOKEN=123456:abcdefghijklmnopqrstuvwxyz98765" in env.read_text()
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    env.unlink()


def test_an_empty_home_is_looked_at_without_being_made(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        assert terminal.here("doctor").returncode == 0
        assert "Nothing is stored" in terminal.here("sessions", "list").stderr
        assert not terminal.home.exists()


def test_the_latest_messages_are_listed_with_what_became_of_them(terminal: Terminal) -> None:
    asked = [terminal.told("-z", f"number {number}")["event"] for number in range(3)]
    told = terminal.told("trace", "--limit", "2")
    assert [(one["id"], one["outcome"], one["text"]) for one in told["messages"]] == [
        (asked[2], "answered", "number 2"),
        (asked[1], "answered", "number 1"),
    ]
    assert told["messages"][0]["chat"].startswith("local:z-")
    shown = terminal.here("trace", "-n", "2").stdout
    assert re.search(rf"✓ answered +{asked[2]} +“number 2”", shown)
    assert f"\n2 of {told['total']} messages (all: " in shown


def test_a_list_of_sessions_says_how_many_it_does_not_show(terminal: Terminal) -> None:
    for number in range(3):
        terminal.here("-z", f"number {number}")
    total = len(terminal.told("sessions", "list", "--limit", "1000"))
    assert total >= 3
    shown = terminal.here("sessions", "list", "--limit", "2").stdout.splitlines()
    assert shown[-1].startswith(f"2 of {total} sessions. All of them: ")
    assert shown[-1].endswith(f"sessions list --limit {total}")
    whole = terminal.here("sessions", "list", "--limit", str(total)).stdout
    assert " of " not in whole.splitlines()[-1]

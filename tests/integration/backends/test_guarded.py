"""The owner's commands in a sandbox: everyday work runs, secrets are hidden, what needs more is asked about."""

from __future__ import annotations

import json
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.backends import landlock
from hermes.agent.backends.base import BackendName
from hermes.agent.toolkit.context import ToolContext
from hermes.config.agent_settings import LimitsConfig, OwnerTerminal
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from hermes.store.home import make_home
from tests.fakes.programs import needs
from tests.integration.backends.conftest import SANDBOXES, SECRET, WHY_NOT, House, running

KEY = "PRIVATE KEY of the owner"
HIDDEN = (
    ".ssh/id_ed25519", ".gnupg/private", ".aws/credentials", ".netrc", ".env", ".env.production", ".git-credentials",
    ".mozilla/firefox/logins.json", ".config/google-chrome/Default/Cookies", ".local/share/keyrings/login.keyring",
    ".bash_history", ".docker/config.json", ".kube/config", ".npmrc", "server.pem",
)  # fmt: skip


@pytest.fixture(params=SANDBOXES)
def guarded(request: pytest.FixtureRequest, house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house whose owner's commands run in this sandbox."""
    if why := WHY_NOT[request.param]():
        pytest.skip(why)
    house.set(backend=OwnerTerminal.GUARDED)
    house.terminals._sandboxes = ("" if request.param == "bubblewrap" else "not tried here", landlock.why_not())
    for name in HIDDEN:
        path = house.home.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(KEY)
    (house.home.parent / "notes.txt").write_text("an ordinary file")
    monkeypatch.setenv("HOME", str(house.home.parent))
    return house


@pytest.fixture
def owner(guarded: House) -> ToolContext:
    """The owner, who works on a project in their home."""
    project = guarded.home.parent / "project"
    project.mkdir()
    return replace(guarded.person("olga", PersonRole.OWNER), workspace=project)


def asked(house: House, ctx: ToolContext, command: str, **more: object) -> str:
    need = house.toolbox.approval("terminal", json.dumps({"command": command, **more}), ctx)
    return "" if need is None else f"{need.question} {need.where}"


async def run(house: House, ctx: ToolContext, command: str) -> str:
    assert not asked(house, ctx, command)
    return await house.sh(ctx, command)


@needs("git")
async def test_git_commits_without_a_question(guarded: House, owner: ToolContext) -> None:
    (guarded.home.parent / ".gitconfig").write_text("[user]\nname = Olga\nemail = o@example.org\n")
    await run(guarded, owner, "git init -q && echo x > f && git add f")
    told = await run(guarded, owner, "git commit -qm 'first' && git log --format='%an: %s'")
    assert told == "Exit code 0.\nOlga: first"


@needs("python3")
async def test_pytest_runs_without_a_question(guarded: House, owner: ToolContext) -> None:
    (owner.workspace / "test_sum.py").write_text(
        "import tempfile\ndef test_sum(tmp_path):\n    (tmp_path / 'x').write_text('1')\n    assert 1 + 1 == 2\n"
    )
    packages = Path(pytest.__file__).parents[1]
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):  # the project brings its own
        if (packages / name).is_dir():
            shutil.copytree(packages / name, owner.workspace / name)
    if (packages / "py.py").is_file():
        shutil.copy(packages / "py.py", owner.workspace)
    told = await run(guarded, owner, "python3 -m pytest -q -p no:randomly test_sum.py")
    assert "1 passed" in told
    assert (owner.workspace / ".pytest_cache").is_dir()


@needs("npm")
async def test_npm_test_runs_without_a_question(guarded: House, owner: ToolContext) -> None:
    package = {"name": "small", "version": "1.0.0", "scripts": {"test": "node test.js"}}
    (owner.workspace / "package.json").write_text(json.dumps(package))
    (owner.workspace / "test.js").write_text("require('assert').equal(1 + 1, 2); console.log('node is fine')")
    told = await run(guarded, owner, "npm test")
    assert told.startswith("Exit code 0.")
    assert "node is fine" in told


@pytest.mark.parametrize("name", HIDDEN)
async def test_secrets_of_the_home_are_hidden(guarded: House, owner: ToolContext, name: str) -> None:
    path = guarded.home.parent / name
    told = await guarded.sh(owner, f"cat {path}; cp {path} copy; cat copy; cat /proc/1/root{path}; head -c 99 < {path}")
    assert KEY not in told


async def test_the_gateways_own_folder_and_socket_are_out_of_reach(guarded: House, owner: ToolContext) -> None:
    with socket.socket(socket.AF_UNIX) as control:
        control.bind(str(guarded.home / "g.sock"))
        control.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{guarded.home}/g.sock'); print('reached')"
        told = await guarded.sh(
            owner, f'cat {guarded.home}/.env {guarded.home}/state.db; ls {guarded.home}; python3 -c "{connect}"'
        )
    assert SECRET not in told
    assert "state.db" not in told.replace(f"{guarded.home}/state.db", "")
    assert "reached" not in told


async def test_backups_in_a_folder_of_their_own_are_hidden(guarded: House, owner: ToolContext) -> None:
    folder = guarded.home.parent / "safe"
    folder.mkdir()
    (folder / "hermes-20260101-000000-hourly.tar.gz").write_text(SECRET)
    config = guarded.config
    guarded.config = replace(config, backup=replace(config.backup, folder=str(folder)))
    told = await guarded.sh(owner, f"cat {folder}/*; cat {folder}/hermes-20260101-000000-hourly.tar.gz; ls {folder}")
    assert SECRET not in told


async def test_the_rest_of_the_home_is_readable_and_not_writable(guarded: House, owner: ToolContext) -> None:
    (owner.workspace / "try.py").write_text("import os\nopen(os.path.expanduser('~/.bashrc'), 'w')")
    told = await run(guarded, owner, "cat ../notes.txt; echo x > ../notes.txt; echo x > ../new; python3 try.py")
    assert "an ordinary file" in told
    assert (guarded.home.parent / "notes.txt").read_text() == "an ordinary file"
    assert not (guarded.home.parent / "new").exists()
    assert not (guarded.home.parent / ".bashrc").exists()


@pytest.mark.parametrize(
    "command",
    ["echo x > ../new", "touch /var/new", "python3 -c \"open('/srv/new', 'w')\"", "python3 new.py"],
)
async def test_what_the_wall_stops_is_offered_outside_with_a_question(
    guarded: House, owner: ToolContext, command: str
) -> None:
    program = command.split()[0]
    if program != "echo" and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (owner.workspace / "new.py").write_text("import os\nopen(os.path.expanduser('~/.ssh/new'), 'w')")
    told = await run(guarded, owner, command)
    assert not told.startswith("Exit code 0.")
    assert "outside=true" in told
    assert not (guarded.home.parent / ".ssh" / "new").exists()
    question = asked(guarded, owner, command, outside=True, reason="the\nservice  needs it")
    assert "outside the sandbox" in question
    assert "Its reason: the service needs it" in question
    assert "OUTSIDE the sandbox" in question


@pytest.mark.parametrize(
    "command",
    [
        "systemctl restart nothing-of-that-name",
        "service nothing restart",
        "apt install nothing-at-all",
        "apt-get install nothing-at-all",
        "sudo true",
        "echo x > /etc/new",
        "echo x >> ~/.bashrc",
        "mount /dev/sda1 /mnt",
        "useradd bob",
    ],
)
async def test_what_can_only_be_done_outside_is_asked_about_once_and_runs_there(
    guarded: House, owner: ToolContext, command: str
) -> None:
    question = asked(guarded, owner, command)
    assert "outside the sandbox" in question
    assert "OUTSIDE the sandbox" in question


@pytest.mark.parametrize(
    "command", ["pytest -q", "git commit -m x", "npm test", "npm install", "make", "systemctl status x"]
)
async def test_everyday_commands_are_not_asked_about(guarded: House, owner: ToolContext, command: str) -> None:
    assert not asked(guarded, owner, command)


async def test_outside_the_wall_the_command_does_what_was_asked(guarded: House, owner: ToolContext) -> None:
    told = await guarded.sh(owner, "echo written > ../new; cat ../new", outside=True, reason="a file of the home")
    assert told == "Exit code 0.\nwritten"
    assert (guarded.home.parent / "new").read_text() == "written\n"


async def test_a_question_about_the_wall_is_never_covered_by_a_grant(guarded: House, owner: ToolContext) -> None:
    need = guarded.toolbox.approval("terminal", json.dumps({"command": "true", "outside": True}), owner)
    assert need is not None
    assert need.subject == ""
    assert need.touches_host


@pytest.mark.parametrize("role", [PersonRole.USER, PersonRole.ADMIN])
async def test_only_the_owner_gets_outside(guarded: House, role: PersonRole) -> None:
    with pytest.raises(ToolError, match="only for the owner"):
        await guarded.sh(guarded.person("eva", role), "true", outside=True)


async def test_a_home_as_workspace_keeps_its_start_files_closed(guarded: House) -> None:
    home = guarded.home.parent
    (home / ".bashrc").write_text("mine")
    for name in ("bin", "code"):
        (home / name).mkdir(exist_ok=True)
    olga = replace(guarded.person("olga", PersonRole.OWNER), workspace=home)
    (home / "code" / "try.sh").write_text(
        "echo x > .bashrc; echo x > bin/ls; mkdir .config/autostart; echo fine > code/f; cat code/f .ssh/* server.pem"
    )
    told = await guarded.sh(olga, "bash code/try.sh")  # the judge reads the script and asks; the sandbox holds anyway
    assert "fine" in told
    assert KEY not in told
    assert (home / ".bashrc").read_text() == "mine"
    assert not (home / "bin" / "ls").exists()
    assert not (home / ".config" / "autostart").exists()


async def test_a_gateway_inside_the_workspace_stays_hidden(guarded: House) -> None:
    around = guarded.home.parent / "around"
    around.mkdir()
    (around / "plain").mkdir()
    guarded.home.rename(around / "home")
    guarded.home.symlink_to(around / "home")
    olga = replace(guarded.person("olga", PersonRole.OWNER), workspace=around)
    told = await guarded.sh(olga, "cat home/.env; ls home; echo fine > plain/f; cat plain/f; echo x > home/.env")
    assert SECRET not in told
    assert "fine" in told
    assert (around / "home" / ".env").read_text() == SECRET


async def test_temporary_files_and_caches_have_a_place(guarded: House, owner: ToolContext) -> None:
    told = await guarded.sh(owner, 'f=$(mktemp) && echo ok > "$f" && cat "$f"; echo c > "$XDG_CACHE_HOME/x"; echo $?')
    assert told.endswith("ok\n0")
    assert (await guarded.sh(owner, 'cat "$XDG_CACHE_HOME/x"')).endswith("c")


async def test_the_network_of_the_machine_is_there(guarded: House, owner: ToolContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        told = await guarded.sh(owner, f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && echo reached")
    assert "reached" in told


async def test_nothing_survives_the_end_of_a_command(guarded: House, owner: ToolContext, mark: str) -> None:
    await guarded.sh(owner, f"setsid -f sleep {mark}; (setsid sleep {mark} &); nohup sleep {mark} & true", timeout=30)
    assert not running(mark)


async def test_a_fork_bomb_of_the_owner_ends_too(guarded: House, owner: ToolContext, mark: str) -> None:
    guarded.set(backend=OwnerTerminal.GUARDED, limits=LimitsConfig(processes=5))
    bomb = f"f() {{ if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep {mark}; }}; f 7; wait"
    told = await guarded.sh(owner, bomb, timeout=40)
    assert "terminal.limits.processes" in told or "fork" in told


async def test_without_any_sandbox_there_is_no_weaker_wall(house: House) -> None:
    house.set(backend=OwnerTerminal.GUARDED)
    house.terminals._sandboxes = ("bubblewrap is not installed", "this kernel has no Landlock")
    with pytest.raises(ToolError, match=r"terminal\.backend is guarded, and bubblewrap is not installed"):
        await house.sh(house.person("olga", PersonRole.OWNER), "true")


async def test_users_are_not_behind_the_owners_wall(guarded: House) -> None:
    assert guarded.terminals.backend(guarded.person("ana")).name is not BackendName.GUARDED


async def test_the_agent_of_a_profile_sees_neither_the_home_above_nor_the_other_profiles(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`profiles/work` in a home anywhere: its commands see its own workspace, and no key of another agent."""
    if why := WHY_NOT["landlock"]():
        pytest.skip(why)
    root = house.home.parent / "srv"
    for folder in (root, root / "profiles" / "work", root / "profiles" / "play"):
        make_home(folder)
        (folder / ".env").write_text(f"OPENAI_API_KEY={SECRET}\n")
    of_profile = House(root / "profiles" / "work", house.db, house.config, house.environ)
    of_profile.set(backend=OwnerTerminal.GUARDED)
    of_profile.terminals._sandboxes = ("not tried here", landlock.why_not())
    monkeypatch.setenv("HOME", str(house.home.parent))
    project = house.home.parent / "project"
    project.mkdir()
    owner = replace(of_profile.person("olga", PersonRole.OWNER), workspace=project)
    for path in (root / ".env", root / "profiles" / "play" / ".env", root / "profiles" / "work" / ".env"):
        told = await of_profile.sh(owner, f"cat {path} 2>&1 || echo closed")
        assert SECRET not in told
        assert "closed" in told

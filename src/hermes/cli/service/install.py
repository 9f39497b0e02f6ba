"""Install and remove the service: show everything first, overwrite nothing of others, watch the result."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import hermes as hermes_package
from hermes.cli.service import plan as planning
from hermes.cli.service.plan import InstallRequest
from hermes.cli.support.prompts import LeftError, Questions, at_terminal
from hermes.cli.support.screen import complain, say
from hermes.hosting import launch, lifecycle, status
from hermes.hosting.control import client as control
from hermes.hosting.service import services
from hermes.hosting.service.services import ProgramAnswer, Service, SystemdService, UnitFile
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope, UnitOrigin
from hermes.hosting.terminal import out

READY_SECONDS = 60.0
LOOK_SECONDS = 1.0
STOP_SECONDS = 40.0
COMPILE_SECONDS = 120.0


def install(request: InstallRequest, home: Path, hermes: str) -> int:
    """Write the unit and start the service; the exit code."""
    if launch.is_inside(str(home)):
        complain("This runs in the agent's own terminal. Type it in a terminal that you opened yourself.")
        return 1
    impossible = planning.why_no_service(_absolute(hermes))
    if impossible and not request.is_dry_run:
        out(planning_text(impossible))
        return 1
    service, plan = planning.make_plan(request, home)
    present = services.read_unit(service.path)
    if refusal := why_not_written(service, present, plan, replaces=request.replaces):
        complain(refusal)
        return 1
    text = service.render(plan)
    user_steps = planning.user_steps(plan)
    steps = [*user_steps, *compile_steps(plan), *service.register_steps(), *service.start_steps()[-1:]]
    say(f"Unit file {service.path}:")
    out("\n".join(f"  {line}".rstrip() for line in text.splitlines()))
    say("Commands:")
    out("\n".join(f"  {shlex.join(step)}" for step in steps))
    if not request.is_system and (names := planning.only_in_this_shell(home)):
        say(f"! These settings exist only in this shell; the service does not get them: {', '.join(names)}.")
        say(f"  Put them into {os.path.join(plan.home, '.env')}, which only you can read.")
    if request.is_dry_run:
        say("Nothing was written (--dry-run).")
        if impossible:
            out(planning_text(impossible))
        return 0
    if unusable := service.why_unusable():
        complain(_no_manager(service, unusable))
        return 1
    if other := service.other_unit():
        complain(f"systemd knows a unit {service.name} already, from {other}. It is another program's and stays.")
        return 1
    questions = None if request.is_yes else at_terminal()
    try:
        if questions is not None and not questions.yes("Install it?", default=True):
            say("Nothing was written.")
            return 1
        return _carry_out(request, service, plan, text, user_steps, questions, hermes)
    except LeftError:
        say("Nothing more was done.")
        return 1


def _carry_out(
    request: InstallRequest,
    service: Service,
    plan: ServicePlan,
    text: str,
    user_steps: Sequence[tuple[str, ...]],
    questions: Questions | None,
    hermes: str,
) -> int:
    if trouble := _run(user_steps):
        complain(f"The user {plan.user} could not be created: {trouble}")
        return 1
    if trouble := planning.why_it_cannot_run(plan):
        complain(f"The service could not start: {trouble}")
        return 1
    if trouble := _run(compile_steps(plan), COMPILE_SECONDS):
        say(f"! {trouble}")  # it starts all the same, more slowly
    is_unchanged = services.read_unit(service.path).text == text
    try:
        services.write_unit(service.path, text)
    except FileExistsError:
        complain(f"{service.path} was written by somebody else just now, so it stays as it is. Repeat the command.")
        return 1
    if trouble := _run(service.register_steps(), run=service.run):
        complain(f"{service.describe()} did not accept the unit: {trouble}")
        return 1
    home, started = Path(plan.home), time.time()
    with services.acting_as(plan.user):
        if is_unchanged and (lifecycle.look(home, hermes).snapshot or {}).get("kept_up_by") == service.describe():
            started = 0.0
        elif control.is_running(home):
            say("A gateway runs for this home. It finishes its work and stops; the service takes its place.")
            if (stopped := lifecycle.stop(home, hermes)).exit_code:
                complain(stopped.text.removeprefix("✗ "))
                return 1
            started = time.time()
    if trouble := _run(service.start_steps()[-1:], run=service.run):
        complain(f"{service.describe()} did not start the gateway: {trouble}")
        return 1
    say(f"✓ {service.describe()} starts the gateway now and after every crash.")
    _linger(service, request, questions)
    if request.watch_seconds <= 0:
        return 0
    with services.acting_as(plan.user):
        return watch(service, home, hermes, started, request.watch_seconds)


def compile_steps(plan: ServicePlan) -> list[tuple[str, ...]]:
    """Code that the user of the service cannot write to is compiled now: every start would compile it anew."""
    if not plan.user:
        return []
    return [(plan.command[0], "-m", "compileall", "-q", os.path.dirname(os.path.realpath(hermes_package.__file__)))]


def why_not_written(service: Service, present: UnitFile, plan: ServicePlan, *, replaces: bool) -> str:
    """Say why the file that is there must stay; '' when it may be written."""
    from hermes.hosting.service.unit_files import home_of

    match present.origin:
        case UnitOrigin.FOREIGN:
            return (
                f"{present.path} was not written by this command, so it stays as it is.\n"
                f"  To replace it, move it away first: {service.typed('stop')}; mv {shlex.quote(present.path)} "
                f"{shlex.quote(present.path + '.old')}"
            )
        case UnitOrigin.OURS | UnitOrigin.EDITED if home_of(present.text) not in ("", plan.home):
            return (
                f"The service {service.name} serves another home, {home_of(present.text)}.\n"
                "  Remove it there first: hermes gateway uninstall"
            )
        case UnitOrigin.EDITED if not replaces:
            return (
                f"{present.path} was changed by hand, so it stays as it is.\n"
                f"  Keep your lines with `{service.typed('edit')}` and repeat this with --replace; "
                "the present file is kept as .old"
            )
    return ""


def _linger(service: Service, request: InstallRequest, questions: Questions | None) -> None:
    """A service of a user ends with the last log-out unless the user lingers."""
    if service.scope is ServiceScope.SYSTEM:
        return
    if not isinstance(service, SystemdService):
        say("  launchd starts it when you log in, and stops it when you log out.")
        return
    user = services.user_name(os.getuid())
    command = ("loginctl", "enable-linger", user)
    if services.is_lingering(user):
        say(f"✓ {user} lingers: the service starts with the machine and outlives every log-out.")
        return
    wanted = request.linger
    if wanted is None and request.is_yes:
        wanted = True
    if wanted is None and questions is not None:
        say("  Services of a user end when the user logs out, and start at the next log-in, unless the user lingers.")
        wanted = questions.yes(
            f"Let the services of {user} run without a log-in ({shlex.join(command)})?", default=True
        )
    if not wanted:
        say(f"! The service ends when {user} logs out → {shlex.join(command)}")
        return
    answer = services.call(command)
    if answer.code == 0:
        say(f"✓ {user} lingers now: the service starts with the machine and outlives every log-out.")
    else:
        say(f"! Lingering was refused ({answer.complaint or 'no reason given'}) → sudo {shlex.join(command)}")


def watch(service: Service, home: Path, hermes: str, started: float, seconds: float) -> int:
    """Look at the status until the gateway has been up for so long; say how it went."""
    say(f"Watching it for {seconds:.0f} s.")
    ready_by = time.monotonic() + READY_SECONDS
    up_since, pid = 0.0, 0
    while True:
        judged, snapshot = _look(home, hermes, started)
        now = time.monotonic()
        if judged.state in (status.State.RUNNING, status.State.DEGRADED) and snapshot:
            if pid and snapshot != pid:
                return _failed(service, home, judged, "The gateway restarted during this time.")
            up_since, pid = up_since or now, snapshot
            if now - up_since >= seconds:
                say(f"✓ The gateway stayed up for {seconds:.0f} s without a restart.")
                out("\n".join(judged.lines))
                return 0
        elif pid:
            return _failed(service, home, judged, "The gateway did not stay up.")
        elif now >= ready_by:
            return _failed(service, home, judged, f"The gateway was not ready after {READY_SECONDS:.0f} s.")
        time.sleep(LOOK_SECONDS)


def _look(home: Path, hermes: str, started: float) -> tuple[status.Status, int]:
    """The status, and the pid of a worker that was started by the service; 0 while there is none."""
    facts = lifecycle.look(home, hermes)
    is_new = facts.beat is not None and facts.beat.ready_at >= started
    return status.judge(facts), int((facts.snapshot or {}).get("pid", 0)) if is_new else 0


def _failed(service: Service, home: Path, judged: status.Status, words: str) -> int:
    complain(words)
    out("\n".join(judged.lines))
    say(f"  {service.describe()} says: {service.how_it_stands()}. The last lines: {service.journal(str(home))}")
    return 1


def uninstall(service: Service | None, home: Path, *, is_dry_run: bool, is_yes: bool, hermes: str) -> int:
    """Stop the service and remove its unit. The home and everything in it stays."""
    if launch.is_inside(str(home)):
        complain("This runs in the agent's own terminal. Type it in a terminal that you opened yourself.")
        return 1
    if service is None:
        complain(f"No service of Hermes serves {home}.")
        return lifecycle.NOT_RUNNING
    present = services.read_unit(service.path)
    if present.origin not in (UnitOrigin.OURS, UnitOrigin.EDITED):
        complain(f"{service.path} was not written by `hermes gateway install`, so it stays as it is.")
        return 1
    say("Commands:")
    steps = [*service.stop_steps(), *service.unregister_steps(), ("rm", service.path), *service.forget_steps()]
    out("\n".join(f"  {shlex.join(step)}" for step in steps))
    if is_dry_run:
        say("Nothing was changed (--dry-run).")
        return 0
    if unusable := service.why_unusable():
        complain(_no_manager(service, unusable))
        return 1
    questions = None if is_yes else at_terminal()
    try:
        if questions is not None and not questions.yes("Remove the service?", default=True):
            say("Nothing was changed.")
            return 1
    except LeftError:
        return 1
    if trouble := _run(service.stop_steps(), STOP_SECONDS, run=service.run):
        say(f"! {trouble}")
    if trouble := _run(service.unregister_steps()):
        say(f"! {trouble}")
    if present.origin is UnitOrigin.EDITED:
        os.replace(service.path, f"{service.path}.old")
        say(f"  The unit was changed by hand; it is kept as {service.path}.old")
    else:
        os.unlink(service.path)
    if trouble := _run(service.forget_steps()):
        say(f"! {trouble}")
    say(f"✓ The service {service.name} is removed. {home} stays as it is. Run it by hand: {hermes} gateway start")
    return 0


def _no_manager(service: Service, reason: str) -> str:
    if service.scope is ServiceScope.SYSTEM:
        return f"The service manager cannot be used: {reason}.\n  Repeat the command with sudo."
    return (
        f"The service manager of your account cannot be reached: {reason}.\n"
        "  Log in as this user (ssh, not su), or install it for the system: sudo hermes gateway install --system"
    )


def _run(
    steps: Sequence[tuple[str, ...]],
    seconds: float = services.CALL_SECONDS,
    run: Callable[[Sequence[str], float], ProgramAnswer] = services.call,
) -> str:
    """Run commands in their order until one fails; its complaint, else ''."""
    for step in steps:
        answer = run(step, seconds)
        if answer.code:
            return f"{shlex.join(step)}: {answer.complaint or f'exit code {answer.code}'}"
    return ""


def _absolute(hermes: str) -> str:
    """The command as a scheduler needs it, without a shell around it."""
    import shutil

    return os.path.abspath(os.path.expanduser(shutil.which(hermes) or hermes))


def planning_text(words: str) -> str:
    from hermes.cli.support.program_name import as_typed
    from hermes.hosting.translation import tr

    return as_typed(tr(words))

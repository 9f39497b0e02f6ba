"""The shell above a command that kills it when the gateway disconnects.

Its standard input is a lease: as long as somebody holds the other end, the command may run. The end of it, on
purpose or because whoever held it died, is the end of the whole process group: SIGTERM, and a second later SIGKILL.
"""

from __future__ import annotations

# A caught TERM is the default again in children; an ignored one would be ignored there too. The lease holds no end of
# the output, so that this is complete when the command's own processes have closed it, and what a shell says about a
# killed child ("Terminated") goes nowhere.
_HEAD = """\
trap : TERM
exec 3<&0 4>&2 </dev/null 2>/dev/null
"""

# What must not stand in the other machine's list of processes comes first: lines NAME=value, then an empty one.
_READ_ENVIRONMENT = """\
while IFS= read -r line <&3 && [ -n "$line" ]; do export "$line"; done
"""

_BODY = """\
(
  trap '' TERM
  while read -r _; do :; done
  kill -TERM 0
  trap - TERM
  sleep 1
  kill -KILL 0
) <&3 3<&- 4>&- >/dev/null &
lease=$!
(exec "$@" 2>&4 3<&- 4>&-)
code=$?
kill -KILL "$lease"
wait "$lease"
"""

# Nobody there sees what the command left behind, and it would hold the connection open.
_END_LEFTOVERS = """\
trap '' TERM
kill -TERM 0
(
  trap - TERM
  sleep 1
  kill -KILL 0
) >/dev/null 4>&- &
"""

_TAIL = 'exit "$code"\n'

LEASE = _HEAD + _BODY + _TAIL
REMOTE_LEASE = _HEAD + _READ_ENVIRONMENT + _BODY + _END_LEFTOVERS + _TAIL

# Waits for a line, so that limits are set before anything of the command runs; the rest of the input is the lease.
_GATE = 'IFS= read -r _ && exec "$@"'

_BASH_OR_SH = 'command -v bash >/dev/null && exec bash -c "$1"; exec sh -c "$1"'


def in_shell(command: str) -> tuple[str, ...]:
    """Return the arguments that run a command line, every byte as it is, in bash where there is one."""
    return ("sh", "-c", _BASH_OR_SH, "hermes", command)


def leased(arguments: tuple[str, ...], script: str = LEASE, *, first: str = "") -> tuple[str, ...]:
    """Run under a lease. ``first`` are lines of ours, such as limits that must be set inside a sandbox."""
    return ("sh", "-c", first + script, "hermes", *arguments)


def limit_processes(most: int) -> str:
    """Return the line that bounds how many processes there may be; '' for 0. bash and dash name it differently."""
    return f"ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null\n" if most else ""


def gated(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Wait for a line on standard input before these are run, as the same process."""
    return ("sh", "-c", _GATE, "hermes", *arguments)

"""Run command lines with real bash in a throwaway sandbox, and tell whether they changed a folder.

Without bubblewrap nothing is run: these forms delete what they can reach.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

SECONDS = 20

FILES = {
    "/w/evil.sh": '#!/bin/sh\nrm -f "${1:-/victim}/f"; touch "${1:-/victim}/new"\n',
    "/w/hook": "#!/bin/sh\ntouch /victim/by-hook\n",
    "/w/evil.py": 'import os\nos.remove("/victim/f")\n',
    "/w/evil.pl": 'unlink "/victim/f";\n',
    "/w/.git/HEAD": "ref: refs/heads/main\n",
}
"""Scripts of the sandbox as the judge may read them."""

PREPARE = r"""
mkdir -p /victim/sub /victim/empty /w/src /w/bin /home/u
cd /w
for n in f g run sub/x; do echo v > /victim/$n; done
chmod +x /victim/run
echo notes > notes.txt; echo a > src/a.txt; printf '/victim/f\n' > list; : > lock
echo 'all: ;' > x.mk; echo 'int x;' > x.c
printf 'a:\n\ttouch $(V)/made-by-make\n' > evil.mk
printf '#!/bin/sh\nrm -f "${1:-/victim}/f"; touch "${1:-/victim}/new"\n' > evil.sh
printf '#!/bin/sh\ntouch /victim/by-hook\n' > hook
printf '#!/bin/sh\ntouch /victim/by-path\n' > bin/ls
printf 'import os\nos.remove("/victim/f")\n' > evil.py
printf 'unlink "/victim/f";\n' > evil.pl
printf 'w /victim/out\n' > evil.sed
printf 'BEGIN { print "x" > "/victim/f" }\n' > evil.awk
printf 'url="file:///w/notes.txt"\noutput="/victim/f"\n' > evil.curl
chmod +x evil.sh hook bin/ls
ln -s /victim link
tar cf a.tar notes.txt; tar cPf abs.tar /victim/g
export HOME=/home/u
git init -q . 2>/dev/null && git add notes.txt && git -c user.name=u -c user.email=u@x commit -qm one >/dev/null 2>&1
look() { find /victim .git -printf '%p %y %m %U %s %C@ %l\n' 2>&1 | sort; }
look > /before
"""
CHECK = r"""
cd /w
look > /after
cmp -s /before /after && exit 40
exit 41
"""


@functools.cache
def why_not() -> str:
    """Why nothing can be run here; '' where bubblewrap works."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    done = subprocess.run([*_bwrap(), "bash", "-c", "exit 3"], capture_output=True, check=False, timeout=SECONDS)
    return "" if done.returncode == 3 else f"bubblewrap does not work here ({done.stderr.decode()[-200:].strip()})"


def changes_victim(form: str) -> bool:
    """Whether this form changes /victim or the .git of its folder. Its own shell is ended after three seconds."""
    script = f'{PREPARE}\ntimeout -k 1 3 bash -c "$FORM" </dev/null >/dev/null 2>&1\n{CHECK}'
    done = subprocess.run(
        [*_bwrap(), "--setenv", "FORM", form, "bash", "-c", script],
        capture_output=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode not in (40, 41):
        raise RuntimeError(f"the sandbox failed with {done.returncode}: {done.stderr[-300:]!r}")
    return done.returncode == 41


@functools.cache
def _bwrap() -> tuple[str, ...]:
    words = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--tmpfs",
        "/",
        "--ro-bind",
        "/usr",
        "/usr",
    ]
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    words += ["--ro-bind", "/etc/passwd", "/etc/passwd", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    if Path("/etc/alternatives").is_dir():
        words += ["--ro-bind", "/etc/alternatives", "/etc/alternatives"]
    return (*words, "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--chdir", "/")

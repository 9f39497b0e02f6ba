# Sourced by the scripts beside it. Given $root, `ready core` or `ready core test` makes sure that .venv holds
# what the pins say. The usual start is two small files compared in the shell: no Python, no pip, no network.
# `use_python 3.13` before it: that Python, in .venv-3.13.

venv=.venv
venv_python=$root/$venv/bin/python

# A stamp is a copy of the pins, written when all of them were installed.
is_fresh() {
    [ -x "$venv_python" ] && [ -f "$root/$venv/stamp-$1" ] &&
        [ "$(cat "$root/$venv/stamp-$1")" = "$(cat "$root/requirements/$1.txt")" ]
}

is_python() { # new enough
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

has_venv() { # able to make a virtual environment
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

is_version() { # PYTHON VERSION: it starts, it is that version, and it can make a virtual environment
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.argv[1] != "%d.%d" % sys.version_info[:2])' "$2" >/dev/null 2>&1
}

find_version() { # VERSION, such as 3.13: on the PATH, or where pyenv and uv keep theirs
    for candidate in "python$1" "${PYENV_ROOT:-${HOME-}/.pyenv}/versions/$1".*/bin/python \
        "${XDG_DATA_HOME:-${HOME-}/.local/share}/uv/python/cpython-$1".*/bin/python3; do
        if is_version "$candidate" "$1"; then
            found=$candidate
            return 0
        fi
    done
    return 1
}

use_python() {
    if ! find_version "$1"; then
        echo "✗ There is no Python $1 here that starts and can make a virtual environment." >&2
        echo "  Looked for python$1 on the PATH, and among those of pyenv and uv." >&2
        exit 1
    fi
    HERMES_PYTHON=$found
    venv=.venv-$1
    venv_python=$root/$venv/bin/python
}

find_python() {
    if [ -n "${HERMES_PYTHON-}" ] && ! is_python "$HERMES_PYTHON"; then
        echo "✗ HERMES_PYTHON=$HERMES_PYTHON is no Python 3.11 or newer." >&2
        return 1
    fi
    without_venv=
    for candidate in ${HERMES_PYTHON:+"$HERMES_PYTHON"} python3.13 python3.12 python3.11 \
        python3.14 python3 python; do
        is_python "$candidate" || continue
        if has_venv "$candidate"; then
            found=$candidate
            return 0
        fi
        without_venv=$candidate
    done
    if [ -n "$without_venv" ]; then
        echo "✗ $without_venv is new enough, but it cannot make a virtual environment." >&2
        echo "  Debian, Ubuntu: sudo apt install python3-venv     then run this again." >&2
    else
        seen=$(python3 --version 2>/dev/null || echo "no python3")
        echo "✗ Hermes needs Python 3.11 or newer; here is $seen." >&2
        echo "  Install it, or name one: HERMES_PYTHON=/path/to/python3.12 $0" >&2
    fi
    return 1
}

# An update that was killed while the files changed: go on to the commit that it had decided for. git itself ends its work.
finish_switch() {
    read -r commit updater <"$1" || true
    if kill -0 "${updater:-0}" 2>/dev/null; then
        return 0 # it is at work
    fi
    waited=0
    while [ -e "$root/.git/index.lock" ] && [ $waited -lt 50 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    rm -f "$root/.git/index.lock"
    git -C "$root" reset --quiet --hard "$commit" && rm -f "$1"
}

ready() {
    if [ -f "$root/.git/hermes-switching" ]; then
        finish_switch "$root/.git/hermes-switching"
    fi
    for part in "$@"; do
        is_fresh "$part" && continue
        find_python || exit 1
        HERMES_VENV=$venv "$found" -P "$root/scripts/_venv.py" "$@" || exit $?
        return 0
    done
}

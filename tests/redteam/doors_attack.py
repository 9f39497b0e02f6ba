"""What a hijacked agent runs in the owner's terminal: it tries every door of its own gateway. Standard library only.

``python doors_attack.py SHAPE SPEC OUT``: becomes a process of this shape, tries what SPEC lists, and writes to OUT
what each door said.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SECONDS = 40.0


def by_socket(home: str, verb: str, args: dict[str, Any]) -> str:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(15)
        line.connect(f"{home}/run/gateway.sock")
        line.sendall(json.dumps({"verb": verb, "args": args}).encode() + b"\n")
        with line.makefile("rb") as answers:
            for raw in answers:
                if raw.strip() and b'"event"' not in raw[:12]:
                    return raw.decode()
    return "nothing"


def by_file(home: str, form: str, verb: str, args: dict[str, Any]) -> str:
    stem = f"{home}/run/requests/{form}{os.getpid()}"
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    held = os.open(f"{stem}.tmp", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(held, json.dumps({"verb": verb, "args": args}).encode())
    if form == "locked":
        fcntl.lockf(held, fcntl.LOCK_EX)
    elif form == "ofd":
        fcntl.fcntl(held, 37, _flock())  # F_OFD_SETLK: a lock of no process
    os.rename(f"{stem}.tmp", f"{stem}.json")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if os.path.exists(f"{stem}.answer"):
            return Path(f"{stem}.answer").read_text()
        time.sleep(0.02)
    return "nothing"


def _flock() -> bytes:
    import struct

    return struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def by_http(port: int, key: str, method: str, path: str) -> str:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    body = json.dumps({"decision": "approve", "approve": True, "platform": "telegram", "code": "ABCDEFGH"})
    line.request(method, path, body, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    answer = line.getresponse()
    said = f"{answer.status} {answer.read().decode()}"
    line.close()
    return said


def attack(spec: dict[str, Any], out: str) -> None:
    home, told = spec["home"], {}
    for verb, args in spec["verbs"].items():
        told[f"socket {verb}"] = _tried(by_socket, home, verb, args)
    for form, verb, args in spec["files"]:
        told[f"file {form} {verb}"] = _tried(by_file, home, form, verb, args)
    keys = {"default": spec["default_key"], "named": spec["named_key"]}
    for whose, key in keys.items():
        for method, path in spec["routes"]:
            told[f"http {whose} {method} {path}"] = _tried(by_http, spec["port"], key, method, path)
    told["pid"] = str(os.getpid())
    Path(f"{out}.tmp").write_text(json.dumps(told))
    os.rename(f"{out}.tmp", out)


def _tried(door: Any, *args: Any) -> str:
    try:
        return str(door(*args))
    except OSError as error:
        return f"no way: {error}"


def daemon(work: Any) -> None:
    """Fork twice and leave the session: nobody of the old family is a parent any more."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(0.3)  # by now the one in between has ended
    for descriptor in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    try:
        work()
    finally:
        os._exit(0)


def disguised(work: Any) -> None:
    """As `daemon`, with another name, an empty environment and, where that is allowed, the limits of a login."""

    def become() -> None:
        libc = ctypes.CDLL(None)
        libc.prctl(15, b"bash", 0, 0, 0)
        libc.prctl(4, 0, 0, 0, 0)  # nobody may look into it
        for name in list(os.environ):
            del os.environ[name]
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(10, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        work()

    daemon(become)


def main(shape: str, spec_path: str, out: str) -> None:
    spec = json.loads(Path(spec_path).read_text())
    again = [sys.executable, __file__, "child", spec_path, out]
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    match shape:
        case "child":
            attack(spec, out)
        case "grandchild":
            subprocess.run(["sh", "-c", '"$@"; exit 0', "sh", *again], check=True)
        case "double fork":
            daemon(lambda: attack(spec, out))
        case "disguised":
            disguised(lambda: attack(spec, out))
        case "setsid":
            subprocess.Popen(again, start_new_session=True, **quiet)
        case "nohup":
            subprocess.run(["sh", "-c", 'nohup "$@" >/dev/null 2>&1 &', "sh", *again], check=True)
        case "tmux":
            subprocess.run(["tmux", "-f", os.devnull, "-L", f"t{os.getpid()}", "new-session", "-d", *again], check=True)
        case "pid namespace":
            subprocess.run(["unshare", "--pid", "--fork", *again], check=True)
        case "kept":

            def wait_and_attack() -> None:
                Path(f"{out}.pid").write_text(str(os.getpid()))
                while not os.path.exists(f"{out}.go"):
                    time.sleep(0.02)
                attack(spec, out)

            daemon(wait_and_attack)
            return
        case "connect and leave":
            hand_over(spec, out)
        case other:
            raise SystemExit(f"unknown shape {other}")
    deadline = time.monotonic() + SECONDS
    while not os.path.exists(out) and time.monotonic() < deadline:
        time.sleep(0.02)


def hand_over(spec: dict[str, Any], out: str) -> None:
    """Connect, hand the connection to a child and end: whoever connected cannot be looked at any more."""
    told = {}
    for verb, args in spec["verbs"].items():
        line = socket.socket(socket.AF_UNIX)
        reader, writer = os.pipe()
        if connector := os.fork():
            os.close(writer)
            os.waitpid(connector, 0)
            with open(reader, encoding="utf-8") as file:
                told[f"socket {verb}"] = file.read() or "nothing"
            line.close()
            continue
        line.connect(f"{spec['home']}/run/gateway.sock")
        if os.fork():
            os._exit(0)
        time.sleep(0.2)  # by now it has ended
        line.settimeout(15)
        line.sendall(json.dumps({"verb": verb, "args": args}).encode() + b"\n")
        with line.makefile("rb") as answers, open(writer, "wb") as said:
            said.write(next((raw for raw in answers if raw.strip()), b""))
        os._exit(0)
    Path(f"{out}.tmp").write_text(json.dumps(told))
    os.rename(f"{out}.tmp", out)


if __name__ == "__main__":
    main(*sys.argv[1:4])

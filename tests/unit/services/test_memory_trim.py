"""Memory is given back after work, in a calm moment, and never by an idle process."""

from __future__ import annotations

import ctypes
import gc
import os
import weakref
from dataclasses import dataclass

import pytest

from hermes.hosting import processes
from hermes.services import memory_trim
from hermes.services.memory_trim import MemoryTrim, release_free_pages


@dataclass
class Process:
    """A process whose work the test does."""

    cpu: float = 0.0
    now: float = 0.0
    released: int = 0
    freed: int = 0

    def release(self) -> None:
        self.released += 1

    def free_caches(self) -> None:
        self.freed += 1

    def trim(self) -> MemoryTrim:
        return MemoryTrim(lambda: self.cpu, lambda: self.now, self.release, self.free_caches)

    def works(self, cpu: float, seconds: float = 5.0) -> None:
        self.cpu += cpu
        self.now += seconds


async def test_an_idle_process_gives_nothing_back() -> None:
    process = Process()
    trim = process.trim()
    for _ in range(100):
        process.works(0.009)
        assert not await trim.look()
    assert process.released == 0


async def test_the_first_calm_moment_after_work_gives_memory_back_once() -> None:
    process = Process()
    trim = process.trim()
    told = []
    for cpu in (3.0, 3.0, 0.01, 0.01, 0.01):
        process.works(cpu)
        told.append(await trim.look())
    assert told == [False, False, True, False, False]
    assert process.released == 1


async def test_a_load_without_a_pause_gives_memory_back_once_a_minute() -> None:
    process = Process()
    trim = process.trim()
    for _ in range(60):
        process.works(4.0)
        await trim.look()
    assert process.released == 60 * 5 // memory_trim.MAX_WAIT_SECONDS
    assert process.freed == 0, "the load would fill the caches again"


@pytest.mark.parametrize("before", [[4.0] * 12, [4.0, 0.1]], ids=["a load of a minute", "a load that was held up"])
async def test_the_end_of_a_load_that_was_trimmed_midway_is_trimmed_too(before: list[float]) -> None:
    process = Process()
    trim = process.trim()
    for cpu in before:
        process.works(cpu)
        await trim.look()
    assert process.released == 1
    told = []
    for cpu in (0.3, 0.01, 0.3, 0.01, 0.01, 0.01, 0.01):
        process.works(cpu, seconds=7.0)
        told.append(await trim.look())
    assert told == [False] * 5 + [True, False], "once, when it has been calm for a while"
    assert process.freed >= 1


async def test_a_little_work_long_after_a_trim_gives_nothing_back() -> None:
    process = Process()
    trim = process.trim()
    for cpu in (3.0, 0.01, *[0.01] * 6, 0.5, 0.01, 0.01):
        process.works(cpu)
        await trim.look()
    assert (process.released, process.freed) == (1, 1)


async def test_objects_that_refer_to_each_other_are_freed() -> None:
    class Node:
        other: Node

    process = Process()
    trim = process.trim()
    node = Node()
    node.other = node
    gone = weakref.ref(node)
    gc.disable()  # nobody but us
    try:
        del node
        process.works(2.0)
        assert not await trim.look()
        assert gone() is not None
        process.works(0.0)
        assert await trim.look()
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="malloc is not glibc's here")
def test_free_pages_between_buffers_in_use_go_back_to_the_system() -> None:
    buffers = [bytes(2000) for _ in range(20_000)]
    kept = buffers[::50]
    del buffers
    before = processes.resident_bytes(os.getpid())
    release_free_pages()
    assert before - processes.resident_bytes(os.getpid()) > 20_000_000
    assert len(kept) == 400

"""Times of a call in the steady state, and what a copy of memory takes.

Inputs are rotated over more memory than caches hold, except for the tiny cases. A call makes fresh results, and lets
go of them before the next.
"""

import itertools
import math
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from cases import Case
from systems import System

ROTATED_BYTES = {"cpu": 128 << 20, "cuda": 256 << 20}
LEAST_SAMPLES, MOST_SAMPLES = 7, 400
LEAST_SAMPLE_SECONDS = 1e-3
BATCHES = 11  # on CUDA
LAUNCH_QUEUE = 50  # calls that fit into a device's queue, so that the host stays ahead


def copies_of_inputs(case: Case, device: str) -> int:
    """How many sets of inputs take turns."""
    if device == "cpu" and case.tiny:
        return 1
    least = 1 if device == "cpu" else 2
    return max(least, min(16, math.ceil(ROTATED_BYTES[device] / case.input_bytes)))


def quantile(values: list[float], fraction: float) -> float:
    return sorted(values)[min(len(values) - 1, int(fraction * len(values)))]


def scatters(samples: list[float]) -> bool:
    """Whether the quartiles are further apart than a quarter of the median."""
    return quantile(samples, 0.75) - quantile(samples, 0.25) > 0.25 * statistics.median(samples)


def steady(system: System, function: Callable[..., Any], sets: list[list[Any]], seconds: float) -> dict[str, Any]:
    """The times of a call, as fields of a result."""
    turns = itertools.cycle(sets)

    def call() -> Any:
        return function(*next(turns))

    for _ in range(max(3, min(len(sets), 4))):
        system.wait(call())
    start = time.perf_counter()
    system.wait(call())
    estimate = max(time.perf_counter() - start, 1e-7)
    if system.device == "cpu":
        return on_cpu(system, call, estimate, seconds)
    return on_cuda(system, call, estimate, len(sets))


def on_cpu(system: System, call: Callable[[], Any], estimate: float, seconds: float) -> dict[str, Any]:
    """Wall time, each result waited for. Short calls are sampled by the batch."""
    batch = 1 if estimate > LEAST_SAMPLE_SECONDS else int(LEAST_SAMPLE_SECONDS / estimate) + 1
    # A call of seconds is not repeated for a better median.
    enough = 3 if estimate > 1 else LEAST_SAMPLES
    samples: list[float] = []

    def sample_for(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while len(samples) < enough or (time.perf_counter() < end and len(samples) < MOST_SAMPLES):
            start = time.perf_counter()
            for _ in range(batch):
                system.wait(call())
            samples.append((time.perf_counter() - start) / batch * 1e3)

    sample_for(seconds)
    if scatters(samples):
        sample_for(seconds)
    return {
        "median_ms": statistics.median(samples),
        "min_ms": min(samples),
        "n": len(samples) * batch,
        "noisy": scatters(samples),
    }


def on_cuda(system: System, call: Callable[[], Any], estimate: float, sets: int) -> dict[str, Any]:
    """Wall time a call of batches that are waited for once and, where there are events, device time."""
    batch = max(sets, min(200, int(0.02 / estimate) + 1))

    def wall() -> float:
        start = time.perf_counter()
        for _ in range(batch - 1):
            call()
        system.wait(call())
        return (time.perf_counter() - start) / batch * 1e3

    system.wait(call())
    samples = [wall() for _ in range(BATCHES)]
    times: dict[str, Any] = {"wall_ms": statistics.median(samples), "timer": "wall"}
    if system.has_events:
        batch = max(sets, min(batch, LAUNCH_QUEUE))
        samples = [system.device_ms(call, batch) / batch for _ in range(BATCHES)]
        times["timer"] = "events"
    times |= {"median_ms": statistics.median(samples), "min_ms": min(samples), "n": BATCHES * batch}
    return times | {"noisy": scatters(samples)}


def copy_bandwidth(device: str, threads: int, system: System | None = None) -> float | None:
    """GB/s of a large copy, bytes read plus bytes written; None for a system that has no copy on the device."""
    return copy_on_cpu(threads) if device == "cpu" else copy_on_device(system)


def copy_on_cpu(threads: int) -> float:
    count = 1 << 26
    source, target = np.ones(count, np.float32), np.zeros(count, np.float32)
    # Many pieces a thread: one that has lost its core does not hold up the whole copy.
    pieces = 16 * threads
    bounds = [(i * count // pieces, (i + 1) * count // pieces) for i in range(pieces)]
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(9):
            start = time.perf_counter()
            list(pool.map(lambda piece: np.copyto(target[slice(*piece)], source[slice(*piece)]), bounds))
            seconds.append(time.perf_counter() - start)
    # The first starts the threads.
    return 2 * source.nbytes / statistics.median(seconds[1:]) / 1e9


def copy_on_device(system: System | None) -> float | None:
    count = 1 << 30
    copy = system.device_copy(count) if system else None
    if system is None or copy is None:
        return None
    for _ in range(3):
        copy()
    milliseconds = [system.device_ms(copy, 10) / 10 for _ in range(7)]
    return 2 * count / statistics.median(milliseconds) / 1e6

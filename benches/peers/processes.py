"""Runs programs that print a line of JSON a case: systems in processes of their own, and external programs.

A program that dies or hangs loses the case it was at, the first that it has not reported; it is started again for the
rest. Needs no package.
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any


@dataclass
class Outcome:
    """What a program has reported in one pass."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # by case
    facts: dict[str, Any] = field(default_factory=dict)  # version, start_s
    copies: list[float] = field(default_factory=list)  # GB/s
    missing: str | None = None  # why it could not start
    others: float | None = None  # processor cores that other processes kept busy meanwhile

    def take(self, line: dict[str, Any]) -> None:
        if "case" in line:
            result = {key: value for key, value in line.items() if key != "case"}
            self.results.setdefault(line["case"], result)
        elif "missing" in line:
            self.missing = line["missing"]
        elif "copy_gbps" in line:
            self.copies += [line["copy_gbps"]] if line["copy_gbps"] else []
        else:
            self.facts |= line


def all_seconds() -> float | None:
    """Processor time of the whole machine since it started, idle time aside."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pump(stream: IO[str], lines: "queue.Queue[str | None]") -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def run_once(command: list[str], environment: dict[str, str], patience: float, outcome: Outcome) -> str | None:
    """Runs a program to its end, and says what went wrong with it. `patience`: seconds without a line of JSON."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            # A session of its own, so that a compiler it has started does not outlive it.
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            outcome.missing = str(error)
            return str(error)
        assert process.stdout is not None
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=pump, args=(process.stdout, lines), daemon=True).start()
        problem = None
        try:
            while (line := lines.get(timeout=patience)) is not None:
                try:
                    parsed = json.loads(line)
                except ValueError:
                    continue
                if isinstance(parsed, dict):
                    outcome.take(parsed)
            code = process.wait()
            if code != 0:
                errors.seek(0)
                ending = " ".join(errors.read()[-400:].split())
                problem = f"ended by signal {-code}" if code < 0 else f"ended with status {code}"
                problem += f": {ending}" if ending else ""
        except queue.Empty:
            problem = f"no result for {patience:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return problem


def run(command: list[str], cases: list[str], environment: dict[str, str], patience: float) -> Outcome:
    """Runs a program over the cases, as often as it takes."""
    outcome = Outcome()
    start, busy, own = time.perf_counter(), all_seconds(), own_seconds()
    remaining = cases
    while remaining and outcome.missing is None:
        problem = run_once([*command, "--cases", ",".join(remaining)], environment, patience, outcome)
        unreported = [case for case in remaining if case not in outcome.results]
        if len(unreported) == len(remaining) < len(cases) and problem:
            # Twice nothing at all: it is not the case.
            outcome.results |= {case: {"status": "crash", "message": problem} for case in unreported}
            break
        if unreported and outcome.missing is None:
            outcome.results[unreported[0]] = {"status": "crash", "message": problem or "no line about this case"}
        remaining = unreported[1:]
    if busy is not None and (now := all_seconds()) is not None:
        used = own_seconds() - own
        outcome.others = max(0.0, (now - busy - used) / (time.perf_counter() - start))
    return outcome


def first_of(programs: list[str]) -> str | None:
    return next((program for program in programs if shutil.which(program)), None)


def environment(name: str, device: str, threads: int, malloc: str, scratch: Path) -> dict[str, str]:
    """The variables a program runs under, the same for all as far as they concern it."""
    variables = dict(os.environ)
    if device == "cpu":
        for library in ["OMP", "MKL", "OPENBLAS", "NUMEXPR", "NUMBA"]:
            variables[f"{library}_NUM_THREADS"] = str(threads)
        # The pools of JAX (NPROC) and of tinygrad ask elsewhere.
        variables |= {"NPROC": str(threads), "NUM_CPU_THREADS": str(threads)}
        variables |= {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
        if threads == 1:
            variables.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
        # tinygrad's bf16 on the CPU needs clang 16 or later.
        clang = first_of([f"clang-{number}" for number in range(22, 15, -1)] + ["clang"])
        if name == "tinygrad":
            variables["DEV"] = "CPU"
            if clang:
                variables.setdefault("CC", clang)
    else:
        variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] = ".5"
        if name == "tinygrad":
            variables.setdefault("DEV", "CUDA")
    if malloc == "keep":
        # glibc keeps freed pages instead of returning them to the kernel. One arena: what JAX allocates on its worker
        # threads would otherwise come from arenas that cannot hold a block of 64 MB.
        variables |= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0"}
        variables |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
    # No first call finds what an earlier run has compiled.
    caches = scratch / f"caches-{name}"
    for variable in ["TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "LAZULI_CACHE_DIR"]:
        variables[variable] = str(caches / variable.split("_")[0].lower())
    variables |= {"XDG_CACHE_HOME": str(caches), "CACHEDB": str(caches / "tinygrad.db")}
    caches.mkdir(parents=True, exist_ok=True)
    # A message that fits into a note.
    return variables | {"PYTHONUNBUFFERED": "1", "RUST_BACKTRACE": "0"}


def python_command(script: str, *arguments: object) -> list[str]:
    """A script beside this one under the same interpreter."""
    return [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]

#!/usr/bin/env python3
"""What `cc.py` measured: each set of flags beside the first one, compile time and run time, and the kernels that are slowest
beside it. A kernel is measured twice, and is slower or faster only if both times say so."""

import math
import os
import sys
from collections import defaultdict
from pathlib import Path

data = Path(os.environ.get("FLAGS_DATA", Path(__file__).parents[2] / "target/flags"))


def lines(file: str) -> list[tuple[str, dict[str, float]]]:
    rows = []
    for line in (data / file).read_text().splitlines():
        words = line.split()
        own = [word.split("=") for word in words if "=" in word]
        rows.append((" ".join(word for word in words if "=" not in word), {name: float(time) for name, time in own}))
    return rows


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


compiles: dict[str, dict[str, float]] = defaultdict(dict)
for text, times in lines("compiles"):
    compiles[text] |= times
runs: dict[str, list[dict[str, float]]] = defaultdict(list)
for kernel, times in lines("runs"):
    runs[kernel].append(times)
sets = list(next(iter(compiles.values())))
base = sets[0]
# What takes no time says nothing.
kernels = {kernel: times for kernel, times in runs.items() if len(times) > 1 and times[0][base] > 5}


def agreed(times: list[dict[str, float]], own: str) -> float:
    ratios = [time[own] / time[base] for time in times]
    return min(ratios) if min(ratios) > 1 else max(ratios) if max(ratios) < 1 else 1.0


print(f"{len(compiles)} texts, {len(kernels)} kernels; beside {base}")
for own in sets[1:]:
    compiling = [times[own] / times[base] for times in compiles.values() if own in times]
    running = {kernel: agreed(times, own) for kernel, times in kernels.items()}
    slow = sorted(running, key=lambda kernel: -running[kernel])[: int(sys.argv[1]) if len(sys.argv) > 1 else 5]
    above = sum(ratio > 1.05 for ratio in running.values())
    print(f"{own:12} compile {mean(compiling):.3f}   run {mean(list(running.values())):.3f}, {above} above 1.05")
    for kernel in slow:
        print(f"    {running[kernel]:.2f} {kernel}")

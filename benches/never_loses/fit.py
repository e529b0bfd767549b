#!/usr/bin/env python3
"""Fits what the cost model takes for constants (`TargetFigures::CPU` in src/fusion/cost.rs) to what `never_loses` measured.

    cargo bench --bench never_loses
    benches/never_loses/fit.py target/never_loses.json

Kernels are predicted as `Work::seconds` has it, from what the data say of each: bytes, and operations by loop. The fit makes
two things small, by trying each constant larger and smaller until nothing gains: how far kernels are off, as the mean of
|log(predicted / measured)|, and the share of pairs of plans, of one case, that differ by more than 20 % and are ranked the
other way round. It prints the constants before and after; whoever changes them reads the scoreboard's diff.
"""

import json
import math
import sys

LOOPS = ["lanes", "rows", "columns", "windows", "steps"]

START = {
    "launch": 5e-6,
    "bandwidth": 45e9,
    "near_bandwidth": 110e9,
    "operations": 120e9,
    "rows": 2.0,
    "columns": 2.2,
    "windows": 2.0,
    "steps": 8.0,
    "tiled": 50.0,
    "across": 300.0,
    "turns": 600.0,
    "overlap": 0.3,
}

# Shorter kernels tell of the clock.
SHORTEST = 30e-6


def seconds(kernel, constants):
    figures = kernel["figures"]
    far = figures["far"]
    near = figures["bytes_read"] + figures["bytes_written"] - far
    memory = near / constants["near_bandwidth"] + far / constants["bandwidth"]
    operations = sum(figures[loop] * constants.get(loop, 1.0) for loop in LOOPS)
    kind = kernel["schedule"].split("(")[0]
    across = "tiled" if kind in ("pointwise", "tiled") else "across"
    operations += figures["transposed"] * constants[across]
    operations += figures["turns"] * constants["turns"]
    compute = operations / constants["operations"]
    return constants["launch"] + compute + memory - constants["overlap"] * min(compute, memory)


def errors(cases, constants):
    """The mean error of a kernel, and the share of pairs in the wrong order."""
    total, count, pairs, wrong = 0.0, 0, 0, 0
    for case in cases:
        plans = []
        for plan in case["plans"]:
            estimate = 0.0
            for kernel in plan["kernels"]:
                own = seconds(kernel, constants)
                estimate += own
                if kernel["measured"] > SHORTEST:
                    total += min(abs(math.log(own / kernel["measured"])), 2.0)
                    count += 1
            plans.append((plan["measured"], estimate))
        for number, a in enumerate(plans):
            for b in plans[number + 1 :]:
                if max(a[0], b[0]) > 1.2 * min(a[0], b[0]):
                    pairs += 1
                    wrong += (a[0] < b[0]) != (a[1] < b[1])
    return total / max(count, 1), wrong / max(pairs, 1)


def loss(cases, constants):
    kernels, pairs = errors(cases, constants)
    return kernels + 3.0 * pairs


def fit(cases, constants):
    best, step = loss(cases, constants), 1.5
    while step > 1.04:
        improved = False
        for name in constants:
            for factor in (step, 1.0 / step):
                tried = dict(constants)
                tried[name] = constants[name] * factor
                if name == "overlap" and tried[name] > 0.95:
                    continue
                if name in LOOPS and tried[name] < 1.0:
                    continue
                own = loss(cases, tried)
                if own < best - 1e-4:
                    best, constants, improved = own, tried, True
        if not improved:
            step = math.sqrt(step)
    return constants


def main():
    cases = [case for path in sys.argv[1:] for case in json.load(open(path))]
    if not cases:
        sys.exit(__doc__)
    fitted = fit(cases, START)
    for title, constants in (("before", START), ("after", fitted)):
        kernels, pairs = errors(cases, constants)
        print(f"{title}: kernels are off by a factor of {math.exp(kernels):.2f}, {100 * pairs:.1f} % of pairs are ranked wrong")
    for name, value in fitted.items():
        print(f"  {name:<16} {START[name]:>12.4g} -> {value:.4g}")


if __name__ == "__main__":
    main()

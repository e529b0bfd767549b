#!/usr/bin/env python3
"""Fits what the cost model takes for constants (`TargetFigures::CPU` in src/fusion/cost.rs) to what `never_loses` measured.

    cargo bench --bench never_loses
    benches/never_loses/fit.py target/never_loses.json

Kernels are predicted as `Work::seconds` has it, from what the data say of each: bytes, and operations by loop and by what they
are to the hero there. The fit makes two things small, by trying each constant larger and smaller until nothing gains: how far
kernels are off, as the mean of |log(predicted / measured)|, and the share of pairs of plans, of one case, that differ by more
than 20 % and are ranked the other way round. It prints the constants before and after, and how far kernels of each kind are
off; whoever changes constants reads the scoreboard's diff. After a change of what the model counts, `never_loses --again FILE`
counts anew in the plans of an earlier run, so that they need not be measured again. It needs NumPy.
"""

import json
import math
import sys
from collections import defaultdict

import numpy

# As in src/fusion/cost.rs.
LAUNCH = 5e-6
OPERATIONS = 180e9
LOOPS = {
    "lanes": (None, 1.0, None),
    "rows": (1.35, 0.7, 1.0),
    "columns": (1.35, 1.55, 3.0),
    "products": (0.22, 0.8, 1.0),
    "across": (1.5, 1.6, 1.0),
    "registers": (1.2, 3.0, 1.0),
    "scatter": (4.0, 1.0, 1.0),
    "windows": (1.0, 0.5, 1.5),
    "steps": (2.0, 5.5, 1.0),
}
OTHERS = {"window_reads": 2.5, "tiled_reads": 10.0, "line_reads": 1000.0, "turns": 300.0}
SHAPE = {"bandwidth": 76e9, "near_bandwidth": 210e9, "overlap": 0.43, "alone": 5e-6}

# Shorter kernels tell of the clock.
SHORTEST = 3e-6
# What a kernel costs a plan, whatever it does, is not in its own time: between 2.4e-6, the least squares of many plans, and
# 6e-6 where there are few. Not fitted: it is also what a merge is worth that the rest of the model is undecided about.
UNSEEN = LAUNCH - 4e-7
# Constants stay where they are unless the data say otherwise, by this much for each factor of e.
INERTIA = 2e-4


def start():
    constants = dict(SHAPE)
    for loop, factors in LOOPS.items():
        names = (f"{loop} prologue", loop, f"{loop} epilogue")
        constants.update({name: factor for name, factor in zip(names, factors) if factor is not None})
    constants.update(OTHERS)
    return constants


class Data:
    """Kernels, each case's equal ones once, and plans as lists of them."""

    def __init__(self, cases, names):
        number, rows, times, members = {}, [], [], []
        self.kernels, self.plans, self.pairs = [], [], []
        for case in cases:
            first = len(self.plans)
            for plan in case["plans"]:
                own = []
                for kernel in plan["kernels"]:
                    key = (case["case"], kernel["name"], str(kernel["groups"]))
                    if key not in number:
                        number[key] = len(rows)
                        figures = kernel["figures"]
                        far = figures.get("far", 0.0)
                        near = figures.get("bytes_read", 0.0) + figures.get("bytes_written", 0.0) - far
                        rows.append([near, far] + [figures.get(name, 0.0) for name in names])
                        times.append([])
                        self.kernels.append((case["case"], kernel))
                    times[number[key]].append(kernel["measured"])
                    own.append(number[key])
                members.append(own)
                self.plans.append((case["case"], plan["plan"], plan["measured"]))
            ranked = sorted(range(first, len(self.plans)), key=lambda plan: self.plans[plan][2])
            for place, fast in enumerate(ranked):
                for slow in ranked[place + 1 :]:
                    if self.plans[slow][2] > 1.2 * self.plans[fast][2]:
                        self.pairs.append((fast, slow))
        rows = numpy.array(rows)
        self.near, self.far, self.counts = rows[:, 0], rows[:, 1], rows[:, 2:]
        self.measured = numpy.array([numpy.median(time) for time in times])
        self.flat = numpy.concatenate([numpy.array(own, dtype=int) for own in members])
        self.starts = numpy.cumsum([0] + [len(own) for own in members[:-1]])
        self.sizes = numpy.array([len(own) for own in members])
        self.fast, self.slow = numpy.array(self.pairs).T


def seconds(data, constants, names):
    """Of each kernel, but for the launch: the formula of `Work::seconds`."""
    memory = data.near / constants["near_bandwidth"] + data.far / constants["bandwidth"]
    compute = data.counts @ numpy.array([constants[name] for name in names]) / OPERATIONS
    together = compute + memory - constants["overlap"] * numpy.minimum(compute, memory)
    return LAUNCH - UNSEEN + together + numpy.minimum(together, constants["alone"])


def errors(data, constants, names):
    """Of each kernel log(predicted / measured), and of each pair how the model ranks it: below 0 as measured."""
    own = seconds(data, constants, names)
    plans = numpy.add.reduceat(own[data.flat], data.starts) + UNSEEN * data.sizes
    return numpy.log(own / data.measured), numpy.log(plans[data.fast] / plans[data.slow])


def loss(data, constants, begun, names):
    kernels, pairs = errors(data, constants, names)
    kernels = numpy.minimum(numpy.abs(kernels[data.measured > SHORTEST]), 2.0).mean()
    # A soft step, so that pairs that are nearly right draw too.
    pairs = (1.0 / (1.0 + numpy.exp(-pairs / 0.05))).mean()
    moved = sum(abs(math.log(constants[name] / begun[name])) for name in constants)
    return kernels + 3.0 * pairs + INERTIA * moved


def fit(data, begun, names):
    constants, step = dict(begun), 1.6
    best = loss(data, constants, begun, names)
    while step > 1.03:
        improved = False
        for name in constants:
            for factor in (step, 1.0 / step):
                tried = dict(constants)
                tried[name] = constants[name] * factor
                if name == "overlap" and tried[name] > 0.95:
                    continue
                own = loss(data, tried, begun, names)
                if own < best - 1e-5:
                    best, constants, improved = own, tried, True
        if not improved:
            step = math.sqrt(step)
    return constants


def kinds(data, kernels):
    """How far kernels of each kind of schedule and main loop are off."""
    found = defaultdict(list)
    for (case, kernel), error, measured in zip(data.kernels, kernels, data.measured):
        if measured > SHORTEST:
            loops = {name: count for name, count in kernel["figures"].items() if name.split()[0] in LOOPS}
            loop = max(loops, key=loops.get, default="none")
            found[kernel["schedule"].split("(")[0], loop].append((error, case, kernel["name"]))
    for kind, own in sorted(found.items(), key=lambda item: -len(item[1])):
        if len(own) >= 5:
            own.sort()
            at = lambda share: math.exp(own[int(share * (len(own) - 1))][0])
            print(f"  {' '.join(kind):<36} {len(own):>5} kernels: {at(0.1):.2f} {at(0.5):.2f} {at(0.9):.2f}"
                  f"   {own[0][2]} of {own[0][1]}, {own[-1][2]} of {own[-1][1]}")


def main():
    cases = [case for path in sys.argv[1:] for case in json.load(open(path))]
    if not cases:
        sys.exit(__doc__)
    begun = start()
    names = [name for name in begun if name not in SHAPE]
    data = Data(cases, names)
    fitted = fit(data, begun, names)
    for title, constants in (("before", begun), ("after", fitted)):
        kernels, pairs = errors(data, constants, names)
        off = numpy.minimum(numpy.abs(kernels[data.measured > SHORTEST]), 2.0).mean()
        print(f"{title}: kernels are off by a factor of {math.exp(off):.2f}, "
              f"{100 * (pairs >= 0).mean():.1f} % of {len(pairs)} pairs are ranked wrong")
    # Operations in lanes are the unit.
    unit = fitted["lanes"]
    print(f"  {'operations':<20} {OPERATIONS:>12.4g} -> {OPERATIONS / unit:.4g}")
    used = dict(zip(names, data.counts.astype(bool).sum(axis=0)))
    for name, value in fitted.items():
        value = value / unit if name in names else value
        print(f"  {name:<20} {begun[name]:>12.4g} -> {value:<10.4g} {used.get(name, len(data.measured)):>6} kernels")
    print("predicted / measured, of the lowest tenth, the middle and the highest tenth:")
    kinds(data, errors(data, fitted, names)[0])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares systems on the same inputs, in turns, and checks their results against float64.

Runs under an interpreter that has NumPy and those systems that are to be compared; `run` provides one.
"""

import argparse
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path

import cases
import data
import external
import machine
import options
import picture
import processes
import record
import report
from measure import copy_bandwidth
from processes import Outcome
from systems import SYSTEMS


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen_systems(patterns: str, device: str) -> list[str]:
    wanted = patterns.split(",")
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in SYSTEMS):
            raise SystemExit(f"no system is called {pattern}; there are {', '.join(SYSTEMS)}")
    return [
        name
        for name, entry in SYSTEMS.items()
        if device in entry.devices and any(fnmatchcase(name, pattern) for pattern in wanted)
    ]


def tell(name: str, outcome: Outcome, seconds: float) -> None:
    """A line about a pass, and one for each thing that went wrong."""
    statuses = [result.get("status", "ok") for result in outcome.results.values()]
    counts = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))
    say(f"{name:<14} {seconds:5.0f} s  {outcome.missing or counts}")
    for case, result in outcome.results.items():
        if result.get("status") not in ("ok", "unsupported"):
            say(f"    {case}: {result['status']}. {result.get('message', '')[:200]}")


def turn(name: str, chosen: list[cases.Case], settings: argparse.Namespace, scratch: Path) -> Outcome:
    """One system on some cases."""
    arguments = ["--device", settings.device, "--threads", str(settings.threads)]
    programs = dict(text.split("=", 1) for text in settings.ext)
    variables = processes.environment(name, settings.device, settings.threads, settings.malloc, scratch)
    if name in programs:
        out, patience = scratch / f"out-{name}", settings.case_timeout
        return external.run(programs[name], chosen, arguments, settings.data, out, variables, patience)
    command = processes.python_command(
        "worker.py", "--system", name, "--seconds", settings.seconds, "--data", settings.data, *arguments
    )
    return processes.run(command, [case.name for case in chosen], variables, settings.case_timeout)


def measured(chosen: list[cases.Case], settings: argparse.Namespace) -> dict[str, list[Outcome]]:
    """What every system has found in its turns."""
    programs = [text.split("=", 1)[0] for text in settings.ext]
    names = [*chosen_systems(settings.peers, settings.device), *programs]
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        for group in cases.in_turns(chosen) * settings.passes:
            say(", ".join(case.name for case in group))
            for name in names:
                if outcomes[name] and outcomes[name][0].missing:
                    continue
                start = time.perf_counter()
                outcome = turn(name, group, settings, Path(scratch))
                outcomes[name].append(outcome)
                tell(name, outcome, time.perf_counter() - start)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, parents=[options.parser()], allow_abbrev=False)
    settings = options.settled(parser.parse_args())
    for program in settings.ext:
        if "=" not in program:
            parser.error(f"--ext {program}: NAME=COMMAND is expected")
    if settings.list:
        cases.show()
        return
    name = settings.machine or machine.name(settings.device)
    complete = settings.cases == "*"
    results = options.ROOT / "benches" / "results" / name if complete else options.WORK / "results" / name
    folder = settings.results or results
    runs = record.load(folder)
    if not settings.report:
        chosen = cases.chosen(settings.cases)
        conditions = record.conditions(settings)
        start = time.perf_counter()
        manifest = data.prepare(chosen, settings.data)
        say(f"{len(chosen)} cases; data in {settings.data} ({time.perf_counter() - start:.0f} s)")
        outcomes = measured(chosen, settings)
        bandwidth = copy_bandwidth("cpu", settings.threads) if settings.device == "cpu" else None
        run = record.made(
            conditions,
            settings.ext[0].split("=", 1)[0] if settings.ext else None,
            {case.name: manifest[case.name] for case in chosen},
            outcomes,
            [bandwidth] if bandwidth else [],
        )
        print("\n".join(report.Tables(run).text()))
        runs = [old for old in runs if not record.is_repeated(run, old)] + [run]
        record.save(runs, folder)
    pictures = [folder / f"{record.name(run)}.svg" for run in runs]
    drawn = [path.name if picture.draw(run, path) else None for run, path in zip(runs, pictures)]
    (folder / "peers.md").write_text(report.page(name, runs, drawn), encoding="utf-8")
    say(f"written to {folder}")


if __name__ == "__main__":
    main()

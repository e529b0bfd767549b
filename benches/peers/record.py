"""The record of a run: what was measured on what, kept as JSON beside its tables."""

import json
import math
import os
import platform
import subprocess
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import machine
from options import ROOT
from processes import Outcome


def combined(passes: list[dict[str, Any]]) -> dict[str, Any]:
    """One case of one system: the pass with the lower median, the first call of the first pass (later ones may find
    what it has compiled), and whatever went wrong in any."""
    timed = [result for result in passes if "median_ms" in result]
    best = dict(min(timed, key=lambda result: result["median_ms"])) if timed else {}
    for key in ["first_ms", "second_ms"]:
        if key in passes[0]:
            best[key] = passes[0][key]
    if len(timed) > 1:
        best["pass_medians_ms"] = [result["median_ms"] for result in timed]
    wrong = next((result for result in passes if result["status"] != "ok"), None)
    best["status"] = wrong["status"] if wrong else "ok"
    if wrong:
        best["message"] = wrong.get("message", "")
    return best


def rounded(value: Any) -> Any:
    """Numbers with five digits, so that the file is small."""
    if isinstance(value, float):
        return float(f"{value:.5g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def commit() -> str:
    """Of this repository, with a mark where files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def conditions(options: Namespace) -> dict[str, Any]:
    """What a run is made under, noted when it starts."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "device": options.device,
        "threads": options.threads,
        "malloc": options.malloc,
        "seconds": options.seconds,
        "passes": options.passes,
        "processor": machine.processor(),
        "processors": os.cpu_count(),
        "gpu": machine.gpu() if options.device == "cuda" else None,
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "commit": commit(),
    }


def made(
    conditions: dict[str, Any],
    subject: str | None,
    cases: dict[str, dict[str, Any]],
    outcomes: dict[str, list[Outcome]],
    copies: list[float],
) -> dict[str, Any]:
    """`outcomes`: a system's passes. `copies`: GB/s measured by nobody's process."""
    systems, results = {}, []
    for name, passes in outcomes.items():
        others = [outcome.others for outcome in passes if outcome.others is not None]
        systems[name] = passes[0].facts | {
            "copies": [gbps for outcome in passes for gbps in outcome.copies],
            "others": max(others, default=None),
            "missing": passes[0].missing,
        }
        for case in cases:
            found = [outcome.results[case] for outcome in passes if case in outcome.results]
            if found:
                results.append({"case": case, "system": name} | combined(found))
    readings = copies + [gbps for system in systems.values() for gbps in system["copies"]]
    run = {
        "conditions": conditions,
        "subject": subject,
        # Whatever interferes makes a reading lower: the best one is the ceiling.
        "copy_gbps": max(readings, default=None),
        "copy_low_gbps": min(readings, default=None),
        "systems": systems,
        "cases": {
            name: {key: entry[key] for key in ["formula", "dtype", "bytes", "tiny", "flops"]} for name, entry in cases.items()
        },
        "results": results,
    }
    return rounded(run)


def is_repeated(run: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the runs differ by what was found only: the later one replaces the other."""
    keys = ["device", "threads", "malloc"]
    return all(run["conditions"][key] == other["conditions"][key] for key in keys)


def name(run: dict[str, Any]) -> str:
    """What tells a run from the others of its machine, as a file's name."""
    conditions = run["conditions"]
    if conditions["device"] == "cuda":
        return "peers-cuda"
    return f"peers-cpu-{conditions['threads']}-{conditions['malloc']}"


def load(folder: Path) -> list[dict[str, Any]]:
    path = folder / "peers.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def save(runs: list[dict[str, Any]], folder: Path) -> None:
    """A result a line, so that a change of one is a change of a line."""
    texts = []
    for run in runs:
        head = json.dumps({key: value for key, value in run.items() if key != "results"})
        results = ",\n".join(json.dumps(result, separators=(",", ":")) for result in run["results"])
        texts.append(f'{head[:-1]}, "results": [\n{results}\n]}}')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.json").write_text("[\n" + ",\n".join(texts) + "\n]\n", encoding="utf-8")

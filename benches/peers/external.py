"""External programs, ours among them: the harness's side of the protocol that README.md describes."""

import shlex
from pathlib import Path

import data
import processes
from cases import Case


def run(
    command: str,
    cases: list[Case],
    arguments: list[str],
    folder: Path,
    out: Path,
    environment: dict[str, str],
    patience: float,
) -> processes.Outcome:
    """Runs the program over the cases, and checks the results that it leaves.

    Programs of others may keep their lines back until the end, so that patience is for all cases together.
    """
    words = [*shlex.split(command), "--data", str(folder), "--out", str(out), *arguments]
    names = [case.name for case in cases]
    outcome = processes.run(words, names, environment, patience * len(cases))
    outcome.facts.setdefault("version", "")
    for case in cases:
        result = outcome.results.get(case.name)
        if result and "status" not in result:
            result |= data.deviation(data.outputs(out / case.name), case, folder).fields()
    return outcome

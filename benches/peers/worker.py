"""One system in a process of its own: prints a line of JSON about itself, and one for each case.

Its lines are those of external programs (see README.md), with the check of the results included: these are in memory
here, and need not go to disk.
"""

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import data
from cases import CASES, Case
from measure import copies_of_inputs, copy_bandwidth, steady
from systems import SYSTEMS, System
from systems.base import Unsupported


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip()[:300]


def measured(system: System, case: Case, folder: Path, seconds: float) -> dict[str, Any]:
    """Compiles, runs, checks and times a case."""
    arrays = data.inputs(case, folder)
    sets = [[system.native(array) for array in arrays] for _ in range(copies_of_inputs(case, system.device))]
    system.wait(sets)

    start = time.perf_counter()
    function = system.compiled(case)
    results = function(*sets[0])
    system.wait(results)
    fields: dict[str, Any] = {"first_ms": (time.perf_counter() - start) * 1e3}

    # TinyJit and CUDA graphs record at the second call.
    start = time.perf_counter()
    results = function(*sets[-1])
    system.wait(results)
    fields["second_ms"] = (time.perf_counter() - start) * 1e3

    # Checked is what is timed: the path that replays, with other inputs than it was recorded with.
    function(*sets[0])
    results = function(*sets[-1])
    system.wait(results)
    results = results if isinstance(results, (tuple, list)) else (results,)
    fields |= data.deviation([system.as_numpy(result) for result in results], case, folder).fields()
    del results
    return fields | steady(system, function, sets, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cases", required=True)
    options = parser.parse_args()

    # What packages print goes to the standard error: the standard output is for lines of JSON.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def report(**fields: Any) -> None:
        lines.write(json.dumps(fields) + "\n")

    start = time.perf_counter()
    try:
        system = SYSTEMS[options.system].make(options.device, options.threads)
    except Exception as error:
        traceback.print_exc()
        report(missing=described(error))
        return
    report(version=system.version, start_s=time.perf_counter() - start)
    report(copy_gbps=copy_bandwidth(options.device, options.threads, system))
    for name in options.cases.split(","):
        try:
            fields = measured(system, CASES[name], options.data, options.seconds)
        except Unsupported as reason:
            fields = {"status": "unsupported", "message": str(reason)}
        except Exception as error:
            traceback.print_exc()
            fields = {"status": "error", "message": described(error)}
        report(case=name, **fields)
        system.release()
    report(copy_gbps=copy_bandwidth(options.device, options.threads, system))
    sys.stderr.flush()


if __name__ == "__main__":
    main()

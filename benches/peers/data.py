"""Inputs on disk, what float64 makes of them, and how far a result is from that.

A folder holds `manifest.json` and, for each case, `in0.npy` … and the references `ref0.npy` …; NumPy has no bfloat16,
so that its bits are stored as int16. What is there is used again: the numbers depend on the case alone.
"""

import json
import math
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cases import SIZES, Case
from systems.numpy import NumpyOperations

Array = np.ndarray[Any, np.dtype[Any]]


def bfloat16_bits(values: Array) -> Array:
    """float32 rounded to nearest, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).view(np.int16)


def from_bfloat16_bits(bits: Array) -> Array:
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def drawn(case: Case) -> list[Array]:
    """The case's inputs as they are stored."""
    generator = np.random.default_rng(zlib.crc32(case.name.encode()))
    arrays = []
    for given in case.inputs:
        draw = generator.standard_normal if given.distribution != "uniform" else generator.random
        values = draw(given.shape, dtype=np.float32)
        if given.distribution == "weights":
            values /= np.float32(math.sqrt(given.shape[0]))
        if case.dtype == "bf16":
            values = bfloat16_bits(values)
        elif case.dtype == "f16":
            values = values.astype(np.float16)
        arrays.append(values)
    return arrays


def in_float64(array: Array) -> Array:
    """The numbers behind what is stored: inputs are rounded before the reference is computed of them."""
    return (from_bfloat16_bits(array) if array.dtype == np.int16 else array).astype(np.float64)


def description(case: Case) -> dict[str, Any]:
    """What the manifest says of a case before its references are known."""
    return {
        "formula": case.formula,
        "dtype": case.dtype,
        "stored": "int16" if case.dtype == "bf16" else case.dtype,
        "tol": case.tolerance,
        "tiny": case.tiny,
        "flops": case.flops,
        "inputs": [{"shape": list(given.shape), "dtype": case.dtype} for given in case.inputs],
    }


def write(case: Case, folder: Path) -> dict[str, Any]:
    """Writes a case's inputs and references, and returns its entry in the manifest."""
    own = folder / case.name
    own.mkdir(parents=True, exist_ok=True)
    inputs = drawn(case)
    with np.errstate(all="ignore"):
        results = case.function(NumpyOperations(), *map(in_float64, inputs))
    results = [np.asarray(result) for result in (results if isinstance(results, tuple) else (results,))]
    for i, array in enumerate(inputs):
        np.save(own / f"in{i}.npy", array)
    for i, array in enumerate(results):
        np.save(own / f"ref{i}.npy", array)
    least_bytes = case.input_bytes + sum(result.size for result in results) * SIZES[case.dtype]
    outputs = [{"shape": list(result.shape), "dtype": case.dtype} for result in results]
    return description(case) | {"bytes": least_bytes, "outputs": outputs}


def prepare(cases: list[Case], folder: Path) -> dict[str, Any]:
    """Makes sure of the data of these cases, and returns the manifest."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) if path.exists() else {}

    def is_there(case: Case) -> bool:
        entry = manifest.get(case.name, {})
        return all(entry.get(key) == value for key, value in description(case).items())

    missing = [case for case in cases if not is_there(case)]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
            for case, entry in zip(missing, pool.map(lambda case: write(case, folder), missing)):
                manifest[case.name] = entry
        # Complete or not at all: an interrupted run leaves no manifest that promises files.
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(manifest, indent=1))
        fresh.replace(path)
    return manifest


def inputs(case: Case, folder: Path) -> list[Array]:
    return [np.load(folder / case.name / f"in{i}.npy") for i in range(len(case.inputs))]


def outputs(folder: Path) -> list[Array]:
    """What an external program has left for a case, as numbers."""
    arrays: list[Array] = []
    while (path := folder / f"out{len(arrays)}.npy").exists():
        array = np.load(path)
        arrays.append(from_bfloat16_bits(array) if array.dtype == np.int16 else array)
    return arrays


@dataclass
class Deviation:
    """How far results are from the references: the worst of them."""

    relative_norm: float = 0.0  # norm of the difference / norm of the reference
    relative_maximum: float = 0.0  # greatest difference / greatest magnitude
    complaint: str | None = None

    def fields(self) -> dict[str, Any]:
        """As part of a result."""
        found = {"rel_l2": self.relative_norm, "max_rel": self.relative_maximum, "status": "ok"}
        return found if self.complaint is None else found | {"status": "mismatch", "message": self.complaint}


def deviation(results: list[Array], case: Case, folder: Path) -> Deviation:
    paths = sorted((folder / case.name).glob("ref*.npy"))
    if len(results) != len(paths):
        return Deviation(complaint=f"{len(results)} results instead of {len(paths)}")
    worst = Deviation()
    for i, (result, path) in enumerate(zip(results, paths)):
        reference = np.load(path)
        result = np.asarray(result)
        if result.shape != reference.shape:
            return Deviation(complaint=f"result {i} has shape {result.shape} instead of {reference.shape}")
        difference = result.astype(np.float64).ravel() - reference.ravel()
        norm, greatest = np.linalg.norm(reference) or 1.0, np.abs(reference).max() or 1.0
        worst.relative_norm = max(worst.relative_norm, float(np.linalg.norm(difference) / norm))
        worst.relative_maximum = max(worst.relative_maximum, float(np.abs(difference).max() / greatest))
        if not np.isfinite(difference).all():
            worst.complaint = f"result {i} has values that are not finite"
            return worst
    if worst.relative_norm > case.tolerance:
        worst.complaint = f"off by {worst.relative_norm:.1e} (norm of the difference), more than {case.tolerance:.0e}"
    return worst

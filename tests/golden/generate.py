#!/usr/bin/env python3
"""Computes what PyTorch and NumPy give for every row of the table of operations.

    GOLDEN_CASES=cases.txt cargo test --test golden cases_are_written
    python3 tests/golden/generate.py cases.txt tests/golden/results.txt.gz [--keep]

With --keep, results that the file has, by the same versions, stay: PyTorch's last bits depend on the processor.

Needs torch (for the CPU) and numpy, which the environment of benches/peers/run has. The cases are lines of fields
between tabs:

    input  KEY  DTYPE  SHAPE  HEX                 elements as they lie in memory, little-endian
    case   KEY  DTYPE  NAME=INPUT,…  EXPRESSION   in PyTorch, or beginning with "np." in NumPy

A case's key ends with a checksum of its expression and inputs: what has changed since has no results, which the test
says. The results name their case; one without results was refused by PyTorch, and says how:

    versions  torch …  numpy …
    result    KEY  DTYPE SHAPE HEX  …             one field of three words for each result
    refused   KEY  MESSAGE

There is no seed: all inputs are in the file, and no expression draws random numbers.
"""

import gzip
import io
import os
import sys
import warnings

import numpy as np

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # to check the syntax and the NumPy part without it
    torch = F = None

NAMES = ["bool", "u8", "i8", "i16", "i32", "u32", "i64", "f16", "bf16", "f32", "f64"]
TORCH = dict(zip(NAMES, ["bool", "uint8", "int8", "int16", "int32", "uint32", "int64", "float16", "bfloat16",
                         "float32", "float64"]))


def dtype_of(name):
    return getattr(torch, TORCH[name])


def name_of(dtype):
    for name in NAMES:
        if dtype_of(name) == dtype:
            return name
    raise TypeError(f"no dtype of ours: {dtype}")


def decoded(dtype, shape, bits):
    """The tensor with these bytes."""
    extents = [int(extent) for extent in shape.split("x")] if shape != "-" else []
    data = bytearray.fromhex(bits if bits != "-" else "")
    if not data:
        return torch.empty(extents, dtype=dtype_of(dtype))
    return torch.frombuffer(data, dtype=dtype_of(dtype)).reshape(extents).clone()


def encoded(result):
    """The tensor as dtype, shape and bytes."""
    if not isinstance(result, torch.Tensor):
        result = torch.as_tensor(result)
    shape = "x".join(str(extent) for extent in result.shape) or "-"
    flat = result.detach().reshape(-1).contiguous()
    bits = flat.view(torch.uint8).numpy().tobytes().hex() if flat.numel() else ""
    return f"{name_of(result.dtype)} {shape} {bits or '-'}"


def as_float(tensor):
    return tensor if tensor.is_floating_point() else tensor.to(torch.float32)


def evaluated(expression, inputs, dtype):
    """The results of an expression, as a list of tensors."""
    if expression.startswith("np."):
        # NumPy has no bfloat16: it computes in float32, and the result is rounded.
        floats = {name: as_float(tensor) for name, tensor in inputs.items()}
        target = next(iter(floats.values())).dtype
        arrays = {
            name: (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
            for name, tensor in floats.items()
        }
        with np.errstate(all="ignore"):
            return [torch.as_tensor(np.asarray(eval(expression, {"np": np}, arrays))).to(target)]
    # Each case has its own copy: an expression may be one that works in place.
    scope = {name: tensor.clone() for name, tensor in inputs.items()}
    scope["dtype"] = dtype_of(dtype)
    result = eval(expression, {"torch": torch, "F": F, "np": np, "as_float": as_float}, scope)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def kept(path, versions):
    """The lines of a file of results by their keys, if the same versions have written it."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        first, *lines = file.read().splitlines()
    if first != versions:
        sys.exit(f"generate.py: not --keep, but anew: {path} is of {first!r}, and this is {versions!r}")
    return {line.split("\t")[1]: line for line in lines}


def main(cases_path, results_path, keep):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    inputs, lines, refused = {}, [], 0
    lines.append(f"versions\ttorch {torch.__version__}\tnumpy {np.__version__}\tno seed")
    known = kept(results_path, lines[0]) if keep else {}
    with open(cases_path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "input":
                _, key, dtype, shape, bits = fields
                inputs[key] = decoded(dtype, shape, bits)
                continue
            _, key, dtype, names, expression = fields
            if key in known:
                lines.append(known[key])
                refused += known[key].startswith("refused")
                continue
            if os.environ.get("GOLDEN_TRACE"):  # which case stops the process
                print(key, file=sys.stderr, flush=True)
            pairs = [pair.split("=") for pair in names.split(",") if pair != "-"]
            try:
                own = {name: inputs[source] for name, source in pairs}
                results = evaluated(expression, own, dtype)
                lines.append("\t".join(["result", key] + [encoded(result) for result in results]))
            except Exception as error:  # whatever an operation refuses with is what is recorded
                message = (str(error).splitlines() or [type(error).__name__])[0]
                lines.append(f"refused\t{key}\t{message[:60]}".replace("\r", " "))
                refused += 1
    text = "\n".join(lines) + "\n"
    buffer = io.BytesIO()
    # Without a time, so that the same results are the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as packed:
        packed.write(text.encode())
    with open(results_path, "wb") as file:
        file.write(buffer.getvalue())
    print(f"{len(lines) - 1} cases, {refused} of them refused, {len(buffer.getvalue())} bytes")


if __name__ == "__main__":
    keep = sys.argv[3:] == ["--keep"]
    if len(sys.argv) != 3 + keep:
        sys.exit(__doc__)
    if torch is None:
        sys.exit("generate.py: needs torch")
    main(*sys.argv[1:3], keep)

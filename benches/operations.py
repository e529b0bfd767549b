#!/usr/bin/env python3
"""The operations of benches/operations.rs in PyTorch, eager, by the same names: how long each takes, beside what that has printed.

    cargo bench --bench operations -- [part of a name] > lazuli.txt
    target/peers/venv/bin/python benches/operations.py lazuli.txt [part of a name]

A line each: the name, PyTorch's time over Lazuli's, and both in milliseconds, the least of many calls; the slowest first.
"""

import math
import sys
import time

import torch
import torch.nn.functional as F

N = 1024
DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "u8": torch.uint8,
}


class Data:
    """Tensors of one dtype: normally distributed numbers, or integers from 0 to 99."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.is_float = dtype.is_floating_point
        generator = torch.Generator().manual_seed(0)

        def make(*shape):
            if self.is_float:
                return torch.randn(*shape, generator=generator).to(dtype)
            return torch.randint(0, 100, shape, generator=generator).to(dtype)

        self.a, self.b, self.row, self.column = make(N, N), make(N, N), make(N), make(N, 1)
        self.flat, self.images, self.heads = make(N * N), make(8, 16, 64, 128), make(64, 3, 128, 32)
        self.places = torch.randint(0, N, (N,), generator=generator)
        self.each = torch.randint(0, N, (N, N), generator=generator)
        self.mask = torch.rand(N, N, generator=generator) > 0.5
        if dtype in (torch.float32, torch.float64):
            x = make(32, 64, 64)
            self.definite = x @ x.transpose(1, 2) + torch.eye(64, dtype=dtype)
            self.triangle, self.sides = torch.linalg.cholesky(self.definite), make(32, 64, 4)


def of_all(d):
    a, b, row, column, flat, images, heads = d.a, d.b, d.row, d.column, d.flat, d.images, d.heads
    places, each, mask = d.places, d.each, d.mask

    def assigned():
        x = a.clone()
        x[:512, :512] = b[:512, :512]
        return x

    return {
        "add": lambda: a + b,
        "add_row": lambda: a + row,
        "add_column": lambda: a + column,
        "mul_add": lambda: a * b + row,
        "add_transposed": lambda: a + b.t(),
        "where": lambda: torch.where(mask, a, b),
        "masked_fill": lambda: a.masked_fill(mask, 0),
        "lt": lambda: a < b,
        "clamp": lambda: a.clamp(1, 50),
        "abs": lambda: a.abs(),
        "sum_all": lambda: a.sum(),
        "sum_0": lambda: a.sum(0),
        "sum_1": lambda: a.sum(1),
        "max_all": lambda: a.max(),
        "max_0": lambda: a.amax(0),
        "max_1": lambda: a.amax(1),
        "argmax_0": lambda: a.argmax(0),
        "argmax_1": lambda: a.argmax(1),
        "prod_1": lambda: a.prod(1),
        "any_1": lambda: mask.any(1),
        "cumsum_0": lambda: a.cumsum(0),
        "cumsum_1": lambda: a.cumsum(1),
        "cumsum_flat": lambda: flat.cumsum(0),
        "cummax_1": lambda: a.cummax(1),
        "cumprod_1": lambda: a.cumprod(1),
        "transpose": lambda: a.t().contiguous(),
        "channels_last": lambda: images.permute(0, 2, 3, 1).contiguous(),
        "permute_0213": lambda: images.permute(0, 2, 1, 3).contiguous(),
        "flip_1": lambda: a.flip(1),
        "flip_0": lambda: a.flip(0),
        "roll_1": lambda: a.roll(3, 1),
        "cat_0": lambda: torch.cat([a, b]),
        "cat_1": lambda: torch.cat([a, b], 1),
        "stack_2": lambda: torch.stack([a, b], 2),
        "pad": lambda: F.pad(a, (1, 1, 1, 1)),
        "pad_reflect": lambda: F.pad(images, (2, 2, 2, 2), mode="reflect"),
        "repeat": lambda: row.repeat(N, 2),
        "repeat_interleave": lambda: a.repeat_interleave(2, 1),
        "tril": lambda: a.tril(),
        "slice_step": lambda: a[:, ::2].contiguous(),
        "slice_assign": assigned,
        "diff_1": lambda: a.diff(dim=1),
        "unfold_max": lambda: a.unfold(1, 8, 4).amax(2),
        "index_select_0": lambda: a.index_select(0, places),
        "index_select_1": lambda: a.index_select(1, places),
        "gather_0": lambda: a.gather(0, each),
        "gather_1": lambda: a.gather(1, each),
        "take": lambda: flat.take(each),
        "index_add_0": lambda: a.index_add(0, places, b),
        "scatter_add_1": lambda: a.scatter_add(1, each, b),
        "scatter_add_0": lambda: a.scatter_add(0, each, b),
        "scatter_1": lambda: a.scatter(1, each, b),
        "index_copy_0": lambda: a.index_copy(0, places, b),
        "masked_select": lambda: a.masked_select(mask),
        "nonzero": lambda: mask.nonzero(),
        "sort_1": lambda: a.sort(1),
        "sort_0": lambda: a.sort(0),
        "argsort_1": lambda: a.argsort(1, descending=True),
        "sort_flat": lambda: flat.sort(),
        "topk_1": lambda: a.topk(10, 1),
        "topk_0": lambda: a.topk(10, 0),
        "topk_flat": lambda: flat.topk(10),
        "median_1": lambda: a.median(1),
        "kthvalue_1": lambda: a.kthvalue(100, 1),
        "unique": lambda: flat.unique(),
        "searchsorted": lambda: torch.searchsorted(row.sort()[0], flat),
        "isin": lambda: torch.isin(a, row),
        "max_pool2d": lambda: F.max_pool2d(images, 2, 2),
        "triu_sum": lambda: a.triu(1).sum(1),
        "matmul": lambda: a @ b,
        "matmul_transposed": lambda: a @ b.t(),
        "mv": lambda: a @ row,
        "outer_sum": lambda: row[:, None] + row,
        "matmul_heads": lambda: heads @ heads.transpose(2, 3),
    }


def of_integers(d):
    a, b = d.a, d.b
    return {
        "bitwise_and": lambda: a & b,
        "remainder": lambda: a % 7,
        "remainder_each": lambda: a % b.clamp_min(1),
        "floor_divide": lambda: a // 7,
        "cast_f32": lambda: a.float(),
        "cast_scaled": lambda: a.float() / 255 - 0.5,
        "one_hot": lambda: F.one_hot(d.places, N),
        "bincount": lambda: d.flat.bincount(minlength=100),
        "shift": lambda: a << 2,
        "square": lambda: a**2,
    }


def of_floats(d):
    a, b, row, images = d.a, d.b, d.row, d.images
    points, others = a[:, :16], b[:, :16]
    return {
        "div": lambda: a / b,
        "exp": lambda: a.exp(),
        "log": lambda: a.abs().log(),
        "sin": lambda: a.sin(),
        "tanh": lambda: a.tanh(),
        "sigmoid": lambda: a.sigmoid(),
        "gelu": lambda: F.gelu(a),
        "erf": lambda: a.erf(),
        "erfinv": lambda: (a.clamp(-3, 3) * 0.3).erfinv(),
        "lgamma": lambda: a.abs().lgamma(),
        "pow": lambda: a.abs().pow(b),
        "pow_3": lambda: a.pow(3),
        "atan2": lambda: a.atan2(b),
        "sqrt": lambda: a.abs().sqrt(),
        "rsqrt": lambda: a.abs().rsqrt(),
        "floor": lambda: a.floor(),
        "fmod": lambda: a.fmod(b),
        "remainder": lambda: a.remainder(b),
        "log1p": lambda: a.abs().log1p(),
        "hypot": lambda: a.hypot(b),
        "lerp": lambda: a.lerp(b, 0.3),
        "softmax_1": lambda: a.softmax(1),
        "softmax_0": lambda: a.softmax(0),
        "log_softmax_1": lambda: a.log_softmax(1),
        "logsumexp_1": lambda: a.logsumexp(1),
        "mean_1": lambda: a.mean(1),
        "var_0": lambda: a.var(0),
        "var_1": lambda: a.var(1),
        "std_all": lambda: a.std(),
        "norm_1": lambda: a.norm(dim=1),
        "layer_norm": lambda: F.layer_norm(a, (N,), row, row),
        "rms_norm": lambda: F.rms_norm(a, (N,), row),
        "logcumsumexp_1": lambda: a.logcumsumexp(1),
        "mse_loss": lambda: F.mse_loss(a, b),
        "cross_entropy": lambda: F.cross_entropy(a, d.places),
        "quantile_1": lambda: a.quantile(0.3, 1),
        "histc": lambda: d.flat.histc(100, -3, 3),
        "avg_pool2d": lambda: F.avg_pool2d(images, 3, 1),
        "interpolate_linear": lambda: F.interpolate(images, (128, 256), mode="bilinear"),
        "interpolate_nearest": lambda: F.interpolate(images, (128, 256)),
        "cosine_similarity": lambda: F.cosine_similarity(a, b, 1),
        "cdist_2": lambda: torch.cdist(points, others),
        "cdist_1": lambda: torch.cdist(points, others, p=1),
        "corrcoef": lambda: a.corrcoef(),
        "dropout": lambda: F.dropout(a, 0.5),
        "nan_to_num": lambda: a.nan_to_num(0.0),
        "isnan_any": lambda: a.isnan().any(),
        "cast_i64": lambda: a.long(),
        "cast_u8": lambda: (a.clamp(0, 1) * 200).to(torch.uint8),
    }


def of_wide_floats(d):
    a, definite = d.a, d.definite
    return {
        "rfft": lambda: torch.fft.rfft(a, dim=1),
        "rfft2": lambda: torch.fft.rfft2(a),
        "cholesky": lambda: torch.linalg.cholesky(definite),
        "solve": lambda: torch.linalg.solve(definite, d.sides),
        "inv": lambda: torch.linalg.inv(definite),
        "det": lambda: torch.linalg.det(definite),
        "qr": lambda: torch.linalg.qr(definite),
        "solve_triangular": lambda: torch.linalg.solve_triangular(d.triangle, d.sides, upper=False),
        "eigh": lambda: torch.linalg.eigh(definite[:4]),
        "svd": lambda: torch.linalg.svd(definite[:4]),
    }


def operations(d):
    yield from of_all(d).items()
    yield from (of_floats(d) if d.is_float else of_integers(d)).items()
    if d.dtype in (torch.float32, torch.float64):
        yield from of_wide_floats(d).items()


def least(f):
    """Milliseconds of a call."""
    f()
    best, begin, calls = math.inf, time.perf_counter(), 0
    while calls < 5 or (calls < 300 and time.perf_counter() - begin < 0.15):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best * 1e3


def main():
    with open(sys.argv[1]) as file:
        lines = [line.split() for line in file if "/" in line]
    own = {name: float(milliseconds) for name, milliseconds, *_ in lines}
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    found = []
    for dtype_name, dtype in DTYPES.items():
        for name, f in operations(Data(dtype)):
            name = f"{name}/{dtype_name}"
            if part not in name or name not in own:
                continue
            try:
                found.append((name, least(f), own[name]))
            except RuntimeError:  # PyTorch has no such operation of this dtype.
                continue
    found.sort(key=lambda one: one[1] / one[2])
    for name, theirs, ours in found:
        print(f"{name:32} {theirs / ours:7.2f} {theirs:9.3f} {ours:9.3f}")
    mean = math.exp(sum(math.log(theirs / ours) for _, theirs, ours in found) / max(len(found), 1))
    behind = sum(theirs < 0.95 * ours for _, theirs, ours in found)
    print(f"{len(found)} operations: {mean:.2f} on the geometric mean, {behind} below 0.95")


main()

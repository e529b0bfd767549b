"""The workloads, each written once against a small set of operations that every system spells in its own idiom.

Products (those with `flops`) are bound by arithmetic, all others by memory, or would be if their operations were fused.
Nothing here imports a package, so that the list of cases can be read without an environment.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

SIZES = {"f32": 4, "f16": 2, "bf16": 2}

# On the norm of the difference over the norm of the float64 reference: what rounding a result to its dtype and summing
# in float32 can make.
TOLERANCES = {"f32": 2e-5, "f16": 1e-3, "bf16": 6e-3}


@dataclass(frozen=True)
class Input:
    """An input drawn from a distribution: `normal` (mean 0, variance 1), `weights` (normal, over the root of the first
    extent, so that products keep their magnitude) or `uniform` in [0, 1)."""

    distribution: str
    shape: tuple[int, ...]


def normal(*shape: int) -> Input:
    return Input("normal", shape)


def weights(*shape: int) -> Input:
    return Input("weights", shape)


def uniform(*shape: int) -> Input:
    return Input("uniform", shape)


@dataclass(frozen=True)
class Case:
    """A formula at a size. Results have the dtype of the inputs."""

    name: str
    function: Callable[..., Any]  # of the operations, then the inputs; gives a result or a tuple of results
    inputs: tuple[Input, ...]
    dtype: str = "f32"
    elementwise: bool = False
    tiny: bool = False  # measures the call, not the memory: inputs stay in the caches
    own_tolerance: float | None = None
    flops: int | None = None  # of a product: a multiplication and an addition are two; and of what is like one

    @property
    def formula(self) -> str:
        """In words, for people and the manifest."""
        return (self.function.__doc__ or "").strip()

    @property
    def pipeline(self) -> str:
        """The formula's name, for systems that need a form of their own for each."""
        return self.function.__name__

    @property
    def tolerance(self) -> float:
        return self.own_tolerance or TOLERANCES[self.dtype]

    @property
    def input_bytes(self) -> int:
        return sum(math.prod(given.shape) for given in self.inputs) * SIZES[self.dtype]


# 16-bit inputs are computed in float32 and rounded once, at the end: `widened` and `narrowed` do nothing to float32.


def gelu_chain(ops, x):
    """0.5*x*(1+tanh(0.79788456*(x+0.044715*x^3)))*1.5+0.25"""
    y = ops.widened(x)
    y = 0.5 * y * (1 + ops.tanh(0.79788456 * (y + 0.044715 * (y * y * y)))) * 1.5 + 0.25
    return ops.narrowed(y, x)


def chain20(ops, x):
    """20 dependent operations: mul add abs sqrt sub max mul +x abs neg exp mul -x min max mul sqr add sqrt div"""
    y = ops.sqrt(ops.abs(x * 1.01 + 0.5)) - 0.75
    y = ops.maximum(y, -0.5)
    y = y * y + x
    y = ops.exp(-ops.abs(y)) * 2.0 - x
    y = ops.maximum(ops.minimum(y, 3.0), -3.0) * 0.5
    return ops.sqrt(y * y + 1.0) / 1.5


def where_mul(ops, x, y):
    """where(x>0.125, x*2, x/2)*y"""
    return ops.where(x > 0.125, x * 2.0, x / 2.0) * y


def bias_relu(ops, x, bias):
    """relu(x+bias), the bias along rows"""
    return ops.relu(x + bias)


def relu_max_pool2(ops, x):
    """max_pool2d(relu(x), kernel 2, stride 2)"""
    return ops.max_pool(ops.relu(x), kernel=2, stride=2, padding=0)


def relu_max_pool3(ops, x):
    """max_pool2d(relu(x), kernel 3, stride 2, padding 1)"""
    return ops.max_pool(ops.relu(x), kernel=3, stride=2, padding=1)


def sum_all(ops, x):
    """sum of all elements"""
    return ops.sum(x, None)


def sum_rows(ops, x):
    """sum of each row"""
    return ops.sum(x, 1)


def sum_columns(ops, x):
    """sum of each column"""
    return ops.sum(x, 0)


def mean_variance(ops, x):
    """mean and population variance of each row (two results)"""
    return ops.mean_variance(x)


def softmax(ops, x):
    """softmax of each row"""
    return ops.softmax(x)


def layer_norm(ops, x, weight, bias):
    """(x-mean)/sqrt(var+1e-5)*weight+bias of each row"""
    return ops.layer_norm(x, weight, bias, 1e-5)


def rms_norm(ops, x, weight):
    """x/sqrt(mean(x^2)+1e-6)*weight of each row"""
    return ops.rms_norm(x, weight, 1e-6)


def cumsum_columns(ops, x):
    """cumulative sum down each column"""
    return ops.cumsum(x, 0)


def cumsum_rows(ops, x):
    """cumulative sum along each row"""
    return ops.cumsum(x, 1)


def cat_scale(ops, *parts):
    """cat(parts, 0)*1.5+0.25"""
    return ops.cat(parts) * 1.5 + 0.25


def adamw(ops, p, g, m, v):
    """the tenth AdamW step (lr 1e-3, betas 0.9 and 0.999, eps 1e-8, decay 0.01): parameters and both moments"""
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + (g * g) * 0.001
    scale = ops.sqrt(v * (1.0 / (1 - 0.999**10))) + 1e-8
    return p * (1 - 1e-5) - (m * (1e-3 / (1 - 0.9**10))) / scale, m, v


def product(ops, a, b):
    """a @ b; 16-bit inputs with sums in float32"""
    return ops.product(a, b)


def linear(ops, x, weight, bias):
    """x @ weight.T + bias"""
    return ops.product(x, ops.transposed(weight)) + bias


def linear_gelu(ops, x, weight, bias):
    """gelu_tanh(x @ weight + bias)"""
    return ops.gelu(ops.product(x, weight) + bias)


def linear_swiglu(ops, x, a, b):
    """silu(x @ a) * (x @ b)"""
    return ops.silu(ops.product(x, a)) * ops.product(x, b)


def nearest_centre(ops, x, centres):
    """the least of sum(centres^2) - 2 x @ centres.T along each row"""
    return ops.least((centres * centres).sum(1) - 2.0 * ops.product(x, ops.transposed(centres)))


def squared_distances(ops, x, y):
    """sum((x[i] - y[j])^2) of all pairs of rows"""
    difference = x[:, None] - y[None]
    return (difference * difference).sum(2)


def shortest_paths(ops, x, y):
    """min over k of x[i, k] + y[k, j]"""
    return ops.least(x[:, :, None] + y[None])


def conv_relu(ops, x, weight, bias):
    """relu(conv2d(x, weight / 8, padding 1) + bias)"""
    return ops.relu(ops.convolution(x, weight * 0.125, bias, stride=1, padding=1))


def depthwise_relu(ops, x, weight, bias):
    """relu(conv2d(x, weight, padding 1, a window a channel) + bias)"""
    return ops.relu(ops.convolution(x, weight, bias, stride=1, padding=1, groups=len(weight)))


def halving_conv_relu(ops, x, weight, bias):
    """relu(conv2d(x, weight / 8, stride 2, padding 1) + bias)"""
    return ops.relu(ops.convolution(x, weight * 0.125, bias, stride=2, padding=1))


def halving_depthwise_relu(ops, x, weight, bias):
    """relu(conv2d(x, weight, stride 2, padding 1, a window a channel) + bias)"""
    return ops.relu(ops.convolution(x, weight, bias, stride=2, padding=1, groups=len(weight)))


def conv_stem(ops, x, weight, bias):
    """max_pool2d(relu(conv2d(x, weight, stride 2, padding 3) + bias), kernel 3, stride 2, padding 1)"""
    y = ops.relu(ops.convolution(x, weight, bias, stride=2, padding=3))
    return ops.max_pool(y, kernel=3, stride=2, padding=1)


def attention_causal(ops, q, k, v):
    """softmax(q @ k.T / sqrt(length), causal) @ v"""
    return ops.attention(q, k, v)


def attention_softcap(ops, q, k, v):
    """softmax(20 tanh(q @ k.T / 160) + slope (j - i)) @ v, slope 2^-(head+1): no library has a kernel for it"""
    return ops.softcap_attention(q, k, v)


M = 1 << 20
SQUARE = (4096, 4096)
AFFINE = (normal(*SQUARE), normal(4096), normal(4096))

CASES = {
    case.name: case
    for case in [
        Case("gelu_chain_16m", gelu_chain, (normal(16 * M),), elementwise=True),
        Case("gelu_chain_1k", gelu_chain, (normal(1024),), elementwise=True, tiny=True),
        Case("chain20_16m", chain20, (normal(16 * M),), elementwise=True),
        Case("chain20_64k", chain20, (normal(1 << 16),), elementwise=True, tiny=True),
        Case("where_mul_16m", where_mul, (normal(16 * M), normal(16 * M)), elementwise=True),
        Case("bias_relu_5000x2000", bias_relu, (normal(5000, 2000), normal(2000)), elementwise=True),
        Case("relu_maxpool_k2_1x64x256x256", relu_max_pool2, (normal(1, 64, 256, 256),)),
        Case("relu_maxpool_k3_32x64x112x112", relu_max_pool3, (normal(32, 64, 112, 112),)),
        # One number of 16 million terms: a plain loop in float32 may be off by more than the usual tolerance.
        Case("sum_all_16m", sum_all, (uniform(16 * M),), own_tolerance=1e-4),
        Case("sum_rows_4096", sum_rows, (uniform(*SQUARE),)),
        Case("sum_cols_4096", sum_columns, (uniform(*SQUARE),)),
        Case("mean_var_rows_4096", mean_variance, (normal(*SQUARE),)),
        Case("softmax_4096x4096", softmax, (normal(*SQUARE),)),
        Case("softmax_65536x512", softmax, (normal(65536, 512),)),
        Case("softmax_128x128", softmax, (normal(128, 128),), tiny=True),
        Case("layernorm_4096x4096", layer_norm, AFFINE),
        Case("layernorm_32x768", layer_norm, (normal(32, 768), normal(768), normal(768)), tiny=True),
        Case("rmsnorm_8192x4096", rms_norm, (normal(8192, 4096), normal(4096))),
        Case("cumsum_dim0_4096", cumsum_columns, (uniform(*SQUARE),)),
        Case("cumsum_dim1_4096", cumsum_rows, (uniform(*SQUARE),)),
        Case("cat10_scale", cat_scale, (normal(1000, 1000),) * 10),
        Case("adamw_16m", adamw, (normal(16 * M), normal(16 * M), normal(16 * M), uniform(16 * M)), elementwise=True),
        Case("gelu_chain_16m_bf16", gelu_chain, (normal(16 * M),), "bf16", elementwise=True),
        Case("softmax_4096x4096_bf16", softmax, (normal(*SQUARE),), "bf16"),
        Case("layernorm_4096x4096_bf16", layer_norm, AFFINE, "bf16"),
        Case("gelu_chain_16m_f16", gelu_chain, (normal(16 * M),), "f16", elementwise=True),
        Case("softmax_4096x4096_f16", softmax, (normal(*SQUARE),), "f16"),
        Case("layernorm_4096x4096_f16", layer_norm, AFFINE, "f16"),
        Case("matmul_512", product, (normal(512, 512),) * 2, flops=2 * 512**3),
        Case("matmul_2048", product, (normal(2048, 2048),) * 2, flops=2 * 2048**3),
        Case("matmul_bmm_4096x16", product, (normal(4096, 16, 16),) * 2, flops=2 * 4096 * 16**3),
        Case("matmul_bmm_100000x4", product, (normal(100_000, 4, 4),) * 2, flops=2 * 100_000 * 4**3),
        Case("matmul_vector_4096", product, (normal(*SQUARE), normal(4096)), flops=2 * 4096**2),
        Case("matmul_2048_bf16", product, (normal(2048, 2048),) * 2, "bf16", flops=2 * 2048**3),
        Case("matmul_4096_bf16", product, (normal(*SQUARE),) * 2, "bf16", flops=2 * 4096**3),
        Case("matmul_2048_f16", product, (normal(2048, 2048),) * 2, "f16", flops=2 * 2048**3),
        Case(
            "linear_gelu",
            linear_gelu,
            (normal(1024, 1024), weights(1024, 4096), normal(4096)),
            flops=2 * 1024 * 1024 * 4096,
        ),
        Case(
            "linear_few_rows",
            linear,
            (normal(4, 1024), weights(1024, 1024), normal(1024)),
            flops=2 * 4 * M,
        ),
        Case(
            "linear_few_rows_bf16",
            linear,
            (normal(8, 1024), weights(1024, 1024), normal(1024)),
            "bf16",
            flops=2 * 8 * M,
        ),
        Case("linear_swiglu", linear_swiglu, (normal(1024, 1024), *(weights(1024, 2816),) * 2), flops=4 * M * 2816),
        Case("nearest_centre", nearest_centre, (normal(65536, 32), normal(256, 32)), flops=2 * 65536 * 32 * 256),
        Case("squared_distances", squared_distances, (normal(1024, 64),) * 2, flops=3 * M * 64),
        Case("shortest_paths", shortest_paths, (normal(256, 256),) * 2, flops=2 * 256**3),
        Case(
            "conv3x3_relu",
            conv_relu,
            (normal(8, 64, 56, 56), weights(64, 64, 3, 3), normal(64)),
            flops=2 * 8 * 64 * 56 * 56 * 64 * 9,
        ),
        Case(
            "conv3x3_relu_7x7",
            conv_relu,
            (normal(1, 512, 7, 7), weights(512, 512, 3, 3), normal(512)),
            flops=2 * 512 * 49 * 512 * 9,
        ),
        Case(
            "halving_conv3x3_14x14",
            halving_conv_relu,
            (normal(1, 256, 14, 14), weights(512, 256, 3, 3), normal(512)),
            flops=2 * 512 * 49 * 256 * 9,
        ),
        Case("halving_depthwise_56x56", halving_depthwise_relu, (normal(1, 144, 56, 56), normal(144, 1, 3, 3), normal(144))),
        Case("halving_depthwise_14x14", halving_depthwise_relu, (normal(8, 384, 14, 14), normal(384, 1, 3, 3), normal(384))),
        Case("depthwise_relu_56x56", depthwise_relu, (normal(8, 96, 56, 56), normal(96, 1, 3, 3), normal(96))),
        Case("depthwise_relu_14x14", depthwise_relu, (normal(8, 384, 14, 14), normal(384, 1, 3, 3), normal(384))),
        Case(
            "conv_stem",
            conv_stem,
            (normal(8, 3, 224, 224), weights(64, 3, 7, 7), normal(64)),
            flops=2 * 8 * 64 * 112 * 112 * 3 * 49,
        ),
        Case("attention_causal", attention_causal, (normal(2, 8, 1024, 64),) * 3, flops=4 * 16 * M * 64),
        Case("attention_causal_bf16", attention_causal, (normal(2, 8, 1024, 64),) * 3, "bf16", flops=4 * 16 * M * 64),
        Case("attention_softcap", attention_softcap, (normal(2, 8, 512, 64),) * 3, flops=4 * 16 * 512 * 512 * 64),
    ]
}


def chosen(patterns: str) -> list[Case]:
    """The cases that comma-separated names or patterns (`softmax*`) name, in the table's order."""
    wanted = patterns.split(",")
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in CASES):
            raise SystemExit(f"no case is called {pattern}; --list names them")
    return [case for case in CASES.values() if any(fnmatchcase(case.name, pattern) for pattern in wanted)]


# As many as take a minute or so; a turn begins with starting the system.
CASES_A_TURN = 8


def in_turns(chosen: list[Case]) -> list[list[Case]]:
    """The cases in groups, each measured by all systems before any goes on: memory may be twice as fast for some
    minutes, and what is compared should have found it the same."""
    return [chosen[first : first + CASES_A_TURN] for first in range(0, len(chosen), CASES_A_TURN)]


def show() -> None:
    """Prints the table."""
    for case in CASES.values():
        print(f"{case.name:<30} {case.dtype:<4} {case.input_bytes / 1e6:8.3g} MB  {case.formula}")

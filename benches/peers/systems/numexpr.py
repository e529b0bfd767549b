"""NumExpr: elementwise expressions as text, for a virtual machine that goes block by block."""

import numexpr
import numpy as np

from cases import Case
from systems.base import System, Unsupported


class Constants(dict):
    """Numbers by name. As Python's floats in the text they would make the whole expression float64."""

    def __call__(self, value: float) -> str:
        name = f"k{len(self)}"
        self[name] = np.float32(value)
        return name


def gelu_chain(k):
    inner = f"{k(0.79788456)}*(x0+{k(0.044715)}*(x0*x0*x0))"
    return [f"{k(0.5)}*x0*({k(1)}+tanh({inner}))*{k(1.5)}+{k(0.25)}"]


def chain20(k):
    # There are no variables: what is used twice is written twice, and found again by the parser.
    y = f"(sqrt(abs(x0*{k(1.01)}+{k(0.5)}))-{k(0.75)})"
    low = k(-0.5)
    y = f"where({y}>{low},{y},{low})"
    y = f"({y}*{y}+x0)"
    y = f"(exp(-abs{y})*{k(2)}-x0)"
    high, low = k(3), k(-3)
    y = f"where({y}<{high},{y},{high})"
    y = f"(where({y}>{low},{y},{low})*{k(0.5)})"
    return [f"sqrt({y}*{y}+{k(1)})/{k(1.5)}"]


def where_mul(k):
    return [f"where(x0>{k(0.125)},x0*{k(2)},x0/{k(2)})*x1"]


def bias_relu(k):
    zero = k(0)
    return [f"where(x0+x1>{zero},x0+x1,{zero})"]


def adamw(k):
    m = f"(x2*{k(0.9)}+x1*{k(0.1)})"
    v = f"(x3*{k(0.999)}+(x1*x1)*{k(0.001)})"
    scale = f"(sqrt({v}*{k(1 / (1 - 0.999**10))})+{k(1e-8)})"
    return [f"x0*{k(1 - 1e-5)}-({m}*{k(1e-3 / (1 - 0.9**10))})/{scale}", m, v]


EXPRESSIONS = {maker.__name__: maker for maker in [gelu_chain, chain20, where_mul, bias_relu, adamw]}


class Numexpr(System):
    version = numexpr.__version__

    def __init__(self, device, threads):
        super().__init__(device, threads)
        numexpr.set_num_threads(threads)

    def compiled(self, case: Case):
        if case.pipeline not in EXPRESSIONS or case.dtype != "f32":
            raise Unsupported("elementwise expressions of float32 only")
        constants = Constants()
        expressions = EXPRESSIONS[case.pipeline](constants)

        def run(*inputs):
            names = {f"x{i}": array for i, array in enumerate(inputs)} | constants
            results = tuple(numexpr.evaluate(text, local_dict=names, global_dict={}) for text in expressions)
            return results if len(results) > 1 else results[0]

        return run

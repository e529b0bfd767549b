"""Numba: the loops written by hand, in parallel and with its fast arithmetic."""

import math

import numba
import numpy as np

from systems.base import System, Unsupported

f = np.float32
parallel = numba.njit(parallel=True, fastmath=True, error_model="numpy")

DECAY = f(1 - 1e-5)
STEP = f(1e-3 / (1 - 0.9**10))
SCALE = f(1 / (1 - 0.999**10))


def gelu_chain(x):
    result = np.empty_like(x)
    for i in numba.prange(x.size):
        v = x[i]
        inner = f(0.79788456) * (v + f(0.044715) * (v * v * v))
        result[i] = f(0.5) * v * (f(1) + math.tanh(inner)) * f(1.5) + f(0.25)
    return result


def chain20(x):
    result = np.empty_like(x)
    for i in numba.prange(x.size):
        v = x[i]
        y = max(math.sqrt(abs(v * f(1.01) + f(0.5))) - f(0.75), f(-0.5))
        y = y * y + v
        y = math.exp(-abs(y)) * f(2) - v
        y = max(min(y, f(3)), f(-3)) * f(0.5)
        result[i] = math.sqrt(y * y + f(1)) / f(1.5)
    return result


def where_mul(x, y):
    result = np.empty_like(x)
    for i in numba.prange(x.size):
        v = x[i]
        result[i] = (v * f(2) if v > f(0.125) else v / f(2)) * y[i]
    return result


def bias_relu(x, bias):
    result = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            result[i, j] = max(x[i, j] + bias[j], f(0))
    return result


def adamw(p, g, m, v):
    p_new, m_new, v_new = np.empty_like(p), np.empty_like(p), np.empty_like(p)
    for i in numba.prange(p.size):
        first = m[i] * f(0.9) + g[i] * f(0.1)
        second = v[i] * f(0.999) + g[i] * g[i] * f(0.001)
        p_new[i] = p[i] * DECAY - first * STEP / (math.sqrt(second * SCALE) + f(1e-8))
        m_new[i] = first
        v_new[i] = second
    return p_new, m_new, v_new


LOOPS = {loop.__name__: loop for loop in [gelu_chain, chain20, where_mul, bias_relu, adamw]}


class Numba(System):
    version = numba.__version__

    def __init__(self, device, threads):
        super().__init__(device, threads)
        numba.set_num_threads(threads)

    def compiled(self, case):
        if case.pipeline not in LOOPS or case.dtype != "f32":
            raise Unsupported("elementwise loops of float32 only")
        # Anew for each case, so that each one's first call compiles.
        return parallel(LOOPS[case.pipeline])

"""NumPy, and what follows its interface. In float64 it is also the reference of all."""

import math

import numpy as np

from systems.base import System


class NumpyOperations:
    """The operations composed as one writes them with NumPy, for any module with its interface."""

    def __init__(self, module=np):
        self.module = module
        for name in ["exp", "tanh", "sqrt", "abs", "maximum", "minimum", "where", "cumsum"]:
            setattr(self, name, getattr(module, name))

    def widened(self, x):
        return x.astype(np.float32) if x.dtype.itemsize == 2 else x

    def narrowed(self, y, like):
        return y if y.dtype == like.dtype else y.astype(like.dtype)

    def relu(self, x):
        return self.module.maximum(x, 0)

    def sum(self, x, axis):
        return self.module.sum(x, axis=axis)

    def mean_variance(self, x):
        return x.mean(1), x.var(1)

    def softmax(self, x):
        y = self.widened(x)
        exponentials = self.module.exp(y - y.max(1, keepdims=True))
        return self.narrowed(exponentials / exponentials.sum(1, keepdims=True), x)

    def layer_norm(self, x, weight, bias, eps):
        y = self.widened(x)
        centred = y - y.mean(1, keepdims=True)
        scaled = centred / self.module.sqrt((centred * centred).mean(1, keepdims=True) + eps)
        return self.narrowed(scaled * self.widened(weight) + self.widened(bias), x)

    def rms_norm(self, x, weight, eps):
        return x / self.module.sqrt((x * x).mean(1, keepdims=True) + eps) * weight

    def product(self, a, b):
        return self.narrowed(self.widened(a) @ self.widened(b), a)

    def transposed(self, x):
        return x.T

    def silu(self, x):
        return x / (1 + self.module.exp(-x))

    def gelu(self, x):
        return 0.5 * x * (1 + self.module.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))

    def least(self, x):
        return x.min(1)

    def convolution(self, x, weight, bias, stride, padding, groups=1):
        x = self.module.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
        if groups == 1:
            y = np.moveaxis(np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))), 3, 1)
        else:  # a window a channel
            y = np.einsum("nchwij,cij->nchw", windows, weight[:, 0])
        return y + bias.reshape(1, -1, 1, 1)

    def weighted(self, scores, v):
        exponentials = self.module.exp(scores - scores.max(-1, keepdims=True))
        return exponentials / exponentials.sum(-1, keepdims=True) @ v

    def attention(self, q, k, v):
        length, count = q.shape[-1], q.shape[-2]
        scores = q @ self.module.swapaxes(k, -1, -2) / math.sqrt(length)
        visible = self.module.tril(self.module.ones((count, count), bool))
        return self.weighted(self.module.where(visible, scores, -np.inf), v)

    def softcap_attention(self, q, k, v):
        heads, count = q.shape[-3], q.shape[-2]
        scores = 20.0 * self.module.tanh(q @ self.module.swapaxes(k, -1, -2) / 160.0)
        position = self.module.arange(count, dtype=scores.dtype)
        slope = 0.5 ** self.module.arange(1, heads + 1, dtype=scores.dtype)
        return self.weighted(scores + slope[:, None, None] * (position[None, :] - position[:, None]), v)

    def cat(self, parts):
        return self.module.concatenate(parts, 0)

    def max_pool(self, x, kernel, stride, padding):
        if padding:
            border = ((0, 0), (0, 0), (padding, padding), (padding, padding))
            x = self.module.pad(x, border, constant_values=-np.inf)
        height, width = ((extent - kernel) // stride for extent in x.shape[2:])
        result = None
        for i in range(kernel):
            for j in range(kernel):
                shifted = x[:, :, i : i + stride * height + 1 : stride, j : j + stride * width + 1 : stride]
                result = shifted if result is None else self.module.maximum(result, shifted)
        return result


class Numpy(System):
    version = np.__version__

    def native(self, array):
        if array.dtype == np.int16:
            import ml_dtypes

            return array.copy().view(ml_dtypes.bfloat16)
        return array.copy()

    def compiled(self, case):
        operations = NumpyOperations()
        return lambda *inputs: case.function(operations, *inputs)

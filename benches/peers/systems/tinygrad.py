"""tinygrad under TinyJit, which captures at the second call and owns its results' memory."""

from importlib.metadata import version

import numpy as np
from tinygrad import Device, Tensor, TinyJit, dtypes

from systems.base import System


class TinygradOperations:
    def __init__(self):
        for name in ["exp", "tanh", "sqrt", "abs", "relu", "maximum", "minimum", "where", "cumsum"]:
            setattr(self, name, getattr(Tensor, name))

    def widened(self, x):
        return x.cast(dtypes.float32)

    def narrowed(self, y, like):
        return y.cast(like.dtype)

    def sum(self, x, axis):
        return x.sum(axis)

    def mean_variance(self, x):
        return x.mean(1), x.var(1, correction=0)

    def softmax(self, x):
        return self.narrowed(self.widened(x).softmax(-1), x)

    def layer_norm(self, x, weight, bias, eps):
        scaled = self.widened(x).layernorm(eps=eps)
        return self.narrowed(scaled * self.widened(weight) + self.widened(bias), x)

    def rms_norm(self, x, weight, eps):
        return x * (x.square().mean(1, keepdim=True) + eps).rsqrt() * weight

    def product(self, a, b):
        return a.matmul(b, dtype=dtypes.float32).cast(a.dtype)

    def transposed(self, x):
        return x.T

    def silu(self, x):
        return x.silu()

    def gelu(self, x):
        return x.gelu()

    def least(self, x):
        return x.min(1)

    def convolution(self, x, weight, bias, stride, padding, groups=1):
        return x.conv2d(weight, bias, groups=groups, stride=stride, padding=padding)

    def attention(self, q, k, v):
        return q.scaled_dot_product_attention(k, v, is_causal=True)

    def softcap_attention(self, q, k, v):
        position = Tensor.arange(q.shape[-2])
        slope = 0.5 ** Tensor.arange(1, q.shape[-3] + 1)
        distance = position.reshape(1, -1) - position.reshape(-1, 1)
        scores = 20.0 * (q @ k.transpose(-1, -2) / 160.0).tanh() + slope.reshape(-1, 1, 1) * distance
        return scores.softmax(-1) @ v

    def cat(self, parts):
        return parts[0].cat(*parts[1:], dim=0)

    def max_pool(self, x, kernel, stride, padding):
        return x.max_pool2d((kernel, kernel), stride=stride, padding=padding)


class Tinygrad(System):
    version = version("tinygrad")

    def __init__(self, device, threads):
        super().__init__(device, threads)
        (Tensor([1.0, 2.0]) * 2).realize()

    def native(self, array):
        tensor = Tensor(array)
        return (tensor.bitcast(dtypes.bfloat16) if array.dtype == np.int16 else tensor).contiguous().realize()

    def as_numpy(self, value):
        return (value.float() if value.dtype == dtypes.bfloat16 else value).numpy()

    def compiled(self, case):
        operations = TinygradOperations()

        @TinyJit
        def run(*inputs):
            results = case.function(operations, *inputs)
            results = results if isinstance(results, tuple) else (results,)
            results = tuple(result.contiguous() for result in results)
            Tensor.realize(*results)
            return results if len(results) > 1 else results[0]

        return run

    def wait(self, values=None):
        Device[Device.DEFAULT].synchronize()

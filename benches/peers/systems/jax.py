"""JAX: every case under `jit`."""

import jax
import jax.numpy as jnp
import numpy as np

from systems.base import System
from systems.numpy import NumpyOperations


class JaxOperations(NumpyOperations):
    """NumPy's, except where JAX has the operation itself."""

    def __init__(self):
        super().__init__(jnp)
        self.relu = jax.nn.relu

    def softmax(self, x):
        return self.narrowed(jax.nn.softmax(self.widened(x), -1), x)

    def layer_norm(self, x, weight, bias, eps):
        y = self.widened(x)
        scaled = (y - y.mean(1, keepdims=True)) * jax.lax.rsqrt(y.var(1, keepdims=True) + eps)
        return self.narrowed(scaled * self.widened(weight) + self.widened(bias), x)

    def rms_norm(self, x, weight, eps):
        return x * jax.lax.rsqrt((x * x).mean(1, keepdims=True) + eps) * weight

    def product(self, a, b):
        return a @ b

    def silu(self, x):
        return jax.nn.silu(x)

    def gelu(self, x):
        return jax.nn.gelu(x, approximate=True)

    def convolution(self, x, weight, bias, stride, padding, groups=1):
        border = ((padding, padding), (padding, padding))
        y = jax.lax.conv_general_dilated(x, weight, (stride, stride), border, feature_group_count=groups)
        return y + bias.reshape(1, -1, 1, 1)

    def attention(self, q, k, v):
        q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
        return jnp.swapaxes(jax.nn.dot_product_attention(q, k, v, is_causal=True), 1, 2)

    def max_pool(self, x, kernel, stride, padding):
        border = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 1, kernel, kernel), (1, 1, stride, stride), border)


class Jax(System):
    version = jax.__version__

    def __init__(self, device, threads):
        super().__init__(device, threads)
        self.place = jax.devices("cpu" if device == "cpu" else "gpu")[0]
        jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.device_put(np.ones(8, np.float32), self.place)))

    def native(self, array):
        if array.dtype == np.int16:
            import ml_dtypes

            array = array.view(ml_dtypes.bfloat16)
        with jax.default_device(self.place):
            # `asarray` may share NumPy's memory, and all rotated inputs would be one.
            return jnp.array(array, copy=True)

    def as_numpy(self, value):
        array = np.asarray(value)
        return array.astype(np.float32) if array.dtype.itemsize == 2 else array

    def compiled(self, case):
        operations = JaxOperations()
        return jax.jit(lambda *inputs: case.function(operations, *inputs))

    def wait(self, values=None):
        jax.block_until_ready(values)

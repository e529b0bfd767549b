"""NumPy, and what follows its interface. In float64 it is also the reference of all."""

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
        if array.dtype == np.uint16:
            import ml_dtypes

            return array.copy().view(ml_dtypes.bfloat16)
        return array.copy()

    def compiled(self, case):
        operations = NumpyOperations()
        return lambda *inputs: case.function(operations, *inputs)

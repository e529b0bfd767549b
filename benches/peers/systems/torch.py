"""PyTorch, eager and by `torch.compile` (Inductor) in three modes."""

import numpy as np
import torch
import torch.nn.functional as F

from systems.base import System, spin_cycles


class TorchOperations:
    exp, tanh, sqrt, abs, where = torch.exp, torch.tanh, torch.sqrt, torch.abs, torch.where
    relu, cumsum = staticmethod(F.relu), torch.cumsum

    def widened(self, x):
        return x.float()

    def narrowed(self, y, like):
        return y.to(like.dtype)

    def maximum(self, x, bound):
        return torch.clamp_min(x, bound)

    def minimum(self, x, bound):
        return torch.clamp_max(x, bound)

    def sum(self, x, axis):
        return x.sum() if axis is None else x.sum(axis)

    def mean_variance(self, x):
        variance, mean = torch.var_mean(x, 1, correction=0)
        return mean, variance

    # These compute 16-bit inputs in float32 by themselves.
    def softmax(self, x):
        return F.softmax(x, -1)

    def layer_norm(self, x, weight, bias, eps):
        return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)

    def rms_norm(self, x, weight, eps):
        return F.rms_norm(x, (x.shape[-1],), weight, eps)

    def product(self, a, b):
        return a @ b

    def transposed(self, x):
        return x.T

    def silu(self, x):
        return F.silu(x)

    def gelu(self, x):
        return F.gelu(x, approximate="tanh")

    def least(self, x):
        return x.amin(1)

    def convolution(self, x, weight, bias, stride, padding, groups=1):
        return F.conv2d(x, weight, bias, stride, padding, groups=groups)

    def attention(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def softcap_attention(self, q, k, v):
        position = torch.arange(q.shape[-2], device=q.device)
        slope = 0.5 ** torch.arange(1, q.shape[-3] + 1, device=q.device)
        scores = 20.0 * torch.tanh(q @ k.transpose(-1, -2) / 160.0)
        return torch.softmax(scores + slope[:, None, None] * (position[None, :] - position[:, None]), -1) @ v

    def cat(self, parts):
        return torch.cat(parts, 0)

    def max_pool(self, x, kernel, stride, padding):
        return F.max_pool2d(x, kernel, stride, padding)


class Torch(System):
    version = torch.__version__

    def __init__(self, device, threads):
        super().__init__(device, threads)
        torch.set_grad_enabled(False)
        if device == "cpu":
            torch.set_num_threads(threads)
        else:
            torch.cuda.init()
            self.has_events = True
            self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def native(self, array):
        if array.dtype == np.int16:
            return torch.from_numpy(array.copy()).view(torch.bfloat16).to(self.device)
        return torch.from_numpy(array.copy()).to(self.device)

    def as_numpy(self, value):
        return (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()

    def compiled(self, case):
        operations = TorchOperations()
        return lambda *inputs: case.function(operations, *inputs)

    def wait(self, values=None):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def device_ms(self, call, count):
        torch.cuda._sleep(spin_cycles(count))
        self.start.record()
        for _ in range(count):
            call()
        self.end.record()
        torch.cuda.synchronize()
        return self.start.elapsed_time(self.end)

    def device_copy(self, count):
        if self.device == "cpu":
            return None
        source = torch.ones(count, dtype=torch.uint8, device="cuda")
        target = torch.zeros_like(source)
        return lambda: target.copy_(source)

    def release(self):
        if self.device == "cuda":
            torch.cuda.empty_cache()


class Inductor(Torch):
    mode = "default"

    def __init__(self, device, threads):
        super().__init__(device, threads)
        # Importing Inductor and asking the toolchain what it can takes seconds, once a process: no case's first call.
        torch.compile(lambda x: x * 2 + 1, mode=self.mode)(torch.ones(64, device=device))

    def compiled(self, case):
        # One code object serves all cases: without a reset, and with shapes left open, the second size would be
        # compiled as a kernel of any size.
        torch.compiler.reset()
        return torch.compile(super().compiled(case), mode=self.mode, dynamic=False)


class InductorMaxAutotune(Inductor):
    mode = "max-autotune-no-cudagraphs"


class InductorReduceOverhead(Inductor):
    """CUDA graphs. Rotated inputs are copied into the graph's own buffers, which its time contains."""

    mode = "reduce-overhead"

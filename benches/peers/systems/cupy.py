"""CuPy, an operation at a time and, where it can, by `cupy.fuse`."""

import cupy
import numpy as np

from systems.base import System, Unsupported, spin_cycles
from systems.numpy import NumpyOperations

SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""


class Cupy(System):
    version = cupy.__version__
    has_events = True

    def __init__(self, device, threads):
        super().__init__(device, threads)
        self.spin = cupy.RawKernel(SPIN, "spin")

    def native(self, array):
        return cupy.array(array)

    def as_numpy(self, value):
        return cupy.asnumpy(value)

    def compiled(self, case):
        if case.dtype == "bf16":
            raise Unsupported("no bfloat16")
        if case.name.startswith("conv"):
            raise Unsupported("no convolution")
        operations = NumpyOperations(cupy)
        return lambda *inputs: case.function(operations, *inputs)

    def wait(self, values=None):
        cupy.cuda.Device().synchronize()

    def device_ms(self, call, count):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        self.spin((1,), (1,), (np.int64(spin_cycles(count)),))
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end)

    def device_copy(self, count):
        source, target = cupy.ones(count, np.uint8), cupy.zeros(count, np.uint8)
        return lambda: cupy.copyto(target, source)


class CupyFuse(Cupy):
    def compiled(self, case):
        if not case.elementwise or case.dtype != "f32":
            raise Unsupported("cupy.fuse: elementwise cases of float32 only")
        function = super().compiled(case)
        # `fuse` counts positional parameters, so that `*inputs` must become as many names.
        names = ", ".join(f"x{i}" for i in range(len(case.inputs)))
        return cupy.fuse()(eval(f"lambda {names}: function({names})", {"function": function}))

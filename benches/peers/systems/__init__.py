"""The systems that are compared, one module each. A module is imported only in the process that measures it."""

from dataclasses import dataclass
from importlib import import_module

from systems.base import System


@dataclass(frozen=True)
class Entry:
    module: str
    class_name: str
    devices: tuple[str, ...]

    def make(self, device: str, threads: int) -> System:
        """Imports the system; fails where its package is not installed, or finds no such device."""
        made = getattr(import_module(f"systems.{self.module}"), self.class_name)(device, threads)
        assert isinstance(made, System)
        return made


BOTH = ("cpu", "cuda")

SYSTEMS = {
    "numpy": Entry("numpy", "Numpy", ("cpu",)),
    "numexpr": Entry("numexpr", "Numexpr", ("cpu",)),
    "numba": Entry("numba", "Numba", ("cpu",)),
    "torch": Entry("torch", "Torch", BOTH),
    "inductor": Entry("torch", "Inductor", BOTH),
    "inductor_max": Entry("torch", "InductorMaxAutotune", ("cuda",)),
    "inductor_ro": Entry("torch", "InductorReduceOverhead", ("cuda",)),
    "jax": Entry("jax", "Jax", BOTH),
    "tinygrad": Entry("tinygrad", "Tinygrad", BOTH),
    "onnxruntime": Entry("onnxruntime", "OnnxRuntime", ("cpu",)),
    "cupy": Entry("cupy", "Cupy", ("cuda",)),
    "cupy_fuse": Entry("cupy", "CupyFuse", ("cuda",)),
}

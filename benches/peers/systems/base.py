"""What measuring asks of a system."""

from collections.abc import Callable
from typing import Any

from cases import Case


class Unsupported(Exception):
    """The system has no form of a case: no failure, and no figure."""


class System:
    """One system on one device. Making it imports the package and warms up what is warmed up once a process."""

    version = ""

    # Whether `device_ms` works: device time by events. Without it, a batch is timed by the wall clock.
    has_events = False

    def __init__(self, device: str, threads: int):
        self.device = device
        self.threads = threads

    def compiled(self, case: Case) -> Callable[..., Any]:
        """A function of native inputs that gives native results. Compilation may wait for the first call."""
        raise NotImplementedError

    def native(self, array: Any) -> Any:
        """A copy of a NumPy array in memory of its own. int16 is the bits of bfloat16."""
        return array.copy()

    def as_numpy(self, value: Any) -> Any:
        """A result as numbers that NumPy knows."""
        return value

    def wait(self, values: Any = None) -> None:
        """Until these values, or all that was asked for, are computed."""

    def device_ms(self, call: Callable[[], Any], count: int) -> float:
        """Device time of so many calls, with the host kept ahead."""
        raise NotImplementedError

    def device_copy(self, count: int) -> Callable[[], Any] | None:
        """A function that copies so many bytes on the device."""
        return None

    def release(self) -> None:
        """Gives back memory that is cached, between cases."""


def spin_cycles(calls: int) -> int:
    """How long a device should be kept busy while the host queues up this many calls."""
    return 4_000_000 + 300_000 * min(calls, 50)

"""The options of a comparison. Nothing here needs a package, so that `run` can read them first."""

import argparse
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "peers"  # what is made anew when it is missing

# The systems that are close on most cases, and NumPy as a line everyone knows.
MAIN_PEERS = "numpy,torch,inductor,jax"


def parser() -> argparse.ArgumentParser:
    """To be a parent: it adds no help of its own."""
    options = argparse.ArgumentParser(add_help=False)
    what = options.add_argument_group("what is compared")
    what.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    what.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="on the CPU; default: all processors")
    what.add_argument("--cases", default="*", metavar="NAMES", help="names or patterns between commas: 'softmax*'")
    what.add_argument("--peers", metavar="NAMES", help="systems between commas; default: all")
    what.add_argument(
        "--ext",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="a program that follows the protocol, again for another; the first is the table's subject",
    )
    what.add_argument("--list", action="store_true", help="print the cases and end")

    how = options.add_argument_group("how it is measured")
    how.add_argument("--quick", action="store_true", help=f"other defaults: {MAIN_PEERS}; 0.2 s; 1 pass; 60 s a case")
    how.add_argument("--seconds", type=float, help="sampling time of a case on the CPU; default: 0.4")
    how.add_argument("--passes", type=int, help="over all systems; the lower median counts; default: 2")
    how.add_argument(
        "--malloc",
        default="keep",
        choices=["keep", "default"],
        help="keep: glibc reuses freed pages, which compares kernels; default: what users get",
    )
    how.add_argument("--case-timeout", type=float, metavar="SECONDS", help="then a system is stopped; default: 300")

    where = options.add_argument_group("where files go")
    where.add_argument("--data", type=Path, help="inputs and references; default: target/peers/data")
    where.add_argument("--machine", help="this machine's name in the results; default: from its processor or GPU")
    where.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="gets peers.md, its pictures and peers.json; default: benches/results/MACHINE, or below target/peers where --cases "
        "chooses some",
    )
    where.add_argument("--report", action="store_true", help="only write peers.md again from peers.json")
    return options


def settled(options: argparse.Namespace) -> argparse.Namespace:
    """Fills in what follows from other options."""
    peers, seconds, passes, timeout = (MAIN_PEERS, 0.2, 1, 60) if options.quick else ("*", 0.4, 2, 300)
    options.peers = options.peers or peers
    options.seconds = seconds if options.seconds is None else options.seconds
    options.passes = options.passes or passes
    options.case_timeout = options.case_timeout or timeout
    options.data = (options.data or WORK / "data").absolute()
    return options

#!/usr/bin/env python3
"""What NVRTC makes of the scoreboard's kernels, read in their machine code: no GPU is needed.

    cargo test --bench sass                            # emits target/sass.json
    benches/sass/read.py [--before FILE] [--out FILE] [TEXT.json] [NAME...]

NVRTC is the one that tests/fetch-nvrtc has fetched. nvdisasm is looked for on the PATH, else installed below target/ from
PyPI. The figures of each kernel:

- `per 16 B`: instructions of a thread for each 16 bytes that it loads from or stores to global memory, in the loop that
  moves most of them, or in the whole function where no loop does. Subroutines (the slow path of a division) do not count.
- `issue`: the time that takes to issue, over the time that the bytes take: on an H200 (132 multiprocessors of 128 lanes at
  1.755 GHz, 4.8 TB/s) 99 instructions for 16 bytes take as long as these. Above 1 a kernel waits for instructions.
- `loads`, `stores`: accesses of global memory by their width in bytes, as `16×4 2×1`.
- `flight`: KiB of loads that a multiprocessor has in flight at most: what a thread loads before it uses the first of it,
  times the threads that fit by registers and shared memory.
- `regs`, `spills`: registers of a thread, and bytes that did not fit.

What this does not show: caches, occupancy that changes, waiting at barriers. It is an estimate to compare texts with.
"""

import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
ARCHITECTURE = "sm_90"
OPTIONS = [f"--gpu-architecture={ARCHITECTURE}", "--fmad=false", "--std=c++17", "--ptxas-options=-v", "--minimal", "--no-cache"]
FREE = 132 * 128 * 1.755e9 / 4.8e12 * 16  # instructions that take as long as 16 bytes
THREADS, REGISTERS, SHARED, BLOCKS = 2048, 65536, 227 << 10, 32  # of a multiprocessor


def nvdisasm():
    found = shutil.which("nvdisasm")
    folder = TARGET / "nvdisasm"
    pattern = "nvidia/*/bin/nvdisasm"
    if not found and not any(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        subprocess.run(command + ["nvidia-cuda-nvdisasm"], check=True)
    path = found or next(folder.glob(pattern))
    os.chmod(path, 0o755) if not found else None
    return str(path)


class Nvrtc:
    def __init__(self):
        path = subprocess.run([ROOT / "tests/fetch-nvrtc"], check=True, capture_output=True, text=True).stdout.split()[-1]
        self.library = ctypes.CDLL(path)

    def compile(self, source):
        """The CUBIN and the log."""
        nvrtc, program = self.library, ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        options = [option.encode() for option in OPTIONS]
        status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self.bytes(program, "ProgramLog").rstrip(b"\0").decode()
        if status != 0:
            raise RuntimeError(log)
        cubin = self.bytes(program, "CUBIN")
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin, log

    def bytes(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw


INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_\w+):")
WIDTHS = {"128": 16, "64": 8, "U8": 1, "S8": 1, "U16": 2, "S16": 2}


def width(opcode):
    """Bytes of an access."""
    return next((WIDTHS[part] for part in opcode.split(".") if part in WIDTHS), 4)


def registers(operands):
    """Numbers of the registers that stand in a text, the second ones of 64-bit addresses included."""
    found = set()
    for number, wide in re.findall(r"\bR(\d+)((?:\.64)?)", operands):
        found |= {int(number), int(number) + 1} if wide else {int(number)}
    return found


def functions(text):
    """The instructions of each function: (address, predicate, opcode, operands), and where its labels stand."""
    result = {}
    code, labels = [], {}
    for line in text.splitlines():
        if match := re.match(r"\s*\.section\s+\.text\.(\w+)", line):
            code, labels = [], {}
            result[match[1]] = (code, labels)
        elif match := LABEL.match(line.strip()):
            labels[match[1]] = len(code)
        elif match := INSTRUCTION.search(line):
            code.append((int(match[1], 16), match[2], match[3], match[4]))
    return result


def is_load(opcode):
    return opcode.startswith(("LDG", "LD.E"))


def is_store(opcode):
    return opcode.startswith(("STG", "ST.E"))


def moved(code):
    return sum(width(opcode) for _, _, opcode, _ in code if is_load(opcode) or is_store(opcode) or opcode.startswith("LDGSTS"))


def in_flight(code):
    """Bytes that a thread loads at most before it uses the first of them."""
    most, waiting = 0, []
    for _, _, opcode, operands in code:
        if opcode.startswith("LDGSTS"):
            waiting.append((set(), width(opcode)))
        elif opcode.startswith("DEPBAR"):
            waiting = [load for load in waiting if load[0]]
        else:
            head, _, rest = operands.partition(",")
            used = registers(rest) if is_load(opcode) else registers(operands)
            for number in reversed(range(len(waiting))):
                if waiting[number][0] & used:
                    waiting = waiting[number + 1 :]
                    break
            if is_load(opcode):
                first = re.match(r"R(\d+)", head.strip())
                size = width(opcode)
                own = set(range(int(first[1]), int(first[1]) + max(1, size // 4))) if first else set()
                waiting.append((own, size))
        most = max(most, sum(size for _, size in waiting))
    return most


def figures(code, labels, kernel, used, shared):
    end = max((at for at, line in enumerate(code) if line[2] == "EXIT"), default=len(code) - 1) + 1
    code = code[:end]
    loops = []
    for at, (_, _, opcode, operands) in enumerate(code):
        label = re.search(r"\.L_\w+", operands)
        start = labels.get(label[0]) if opcode.startswith("BRA") and label else None
        if start is not None and start <= at:
            loops.append(code[start : at + 1])
    # Of loops in each other the inner ones, of these the one that moves most.
    part = max(loops, key=lambda loop: (moved(loop) / len(loop) ** 0.5, -len(loop)), default=[])
    hot = part if moved(part) * 2 > moved(code) or moved(part) >= 64 else code
    accesses = {"loads": {}, "stores": {}}
    for _, _, opcode, _ in code:
        name = "loads" if is_load(opcode) or opcode.startswith("LDGSTS") else "stores" if is_store(opcode) else None
        if name:
            accesses[name][width(opcode)] = accesses[name].get(width(opcode), 0) + 1
    threads = kernel["threads"]
    of_block = math.ceil(used / 8) * 8 * math.ceil(threads / 32) * 32
    blocks = min(THREADS // threads, REGISTERS // max(of_block, 1), BLOCKS, SHARED // max(shared + 1024, 1))
    bytes_moved = moved(hot)
    return {
        "instructions": len(hot),
        "bytes": bytes_moved,
        "in_flight": in_flight(code) * max(blocks, 1) * threads,
        **{name: dict(sorted(counts.items(), reverse=True)) for name, counts in accesses.items()},
    }


def read(kernel, nvrtc, disassembler, folder, number):
    cubin, log = nvrtc.compile(kernel["source"])
    path = pathlib.Path(folder) / f"{number}.cubin"
    path.write_bytes(cubin)
    text = subprocess.run([disassembler, "-c", str(path)], check=True, capture_output=True, text=True).stdout
    found = []
    for name, (code, labels) in functions(text).items():
        part = log.split(f"'{name}'", 1)[-1]
        used = int(re.search(r"Used (\d+) registers", part)[1])
        spills = re.search(r"(\d+) bytes spill stores", part)
        static = re.search(r"Used.*?(\d+) bytes smem", part.split("Compiling")[0], re.S)
        launched = re.search(r"shared_bytes=(\d+)", kernel["schedule"])
        shared = sum(int(match[1]) for match in (static, launched) if match)
        own = figures(code, labels, kernel, used, shared)
        found.append({"function": name, "registers": used, "spills": int(spills[1]) if spills else 0, **own})
    return {key: kernel[key] for key in ("workload", "number", "name", "schedule")} | {"functions": found}


def widths(counts):
    return " ".join(f"{width}×{count}" for width, count in counts.items()) or "–"


def per_16(function):
    return function["instructions"] / function["bytes"] * 16 if function["bytes"] else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the JSON of an earlier run: only what differs is printed, beside what it was")
    parser.add_argument("--out", default=str(TARGET / "sass-read.json"), help="where the figures go")
    parser.add_argument("--show", action="store_true", help="print the machine code instead")
    parser.add_argument("text", nargs="?", default=str(TARGET / "sass.json"))
    parser.add_argument("names", nargs="*", help="only workloads whose names contain one of these")
    options = parser.parse_args()
    kernels = json.loads(pathlib.Path(options.text).read_text())
    kernels = [kernel for kernel in kernels if not options.names or any(name in kernel["workload"] for name in options.names)]
    nvrtc, disassembler = Nvrtc(), nvdisasm()
    with tempfile.TemporaryDirectory() as folder:
        if options.show:
            for kernel in kernels:
                path = pathlib.Path(folder) / "kernel.cubin"
                path.write_bytes(nvrtc.compile(kernel["source"])[0])
                print(f"// {kernel['workload']}: {kernel['schedule']}\n{kernel['source']}")
                print(subprocess.run([disassembler, "-c", str(path)], check=True, capture_output=True, text=True).stdout)
            return
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(read, kernel, nvrtc, disassembler, folder, n) for n, kernel in enumerate(kernels)]
            results = [job.result() for job in jobs]
    pathlib.Path(options.out).write_text(json.dumps(results))
    if options.before:
        compare(json.loads(pathlib.Path(options.before).read_text()), results)
    else:
        table(results)


def table(results):
    print("| workload | schedule | per 16 B | issue | loads | stores | flight | regs | spills |")
    print("|---|---|--:|--:|---|---|--:|--:|--:|")
    for kernel in results:
        for function in kernel["functions"]:
            each = per_16(function)
            issue = f"{each / FREE:.2f}" if each else "–"
            print(
                f"| {kernel['workload']} | {kernel['schedule'].split('(')[0]} | {f'{each:.0f}' if each else '–'} | {issue} "
                f"| {widths(function['loads'])} | {widths(function['stores'])} | {function['in_flight'] / 1024:.0f} "
                f"| {function['registers']} | {function['spills']} |"
            )


def compare(before, results):
    old = {(kernel["workload"], kernel["number"], n): (kernel, function) for kernel in before for n, function in enumerate(kernel["functions"])}
    print("| workload | per 16 B | issue | loads | stores | flight | regs |")
    print("|---|---|---|---|---|---|---|")

    def change(a, b):
        return a if a == b else f"{a} → {b}"

    for kernel in results:
        for n, function in enumerate(kernel["functions"]):
            _, was = old.get((kernel["workload"], kernel["number"], n), (None, None))
            normal = lambda function: json.loads(json.dumps(function))
            if was is None or normal(was) == normal(function):
                continue
            a, b = per_16(was), per_16(function)
            number = lambda x, scale=1, digits=0: f"{x / scale:.{digits}f}" if x else "–"
            print(
                f"| {kernel['workload']} | {change(number(a), number(b))} | {change(number(a, FREE, 2), number(b, FREE, 2))} "
                f"| {change(widths(was['loads']), widths(function['loads']))} "
                f"| {change(widths(was['stores']), widths(function['stores']))} "
                f"| {change(number(was['in_flight'], 1024), number(function['in_flight'], 1024))} "
                f"| {change(was['registers'], function['registers'])} |"
            )


main()

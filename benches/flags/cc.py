#!/usr/bin/env python3
"""A C compiler for kernels that compares sets of flags. It compiles each text under every set; the kernel that it gives
calls the first set's code, and in its third and fourth call times all of them in turns, on the same arguments.

    LAZULI_CC="python3 $PWD/benches/flags/cc.py" LAZULI_CACHE_DIR=$(mktemp -d) RAYON_NUM_THREADS=1 \\
        cargo bench --bench never_loses -- --merges 0 --rounds 3
    benches/flags/report.py

Data go to `target/flags`, or `$FLAGS_DATA`; `sets` there, lines of a name and flags, replaces the sets below. Times are of
processors, so that other work on the machine makes fewer differences; kernels of all threads take turns.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

# The first is what kernels run as.
SETS = {
    "O2": "-O2 -fno-tree-vectorize",
    "O1": "-O1",
    "O1-gcse-schedule": "-O1 -fgcse -fschedule-insns2 -falign-loops",
}
# What stands for the set among the arguments: texts with other flags (loops for the vectoriser, long ones) are left alone.
CHOSEN = ["-O2", "-fno-tree-vectorize"]

DISPATCHER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef void (*function)(void* const*, long long, long long);
enum { COUNT = %(count)d };
static const char* const sets[COUNT] = {%(sets)s};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct state { int calls; function variants[COUNT]; };

static double microseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void load(const char* name, struct state* state) {
  for (int i = 0; i < COUNT; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%(folder)s/%%s.so", sets[i]);
    state->variants[i] = (function)dlsym(dlopen(path, RTLD_NOW), name);
  }
}

static void measure(const char* name, struct state* state, void* const* args, long long first, long long end) {
  double best[COUNT], total = 0;
  for (int i = 0; i < COUNT; i++) best[i] = 1e18;
  for (int round = 0; round < 200 && (round < 4 || total < 1e5); round++) {
    for (int i = 0; i < COUNT; i++) {
      const int set = (i + round) %% COUNT;
      const double start = microseconds();
      state->variants[set](args, first, end);
      const double taken = microseconds() - start;
      total += taken;
      if (taken < best[set]) best[set] = taken;
    }
  }
  char line[4096];
  int length = snprintf(line, sizeof line, "%(text)s %%s", name);
  for (int i = 0; i < COUNT; i++) length += snprintf(line + length, sizeof line - length, " %%s=%%.2f", sets[i], best[i]);
  line[length++] = '\\n';
  const int file = open("%(data)s/runs", O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (write(file, line, length) != length) perror("runs");
  close(file);
}

static void run(const char* name, struct state* state, void* const* args, long long first, long long end) {
  pthread_mutex_lock(&lock);
  if (!state->variants[0]) load(name, state);
  const int call = state->calls++;
  if (call == 2 || call == 3) measure(name, state, args, first, end);
  pthread_mutex_unlock(&lock);
  state->variants[0](args, first, end);
}
"""
FUNCTION = """
static struct state state_%(name)s;
void %(name)s(void* const* args, long long first, long long end) { run("%(name)s", &state_%(name)s, args, first, end); }
"""


def processor_ms(command: list[str]) -> float:
    """Runs a compiler, and ends this one as it does if it fails."""
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(1)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def main() -> None:
    arguments = sys.argv[1:]
    if "kernel.c" not in arguments or "-c" not in arguments or not set(CHOSEN) <= set(arguments):
        os.execvp("cc", ["cc", *arguments])
    data = Path(os.environ.get("FLAGS_DATA", Path(__file__).parents[2] / "target/flags"))
    sets = SETS
    if (data / "sets").exists():
        sets = dict(line.split(maxsplit=1) for line in (data / "sets").read_text().splitlines())
    text = Path("kernel.c").read_bytes()
    name = hashlib.sha1(text).hexdigest()[:12]
    folder = data / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.c").write_bytes(text)
    common = [word for word in arguments if word not in [*CHOSEN, "-c", "-pipe", "kernel.c", "-o", "kernel.o"]]
    with open(data / "compiles", "a") as compiles:
        for own, flags in sets.items():
            command = ["cc", *common, *flags.split(), "-S", "kernel.c", "-o", "variant.s"]
            least = min(processor_ms(command) for _ in range(2))
            subprocess.run(["cc", "-shared", "variant.s", "-o", folder / f"{own}.so", "-lm"], check=True)
            compiles.write(f"{name} {own}={least:.2f}\n")
    symbols = subprocess.check_output(["nm", "-D", "--defined-only", folder / f"{next(iter(sets))}.so"], text=True)
    functions = [line.split()[-1] for line in symbols.splitlines() if " T " in line]
    quoted = ", ".join(f'"{own}"' for own in sets)
    source = DISPATCHER % {"count": len(sets), "sets": quoted, "folder": folder, "text": name, "data": data}
    source += "".join(FUNCTION % {"name": function} for function in functions)
    Path("dispatcher.c").write_text(source)
    subprocess.run(["cc", "-O1", "-fPIC", "-w", "-c", "dispatcher.c", "-o", "kernel.o"], check=True)


main()

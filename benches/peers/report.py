"""The tables of a run, in Markdown."""

import statistics
from typing import Any

Run = dict[str, Any]
Result = dict[str, Any]


def duration(milliseconds: float) -> str:
    if milliseconds < 0.9995:
        return f"{milliseconds * 1e3:.3g} µs"
    return f"{milliseconds:.3g} ms" if milliseconds < 999.5 else f"{milliseconds / 1e3:.3g} s"


def table(header: list[str], rows: list[list[str]], left: int = 1) -> list[str]:
    """The first columns to the left, the others to the right."""
    rule = ["---"] * left + ["--:"] * (len(header) - left)
    return [f"| {' | '.join(cells)} |" for cells in [header, rule, *rows]]


def counted(count: int, noun: str, ending: str = "s") -> str:
    return f"{count} {noun}{'' if count == 1 else ending}"


class Tables:
    def __init__(self, run: Run):
        self.run = run
        self.conditions = run["conditions"]
        self.subject = run["subject"]
        self.results: dict[tuple[str, str], Result] = {(r["case"], r["system"]): r for r in run["results"]}
        measured = {system for _, system in self.results}
        # The subject first, then the others in the order they ran; what did not run is a note.
        names = [name for name in run["systems"] if name in measured]
        self.names = sorted(names, key=lambda name: name != self.subject)

    def text(self, picture: str | None = None) -> list[str]:
        lines = [f"## {self.title()}", "", *self.described(), ""]
        if picture:
            lines += [f"![The other systems' times over {self.subject}'s]({picture})", ""]
        lines += [*self.times("median_ms"), ""]
        if self.conditions["device"] == "cuda":
            lines += ["Wall time of a call, in batches that are waited for once:", "", *self.times("wall_ms"), ""]
        lines += ["### Systems", "", *self.systems(), "", "### Notes", ""]
        return lines + [f"- {note}" for note in self.notes()] + [""]

    def title(self) -> str:
        if self.conditions["device"] == "cuda":
            return "CUDA"
        return f"CPU, {counted(self.conditions['threads'], 'thread')}, malloc: {self.conditions['malloc']}"

    def described(self) -> list[str]:
        c = self.conditions
        place = f"{c['gpu']}; {c['processor']}" if c["gpu"] else c["processor"]
        copy = "not measured"
        if self.run["copy_gbps"]:
            low, high = self.run["copy_low_gbps"], self.run["copy_gbps"]
            copy = f"{high:.4g} GB/s read and written (readings from {low:.4g})"
        sampling = f"{c['seconds']} s of samples a case, " if c["device"] == "cpu" else ""
        lines = [
            f"{c['date']}; {place}, {counted(c['processors'], 'processor')}; load {c['load']:.2g} at the start; "
            f"commit {c['commit']}, Python {c['python']}; {sampling}{counted(c['passes'], 'pass', 'es')}. "
            f"Copy of memory: {copy}."
        ]
        if self.subject:
            lines += [
                "",
                f"Median time of a call, the fastest in bold. ×: the time of the fastest other system over that of "
                f"{self.subject}; above 1, {self.subject} is faster. First call and % of copy: {self.subject}'s.",
            ]
        return lines

    def timed(self, case: str, field: str) -> dict[str, float]:
        """The times of a case that count, by system."""
        found = {name: self.results.get((case, name), {}) for name in self.names}
        return {
            name: result[field] for name, result in found.items() if result.get("status") == "ok" and field in result
        }

    def times(self, field: str) -> list[str]:
        subject = self.subject if self.subject in self.names else None
        others = [name for name in self.names if name != subject]
        header = ["case", "MB"]
        header += [subject, "first call", "% of copy", "×"] if subject else ["% of copy"]
        rows = []
        for case, entry in self.run["cases"].items():
            counting = self.timed(case, field)
            rivals = [milliseconds for name, milliseconds in counting.items() if name != subject]
            fastest = min(counting.values(), default=None)
            own = counting.get(subject) if subject else fastest
            share = ""
            if own and entry.get("flops"):
                share = f"{entry['flops'] / own / 1e6:.0f} GFLOP/s"
            elif own and not entry["tiny"] and self.run["copy_gbps"]:
                share = f"{100 * entry['bytes'] / own / 1e6 / self.run['copy_gbps']:.0f}"
            row = [case, f"{entry['bytes'] / 1e6:.3g}"]
            if subject:
                first = self.results.get((case, subject), {}).get("first_ms")
                row += [self.cell(case, subject, field, fastest), duration(first) if first else "", share]
                row += [f"{min(rivals) / own:.2f}" if own and rivals else ""]
            else:
                row += [share]
            rows.append(row + [self.cell(case, name, field, fastest) for name in others])
        return table(header + others, rows)

    def cell(self, case: str, name: str, field: str, fastest: float | None) -> str:
        result = self.results.get((case, name))
        if result is None or result["status"] == "unsupported":
            return ""
        if result["status"] == "mismatch" and field in result:
            return f"{duration(result[field])} WRONG"
        if result["status"] != "ok":
            return result["status"]
        if field not in result:
            return ""
        text = duration(result[field]) + (" ~" if result.get("noisy") else "")
        return f"**{text}**" if result[field] == fastest else text

    def systems(self) -> list[str]:
        header = ["system", "version", "timer", "start", "first call: median", "longest", "cases", "others' cores"]
        rows = []
        for name in self.names:
            facts = self.run["systems"][name]
            own = [result for (_, system), result in self.results.items() if system == name]
            first = sorted((r["first_ms"], r["case"]) for r in own if "first_ms" in r)
            start, others = facts.get("start_s"), facts.get("others")
            timers = {r.get("timer", "wall") for r in own if "median_ms" in r}
            rows.append(
                [
                    name,
                    facts.get("version") or "",
                    ", ".join(sorted(timers)),
                    f"{start:.1f} s" if start is not None else "",
                    duration(statistics.median(time for time, _ in first)) if first else "",
                    f"{duration(first[-1][0])} ({first[-1][1]})" if first else "",
                    str(sum(result["status"] == "ok" for result in own)),
                    f"{others:.2g}" if others is not None else "",
                ]
            )
        return table(header, rows, left=3)

    def notes(self) -> list[str]:
        notes = []
        for name, facts in self.run["systems"].items():
            if facts["missing"]:
                notes.append(f"{name}: not measured. {facts['missing']}")
        absent: dict[tuple[str, str], int] = {}
        for (case, name), result in self.results.items():
            message = result.get("message", "")
            if result["status"] == "unsupported":
                absent[name, message] = absent.get((name, message), 0) + 1
            elif result["status"] != "ok":
                notes.append(f"{name}, {case}: {result['status']}. {message}")
        for (name, reason), count in absent.items():
            notes.append(f"{name}: blank for {counted(count, 'case')}" + (f": {reason}" if reason else "") + ".")
        timed = [result for result in self.run["results"] if "median_ms" in result]
        noisy = sum(bool(result.get("noisy")) for result in timed)
        notes.append(f"~: samples scatter by more than a quarter of the median ({noisy} of {len(timed)} figures).")
        if self.conditions["device"] == "cpu":
            notes += self.contention()
        else:
            walls = sorted({r["system"] for r in timed if r.get("timer") != "events"})
            if walls:
                notes.append(f"{', '.join(walls)}: no events; all their times are wall times.")
        return notes

    def contention(self) -> list[str]:
        """Systems that other processes took processors from."""
        spare = self.conditions["processors"] - self.conditions["threads"]
        cores = {name: self.run["systems"][name].get("others") or 0.0 for name in self.names}
        disturbed = [f"{name} ({others:.2g})" for name, others in cores.items() if others > spare + 0.2]
        notes = []
        if disturbed:
            notes.append(
                "Other processes kept more cores busy than this run leaves, so that times are too long: "
                + ", ".join(disturbed)
                + "."
            )
        if "numpy" in self.names and self.conditions["threads"] > 1:
            notes.append("numpy: one thread, whatever the number of threads.")
        return notes


def page(machine: str, runs: list[Run], pictures: list[str | None]) -> str:
    """All runs of a machine, and the files with their pictures."""
    lines = [
        f"# Beside other systems: {machine}",
        "",
        "Written by `benches/peers/run`. What is measured, and how to read it: `benches/peers/README.md`.",
        "",
    ]
    for run, picture in zip(runs, pictures):
        lines += Tables(run).text(picture)
    return "\n".join(lines).rstrip() + "\n"

#!/usr/bin/env python3
"""Tests of what the harness does around the measuring. They need no package, and take a few seconds."""

import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import cases
import machine
import processes
import record
import report
from processes import Outcome

# A program of the protocol that dies at the case `dies`, and waits for ever at `hangs`.
PROGRAM = """
import sys, time
names = sys.argv[sys.argv.index("--cases") + 1].split(",")
print('{"version": "1"}', flush=True)
for name in names:
    print("not a line of JSON")
    if name == "dies":
        sys.exit("a reason")
    if name == "hangs":
        time.sleep(600)
    print('{"case": "%s", "median_ms": 1.0}' % name, flush=True)
"""


def outcome_of(names: list[str], patience: float = 60) -> Outcome:
    return processes.run([sys.executable, "-c", PROGRAM], names, {}, patience)


class Processes(unittest.TestCase):
    def test_every_case_has_a_line(self):
        outcome = outcome_of(["a", "b"])
        self.assertEqual(outcome.results, {"a": {"median_ms": 1.0}, "b": {"median_ms": 1.0}})
        self.assertEqual(outcome.facts, {"version": "1"})

    def test_a_program_that_dies_loses_one_case(self):
        outcome = outcome_of(["a", "dies", "b"])
        self.assertEqual(outcome.results["dies"]["status"], "crash")
        self.assertIn("a reason", outcome.results["dies"]["message"])
        self.assertEqual([outcome.results[name]["median_ms"] for name in ("a", "b")], [1.0, 1.0])

    def test_a_program_that_hangs_loses_one_case(self):
        outcome = outcome_of(["a", "hangs", "b"], patience=2)
        self.assertIn("no result for 2 s", outcome.results["hangs"]["message"])
        self.assertIn("b", outcome.results)

    def test_a_program_that_never_reports_is_given_up(self):
        script = "import sys; sys.exit('no licence')"
        outcome = processes.run([sys.executable, "-c", script], ["a", "b", "c"], {}, 60)
        self.assertEqual([result["status"] for result in outcome.results.values()], ["crash"] * 3)

    def test_a_program_that_is_not_there_is_said_so(self):
        outcome = processes.run(["/nonexistent/program"], ["a"], {}, 60)
        self.assertIn("/nonexistent/program", outcome.missing or "")
        self.assertEqual(outcome.results, {})


class Turns(unittest.TestCase):
    def test_every_case_has_its_turn(self):
        chosen = cases.chosen("*")
        groups = cases.in_turns(chosen)
        self.assertEqual([case for group in groups for case in group], chosen)
        self.assertLess(max(map(len, groups)), len(chosen))


class Records(unittest.TestCase):
    def test_the_lower_median_and_the_first_first_call_count(self):
        passes = [
            {"status": "ok", "first_ms": 90.0, "median_ms": 2.0},
            {"status": "ok", "first_ms": 9.0, "median_ms": 1.0},
        ]
        expected = {"status": "ok", "first_ms": 90.0, "median_ms": 1.0, "pass_medians_ms": [2.0, 1.0]}
        self.assertEqual(record.combined(passes), expected)

    def test_what_went_wrong_once_went_wrong(self):
        passes: list[dict[str, Any]] = [{"status": "ok", "median_ms": 2.0}, {"status": "crash", "message": "why"}]
        self.assertEqual(record.combined(passes), {"status": "crash", "median_ms": 2.0, "message": "why"})

    def test_files_hold_what_was_saved_and_a_run_replaces_its_like(self):
        with tempfile.TemporaryDirectory() as folder:
            record.save([run()], Path(folder))
            [loaded] = record.load(Path(folder))
        self.assertEqual(loaded, record.rounded(run()))
        self.assertTrue(record.is_repeated(loaded, run()))
        loaded["conditions"]["threads"] = 1
        self.assertFalse(record.is_repeated(loaded, run()))


def run() -> dict[str, Any]:
    """Of our program and four others, one of which did not start, on two cases."""

    def passes(facts: dict[str, Any], **results: dict[str, Any]) -> list[Outcome]:
        return [Outcome(results, facts, copies=[40.0, 50.0], others=0.0)]

    def ok(milliseconds: float, **fields: Any) -> dict[str, Any]:
        return {"status": "ok", "first_ms": 100.0, "median_ms": milliseconds} | fields

    conditions = {
        "date": "2026-01-31 12:00",
        "device": "cpu",
        "threads": 2,
        "malloc": "keep",
        "seconds": 0.4,
        "passes": 1,
        "processor": "A Processor",
        "processors": 2,
        "gpu": None,
        "load": 0.0,
        "python": "3.11.0",
        "commit": "abc",
    }
    wrong = {"status": "mismatch", "first_ms": 1.0, "median_ms": 0.1, "message": "off"}
    outcomes = {
        "torch": passes({"version": "2", "start_s": 1.0}, large=ok(4.0, noisy=True), small=ok(0.01)),
        "jax": passes({"version": "3"}, large=wrong, small={"status": "crash", "message": "ended by signal 11"}),
        "numba": passes({"version": "4"}, large=ok(8.0), small={"status": "unsupported", "message": "a reason"}),
        "cupy": [Outcome(missing="ModuleNotFoundError: No module named 'cupy'")],
        "lazuli": passes({"version": "1"}, large=ok(2.0), small=ok(0.02), product=ok(20.0)),
    }
    entries = {
        "large": {"formula": "x*2", "dtype": "f32", "bytes": 80_000_000, "tiny": False, "flops": None},
        "small": {"formula": "x*2", "dtype": "f32", "bytes": 8_000, "tiny": True, "flops": None},
        "product": {"formula": "x@y", "dtype": "f32", "bytes": 8_000_000, "tiny": False, "flops": 4_000_000_000},
    }
    return record.made(conditions, "lazuli", entries, outcomes, [])


class Reports(unittest.TestCase):
    def setUp(self):
        self.text = report.page("a-machine", [run()], ["a.svg"])

    def test_times_compare_with_the_fastest_other_system_that_is_right(self):
        for line in [
            "| case | MB | lazuli | first call | % of copy | × | torch | jax | numba |",
            "| large | 80 | **2 ms** | 100 ms | 80 | 2.00 | 4 ms ~ | 100 µs WRONG | 8 ms |",
            "| small | 0.008 | 20 µs | 100 ms |  | 0.50 | **10 µs** | crash |  |",
            "| product | 8 | **20 ms** | 100 ms | 200 GFLOP/s |  |  |  |  |",
        ]:
            self.assertIn(line + "\n", self.text)

    def test_whatever_has_no_time_has_a_note(self):
        for note in [
            "- cupy: not measured. ModuleNotFoundError: No module named 'cupy'",
            "- jax, large: mismatch. off",
            "- jax, small: crash. ended by signal 11",
            "- numba: blank for 1 case: a reason.",
            "- ~: samples scatter by more than a quarter of the median (1 of 7 figures).",
        ]:
            self.assertIn(note + "\n", self.text)

    def test_a_picture_is_shown(self):
        self.assertIn("![The other systems' times over lazuli's](a.svg)\n", self.text)

    def test_a_run_without_our_program_shows_the_others(self):
        alone = run() | {"subject": None}
        text = "\n".join(report.Tables(alone).text())
        self.assertIn("| case | MB | % of copy | torch | jax | numba | lazuli |\n", text)

    def test_a_busy_machine_has_a_note(self):
        busy = run()
        busy["systems"]["torch"]["others"] = 1.25
        self.assertIn("times are too long: torch (1.2).", report.page("a-machine", [busy], [None]))

    def test_units_suit_the_magnitude(self):
        self.assertEqual(
            [report.duration(ms) for ms in (0.0042, 0.9999, 12.34, 4321)], ["4.2 µs", "1 ms", "12.3 ms", "4.32 s"]
        )


class Names(unittest.TestCase):
    def test_machines_have_short_names(self):
        for text, name in [
            ("Intel(R) Xeon(R) Processor", "intel-xeon"),
            ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", "intel-xeon-gold-6230"),
            ("AMD EPYC 9654 96-Core Processor", "amd-epyc-9654"),
            ("NVIDIA H200", "nvidia-h200"),
        ]:
            self.assertEqual(machine.slug(text), name)

    def test_patterns_choose_cases(self):
        names = [case.name for case in cases.chosen("softmax_1*,gelu_chain_1k")]
        self.assertEqual(names, ["gelu_chain_1k", "softmax_128x128"])
        with self.assertRaises(SystemExit):
            cases.chosen("softmax_*,nonsense")


if __name__ == "__main__":
    unittest.main()

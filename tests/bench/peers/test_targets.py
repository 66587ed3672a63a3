"""`serving_threads` and `scaling` with a command that says known times: a missed target ends them with 1 and is told.
Run by ctest; needs Python only."""

import io
import os
import re
import subprocess
import sys
import time
import unittest
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from unittest import mock

from made_up import HERE, CompareTest

LOOKUP = """#!{python}
import json, sys
words = dict(zip(sys.argv[3::2], sys.argv[4::2]))
tables = int(words["--tables"])
ids = tables * int(words["--batch"]) * int(words["--pooling"])
step = ids * (1 if tables < {slow_from} else 2)
times = {{name + "_ms_median": step for name in ("forward", "backward", "step")}}
print(json.dumps({{**times, "ids": ids, "create_ms": {milliseconds_of_table} * tables, "destroy_ms": 0}}))
"""


class Targets(CompareTest):
    def run_program(self, name, *arguments):
        words = [sys.executable, HERE.parent / name, "--ours", self.folder / "shardrec", *arguments]
        found = subprocess.run(words, capture_output=True, text=True, timeout=120)
        lines = found.stdout.splitlines()
        return found.returncode, {word: [x for x in lines if x.startswith(f"{word}: ")] for word in ("PASS", "FAIL", "SKIP")}

    def serving_threads(self, speedup, *arguments, cpu=2.0):
        more = {"step_ms_min": 100, "cpu_over_wall": cpu}
        rate = f'print("ready", flush=True)\nmore["rate_ms"] = 6 if sys.argv[-1] == "1" else 6 / {speedup}'
        self.program("shardrec", [1], more, extra=rate)
        return self.run_program("serving_threads", *arguments)

    def made_up_lookups(self, slow_from=10_000, milliseconds_of_table=0):
        text = LOOKUP.format(python=sys.executable, slow_from=slow_from, milliseconds_of_table=milliseconds_of_table)
        (self.folder / "shardrec").write_text(text)
        (self.folder / "shardrec").chmod(0o755)

    def scaling(self, *arguments, **made_up):
        self.made_up_lookups(**made_up)
        return self.run_program("scaling", *arguments)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "there is one processor only")
    def test_two_threads_that_are_not_fast_enough_fail(self):
        status, lines = self.serving_threads(1.79, "--rounds", "20")
        self.assertEqual(status, 1)
        self.assertEqual([len(lines[word]) for word in ("PASS", "FAIL", "SKIP")], [0, 4, 0])
        self.assertEqual(lines["FAIL"][0], "FAIL: two threads of lookup with 64 samples: 1.79 times one, at least 1.8")
        status, lines = self.serving_threads(1.81, "--rounds", "20")
        self.assertEqual((status, len(lines["PASS"])), (0, 4))

    def test_threads_that_shared_their_processors_are_not_judged(self):
        for arguments in (["--rounds", "19"], ["--quick"]):
            status, lines = self.serving_threads(9, *arguments)
            self.assertEqual([len(lines[word]) for word in ("PASS", "FAIL", "SKIP")], [0, 0, 4])
            self.assertEqual(status, 77)
        status, lines = self.serving_threads(9, "--rounds", "20", cpu=1.93)  # enough for one, not for two
        self.assertEqual((status, len(lines["SKIP"])), (77, 4))

    def swept(self, others_cpu, **made_up):
        """Status and lines of the sweep over tables, beside programs that use so many processors."""
        scaling = module_from_spec(spec_from_loader("scaling", SourceFileLoader("scaling", str(HERE.parent / "scaling"))))
        scaling.__loader__.exec_module(scaling)
        scaling.machine_cpu_seconds = lambda: scaling.own_cpu_seconds() + others_cpu * time.monotonic()
        self.made_up_lookups(**made_up)
        said = io.StringIO()
        words = ["scaling", "--ours", str(self.folder / "shardrec"), "--only", "tables", "--repeat", "1"]
        with redirect_stdout(said), mock.patch.object(sys, "argv", words):
            status = scaling.main()
        return status, [line for line in said.getvalue().splitlines() if re.match("PASS|FAIL|SKIP", line)]

    def test_ids_that_cost_more_in_many_tables_fail(self):
        target = "time per id over numbers of tables"
        self.assertEqual(
            self.swept(0.1, slow_from=512), (1, [f"FAIL: {target}: 2.00 times the best, at most 1.5"])
        )
        self.assertEqual(self.swept(0.1), (0, [f"PASS: {target}: 1.00 times the best, at most 1.5"]))

    def test_times_beside_other_programs_are_not_judged(self):
        status, (line,) = self.swept(0.5, slow_from=512)
        self.assertEqual(status, 77)
        self.assertIn("other programs used the processors in all runs of 1, 2, 4", line)

    def test_tables_that_take_long_to_make_fail_also_in_a_quick_run(self):
        status, lines = self.scaling("--quick", milliseconds_of_table=1.1)
        self.assertEqual((status, len(lines["FAIL"]), len(lines["SKIP"])), (1, 1, 2))
        self.assertIn("1.099 s more, at most 1", lines["FAIL"][0])
        status, lines = self.scaling("--quick", milliseconds_of_table=0.9)
        self.assertEqual((status, len(lines["PASS"]), len(lines["SKIP"])), (0, 1, 2))


if __name__ == "__main__":
    unittest.main()

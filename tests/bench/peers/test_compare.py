"""`compare` with programs that say known times: ratios, targets, failures. Run by ctest; needs Python only."""

import subprocess
import sys
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import rounds  # noqa: E402
from made_up import CompareTest  # noqa: E402
from served import Served  # noqa: E402

SPINNING = "print('ready', flush=True)\nimport threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()"


class Compare(CompareTest):
    def test_ratio_is_of_the_medians_of_all_rounds(self):
        self.program("tbe.py", [1, 10, 30, 20, 1000, 20])
        self.program("shardrec", [1, 5, 10, 5, 4, 8])
        result = self.compare("--only", "^forward: A$", "--threads", "2", "--rounds", "5")
        self.assertEqual(result.returncode, 0, result.stderr)
        (row,) = self.rows()
        self.assertEqual((row["other_ms"], row["ours_ms"], row["ratio"]), (20, 5, 4))
        self.assertEqual((row["lowest"], row["highest"]), (2, 250))
        self.assertEqual((row["target"], row["met"]), (1.9, True))
        self.assertEqual(len(row["ours_rounds"]), 5)
        self.assertIn("1 of 1 targets met", result.stdout)

    def test_a_missed_target_is_told_and_ends_with_1(self):
        self.program("tbe.py", [10])
        self.program("shardrec", [9])
        result = self.compare("--only", "^backward .* SGD: B$", "--threads", "1", "--quick", "--markdown")
        self.assertEqual(result.returncode, 1)
        self.assertIn("| backward + SGD | 1 | FBGEMM | 1.11 (9.00 ms) missed | ≥ 3 |", result.stdout)
        self.assertIn("0 of 1 targets met", result.stdout)

    def test_share_of_the_probed_bandwidth_is_that_of_the_measure(self):
        self.program("tbe.py", [10])
        shares = {"forward_share": 0.91, "update_share": 0.73, "backward_share": None}
        self.program("shardrec", [1], shares)
        result = self.compare("--only", "row-wise AdaGrad, uniform: A$|^forward: A$", "--threads", "2", "--quick")
        found = {row["work"].split(",")[0]: row["share"] for row in self.rows() if row["other"] == "FBGEMM"}
        self.assertEqual(
            found, {"forward: A": 0.91, "update alone": 0.73, "backward + row-wise AdaGrad": None}
        )
        self.assertRegex(result.stdout, r"(?m)^forward: A .* 0\.91 ")

    def test_both_sides_get_the_same_work(self):
        self.program("tbe.py", [10])
        self.program("shardrec", [1])
        self.compare("--only", "^backward .* AdaGrad, zipf.*D$", "--threads", "1", "--quick")
        theirs, ours = ((self.folder / f"{name}.log").read_text().split() for name in ("tbe.py", "shardrec"))
        self.assertEqual(ours, ["bench", "lookup", *theirs, "--serve"])
        self.assertEqual(theirs[theirs.index("--ids") + 1], "zipf:1.05")
        self.assertEqual(theirs[theirs.index("--tables") + 1], "64")

    def test_sides_with_different_work_are_not_compared(self):
        self.program("tbe.py", [10], {"ids": 1000, "unique_rows": 900})
        self.program("shardrec", [1], {"ids": 1000, "unique_rows": 800})
        result = self.compare("--only", "^forward: A$", "--threads", "2", "--quick")
        self.assertEqual(result.returncode, 1)
        self.assertIn("900 unique_rows in a step, ours 800", result.stderr)

    def test_geometric_mean_of_a_group(self):
        self.program("tbe.py", [40])
        self.program("shardrec", [10])
        result = self.compare(
            "--only", "^(backward|update).* row-wise AdaGrad, (uniform|zipf.*): B$", "--threads", "2", "--quick"
        )
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        means = [row for row in self.rows() if row["work"].startswith("mean of 2: ")]
        self.assertEqual([row["target"] for row in means], [2.2, 2.6])
        self.assertTrue(all(abs(row["ratio"] - 4) < 1e-9 and row["met"] for row in means))

    def test_processor_time_of_one_thread_is_at_most_its_time(self):
        self.program("tbe.py", [40])
        self.program("shardrec", [10], {"cpu_over_wall": 1.2})
        result = self.compare("--only", "^forward: A$", "--threads", "1", "--quick")
        self.assertEqual(result.returncode, 1)
        row = self.rows()[-1]
        self.assertEqual((row["ratio"], row["target"], row["at_most"], row["met"]), (1.2, 1.05, True, False))

    def test_a_program_that_dies_is_told_and_the_others_go_on(self):
        self.program("tbe.py", [10], dies=2)
        self.program("torchrec_step.py", [10])
        self.program("shardrec", [1])
        result = self.compare(
            "--only", "^forward: A$|step, tutorial: table-wise", "--threads", "2", "--quick"
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("the program has died", result.stderr)
        rows = {row["work"]: row for row in self.rows()}
        self.assertEqual(rows["forward: A"]["note"], "failed")
        self.assertTrue(rows["step, tutorial: table-wise"]["met"])

    def test_a_side_is_stopped_while_the_other_one_measures(self):
        self.program("polls", [7], extra=SPINNING)
        states = []

        class Busy:
            def round(self, steps):
                states.extend(fields[0] for _, fields in side._processes())

            def cpu_seconds(self):
                return 0.0

        with Served([self.folder / "polls"]) as side:
            side.wait_ready()
            rounds.Clock().round(Busy(), 1, stopped=side)
            self.assertEqual(states, ["T"])
            self.assertEqual(side.round(1)["step_ms_median"], 7)

    def test_others_on_the_processors_are_told(self):
        self.program("tbe.py", [10], lasts=0.1)  # processor time is told in ticks of 10 ms
        self.program("shardrec", [1], lasts=0.1)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            result = self.compare("--only", "^forward: A$", "--threads", "2", "--quick")
        finally:
            busy.kill()
            busy.wait()
        self.assertIn("not quiet", result.stdout)

    def test_another_build_of_ours_in_place_of_the_peers(self):
        self.program("before", [10])
        self.program("shardrec", [12])
        result = self.compare(
            "--against",
            self.folder / "before",
            "--only",
            "^update alone.*uniform: A$|^step over gloo.*row-wise",
            "--quick",
            "--threads",
            "2",
        )
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual([row["other"] for row in self.rows()], ["before"] * 2)
        for row in self.rows():
            self.assertAlmostEqual(row["ratio"], 10 / 12)
            self.assertEqual((row["target"], row["met"]), (0.97, False))
        logs = [(self.folder / f"{name}.log").read_text() for name in ("before", "shardrec")]
        self.assertEqual(logs[0], logs[1])
        self.assertEqual(len(logs[0].splitlines()), 2 * 3, "a start for each round")
        self.assertIn("--engine gloo", logs[0])

    def test_fused_updates_of_all_threads_beside_intels_extension(self):
        self.program("ipex.py", [10])
        self.program("shardrec", [8])
        result = self.compare("--only", "Intel's extension: [AD]$", "--quick")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        lines = [(row["work"].split(",")[0], row["threads"]) for row in self.rows()]
        self.assertEqual(lines, 2 * [("forward", 2), ("backward + SGD", 2)] + 2 * [("backward + AdaGrad", 2)])
        for row in self.rows():
            self.assertEqual((row["other"], row["ratio"], row["met"]), ("Intel's extension", 1.25, True))
        logs = [(self.folder / f"{name}.log").read_text().splitlines() for name in ("ipex.py", "shardrec")]
        self.assertEqual([f"bench lookup {theirs} --serve" for theirs in logs[0]], logs[1])
        self.assertIn("--optimizer adagrad --threads 2", logs[0][-1])

    def test_layers_of_processes_beside_ddp_and_fsdp(self):
        self.program("ddp_step.py", [26], {"parameters": 2100225})
        self.program("shardrec", [20], {"parameters": 2100225})
        result = self.compare("--only", "layers.*B=", "--quick", "--threads", "2", "--markdown")
        self.assertEqual(result.returncode, 1, "no time is saved by the overlap")
        for other in ("PyTorch DDP", "PyTorch FSDP2"):
            rows = [row for row in self.rows() if row["other"] == other]
            self.assertEqual([(row["ratio"], row["target"], row["met"]) for row in rows], 2 * [(1.3, 1.2, True)])
        self.assertIn("| B=64 | B=256 | wanted |", result.stdout)
        words = (self.folder / "shardrec.log").read_text().splitlines()
        peer = (self.folder / "ddp_step.py.log").read_text().splitlines()
        for number, batch in enumerate((128, 512)):
            theirs = f"--layers 512-1024-1024-512-1 --batch {batch} --ranks 2"
            self.assertEqual(peer[2 * number : 2 * number + 2], [theirs, f"{theirs} --dense fsdp"])
            common = f"bench dense {theirs} --engine gloo --threads 1 --serve"
            started = sorted(words[4 * number : 4 * number + 4])
            ours = ["--dense fsdp", "--overlap 0", "--overlap 1", "--overlap 1"]
            self.assertEqual(started, [f"{common} {each}" for each in ours])
        overlap = [row for row in self.rows() if row["other"] == "ours, without"]
        self.assertEqual([(row["ratio"], row["target"]) for row in overlap], [(1, 1.18), (1, None)])

    def test_names_that_match_nothing(self):
        self.program("shardrec", [1])
        self.assertEqual(self.compare("--only", "no such row").returncode, 2)

    def test_programs_that_do_not_fit_together_run_one_after_the_other(self):
        loader = SourceFileLoader("compare", str(HERE / "compare"))
        compare = module_from_spec(spec_from_loader("compare", loader))
        loader.exec_module(compare)
        self.program("tbe.py", [10])
        self.program("shardrec", [5])
        sys.argv = [
            "compare",
            "--ours",
            str(self.folder / "shardrec"),
            "--peers",
            str(self.folder),
            "--rounds-apart",
            "2",
            "--attempts",
            "1",
            "--seconds",
            "0.001",
            "--only",
            r"^backward \+ AdaGrad: C$",
            "--threads",
            "2",
        ]
        a = compare.parse()
        (pair,) = compare.chosen_pairs(a)
        self.assertEqual(pair.bytes, 10**7 * 2 * 4 * 128)
        for free, apart in ((2.2 * pair.bytes, False), (1.9 * pair.bytes, True)):
            rounds.available_bytes = lambda free=free: int(free) + 2 * rounds.SPARE_BYTES * (not apart)
            (row,) = rounds.run_pair(compare.Programs(a), pair, a)
            self.assertEqual((row.details["apart"], row.ratio), (apart, 2))
        starts = (self.folder / "shardrec.log").read_text().splitlines()
        self.assertEqual(len(starts), 1 + 2)
        rounds.available_bytes = lambda: pair.bytes
        with self.assertRaisesRegex(rounds.Failed, "MiB"):
            rounds.run_pair(compare.Programs(a), pair, a)


if __name__ == "__main__":
    unittest.main()

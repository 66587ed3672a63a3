"""`compare dlrm` with a command and a peer that say known speeds. Run by ctest; needs Python only."""

import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import dlrm  # noqa: E402
from made_up import CompareTest  # noqa: E402

# A command as `shardrec` is: train says the speed and the AUC of its engine, generate writes its file.
COMMAND = """#!{python}
import json, sys
def after(name): return sys.argv[sys.argv.index(name) + 1]
with open({log!r}, "a+") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
    log.seek(0)
    number = len(log.readlines())
if sys.argv[1] == "generate":
    for name in (after("--output"), after("--output") + ".meta.json"):
        open(name, "w").write(after("--rows"))
    sys.exit({generate})
engine = after("--engine")
if engine == {dies!r}:
    sys.exit("the training has died")
print("what is told to people")
auc = {aucs}.get((number, engine), 0.8021123796860352)
print(json.dumps({{"test_auc": auc, "samples_per_second": {speeds}[engine], "steps": 235}}))
"""
SPEEDS = {"local": 204800, "gloo": 153600, "mpi": 128000}  # 5, 6.67 and 8 ms a step


class CompareDlrm(CompareTest):
    def command(self, speeds=None, aucs=None, dies=None, generate=0):
        text = COMMAND.format(
            python=sys.executable,
            log=str(self.folder / "shardrec.log"),
            speeds=speeds or SPEEDS,
            aucs=aucs or {},
            dies=dies,
            generate=generate,
        )
        (self.folder / "shardrec").write_text(text)
        (self.folder / "shardrec").chmod(0o755)

    def dlrm(self, *arguments):
        return self.compare("dlrm", "--data", "clicks.tsv", *arguments)

    def ratios(self):
        return {
            (row["work"], row["other"]): (round(row["ratio"], 4), row["target"], row["met"])
            for row in self.rows()
        }

    def test_each_engine_is_held_against_torchrec_and_against_threads(self):
        self.program("torchrec_dlrm.py", [20])
        self.command()
        result = self.dlrm("--rounds", "3", "--markdown")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = self.ratios()
        for column in ("table-wise", "row-wise"):
            self.assertEqual(found[f"DLRM, local: {column}", "TorchRec"], (4, None, None))
            self.assertEqual(found[f"DLRM over gloo: {column}", "TorchRec"], (3, 2.5, True))
            self.assertEqual(found[f"DLRM over mpi: {column}", "TorchRec"], (2.5, 2.5, True))
            self.assertEqual(found[f"DLRM over gloo: {column}", "ours, local"], (0.75, 0.7, True))
            self.assertEqual(found[f"DLRM over mpi: {column}", "ours, local"], (0.625, None, None))
            self.assertEqual(found[f"{dlrm.AUC_LINE}: {column}", ""], (1, 1, True))
        self.assertIn("local 204,800, gloo 153,600, mpi 128,000, TorchRec 51,200", result.stdout)
        self.assertIn("test AUC 0.8021123796860352\n", result.stdout)
        self.assertIn("| DLRM over gloo | 2 | TorchRec | 3.00 (6.67 ms) | 3.00 (6.67 ms) | ≥ 2.5 |", result.stdout)
        self.assertIn("8 of 8 targets met", result.stdout)

    def test_rounds_run_in_turns_after_one_that_is_not_counted(self):
        self.program("torchrec_dlrm.py", [20, 30, 1000])
        self.command()
        self.assertEqual(self.dlrm("--rounds", "3", "--only", "row-wise").returncode, 0)
        log = (self.folder / "shardrec.log").read_text().splitlines()
        engines = [line.split("--engine ")[1].split()[0] for line in log]
        self.assertEqual(engines, ["local", *3 * dlrm.ENGINES])
        self.assertTrue(all("--sharding row_wise --ranks 2" in line and "--threads 1" in line for line in log))
        peer = (self.folder / "torchrec_dlrm.py.log").read_text().split()
        self.assertEqual(peer, ["--data", "clicks.tsv", "--sharding", "row_wise", "--steps", "235"])
        row = next(row for row in self.rows() if row["other"] == "TorchRec")
        self.assertEqual((row["other_ms"], row["ours_ms"]), (30, 5))
        self.assertEqual((row["lowest"], row["highest"]), (4, 200))

    def test_an_auc_that_differs_in_the_last_digit_fails_the_run(self):
        self.program("torchrec_dlrm.py", [20])
        self.command(aucs={(4, "mpi"): 0.8021123796860353})
        result = self.dlrm("--rounds", "2", "--only", "over gloo: table-wise")
        self.assertEqual(result.returncode, 1)
        row = self.rows()[-1]
        self.assertEqual(row["work"], f"{dlrm.AUC_LINE}: table-wise")
        self.assertAlmostEqual(row["ratio"], 5 / 6)
        self.assertFalse(row["met"])
        self.assertIn("test AUC 0.8021123796860352, 0.8021123796860353", result.stdout)

    def test_a_missed_target_ends_with_1(self):
        self.program("torchrec_dlrm.py", [16])
        self.command()
        result = self.dlrm("--rounds", "1", "--only", "table-wise")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.ratios()["DLRM over gloo: table-wise", "TorchRec"], (2.4, 2.5, False))

    def test_a_training_that_dies_is_told_and_the_other_sharding_goes_on(self):
        self.program("torchrec_dlrm.py", [20])
        self.command(dies="mpi")
        result = self.dlrm("--rounds", "1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("the training has died"), 2)
        self.assertTrue(all(row["note"] == "failed" for row in self.rows()))

    def test_sides_with_batches_of_other_sizes_are_not_compared(self):
        self.program("torchrec_dlrm.py", [20], {"samples": 512})
        self.command()
        result = self.dlrm("--rounds", "1", "--only", "table-wise")
        self.assertEqual(result.returncode, 1)
        self.assertIn("512 samples in a step, ours 1024", result.stderr)

    def test_a_log_is_generated_once(self):
        self.command()
        a = SimpleNamespace(data=None, rows=1000, ours=str(self.folder / "shardrec"))
        folder = self.folder / "logs"
        path = dlrm.click_log(a, folder)
        self.assertEqual(Path(path).read_text(), "1000")
        self.assertEqual(dlrm.click_log(a, folder), path)
        words = f"generate --rows 1000 --seed 1 --output {path}\n"
        self.assertEqual((self.folder / "shardrec.log").read_text(), words)
        Path(path + ".meta.json").unlink()  # the generator was ended early
        dlrm.click_log(a, folder)
        self.assertEqual((self.folder / "shardrec.log").read_text(), 2 * words)
        self.command(generate=3)
        a.rows = 2000
        with self.assertRaisesRegex(dlrm.Failed, "status 3"):
            dlrm.click_log(a, folder)

    def test_options_of_the_other_comparison_are_refused(self):
        self.command()
        for words in (["dlrm", "--against", "before"], ["--data", "clicks.tsv"]):
            self.assertEqual(self.compare(*words).returncode, 2, words)
        self.assertEqual(self.dlrm("--threads", "1").returncode, 2)


if __name__ == "__main__":
    unittest.main()

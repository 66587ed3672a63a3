"""`compare` of a scorer's lookups, with programs that say known times. Run by ctest; needs Python only."""

import unittest

from made_up import CompareTest


class Served(CompareTest):
    def test_lookups_are_held_against_fbgemm_with_the_same_work(self):
        self.program("tbe_served.py", [12])
        self.program("shardrec", [8])
        result = self.compare("--only", "^scorer lookup.*: B$", "--quick")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = [(row["work"], row["threads"], row["ratio"], row["target"]) for row in self.rows()]
        self.assertEqual(
            found, [("scorer lookup: B", 1, 1.5, 1.5), ("scorer lookup, 8-bit tables: B", 1, 1.5, 1.0)]
        )
        theirs, ours = (
            (self.folder / f"{name}.log").read_text().splitlines() for name in ("tbe_served.py", "shardrec")
        )
        common = "--table 26x100000x128 --batch 2048 --pooling 1"
        self.assertEqual(theirs, [f"{common} --dtype float32", f"{common} --dtype int8"])
        rest = "--threads 1 --batches 6 --serve"
        self.assertEqual(
            ours,
            [f"serve-bench {common} --calls lookup --tables {kept} {rest}" for kept in ("memory", "int8")],
        )

    def test_a_lookup_that_is_not_fast_enough_misses_its_target(self):
        self.program("tbe_served.py", [14])
        self.program("shardrec", [10])
        result = self.compare("--only", "^scorer lookup.*: D$", "--quick")
        self.assertEqual(result.returncode, 1)
        self.assertEqual([row["met"] for row in self.rows()], [False, True])

    def test_two_threads_are_held_against_one_by_their_rates(self):
        self.program("shardrec", [1], {"rate_ms": 3})
        result = self.compare("--only", "^scorer (lookup|predict), tables", "--quick")
        self.assertEqual(result.returncode, 1)  # both sides say the same
        self.assertEqual(
            [(row["column"], row["ratio"], row["target"]) for row in map(self.split, self.rows())],
            [("lookup B=64", 1, 1.8), ("lookup B=512", 1, 1.8), ("predict B=64", 1, 1.8), ("predict B=512", 1, 1.8)],
        )
        self.assertEqual({row["share"] for row in self.rows()}, {None})
        started = (self.folder / "shardrec.log").read_text().splitlines()
        self.assertEqual(sorted(words.split()[-1] for words in started), ["1"] * 4 + ["2"] * 4)
        self.assertTrue(all("--ids zipf:1.05" in words for words in started))

    @staticmethod
    def split(row):
        call, batch = row["work"].split()[1].rstrip(","), row["work"].split()[-1]
        return {**row, "column": f"{call} {batch}"}


if __name__ == "__main__":
    unittest.main()

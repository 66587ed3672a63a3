"""For tests of `compare`: programs that say known times in place of ours and of the peers."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

# A program as `shardrec bench --serve` and the peers are: round k (0: the one that is not counted) takes
# `milliseconds[k]`, the last one for ever.
PROGRAM = """#!{python}
import json, sys, time
milliseconds, more = {milliseconds}, {more}
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
print("[a line that means nothing]")
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    if number == {dies}:
        sys.exit("the program has died")
    ms = milliseconds[min(number, len(milliseconds) - 1)]
    time.sleep({lasts})
    keys = ("forward", "backward", "update", "step")
    print(json.dumps({{**{{key + "_ms_median": ms for key in keys}}, **more, "steps": int(line)}}), flush=True)
"""


class CompareTest(unittest.TestCase):
    """A folder with such programs, and `compare` with them."""

    def setUp(self):
        self._scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self._scratch.name)

    def tearDown(self):
        self._scratch.cleanup()

    def program(self, name, milliseconds, more=None, dies=-1, lasts=0, extra=None):
        text = PROGRAM.format(
            python=sys.executable,
            milliseconds=milliseconds,
            more=more or {},
            dies=dies,
            lasts=lasts,
            log=str(self.folder / f"{name}.log"),
        )
        if extra:
            text = text.replace('print("ready", flush=True)', extra)
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def compare(self, *arguments):
        words = [
            sys.executable,
            HERE / "compare",
            "--ours",
            self.folder / "shardrec",
            "--peers",
            self.folder,
            "--seconds",
            "0.001",
            "--json",
            self.folder / "found.json",
            "--attempts",
            "1",
            *arguments,
        ]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    def rows(self):
        return json.loads((self.folder / "found.json").read_text())["rows"]

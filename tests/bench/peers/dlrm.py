"""`compare dlrm`: a DLRM trained whole, by `shardrec train` on each engine and by TorchRec, in turns.

The model is that of `train --format criteo`: 26 tables of 16 columns, layers 13-64-16 below the interaction and
64-32-1 above it, global batches of 1,024, row-wise AdaGrad for the tables and Adam for the layers; two ranks of
one thread each on both sides. Ours is a run of the command a round, an epoch that reads and parses its data;
TorchRec is served, its data in memory, and trains as many steps. Milliseconds are of a step.
"""

import json
import re
import resource
import statistics
import subprocess

from report import Row
from rounds import Clock, Failed

BATCH = 1024
RANKS = 2
ENGINES = ("local", "gloo", "mpi")
SHARDINGS = ("table_wise", "row_wise")
BESIDE_TORCHREC = {"local": None, "gloo": 2.5, "mpi": 2.5}  # least ratios of times, TorchRec / ours
BESIDE_LOCAL = {"gloo": 0.7, "mpi": None}  # least ratios of samples per second, engine / local
AUC_LINE = "DLRM, runs with the AUC of the first"


def line_of(engine):
    return f"DLRM, {engine}" if engine == "local" else f"DLRM over {engine}"


def empty_rows(sharding):
    """The rows of one kind of sharding, before anything is measured."""
    column = sharding.replace("_", "-")

    def row(line, other, target):
        return Row(f"{line}: {column}", RANKS, other, target=target, line=line, column=column)

    return [
        *(row(line_of(engine), "TorchRec", target) for engine, target in BESIDE_TORCHREC.items()),
        *(row(line_of(engine), "ours, local", target) for engine, target in BESIDE_LOCAL.items()),
        row(AUC_LINE, "", 1),
    ]


def chosen_rows(a):
    """[(sharding, rows)] of those that --only and --threads leave; two ranks of one thread count as two.
    The AUC is checked with any of them."""

    def left(row):
        return not a.only or re.search(a.only, row.work, re.IGNORECASE)

    if str(RANKS) not in a.threads.split(","):
        return []
    chosen = []
    for sharding in SHARDINGS:
        rows = empty_rows(sharding)
        if any(map(left, rows)):
            chosen.append((sharding, [row for row in rows if left(row) or row.line == AUC_LINE]))
    return chosen


def click_log(a, folder):
    """The file that --data names, else 300,000 generated rows, the same in every run, kept in this folder."""
    if a.data:
        return a.data
    path = folder / f"clicks-{a.rows}.tsv"
    complete = path.with_name(path.name + ".meta.json")  # is written last
    if not (path.exists() and complete.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        words = [a.ours, "generate", "--rows", str(a.rows), "--seed", "1", "--output", str(path)]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failed(f"'{' '.join(words)}' ended with status {done.returncode}: {done.stderr.strip()}")
    return str(path)


class Training:
    """One way to train ours: a run of the command for each round. Speaks to a Clock as a served program does."""

    def __init__(self, command, data, sharding, engine):
        self.words = [command, "train", "--format", "criteo", "--data", data, "--sharding", sharding]
        self.words += ["--ranks", str(RANKS), "--engine", engine, "--threads", "1", "--batch", str(BATCH)]
        self.words += ["--epochs", "1", "--json"]

    def round(self, _=None):
        """What the command's line of JSON says, with the milliseconds of a step."""
        done = subprocess.run(self.words, capture_output=True, text=True)
        if done.returncode:
            told = done.stderr.strip()[-2000:]
            raise Failed(f"'{' '.join(self.words)}' ended with status {done.returncode}: {told}")
        found = json.loads(done.stdout.splitlines()[-1])
        return {**found, "step_ms": 1e3 * BATCH / found["samples_per_second"]}

    @staticmethod
    def cpu_seconds():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime


def run_rounds(programs, sharding, data, a):
    """[(processors that others used, TorchRec's milliseconds, {engine: what it said})], one for each round."""
    ours = {engine: Training(a.ours, data, sharding, engine) for engine in ENGINES}
    steps = ours["local"].round()["steps"]  # also brings the log into the file cache
    clock = Clock()
    with programs.peer("torchrec_dlrm.py", ["--data", data, "--sharding", sharding, "--steps", steps]) as other:
        other.wait_ready()
        while clock.quiet() < a.rounds and len(clock.rounds) < a.rounds * a.attempts:
            theirs = clock.round(other, 1)
            clock.keep(
                theirs, {engine: clock.round(run, 1, stopped=other) for engine, run in ours.items()}
            )
    if theirs.get("samples", BATCH) != BATCH:
        raise Failed(f"the other side has {theirs['samples']} samples in a step, ours {BATCH}")
    return clock.quietest(a.rounds), len(clock.rounds)


def fill(row, other, ours):
    """other, ours: milliseconds of each round."""
    ratios = [theirs / own for theirs, own in zip(other, ours)]
    row.other_ms, row.ours_ms = statistics.median(other), statistics.median(ours)
    row.ratio = row.other_ms / row.ours_ms
    row.lowest, row.highest = min(ratios), max(ratios)


def run_dlrm(programs, sharding, rows, data, a):
    """Fills the rows; returns a sentence with the samples per second and the AUC."""
    kept, run_count = run_rounds(programs, sharding, data, a)
    theirs = [other["step_ms_median"] for _, other, _ in kept]
    times = {engine: [own[engine]["step_ms"] for *_, own in kept] for engine in ENGINES}
    aucs = [own[engine]["test_auc"] for *_, own in kept for engine in ENGINES]
    by_line = {line_of(engine): engine for engine in ENGINES}
    for row in rows:
        if row.line == AUC_LINE:
            row.ratio = sum(auc == aucs[0] for auc in aucs) / len(aucs)
        else:
            other = theirs if row.other == "TorchRec" else times["local"]
            fill(row, other, times[by_line[row.line]])
        row.details = {
            "rounds_run": run_count,
            "others_cpu": max(others for others, *_ in kept),
            "other_rounds": [other for _, other, _ in kept],
            "ours_rounds": [own for *_, own in kept],
        }
    speeds = {**times, "TorchRec": theirs}
    told = ", ".join(
        f"{name} {1e3 * BATCH / statistics.median(of):,.0f}" for name, of in speeds.items()
    )
    found = ", ".join(repr(auc) for auc in sorted(set(aucs)))
    return f"samples/s: {told}; test AUC {found}"

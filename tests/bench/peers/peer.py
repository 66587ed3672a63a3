"""What the peers have in common: the arguments of a shape, batches that rotate, and rounds of steps.

A peer speaks as `shardrec bench --serve` does: it prints "ready", then for each line of its input, a
number of steps, one line of JSON with the medians of that round.
"""

import argparse
import gc
import json
import statistics
import sys

import numpy as np

BATCHES = 6  # that rotate, so that no step finds its rows in the cache
WARM_UP = 2
GRADIENT = 2.0**-10


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--table", action="append", default=[], help="TABLESxROWSxDIM, once for each size")
    p.add_argument("--tables", type=int, default=8)
    p.add_argument("--rows", type=int, default=1000000)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--batch", type=int, default=2048, help="samples of a step, of all ranks together")
    p.add_argument("--pooling", default="20", help="ids per bag: L or A..B")
    p.add_argument("--ids", default="uniform", help="uniform or zipf:EXPONENT")
    return p


def sizes_of(arguments):
    """[(rows, dim)] of the tables."""
    if not arguments.table:
        return [(arguments.rows, arguments.dim)] * arguments.tables
    sizes = []
    for text in arguments.table:
        count, rows, dim = (int(number) for number in text.split("x"))
        sizes += [(rows, dim)] * count
    return sizes


class Ids:
    """Draws ids of a table: uniform, or bounded Zipf with the frequent ones scattered."""

    def __init__(self, distribution, seed):
        self._random = np.random.default_rng(seed)
        self._exponent = 0.0 if distribution == "uniform" else float(distribution.removeprefix("zipf:"))
        self._rows = 0
        self._cumulative = None

    @staticmethod
    def work(parts):
        """Of [ids of a table] of all batches: means over the batches."""
        return {
            "ids": sum(ids.size for ids in parts) / BATCHES,
            "unique_rows": sum(np.unique(ids).size for ids in parts) / BATCHES,
        }

    def lengths(self, pooling, bags):
        least, _, most = pooling.partition("..")
        return self._random.integers(int(least), int(most or least) + 1, bags)

    def draw(self, rows, count):
        if not self._exponent:
            return self._random.integers(0, rows, count)
        if self._rows != rows:
            weights = np.arange(1, rows + 1, dtype=np.float64) ** -self._exponent
            self._cumulative = np.cumsum(weights)
            self._cumulative /= self._cumulative[-1]
            self._rows = rows
        rank = np.searchsorted(self._cumulative, self._random.random(count)).clip(0, rows - 1)
        return ((rank + 1) * 2654435761 + 12345) % rows


def serve(step, work, leader=True, next_round=None, gather=None, warm_up=WARM_UP):
    """Runs rounds of step(number) -> {name: seconds} until the input ends. work: ids and different rows
    of a step (Ids.work), for the other side of a comparison to see that it has the same.

    With several ranks, next_round(steps or None) tells all ranks what the leader read, and
    gather(times) returns those of all ranks, where each step is as long as its slowest rank.
    """
    for number in range(warm_up):
        step(number)
    gc.disable()
    if leader:
        print("ready", flush=True)
    while True:
        line = sys.stdin.readline() if leader else ""
        steps = int(line) if line.strip() else 0
        if next_round:
            steps = next_round(steps)
        if not steps:
            return
        gc.collect()  # between rounds, not in them
        times = [step(number) for number in range(steps)]
        ranks = gather(times) if gather else [times]
        if leader:
            print(json.dumps({**medians(ranks), **work}), flush=True)


def medians(ranks):
    result = {"steps": len(ranks[0])}
    for name in ranks[0][0]:
        slowest = [1e3 * max(rank[i][name] for rank in ranks) for i in range(len(ranks[0]))]
        result[f"{name}_ms_median"] = statistics.median(slowest)
        result[f"{name}_ms_min"] = min(slowest)
    return result

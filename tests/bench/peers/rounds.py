"""Runs the two programs of a pair in turn, A B A B, and sees who else used the processors meanwhile."""

import os
import time
from contextlib import nullcontext
from pathlib import Path

from report import measured_row
from served import Failed

SPARE_BYTES = 1 << 30  # of a program beside its tables: PyTorch, batches, gradients
QUIET = 0.15  # processors that others may use during a round
SAME_WORK = 0.03  # by how much ids and different rows of the two sides may differ


def available_bytes():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return 0


def machine_cpu_seconds():
    """Processor time that anything on this machine has used."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:8]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


class Clock:
    """Runs rounds, the other side stopped, and sees who else used the processors meanwhile."""

    def __init__(self):
        self.rounds = []  # (processors that others used, result of other, result of ours)
        self._others = self._wall = 0.0

    def round(self, busy, steps, stopped=None):
        with stopped.stopped() if stopped else nullcontext():
            before = self._now(busy)
            result = busy.round(steps)
            wall, machine, own = (now - then for now, then in zip(self._now(busy), before))
        self._wall += wall
        self._others += max(0.0, machine - own)
        return result

    def keep(self, other, ours):
        """Of the rounds since the last call."""
        self.rounds.append((self._others / self._wall, other, ours))
        self._others = self._wall = 0.0

    def quiet(self):
        return sum(others <= QUIET for others, *_ in self.rounds)

    def quietest(self, count):
        """In the order in which they ran."""
        limit = sorted(others for others, *_ in self.rounds)[:count][-1]
        return [entry for entry in self.rounds if entry[0] <= limit][:count]

    @staticmethod
    def _now(busy):
        return time.monotonic(), machine_cpu_seconds(), busy.cpu_seconds()


def steps_of(side, seconds):
    """Steps of a round of this length, by a first round that is not counted."""
    step = side.round(3)["step_ms_median"] / 1e3
    return max(5, min(2000, round(seconds / step)))


def run_together(programs, pair, a, clock, count):
    with programs.other(pair) as other, programs.ours(pair) as ours:
        other.wait_ready()
        ours.wait_ready()
        steps = steps_of(other, a.seconds), steps_of(ours, a.seconds)
        while clock.quiet() < count and len(clock.rounds) < count * a.attempts:
            clock.keep(clock.round(other, steps[0], stopped=ours), clock.round(ours, steps[1], stopped=other))


def run_apart(programs, pair, a, clock, count):
    def alone(start):
        with start(pair) as side:
            side.wait_ready()
            return clock.round(side, steps_of(side, a.seconds))

    while clock.quiet() < count and len(clock.rounds) < count * a.attempts:
        clock.keep(alone(programs.other), alone(programs.ours))


def check_same_work(theirs, own):
    """Ids are drawn at random on each side; their numbers agree closely, or the sides do different work."""
    for name in ("ids", "unique_rows", "parameters"):
        if name in theirs and name in own and abs(theirs[name] - own[name]) > SAME_WORK * own[name]:
            raise Failed(f"the other side has {theirs[name]:.0f} {name} in a step, ours {own[name]}")


def run_pair(programs, pair, a):
    need, there = 2 * (pair.bytes + SPARE_BYTES), available_bytes()
    if there and pair.bytes + SPARE_BYTES > there:
        raise Failed(f"needs {(pair.bytes + SPARE_BYTES) >> 20} MiB, {there >> 20} are free")
    too_large = there != 0 and need > there
    count = a.rounds_apart if too_large else a.rounds
    clock = Clock()
    (run_apart if too_large or a.against else run_together)(programs, pair, a, clock, count)
    kept = clock.quietest(count)
    rounds = [(theirs, own) for _, theirs, own in kept]
    check_same_work(*rounds[0])
    details = {
        "apart": too_large,
        "ours_words": pair.ours,
        "other_words": pair.other,
        "rounds_run": len(clock.rounds),
        "others_cpu": max(others for others, *_ in kept),
        "other_rounds": [theirs for theirs, _ in rounds],
        "ours_rounds": [own for _, own in rounds],
    }
    rows = []
    for measure in pair.measures:
        row = measured_row(measure, pair, rounds)
        row.details = details
        rows.append(row)
    return rows

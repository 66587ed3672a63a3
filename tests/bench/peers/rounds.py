"""Runs the two programs of a pair in turn, A B A B, and sees who else used the processors meanwhile."""

import os
import time
from pathlib import Path

from report import measured_row
from served import Failed

SPARE_BYTES = 1 << 30  # of a program beside its tables: PyTorch, batches, gradients
PAUSE = 0.03  # seconds, for threads of the other side that still wait actively
QUIET = 0.15  # processors that others may use during a round
IDLE = 0.05  # processors that the side that should sleep may use
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
    """Runs rounds, and sees who else used the processors meanwhile: the side that should sleep, and everybody else."""

    def __init__(self):
        self.rounds = (
            []
        )  # (seconds of processor time per second that nobody asked for, result of other, result of ours)
        self._idle = self._others = self._wall = 0.0

    def round(self, busy, steps, asleep=None):
        time.sleep(PAUSE)
        before = self._now(busy, asleep)
        result = busy.round(steps)
        wall, machine, own, slept = (now - then for now, then in zip(self._now(busy, asleep), before))
        self._wall += wall
        self._idle += slept
        self._others += max(0.0, machine - own - slept)
        return result

    def keep(self, other, ours):
        """Of the rounds since the last call."""
        self.rounds.append((self._others / self._wall, self._idle / self._wall, other, ours))
        self._idle = self._others = self._wall = 0.0

    def quiet(self):
        return sum(others <= QUIET for others, *_ in self.rounds)

    def quietest(self, count):
        """In the order in which they ran."""
        limit = sorted(others for others, *_ in self.rounds)[:count][-1]
        return [entry for entry in self.rounds if entry[0] <= limit][:count]

    @staticmethod
    def _now(busy, asleep):
        return (
            time.monotonic(),
            machine_cpu_seconds(),
            busy.cpu_seconds(),
            asleep.cpu_seconds() if asleep else 0.0,
        )


def steps_of(side, seconds):
    """Steps of a round of this length, by a first round that is not counted."""
    step = side.round(3)["step_ms_median"] / 1e3
    return max(5, min(2000, round(seconds / step)))


def run_together(programs, pair, a, clock):
    with programs.other(pair) as other, programs.ours(pair) as ours:
        other.wait_ready()
        ours.wait_ready()
        steps = steps_of(other, a.seconds), steps_of(ours, a.seconds)
        while clock.quiet() < a.rounds and len(clock.rounds) < a.rounds * a.attempts:
            clock.keep(clock.round(other, steps[0], asleep=ours), clock.round(ours, steps[1], asleep=other))


def run_apart(programs, pair, a, clock):
    def alone(start):
        with start(pair) as side:
            side.wait_ready()
            return clock.round(side, steps_of(side, a.seconds))

    while clock.quiet() < a.rounds_apart and len(clock.rounds) < a.rounds_apart * a.attempts:
        clock.keep(alone(programs.other), alone(programs.ours))


def check_same_work(theirs, own):
    """Ids are drawn at random on each side; their numbers agree closely, or the sides do different work."""
    for name in ("ids", "unique_rows"):
        if name in theirs and name in own and abs(theirs[name] - own[name]) > SAME_WORK * own[name]:
            raise Failed(f"the other side has {theirs[name]:.0f} {name} in a step, ours {own[name]}")


def run_pair(programs, pair, a):
    need, there = 2 * (pair.bytes + SPARE_BYTES), available_bytes()
    if there and pair.bytes + SPARE_BYTES > there:
        raise Failed(f"needs {(pair.bytes + SPARE_BYTES) >> 20} MiB, {there >> 20} are free")
    apart = there != 0 and need > there
    clock = Clock()
    (run_apart if apart else run_together)(programs, pair, a, clock)
    kept = clock.quietest(a.rounds_apart if apart else a.rounds)
    rounds = [(theirs, own) for _, _, theirs, own in kept]
    check_same_work(*rounds[0])
    details = {
        "apart": apart,
        "ours_words": pair.ours,
        "other_words": pair.other,
        "rounds_run": len(clock.rounds),
        "others_cpu": max(others for others, *_ in kept),
        "idle_cpu": max(idle for _, idle, *_ in kept),
        "other_rounds": [theirs for theirs, _ in rounds],
        "ours_rounds": [own for _, own in rounds],
    }
    rows = []
    for measure in pair.measures:
        row = measured_row(measure, pair, rounds)
        row.details = details
        rows.append(row)
    return rows

"""The table of a comparison: one row for each measure, aligned or as Markdown."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Row:
    work: str
    threads: int
    other: str = ""
    other_ms: float | None = None
    ours_ms: float | None = None
    ratio: float | None = None
    lowest: float | None = None  # ratio of a round
    highest: float | None = None
    target: float | None = None
    at_most: bool = False  # the target is an upper bound
    group: str | None = None
    note: str = ""
    details: dict = field(default_factory=dict)

    @property
    def met(self):
        """None where there is no target, or nothing was measured."""
        if self.target is None or self.ratio is None:
            return None
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


def measured_row(measure, pair, rounds):
    """rounds: [(other, ours)], what the two sides said in each round."""
    other = [theirs[measure.key_of_other] for theirs, _ in rounds]
    ours = [own[measure.key] for _, own in rounds]
    other_ms, ours_ms = statistics.median(other), statistics.median(ours)
    ratios = [theirs / own for theirs, own in zip(other, ours)]
    return Row(
        measure.name,
        pair.threads,
        pair.other_name,
        other_ms,
        ours_ms,
        other_ms / ours_ms,
        min(ratios),
        max(ratios),
        measure.target,
        group=measure.group,
    )


def mean_name(group, count):
    return f"mean of {count}: {group}"


def group_rows(rows, targets):
    """Geometric means of the groups, for each number of threads."""
    result = []
    for group, target in targets.items():
        for threads in sorted({row.threads for row in rows if row.group == group}, reverse=True):
            ratios = [
                row.ratio for row in rows if row.group == group and row.threads == threads and row.ratio
            ]
            if len(ratios) > 1:
                result.append(
                    Row(
                        mean_name(group, len(ratios)),
                        threads,
                        "geometric",
                        ratio=statistics.geometric_mean(ratios),
                        lowest=min(ratios),
                        highest=max(ratios),
                        target=target if threads == 2 else None,
                    )
                )
    return result


HEADER = ("work", "threads", "beside", "its ms", "ours ms", "ratio", "rounds", "target", "met")


def cells(row):
    def number(value, digits=2):
        return "" if value is None else f"{value:.{digits}f}"

    span = "" if row.lowest is None else f"{row.lowest:.2f}..{row.highest:.2f}"
    target = "" if row.target is None else f"{'≤' if row.at_most else '≥'} {row.target:g}"
    met = {None: row.note, True: "yes", False: "no"}[row.met]
    return (
        row.work,
        str(row.threads),
        row.other,
        number(row.other_ms),
        number(row.ours_ms),
        number(row.ratio),
        span,
        target,
        met,
    )


def widths(rows):
    return [max(len(line[i]) for line in (HEADER, *map(cells, rows))) for i in range(len(HEADER))]


def aligned(line, width):
    left = (0, 2)  # columns of words
    return "  ".join(
        text.ljust(w) if i in left else text.rjust(w) for i, (text, w) in enumerate(zip(line, width))
    ).rstrip()


def markdown_table(rows):
    rule = ["---" if i in (0, 2) else "---:" for i in range(len(HEADER))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (HEADER, rule, *map(cells, rows)))

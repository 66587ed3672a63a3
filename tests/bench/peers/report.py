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
    share: float | None = None  # of the probed bandwidth, ours
    target: float | None = None
    at_most: bool = False  # the target is an upper bound
    group: str | None = None
    note: str = ""
    line: str = ""  # work is line and column
    column: str = ""
    details: dict = field(default_factory=dict)

    @property
    def met(self):
        """None where there is no target, or nothing was measured."""
        if self.target is None or self.ratio is None:
            return None
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


def row_of(measure, pair, **results):
    return Row(
        measure.name,
        pair.threads,
        pair.other_name,
        target=measure.target,
        group=measure.group,
        line=measure.line,
        column=measure.column,
        **results,
    )


def measured_row(measure, pair, rounds):
    """rounds: [(other, ours)], what the two sides said in each round."""
    other = [theirs[measure.key_of_other] for theirs, _ in rounds]
    ours = [own[measure.key] for _, own in rounds]
    other_ms, ours_ms = statistics.median(other), statistics.median(ours)
    ratios = [theirs / own for theirs, own in zip(other, ours)]
    shares = [own.get(measure.key.removesuffix("_ms_median") + "_share") for _, own in rounds]
    return row_of(
        measure,
        pair,
        other_ms=other_ms,
        ours_ms=ours_ms,
        ratio=other_ms / ours_ms,
        lowest=min(ratios),
        highest=max(ratios),
        share=None if None in shares else statistics.median(shares),
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


HEADER = ("work", "threads", "beside", "its ms", "ours ms", "ratio", "rounds", "share", "target", "met")


def target_of(row):
    return "" if row.target is None else f"{'≤' if row.at_most else '≥'} {row.target:g}"


def cells(row):
    def number(value, digits=2):
        return "" if value is None else f"{value:.{digits}f}"

    span = "" if row.lowest is None else f"{row.lowest:.2f}..{row.highest:.2f}"
    target = target_of(row)
    met = {None: row.note, True: "yes", False: "no"}[row.met]
    return (
        row.work,
        str(row.threads),
        row.other,
        number(row.other_ms),
        number(row.ours_ms),
        number(row.ratio),
        span,
        number(row.share),
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


def kind_of(column):
    """Of what a column of the report is: shapes have one letter, batches are B=SAMPLES."""
    return "shape" if len(column) == 1 else column and ("batch" if "=" in column else "sharding")


def markdown(rows):
    """A table for each set of columns: ratios, the milliseconds of ours, and the least ratios wanted."""
    tables = {}
    for row in rows:
        columns = tables.setdefault(kind_of(row.column), {})
        columns.setdefault((row.line or row.work, row.threads, row.other), {})[row.column] = row
    texts = []
    for lines in tables.values():
        columns = list(dict.fromkeys(column for line in lines.values() for column in line))
        table = [("work", "threads", "beside", *(column or "ratio" for column in columns), "wanted")]
        table.append(("---", "---:", "---", *("---:" for _ in columns), "---"))
        for (work, threads, other), line in lines.items():
            results = [markdown_cell(line.get(column)) for column in columns]
            table.append((work, str(threads), other, *results, markdown_targets(line)))
        texts.append("\n".join("| " + " | ".join(line) + " |" for line in table))
    return "\n\n".join(texts)


def markdown_cell(row):
    if row is None or row.ratio is None:
        return row.note if row else ""
    ours = f" ({row.ours_ms:.2f} ms)" if row.ours_ms is not None else ""
    return f"{row.ratio:.2f}{ours}" + (" missed" if row.met is False else "")


def markdown_targets(line):
    texts = {column: target_of(row) for column, row in line.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{column} {text}" for column, text in texts.items() if text)

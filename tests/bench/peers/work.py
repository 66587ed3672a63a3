"""What is compared, and what it shall show: pairs of programs that run the same work in turn.

A pair gives several rows of the report: forward, backward and update come out of the same rounds.
"""

from dataclasses import dataclass, field, replace

# tables, rows, columns, samples, ids per bag
SHAPES = {
    "A": (8, 1000000, 64, 2048, 20),
    "B": (26, 100000, 128, 2048, 1),
    "C": (1, 10000000, 128, 8192, 50),
    "D": (64, 200000, 32, 512, 10),
}
# of all tables together, 2 ranks
MODELS = {
    "tutorial": [(2, 4096, 64), (2, 1024, 64)],
    "T=26 E=1e5 D=64": [(26, 100000, 64)],
}
# widths of a stack of layers; samples of each of the ranks
LAYERS = "512-1024-1024-512-1"
SAMPLES_PER_RANK = (64, 256)
RANKS = 2
STATES = {"sgd": 0, "rowwise_adagrad": 0, "adagrad": 1, "adam": 2}  # matrices of optimizer state
DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
NAMES = {"sgd": "SGD", "rowwise_adagrad": "row-wise AdaGrad", "adagrad": "AdaGrad", "adam": "Adam"}


@dataclass(frozen=True)
class Measure:
    line: str  # what is done
    column: str  # to which tables
    key: str  # milliseconds of both sides, in their JSON
    target: float | None = None  # least ratio of medians, other side / ours
    other_key: str | None = None  # where it differs
    group: str | None = None  # rows of a group have a geometric mean

    @property
    def name(self):
        return f"{self.line}: {self.column}"

    @property
    def key_of_other(self):
        return self.other_key or self.key


@dataclass
class Pair:
    ours: list  # arguments of the shardrec command
    other: list  # program and arguments; program: tbe.py, tbe_served.py, ipex.py, torchrec_step.py, ddp_step.py or shardrec
    other_name: str
    threads: int
    bytes: int  # of the tables and states of one side
    measures: list = field(default_factory=list)


def lookup_arguments(shape, optimizer, ids, dtype, threads):
    tables, rows, dim, batch, pooling = SHAPES[shape]
    return [
        "--tables",
        tables,
        "--rows",
        rows,
        "--dim",
        dim,
        "--batch",
        batch,
        "--pooling",
        pooling,
        "--ids",
        ids,
        "--dtype",
        dtype,
        "--optimizer",
        optimizer,
        "--threads",
        threads,
    ]


def table_bytes(shape, optimizer, dtype):
    tables, rows, dim = SHAPES[shape][:3]
    state = 4 * dim * STATES[optimizer] + (4 if optimizer == "rowwise_adagrad" else 0)
    return tables * rows * (DTYPE_BYTES[dtype] * dim + state)


def lookup_pair(shape, optimizer, threads, measures, ids="uniform", dtype="float32"):
    arguments = lookup_arguments(shape, optimizer, ids, dtype, threads)
    return Pair(
        ["bench", "lookup", *arguments, "--serve"],
        ["tbe.py", *arguments],
        "PyTorch" if optimizer == "adam" else "FBGEMM",
        threads,
        table_bytes(shape, optimizer, dtype),
        measures,
    )


def rowwise_adagrad(shape, threads):
    forward = {2: dict(A=1.9, B=2.1, C=2.1, D=2.3), 1: dict(A=1.5, B=2.4, C=2.1, D=2.3)}[threads][shape]
    for ids in ("uniform", "zipf:1.05"):
        backward, update = "backward + row-wise AdaGrad", "update alone, row-wise AdaGrad"
        measures = [
            Measure(
                f"{backward}, {ids}", shape, "backward_ms_median", {2: 1.8, 1: 1.6}[threads], group=backward
            ),
            Measure(
                f"{update}, {ids}", shape, "update_ms_median", other_key="backward_ms_median", group=update
            ),
        ]
        if ids == "uniform":
            measures.insert(0, Measure("forward", shape, "forward_ms_median", forward))
        yield lookup_pair(shape, "rowwise_adagrad", threads, measures, ids)


def backward(shape, optimizer, threads, target, dtype="float32"):
    tables = "" if dtype == "float32" else ", fp16 tables"
    measure = Measure(f"backward + {NAMES[optimizer]}{tables}", shape, "backward_ms_median", target)
    return lookup_pair(shape, optimizer, threads, [measure], dtype=dtype)


def intel_extension_pair(shape, optimizer):
    """Its fused updates run on all threads; FBGEMM's with SGD and AdaGrad do not."""
    beside = "beside Intel's extension"
    backward = f"backward + {NAMES[optimizer]}, {beside}"
    measures = [Measure(backward, shape, "backward_ms_median", INTEL_TARGET)]
    if optimizer == "sgd":
        measures.insert(0, Measure(f"forward, {beside}", shape, "forward_ms_median", INTEL_TARGET))
    pair = lookup_pair(shape, optimizer, 2, measures)
    return replace(pair, other=["ipex.py", *pair.other[1:]], other_name="Intel's extension")


def bfloat16_forward(shape):
    full = lookup_arguments(shape, "rowwise_adagrad", "uniform", "float32", 2)
    half = lookup_arguments(shape, "rowwise_adagrad", "uniform", "bfloat16", 2)
    dim = SHAPES[shape][2]
    target = 1.4 if 4 * dim > 128 else None  # of rows of more than 128 bytes
    return Pair(
        ["bench", "lookup", *half, "--output-dtype", "bfloat16", "--serve"],
        ["shardrec", "bench", "lookup", *full, "--serve"],
        "ours, fp32",
        2,
        table_bytes(shape, "rowwise_adagrad", "float32"),
        [Measure("forward, bf16 tables and outputs", shape, "forward_ms_median", target)],
    )


def served_arguments(shape):
    tables, rows, dim, batch, pooling = SHAPES[shape]
    return ["--table", f"{tables}x{rows}x{dim}", "--batch", batch, "--pooling", pooling]


def served_pair(shape, dtype):
    """A scorer's lookups beside those of FBGEMM's tables for inference: one thread each."""
    line, target = {
        "float32": ("scorer lookup", SERVED_TARGET),
        "int8": ("scorer lookup, 8-bit tables", SERVED_INT8_TARGET),
    }[dtype]
    arguments = served_arguments(shape)
    ours = ["serve-bench", *arguments, "--calls", "lookup", "--tables", "int8" if dtype == "int8" else "memory"]
    return Pair(
        [*ours, "--threads", 1, "--batches", 6, "--serve"],
        ["tbe_served.py", *arguments, "--dtype", dtype],
        "FBGEMM",
        1,
        table_bytes(shape, "sgd", "float32"),
        [Measure(line, shape, "step_ms_median", target)],
    )


def served_threads_arguments(call, batch, tables=None):
    """Of the shardrec command; the number of threads follows."""
    arguments = ["--table", tables or SERVED_TABLES, "--batch", batch, "--batches", 16]
    arguments += ["--pooling", "1..20", "--ids", "zipf:1.05"]
    return ["serve-bench", *arguments, "--calls", call, "--serve", "--threads"]


def served_threads_pair(call, batch):
    """Samples per second of two threads beside those of one, of one scorer."""
    arguments = served_threads_arguments(call, batch)
    count, rows, dim = (int(number) for number in SERVED_TABLES.split("x"))
    return Pair(
        [*arguments, 2],
        ["shardrec", *arguments, 1],
        "ours, 1 thread",
        2,
        count * rows * 4 * dim,
        [Measure(f"scorer {call}, tables {SERVED_TABLES}", f"B={batch}", "rate_ms", LEAST_BY_THREADS)],
    )


def served_pairs():
    for dtype in ("float32", "int8"):
        for shape in SHAPES:
            yield served_pair(shape, dtype)
    for call, batch in SERVED_CALLS:
        yield served_threads_pair(call, batch)


def step_arguments(model, sharding):
    sizes = [word for count, rows, dim in MODELS[model] for word in ("--table", f"{count}x{rows}x{dim}")]
    return [*sizes, "--batch", 4096, "--pooling", "1..10", "--ranks", 2, "--sharding", sharding]


def step_pairs(model):
    targets = {"tutorial": (3, 4, 3, 2), "T=26 E=1e5 D=64": (2.5, 3.5, 3, 20)}[model]
    size = sum(count * rows * (4 * dim + 4) for count, rows, dim in MODELS[model])
    for sharding, target in zip(("table_wise", "row_wise", "column_wise", "data_parallel"), targets):
        arguments = step_arguments(model, sharding)
        ours = ["bench", "step", *arguments, "--threads", 1, "--row-statistics", "shard", "--serve"]
        measures = [Measure(f"step, {model}", sharding.replace("_", "-"), "step_ms_median", target)]
        yield Pair(ours, ["torchrec_step.py", *arguments], "TorchRec", 2, size, measures)
    arguments = ["bench", "step", *step_arguments(model, "column_wise"), "--threads", 1, "--serve"]
    yield Pair(
        [*arguments, "--row-statistics", "row"],
        ["shardrec", *arguments, "--row-statistics", "shard"],
        "ours, shard",
        2,
        size,
        [Measure(f"step, statistics of the row, {model}", "column-wise", "step_ms_median", 0.8)],
    )


def process_step_pairs():
    """Ranks as processes on both sides."""
    model = "T=26 E=1e5 D=64"
    size = sum(count * rows * (4 * dim + 4) for count, rows, dim in MODELS[model])
    for engine, targets in (("gloo", (2.5, 2.5, 2.5)), ("mpi", (2.5, 2.5, 2.5))):
        for sharding, target in zip(("table_wise", "row_wise", "column_wise"), targets):
            arguments = step_arguments(model, sharding)
            ours = ["bench", "step", *arguments, "--threads", 1, "--row-statistics", "shard", "--serve"]
            measures = [Measure(f"step over {engine}, {model}", sharding.replace("_", "-"), "step_ms_median", target)]
            yield Pair(
                [*ours, "--engine", engine], ["torchrec_step.py", *arguments], "TorchRec", 2, size, measures
            )


def dense_arguments(samples):
    return ["--layers", LAYERS, "--batch", RANKS * samples, "--ranks", RANKS]


def dense_pairs():
    """Layers trained data-parallel by processes on both sides."""
    widths = [int(width) for width in LAYERS.split("-")]
    weights = sum((inputs + 1) * outputs for inputs, outputs in zip(widths, widths[1:]))
    for samples in SAMPLES_PER_RANK:
        arguments = dense_arguments(samples)
        ours = ["bench", "dense", *arguments, "--engine", "gloo", "--threads", 1, "--serve", "--overlap"]
        line, column, size = f"step over gloo, layers {LAYERS}", f"B={samples}", 3 * 4 * weights
        beside_ddp = Measure(line, column, "step_ms_median", 1.2)
        yield Pair([*ours, 1], ["ddp_step.py", *arguments], "PyTorch DDP", 2, size, [beside_ddp])
        sharded = ["bench", "dense", *arguments, "--engine", "gloo", "--threads", 1, "--serve", "--dense", "fsdp"]
        beside_fsdp = Measure(f"sharded {line}", column, "step_ms_median", 1.2)
        yield Pair(sharded, ["ddp_step.py", *arguments, "--dense", "fsdp"], "PyTorch FSDP2", 2, size, [beside_fsdp])
        overlap = Measure(f"overlap, {line}", column, "step_ms_median", LEAST_BY_OVERLAP if samples == 64 else None)
        yield Pair([*ours, 1], ["shardrec", *ours, 0], "ours, without", 2, size, [overlap])


def all_pairs():
    """In the order of the report. Steps: two ranks of one thread each count as two threads."""
    for threads in (2, 1):
        for shape in SHAPES:
            yield from rowwise_adagrad(shape, threads)
    for optimizer, dtype, targets in (
        ("sgd", "float32", {2: 5, 1: 3}),
        ("adagrad", "float32", {2: 10, 1: 5}),
        ("rowwise_adagrad", "float16", {2: 9, 1: 5}),
        ("adam", "float32", {2: 10}),
    ):
        for threads, target in targets.items():
            for shape in SHAPES:
                yield backward(shape, optimizer, threads, target, dtype)
    for optimizer in ("sgd", "adagrad"):
        for shape in SHAPES:
            yield intel_extension_pair(shape, optimizer)
    for shape in SHAPES:
        yield bfloat16_forward(shape)
    yield from served_pairs()
    for model in MODELS:
        yield from step_pairs(model)
    yield from process_step_pairs()
    yield from dense_pairs()


def pairs_against_ours():
    """The same work by another build of ours: no line may become slower."""
    for pair in all_pairs():
        if pair.other[0] in ("shardrec", "ipex.py"):
            continue  # two settings of one build; the same work as beside FBGEMM
        measures = [
            replace(measure, target=LEAST_AGAINST_OURS, other_key=None, group=None) for measure in pair.measures
        ]
        yield replace(pair, other=["shardrec", *pair.ours], other_name="before", measures=measures)


# Least ratio beside another build of ours.
LEAST_AGAINST_OURS = 0.97
# Least ratio of a step without overlap to one with it: 0.85 of the time.
LEAST_BY_OVERLAP = 1.18
# Least ratio beside Intel's extension for PyTorch.
INTEL_TARGET = 1.0
# Least ratios of a scorer's lookups beside FBGEMM's, and of two of its threads to one.
SERVED_TARGET = 1.5
SERVED_INT8_TARGET = 1.0
SERVED_TABLES = "26x100000x64"
SERVED_CALLS = [(call, batch) for call in ("lookup", "predict") for batch in (64, 512)]
LEAST_BY_THREADS = 1.8
# Least geometric means of groups of rows with 2 threads.
GROUP_TARGETS = {"backward + row-wise AdaGrad": 2.2, "update alone, row-wise AdaGrad": 2.6}
# Most processor time per wall-clock time of ours with 1 thread.
ONE_THREAD_CPU = 1.05

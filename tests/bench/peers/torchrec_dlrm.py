#!/usr/bin/env python3
"""A DLRM trained whole by TorchRec: processes on Gloo, one thread each.

The model of `shardrec train --format criteo`: a table per categorical column, a stack of layers over the
dense columns, the dot interaction, a stack above it; row-wise AdaGrad fused into the tables' backward, the
layers in DistributedDataParallel with Adam. The click log is read before the first round, and its batches
are in memory, their ids numbered from 0 for each table: reading, parsing and hashing are not timed.
A step of a round is a pass of --steps batches; its time is told per batch.
"""

import argparse
import gzip
import time
import warnings

from gloo_ranks import add_rank_options, gather, serve_ranks, set_environment

warnings.filterwarnings("ignore")
DENSE, CATEGORICAL = 13, 26  # columns of Criteo's format
WARM_UP = 20


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    add_rank_options(p)
    p.add_argument("--data", required=True, help="a click log in Criteo's format, as for shardrec train")
    p.add_argument("--sharding", choices=["table_wise", "row_wise"], default="table_wise")
    p.add_argument("--batch", type=int, default=1024, help="samples of a step, of all ranks together")
    p.add_argument("--dim", type=int, default=16, help="columns of each table")
    p.add_argument("--bottom", type=int, nargs="+", default=[64], help="hidden layers below the interaction")
    p.add_argument("--top", type=int, nargs="+", default=[64, 32], help="hidden layers above it")
    p.add_argument("--steps", type=int, default=100, help="of a pass")
    return p.parse_args()


class ClickLog:
    """labels [samples], dense [samples, 13], ids [26, samples], rows [26]."""

    def __init__(self, path):
        table = self._read(path)
        values = table.iloc[:, 1 : 1 + DENSE].fillna(0).to_numpy(np.float32)
        self.labels = table.iloc[:, 0].to_numpy(np.float32)
        self.dense = np.copysign(np.log1p(np.abs(values)), values)
        codes = [pd.factorize(table.iloc[:, 1 + DENSE + c])[0] + 1 for c in range(CATEGORICAL)]  # 0: missing
        self.ids = np.stack(codes).astype(np.int64)
        self.rows = [int(column.max()) + 1 for column in self.ids]

    @staticmethod
    def _read(path):
        """Label, I1 .. I13, C1 .. C26 in this order: by position, or by the names of a header."""
        names = ["label", *(f"i{k + 1}" for k in range(DENSE)), *(f"c{k + 1}" for k in range(CATEGORICAL))]
        kinds = dict.fromkeys(names[1 + DENSE :], str)
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
            first = file.readline().rstrip("\n").lower()
        separator = "\t" if "\t" in first else ","
        columns = first.split(separator)
        if "label" in columns:
            return pd.read_csv(path, sep=separator, header=0, names=columns, dtype=kinds)[names]
        return pd.read_csv(path, sep=separator, header=None, names=names, dtype=kinds)


def make_layers(widths, last_is_linear):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*(layers[:-1] if last_is_linear else layers))


def make_dense_half(tables, a):
    class DenseHalf(torch.nn.Module):
        def __init__(self):
            super().__init__()
            vectors = tables + 1
            self.bottom = make_layers([DENSE, *a.bottom, a.dim], last_is_linear=True)
            self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1), persistent=False)
            self.top = make_layers([a.dim + self.pairs.shape[1], *a.top, 1], last_is_linear=True)

        def forward(self, dense, embeddings):
            low = self.bottom(dense)
            vectors = torch.cat([low, embeddings], dim=1).view(len(low), tables + 1, a.dim)
            products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
            return self.top(torch.cat([low, products], dim=1)).squeeze(1)

    return torch.nn.parallel.DistributedDataParallel(DenseHalf())


def make_batches(log, sizes, a):
    """This rank's part of each whole global batch."""
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    samples = a.batch // a.ranks
    batches = []
    for start in range(a.rank * samples, len(log.labels) // a.batch * a.batch, a.batch):
        part = slice(start, start + samples)
        ids = KeyedJaggedTensor(
            keys=feature_names(sizes),
            values=torch.from_numpy(log.ids[:, part].reshape(-1)),
            lengths=torch.ones(len(sizes) * samples, dtype=torch.int32),
        )
        batches.append((torch.from_numpy(log.dense[part]), ids, torch.from_numpy(log.labels[part])))
    return batches


def make_pass(a):
    log = ClickLog(a.data)
    sizes = [(rows, a.dim) for rows in log.rows]
    batches = make_batches(log, sizes, a)
    if not batches:
        raise SystemExit(f"{a.data} has {len(log.labels)} samples, less than a batch of {a.batch}")
    torch.manual_seed(0)
    tables = sharded_tables(sizes, a.sharding, a.ranks, learning_rate=0.02)
    layers = make_dense_half(len(sizes), a)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    loss_of = torch.nn.BCEWithLogitsLoss()

    def train(first, count):
        for number in range(first, first + count):
            dense, ids, labels = batches[number % len(batches)]
            loss = loss_of(layers(dense, pooled(tables, ids)), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        return loss.item()

    def timed_pass(number):
        dist.barrier()
        begin = time.perf_counter()
        train(WARM_UP + number * a.steps, a.steps)
        dist.barrier()
        return {"step": (time.perf_counter() - begin) / a.steps}

    train(0, WARM_UP)
    samples = sum(gather(len(batches[0][2])))
    return timed_pass, {"samples": samples, "tables": len(sizes), "rows": sum(log.rows)}


if __name__ == "__main__":
    options = arguments()
    set_environment(options)
    import numpy as np
    import pandas as pd
    import torch
    import torch.distributed as dist
    from torchrec_tables import feature_names, pooled, sharded_tables

    serve_ranks(options, lambda: make_pass(options), warm_up=0)

#!/usr/bin/env python3
"""A training step of sharded tables in TorchRec: processes on Gloo, one thread each, fused row-wise AdaGrad.

Data-parallel tables get what TorchRec has for them: dense gradients, an all-reduce by
DistributedDataParallel and its RowWiseAdagrad.
"""

import time
import warnings

from gloo_ranks import add_rank_options, serve_ranks, set_environment, sum_over_ranks
from peer import BATCHES, GRADIENT, Ids, parser, sizes_of
from torchrec_tables import feature_names, pooled, sharded_tables

warnings.filterwarnings("ignore")


def arguments():
    p = parser(__doc__)
    add_rank_options(p)
    p.add_argument(
        "--sharding", choices=["table_wise", "row_wise", "column_wise", "data_parallel"], default="table_wise"
    )
    return p.parse_args()


def make_batches(sizes, samples, a):
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

    draws = Ids(a.ids, seed=7 + a.rank)
    batches, parts = [], []
    for _ in range(BATCHES):
        lengths = draws.lengths(a.pooling, len(sizes) * samples)
        ids = [
            draws.draw(rows, int(lengths[t * samples : (t + 1) * samples].sum()))
            for t, (rows, _) in enumerate(sizes)
        ]
        parts += ids
        batches.append(
            KeyedJaggedTensor(
                keys=feature_names(sizes),
                values=torch.from_numpy(np.concatenate(ids).astype(np.int64)),
                lengths=torch.from_numpy(lengths.astype(np.int64)),
            )
        )
    return batches, Ids.work(parts)


def make_step(sizes, a):
    from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

    model = sharded_tables(sizes, a.sharding, a.ranks, learning_rate=0.01)
    optimizer = (
        RowWiseAdagrad(model.parameters(), lr=0.01, eps=1e-8) if a.sharding == "data_parallel" else None
    )
    samples = a.batch * (a.rank + 1) // a.ranks - a.batch * a.rank // a.ranks
    batches, work = make_batches(sizes, samples, a)
    gradient = torch.full((samples, sum(dim for _, dim in sizes)), GRADIENT)

    def step(number):
        batch = batches[number % BATCHES]
        dist.barrier()
        t0 = time.perf_counter()
        values = pooled(model, batch)
        t1 = time.perf_counter()
        values.backward(gradient)
        if optimizer:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        t2 = time.perf_counter()
        return {"forward": t1 - t0, "backward": t2 - t1, "step": t2 - t0}

    return step, sum_over_ranks(work)


if __name__ == "__main__":
    options = arguments()
    set_environment(options)
    import numpy as np
    import torch
    import torch.distributed as dist

    serve_ranks(options, lambda: make_step(sizes_of(options), options))

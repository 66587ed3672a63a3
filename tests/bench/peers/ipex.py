#!/usr/bin/env python3
"""Lookup and update of embedding tables on one CPU process, by Intel's extension for PyTorch.

MergedEmbeddingBagWithSGD and MergedEmbeddingBagWithAdaGrad: one call for all tables, the update fused into the
backward and run by all threads. AdaGrad has a state per element. It checks no ids.
"""

import os
import time
import warnings

from peer import BATCHES, GRADIENT, parser, serve, sizes_of

warnings.filterwarnings("ignore")


def arguments():
    p = parser(__doc__)
    p.add_argument("--dtype", choices=["float32"], default="float32")
    p.add_argument("--optimizer", choices=["sgd", "adagrad"], default="sgd")
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def make_tables(sizes, optimizer):
    from intel_extension_for_pytorch.nn.modules import (
        MergedEmbeddingBagWithAdaGrad,
        MergedEmbeddingBagWithSGD,
    )

    bags = [
        torch.nn.EmbeddingBag(
            rows, dim, mode="sum", sparse=True, include_last_offset=True, _weight=make_weights(rows, dim)
        )
        for rows, dim in sizes
    ]
    if optimizer == "sgd":
        return MergedEmbeddingBagWithSGD.from_embeddingbag_list(bags, lr=0.01)
    return MergedEmbeddingBagWithAdaGrad.from_embeddingbag_list(bags, lr=0.01, eps=1e-8)


def make_step(sizes, a):
    tables = make_tables(sizes, a.optimizer)
    whole, work = make_batches(sizes, a)
    batches = by_table(whole, len(sizes), a.batch)
    gradients = [torch.full((a.batch, dim), GRADIENT) for _, dim in sizes]

    def step(number):
        ids, offsets = batches[number % BATCHES]
        t0 = time.perf_counter()
        outs = tables(ids, offsets)
        t1 = time.perf_counter()
        torch.autograd.backward(list(outs), gradients)
        t2 = time.perf_counter()
        return {"forward": t1 - t0, "backward": t2 - t1, "step": t2 - t0}

    return step, work


if __name__ == "__main__":
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when OpenMP starts: before torch
    import torch
    from table_batches import by_table, make_batches, make_weights

    torch.set_num_threads(options.threads)
    serve(*make_step(sizes_of(options), options))

#!/usr/bin/env python3
"""Lookup and update of embedding tables on one CPU process: FBGEMM, or PyTorch for Adam.

FBGEMM: SplitTableBatchedEmbeddingBagsCodegen on the CPU, bounds check off. It has SGD, AdaGrad and
row-wise AdaGrad there. PyTorch: EmbeddingBag(sparse=True), a table at a time, with SparseAdam.
"""

import os
import time
import warnings

from peer import BATCHES, GRADIENT, parser, serve, sizes_of

warnings.filterwarnings("ignore")


def arguments():
    p = parser(__doc__)
    p.add_argument("--dtype", choices=["float32", "float16"], default="float32")
    p.add_argument(
        "--optimizer", choices=["sgd", "adagrad", "rowwise_adagrad", "adam"], default="rowwise_adagrad"
    )
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def fbgemm_step(sizes, a):
    from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
        BoundsCheckMode,
        EmbeddingLocation,
        PoolingMode,
    )
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

    optimizers = {
        "sgd": EmbOptimType.EXACT_SGD,
        "adagrad": EmbOptimType.EXACT_ADAGRAD,
        "rowwise_adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
    }
    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, EmbeddingLocation.HOST, ComputeDevice.CPU) for rows, dim in sizes],
        optimizer=optimizers[a.optimizer],
        learning_rate=0.01,
        eps=1e-8,
        stochastic_rounding=False,
        weights_precision=SparseType.FP32 if a.dtype == "float32" else SparseType.FP16,
        output_dtype=SparseType.FP32,
        pooling_mode=PoolingMode.SUM,
        bounds_check_mode=BoundsCheckMode.NONE,
    )
    for weights in tables.split_embedding_weights():
        weights.uniform_(-weights.shape[0] ** -0.5, weights.shape[0] ** -0.5)
    batches, work = make_batches(sizes, a)
    gradient = torch.full((a.batch, sum(dim for _, dim in sizes)), GRADIENT)

    def step(number):
        ids, offsets = batches[number % BATCHES]
        t0 = time.perf_counter()
        out = tables(ids, offsets)
        t1 = time.perf_counter()
        out.backward(gradient)
        t2 = time.perf_counter()
        return {"forward": t1 - t0, "backward": t2 - t1, "step": t2 - t0}

    return step, work


def torch_step(sizes, a):
    tables = torch.nn.ModuleList()
    for rows, dim in sizes:
        tables.append(
            torch.nn.EmbeddingBag(
                rows, dim, mode="sum", sparse=True, include_last_offset=True, _weight=make_weights(rows, dim)
            )
        )
    optimizer = torch.optim.SparseAdam(list(tables.parameters()), lr=0.01)
    gradients = [torch.full((a.batch, dim), GRADIENT) for _, dim in sizes]
    whole, work = make_batches(sizes, a)
    batches = by_table(whole, len(sizes), a.batch)

    def step(number):
        batch = batches[number % BATCHES]
        t0 = time.perf_counter()
        outs = [table(ids, offsets) for table, ids, offsets in zip(tables, *batch)]
        t1 = time.perf_counter()
        torch.autograd.backward(outs, gradients)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        t2 = time.perf_counter()
        return {"forward": t1 - t0, "backward": t2 - t1, "step": t2 - t0}

    return step, work


if __name__ == "__main__":
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # read when OpenMP starts: before torch
    import torch
    from table_batches import by_table, make_batches, make_weights

    torch.set_num_threads(options.threads)
    make = torch_step if options.optimizer == "adam" else fbgemm_step
    serve(*make(sizes_of(options), options))

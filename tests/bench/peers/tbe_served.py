#!/usr/bin/env python3
"""Lookups alone, as a service does them, on one CPU process: FBGEMM, bounds check off.

float32: the forward of SplitTableBatchedEmbeddingBagsCodegen, without gradients. int8:
IntNBitTableBatchedEmbeddingBagsCodegen, its tables for inference: 8 bits per element, scale and offset of a
row as float16. With --inference float32 too comes from the latter.
"""

import os
import time
import warnings

from peer import BATCHES, parser, serve, sizes_of

warnings.filterwarnings("ignore")


def arguments():
    p = parser(__doc__)
    p.add_argument("--dtype", choices=["float32", "int8"], default="float32")
    p.add_argument("--inference", action="store_true", help="float32 by the tables for inference")
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def training_tables(sizes):
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

    tables = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, EmbeddingLocation.HOST, ComputeDevice.CPU) for rows, dim in sizes],
        optimizer=EmbOptimType.EXACT_SGD,
        weights_precision=SparseType.FP32,
        output_dtype=SparseType.FP32,
        pooling_mode=PoolingMode.SUM,
        bounds_check_mode=BoundsCheckMode.NONE,
    )
    for weights in tables.split_embedding_weights():
        weights.uniform_(-(weights.shape[0] ** -0.5), weights.shape[0] ** -0.5)
    return tables


def inference_tables(sizes, dtype):
    from fbgemm_gpu.split_embedding_configs import SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import (
        BoundsCheckMode,
        EmbeddingLocation,
        PoolingMode,
    )
    from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen

    kind = SparseType.INT8 if dtype == "int8" else SparseType.FP32
    tables = IntNBitTableBatchedEmbeddingBagsCodegen(
        [(f"table{t}", rows, dim, kind, EmbeddingLocation.HOST) for t, (rows, dim) in enumerate(sizes)],
        pooling_mode=PoolingMode.SUM,
        device="cpu",
        bounds_check_mode=BoundsCheckMode.NONE,
        output_dtype=SparseType.FP32,
    )
    tables.fill_random_weights()
    return tables


def main():
    a = arguments()
    sizes = sizes_of(a)
    batches, work = make_batches(sizes, a)
    if a.dtype == "int8" or a.inference:
        tables = inference_tables(sizes, a.dtype)
        batches = [(ids.to(torch.int32), offsets.to(torch.int32)) for ids, offsets in batches]
    else:
        tables = training_tables(sizes)

    def step(number):
        ids, offsets = batches[number % BATCHES]
        start, cpu = time.perf_counter(), time.thread_time()
        tables(ids, offsets)
        return {"step": time.perf_counter() - start, "cpu": time.thread_time() - cpu}

    with torch.no_grad():
        serve(step, work)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch
    from table_batches import make_batches

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    main()

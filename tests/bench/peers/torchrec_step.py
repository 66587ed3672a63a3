#!/usr/bin/env python3
"""A training step of sharded tables in TorchRec: processes on Gloo, one thread each, fused row-wise AdaGrad.

Rank 0 is this process; it starts the others. Data-parallel tables get what TorchRec has for them: dense
gradients, an all-reduce by DistributedDataParallel and its RowWiseAdagrad.
"""

import datetime
import logging
import os
import subprocess
import sys
import time
import warnings

from peer import BATCHES, GRADIENT, Ids, parser, serve, sizes_of

warnings.filterwarnings("ignore")
CPU = "cpu"
ADDRESS = "127.0.0.1"


def arguments():
    p = parser(__doc__)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument(
        "--sharding", choices=["table_wise", "row_wise", "column_wise", "data_parallel"], default="table_wise"
    )
    p.add_argument("--rank", type=int, default=0, help="of a process that rank 0 starts")
    p.add_argument("--port", type=int, default=0, help="where rank 0 listens")
    return p.parse_args()


def join(a):
    """Makes the process group; rank 0 starts the other ranks, and returns them."""
    others = []
    store = dist.TCPStore(ADDRESS, a.port, a.ranks, is_master=a.rank == 0, wait_for_workers=False)
    if a.rank == 0:
        for rank in range(1, a.ranks):
            words = [sys.executable, *sys.argv, "--rank", str(rank), "--port", str(store.port)]
            others.append(subprocess.Popen(words, stdin=subprocess.DEVNULL))
    # A rank waits for the next round as long as its leader waits for input.
    dist.init_process_group(
        "gloo", store=store, rank=a.rank, world_size=a.ranks, timeout=datetime.timedelta(days=1)
    )
    return others


def sharding_of(kind, table, ranks):
    from torchrec.distributed import sharding_plan

    if kind == "table_wise":
        return sharding_plan.table_wise(rank=table % ranks)
    if kind == "row_wise":
        return sharding_plan.row_wise()
    if kind == "column_wise":
        return sharding_plan.column_wise(ranks=[(table + k) % ranks for k in range(ranks)])
    return sharding_plan.data_parallel()


def make_model(sizes, a):
    """The sharded tables, and the optimizer of those that are not fused."""
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.model_parallel import DistributedModelParallel
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan
    from torchrec.distributed.types import ShardingPlan
    from torchrec.modules.embedding_configs import EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection
    from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

    device = torch.device(CPU)
    tables = [
        EmbeddingBagConfig(name=f"t{t}", num_embeddings=rows, embedding_dim=dim, feature_names=[f"f{t}"])
        for t, (rows, dim) in enumerate(sizes)
    ]
    collection = EmbeddingBagCollection(tables=tables, device=device)
    settings = {"learning_rate": 0.01, "eps": 1e-8, "optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD}
    sharder = EmbeddingBagCollectionSharder(fused_params=settings)
    plan = construct_module_sharding_plan(
        collection,
        {f"t{t}": sharding_of(a.sharding, t, a.ranks) for t in range(len(sizes))},
        sharder=sharder,
        local_size=a.ranks,
        world_size=a.ranks,
        device_type=CPU,
    )
    if a.sharding != "data_parallel":
        for table in plan.values():
            table.compute_kernel = "fused"  # the default on CPUs is the dense kernel

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = collection

        def forward(self, batch):
            return self.tables(batch)

    model = DistributedModelParallel(
        Model(), device=device, plan=ShardingPlan({"tables": plan}), sharders=[sharder]
    )
    optimizer = (
        RowWiseAdagrad(model.parameters(), lr=0.01, eps=1e-8) if a.sharding == "data_parallel" else None
    )
    return model, optimizer


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
                keys=[f"f{t}" for t in range(len(sizes))],
                values=torch.from_numpy(np.concatenate(ids).astype(np.int64)),
                lengths=torch.from_numpy(lengths.astype(np.int64)),
            )
        )
    return batches, Ids.work(parts)


def make_step(sizes, a):
    model, optimizer = make_model(sizes, a)
    samples = a.batch * (a.rank + 1) // a.ranks - a.batch * a.rank // a.ranks
    batches, work = make_batches(sizes, samples, a)
    gradient = torch.full((samples, sum(dim for _, dim in sizes)), GRADIENT)

    def step(number):
        batch = batches[number % BATCHES]
        dist.barrier()
        t0 = time.perf_counter()
        out = model(batch)
        values = (out.wait() if hasattr(out, "wait") else out).values()
        t1 = time.perf_counter()
        values.backward(gradient)
        if optimizer:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        t2 = time.perf_counter()
        return {"forward": t1 - t0, "backward": t2 - t1, "step": t2 - t0}

    return step, sum_over_ranks(work)


def next_round(steps):
    told = torch.tensor([steps])
    dist.broadcast(told, 0)
    return int(told)


def gather(value):
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, value)
    return ranks


def sum_over_ranks(work):
    return {name: sum(rank[name] for rank in gather(work)) for name in work}


def main(a):
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    others = join(a)
    serve(*make_step(sizes_of(a), a), leader=a.rank == 0, next_round=next_round, gather=gather)
    dist.destroy_process_group()
    for other in others:
        other.wait()


if __name__ == "__main__":
    options = arguments()
    os.environ.update(
        OMP_NUM_THREADS="1",
        GLOO_SOCKET_IFNAME="lo",
        RANK=str(options.rank),
        LOCAL_RANK=str(options.rank),
        WORLD_SIZE=str(options.ranks),
        LOCAL_WORLD_SIZE=str(options.ranks),
    )
    import numpy as np
    import torch
    import torch.distributed as dist

    main(options)

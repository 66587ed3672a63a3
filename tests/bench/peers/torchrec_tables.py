"""Sharded tables of TorchRec on the CPU, with FBGEMM's fused row-wise AdaGrad."""

CPU = "cpu"


def sharding_of(kind, table, ranks):
    from torchrec.distributed import sharding_plan

    if kind == "table_wise":
        return sharding_plan.table_wise(rank=table % ranks)
    if kind == "row_wise":
        return sharding_plan.row_wise()
    if kind == "column_wise":
        return sharding_plan.column_wise(ranks=[(table + k) % ranks for k in range(ranks)])
    return sharding_plan.data_parallel()


def feature_names(sizes):
    return [f"f{t}" for t in range(len(sizes))]


def sharded_tables(sizes, sharding, ranks, learning_rate):
    """sizes: [(rows, columns)], a feature each. Data-parallel tables are left to a dense optimizer."""
    import torch
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.model_parallel import DistributedModelParallel
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan
    from torchrec.distributed.types import ShardingPlan
    from torchrec.modules.embedding_configs import EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection

    device = torch.device(CPU)
    tables = [
        EmbeddingBagConfig(name=f"t{t}", num_embeddings=rows, embedding_dim=dim, feature_names=[f"f{t}"])
        for t, (rows, dim) in enumerate(sizes)
    ]
    collection = EmbeddingBagCollection(tables=tables, device=device)
    settings = {"learning_rate": learning_rate, "eps": 1e-8, "optimizer": EmbOptimType.EXACT_ROWWISE_ADAGRAD}
    sharder = EmbeddingBagCollectionSharder(fused_params=settings)
    plan = construct_module_sharding_plan(
        collection,
        {f"t{t}": sharding_of(sharding, t, ranks) for t in range(len(sizes))},
        sharder=sharder,
        local_size=ranks,
        world_size=ranks,
        device_type=CPU,
    )
    if sharding != "data_parallel":
        for table in plan.values():
            table.compute_kernel = "fused"  # the default on CPUs is the dense kernel

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = collection

        def forward(self, batch):
            return self.tables(batch)

    return DistributedModelParallel(
        Model(), device=device, plan=ShardingPlan({"tables": plan}), sharders=[sharder]
    )


def pooled(model, batch):
    """[samples, all columns]."""
    out = model(batch)
    return (out.wait() if hasattr(out, "wait") else out).values()

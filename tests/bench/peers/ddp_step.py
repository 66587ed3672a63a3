#!/usr/bin/env python3
"""A training step of a stack of layers in PyTorch's DistributedDataParallel, or sharded by its FSDP2 (fully_shard, each
layer): processes on Gloo, one thread each.

The step of `shardrec bench dense`: forward, mean squared error, backward with the mean of the gradients over the
ranks, SGD. DistributedDataParallel exchanges gradients while the backward runs.
"""

import argparse
import time
import warnings

from gloo_ranks import add_rank_options, gather, serve_ranks, set_environment
from peer import BATCHES

warnings.filterwarnings("ignore")


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    add_rank_options(p)
    p.add_argument("--layers", default="512-1024-1024-512-1", help="widths, as for shardrec bench dense")
    p.add_argument("--batch", type=int, default=128, help="samples of a step, of all ranks together")
    p.add_argument("--learning-rate", type=float, default=1e-3)
    p.add_argument("--dense", choices=("ddp", "fsdp"), default="ddp")
    return p.parse_args()


def make_layers(widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def make_model(a, widths):
    layers = make_layers(widths)
    if a.dense == "ddp":
        return torch.nn.parallel.DistributedDataParallel(layers)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (a.ranks,))
    for layer in layers:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(layers, mesh=mesh)


def make_step(a):
    torch.manual_seed(a.rank)
    widths = [int(width) for width in a.layers.split("-")]
    model = make_model(a, widths)
    optimizer = torch.optim.SGD(model.parameters(), lr=a.learning_rate)
    samples = a.batch * (a.rank + 1) // a.ranks - a.batch * a.rank // a.ranks
    batches = []
    for _ in range(BATCHES):
        inputs = torch.randn(samples, widths[0])
        batches.append((inputs, inputs[:, [column % widths[0] for column in range(widths[-1])]]))

    def step(number):
        inputs, targets = batches[number % BATCHES]
        dist.barrier()
        t0 = time.perf_counter()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        t1 = time.perf_counter()
        loss.backward()
        t2 = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        t3 = time.perf_counter()
        return {"forward": t1 - t0, "backward": t2 - t1, "update": t3 - t2, "step": t3 - t0}

    return step, {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "samples": sum(gather(samples)),
    }


if __name__ == "__main__":
    options = arguments()
    set_environment(options)
    import torch
    import torch.distributed as dist

    serve_ranks(options, lambda: make_step(options))

"""The ranks of a peer that trains in several processes over Gloo, one thread each.

Rank 0 is the process that was started; it starts the others. torch is imported late: OpenMP and Gloo read
the environment when they start.
"""

import datetime
import logging
import os
import subprocess
import sys

from peer import serve

ADDRESS = "127.0.0.1"


def add_rank_options(p):
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--rank", type=int, default=0, help="of a process that rank 0 starts")
    p.add_argument("--port", type=int, default=0, help="where rank 0 listens")


def set_environment(a):
    """Before torch is imported."""
    os.environ.update(
        OMP_NUM_THREADS="1",
        GLOO_SOCKET_IFNAME="lo",
        RANK=str(a.rank),
        LOCAL_RANK=str(a.rank),
        WORLD_SIZE=str(a.ranks),
        LOCAL_WORLD_SIZE=str(a.ranks),
    )


def join(a):
    """Makes the process group; rank 0 starts the other ranks, and returns them."""
    import torch.distributed as dist

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


def next_round(steps):
    import torch
    import torch.distributed as dist

    told = torch.tensor([steps])
    dist.broadcast(told, 0)
    return int(told)


def gather(value):
    import torch.distributed as dist

    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, value)
    return ranks


def sum_over_ranks(work):
    return {name: sum(rank[name] for rank in gather(work)) for name in work}


def serve_ranks(a, make_step, warm_up=None):
    """Serves rounds of the step that make_step() returns, with its work, on each rank."""
    import torch
    import torch.distributed as dist

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    others = join(a)
    step, work = make_step()
    more = {} if warm_up is None else {"warm_up": warm_up}
    serve(step, work, leader=a.rank == 0, next_round=next_round, gather=gather, **more)
    dist.destroy_process_group()
    for other in others:
        other.wait()

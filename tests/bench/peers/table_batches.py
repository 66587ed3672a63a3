"""Batches of bags for several tables on one process. Imports torch: set the environment before."""

import numpy as np
import torch
from peer import BATCHES, Ids


def make_batches(sizes, a):
    """[(ids, offsets)] of all tables, table after table, as tensors; and what is in them."""
    draws = Ids(a.ids, seed=7)
    parts = [[] for _ in range(BATCHES)]
    for rows, _ in sizes:
        for part in parts:
            lengths = draws.lengths(a.pooling, a.batch)
            part.append((draws.draw(rows, int(lengths.sum())), lengths))
    work = Ids.work([ids for part in parts for ids, _ in part])
    batches = []
    for part in parts:
        ids = np.concatenate([ids for ids, _ in part]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([lengths for _, lengths in part]))])
        batches.append((torch.from_numpy(ids), torch.from_numpy(offsets.astype(np.int64))))
    return batches, work


def by_table(batches, tables, samples):
    """[([ids of a table], [offsets of a table])], each table's offsets from 0 and with the last one."""
    result = []
    for ids, offsets in batches:
        bags = [offsets[t * samples : (t + 1) * samples + 1] for t in range(tables)]
        result.append(
            ([ids[part[0] : part[-1]].clone() for part in bags], [part - part[0] for part in bags])
        )
    return result


def make_weights(rows, columns):
    return torch.empty(rows, columns).uniform_(-(rows**-0.5), rows**-0.5)

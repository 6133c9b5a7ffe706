"""Computations over dask arrays, for one process and for a cluster: columns, a stencil, k-means."""

from __future__ import annotations

from typing import Any

import tilearray as ta


def random_matrix(rows: int, columns: int, rows_in_chunk: int) -> Any:
    """Numbers in [0, 1) in blocks of rows: the same for every scheduler."""
    import dask
    import dask.array as da

    with dask.config.set({"array.backend": "tilearray"}):
        return da.random.default_rng(7).random((rows, columns), chunks=(rows_in_chunk, columns))


def normalised_deviation(x: Any) -> Any:
    """The standard deviation of each column over its mean."""
    return x.std(axis=0) / x.mean(axis=0)


@ta.fuse
def five_points(x: Any) -> Any:
    """The mean of each inner element and its four neighbours."""
    return (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 5.0


def with_edges(x: Any) -> Any:
    """`five_points` on a chunk that has its neighbours' edges."""
    result = x.copy()
    result[1:-1, 1:-1] = five_points(x)
    return result


def stencil(x: Any, steps: int = 2) -> Any:
    """`five_points` several times, over chunks that overlap by one element, with periodic edges."""
    for _ in range(steps):
        x = x.map_overlap(with_edges, depth=1, boundary="periodic", meta=x._meta)
    return x


def totals(points: Any, centres: Any) -> Any:
    """The sum of the points next to each centre, and their number in one more column: (1, centres, columns + 1)."""
    nearest = ta.argmin(((points[:, None, :] - centres) ** 2).sum(axis=-1), axis=1)
    member = (nearest[:, None] == ta.arange(centres.shape[0], device=points.device)).astype(points.dtype)
    return ta.concat([member.T @ points, member.sum(axis=0)[:, None]], axis=1)[None]


def k_means(points: Any, count: int, rounds: int = 5, **compute: Any) -> Any:
    """The centres after some rounds, from the first points as the first centres."""
    centres = points[:count].compute(**compute)
    for _ in range(rounds):
        parts = points.map_blocks(
            totals,
            centres,
            chunks=((1,) * points.numblocks[0], (count,), (points.shape[1] + 1,)),
            new_axis=2,
            meta=ta.empty((0, 0, 0), dtype=points.dtype),
        )
        sums = parts.sum(axis=0, split_every=4).compute(**compute)
        centres = sums[:, :-1] / ta.maximum(sums[:, -1:], 1.0)
    return centres

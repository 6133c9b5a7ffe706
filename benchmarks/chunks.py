"""dask arrays whose chunks are Arrays, beside NumPy's: computations on processes of one host, and what a chunk costs.

``python -m benchmarks.chunks --gibibytes 10 --workers 4`` prints a table in Markdown, which ends with the machine. Each
computation runs with both libraries on a LocalCluster of one thread a process; of ours the result must have the bits of
a run in one process with ``--check``, which takes as long again as all workers together.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import tilearray as ta

MEBI = 2**20
COLUMNS = 128
ROWS_IN_CHUNK = 64 * MEBI // (8 * COLUMNS)
"""Rows of float64 in a chunk of 64 MiB."""


# --- computations, for chunks of either library ----------------------------------------------------------------------


def random_matrix(rows: int, columns: int, rows_in_chunk: int, backend: str = "tilearray") -> Any:
    """Return numbers in [0, 1) in blocks of rows: NumPy draws them for both libraries, the same in every process."""
    random: Any = importlib.import_module("dask.array.random")
    with importlib.import_module("dask").config.set({"array.backend": "numpy"}):
        drawn = random.default_rng(7).random((rows, columns), chunks=(rows_in_chunk, columns))
    return drawn.to_backend(backend)


def normalised_deviation(x: Any, split_every: int | None = None) -> Any:
    """Return the standard deviation of each column over its mean; dask joins sums of `split_every` chunks at a time."""
    return x.std(axis=0, split_every=split_every) / x.mean(axis=0, split_every=split_every)


def mean_of_five(x: Any) -> Any:
    """Return the mean of each inner element and its four neighbours."""
    return (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 5.0


fused_mean_of_five = ta.fuse(mean_of_five)


def stencil_step(x: Any) -> Any:
    """Replace the inner elements of a chunk, which has its neighbours' edges, by their means of five."""
    result = x.copy()
    result[1:-1, 1:-1] = (fused_mean_of_five if isinstance(x, ta.Array) else mean_of_five)(x)
    return result


def stencil(x: Any, steps: int = 2) -> Any:
    """Take means of five several times, over chunks that overlap by one element, with periodic edges."""
    for _ in range(steps):
        x = x.map_overlap(stencil_step, depth=1, boundary="periodic", meta=x._meta)
    return x


def totals(points: Any, centres: Any) -> Any:
    """Return the sum of the points next to each centre, and in one more column their number, for one chunk."""
    np = points.__array_namespace__()
    nearest = np.argmin(((points[:, None, :] - centres) ** 2).sum(axis=-1), axis=1)
    member = np.astype(nearest[:, None] == np.arange(centres.shape[0]), points.dtype)
    return np.concat([member.T @ points, member.sum(axis=0)[:, None]], axis=1)[None]


def k_means(points: Any, count: int, rounds: int = 5, **compute: Any) -> Any:
    """Return the centres after some rounds, from the first points as the first centres."""
    centres = points[:count].compute(**compute)
    chunks = ((1,) * points.numblocks[0], (count,), (points.shape[1] + 1,))
    for _ in range(rounds):
        parts = points.map_blocks(totals, centres, chunks=chunks, new_axis=2, meta=points._meta[None])
        sums = parts.sum(axis=0, split_every=4).compute(**compute)
        centres = sums[:, :-1] / sums[:, -1:].clip(1.0)
    return centres


COMPUTATIONS: dict[str, Callable[..., Any]] = {
    "deviation of columns over their mean": lambda x, **options: normalised_deviation(x).compute(**options),
    "two steps of a 5-point stencil, summed": lambda x, **options: stencil(x).sum().compute(**options),
    "five rounds of k-means, 8 centres": lambda x, **options: k_means(x[:, :4], 8, **options),
}


# --- the table -------------------------------------------------------------------------------------------------------


def seconds(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Return the time of a call, and its result."""
    start = time.perf_counter()
    result = call(*arguments, **options)
    return time.perf_counter() - start, result


def computed(rows: int, check: bool) -> list[tuple[str, float, float]]:
    """Run each computation on the current client, with both libraries."""
    found: list[tuple[str, float, float]] = []
    for name, computation in COMPUTATIONS.items():
        ours, theirs = (random_matrix(rows, COLUMNS, ROWS_IN_CHUNK, each) for each in ("tilearray", "numpy"))
        spent, result = seconds(computation, ours)
        if check and ta.to_numpy(result).tobytes() != ta.to_numpy(computation(ours, scheduler="sync")).tobytes():
            raise AssertionError(f"{name}: the cluster's result has other bits than that of one process")
        found.append((f"{name}, seconds", spent, seconds(computation, theirs)[0]))
        print(*found[-1], file=sys.stderr)
    return found


def costs(chunks: int = 10_000) -> list[tuple[str, float, float]]:
    """Measure what one chunk costs in this process: a task, a message, a token."""
    protocol: Any = importlib.import_module("distributed.protocol")
    tokenize: Callable[[Any], str] = importlib.import_module("dask.base").tokenize
    small = [random_matrix(chunks, 1, 1, each).persist(scheduler="sync") for each in ("tilearray", "numpy")]
    one = ta.asarray(random_matrix(ROWS_IN_CHUNK, COLUMNS, ROWS_IN_CHUNK).compute(scheduler="sync"))
    large = [one, ta.to_numpy(one)]

    def best(call: Callable[[Any], Any], values: Sequence[Any], each: float) -> list[float]:
        return [min(seconds(call, value)[0] for _ in range(5)) * each for value in values]

    tasks = best(lambda x: (x + 1).sum().compute(scheduler="sync"), small, 1e6 / chunks)
    messages = best(lambda x: protocol.deserialize(*protocol.serialize(x)), large, 1e6)
    tokens = best(tokenize, large, 1e3)
    return [
        ("a chunk of one element in `(x + 1).sum()`, microseconds", tasks[0], tasks[1]),
        ("64 MiB into a message and out of it, microseconds", messages[0], messages[1]),
        ("the token of 64 MiB, milliseconds", tokens[0], tokens[1]),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.chunks", description="dask arrays of Arrays, and NumPy's.")
    top.add_argument("--gibibytes", type=float, default=1.0, help="of float64 in chunks of 64 MiB")
    top.add_argument("--workers", type=int, default=2, help="processes of one thread")
    top.add_argument("--check", action="store_true", help="compare with one process, bit for bit")
    options = top.parse_args(arguments)
    rows = int(options.gibibytes * 16) * ROWS_IN_CHUNK
    distributed: Any = importlib.import_module("distributed")
    cluster = distributed.LocalCluster(
        n_workers=options.workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with cluster, distributed.Client(cluster):
        found = computed(rows, options.check)
    found += costs()
    print(f"{options.gibibytes:g} GiB of float64 in chunks of 64 MiB; {options.workers} processes of one thread.\n")
    print("| what | tilearray | numpy |\n|---|---:|---:|")
    print("\n".join(f"| {name} | {ours:.3g} | {theirs:.3g} |" for name, ours, theirs in found))
    versions = ", ".join(f"{each} {metadata.version(each)}" for each in ("numpy", "dask", "distributed"))
    print(f"\n{os.cpu_count()} processors, {platform.machine()}; python {platform.python_version()}, {versions}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

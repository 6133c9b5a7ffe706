"""Try tile sizes on a GPU: ``python -m benchmarks.tune [CASE ...] [--out FILE] [--write]``.

Each case is a sum over a layout, or a copy out of one. Its kernel is made with each candidate in the place of the tile
that its schedule has chosen, compiled in parallel, and timed beside the copy. The fastest are printed.

``--write`` writes those that are faster than the tables by `GAIN` beside the compiled kernels, for this GPU: the next
process uses them. To change the tables for all, write the winners into the schedule's file, in
`tilearray_cuda.kernels.schedules`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any, NamedTuple

import tilearray as ta
from tilearray.engine.expression import Expression
from tilearray.engine.operation import expression_of
from tilearray.geometry.loop import Loop, make_loop
from tilearray.ops import arithmetic, moves
from tilearray_cuda import kernel
from tilearray_cuda.kernels import disk_cache, tuned_tiles
from tilearray_cuda.kernels.compile import cubin_of
from tilearray_cuda.kernels.cubin import triton_version
from tilearray_cuda.kernels.schedules.choose import loop_class, schedule_of
from tilearray_cuda.kernels.schedules.schedule import Schedule, Tile, is_bounded
from tilearray_cuda.kernels.source import Source, source_of
from tilearray_cuda.kernels.spec import make_spec
from tilearray_cuda.runtime import launch

N = 16384
WARM, ROUNDS, CALLS = 2, 5, 6
GAIN = 1.03
"""How much faster than the table's a tile must be to be written; less may be noise."""

Shape = tuple[int, ...]
SQUARE, ODD, ODD_TRANSPOSED = (N, N), (N - 1, N + 1), (N + 1, N - 1)


class Case(NamedTuple):
    """Shapes of arrays, the function that makes their views (two are added, one is copied), dtypes and tiles."""

    shapes: tuple[Shape, ...]
    views: Callable[..., tuple[Any, ...]]
    dtypes: tuple[str, ...]
    tiles: list[Tile]


def plain(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the arrays unchanged."""
    return x, y


def transposed(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the arrays, the second one transposed."""
    return x, y.T


def copied(x: Any) -> tuple[Any]:
    """Return the transpose of one array."""
    return (x.T,)


def tiles(rows: Shape, columns: Shape, warps: Shape, least: int = 1, most: int = 256) -> list[Tile]:
    """Return all tiles of these sizes in which a thread has from `least` to `most` elements."""
    found = [Tile(*sizes) for sizes in itertools.product(rows, columns, warps)]
    return [tile for tile in found if least <= tile.of_a_thread <= most]


BLOCKS = tiles((1,), (512, 1024, 2048, 4096, 8192), (1, 2, 4, 8))
ROWS = tiles((1,), (1024, 2048, 4096), (2, 4, 8))
SQUARES = tiles((32, 64, 128), (32, 64, 128), (1, 2, 4, 8, 16), 8, 64)
SMALL_SQUARES = tiles((16, 32, 64), (16, 32, 64), (1, 2, 4, 8), 4, 16)
LARGE = tiles((32, 64, 128), (32, 64, 128, 256), (4, 8, 16), 8, 64)
TALL = tiles((64, 128, 256), (16, 32, 64), (8, 16, 32))
CASES = {
    "flat": Case((SQUARE, SQUARE), plain, ("uint8", "float16", "complex128"), BLOCKS),
    "row": Case((SQUARE, (N,)), plain, ("uint8", "float16", "float32", "complex64"), BLOCKS),
    "column": Case((ODD, (N - 1, 1)), plain, ("uint8", "float16", "float32"), BLOCKS),
    "odd row": Case((ODD, (N + 1,)), plain, ("uint8", "float16"), BLOCKS),
    "outer": Case(((N, 1), (N,)), plain, ("uint8", "float16", "float32", "float64"), BLOCKS),
    "sliced": Case((SQUARE, SQUARE), lambda x, y: (x[:, 1:], y[:, 1:]), ("uint8", "float16", "float32"), ROWS),
    "shifted": Case(((N * N,), (N * N,)), lambda x, y: (x[1:], y[1:]), ("uint8", "float16"), BLOCKS),
    "cube": Case(((512, 1, 512), (1, 512, 1)), plain, ("float32",), [*BLOCKS[3:], Tile(2, 512, 4), Tile(4, 256, 4)]),
    "transposed": Case((SQUARE, SQUARE), transposed, ("float16", "float32", "complex64"), SQUARES),
    "transposed bytes": Case((SQUARE, SQUARE), transposed, ("uint8",), SQUARES),
    "transposed pairs": Case((SQUARE, SQUARE), transposed, ("complex128",), SMALL_SQUARES),
    "odd": Case((ODD, ODD_TRANSPOSED), transposed, ("uint8", "float16", "float32", "complex64"), SQUARES),
    "copied": Case((SQUARE,), copied, ("uint8", "float16", "float32", "float64", "complex128"), LARGE),
    "odd copied": Case((ODD_TRANSPOSED,), copied, ("uint8", "float16", "float32", "float64", "complex128"), LARGE),
    "box": Case(
        ((800, 400, 900), (900, 400, 800)), lambda x, y: (x, y.permute_dims(2, 1, 0)), ("float32", "float16"), SQUARES
    ),
    "box copied": Case(
        ((800, 400, 900),), lambda x: (x.permute_dims(2, 1, 0),), ("float16", "float32", "float64", "complex128"), TALL
    ),
    "permuted": Case(
        ((64, 128, 64, 512), (512, 64, 128, 64)), lambda x, y: (x, y.permute_dims(1, 2, 3, 0)), ("float32",), SQUARES
    ),
}


class Operation(NamedTuple):
    """The result and the operands of a case in one dtype, the schedule of its kernel, and the key of its tile."""

    arrays: tuple[Any, ...]
    loop: Loop
    schedule: Schedule
    key: tuned_tiles.Key = ("", 0)

    @property
    def nbytes(self) -> int:
        """The number of bytes that an ideal kernel moves."""
        return sum(min(x.nbytes, x._buffer.nbytes) for x in self.arrays)


def operation_of(case: Case, dtype: str) -> Operation:
    """Make the operands and the result, and plan the sum or the copy."""
    operands = case.views(*[ta.full(shape, 3, dtype=dtype, device="cuda") for shape in case.shapes])
    op = arithmetic.add if len(operands) == 2 else moves.assign
    out = ta.empty(ta.broadcast_shapes(*[x.shape for x in operands]), dtype=dtype, device="cuda")
    arrays = (out, *operands)
    strides = [each._signature.layout.broadcast_to(out.shape).strides for each in arrays]
    loop = make_loop(out.shape, strides)
    aligned = tuple((each._address + shift * each.itemsize) % 16 == 0 for each, shift in zip(arrays, loop.shifts))
    body: Expression = expression_of(op, ta.get_semantics(), tuple([x.dtype for x in operands]), out.dtype)
    device: Any = ta.devices()[0].backend
    with tuned_tiles.trying({}) as asked:  # the tables of tilearray, also where others were measured before
        schedule = schedule_of(make_spec(body, loop_class(loop), aligned), device.arch)
    return Operation(arrays, loop, schedule, asked[-1])


def with_tile(schedule: Schedule, tile: Tile | None) -> Schedule:
    """The schedule with another tile; None for the one of its table."""
    return schedule if tile is None else schedule.resized(tile)


def compiled(source: Source, arch: int) -> disk_cache.Cubin | None:
    """Compile a source, in a worker process. Return None if the compiler fails."""
    try:
        return cubin_of(source, arch)
    except Exception:
        return None


def seconds(call: Callable[[], Any]) -> float:
    """Return the median time of a call on the GPU."""
    for _ in range(WARM):
        call()
    stream, found = ta.cuda.current_stream(), list[float]()
    for _ in range(ROUNDS):
        start, end = ta.cuda.Event(timing=True), ta.cuda.Event(timing=True)
        stream.record(start)
        for _ in range(CALLS):
            call()
        stream.record(end)
        end.synchronize()
        found.append(end.milliseconds_since(start) / 1e3 / CALLS)
    return statistics.median(found)


def copy_rate() -> float:
    """Return the bytes per second of a copy of a gigabyte, counting reads and writes."""
    x = ta.zeros(2**28, dtype="float32", device="cuda")
    y = ta.empty_like(x)
    return 2 * x.nbytes / seconds(lambda: ta.positive(x, out=y))


def measured(name: str, dtype: str, cubins: list[disk_cache.Cubin | None], first: int, send: Any) -> None:
    """Time the candidates of a case, starting at `first`, in a separate process, which a faulting kernel ends."""
    device: Any = ta.devices()[0].backend
    given, rate = operation_of(CASES[name], dtype), copy_rate()
    for position, tile in list(enumerate([None, *CASES[name].tiles]))[first:]:
        cubin = cubins[position]
        send.send((position, None))
        if cubin is not None:
            schedule = with_tile(given.schedule, tile)
            send.send((position, timed(device, given, schedule, cubin) / rate))
    send.send((None, None))


def rates(name: str, dtype: str, cubins: list[disk_cache.Cubin | None]) -> dict[int, float]:
    """Return the fraction of the copy's rate by candidate. Report candidates that fault, and omit them."""
    context, found, first = multiprocessing.get_context("spawn"), dict[int, float](), 0
    while True:
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=measured, args=(name, dtype, cubins, first, send))
        process.start()
        send.close()
        at: int | None = first
        try:
            while at is not None:
                at, rate = receive.recv()
                if at is not None and rate is not None:
                    found[at] = rate
        except EOFError:
            print(f"{name:10} {dtype:10} faults: {[None, *CASES[name].tiles][at or 0]}", flush=True)
        process.join()
        if at is None:
            return found
        first = at + 1


def results(names: list[str], pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    """Yield each case and dtype with its fastest candidates and their fractions of the copy's rate."""
    arch: int = ta.devices()[0].backend.arch  # type: ignore[attr-defined]
    for name in names:
        for dtype in CASES[name].dtypes:
            _, _, schedule, key = operation_of(CASES[name], dtype)
            ta.cuda.empty_cache()
            tiles = [None, *CASES[name].tiles]
            sources = [source_of(with_tile(schedule, tile)) for tile in tiles]
            cubins = list(pool.map(compiled, sources, [arch] * len(sources)))
            found = rates(name, dtype, cubins)
            best = sorted(found, key=lambda position: -found[position])[:7]
            shown = "  ".join(f"{found[at]:.3f} {tuple(tiles[at] or ()) or 'now'}" for at in best)
            print(f"{name:10} {dtype:10} now {found.get(0, 0):.3f} {tuple(sources[0].tile)}   {shown}", flush=True)
            now = found.get(0)
            gains = {tiles[at]: found[at] / now for at in found if now and can_be_written(schedule, key, tiles[at])}
            yield {"case": name, "dtype": dtype, "now": now, "best": [(found[at], tiles[at]) for at in best],
                   "key": key, "gains": list(gains.items())}  # fmt: skip


def can_be_written(schedule: Schedule, key: tuned_tiles.Key, tile: Tile | None) -> bool:
    """Whether a table of a GPU may have a tile for the kernels of a schedule."""
    tables = import_module(type(schedule).__module__).SIZES
    return tile is not None and is_bounded(tile, tables, *key)


def winners(found: list[dict[str, Any]]) -> dict[tuned_tiles.Key, tuned_tiles.Sizes]:
    """Return for each key the tile that is the fastest in all of its cases together, if it is faster than the table's.

    A tile counts that was measured in each case of the key, and is slower in none.
    """
    keys: dict[tuned_tiles.Key, list[dict[Tile, float]]] = {}
    for each in found:
        keys.setdefault(tuple(each["key"]), []).append({Tile(*tile): gain for tile, gain in each["gains"]})
    best: dict[tuned_tiles.Key, tuned_tiles.Sizes] = {}
    for key, cases in keys.items():
        means = {tile: statistics.geometric_mean([gains[tile] for gains in cases])
                 for tile in cases[0] if all(gains.get(tile, 0) >= 1 for gains in cases)}  # fmt: skip
        tile = max(means, key=lambda each: means[each], default=None)
        if tile is not None and means[tile] >= GAIN:
            best[key] = tile[:3]
    return best


def timed(device: Any, given: Operation, schedule: Schedule, cubin: disk_cache.Cubin) -> float:
    """Bytes a second of a kernel; 0 where the device does not take it."""
    try:
        made = kernel.Kernel(schedule, source_of(schedule), launch.load_function(device, cubin))
    except RuntimeError:
        return 0.0
    run = made.bind(given.loop)
    operands = [part for each in given.arrays for part in (each._buffer, each._offset)]
    return given.nbytes / seconds(lambda: run(0, *operands))


def main() -> None:
    """Run the named cases, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)} (default: all)")
    parser.add_argument("--out", help="a JSON file for the results")
    parser.add_argument("--write", action="store_true", help="use the fastest on this GPU from now on")
    options = parser.parse_args()
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(results(options.cases or list(CASES), pool))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    if options.write:
        print(written(found))


def written(found: list[dict[str, Any]]) -> str:
    """Write the winners beside those of earlier runs, and say where."""
    device: Any = ta.devices()[0].backend
    of_cases = {tuple(each["key"]) for each in found}
    kept = {key: sizes for key, sizes in tuned_tiles.tiles_of(device.name).items() if key not in of_cases}
    new = winners(found)
    path = tuned_tiles.write_tiles(device.name, device.arch, kept | new, f"Triton {triton_version()}")
    return f"{len(new)} of {len(of_cases)} kinds are faster than the tables on {device.name}; wrote {path}"


if __name__ == "__main__":
    main()

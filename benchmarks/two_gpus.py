"""Two GPUs of one host: copies, collective operations, and dask's programs with a worker for each GPU.

Each part is a process of its own, and leaves its rows as JSON; the last call makes the record of them::

    python -m benchmarks.two_gpus copies --json copies.json        # to_device beside torch
    python -m benchmarks.two_gpus collectives --json sums.json     # all_reduce beside torch.distributed
    python -m benchmarks.two_gpus programs --json programs.json    # a worker for each GPU beside one worker
    python -m benchmarks.two_gpus ucx --json ucx.json              # chunks between workers over UCX
    python -m benchmarks.two_gpus record copies.json sums.json programs.json --out DIR

``programs --devices cpu,cpu --mebibytes 0.5 --seconds 1`` rehearses the programs on the host. Every result is compared:
copies and sums with the operands, programs on two workers bit for bit with those on one. A program runs on one worker
and on two in turn, in one cluster with warm caches, and its data is created there.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import tilearray as ta
from benchmarks import chunks

MEBI = 2**20
Rows = list[dict[str, Any]]


def best_of(call: Callable[[], Any], finish: Callable[[], Any], calls: int, rounds: int = 5) -> float:
    """Return the seconds of one call: the fastest of some rounds of `calls` calls, each with `finish` at its end."""
    call()
    finish()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        finish()
        found.append((time.perf_counter() - start) / calls)
    return min(found)


def calls_for(nbytes: int) -> int:
    """Return the number of calls of a round: enough for some milliseconds."""
    return max(5, min(300, 2**31 // max(nbytes, 1)))


# --- copies between the GPUs -----------------------------------------------------------------------------------------


def copies() -> Rows:
    """Copy arrays of several sizes from one GPU to the other, and back, beside torch."""
    torch: Any = importlib.import_module("torch")
    found: Rows = []

    def wait_for_torch() -> None:
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)

    for nbytes in (1024, MEBI, 64 * MEBI, 1024 * MEBI):
        for source, target in ((0, 1), (1, 0)):
            x = ta.arange(nbytes // 4, dtype="int32", device=f"cuda:{source}")
            y = torch.arange(nbytes // 4, dtype=torch.int32, device=f"cuda:{source}")
            there = x.to_device(f"cuda:{target}")
            if not (ta.to_numpy(there) == ta.to_numpy(x)).all():
                raise AssertionError(f"{nbytes} bytes from {source} to {target}: the copy differs")
            del there
            count = calls_for(nbytes)
            ours = best_of(lambda x=x, target=target: x.to_device(f"cuda:{target}"), ta.cuda.synchronize, count)
            theirs = best_of(lambda y=y, target=target: y.to(f"cuda:{target}"), wait_for_torch, count)
            found.append({"part": "copies", "name": f"cuda:{source} to cuda:{target}", "bytes": nbytes, "ours": ours,
                          "theirs": theirs})  # fmt: skip
    counted = [ta.cuda.transfer_statistics(f"cuda:{index}") for index in (0, 1)]
    found.append(
        {
            "part": "copies counted",
            "peers": ta.cuda.peer_access("cuda:0", "cuda:1"),
            "from_peers": sum(each.from_peers for each in counted),
            "through_host": sum(each.through_host for each in counted),
        }
    )
    return found


# --- collective operations -------------------------------------------------------------------------------------------

SIZES = (4096, MEBI, 64 * MEBI, 1024 * MEBI)


def collectives() -> Rows:
    """Reduce and gather float32 in place on both GPUs from this process, beside torch's process for each GPU."""
    theirs = torch_collectives()
    devices = ("cuda:0", "cuda:1")
    found: Rows = []
    for nbytes in SIZES:
        n = nbytes // 4
        arrays = [ta.arange(n, dtype="float32", device=device) % 1000 for device in devices]
        total = ta.distributed.all_reduce(arrays)
        if not all((ta.to_numpy(x) == 2 * ta.to_numpy(y)).all() for x, y in zip(total, arrays)):
            raise AssertionError(f"all_reduce of {nbytes} bytes: wrong sums")
        del total
        zeros = [ta.zeros(n, dtype="float32", device=device) for device in devices]
        out = [ta.empty(2 * n, dtype="float32", device=device) for device in devices]
        ta.distributed.all_gather(arrays, out=out)
        if not all((ta.to_numpy(x[n:]) == ta.to_numpy(y)).all() for x, y in zip(out, arrays)):
            raise AssertionError(f"all_gather of {nbytes} bytes: wrong elements")
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda zeros=zeros: ta.distributed.all_reduce(zeros, out=zeros),
            "all_gather": lambda arrays=arrays, out=out: ta.distributed.all_gather(arrays, out=out),
        }
        for name, call in calls.items():
            ours = best_of(call, ta.cuda.synchronize, calls_for(nbytes))
            found.append({"part": "collectives", "name": name, "bytes": nbytes, "ours": ours,
                          "theirs": theirs[f"{name} {nbytes}"]})  # fmt: skip
    return found


def torch_collectives() -> dict[str, float]:
    """Return the seconds of torch.distributed's calls, in two processes that end before ours begin."""
    multiprocessing: Any = importlib.import_module("torch.multiprocessing")
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    processes = [context.Process(target=torch_rank, args=(rank, queue)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(90)
        if process.exitcode != 0:
            process.kill()
            raise AssertionError(f"torch.distributed ended with {process.exitcode}")
    return queue.get()


def torch_rank(rank: int, queue: Any) -> None:
    """Time the calls in one process of two, and leave those of the first one."""
    torch: Any = importlib.import_module("torch")
    distributed: Any = importlib.import_module("torch.distributed")
    torch.cuda.set_device(rank)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    distributed.init_process_group("nccl", rank=rank, world_size=2)
    found: dict[str, float] = {}
    for nbytes in SIZES:
        n = nbytes // 4
        x = torch.zeros(n, dtype=torch.float32, device=f"cuda:{rank}")
        out = torch.empty(2 * n, dtype=torch.float32, device=f"cuda:{rank}")
        calls = {
            "all_reduce": lambda x=x: distributed.all_reduce(x),
            "all_gather": lambda x=x, out=out: distributed.all_gather_into_tensor(out, x),
        }
        for name, call in calls.items():
            found[f"{name} {nbytes}"] = best_of(call, torch.cuda.synchronize, calls_for(nbytes))
    if rank == 0:
        queue.put(found)
    distributed.barrier()
    distributed.destroy_process_group()


# --- dask's programs -------------------------------------------------------------------------------------------------


def finished(x: Any) -> Any:
    """Return a chunk when its GPU has computed it: dask gives the next task to the worker that ends one first."""
    if x.device.type == "cuda":
        ta.cuda.current_stream().record().synchronize()
    return x


def on_host(x: Any) -> Any:
    """Return the small result of a chunk on the host, so that no message waits for later kernels."""
    return finished(x).to_device("cpu")


@ta.fuse
def mean_and_squares(x: Any) -> tuple[Any, Any]:
    """Return the mean of each column, and the sum of the squares of the differences from it."""
    mean = ta.mean(x, axis=0)
    return mean, ta.sum((x - mean) ** 2, axis=0)


def moments(x: Any) -> Any:
    """Return the number of rows, their mean and their squares for one chunk, on the host."""
    mean, squares = mean_and_squares(x)
    return on_host(ta.stack([ta.full_like(mean, x.shape[0]), mean, squares]))[None]


def unchanged(parts: Any, **options: Any) -> Any:
    """Return the moments of a chunk, which dask joins."""
    return parts


def joined(parts: Any, **options: Any) -> Any:
    """Return the moments of several chunks together [1]_.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
       variances", 1982.
    """
    number, mean, squares = parts[:, 0], parts[:, 1], parts[:, 2]
    total = ta.sum(number, axis=0)
    common = ta.sum(number * mean, axis=0) / total
    return ta.stack([total, common, ta.sum(squares + number * (mean - common) ** 2, axis=0)])[None]


def deviation_over_mean(parts: Any, **options: Any) -> Any:
    """Return the standard deviation over the mean, of the moments of several chunks."""
    number, mean, squares = joined(parts)[0]
    return ta.sqrt(squares / number) / mean


def deviation(count: int, nbytes: int, **where: Any) -> Any:
    """Return the deviation of columns over their mean, of normal numbers that are drawn on the workers."""
    random: Any = importlib.import_module("dask.array.random")
    reduction: Any = importlib.import_module("dask.array").reduction
    rows = nbytes // (8 * 128)
    with backend():
        x = random.default_rng(7).normal(10.0, 1.0, size=(count * rows, 128), chunks=(rows, 128), dtype="float64")
    meta = x._meta[None]
    parts = x.map_blocks(moments, chunks=((1,) * count, (3,), (128,)), new_axis=1, dtype="float64", meta=meta)
    options = {"combine": joined, "split_every": 16, "dtype": "float64", "meta": x._meta.reshape(-1)}
    found = reduction(parts, unchanged, deviation_over_mean, 0, **options)
    return found.compute(**where)


HALO, EXCHANGES = 128, 4
"""The steps of the stencil between two exchanges of as many rows, and the exchanges, in which GPUs may be idle."""


def steps_of_a_stencil(x: Any, steps: int = HALO) -> Any:
    """Replace inner elements by means of five, as many times as there are rows of neighbours on each side."""
    for _ in range(steps):
        x = chunks.stencil_step(x)
    return x


def stencil(count: int, nbytes: int, **where: Any) -> Any:
    """Return the sums of columns after steps of a 5-point stencil on bands of rows, periodic from top to bottom."""
    columns = 32768 if nbytes >= 2**30 else 128
    x = band(count, nbytes // (4 * columns), columns)
    for _ in range(EXCHANGES):
        x = x.map_overlap(steps_of_a_stencil, depth={0: HALO, 1: 0}, boundary={0: "periodic", 1: "none"}, meta=x._meta)
    return x.sum(axis=0).compute(**where)


def band(count: int, rows: int, columns: int) -> Any:
    """Return float32 in chunks of whole rows, drawn on the workers."""
    random: Any = importlib.import_module("dask.array.random")
    with backend():
        return random.default_rng(7).random((count * rows, columns), chunks=(rows, columns), dtype="float32")


@ta.fuse
def distances(points: Any, centres: Any) -> Any:
    """Return the squared distance of each point to each centre; points are columns."""
    return ta.sum((points[None] - centres[:, :, None]) ** 2, axis=1)


@ta.fuse
def sums_of_members(points: Any, nearest: Any, labels: Any) -> Any:
    """Return for each label the sum of its points."""
    return ta.sum(ta.where(nearest[None, None] == labels[:, None, None], points[None], 0.0), axis=2)


def totals(points: Any, centres: Any) -> Any:
    """Return the sum of a chunk's points next to each centre, and in one more column their number, on the host."""
    placed = ta.asarray(centres, device=points.device)
    nearest = ta.argmin(distances(points, placed), axis=0)
    labels = ta.arange(placed.shape[0], dtype=nearest.dtype, device=points.device)
    numbers = ta.sum(ta.astype(nearest[None] == labels[:, None], points.dtype), axis=1)
    sums = ta.concat([sums_of_members(points, nearest, labels), numbers[:, None]], axis=1)
    return on_host(sums)[:, None]


CENTRES, ROUNDS = 64, 5


def k_means(count: int, nbytes: int, **where: Any) -> Any:
    """Return the centres after five rounds over points of four float32, which stay on the workers."""
    wait: Any = importlib.import_module("distributed").wait
    random: Any = importlib.import_module("dask.array.random")
    n = nbytes // 16
    with backend():
        points = random.default_rng(7).random((4, count * n), chunks=(4, n), dtype="float32")
    points = points.map_blocks(finished, meta=points._meta).persist(**where)
    wait(points)
    centres = ta.to_numpy(points[:, :CENTRES].compute(**where)).T.copy()
    shape = ((CENTRES,), (1,) * count, (5,))
    for _ in range(ROUNDS):
        parts = points.map_blocks(
            totals, centres, chunks=shape, new_axis=2, dtype="float32", meta=points._meta[:, :, None]
        )
        found = ta.to_numpy(parts.sum(axis=1, split_every=4).compute(**where))
        centres = found[:, :-1] / found[:, -1:].clip(1.0)
    return ta.asarray(centres)


def backend() -> Any:
    return importlib.import_module("dask").config.set({"array.backend": "tilearray"})


PROGRAMS: dict[str, tuple[Callable[..., Any], float]] = {
    "deviation of columns over their mean": (deviation, 12.0),
    f"{EXCHANGES * HALO} steps of a 5-point stencil": (stencil, 1.0),
    f"five rounds of k-means, {CENTRES} centres": (k_means, 0.5),
}
"""Each program, and its share of the bytes of a chunk that ``--mebibytes`` names per 1024.

A chunk needs work for tens of milliseconds: its tasks take four milliseconds of dask's scheduler, whichever worker has
it. A chunk of the deviation exists within its task only; those of k-means and of the stencil have to fit below the part
of a GPU's memory at which dask spills.
"""
FIRST = dict(zip(PROGRAMS, (8, 4, 4)))
MOST = dict(zip(PROGRAMS, (1024, 16, 64)))
"""The chunks of the first run, which measures, and the most that fit into one GPU of 80 GB where they stay there."""
THREADS = 2
"""The threads of a worker: while one waits for its GPU, the other's kernels are in the queue."""
RUNS = 2
"""The runs on one worker and on all, in turn, of which the fastest ones count."""


@contextlib.contextmanager
def workers(devices: Sequence[str], **options: Any) -> Iterator[Any]:
    """Start a worker for each device, and a client."""
    local_cluster: Any = importlib.import_module("tilearray.dask.workers").local_cluster
    client: Any = importlib.import_module("distributed").Client
    with local_cluster(devices, **options) as cluster, client(cluster) as found:
        found.wait_for_workers(len(devices))
        yield found


def moved() -> tuple[int, ...]:
    """Return, on a worker, the bytes that its GPU's copies have moved: to and from the host, and from peers."""
    return tuple(ta.cuda.transfer_statistics()) if ta.cuda.device_count() else (0, 0, 0, 0)


def through_host(client: Any) -> int:
    """Return the bytes that all workers have copied from their GPUs to the host."""
    return sum(each[0] + each[3] for each in client.run(moved).values())


def tasks_left(dask_scheduler: Any) -> int:
    """Return, on the scheduler, the number of tasks and of results that are in memory."""
    return len(dask_scheduler.tasks)


def emptied(client: Any) -> None:
    """Wait until no result of an earlier run is left: the next run would use it, because dask names it equally."""
    gc.collect()
    while client.run_on_scheduler(tasks_left):
        time.sleep(0.01)


def enough_chunks(client: Any, name: str, nbytes: int, seconds: float, **where: Any) -> int:
    """Return the number of chunks that take `seconds` on one worker, or the most that fit; its caches are warm then."""
    program, count, most = PROGRAMS[name][0], FIRST[name], MOST[name]
    program(count, nbytes, **where)  # compiles, and takes memory from the driver
    while True:
        emptied(client)
        spent, _ = chunks.seconds(program, count, nbytes, **where)
        if spent > 0.7 * seconds or count == most:
            emptied(client)
            return count
        count = min(most, max(2 * count, int(count * seconds / spent) // 4 * 4))


def sent(dask_worker: Any) -> int:
    """Return, on a worker, the bytes that it has sent to others."""
    return dask_worker.transfer_outgoing_bytes_total


def covered(intervals: Sequence[tuple[float, float]]) -> float:
    """Return the seconds of the union of intervals."""
    total, end = 0.0, 0.0
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def account(client: Any, program: Callable[..., Any], *arguments: Any, **where: Any) -> tuple[float, Any, Rows]:
    """Return the seconds of a program, its result, and for each worker its tasks, their seconds and the bytes sent."""
    streamed: Any = importlib.import_module("distributed").get_task_stream
    before = client.run(sent)
    with streamed(client) as stream:
        spent, result = chunks.seconds(program, *arguments, **where)
    after = client.run(sent)
    found: Rows = []
    for worker in sorted(after):
        tasks = [each for each in stream.data if each["worker"] == worker]
        steps = [step for each in tasks for step in each["startstops"] if step["action"] == "compute"]
        busy = covered([(step["start"], step["stop"]) for step in steps])
        found.append({"tasks": len(tasks), "busy": busy, "sent": after[worker] - before[worker]})
    return spent, result, found


def programs(devices: Sequence[str], nbytes: int, seconds: float, only: str, keep: Callable[[Rows], None]) -> Rows:
    """Run each program on one worker of a cluster and on all, in turn, with chunks for `seconds` on one."""
    found: Rows = []
    with workers(devices, threads_per_worker=THREADS) as client:
        one = {"workers": [min(client.scheduler_info()["workers"])]}
        for name in chosen_programs(only):
            program, share = PROGRAMS[name]
            chunk = int(share * nbytes)
            with reported(name):
                count = enough_chunks(client, name, chunk, seconds, **one)
                row = {"part": "programs", "name": name, "chunks": count, "bytes": chunk, "workers": len(devices)}
                results: set[bytes] = set()
                program(count, chunk)  # warms the other workers
                for _ in range(RUNS):
                    for key, where in (("one", one), ("all", {})):
                        emptied(client)
                        before = through_host(client)
                        spent, result, accounts = account(client, program, count, chunk, **where)
                        print(name, key, f"{spent:.3f} s", accounts, file=sys.stderr, flush=True)
                        if spent < row.get(key, spent + 1):
                            row |= {key: spent, f"accounts of {key}": accounts}
                        results.add(ta.to_numpy(result).tobytes())
                row |= {"to_host": through_host(client) - before, "same": len(results) == 1}
                found.append(row)
                keep(found)
    return found


def chosen_programs(only: str) -> list[str]:
    """Return the names of the programs that have one of some words, which commas divide; all without words."""
    return [name for name in PROGRAMS if any(word in name for word in only.split(","))]


@contextlib.contextmanager
def reported(name: str) -> Iterator[None]:
    """Print an error of a program, and go on."""
    try:
        yield
    except Exception:
        print(name, file=sys.stderr)
        traceback.print_exc()


# --- chunks between workers ------------------------------------------------------------------------------------------


def use_rmm() -> None:
    """Take a worker's memory from RMM's pool, whose blocks another process can open; the driver's pools are private."""
    memory: Any = importlib.import_module("rmm.mr")
    ta.cuda.set_allocator(memory.PoolMemoryResource(memory.CudaMemoryResource(), initial_pool_size=8 * 2**30))


def summed(client: Any, array: Any, worker: str) -> Any:
    """Return the sum of an array of one worker, computed on another."""
    return client.submit(ta.sum, array, workers=worker, pure=False).result()


def ucx(devices: Sequence[str], nbytes: int, protocol: str) -> Rows:
    """Move chunks from one worker to the other, over TCP and over UCX."""
    wait: Any = importlib.import_module("distributed").wait
    found: Rows = []
    for each in ("tcp", protocol):
        with workers(devices, protocol=each) as client:
            if each != "tcp":
                client.run(use_rmm)
            first, second = list(client.scheduler_info()["workers"])[:2]
            times: list[float] = []
            copied = 0
            for _ in range(5):  # the first one connects, and compiles
                x = client.submit(ta.full, nbytes // 4, 3, dtype="int32", workers=first, pure=False)
                wait(x)
                before = through_host(client)
                spent, total = chunks.seconds(summed, client, x, second)
                times.append(spent)
                copied = through_host(client) - before
                if int(total) != 3 * (nbytes // 4):
                    raise AssertionError(f"{each}: a sum of {int(total)}")
            found.append({"part": "ucx", "name": each, "bytes": nbytes, "seconds": min(times), "to_host": copied})
            print(found[-1], file=sys.stderr, flush=True)
    return found


# --- the record ------------------------------------------------------------------------------------------------------


def size(nbytes: int) -> str:
    """Return a number of bytes as text."""
    for factor, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if nbytes >= factor:
            return f"{nbytes / factor:.4g} {unit}"
    return f"{nbytes} bytes"


def rated(row: dict[str, Any]) -> str:
    """Return the cells of a row beside torch: microseconds for small sizes, else GB/s."""
    if row["bytes"] < MEBI:
        cells = [f"{row[key] * 1e6:.1f} us" for key in ("ours", "theirs")]
    else:
        cells = [f"{row['bytes'] / row[key] / 1e9:.1f} GB/s" for key in ("ours", "theirs")]
    return " | ".join([row["name"], size(row["bytes"]), *cells, f"{row['theirs'] / row['ours']:.2f}"])


def accounted(name: str, accounts: Rows) -> str:
    """Return the line of a program's tasks on each worker that had some."""
    used = [each for each in accounts if each["tasks"]]
    tasks, busy = (", ".join(f"{each[key]:{form}}" for each in used) for key, form in (("tasks", "d"), ("busy", ".2f")))
    return f"| {name} | {len(used)} | {tasks} | {busy} | {', '.join(size(each['sent']) for each in used)} |"


def markdown(rows: Rows) -> str:
    """Return the tables of all rows."""
    parts: dict[str, Rows] = {}
    for row in rows:
        parts.setdefault(row["part"], []).append(row)
    text: list[str] = []
    heads = {"copies": "a copy with `to_device`", "collectives": "in place on both GPUs"}
    for part, head in heads.items():
        if part in parts:
            text += [f"| {head} | bytes | tilearray | torch | torch's time over ours |", "|---|---:|---:|---:|---:|"]
            text += [f"| {rated(row)} |" for row in parts[part]] + [""]
    for row in parts.get("copies counted", []):
        text += [
            f"Peer access: {row['peers']}; {size(row['from_peers'])} between peers, {size(row['through_host'])} "
            f"through the host.\n"
        ]
    if "programs" in parts:
        text += [
            "| program | chunks | virtual | one worker, s | two workers, s | scaling | copied to the host | same bits |"
        ]
        text += ["|---|---:|---:|---:|---:|---:|---:|---|"]
        for row in parts["programs"]:
            text.append(
                f"| {row['name']} | {row['chunks']} of {size(row['bytes'])} | {size(row['chunks'] * row['bytes'])} | "
                f"{row['one']:.2f} | {row['all']:.2f} | {row['one'] / row['all']:.2f} | {size(row['to_host'])} | "
                f"{'yes' if row['same'] else 'NO'} |"
            )
        text += ["", "| program | workers | tasks of each | seconds with a task | bytes sent to others |"]
        text.append("|---|---:|---:|---:|---:|")
        for row in parts["programs"]:
            kept = [row[key] for key in ("accounts of one", "accounts of all") if key in row]
            text += [accounted(row["name"], each) for each in kept]
        text.append("")
    if "ucx" in parts:
        text += ["| a chunk to the other worker, and its sum | bytes | seconds | GB/s | GPU to host |"]
        text += ["|---|---:|---:|---:|---:|"]
        for row in parts["ucx"]:
            rate = row["bytes"] / row["seconds"] / 1e9
            cells = [row["name"], size(row["bytes"]), f"{row['seconds']:.4f}", f"{rate:.1f}", size(row["to_host"])]
            text.append(f"| {' | '.join(cells)} |")
        text.append("")
    return "\n".join(text)


def record(files: Sequence[Path], out: Path | None) -> None:
    """Print the tables of the rows in some files; write a record in a folder."""
    report: Any = importlib.import_module("benchmarks.report")
    timing: Any = importlib.import_module("benchmarks.timing")
    rows: Rows = []
    for file in files:
        if file.exists():
            rows += json.loads(file.read_text(encoding="utf-8"))
        else:
            print(f"{file.name}: this part left no rows\n")
    text = markdown(rows)
    print(text)
    if out is None:
        return
    found = report.environment("cuda", timing.GpuClock(), "benchmarks.two_gpus") | {"size": "full", "rows": rows}
    for package in ("dask", "distributed", "nccl4py"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found["versions"][package] = metadata.version(package)
    head = report.provenance(found, "Two GPUs of one host: ")
    report.write(found, out, "\n".join([*head, "", text]), "-two-gpus")


def store(file: Path | None, rows: Rows) -> None:
    """Write rows to a file, if there is one."""
    if file is not None:
        file.write_text(json.dumps(rows), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one part; return 0."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.two_gpus", description="Two GPUs of one host.")
    top.add_argument("part", choices=("copies", "collectives", "programs", "ucx", "record"))
    top.add_argument("files", nargs="*", type=Path, help="of `record`: the rows of the other parts")
    top.add_argument("--json", type=Path, help="write the rows here")
    top.add_argument("--out", type=Path, help="of `record`: a folder")
    top.add_argument("--devices", default="cuda:0,cuda:1")
    top.add_argument("--mebibytes", type=float, default=1024.0, help="of a chunk, before a program's own factor")
    top.add_argument("--seconds", type=float, default=8.0, help="of a program on one worker")
    top.add_argument("--only", default="", help="words of programs' names, with commas; all by default")
    top.add_argument("--protocol", default="ucx")
    options = top.parse_args(arguments)
    devices, nbytes = options.devices.split(","), int(options.mebibytes * MEBI)
    if options.part == "record":
        record(options.files, options.out)
        return 0
    if options.part == "programs":
        rows = programs(devices, nbytes, options.seconds, options.only, lambda rows: store(options.json, rows))
    elif options.part == "ucx":
        rows = ucx(devices, nbytes, options.protocol)
    else:
        rows = copies() if options.part == "copies" else collectives()
    print(markdown(rows))
    store(options.json, rows)
    return 0 if options.part != "programs" or len(rows) == len(chosen_programs(options.only)) else 1


if __name__ == "__main__":
    # by the module's name: dask pickles the functions of __main__ by value, with each task
    sys.exit(importlib.import_module("benchmarks.two_gpus").main())

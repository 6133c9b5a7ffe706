"""The parts of the host time of a small operation: ``python -m benchmarks.dispatch``.

Every operand has a thousand elements, so the computation takes no time. The command prints three tables in
nanoseconds: operations beside the bare launch of the same run, the parts of ``a + b``, and the cost of a never-seen
shape. Without a GPU, or with ``--stub``, the driver is the stub of the tests. Its calls return at once, so the numbers
are Python's time alone. gcc compiles the stub.

Each part is timed alone, in a loop. The processor's caches and branch predictors are then warm, so the sum of the parts
is less than the whole. The last row is the difference.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import timing

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "tests" / "runtime" / "stub_driver" / "stub_driver.c"
FRESH = 2000
"""The number of operations on never-seen shapes."""

OPERATIONS = (
    "a + b",
    "a < b",
    "a * 2.0",
    "a * 2",
    "2.0 * a",
    "-a",
    "c += b",
    "c += 2.0",
    "add(a, b)",
    "add(a, b, out=c)",
    "m + m.T",
    "a*b + a*2 - b",
)
VIEWS = ("a[1:]", "a[5]", "m[1:, ::2]", "m.T")

PARTS = (
    ("the driver's launch", "launch(configuration, function, addresses, None)"),
    ("the state in force, the plan", "state().plans[add][a._signature][b._signature].call"),
    ("is torch capturing?", "if 'torch' in modules and torch.may_capture(0): pass"),
    ("a block of memory, its buffer, and back", "p = free.pop(); o = Buffer(); o.pointer = p; o.nbytes = 4000; "
     "o.stream = 0; o.free = free; o = None"),
    ("an argument frame, and back", "frame = frames.pop(); slab, start, x, y = frame; frames.append(frame)"),
    ("the addresses, packed", "pack(slab, start, x, u.pointer + a._offset, v.pointer + b._offset, fixed, 0)"),
    ("the streams of the operands", "u = a._buffer; v = b._buffer; u.stream != 0; v.stream != 0"),
    ("the new Array", "r = new(a.__class__); r._buffer = u; r._offset = 0; r._signature = signature"),
)  # fmt: skip


def load_stub() -> None:
    """Compile the stub driver, and load it under the driver's own name before any other code loads the driver."""
    folder = tempfile.mkdtemp(prefix="tilearray-stub-")
    library = Path(folder) / "libcuda.so.1"
    options = ["-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["gcc", *options, str(STUB), "-o", str(library), "-ldl", "-lpthread"], check=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def nanoseconds(statement: str, names: Mapping[str, Any], repeats: int) -> float:
    """Return the time of the fastest of many short runs. Slower runs were interrupted."""
    timer = timing.statement_timer(statement, names)
    timer.timeit(100)
    return min(timer.repeat(repeats, 300)) / 300 * 1e9


def operands() -> dict[str, Any]:
    """Return the names in the operations."""
    import tilearray as ta

    def array(*shape: int) -> Any:
        return ta.zeros(shape, dtype="float32", device="cuda:0")

    return {"a": array(1000), "b": array(1000), "c": array(1000), "m": array(32, 32), "add": ta.add}


def pieces(names: dict[str, Any]) -> dict[str, Any]:
    """Return the names in the parts of ``a + b``: the contents of its plan, and separate memory."""
    from tilearray.engine.context import STATE
    from tilearray_cuda.runtime.driver import TORCH
    from tilearray_cuda.runtime.memory.buffers import Buffer

    a, b, add = names["a"], names["b"], names["add"]
    a + b
    plan = STATE.get().plans[add][a._signature][b._signature]
    call = plan.call
    held = dict(zip(call.__code__.co_freevars, [cell.cell_contents for cell in call.__closure__], strict=True))
    arguments = call.__code__.co_varnames[: call.__code__.co_argcount]
    held.update(zip(arguments[-len(call.__defaults__) :], call.__defaults__, strict=True))
    slab, start, configuration, addresses = held["arguments"].frame()
    free = held["lists"][held["size0"]]
    held["pack"](slab, start, free[-1], a._buffer.pointer, b._buffer.pointer, held["fixed"], 0)
    return {
        **{name: held[name] for name in ("frames", "pack", "function", "fixed")},
        "signature": held["signature0"],
        "slab": slab,
        "start": start,
        "configuration": configuration,
        "addresses": addresses,
        "plan": plan,
        "a": a,
        "b": b,
        "c": names["c"],
        "u": a._buffer,
        "v": b._buffer,
        "x": free[-1],
        "free": free,
        "add": add,
        "launch": held["cuLaunchKernelEx"],
        "state": STATE.get,
        "new": object.__new__,
        "Buffer": Buffer,
        "torch": TORCH,
        "modules": sys.modules,
    }


def fresh_lengths(pool: Any, start: int, count: int) -> list[tuple[Any, Any]]:
    """Return pairs of contiguous operands of different lengths."""
    return [(pool[:size], pool[:size]) for size in range(start + 1000, start + 1000 + count)]


def fresh_shapes(pool: Any, start: int, count: int) -> list[tuple[Any, Any]]:
    """Return pairs of a block of a matrix and a row, of different shapes."""
    matrix = pool.reshape(128, 128)
    extents = [divmod(position, 112) for position in range(start, start + count)]
    return [(matrix[: rows + 2, : columns + 16], pool[: columns + 16]) for rows, columns in extents]


def never_seen(make: Any, pool: Any, add: Any) -> tuple[float, float]:
    """Return the nanoseconds of an addition of a never-seen shape: of the fastest run of 20 calls, and the median."""
    runs: list[float] = []
    for start in range(0, FRESH, 20):
        pairs = iter(make(pool, start, 20))
        runs.append(timeit.timeit(lambda: add(*next(pairs)), number=20) / 20 * 1e9)  # noqa: B023 - called at once
    runs.sort()
    return runs[0], runs[len(runs) // 2]


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table with numbers rounded to whole nanoseconds."""
    shown = [[f"{cell:.0f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    lines = [[title, *columns], ["---", *["---:"] * len(columns)], *shown]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dispatch", description=__doc__.partition("\n")[0])
    parser.add_argument("--stub", action="store_true", help="use the stub driver even if there is a GPU")
    parser.add_argument("--repeats", type=int, default=1000, help="runs of 300 calls; the fastest counts")
    options = parser.parse_args(arguments)
    import tilearray_cuda

    stub = options.stub or not tilearray_cuda.device_count()
    if stub:
        load_stub()
    import tilearray as ta

    names = operands()
    parts = pieces(names)
    measured = [(name, nanoseconds(statement, parts, options.repeats)) for name, statement in PARTS]
    bare = measured[0][1]
    whole = [(name, nanoseconds(name, names, options.repeats)) for name in (*OPERATIONS, *VIEWS)]
    rows = [(name, time, "" if name in VIEWS else time - bare) for name, time in whole]
    print(f"bare launch: {bare:.0f} ns on {'the stub driver' if stub else ta.devices()[0]}\n")
    print(table("operation", ("ns", "beyond a bare launch"), rows), "\n")
    rest = whole[0][1] - sum(time for _, time in measured)
    rows = [*measured, ("in between: calls, caches, branches", rest)]
    print(table("part of `a + b`", ("ns",), rows), "\n")
    pool = ta.zeros(1 << 14, dtype="float32", device="cuda:0")
    fresh = [(name, *never_seen(make, pool, ta.add)) for name, make in NEVER_SEEN]
    print(table("never-seen shape", ("fastest", "median"), fresh))
    return 0


NEVER_SEEN = (("length: x + y", fresh_lengths), ("shape: x[:r, :c] + y[:c]", fresh_shapes))


if __name__ == "__main__":
    sys.exit(main())

"""``python -m benchmarks.selection``: selection by masks and gathers on a GPU, beside torch and CuPy.

A row is a call on some arrays. Its figure is the rate of the bytes that it must move, and the fraction of a
device-to-device copy of the same run: a mask and the array that it selects from are read once, and the result is
written once. Indices that a gather reads count as well. Every result is compared with torch's before it is timed. A
selection by a mask includes the wait for the number of its elements. The host times are those of calls on small arrays.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables

SIZES = {"full": 16384, "small": 128}


class Row(NamedTuple):
    """A call: its text over the arrays and a library, the bytes that it must move, and the share of a mask.

    The arrays are ``a`` (a matrix), ``m`` (a mask of the same shape), ``z`` (a matrix that is 0 where ``m`` is false),
    ``r`` (a mask of rows), ``i`` (indices of rows), ``o`` (a target) and ``v`` (as many values as ``m`` selects). The
    bytes are an expression over ``count``, the number of true elements, and the ``nbytes`` of the arrays.
    """

    name: str
    text: str
    nbytes: str
    dtype: str = "float32"
    share: float = 0.5


SELECTED = "m.nbytes + a.nbytes + count * a.itemsize"
SHARES = (0.5, 0.01, 0.99)
FLAT = "a.reshape(-1)[m.reshape(-1)]"
ROWS = (
    *[
        Row(f"a[mask], {dtype}, {share:g} true", "a[m]", SELECTED, dtype, share)
        for dtype in ("float32", "float64", "bfloat16", "uint8")
        for share in SHARES
    ],
    Row("a[mask], complex64, 0.5 true", "a[m]", SELECTED, "complex64"),
    *[Row(f"flat a[mask], {share:g} true", FLAT, SELECTED, share=share) for share in SHARES],
    *[
        Row(f"a[:, 1:][mask[:, 1:]], {share:g} true", "a[:, 1:][m[:, 1:]]", SELECTED, share=share)
        for share in (0.5, 0.01)
    ],
    Row("a.T[mask.T], 0.5 true", "a.T[m.T]", SELECTED),
    Row("a[mask of rows]", "a[r]", "2 * int(r.sum()) * a.nbytes // len(a)"),
    *[Row(f"nonzero, {share:g} true", "nonzero(m)", "m.nbytes + 16 * count", share=share) for share in SHARES],
    *[
        Row(f"flat nonzero, {share:g} true", "nonzero(m.reshape(-1))", "m.nbytes + 8 * count", share=share)
        for share in SHARES
    ],
    *[
        Row(f"nonzero of float32, {share:g} true", "nonzero(z)", "a.nbytes + 16 * count", share=share)
        for share in SHARES
    ],
    Row("a[mask] = 0", "put(a, m, 0)", "m.nbytes + count * a.itemsize"),
    Row("a[mask] = values", "put(a, m, v)", "m.nbytes + 2 * count * a.itemsize"),
    Row("a[idx] rows", "a[i]", "2 * a.nbytes + i.nbytes"),
    Row("a[:, idx]", "a[:, i]", "2 * a.nbytes + i.nbytes"),
    Row("o[idx] = a", "put(o, i, a)", "2 * a.nbytes + i.nbytes"),
)
CALLS = ("x[m]", "x[i]", "lib.nonzero(m)", "x[m] = 0.0", "x[i] = 0.0", "take(lib, x, i)", "along(lib, x, i)")


class Library(NamedTuple):
    """A library, and how it takes a torch tensor."""

    name: str
    module: Any
    adopt: Callable[[Any], Any]

    def run(self, row: Row, arrays: dict[str, Any]) -> Any:
        """Run a row."""
        return eval(row.text, {**arrays, "nonzero": self.nonzero, "put": put})

    def nonzero(self, x: Any) -> tuple[Any, ...]:
        """Return the indices of true elements, an array for each axis."""
        return self.module.nonzero(x, as_tuple=True) if self.name == "torch" else self.module.nonzero(x)


def put(target: Any, key: Any, value: Any) -> Any:
    """Assign, and return the target."""
    target[key] = value
    return target


def take(library: Any, x: Any, indices: Any) -> Any:
    """Run ``take`` as each library calls it."""
    return x[indices] if library.__name__ == "torch" else library.take(x, indices, axis=0)


def along(library: Any, x: Any, indices: Any) -> Any:
    """Run ``take_along_axis`` as each library calls it."""
    return x.gather(0, indices) if library.__name__ == "torch" else library.take_along_axis(x, indices, axis=0)


def libraries(torch: Any, wanted: Sequence[str]) -> list[Library]:
    """Return the libraries that are installed and wanted."""
    import tilearray as ta

    found = [Library("torch", torch, lambda x: x), Library("tilearray", ta, ta.asarray)]
    if importlib.util.find_spec("cupy"):
        cupy: Any = importlib.import_module("cupy")
        found.append(Library("cupy", cupy, cupy.from_dlpack))
    return [library for library in found if library.name in wanted]


def made(torch: Any, row: Row, size: int) -> dict[str, Any]:
    """Return the arrays of a row as torch tensors."""
    torch.manual_seed(7)
    a = torch.randint(0, 100, (size, size), device="cuda", dtype=torch.uint8).to(getattr(torch, row.dtype))
    m = torch.rand((size, size), device="cuda") < row.share
    found = {"a": a, "m": m, "r": torch.rand(size, device="cuda") < row.share}
    found |= {"i": torch.randperm(size, device="cuda"), "o": a}
    if "(z)" in row.text:
        found["z"] = (a + 1) * m
    if "v" in row.text:
        found["v"] = a[m]
    return {name: array.clone() if name == "o" else array for name, array in found.items()}


def bytes_of(row: Row, arrays: dict[str, Any]) -> int:
    """Return the bytes that a row must move."""
    facts: dict[str, Any] = {**arrays, "count": int(arrays["m"].sum())}
    text = row.nbytes.replace("a.itemsize", "a.element_size()").replace("a.size", "a.numel()")
    return int(eval(text, facts))


def agrees(torch: Any, library: Library, result: Any, expected: Any) -> bool:
    """Whether a result has the values of torch's."""
    pairs = zip(result, expected, strict=True) if isinstance(expected, tuple) else [(result, expected)]
    return all(
        torch.equal(given if library.name == "torch" else torch.from_dlpack(given), wanted) for given, wanted in pairs
    )


def measured(
    torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str, copy: Callable[[], float]
) -> dict[str, Any]:
    """Check and time a row with every library."""
    nbytes = bytes_of(row, made(torch, row, SIZES[size]))
    rate = copy()

    def given(library: Library) -> dict[str, Any]:
        return {name: library.adopt(x) for name, x in made(torch, row, SIZES[size]).items()}

    def checked(library: Library) -> Any:
        if library.name != "torch":
            theirs = Library("torch", torch, lambda x: x).run(row, made(torch, row, SIZES[size]))
            if not agrees(torch, library, library.run(row, given(library)), theirs):
                return tables.MISMATCH
        return partial(library.run, row, given(library))

    return tables.rated_row(clock, row, found, checked, size, nbytes, rate)


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of calls on 1000 elements."""
    x = torch.rand(1000, device="cuda")
    arrays = {"x": x, "m": x < 0.5, "i": torch.randperm(1000, device="cuda")}

    def given(library: Library) -> dict[str, Any]:
        own = {name: library.adopt(array) for name, array in arrays.items()}
        return {"lib": library.module, "take": take, "along": along, **own}

    return [
        tables.host_row(
            clock,
            text.replace("lib, ", "").replace("lib.", ""),
            ((library.name, text, given(library)) for library in found),
            size,
        )
        for text in CALLS
    ]


BENCHMARK = tables.Benchmark(
    "selection",
    "Selection",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_rates, title="Selection: "),
    copied=lambda size: (SIZES[size], SIZES[size]),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())

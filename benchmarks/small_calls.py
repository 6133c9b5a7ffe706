"""Host time of single calls beside NumPy: ``python -m benchmarks.small_calls``.

The first table is of small calls, over 1000 elements: each is to take at most 3 times NumPy's time or 2 us, whichever
is more. The second is of larger arrays, where the time is that of the elements: at most 1.5 times NumPy's. Both sides
run in one process, in turns, and the minimum of many batches is taken, since a slower batch was interrupted. On a
loaded machine only the ratios count.

A row gives one statement for both sides, or one for each: NumPy does not saturate, for example, and has no bfloat16 of
its own (the dtypes of ml_dtypes stand in for it). Names with an underscore are operands of both, the same elements.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from benchmarks import timing

SMALL, LARGE = 1000, 100_000


class Row(NamedTuple):
    """A statement of tilearray, and the statement of NumPy that does the same work."""

    ours: str
    theirs: str
    dtype: str = "float32"


def same(statement: str, dtype: str = "float32") -> Row:
    """A row with one statement for both sides; `xp` is the library."""
    return Row(statement, statement, dtype)


CALLS = (
    same("x[5] = 1.0"),
    same("x[5]"),
    same("x[5].item()"),
    same("x[1:5]"),
    same("x[1:] = x[:-1]"),
    same("x[:] = 0.0"),
    Row("x[:] = host", "x[:] = y"),
    Row("x[:3] = [1, 2, 3]", "x[:3] = [1, 2, 3]"),
    same("x[idx]"),
    same("x[mask]"),
    same("x[idx] = 1.0"),
    same("x[mask] = 1.0"),
    same("x[idx] = x[idx]"),
    same("xp.asarray([1.0, 2.0])"),
    same("xp.asarray(3.0)"),
    same("xp.asarray(host)"),
    Row("xp.asarray(tensor)", "tensor.numpy()"),
    same("xp.asarray(x)"),
    same("x.astype(xp.int32)"),
    Row("x.astype(xp.bfloat16)", "x.astype(ml_dtypes.bfloat16)"),
    same("x.astype(xp.float64)"),
    same("x.copy()"),
    Row("xp.zeros(1000)", "xp.zeros(1000, dtype='f4')"),
    Row("xp.ones(1000)", "xp.ones(1000, dtype='f4')"),
    Row("xp.full(1000, 2.5)", "xp.full(1000, 2.5, dtype='f4')"),
    Row("xp.empty(1000)", "xp.empty(1000, dtype='f4')"),
    same("xp.zeros_like(x)"),
    same("xp.arange(1000)"),
    Row("xp.arange(0.0, 1000.0)", "xp.arange(0.0, 1000.0, dtype='f4')"),
    Row("xp.linspace(0.0, 1.0, 1000)", "xp.linspace(0.0, 1.0, 1000, dtype='f4')"),
    Row("xp.eye(30)", "xp.eye(30, dtype='f4')"),
    same("xp.concat([x, y])"),
    same("xp.stack([x, y])"),
    same("xp.concat([x[:3], y[:3]])"),
    Row("xp.roll(x, 3)", "xp.roll(x, 3)"),
    Row("xp.repeat(x, 2)", "xp.repeat(x, 2)"),
    Row("xp.take(x, idx)", "xp.take(x, idx)"),
    same("x + y"),
    same("x * 2.0"),
    same("x * 2"),
    same("2.0 * x"),
    same("x ** 2"),
    same("x ** y"),
    same("x < 500.0"),
    same("x // 3", "int32"),
    same("x += y"),
    same("x[1:] + x[:-1]"),
    same("xp.exp(x)"),
    same("xp.sqrt(x)"),
    same("xp.where(mask, x, y)"),
    same("xp.clip(x, 1.0, 5.0)"),
    same("xp.reshape(x, (10, 100))"),
    same("x.reshape(10, 100)"),
    same("m.T"),
    same("m @ m"),
    same("xp.tensordot(m, m, axes=1)"),
    same("xp.einsum('ij,jk->ik', m, m)"),
    same("xp.linalg.solve(m, m)"),
    same("xp.linalg.inv(m)"),
    same("xp.linalg.det(m)"),
    same("xp.linalg.qr(m)"),
    same("xp.linalg.svd(m)"),
    same("xp.fft.fft(x)"),
    same("xp.fft.rfft(x)"),
    same("xp.fft.fft2(m)"),
    same("xp.fft.irfft2(m)"),
    same("xp.fft.fftfreq(1000)"),
    same("xp.sort(x)"),
    Row("xp.argsort(x)", "xp.argsort(x, kind='stable')"),
    same("xp.max(x)"),
    same("xp.argmax(x)"),
    same("xp.sum(x)"),
    same("xp.mean(x)"),
    same("xp.any(x)"),
    same("xp.var(x)"),
    same("xp.unique_counts(x)"),
    same("xp.unique_values(x)"),
    same("xp.nonzero(mask)"),
    same("xp.searchsorted(x, y)"),
    same("float(x[5])"),
    same("x.tolist()"),
    same("np.asarray(x)"),
    Row("xp.cumulative_sum(x)", "xp.cumsum(x)"),
    Row("xp.cumulative_prod(x)", "xp.cumprod(x)"),
)

ARRAYS = (
    Row("x.astype(xp.int32)", "x.astype(xp.int32)"),
    Row("x.astype(xp.int64)", "x.astype(xp.int64)"),
    Row("x.astype(xp.uint8)", "x.astype(xp.uint8)"),
    Row("x.astype(xp.int32)", "x.astype(xp.int32)", "float64"),
    Row("x.astype(xp.int64)", "x.astype(xp.int64)", "float64"),
    Row("x.astype(xp.int16)", "x.astype(xp.int16)", "float16"),
    Row("x.astype(xp.float32)", "x.astype(xp.float32)", "uint8"),
    Row("x.astype(xp.bfloat16)", "x.astype(ml_dtypes.bfloat16)"),
    Row("x.astype(xp.bfloat16)", "x.astype(ml_dtypes.bfloat16)", "float64"),
    Row("x.astype(xp.float32)", "x.astype(xp.float32)", "bfloat16"),
    Row("x.astype(xp.float8_e4m3fn)", "x.astype(ml_dtypes.float8_e4m3fn)"),
    Row("x.astype(xp.float8_e4m3fn)", "x.astype(ml_dtypes.float8_e4m3fn)", "bfloat16"),
    Row("x.astype(xp.float8_e5m2)", "x.astype(ml_dtypes.float8_e5m2)", "float16"),
    Row("x.astype(xp.float32)", "x.astype(xp.float32)", "float8_e4m3fn"),
    Row("x.astype(xp.bfloat16)", "x.astype(ml_dtypes.bfloat16)", "float8_e4m3fn"),
    same("x ** 2"),
    same("x ** 2", "float64"),
    same("x ** 2", "int32"),
    same("x ** 3", "int32"),
    same("x ** y"),
    same("xp.sort(x)"),
    same("xp.sort(x)", "int32"),
    same("xp.sort(x)", "int16"),
    Row("xp.argsort(x)", "xp.argsort(x, kind='stable')"),
    Row("xp.argsort(x, stable=False)", "xp.argsort(x)"),
    Row("xp.argsort(x)", "xp.argsort(x, kind='stable')", "int32"),
    same("xp.unique_values(x)"),
    same("xp.unique_values(x)", "int32"),
    same("xp.unique_counts(x)", "int32"),
    same("xp.unique_inverse(x)", "int32"),
    same("xp.max(x)"),
    same("xp.argmax(x)"),
    same("xp.sum(x)"),
    same("xp.mean(x)"),
    same("xp.var(x)"),
    same("xp.sum(x)", "float64"),
    same("xp.mean(x)", "float64"),
    same("xp.var(x)", "float64"),
    same("xp.prod(x)"),
    same("xp.sum(x[::2])"),
    same("xp.sum(xp.reshape(x, (-1, 100)), axis=0)"),
    same("xp.sum(xp.reshape(x, (-1, 100)), axis=1)"),
    same("xp.sum(xp.reshape(x, (-1, 100))[:, :99])"),
    same("xp.var(xp.reshape(x, (-1, 100)), axis=0)"),
    same("xp.var(xp.reshape(x, (-1, 100)), axis=1)"),
    same("x + y"),
    same("x * 2.0"),
    Row("xp.fma(x, y, x)", "x * y + x"),
    same("xp.where(mask, x, y)"),
    same("x[idx]"),
    same("x[mask]"),
    same("xp.concat([x, y])"),
    same("xp.roll(x, 3)"),
    same("xp.arange(100000)"),
    same("xp.clip(x, 1.0, 5.0)"),
    same("xp.nonzero(mask)"),
    same("xp.isnan(x)"),
    same("xp.abs(x)"),
    same("xp.abs(x)", "float16"),
    same("xp.negative(x)", "float16"),
    same("xp.abs(x)", "bfloat16"),
    Row("xp.cumulative_sum(x)", "xp.cumsum(x)"),
    Row("xp.cumulative_prod(x)", "xp.cumprod(x)"),
)

TARGETS = {"small": (3.0, 2.0), "large": (1.5, 0.0)}
"""For each table the most times of NumPy's time, and the microseconds that are always enough."""


def operands(size: int, row: Row) -> dict[str, np.ndarray]:
    """Return the names of a row as ndarrays: elements in random order, indices, a mask and a matrix."""
    draw = np.random.default_rng(5)
    dtype, top = row.dtype, 100 if "8" in row.dtype + row.ours else 1000  # all dtypes of the row hold the elements
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, y = (draw.permutation(size).astype(np.float64) % top for _ in range(2))
    return {
        "x": x.astype(kind),
        "y": y.astype(kind),
        "idx": draw.integers(0, size, size),
        "mask": draw.random(size) < 0.5,
        "m": draw.random((30, 30)).astype(np.float32),
        "host": y.astype(kind),
    }


def sides(size: int, row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the names of both sides over separate memory."""
    import tilearray as ta

    common: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes}
    given = operands(size, row)
    ours: dict[str, Any] = {
        name: value if name == "host" else ta.asarray(value.copy(), device="cpu") for name, value in given.items()
    }
    theirs: dict[str, Any] = dict(given)
    try:
        import torch
    except ImportError:
        pass
    else:
        ours["tensor"] = theirs["tensor"] = torch.zeros(size)
    return {**common, **ours, "xp": ta}, {**common, **theirs, "xp": np}


def measured(row: Row, size: int, seconds: float) -> list[float]:
    """Return the microseconds of both sides, taken in turns."""
    pairs = zip((row.ours, row.theirs), sides(size, row), strict=True)
    timers = [timing.statement_timer(statement, names).timeit for statement, names in pairs]
    with np.errstate(all="ignore"):
        return timing.best_in_turns(timers, seconds)


def measurements(table: str, size: int, only: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Measure the rows of a table whose statement contains `only`."""
    times, enough = TARGETS[table]
    for row in CALLS if table == "small" else ARRAYS:
        if only not in row.ours:
            continue
        if "tensor" in row.ours and "tensor" not in sides(1, row)[0]:
            continue
        try:
            ours, theirs = measured(row, size, seconds)
        except (TypeError, ValueError, AttributeError) as error:  # one of the sides lacks it
            print(f"{row.ours:<32} {type(error).__name__}: {error}")
            continue
        yield {
            "call": row.ours,
            "dtype": row.dtype,
            "size": size,
            "tilearray_us": round(ours, 3),
            "numpy_us": round(theirs, 3),
            "ratio": round(ours / theirs, 2),
            "met": ours <= max(times * theirs, enough),
        }


def main() -> None:
    """Print the tables, and store them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the rows whose statement contains this text")
    parser.add_argument("--table", choices=sorted(TARGETS), action="append", help="one of the tables; both by default")
    parser.add_argument("--seconds", type=float, default=0.1, help="the time that a row takes")
    parser.add_argument("--large", type=int, default=LARGE, help="the elements of the second table")
    parser.add_argument("--out", help="a JSON file for the rows")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for table in given.table or ("small", "large"):
        print(f"\n{'call':<32} {'dtype':<14} {'size':>8} {'tilearray':>10} {'NumPy':>10} {'ratio':>7}")
        for row in measurements(table, SMALL if table == "small" else given.large, given.only, given.seconds):
            rows.append(row)
            print(
                f"{row['call']:<32} {row['dtype']:<14} {row['size']:>8} {row['tilearray_us']:>8.2f}us "
                f"{row['numpy_us']:>8.2f}us {row['ratio']:>7.2f}{'' if row['met'] else '  above the target'}",
                flush=True,
            )
    print(f"\n{sum(row['met'] for row in rows)} of {len(rows)} rows meet their target.")
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

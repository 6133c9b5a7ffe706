"""``tilearray cache warm``: compile the kernels of ops, dtypes and layouts ahead of use, without a GPU.

A kernel depends on an expression and a loop class, never on a shape. So a few representative calls cover all. Like
any call, they are planned by `make_plan`. Their device has no memory and only records the requested kernel. Therefore
a GPU will look up exactly the kernels that are compiled here. Results are new arrays, which are aligned. A view is
aligned if its first element is.

Separate processes compile, because Triton compiles one kernel at a time in a process. They are in their own process
group, so Ctrl-C does not reach them; each finishes its current kernel. A cache file is always written completely.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import itertools
import multiprocessing
import os
import signal
import tempfile
import threading
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import Backend
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.engine.operation import typed_scalar
from tilearray.engine.plan import Key, make_plan
from tilearray.engine.signature import Signature, signature_of
from tilearray.errors import BroadcastError, TileArrayError
from tilearray.explaining.kernels import ARCHITECTURES as ARCHITECTURES
from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import Loop
from tilearray.ops import OPS
from tilearray.ops.execute import execute
from tilearray.ops.row import Row as OpRow
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics

ROWS: dict[str, OpRow] = {op.name: op for op in OPS}
OPERATORS = tuple(op.name for op in OPS if op.operator)
NUMBERS = {
    "bool": (ScalarClass.BOOL,),
    "int": (ScalarClass.INT32, ScalarClass.FLOAT32),
    "uint": (ScalarClass.INT32, ScalarClass.FLOAT32),
    "float": (ScalarClass.FLOAT32,),
    "complex": (ScalarClass.COMPLEX,),
}
"""The classes of Python numbers that are usual with arrays of a kind. Wider numbers need other kernels."""


# --- layouts ------------------------------------------------------------------------------------------------------


class View(NamedTuple):
    """The layout of an operand, and the distance in elements from an aligned address to its first element."""

    layout: Layout
    shift: int = 0


def dense(*shape: int) -> View:
    return View(Layout.of(shape))


def part(shape: tuple[int, ...], *key: slice) -> View:
    return View(*Layout.of(shape).index(key))


def permuted(shape: tuple[int, ...], *axes: int) -> View:
    return View(Layout.of(shape).permute(axes))


BACKWARDS, FROM_1, EVEN = slice(None, None, -1), slice(1, None), slice(None, None, 2)
ALL = slice(None)
VECTOR, BLOCK = dense(1000), dense(32, 48, 64)
SHAPES = ((96, 640), (96, 641), (96, 96), (96, 95), (4096, 4096), (4095, 4097))
"""Kernels for matrices depend on three facts: whether the pitch is a multiple of 16 elements, whether the last axis is
short, and whether the matrix is large."""
SIZES = (640, 4096)

# name -> description, and groups of views; a call uses every combination of the views of a group
LAYOUTS: dict[str, tuple[str, tuple[tuple[View, ...], ...]]] = {
    "contiguous": ("dense arrays of one shape", ((VECTOR,),)),
    "scalar": ("a Python or NumPy number instead of an array", ((VECTOR, dense()),)),
    "row": ("a row broadcast along a matrix", tuple((dense(m, n), dense(n)) for m, n in SHAPES)),
    "column": ("a column broadcast along a matrix", tuple((dense(m, n), dense(m, 1)) for m, n in SHAPES)),
    "outer": ("a column with a row", tuple((dense(m, 1), dense(n)) for m, n in SHAPES)),
    "transposed": ("a matrix with its transpose", tuple((dense(m, n), permuted((n, m), 1, 0)) for m, n in SHAPES)),
    "permuted": ("three axes, permuted", ((BLOCK, permuted((48, 32, 64), 1, 0, 2)),
                                                 (BLOCK, permuted((32, 64, 48), 0, 2, 1),
                                                  permuted((64, 48, 32), 2, 1, 0)))),
    "sliced": ("a block of a wider matrix", tuple((dense(m, n), part((m, n + (2 if n % 2 else 16)), ALL, slice(n)))
                                                  for m, n in SHAPES)),
    "shifted": ("all elements except the first", ((VECTOR, part((1001,), FROM_1)),
                                               *((dense(n, n), part((n, n + 1), ALL, FROM_1)) for n in SIZES))),
    "strided": ("every second element", ((VECTOR, part((2000,), EVEN)),
                                         *((dense(n, n), part((n, 2 * n), ALL, EVEN)) for n in SIZES))),
    "reversed": ("read backwards", ((VECTOR, part((1000,), BACKWARDS)), (dense(993), part((993,), BACKWARDS)),
                                    *((dense(n, n), part((n, n), BACKWARDS)) for n in SIZES),
                                    *((dense(n, n), part((n, n), ALL, BACKWARDS)) for n in SIZES))),
    "large": ("dense arrays of 2**31 elements", ((dense(2**31),),)),
}  # fmt: skip


# --- calls and their kernels --------------------------------------------------------------------------------------


class Request(NamedTuple):
    """The arguments of a device's `compile`."""

    expression: Expression
    loop_class: Any
    aligned: tuple[bool, ...]


class _Planner:
    """A backend that does not compile: the kernel of a plan is the request for it."""

    call_writer = lists = index_errors = indexing = reductions = sorting = None
    linear_algebra = products = matrices = factors = fourier = transforms = None
    on_host, approximates = False, True

    def loop_class(self, loop: Loop, /) -> Any:
        return _choose().loop_class(loop)

    def facts_of_matrix(self, size: int, columns: int, outer: int, inner: int, /) -> int:
        return _choose().facts_of_matrix(size, columns, outer, inner)

    def cuts(self, expression: Expression, /) -> bool:
        del expression
        return True

    def compile(self, expression: Expression, loop_class: Any, aligned: tuple[bool, ...], /) -> Request:
        return Request(expression, loop_class, aligned)

    def bind(self, kernel: Request, loop: Loop, /) -> Request:
        return kernel


def _choose() -> Any:
    return importlib.import_module("tilearray_cuda.kernels.schedules.choose")


PLANNER = Device("any_gpu", 0)
"""Represents every GPU, because a plan requests the same kernel on all of them. It has no public name and no memory."""
PLANNER.backend = cast(Backend, _Planner())


class Call(NamedTuple):
    """An op, the keys of its operands, and its target or None."""

    op: OpRow
    keys: tuple[Key, ...]
    out: Signature | None


class Row(NamedTuple):
    """An op and the dtypes of its operands (for a copy: of the value and the target)."""

    op: OpRow
    dtypes: tuple[np.dtype, ...]

    def __str__(self) -> str:
        return f"{self.op.name} {' '.join(dtype.name for dtype in self.dtypes)}"


def rows_of(op: OpRow, chosen: Sequence[np.dtype], mixed: bool) -> Iterator[Row]:
    """Yield an op with each dtype, or with all combinations. Copies take all pairs of dtypes."""
    places = 2 if op.moves else op.arity - op.masks - op.exponents
    for given in itertools.product(chosen, repeat=places):
        if mixed or op.moves or len(set(given)) == 1:
            yield Row(op, (dtypes.bool_,) * op.masks + given + (dtypes.int64,) * op.exponents)


def calls_of(row: Row, layout: str) -> Iterator[Call]:
    """Yield the calls that represent a layout: all combinations of its views, and in-place calls of operators."""
    op = row.op
    for views in LAYOUTS[layout][1]:
        if op.moves:
            yield from _copies(row, views, layout)
            continue
        for combination in itertools.product(views, repeat=op.arity):
            keys = tuple(_signature(view, dtype) for view, dtype in zip(combination, row.dtypes, strict=True))
            yield Call(op, keys, None)
            if op.operator and op.arity == 2:
                yield Call(op, keys, keys[0])
    if layout == "scalar" and not op.moves:
        yield from _with_numbers(row)


def _signature(view: View, dtype: np.dtype) -> Signature:
    return signature_of(view.layout, dtype, PLANNER, view.shift * dtype.itemsize % 16 == 0)


def _copies(row: Row, views: tuple[View, ...], layout: str) -> Iterator[Call]:
    """Yield copies, assignments and fills. The target of ``astype`` has the layout of a new result."""
    op, (source, target) = row
    for value in views:
        given = _signature(value, source)
        if op.casts_freely:
            yield Call(op, (given,), signature_of(value.layout.dense(), target, PLANNER))
            continue
        if source == target:
            yield Call(op, (given,), None)
        for place in views:
            yield Call(op, (given,), _signature(place, target))
        if layout != "scalar":
            yield Call(op, (typed_scalar(target),), _signature(value, target))


def _with_numbers(row: Row) -> Iterator[Call]:
    """Yield calls in which Python numbers replace some operands, but not a condition and not all arrays."""
    op = row.op
    arrays: tuple[Key, ...] = tuple(_signature(VECTOR, dtype) for dtype in row.dtypes)
    for replaced in itertools.product((False, True), repeat=op.arity):
        if not any(replaced) or all(replaced) or any(replaced[: op.masks]):
            continue
        for number in NUMBERS[dtypes.info(row.dtypes[-1]).kind]:
            keys = tuple(number if scalar else array for scalar, array in zip(replaced, arrays, strict=True))
            yield Call(op, keys, None)


def request_of(call: Call, semantics: Semantics) -> Request:
    """Return the kernel request that results from planning a call."""
    return cast(Request, make_plan(call.op, semantics, call.keys, call.out, execute).kernel)


Job = tuple[Any, int]
"""A kernel's source and the architecture to compile it for."""


class Selection(NamedTuple):
    """The selected kernels, and the reasons why some rows have none."""

    jobs: tuple[Job, ...]
    unsupported: dict[str, str]


def select(
    rows: Iterable[Row], layouts: Sequence[str], architectures: Sequence[int], semantics: Semantics
) -> Selection:
    """Return the sources of all kernels that calls of these rows and layouts run, each once for each architecture.

    Examples
    --------
    >>> import tilearray as ta
    >>> jobs, unsupported = select(rows_of(ROWS["add"], [ta.float32], False), ["row"], [90], ta.get_semantics())
    >>> [source.name for source, arch in jobs[:2]], unsupported
    (['add_flat', 'add_lookup'], {})
    """
    generate = importlib.import_module("tilearray_cuda.kernels.source").generate
    make_spec = importlib.import_module("tilearray_cuda.kernels.spec").make_spec
    jobs: dict[Job, None] = {}
    unsupported: dict[str, str] = {}
    for row in rows:
        specs: dict[Any, None] = {}
        reasons: list[str] = []
        for call in itertools.chain.from_iterable(calls_of(row, layout) for layout in layouts):
            try:
                specs[make_spec(*request_of(call, semantics))] = None
            except BroadcastError:  # the target is smaller than the result
                continue
            except (TileArrayError, NotImplementedError) as error:
                reasons.append(str(error))
        found: list[Job] = []
        for spec, arch in itertools.product(specs, architectures):
            try:
                found.append((generate(spec, arch), arch))
            except NotImplementedError as error:
                reasons.append(str(error))
        jobs.update(dict.fromkeys(found))
        if reasons and not found:
            unsupported[str(row)] = reasons[0]
    return Selection(tuple(jobs), unsupported)


# --- compiling ----------------------------------------------------------------------------------------------------


class WarmError(TileArrayError):
    """Kernels cannot be compiled ahead of use: a package is missing, or the cache's directory is not writable."""


class Outcome(NamedTuple):
    """The outcome for one kernel: whether it was compiled, the error if any, and the number of evicted kernels."""

    label: str
    compiled: bool
    error: str
    evicted: int


def check_ready() -> None:
    """Raise WarmError if kernels cannot be compiled, or cannot be stored."""
    if importlib.util.find_spec("triton") is None:
        raise WarmError("triton, which compiles the kernels, is not installed; write: pip install triton (for Linux)")
    cache: Any = importlib.import_module("tilearray_cuda.kernels.disk_cache").process_cache()
    if cache.limit == 0:
        raise WarmError("TILEARRAY_CACHE_SIZE is 0, so kernels are kept in memory only; unset it")
    try:
        cache.prepare()
        with tempfile.TemporaryFile(dir=cache.directory):
            pass
    except OSError as error:
        raise WarmError(
            f"cannot keep kernels in {str(cache.directory)!r}: {error.strerror or error}; "
            "set TILEARRAY_CACHE_DIR to another directory"
        ) from error


def compile_all(jobs: Sequence[Job], workers: int) -> Generator[Outcome, None, None]:
    """Compile the kernels that are not in the cache, in `workers` processes. Yield the outcomes in any order.

    If the iterator is closed or interrupted, the processes finish their current kernels and start no others.

    Raises
    ------
    WarmError
        If a process died, or the directory of the cache is no longer writable.
    """
    if not jobs:
        return
    pool = ProcessPoolExecutor(min(workers, len(jobs)), multiprocessing.get_context("spawn"), initializer=_isolate)
    try:
        with _interrupts_ignored():  # the new processes inherit this
            waiting = [pool.submit(compile_one, *job) for job in jobs]
        for done in as_completed(waiting):
            yield done.result()
    except Warning as error:  # the cache cannot write, so the work would be lost
        raise WarmError(str(error)) from error
    except BrokenProcessPool as error:
        raise WarmError("a compiler process died, perhaps out of memory; write fewer --jobs") from error
    finally:
        pool.shutdown(cancel_futures=True)


def compile_one(source: Any, arch: int) -> Outcome:
    """Request a kernel from the cache as `tilearray_cuda` does. The outcome includes errors of the compiler."""
    cache = importlib.import_module("tilearray_cuda.kernels.disk_cache")
    cubin_of = importlib.import_module("tilearray_cuda.kernels.compile").cubin_of
    before, error = cache.statistics(), ""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # Triton prints its failures
        warnings.simplefilter("error", cache.CacheWarning)
        try:
            cubin_of(source, arch)
        except cache.CacheWarning:
            raise
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
    after = cache.statistics()
    return Outcome(
        f"{source.label} sm_{arch}", after.compiles > before.compiles, error, after.evictions - before.evictions
    )


@contextlib.contextmanager
def _interrupts_ignored() -> Generator[None, None, None]:
    """Ignore Ctrl-C within the block. A process that is started in the block continues to ignore it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _isolate() -> None:
    """Shield this process and its assembler from a terminal's signals, but end it when its parent is gone."""
    os.setpgrp()

    def follow() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            connection.wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()

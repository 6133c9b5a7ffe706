"""Every public callable, method, operator and key, with plain and lying arguments.

A call returns, or raises an error of the library, of the liar itself, or of Python about a signature. Whatever it does,
it ends, leaves the settings and its operands as they were, and writes to a target as a whole or not at all.
"""

from __future__ import annotations

import inspect
import operator
import random
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks.liars import MAKERS, Lie
from support.attacks.outcome import Outcome
from tilearray.errors import TileArrayError

PATIENCE = 60
"""Seconds after which a call counts as one that never ends; on a GPU of a busy machine some kernels compile for 20."""
SETTINGS = {
    "set_semantics",
    "set_default_device",
    "set_transfer_guard",
    "set_index_check",
    "set_printoptions",
    "seterr",
}
FILES = {
    *("load_safetensors", "save_safetensors", "safetensors_metadata", "tofile", "fromfile"),
    *("load", "save", "savez", "savez_compressed"),
}
CALLBACKS = ("array_agnostic", "fromfunction", "apply_along_axis", "apply_over_axes", "piecewise", "vectorize")
MADE = ("Device", "PromotionExplanation", "Semantics", "dtype", "errstate", "lazy", "semantics", "Semantics.derive")
SPECIAL_METHODS = (
    *("__dlpack__", "__array__", "__array_namespace__", "__format__", "__contains__", "__pow__", "__divmod__"),
    *("__round__", "__copy__", "__reduce_ex__"),
    *("__int__", "__float__", "__complex__", "__bool__", "__index__", "__len__", "__iter__", "__repr__", "__hash__"),
)
TILES_METHODS = ("gather", "map", "reduce", "scatter", "stack", "__getitem__", "__setitem__", "__iter__", "__len__")
OPERATION_METHODS = ("reduce", "accumulate", "outer", "at", "reduceat")
TRANSFORMS = ("fuse", "lazy", "grad", "value_and_grad", "vjp", "jvp", "foreach", "pointwise", "explain")
TAKES_OPERANDS = ("vjp", "jvp", "foreach", "explain")
TRANSFORMED: tuple[FunctionType, ...] = (
    lambda *xs: ta.sum(xs[0] * 2),
    lambda x, *_: x[0] + x,
    lambda *xs: ta.where(xs[0] > 0, xs[0], 0),
    lambda x, y=1, z=2: x * y - z,
)
GPU_METHODS = {
    "Stream": ("synchronize", "is_done", "record", "wait", "__cuda_stream__", "__eq__", "__hash__"),
    "Event": ("synchronize", "is_done", "milliseconds_since"),
    "graph": ("replay", "update"),
}
LEFT_OUT = SETTINGS | FILES | {*CALLBACKS, "fromiter"}
"""Functions that are called in another way (settings, callbacks), that `files` attacks, or that read iterators."""
DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64")
SHAPES = ((), (0,), (3,), (1,), (2, 3), (3, 0), (2, 1, 3))
WORDS = (
    *("float32", "int8", "C", "K", "left", "raise", "numpy", "ij", "cpu", "cuda:0", "sum", "reflect", "", "ij,jk->ik"),
    "x + 1",
)
OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"),
    *("eq", "ne", "lt", "le", "gt", "ge", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand"),
    *("ior", "ixor", "ilshift", "irshift", "imatmul", "contains"),
)
OPTIONS = ("axis", "dtype", "keepdims", "out", "copy", "device", "order", "where", "initial", "mode", "k", "n", "shape")
INTERNAL = (
    *(AssertionError, AttributeError, NameError, UnboundLocalError, KeyError, SystemError, NotImplementedError),
    *(ZeroDivisionError, StopIteration, ArithmeticError, UnicodeError, MemoryError, BufferError),
)
"""Errors that no documented behaviour raises, unless they are also errors of the library."""


SAYS_WHO = re.compile(r"[^:]{1,80}: .")
"""A message begins with the function that refuses."""


class Endless(BaseException):
    """Raised by a timer in a call that never ends."""


def callables() -> dict[str, Callable[..., Any]]:
    """Every public function by its name, those of the namespaces and the methods of operations included."""
    found: dict[str, Callable[..., Any]] = {}
    for module in ("", "linalg", "fft", "random", "special", "lib.stride_tricks"):
        space = attrgetter(module)(ta) if module else ta
        for name in getattr(space, "__all__", dir(space)):
            value = getattr(space, name)
            if callable(value) and not inspect.isclass(value) and name not in LEFT_OUT and not name.startswith("__"):
                found[f"{module}.{name}".strip(".")] = value
    found |= of_gpus() | {name: partial(_put_back_settings, name) for name in SETTINGS}
    found |= {name: attrgetter(name)(ta) for name in MADE} | {name: partial(_with_function, name) for name in CALLBACKS}
    operations = {name: value for name, value in found.items() if hasattr(value, "accumulate")}
    for name, operation in operations.items():
        found |= {f"{name}.{method}": getattr(operation, method) for method in OPERATION_METHODS}
    return found | {f"{name} of a function": partial(_transformed, name) for name in TRANSFORMS}


def of_gpus() -> dict[str, Callable[..., Any]]:
    """The functions and classes of `ta.cuda` and `ta.distributed`; what sets something puts it back after the call."""
    found = {f"distributed.{name}": getattr(ta.distributed, name) for name in ta.distributed.__all__}
    found |= {f"cuda.{name}": getattr(ta.cuda, name) for name in ta.cuda.__all__}
    return found | {f"cuda.{name}": partial(_put_back, name) for name in ("set_allocator", "set_memory_limit")}


def _put_back(name: str, *args: Any, **options: Any) -> None:
    try:
        getattr(ta.cuda, name)(*args, **options)
    finally:
        for index in range(ta.cuda.device_count()):
            ta.cuda.set_memory_limit(None, f"cuda:{index}")
        if ta.cuda.device_count():
            ta.cuda.set_allocator(None)


def _put_back_settings(name: str, *args: Any, **options: Any) -> None:
    """Set something, and put it back whether that succeeds or not."""
    before = ta.get_semantics(), ta.default_device(), ta.get_printoptions(), ta.geterr()
    try:
        getattr(ta, name)(*args, **options)
    finally:
        ta.set_semantics(before[0])
        ta.set_default_device(before[1])
        ta.set_printoptions(**before[2])
        ta.seterr(**before[3])
        ta.set_transfer_guard("error")
        ta.set_index_check("raise")


def _with_function(name: str, *args: Any, **options: Any) -> Any:
    """Call what takes a function with one of arrays, or with a liar."""
    function = args[0] if args and callable(args[0]) else TRANSFORMED[len(args) % len(TRANSFORMED)]
    if name in ("array_agnostic", "vectorize"):
        return getattr(ta, name)(function, **options)(*args)
    if name == "piecewise":
        return ta.piecewise(*args[:2], [function, 0], *args[2:], **options)
    return getattr(ta, name)(function, *args, **options)


def _transformed(name: str, *args: Any, **options: Any) -> Any:
    """Call a function of arrays through a transform of functions, such as `ta.grad`."""
    transform, function = getattr(ta, name), TRANSFORMED[len(args) % len(TRANSFORMED)]
    return transform(function, *args, **options) if name in TAKES_OPERANDS else transform(function, **options)(*args)


def methods() -> list[str]:
    """Every public method of arrays."""
    names = [name for name in dir(ta.Array) if not name.startswith("_") and name not in LEFT_OUT]
    return [name for name in [*names, *SPECIAL_METHODS] if callable(getattr(ta.Array, name, None))]


@lru_cache(4096)
def _parameters(name: str, function: Any) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()


def _options_of(function: Any) -> list[str]:
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = _parameters(getattr(function, "__name__", ""), getattr(function, "__func__", function))
    return [one.name for one in found if one.kind in named and one.default is not inspect.Parameter.empty]


def _arity_of(function: Any) -> tuple[int, int]:
    """The least and the greatest number of positional arguments."""
    found = _parameters(getattr(function, "__name__", ""), getattr(function, "__func__", function))
    bound = getattr(function, "__self__", None) is not None
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in found):
        return getattr(function, "arity", 1), 4
    positional = [one for one in found if one.kind is not inspect.Parameter.KEYWORD_ONLY][bound:]
    return len([one for one in positional if one.default is inspect.Parameter.empty]), len(positional)


class Drawing:
    """Draws calls: a name, and a function without arguments."""

    def __init__(self, seed: int, device: str) -> None:
        self.rng = random.Random(seed)
        self.device = device
        self.gpus = [] if device == "cpu" else [f"cuda:{index}" for index in range(ta.cuda.device_count())]
        self.functions = callables()
        self.names = list(self.functions)
        self.methods = methods()
        self.generator = ta.random.default_rng(seed)

    def array(self) -> Any:
        """A small array of any dtype, sometimes a view."""
        rng = self.rng
        x = self._values(rng.choice(SHAPES), rng.choice(DTYPES), self.device)
        return x if rng.random() < 0.7 or not x.ndim else x[::-1]

    def _values(self, shape: tuple[int, ...], dtype: str, device: str) -> Any:
        return ta.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 3).astype(dtype).to_device(device)

    def of_gpus(self) -> Any:
        """An array on each GPU, a GPU, or a stream, an event or a graph of one."""
        rng = self.rng
        shape, dtype = rng.choice(SHAPES), rng.choice(DTYPES)
        makers: list[Callable[[], Any]] = [
            lambda: [self._values(shape, dtype, device) for device in self.gpus],
            lambda: rng.choice([self.gpus, rng.choice(self.gpus)]),
            lambda: ta.cuda.Stream(rng.choice(self.gpus)),
            lambda: ta.cuda.Event(timing=rng.random() < 0.5, device=rng.choice(self.gpus)),
            lambda: ta.cuda.current_stream().record(ta.cuda.Event(timing=True, device=self.device)),
            lambda: ta.cuda.graph(rng.choice(self.gpus)),
            lambda: ta.cuda.pinned_like(self.array()),
        ]
        return rng.choice(makers)()

    def plain(self) -> Any:
        """An argument as somebody may write it."""
        rng = self.rng
        makers: list[Callable[[], Any]] = [
            *[self.array] * 6,
            *[self.of_gpus] * len(self.gpus),
            lambda: rng.choice([0, 1, 2, -1, 3, 2**62, -(2**63), 10**20]),
            lambda: rng.choice([0.5, -1.5, float("nan"), float("inf"), 1j, True, None, ...]),
            lambda: rng.choice(WORDS),
            lambda: rng.choice([(0, 1), (2, 3), [1, 2], [], (), [[1], [2]], [1, "a"], {}, {1}, range(3), b"ab"]),
            lambda: slice(*[rng.choice([None, 0, 1, -1, 5]) for _ in range(3)]),
            lambda: np.arange(3.0),
            lambda: np.float32(1.5),
            lambda: [self.array() for _ in range(rng.randrange(3))],
            object,
        ]
        return rng.choice(makers)()

    def argument(self) -> Any:
        """A plain argument, or a liar."""
        return self.rng.choice(MAKERS)() if self.rng.random() < 0.3 else self.plain()

    def options(self, function: Any) -> dict[str, Any]:
        """Options, mostly such as a function has."""
        known = sorted(_options_of(function)) if self.rng.random() < 0.95 else OPTIONS
        names = self.rng.sample(known, min(len(known), self.rng.choice([0, 0, 1, 1, 2])))
        return {name: self.argument() for name in names}

    def arguments(self, function: Any) -> list[Any]:
        """Mostly as many positional arguments as a function takes."""
        least, most = _arity_of(function)
        count = self.rng.randint(least, min(most, least + 2)) if self.rng.random() < 0.95 else self.rng.randrange(5)
        return [self.argument() for _ in range(count)]

    def owner(self, x: Any) -> tuple[Any, Sequence[str]]:
        """An object with methods, mostly an array."""
        kind = self.rng.random()
        if kind < 0.12:
            return self.generator, [name for name in dir(self.generator) if name[0] != "_" and name != "bit_generator"]
        if kind < 0.24 and x.ndim:
            return ta.tiles(x, tuple([self.rng.randint(1, 3) for _ in x.shape])), list(TILES_METHODS)
        if kind < 0.36 and self.gpus:
            owner = self.of_gpus()
            if found := GPU_METHODS.get(type(owner).__name__):
                return owner, found
        return x, self.methods

    def call(self) -> tuple[str, Callable[[], Any], Any]:
        """A call: its name, the call itself, and the array that it may write to."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            name = rng.choice(self.names)
            function = self.functions[name]
            arguments, options = self.arguments(function), self.options(function)
            if arguments and rng.random() < 0.6:
                arguments[0] = self.array()
            return name, lambda: function(*arguments, **options), options.get("out")
        x = self.array()
        if kind < 0.75:
            owner, names = self.owner(x)
            name = rng.choice(names)
            method = getattr(owner, name)
            arguments, options = self.arguments(method), self.options(method)
            return f"{type(owner).__name__}.{name}", lambda: method(*arguments, **options), options.get("out")
        arguments = [self.argument() for _ in range(rng.choice([1, 1, 2, 3]))]
        if kind < 0.87:
            name = rng.choice(OPERATORS)
            ours_first = rng.random() < 0.6 or name == "contains"  # Python itself looks into endless iterators
            pair = (x, arguments[0]) if ours_first else (arguments[0], x)
            return name, lambda: getattr(operator, name)(*pair), pair[0] if name.startswith("i") else None
        key = arguments[0] if rng.random() < 0.6 else tuple(arguments)
        if rng.random() < 0.5:
            return "x[key]", lambda: x[key], None
        return "x[key] = value", lambda: operator.setitem(x, key, self.argument()), x


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `Endless` in what takes too long, where there are timers."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def end(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGALRM, end)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ended(call: Callable[[], Any]) -> tuple[str, str]:
    """How a call ended, and what is wrong with that."""
    try:
        call()
    except TileArrayError as error:
        return "errors of the library", "" if SAYS_WHO.match(str(error)) else f"{error!r} names no function"
    except Lie:
        return "errors of the argument itself", ""
    except (RecursionError, ImportError):
        return "errors of Python", ""
    except MemoryError as error:
        allowed = "Unable to allocate" in str(error) or _in_code_of(error, "api.py")  # [1, 2] * 2**62 in TRANSFORMED
        return "errors of Python", "" if allowed else "MemoryError: something without end"
    except INTERNAL as error:
        if _of_a_liar(error):
            return "errors of the argument itself", ""
        return "internal errors", f"{type(error).__name__}: {str(error)[:120]} in {_place(error)}"
    except Exception:
        return "errors of Python", ""
    except Endless:
        return "never ended", f"no end within {PATIENCE} s"
    return "returned", ""


def _of_a_liar(error: BaseException) -> bool:
    """Whether an error was raised in the code of a liar, by a mock, or in a function that is transformed."""
    raised_in = _code_of(error)
    return _in_code_of(error, "mock.py", "liars.py") or any(raised_in is each.__code__ for each in TRANSFORMED)


def _in_code_of(error: BaseException, *files: str) -> bool:
    """Whether an error was raised in the code of one of these files."""
    code = _code_of(error)
    return code is not None and Path(code.co_filename).name in files


def _code_of(error: BaseException) -> CodeType | None:
    """Return the code in which an error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_code


def _place(error: BaseException) -> str:
    """The innermost function of the library in an error's traceback."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    named = [frame.f_code for frame in frames if "tilearray" in frame.f_code.co_filename]
    return f"{Path(named[-1].co_filename).name}, {named[-1].co_name}" if named else "no function of the library"


def bits(x: Any) -> bytes | None:
    """The elements of an array that may be written; None of what is no array."""
    if type(x) is not ta.Array:
        return None
    return ta.to_numpy(x.to_device("cpu")).tobytes()


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Make random calls."""
    outcome, drawing = Outcome("calls of the interface", device), Drawing(seed, device)
    canary = ta.asarray(np.arange(64), device=device)
    semantics, guard = ta.get_semantics(), sys.getrecursionlimit()
    unraisable: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: unraisable.append(repr(args.exc_value))
    with warnings.catch_warnings(), np.errstate(all="ignore"), _limited():
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            name, call, target = drawing.call()
            before = bits(target)
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            try:
                end, wrong = ended(call)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Endless:  # the timer ended between the call and here
                end, wrong = "never ended", f"no end within {PATIENCE} s"
            outcome.count(end, cases)
            told = f"#{number} of seed {seed}: {name}"
            if wrong:
                outcome.fail(f"{told}: {wrong}")
            if end != "returned" and before is not None and bits(target) != before:
                outcome.fail(f"{told}: an error, and half of the target is written")
            if ta.get_semantics() is not semantics or sys.getrecursionlimit() != guard:
                outcome.fail(f"{told}: settings changed")
                ta.set_semantics(semantics)
    sys.unraisablehook = hook
    if ta.to_numpy(canary.to_device("cpu")).tolist() != list(range(64)):
        outcome.fail("memory of another array was written")
    for line in unraisable:
        outcome.fail(f"an error in a finalizer: {line}")
    return outcome

"""``tilearray eval``: compute an expression over files, and print the result or write it to a file.

The command first checks the arguments, the expression, and the path of the result, before it computes anything. Then
it maps the files, computes the steps in order, and prints or writes the result. With ``--explain`` it prints the stages
of each step below the step; see `tilearray.commands.explain_plan`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tilearray as ta
from tilearray import dtypes
from tilearray.commands.eval import grammar, npy
from tilearray.commands.eval.grammar import Expression, Watch
from tilearray.commands.explain_plan import architecture_of, kernel_source, planned, stages
from tilearray.commands.progress import Advance, bar
from tilearray.commands.text import printable
from tilearray.engine.devices import as_device, using_device
from tilearray.engine.plan import Plan
from tilearray.errors import DeviceError, DeviceUnavailableError, DTypeError, ExpressionError, TileArrayError
from tilearray.promotion.semantics import SemanticsName

LARGE = 2**26  # bytes from which a progress bar appears


class UsageError(TileArrayError):
    """The arguments of the command are invalid; nothing was opened or computed."""


class Given(NamedTuple):
    """``NAME=FILE.npy``, or ``NAME:DTYPE=FILE.npy`` for raw bytes."""

    name: str
    dtype: np.dtype | None
    path: str


class Task(NamedTuple):
    """An expression, its files, the path of the result or None, and the device or None."""

    expression: Expression
    files: tuple[Given, ...]
    output: str | None
    device: Any


class Step(NamedTuple):
    """A step of an expression: its text, its result, and the plans that it ran."""

    text: str
    result: Any
    plans: tuple[Plan, ...]


def task(text: str, files: Iterable[str], output: str | None, device: str | None) -> Task:
    """Parse the arguments of the command.

    Raises
    ------
    UsageError
        If the expression is outside of the grammar, or the argument for a file or a device is invalid.
    FileError, DeviceUnavailableError
        If the path of the result is not writable, or the device does not exist.
    """
    try:
        given = tuple([_given(argument) for argument in files])
        names = [file.name for file in given]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"the name {name!r} is given twice; write another name for one of the files")
        expression = grammar.read(text, names, "FILE.npy")
        for name in names:
            if name not in expression.names:
                raise UsageError(f"the expression does not use the file {name!r}; omit it")
        chosen = None if device is None else as_device(device, "--device")
    except (ExpressionError, DTypeError) as error:
        raise UsageError(str(error)) from error
    except DeviceUnavailableError:
        raise
    except DeviceError as error:
        raise UsageError(str(error)) from error
    if output is not None:
        npy.check_place(output)
    return Task(expression, given, output, chosen)


def _given(argument: str) -> Given:
    name, equals, path = argument.partition("=")
    name, colon, dtype = name.partition(":")
    if not equals or not path:
        raise UsageError(f"expected a name and a file, got {argument!r}; write NAME=FILE.npy")
    grammar.check_name(name)
    return Given(name, dtypes.as_dtype(dtype, name) if colon else None, path)


def run(given: Task, semantics: SemanticsName | None, explain: bool, source: bool) -> None:
    """Perform a task, and print or write its result."""
    with ExitStack() as settings:
        settings.enter_context(using_device(given.device))
        if semantics is not None:
            settings.enter_context(ta.semantics(semantics))
        steps: list[Step] = []
        result = computed(given, steps if explain or source else None)
        for number, step in enumerate(steps, 1):
            print("\n".join(explained(number, step, source)), end="\n\n")
        if given.output is None:
            print(repr(result))
        else:
            save(given.output, result)


def computed(given: Task, steps: list[Step] | None = None) -> Any:
    """Open the files and compute the expression. Append its steps to the list, if one is given."""
    files = {file.name: npy.open_npy(file.path, file.dtype) for file in given.files}
    arrays = {name: ta.asarray(file, device=given.device) for name, file in files.items()}
    with large_bar("computing", sum(file.nbytes for file in files.values()), given.expression.steps) as advance:
        return given.expression.evaluate(arrays, watch(steps, advance))


@contextmanager
def large_bar(description: str, size: int, total: int, **options: Any) -> Generator[Advance | None, None, None]:
    """Show a progress bar, for large inputs only."""
    if size < LARGE:
        yield None
        return
    with bar(description, total, **options) as advance:
        yield advance


def watch(steps: list[Step] | None, advance: Advance | None) -> Watch:
    """Return a function that runs each step, shows it in the bar, and records its plans if `steps` is a list."""

    def run_step(part: str, operands: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        if advance is not None:
            advance(0, f"{grammar.short(part):20}")
        if steps is None:
            result = compute()
        else:
            result, plans = planned(compute)
            steps.append(Step(part, result, tuple(plans)))
        if advance is not None:
            advance(1)
        return result

    return run_step


def explained(number: int, step: Step, source: bool) -> Generator[str, None, None]:
    """Yield the lines about one step: its result, and the stages of its plans."""
    yield f"{number}. {grammar.short(step.text)} -> {summary(step.result)}"
    if not step.plans:
        yield "   no elementwise loop"
    for plan in step.plans:
        yield from (f"   {line}" for line in stages(plan))
        if source:
            yield f"   source  Triton, for sm_{architecture_of(plan)}"
            yield from (f"     {line}".rstrip() for line in source_lines(plan))


def source_lines(plan: Plan) -> list[str]:
    try:
        return kernel_source(plan).splitlines()
    except NotImplementedError as error:  # the message says what GPUs do not support yet
        return [f"# {error}"]


def summary(result: Any) -> str:
    """Return a short description of a result.

    Examples
    --------
    >>> summary(ta.zeros((2, 3), device="cpu")), summary(0.5)
    ('float32 (2, 3)', '0.5')
    """
    if isinstance(result, ta.Array):
        return f"{result.dtype.name} {result.shape}"
    return f"{len(result)} arrays" if isinstance(result, (tuple, list)) else repr(result)  # type: ignore[arg-type]


def save(output: str, result: Any) -> None:
    """Write a result to a file, and print a message."""
    if isinstance(result, (tuple, list)):
        count = len(result)  # type: ignore[arg-type]
        raise npy.FileError(f"a .npy file holds one array, but the expression gives {count}; write (EXPR)[0]")
    array = ta.to_numpy(ta.asarray(result))
    with large_bar(f"writing {Path(output).name}", array.nbytes, array.nbytes, of_bytes=True) as advance:
        npy.write_npy(output, array, advance or (lambda size: None))
    print(f"wrote {printable(output)}: {array.dtype.name} {array.shape}")
    if npy.stored(array).dtype != array.dtype:
        name = printable(os.path.basename(output))
        print(
            f"The .npy format has no name for {array.dtype.name}; a descriptor tells it. To read the file, write "
            f"ta.asarray(np.load(...)), np.load(...).view({array.dtype.name!r}), or here NAME={name}"
        )

"""``tilearray eval``: an expression over files, to the terminal or to a file.

What can be known before anything is computed is looked at first: the arguments, the expression, the place of the
result. Then the files are mapped, the steps are computed in turn, and the result is printed or written. With
``--explain`` the stages of each step are printed beneath it; `tilearray.commands.explain_plan` says what they are.
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
from tilearray.engine.devices import as_device, using_device
from tilearray.engine.plan import Plan
from tilearray.errors import DeviceError, DeviceUnavailableError, DTypeError, ExpressionError, TileArrayError

LARGE = 2**26  # bytes from which on a bar shows how far the work is


class UsageError(TileArrayError):
    """The arguments of the command make no sense; nothing was opened or computed."""


class Given(NamedTuple):
    """``NAME=FILE.npy``, or ``NAME:DTYPE=FILE.npy`` for raw bytes."""

    name: str
    dtype: np.dtype | None
    path: str


class Task(NamedTuple):
    """What is to be done: an expression, its files, and where the result goes."""

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
    """Understand the arguments of the command.

    Raises
    ------
    UsageError
        If the expression is outside of the grammar, or a file or device is not named as it should be.
    FileError, DeviceUnavailableError
        If the result cannot be written there, or there is no such device.
    """
    try:
        given = tuple([_given(argument) for argument in files])
        names = [file.name for file in given]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"the name {name!r} is given twice; write another name for one of the files")
        expression = grammar.read(text, names)
        for name in names:
            if name not in expression.names:
                raise UsageError(f"{name!r} is given, and the expression does not use it; leave it out")
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
        raise UsageError(f"expected a file with a name, got {argument!r}; write NAME=FILE.npy")
    grammar.check_name(name)
    return Given(name, dtypes.as_dtype(dtype, name) if colon else None, path)


def run(given: Task, semantics: str | None, explain: bool, source: bool) -> None:
    """Carry a task out, and print what comes of it."""
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
    """Open the files and compute the expression; the steps are added to a list, if there is one."""
    files = {file.name: npy.open_npy(file.path, file.dtype) for file in given.files}
    arrays = {name: ta.asarray(file, device=given.device) for name, file in files.items()}
    with large_bar("computing", sum(file.nbytes for file in files.values()), given.expression.steps) as advance:
        return given.expression.evaluate(arrays, watch(steps, advance))


@contextmanager
def large_bar(description: str, size: int, total: int, **options: Any) -> Generator[Advance | None, None, None]:
    """A bar for work on so many bytes, where they are many."""
    if size < LARGE:
        yield None
        return
    with bar(description, total, **options) as advance:
        yield advance


def watch(steps: list[Step] | None, advance: Advance | None) -> Watch:
    """What sees each step: it shows the step in the bar, and notes its plans if they are asked for."""

    def seen(part: str, operands: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
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

    return seen


def explained(number: int, step: Step, source: bool) -> Generator[str, None, None]:
    """The lines about one step: what it gives, and the stages of what it runs."""
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
    except NotImplementedError as error:  # and its subclasses, which say what does not run on a GPU yet
        return [f"# {error}"]


def summary(result: Any) -> str:
    """A result in a few words.

    Examples
    --------
    >>> summary(ta.zeros((2, 3), device="cpu")), summary(0.5)
    ('float32 (2, 3)', '0.5')
    """
    if isinstance(result, ta.Array):
        return f"{result.dtype.name} {result.shape}"
    return f"{len(result)} arrays" if isinstance(result, (tuple, list)) else repr(result)  # type: ignore[arg-type]


def save(output: str, result: Any) -> None:
    """Write a result to a file, and say so."""
    if isinstance(result, (tuple, list)):
        count = len(result)  # type: ignore[arg-type]
        raise npy.FileError(f"a .npy file holds one array, and the expression gives {count}; write (EXPR)[0]")
    array = ta.to_numpy(ta.asarray(result))
    with large_bar(f"writing {Path(output).name}", array.nbytes, array.nbytes, of_bytes=True) as advance:
        npy.write_npy(output, array, advance or (lambda size: None))
    print(f"wrote {output}: {array.dtype.name} {array.shape}")
    if npy.stored(array).dtype != array.dtype:
        print(
            f"The format has no name for {array.dtype.name}: np.load(...).view({array.dtype.name!r}) has it again, "
            f"and here NAME:{array.dtype.name}={os.path.basename(output)}"
        )

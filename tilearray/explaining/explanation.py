"""`Explanation`: what `explain` returns. A tree of plain data that prints as text, and as HTML in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilearray.explaining.kernels import Code, GpuKernel, Kernel
from tilearray.ops.explain_promotion import PromotionExplanation


@dataclass(frozen=True)
class Memory:
    """An array that a launch reads or writes.

    Attributes
    ----------
    name : str
        "out0", "x0", ... as in the source.
    dtype : str
    strides : tuple of int
        Along the axes of the collapsed loop, in elements; 0 where it is broadcast.
    nbytes : int
        The bytes of the elements that the loop visits, each once.
    """

    name: str
    dtype: str
    strides: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class Launch:
    """One kernel over one loop.

    Attributes
    ----------
    graph : tuple of str
        The expression, one line for each output; values that are read several times come first.
    inputs : str
        The inputs with their dtypes.
    shape : tuple of int
        The extents of the collapsed loop, outermost first.
    loop, loop_class : str
        The loop with its strides, and its kind, in words.
    arrays : tuple of Memory
        Outputs first.
    bytes_read, bytes_written : int
        The bytes that must move: an element that is read several times counts once.
    kernel : HostKernel or GpuKernel
    """

    graph: tuple[str, ...]
    inputs: str
    shape: tuple[int, ...]
    loop: str
    loop_class: str
    arrays: tuple[Memory, ...]
    bytes_read: int
    bytes_written: int
    kernel: Kernel
    _note: Any = field(repr=False, compare=False, default=None)

    def lines(self, *, source: bool = True) -> Iterator[tuple[str, str]]:
        """Yield names and texts."""
        yield "inputs", self.inputs
        yield "graph", "\n".join(self.graph)
        yield "loop", self.loop
        yield "class", self.loop_class
        yield "memory", f"reads {shown_bytes(self.bytes_read)}, writes {shown_bytes(self.bytes_written)}"
        kernel = self.kernel
        if isinstance(kernel, GpuKernel):
            yield "schedule", "\n".join(kernel.reasons)
            rows, columns = kernel.tile
            yield (
                "tile",
                f"{rows} x {columns} elements, {_counted(kernel.warps, 'warp')}, "
                f"{_counted(kernel.elements, 'element')} a thread, {_counted(kernel.programs, 'program')}"
                f"{', fma is allowed' if kernel.contract else ''}",
            )
            if kernel.code is not None:
                yield "code", code_text(kernel.code)
            yield "cache", f"{kernel.key[:16]}..., {_KEPT[kernel.kept]}"
        else:
            yield "runs", kernel.strategy
        if source and kernel.source:
            yield "source", kernel.source.rstrip()


_KEPT = {"memory": "a hit in memory", "disk": "a hit on disk", "": "a miss: compiled now"}


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def code_text(code: Code) -> str:
    """Return the facts of machine code in words."""
    spills = f"{code.spills} accesses of spilled registers" if code.spills else "no spills"
    parts = [f"{code.registers} registers", spills]
    parts += [f"{code.shared} bytes of shared memory"] if code.shared else []
    for word, found in (("loads", code.loads), ("stores", code.stores)):
        parts.append(f"{word} of {', '.join([f'{size} B ({count})' for size, count in found]) or 'nothing'}")
    return "; ".join(parts)


@dataclass(frozen=True)
class Step:
    """A call of an operation, or of a fused function.

    Attributes
    ----------
    name : str
        The operation, or "fused".
    operands : tuple of str
        Dtypes and shapes of arrays, and numbers; empty for a fused function.
    result : str
        The dtype and the shape of the result; empty for a fused function.
    promotions : tuple of PromotionExplanation
        Why results have their dtypes: of the operation, or of all operations that were fused.
    broadcasts : tuple of str
        The operands that are repeated.
    launches : tuple of Launch
    """

    name: str
    operands: tuple[str, ...]
    result: str
    promotions: tuple[PromotionExplanation, ...]
    broadcasts: tuple[str, ...]
    launches: tuple[Launch, ...]

    @property
    def title(self) -> str:
        """The call in one line."""
        call = f"{self.name}({', '.join(self.operands)})" if self.operands else self.name
        return f"{call} -> {self.result}" if self.result else call

    def dtypes(self) -> list[str]:
        """Return a line for each different decision on dtypes."""
        found = [
            f"{each.op}({', '.join(each.operands)}): {'; '.join([*each.steps, _result_of(each)])}"
            for each in self.promotions
        ]
        return list(dict.fromkeys(found))


def _result_of(promotion: PromotionExplanation) -> str:
    return f"error: {promotion.error}" if promotion.result is None else f"result {promotion.result.name}"


@dataclass(frozen=True)
class Timing:
    """The measured time of a call.

    Attributes
    ----------
    seconds : float
        Of one call, in the fastest of several rounds.
    rate, copy_rate : float
        Bytes that must move by second, in GB/s; and those of a copy that moves as many bytes on the same device.
    """

    seconds: float
    rate: float
    copy_rate: float

    def __str__(self) -> str:
        rates = f"{self.rate:.4g} GB/s; a copy of as many bytes: {self.copy_rate:.4g} GB/s"
        return f"{self.seconds * 1e6:.4g} µs a call, {rates}"


@dataclass(frozen=True, repr=False)
class Explanation:
    """All stages of a call. It prints as text, and as HTML in a notebook.

    Attributes
    ----------
    function : str
        The name of the function.
    target : str
        The device: "cpu", or the compute capability of a GPU, such as "sm_90".
    semantics : str
        The active semantics.
    steps : tuple of Step
        The operations that run one after the other.
    timing : Timing or None
        The measured time, if it was asked for.
    """

    function: str
    target: str
    semantics: str
    steps: tuple[Step, ...]
    timing: Timing | None = None

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of all steps."""
        return tuple([launch for step in self.steps for launch in step.launches])

    @property
    def bytes_moved(self) -> int:
        """The bytes that all launches must read and write."""
        return sum(launch.bytes_read + launch.bytes_written for launch in self.launches)

    @property
    def title(self) -> str:
        """The whole in one line."""
        count = len(self.launches)
        launches = f"{count} launch{'' if count == 1 else 'es'}"
        return f"{self.function} on {self.target} under {self.semantics}: {launches}, {shown_bytes(self.bytes_moved)}"

    def __repr__(self) -> str:
        lines = [self.title]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {step.title}")
            for name, text in self._lines(step):
                lines += labelled(name, text, "   ")
        return "\n".join([*lines, *([f"time     {self.timing}"] if self.timing else [])])

    def _lines(self, step: Step) -> Iterator[tuple[str, str]]:
        if step.promotions:
            yield "dtypes", "\n".join(step.dtypes())
        if step.broadcasts:
            yield "repeats", "\n".join(step.broadcasts)
        for number, launch in enumerate(step.launches, 1):
            if len(step.launches) > 1:
                yield "launch", f"{number} of {len(step.launches)}"
            yield from launch.lines()

    def _repr_html_(self) -> str:
        """Return the same for a notebook; sources are folded."""
        parts = [f"<b>{html.escape(self.title)}</b>"]
        if self.timing is not None:
            parts.append(f"<br>{html.escape(str(self.timing))}")
        for number, step in enumerate(self.steps, 1):
            rows = "".join([_html_row(name, text) for name, text in self._lines(step)])
            parts.append(f"<p>{number}. <code>{html.escape(step.title)}</code></p><table>{rows}</table>")
        return "".join(parts)

    def to_triton(self, path: str | Path | None = None) -> str:
        """Return the kernels as a Python file that runs them on tensors of torch.

        The file imports triton and torch only. It has the kernels with their launches over arrays of these shapes and
        strides, and runs them on random numbers.

        Parameters
        ----------
        path : str or path, optional
            Also write the text to this file.

        Raises
        ------
        DeviceError
            If the explanation is of the host; write ``explain(f, x, arch=90)``.

        Examples
        --------
        >>> import tilearray as ta
        >>> x = ta.ones(1000, dtype="float32", device="cpu")
        >>> text = ta.explain(ta.add, x, x, arch=90).to_triton()
        >>> "@triton.jit" in text
        True
        """
        from tilearray.explaining.triton_file import written_out

        text = written_out(self.title, [(launch.kernel, launch._note) for launch in self.launches])
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def labelled(name: str, text: str, indent: str) -> list[str]:
    """Return the lines of a text, with its name before the first one.

    >>> labelled("loop", "8 x 8\\nrows", " ")
    [' loop     8 x 8', '          rows']
    """
    first, *others = text.split("\n")
    return [f"{indent}{name:<8} {first}", *[f"{indent}{'':<8} {line}".rstrip() for line in others]]


def _html_row(name: str, text: str) -> str:
    shown = f"<pre>{html.escape(text)}</pre>"
    if name == "source":
        shown = f"<details><summary>{text.count(chr(10)) + 1} lines</summary>{shown}</details>"
    return f"<tr><td>{name}</td><td style='text-align: left'>{shown}</td></tr>"


_UNITS = ("B", "kB", "MB", "GB", "TB")


def shown_bytes(count: int) -> str:
    """Return a number of bytes for people.

    >>> shown_bytes(999), shown_bytes(1_228_800)
    ('999 B', '1.23 MB')
    """
    size, place = float(count), 0
    while size >= 1000 and place < len(_UNITS) - 1:
        size, place = size / 1000, place + 1
    return f"{size:.3g} {_UNITS[place]}"

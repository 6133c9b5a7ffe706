"""Options of an op: how its result is rounded, whether denormals count as zero, what becomes of NaN.

A row of the op table says in its `Options` what it takes. A call that asks for something else than the row itself is a
call of a *variant*: a row derived from it by `variant`, with an expression and a function of its own, planned, cached
and run like any other. So an option costs nothing where it is not asked for, and two modes never share a kernel.

The names are cuTile's (``cuda.tile.RoundingMode``), in lower case. ``full`` and ``approx`` are what a GPU's
instructions give; their bounds stand in the row, and the host, which has no such instruction, says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.engine.devices import Device
from tilearray.errors import DeviceError, DTypeError, OperandError

MODES: Final[dict[str, str]] = {
    "rn": "to nearest, ties to even",
    "rz": "toward zero",
    "rm": "toward -infinity",
    "rp": "toward +infinity",
    "ra": "to nearest, ties away from zero",
    "rzi": "to an integer, toward zero",
    "full": "by a GPU's instruction of full range",
    "approx": "by a GPU's fastest instruction",
}
CAST_MODES: Final = ("rn", "rz", "rm", "rp", "ra")
"""How a float becomes another float; it becomes an integer by "rzi" alone."""
GPU_ONLY: Final = ("full", "approx")
_CUDA_NAMES: Final = {"rz": "rz", "rm": "rd", "rp": "ru"}


@dataclass(frozen=True)
class Options:
    """What the calls of a row may ask for.

    Attributes
    ----------
    rounding : mode -> the expression in Triton of floats; "" for the row's own. A single call, for those of `GPU_ONLY`
    bounds : mode -> the error that it may have, in words, where that is not half an ulp or one ulp
    flush_to_zero : whether denormal operands and results may become zeros of the same sign
    ignoring_nan : the expression that gives the other operand where one is NaN; "" where there is no such choice
    """

    rounding: Mapping[str, str] = field(default_factory=dict[str, str])
    bounds: Mapping[str, str] = field(default_factory=dict[str, str])
    flush_to_zero: bool = False
    ignoring_nan: str = ""

    @property
    def names(self) -> dict[str, Any]:
        """The keyword arguments, and what they are if left out."""
        return {
            **({"rounding": None} if self.rounding else {}),
            **({"flush_to_zero": False} if self.flush_to_zero else {}),
            **({"propagate_nan": True} if self.ignoring_nan else {}),
        }


NONE: Final = Options()


@dataclass(frozen=True)
class Choice:
    """What a variant was derived for."""

    rounding: str | None = None
    flush_to_zero: bool = False
    propagate_nan: bool = True
    saturate: bool = False

    @property
    def suffix(self) -> str:
        """What the backends' name of a function ends in."""
        mode = None if self.rounding == "rn" else self.rounding
        words = (mode, "" if self.propagate_nan else "number", "ftz" if self.flush_to_zero else "")
        return "".join(f"_{word}" for word in words if word)

    @property
    def cast(self) -> tuple[str, bool] | tuple[()]:
        """What a cast node says beyond the dtype: mode and saturation; nothing for a cast like any other."""
        mode = self.rounding if self.rounding in CAST_MODES else "rn"
        return () if mode == "rn" and not self.saturate else (mode, self.saturate)


USUAL: Final = Choice()


def directed(expression: str) -> dict[str, str]:
    """Return the expressions of RN, which is the row's own, RZ, RM and RP; ``{mode}`` is CUDA's name of the mode.

    Examples
    --------
    >>> directed("libdevice.sqrt_{mode}({x})")["rm"]
    'libdevice.sqrt_rd({x})'
    """
    return {"rn": ""} | {mode: expression.replace("{mode}", name) for mode, name in _CUDA_NAMES.items()}


def mode_named(rounding: Any, function: str, modes: Mapping[str, Any] | tuple[str, ...]) -> str | None:
    """Return a mode by its name, in either case, or by anything whose ``name`` it is, as cuTile's enumeration.

    Raises
    ------
    OperandError
        If the function has no such mode.

    Examples
    --------
    >>> mode_named("RZ", "add", ("rn", "rz"))
    'rz'
    """
    if rounding is None:
        return None
    name = getattr(rounding, "name", rounding)
    mode = name.lower() if isinstance(name, str) else None
    if mode in modes:
        return mode
    raise OperandError(
        f"{function}: expected a rounding mode, one of {', '.join(map(repr, modes))}, got {rounding!r}; leave it out "
        f"for the result that is usual"
    )


def checked_flag(function: str, option: str, value: Any) -> bool:
    """Return an option that is on or off, or raise: a word like "no" counts as true in Python."""
    if value.__class__ in (bool, np.bool_):
        return bool(value)
    raise OperandError(f"{function}: expected True or False as {option}, got {value!r}; write {option}=True, or False")


# --- what a variant takes -------------------------------------------------------------------------------------------


def check_dtype(function: str, choice: Choice | None, computed: np.dtype) -> None:
    """Raise unless a variant takes operands of this common dtype: floats, and float32 where only that has the mode."""
    if choice is None:
        return
    kind = dtypes.info(computed).kind
    if choice.rounding in GPU_ONLY and computed != dtypes.float32:
        raise _only_float32(function, f"rounding={choice.rounding!r}", computed)
    if choice.rounding is not None and kind != "float":
        raise DTypeError(
            f"{function}: rounding={choice.rounding!r} applies to float results, got {computed.name}; leave it out, or "
            f"write {'x.real, x.imag' if kind == 'complex' else 'x.astype(...) with a float dtype'}"
        )
    if choice.flush_to_zero and computed != dtypes.float32:
        raise _only_float32(function, "flush_to_zero=True", computed)


def _only_float32(function: str, option: str, computed: np.dtype) -> DTypeError:
    instead = "x.real, x.imag" if dtypes.info(computed).kind == "complex" else "x.astype('float32')"
    return DTypeError(
        f"{function}: {option} is for float32 alone, got {computed.name}; leave it out, or write {instead}"
    )


def check_device(function: str, options: Options, choice: Choice | None, device: Device) -> None:
    """Raise where a variant is an instruction that the device does not have."""
    if choice is not None and choice.rounding in GPU_ONLY and not device.backend.approximates:
        instead = "rounding='rn'" if "rn" in options.rounding else "no rounding="
        raise DeviceError(
            f"{function}: rounding={choice.rounding!r} is what a GPU's instruction gives "
            f"({options.bounds[choice.rounding]}), which the host does not have; write {instead} for a result "
            f"that is at least as exact, or x.to_device('cuda')"
        )


def cast_choice(source: np.dtype, target: np.dtype, rounding: Any, saturate: bool) -> Choice:
    """Return how `astype` casts with these options.

    Raises
    ------
    OperandError
        If there is no such mode.
    DTypeError
        If the cast has no such option.
    """
    mode = mode_named(rounding, "astype", (*CAST_MODES, "rzi"))
    before, after = dtypes.info(source).kind, dtypes.info(target).kind
    if mode == "rzi" and (before, after) not in (("float", "int"), ("float", "uint")):
        raise DTypeError(
            f"astype: rounding='rzi' is for a float that becomes an integer, got {source.name} to {target.name}; "
            f"leave it out"
        )
    if mode in CAST_MODES and (before, after) != ("float", "float"):
        rounds = before == "float" and after in ("int", "uint")
        instead = "; write ta.floor, ta.ceil or ta.round first" if rounds else ""
        raise DTypeError(
            f"astype: rounding={mode!r} is for a float that becomes a float, got {source.name} to {target.name}; "
            f"leave it out{instead}"
        )
    clamps = checked_flag("astype", "saturate", saturate)
    if clamps and not _may_saturate(before, after):
        instead = ", or write ta.clip first" if before != "complex" and after == "float" else ""
        raise DTypeError(
            f"astype: saturate=True is for floats that become floats, and for what becomes an integer, got "
            f"{source.name} to {target.name}; leave it out{instead}"
        )
    if source == target:
        return Choice(saturate=clamps and after == "float")
    saturates = clamps and before != "bool" and not (before == "float" and after != "float")
    return Choice(None if mode in ("rn", "rzi") else mode, saturate=saturates)


def _may_saturate(before: str, after: str) -> bool:
    if after in ("int", "uint"):
        return before != "complex"
    return before == after == "float"


# --- documentation --------------------------------------------------------------------------------------------------


def parameters(options: Options) -> str:
    """Return the section of an op's documentation on its options."""
    text = ""
    if options.rounding:
        modes = "".join(f"\n    - ``{mode!r}``: {_described(mode, options)}" for mode in options.rounding)
        default = "" if "rn" in options.rounding else " None is exact to 2 ulp on GPUs."
        text += f"rounding : str, optional\n    How a float result is rounded, by cuTile's name.{default}\n{modes}\n\n"
    if options.flush_to_zero:
        text += "flush_to_zero : bool\n    float32 only: denormal operands and results become zeros of their sign.\n"
    if options.ignoring_nan:
        text += "propagate_nan : bool\n    False gives the other operand where one is NaN, and -0.0 < 0.0.\n"
    return text.rstrip("\n") + "\n" if text else ""


def _described(mode: str, options: Options) -> str:
    bound = options.bounds.get(mode)
    return MODES[mode] + (f"; float32 on a GPU only, {bound}" if bound else "")

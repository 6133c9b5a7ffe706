"""Options of an op: the rounding mode of its result, flushing of denormals to zero, and propagation of NaN.

The `Options` of a row list the options that it accepts. A call with an option is a call of a variant of the row: see
`tilearray.ops.variants`. `Choice` holds the options of one variant, or of one cast.

The rounding modes have the names of cuTile's ``cuda.tile.RoundingMode``, in lower case. ``full`` and ``approx`` are
instructions of GPUs, and the row states their error bounds. The host does not have these instructions and raises an
error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np

from tilearray import dtypes
from tilearray.engine.devices import Device
from tilearray.errors import DeviceError, DTypeError, OperandError, shown

MODES: Final[dict[str, str]] = {
    "rn": "to nearest, ties to even",
    "rz": "toward zero",
    "rm": "toward -infinity",
    "rp": "toward +infinity",
    "ra": "to nearest, ties away from zero",
    "rs": "at random to one of the two neighbours, the nearer one more often",
    "rzi": "to an integer, toward zero",
    "full": "the GPU's approximate instruction for the full range",
    "approx": "the GPU's fastest instruction",
}
CAST_MODES: Final = ("rn", "rz", "rm", "rp", "ra")
"""The modes of casts from floats that depend on the value alone; "rs" also depends on a seed."""
TO_INTEGER: Final[dict[str, str]] = {"rn": "rni", "rm": "rmi", "rp": "rpi", "ra": "rai"}
"""The backends' names of the modes of casts from float to integer. "rz" and "rzi" are the cast without a mode."""
GPU_ONLY: Final = ("full", "approx")
_CUDA_NAMES: Final = {"rz": "rz", "rm": "rd", "rp": "ru"}


DirectedMode = Literal["rn", "rz", "rm", "rp"]
"""The rounding modes of correctly rounded functions: to nearest, toward zero, toward -infinity, toward +infinity."""

FastMode = Literal["full", "approx"]
"""The rounding modes that are instructions of GPUs."""

CastMode = Literal["rn", "rz", "rm", "rp", "ra", "rs", "rzi"]
"""The rounding modes of casts."""

RoundingMode = Literal["rn", "rz", "rm", "rp", "ra", "rs", "rzi", "full", "approx"]
"""All rounding modes."""


class NamedMode(Protocol):
    """A member of another library's enumeration of rounding modes, such as ``cuda.tile.RoundingMode``."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Options:
    """The options of a row.

    Attributes
    ----------
    rounding : mode -> the expression in Triton for floats; "" is the expression of the row. It is one call for the
        modes of `GPU_ONLY`
    bounds : mode -> its error bound in words, if that is not half an ulp or one ulp
    flush_to_zero : whether calls may replace denormal operands and results by zeros of the same sign
    ignoring_nan : the expression that returns the other operand if one is NaN; "" if there is no such option
    derivative_ignoring_nan : the derivative of that expression: see `Row.derivative`
    """

    rounding: Mapping[str, str] = field(default_factory=dict[str, str])
    bounds: Mapping[str, str] = field(default_factory=dict[str, str])
    flush_to_zero: bool = False
    ignoring_nan: str = ""
    derivative_ignoring_nan: tuple[str, ...] | None = None

    @property
    def names(self) -> dict[str, Any]:
        """The keyword arguments and their defaults."""
        return {
            **({"rounding": None} if self.rounding else {}),
            **({"flush_to_zero": False} if self.flush_to_zero else {}),
            **({"propagate_nan": True} if self.ignoring_nan else {}),
        }


NONE: Final = Options()


class Directed(Options):
    """The options of correctly rounded arithmetic: directed rounding and flushing. A checker tells families apart."""


class DirectedOrApprox(Options):
    """The options of `sqrt`: directed rounding, "approx" and flushing."""


class DirectedOrFast(Options):
    """The options of `divide`: directed rounding, "full", "approx" and flushing."""


class Fast(Options):
    """The options of functions that a GPU also approximates: "full" and "approx"."""


class Flushing(Options):
    """The options of functions that only flush."""


class Extreme(Options):
    """The options of `minimum` and `maximum`: flushing, and NaN as a missing value."""


@dataclass(frozen=True)
class Choice:
    """The options of a variant. A `saturate` of None leaves the choice to the semantics."""

    rounding: str | None = None
    flush_to_zero: bool = False
    propagate_nan: bool = True
    saturate: bool | None = None

    @property
    def suffix(self) -> str:
        """The end of the variant's name in the backends."""
        mode = None if self.rounding == "rn" else self.rounding
        words = (mode, "" if self.propagate_nan else "number", "ftz" if self.flush_to_zero else "")
        return "".join(f"_{word}" for word in words if word)

    def cast(self, saturates: bool) -> tuple[str, bool] | tuple[()]:
        """Return the last fields of a cast node: mode and saturation, or () for the default cast.

        `saturates` is the choice of the semantics.
        """
        mode = self.rounding if self.rounding in _NODE_MODES else None
        saturate = saturates if self.saturate is None else self.saturate
        return () if mode in (None, "rn") and not saturate else (mode or "rn", saturate)


_NODE_MODES: Final = frozenset({*CAST_MODES, *TO_INTEGER.values()})
USUAL: Final = Choice()


def directed(expression: str) -> dict[str, str]:
    """Return the expressions of "rn" (the expression of the row), "rz", "rm" and "rp".

    ``{mode}`` in the expression is the place of CUDA's name of the mode.

    Examples
    --------
    >>> directed("libdevice.sqrt_{mode}({x})")["rm"]
    'libdevice.sqrt_rd({x})'
    """
    return {"rn": ""} | {mode: expression.replace("{mode}", name) for mode, name in _CUDA_NAMES.items()}


def mode_named(rounding: Any, function: str, modes: Mapping[str, Any] | tuple[str, ...]) -> str | None:
    """Return the mode of a name in upper or lower case, or of a member of cuTile's enumeration, by its ``name``.

    Raises
    ------
    OperandError
        If the function does not have this mode.

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
        f"{function}: expected a rounding mode, one of {', '.join(map(repr, modes))}, got {shown(rounding)}; leave it "
        f"out for the default rounding"
    )


def checked_flag(function: str, option: str, value: Any) -> bool:
    """Return a flag: True, False, 1 or 0. All else is an OperandError: Python counts a string such as "no" as true."""
    if value is True or value is False:
        return value
    if issubclass(type(value), (int, np.integer, np.bool_)) and value in (0, 1):
        return bool(value)
    raise OperandError(
        f"{function}: expected True or False as {option}, got {shown(value)}; write {option}=True or {option}=False"
    )


# --- checks of options ---------------------------------------------------------------------------------------------


def check_dtype(function: str, choice: Choice | None, computed: np.dtype) -> None:
    """Raise DTypeError if a variant does not accept this common dtype. Most take floats, some only float32."""
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
        f"{function}: {option} applies only to float32, got {computed.name}; leave it out, or write {instead}"
    )


def check_device(function: str, options: Options, choice: Choice | None, device: Device) -> None:
    """Raise DeviceError if a variant needs an instruction that the device does not have."""
    if choice is not None and choice.rounding in GPU_ONLY and not device.backend.approximates:
        instead = "rounding='rn'" if "rn" in options.rounding else "no rounding="
        raise DeviceError(
            f"{function}: rounding={choice.rounding!r} needs a GPU instruction ({options.bounds[choice.rounding]}), "
            f"which {device} does not have; write {instead} for a result that is at least as accurate, or "
            f"x.to_device('cuda')"
        )


def cast_choice(source: np.dtype, target: np.dtype, rounding: Any, saturate: bool | None) -> Choice:
    """Return how `astype` casts with these options. Its `rounding` is "rs" for stochastic rounding.

    Raises
    ------
    OperandError
        If the mode does not exist.
    DTypeError
        If the cast does not have the option.
    """
    mode = mode_named(rounding, "astype", (*CAST_MODES, "rs", "rzi"))
    before, after = dtypes.info(source).kind, dtypes.info(target).kind
    to_integer = before == "float" and after in ("int", "uint")
    if mode is not None and not to_integer and ((before, after) != ("float", "float") or mode == "rzi"):
        wanted = "from float to integer" if mode == "rzi" else "from float to float or integer"
        raise DTypeError(
            f"astype: rounding={mode!r} applies only to casts {wanted}, got {source.name} to {target.name}; "
            f"leave it out"
        )
    clamps = None if saturate is None else checked_flag("astype", "saturate", saturate)
    if clamps and not _may_saturate(before, after):
        instead = ", or write ta.clip first" if before != "complex" and after == "float" else ""
        raise DTypeError(
            f"astype: saturate=True applies only to casts to integer and from float to float, got "
            f"{source.name} to {target.name}; leave it out{instead}"
        )
    if source == target:
        return Choice(saturate=True) if clamps and after == "float" else USUAL
    if to_integer:
        return Choice(mode if mode == "rs" else TO_INTEGER.get(mode or ""))
    saturates = clamps if before == "float" else (clamps and before != "bool") or None
    return Choice(None if mode == "rn" else mode, saturate=saturates)


def _may_saturate(before: str, after: str) -> bool:
    if after in ("int", "uint"):
        return before != "complex"
    return before == after == "float"


# --- documentation --------------------------------------------------------------------------------------------------


def parameters(options: Options) -> str:
    """Return the part of an op's documentation that describes its options."""
    text = ""
    if options.rounding:
        modes = "".join(f"\n    - ``{mode!r}``: {_described(mode, options)}" for mode in options.rounding)
        default = "" if "rn" in options.rounding else " The default has an error of at most 2 ulp on GPUs."
        text += f"rounding : str, optional\n    The rounding mode of a float result.{default}\n{modes}\n\n"
    if options.flush_to_zero:
        text += "flush_to_zero : bool\n    float32 only: denormal operands and results become zeros of their sign.\n"
    if options.ignoring_nan:
        text += "propagate_nan : bool\n    False returns the other operand if one is NaN, and -0.0 is less than 0.0.\n"
    return text.rstrip("\n") + "\n" if text else ""


def _described(mode: str, options: Options) -> str:
    bound = options.bounds.get(mode)
    return MODES[mode] + (f"; float32 on a GPU only, {bound}" if bound else "")

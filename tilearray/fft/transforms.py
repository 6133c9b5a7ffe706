"""Transforms along one axis, along two, and along any number of axes.

A backend has three, each in both directions: of complex numbers, from real numbers, and to real numbers. All others
follow from them: a transform along one axis is that along several, `ihfft` is the inverse transform from real numbers,
and `hfft` the forward one to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal, get_args

import numpy as np

from tilearray.engine.array_type import A
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, State
from tilearray.engine.signature import ArrayBase, HostData, check_array
from tilearray.errors import DTypeError, ShapeError, shown
from tilearray.functions.arguments import OnHost, Runs, as_array, check_kind, fourier_of, naming, ran
from tilearray.functions.conversion import astype
from tilearray.geometry.shapes import as_int, as_ints, normalize_axes, normalize_axis
from tilearray.ops.promotion_methods import COMPLEX_OF, REAL_PART, Promotion, computed_as, opmath
from tilearray.ops.row import ANY

Sizes = Sequence[int] | None
Axes = Sequence[int] | None
Norm = Literal["backward", "ortho", "forward"]

Words = tuple[Any, ...]
"""A call: the function, the operand, sizes, axes, the norm, and `State.changes`."""

_NORMS: Final = get_args(Norm)
_LAST_TWO: Final = (-2, -1)


def fft(x: A | HostData, /, n: int | None = None, axis: int = -1, norm: Norm | None = "backward") -> A:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    x : Array
        Of any kind. Real numbers are read as complex ones; `rfft` is faster for them.
    n : int, optional
        The size of the transform. The axis is cut or padded with zeros at its end first.
    axis : int
    norm : {"backward", "ortho", "forward"}
        Which direction divides by the size: the inverse, both by its square root, or this one. None is "backward".

    Returns
    -------
    Array
        Complex: of the precision of `x`, at least complex64.

    Raises
    ------
    ShapeError
        If `x` has no such axis, the size is less than 1, or `norm` is another word.
    DTypeError
        If the dtype is for storage only.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Notes
    -----
    On a GPU, the transform along an axis of more than 8192 elements that is not the fastest in memory takes a temporary
    of the size of the result.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.fft(ta.asarray([1.0, 0.0, -1.0, 0.0])).tolist()
    [0j, (2+0j), 0j, (2+0j)]
    """
    return _along_one("fft.fft", _forward, x, n, axis, norm)


def ifft(x: A | HostData, /, n: int | None = None, axis: int = -1, norm: Norm | None = "backward") -> A:
    """Return the inverse transform along an axis: ``ifft(fft(x))`` is `x`. Parameters and errors are those of `fft`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.ifft(ta.asarray([0.0, 4.0, 0.0, 0.0])).tolist()
    [(1+0j), 1j, (-1+0j), -1j]
    """
    return _along_one("fft.ifft", _inverse, x, n, axis, norm)


def fftn(x: A | HostData, /, s: Sizes = None, axes: Axes = None, norm: Norm | None = "backward") -> A:
    """Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    x : Array
        Of any kind.
    s : tuple of int, optional
        The size of the transform along each axis; -1 is that of `x`. Each axis is cut or padded with zeros first.
    axes : tuple of int, optional
        None is all axes, or the last ones if `s` is given.
    norm : {"backward", "ortho", "forward"}
        As for `fft`, with the product of the sizes.

    Returns
    -------
    Array
        Complex: of the precision of `x`, at least complex64.

    Raises
    ------
    ShapeError
        If `x` has no such axes, an axis occurs twice, a size is less than 1, or `norm` is another word.
    DTypeError
        If the dtype is for storage only.
    ImportError
        If `x` is on a GPU, and tilearray[linalg] is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.fftn(ta.ones((2, 2))).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _forward("fft.fftn", x, s, axes, norm)


def ifftn(x: A | HostData, /, s: Sizes = None, axes: Axes = None, norm: Norm | None = "backward") -> A:
    """Return the inverse transform along several axes. Parameters and errors are those of `fftn`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.ifftn(ta.asarray([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _inverse("fft.ifftn", x, s, axes, norm)


def fft2(x: A | HostData, /, s: Sizes = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward") -> A:
    """Return the discrete Fourier transform along two axes. Parameters and errors are those of `fftn`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.fft2(ta.ones((3, 2, 2))).shape
    (3, 2, 2)
    """
    return _forward("fft.fft2", x, s, axes, norm)


def ifft2(x: A | HostData, /, s: Sizes = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward") -> A:
    """Return the inverse transform along two axes. Parameters and errors are those of `fftn`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.ifft2(ta.ones((3, 2, 2))).shape
    (3, 2, 2)
    """
    return _inverse("fft.ifft2", x, s, axes, norm)


def rfft(x: A | HostData, /, n: int | None = None, axis: int = -1, norm: Norm | None = "backward") -> A:
    """Return the first half of the transform of real numbers along an axis; the rest is its mirrored conjugate.

    Parameters and errors are those of `fft`.

    Returns
    -------
    Array
        Complex, of ``n // 2 + 1`` elements along the axis.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.rfft(ta.asarray([1.0, 0.0, -1.0, 0.0])).tolist()
    [0j, (2+0j), 0j]
    """
    return _along_one("fft.rfft", _from_real, x, n, axis, norm)


def irfft(x: A | HostData, /, n: int | None = None, axis: int = -1, norm: Norm | None = "backward") -> A:
    """Return the inverse of `rfft`: real numbers. Parameters and errors are those of `fft`.

    Parameters
    ----------
    n : int, optional
        The size of the result along the axis; None is ``2 * (size - 1)``, which is even.

    Returns
    -------
    Array
        Of the real dtype. Imaginary parts that a transform of real numbers does not have are ignored.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.irfft(ta.asarray([0.0, 2.0, 0.0]))
    Array([ 1.,  0., -1.,  0.], dtype=float32, device='cpu')
    """
    return _along_one("fft.irfft", _to_real, x, n, axis, norm)


def rfftn(x: A | HostData, /, s: Sizes = None, axes: Axes = None, norm: Norm | None = "backward") -> A:
    """Return the transform of real numbers along several axes, the first half of the last of them.

    Parameters and errors are those of `fftn`.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.rfftn(ta.ones((4, 4))).shape
    (4, 3)
    """
    return _from_real("fft.rfftn", x, s, axes, norm)


def irfftn(x: A | HostData, /, s: Sizes = None, axes: Axes = None, norm: Norm | None = "backward") -> A:
    """Return the inverse of `rfftn`: real numbers. Parameters and errors are those of `fftn`.

    Parameters
    ----------
    s : tuple of int, optional
        The sizes of the result; that of the last axis is ``2 * (size - 1)`` by default.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.irfftn(ta.ones((4, 3))).shape
    (4, 4)
    """
    return _to_real("fft.irfftn", x, s, axes, norm)


def rfft2(x: A | HostData, /, s: Sizes = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward") -> A:
    """Return the transform of real numbers along two axes. Parameters and errors are those of `rfftn`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.rfft2(ta.ones((3, 4, 4))).shape
    (3, 4, 3)
    """
    return _from_real("fft.rfft2", x, s, axes, norm)


def irfft2(x: A | HostData, /, s: Sizes = None, axes: Axes = _LAST_TWO, norm: Norm | None = "backward") -> A:
    """Return the inverse of `rfft2`: real numbers. Parameters and errors are those of `irfftn`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.irfft2(ta.ones((3, 4, 3))).shape
    (3, 4, 4)
    """
    return _to_real("fft.irfft2", x, s, axes, norm)


def hfft(x: A | HostData, /, n: int | None = None, axis: int = -1, norm: Norm | None = "backward") -> A:
    """Return the real transform of a signal of which `x` is the first half, its rest being the mirrored conjugate.

    Parameters and errors are those of `irfft`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.hfft(ta.asarray([1.0, 2.0, 1.0])).tolist()
    [6.0, 0.0, -2.0, 0.0]
    """
    return _along_one("fft.hfft", _to_real_forward, x, n, axis, norm)


def ihfft(x: A | HostData, /, n: int | None = None, axis: int = -1, norm: Norm | None = "backward") -> A:
    """Return the inverse of `hfft`: the first half of a signal. Parameters and errors are those of `rfft`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.fft.ihfft(ta.asarray([6.0, 0.0, -2.0, 0.0])).real.tolist()
    [1.0, 2.0, 1.0]
    """
    return _along_one("fft.ihfft", _from_real_inverse, x, n, axis, norm)


# --- shared parts ----------------------------------------------------------------------------------------------------


_KNOWN: TwoGenerations[Callable[[Any], Any]] = TwoGenerations(1024)
"""The transforms of calls in the same words."""


def _again(words: Words) -> Any:
    """Return the result of a call, if one in the same words for an array of the same signature is planned; or None."""
    state = STATE.get()
    if state.recording is not None:
        return None
    key = _key(words, state)
    known = None if key is None else _KNOWN.get(key)
    return None if known is None else known(words[1])


def _key(words: Words, state: State) -> tuple[Any, ...] | None:
    """Return what a plan is kept under; None for words that are equal to others, and are not read as these."""
    function, x, sizes, axes, norm, changes = words
    if norm.__class__ is str and _is_plain(sizes) and _is_plain(axes) and issubclass(x.__class__, ArrayBase):
        return function, x._signature, sizes, axes, norm, changes, state.semantics.key
    return None


def _is_plain(word: Any) -> bool:
    """Whether a size, an axis or a tuple of them equals only words that are read alike: 1 also equals True and 1.0."""
    if word is None or word is _LAST_TWO or word.__class__ is int:
        return True
    return word.__class__ is tuple and all(each.__class__ is int for each in word)


def _computed(words: Words, part: Runs, method: str, x: Any, *rest: Any) -> Any:
    """Return the result of a method of a part, and keep its plan if it has one."""
    state, device = STATE.get(), x.device
    key = None if state.recording is not None or device.functions is not None else _key(words, state)
    if key is not None:
        plan = ran(words[0], part, "once", method, x, *rest)
        if plan is not None:
            found = naming(words[0], plan, x)
            if found is not None:
                _KNOWN.put(key, plan)
                return found
    return ran(words[0], part, method, x, *rest)


def _along_one(function: str, transform: Callable[..., A], x: A | HostData, n: Any, axis: Any, norm: Any) -> A:
    """A transform along several axes, along one."""
    words = (function, x, n, axis, norm, State.changes)
    known = _again(words)
    if known is not None:
        return known
    x = as_array(function, x)
    return transform(function, x, *_one_axis(function, x, n, axis), norm, words=words)


def _one_axis(function: str, x: ArrayBase, n: Any, axis: Any) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """The arguments `s` and `axes` of a transform along one axis."""
    _part(function, x)
    axes = (normalize_axis(axis, x.ndim, function),)
    if n is None:
        return None, axes
    size = as_int(n, function, "n")
    _check_sizes(function, (size,), "n")
    return (size,), axes


def _transformed(
    method: str, inverse: bool, function: str, x: A | HostData, s: Any, axes: Any, norm: Any, words: Words | None = None
) -> A:
    """Return the result of a method of `Fourier`, from the arguments of a public function that `words` repeats."""
    words = words or (function, x, s, axes, norm, State.changes)
    known = _again(words)
    if known is not None:
        return known
    x = as_array(function, x)
    part, scale = _part(function, x), _scale(function, norm)
    sizes, places = _extents(function, x, s, axes, halved=method == "to_real")
    dtype = _precision(function, x)
    is_complex = dtype in REAL_PART
    if method == "from_real" and is_complex:
        raise DTypeError(f"{function}: expected a real array, got {dtype.name}; write ta.fft.fft, or x.real first")
    wide = dtype if is_complex or method == "from_real" else COMPLEX_OF[dtype]
    if not places:
        if method == "transform":
            return astype(x, wide)
        raise ShapeError(f"{function}: expected at least one axis, got none for shape {x.shape}; write ta.fft.fftn")
    return _computed(words, part, method, x, sizes, places, inverse, scale, wide)


_forward, _inverse = (partial(_transformed, "transform", inverse) for inverse in (False, True))
_from_real, _from_real_inverse = (partial(_transformed, "from_real", inverse) for inverse in (False, True))
_to_real_forward, _to_real = (partial(_transformed, "to_real", inverse) for inverse in (False, True))


def _part(function: str, x: ArrayBase) -> Runs:
    """What computes on the device of `x`."""
    check_array(function, x)
    if x.device.functions is not None:
        return x.device.functions.fourier(partial(_part, function))
    transforms = x.device.backend.transforms
    if transforms is None:
        return OnHost(fourier_of(function, x))
    from tilearray.fft.device_fourier import DeviceFourier  # the host does not need it

    return DeviceFourier(transforms)


def _scale(function: str, norm: Any) -> str:
    """The name of a scale."""
    found = "backward" if norm is None else norm
    if isinstance(found, str) and found in _NORMS:
        return found
    raise ShapeError(
        f"{function}: expected norm as 'backward', 'ortho' or 'forward', got {shown(norm)}; write one of the three"
    )


def _precision(function: str, x: ArrayBase) -> np.dtype:
    """The dtype as which elements are read: float32, float64, complex64 or complex128."""
    check_kind(function, x.dtype, ANY)
    return opmath(computed_as(Promotion.TRUE_DIVISION, STATE.get().semantics, x.dtype))


def _extents(
    function: str, x: ArrayBase, s: Any, axes: Any, halved: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of a transform, and its axes; for `halved`, the last size is that of the whole signal."""
    given = None if s is None else as_ints(s, function, "s", "sizes")
    if axes is not None:
        places = normalize_axes(axes, x.ndim, function)
    else:
        last = range(-x.ndim if given is None else -len(given), 0)
        places = normalize_axes(tuple(last), x.ndim, function)
    if given is not None and len(given) != len(places):
        raise ShapeError(f"{function}: expected a size for each of {len(places)} axes, got s={given}; write s=None")
    own = [x.shape[place] for place in places]
    if halved and own:
        own[-1] = 2 * (own[-1] - 1)
    sizes = tuple(own) if given is None else tuple([mine if n == -1 else n for n, mine in zip(given, own)])
    _check_sizes(function, sizes, "s")
    return sizes, places


def _check_sizes(function: str, sizes: tuple[int, ...], argument: str) -> None:
    if any(n < 1 for n in sizes):
        raise ShapeError(
            f"{function}: expected at least 1 point along each axis, got sizes {sizes}; "
            f"write {argument}= to pad with zeros"
        )

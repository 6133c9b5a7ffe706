"""`Array`: a strided view of memory on one device, with NumPy's operators. One line per operator.

An Array has a buffer, the offset of element 0 in it, and an interned signature: its layout, dtype and device. A view
has another layout of the same buffer, and copies nothing. Operators are rows of `tilearray.ops`; the methods are the
functions of `tilearray.functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays import uninitialised
from tilearray.arrays.missing_methods import MissingMethods
from tilearray.dtypes import DTypeLike
from tilearray.engine.devices import DeviceLike
from tilearray.engine.signature import Operand
from tilearray.errors import DTypeError, OperandError
from tilearray.functions import conversion, inspection, manipulation, numpy_dispatch, printing, products
from tilearray.functions.indexing import assign, views
from tilearray.functions.methods import NumPyMethods, check_casting
from tilearray.functions.operators import (
    BinaryMethod,
    in_place_operator_of,
    matrix_operators,
    name_methods,
    operator_of,
    reflected_operator_of,
    takes,
    unary_operator_of,
)
from tilearray.functions.orders import Order, copied, in_order
from tilearray.interchange import cuda_array_interface
from tilearray.ops import arithmetic, composed
from tilearray.ops.execute import copy_of
from tilearray.ops.hooks import HOOKS
from tilearray.ops.op import Op
from tilearray.ops.options import CastMode, NamedMode
from tilearray.ops.signatures import show
from tilearray.promotion.storing import Casting

if TYPE_CHECKING:
    from tilearray.engine.array_type import Tiles
    from tilearray.ops.seeds import Seed


def _binary(op: Op) -> tuple[BinaryMethod, BinaryMethod, BinaryMethod]:
    """The method of an operator, its reflected form, and its in-place form."""
    return operator_of(op), reflected_operator_of(op), in_place_operator_of(op)


class Array(NumPyMethods, MissingMethods):
    """A strided array on one device. `asarray`, the creation functions and operations make Arrays.

    `ndarray` is another name of the class, and a call means what it means in NumPy: it makes an uninitialised array on
    the default device, as `empty` does, or an array over the memory of a buffer on the host.

    Parameters
    ----------
    shape : int or tuple of int
        A list is an error: it may be meant as data, for ``asarray(data)``.
    dtype : dtype or name, optional
        None is the default float dtype of the active semantics.
    buffer : object with a buffer, or Array on the host, optional
        Bytes cannot be written to.
    offset : int
        Where to begin in the buffer, in bytes.
    strides : None
        Others are an error, for NumPy counts them in bytes; write ``as_strided(x, shape, strides)``.
    order : {"C", "F"}, optional
        "F" makes the first axis the dense one.

    Attributes
    ----------
    shape, strides : tuple of int
        The extent and stride of every axis; strides count elements, not bytes.
    offset : int
        The position of the first element in the buffer, in elements.
    dtype : numpy.dtype
        A NumPy or ml_dtypes dtype.
    device : Device
        The device that holds the memory.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([[1, 2, 3], [4, 5, 6]])
    >>> x.T[::-1, 0] * 2
    Array([6, 4, 2], dtype=int64, device='cpu')
    >>> ta.ndarray((2, 3), dtype="int8").shape
    (2, 3)
    """

    __slots__ = ()
    __module__ = "tilearray"  # where users find it: error messages and pickles name it so
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __new__(
        cls,
        shape: int | tuple[int, ...],
        dtype: DTypeLike | None = None,
        buffer: Any = None,
        offset: int = 0,
        strides: None = None,
        order: Order | None = None,
    ) -> Array:
        return uninitialised.ndarray(Array, shape, dtype, buffer, offset, strides, order)

    # ------------------------------------------------------------------ attributes

    T: Array = property(views.transposed, doc="The view with its axes reversed.")  # type: ignore[assignment]

    @property
    def mT(self) -> Array:
        """The view with its last two axes exchanged."""
        if len(self._signature.layout.shape) == 2:
            return views.transposed(self)
        return products.matrix_transpose(self)

    @property
    def real(self) -> Array:
        """The real part, a view; of real arrays the array itself."""
        return conversion.part(self, 0)

    @real.setter
    def real(self, value: Any) -> None:
        assign.set(conversion.part(self, 0), ..., value)

    @property
    def imag(self) -> Array:
        """The imaginary part, a view; of real arrays zeros that cannot be written."""
        return conversion.part(self, 1)

    @imag.setter
    def imag(self, value: Any) -> None:
        if dtypes.info(self.dtype).kind != "complex":
            raise DTypeError(
                f"imag: expected a complex array, got {self.dtype.name}; write x.astype('complex64') first"
            )
        assign.set(conversion.part(self, 1), ..., value)

    # ------------------------------------------------------------------ views and copies

    def permute_dims(self, *axes: Any) -> Array:
        """Return the view whose axis ``i`` is axis ``axes[i]`` of this one."""
        return manipulation.permute_dims(self, _arguments(axes))

    def transpose(self, *axes: Any) -> Array:
        """Return the view with its axes permuted; reversed if none are given."""
        return manipulation.transpose(self, None if not axes else _arguments(axes))

    def reshape(self, *shape: Any, order: Order = "C", copy: bool | None = None) -> Array:
        """Return the elements in C order in another shape: a view if strides allow it, else a copy."""
        return manipulation.reshape(self, _arguments(shape), order, copy=copy)

    def squeeze(self, axis: Any = None) -> Array:
        """Return the view without axes of size 1."""
        return manipulation.squeeze(self, axis)

    def expand(self, *shape: Any) -> Array:
        """Return the view broadcast to a shape; -1 keeps an axis as it is."""
        return manipulation.expand(self, *shape)

    def view(self, dtype: DTypeLike | None = None) -> Array:
        """Return the same bytes read as another dtype; never a copy."""
        return manipulation.view(self, self.dtype if dtype is None else dtype)

    def tiles(self, tile_shape: Any, *, order: Any = "C", padding: Any = "zero", step: Any = None) -> Tiles:
        """Return the grid of the array's tiles; see `tilearray.tiles`."""
        return HOOKS.tiles(self, tile_shape, order=order, padding=padding, step=step)

    def copy(self, order: Order = "K") -> Array:
        """Return a dense copy on the same device; "K" keeps the order of the axes in memory."""
        return copy_of(self) if order == "K" else copied("copy", self, order)

    def astype(
        self,
        dtype: DTypeLike,
        order: Order = "K",
        casting: Casting = "unsafe",
        subok: bool = True,
        copy: bool = True,
        *,
        device: DeviceLike | None = None,
        rounding: CastMode | NamedMode | None = None,
        saturate: bool | None = None,
        seed: Seed = None,
    ) -> Array:
        """Return the values in another dtype, each rounded once; floats saturate in integers, and NaN becomes 0.

        `order` and `casting` are NumPy's; `subok` has no meaning here. See `tilearray.astype`.
        """
        if casting != "unsafe":
            check_casting(self.dtype, dtypes.as_dtype(dtype, "astype"), casting)
        options: Any = {"rounding": rounding, "saturate": saturate, "seed": seed}
        found = conversion.astype(self, dtype, copy=copy, device=device, **options)
        return found if order == "K" else in_order("astype", found, order)

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Array:
        """Return the array on a device: itself if it is there already, else a copy."""
        return conversion.to_device(self, device, stream=stream)

    def item(self, *index: int) -> Any:
        """Return the one element, or the element at an index, as a Python number."""
        return conversion.item(self, *index)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return conversion.tolist(self)

    # ------------------------------------------------------------------ Python protocols

    __getitem__ = views.get
    __setitem__ = assign.set

    def __len__(self) -> int:
        if not self.shape:
            raise OperandError("len: a 0-d array has no length; write x.item() for its value")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise OperandError("iter: a 0-d array cannot be iterated over; write x.item() for its value")
        return (self[position] for position in range(self.shape[0]))

    def __contains__(self, value: Any, /) -> bool:
        return conversion.contains(self, value)

    def __bool__(self) -> bool:
        return bool(conversion.single(self, "bool"))

    def __int__(self) -> int:
        return int(conversion.single(self, "int"))

    def __float__(self) -> float:
        return float(conversion.single(self, "float"))

    def __complex__(self) -> complex:
        return complex(conversion.single(self, "complex"))

    def __index__(self) -> int:
        if self._signature.layout.shape or self._signature.dtype.kind not in "iu":
            raise OperandError(
                f"index: expected a 0-d integer array, got {self.dtype.name} of shape {self.shape}; write int(x)"
            )
        return int(conversion.single(self, "index"))

    def __repr__(self) -> str:
        return printing.array_repr(self)

    def __str__(self) -> str:
        return printing.array_str(self)

    def _repr_html_(self) -> str:
        """Return dtype, shape, strides and a drawing of the layout, for notebooks."""
        from tilearray.functions.layout_html import array_html

        return array_html(self)

    def __format__(self, spec: str) -> str:
        return printing.array_format(self, spec)

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return memo.setdefault(id(self), self.copy())

    def __reduce__(self) -> tuple[Callable[..., Array], tuple[Any, ...]]:
        from tilearray.functions.pickling import parts

        return parts(self)

    def __dask_tokenize__(self) -> Any:
        return HOOKS.fingerprint(self)

    # ------------------------------------------------------------------ exchange

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        return inspection.namespace(api_version)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return conversion.as_ndarray(self, dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_dispatch.from_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return numpy_dispatch.from_function(self, function, types, args, kwargs)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return conversion.to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return conversion.dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_array_interface.describe(self)

    # ------------------------------------------------------------------ operators

    __pos__ = unary_operator_of(arithmetic.positive)
    __neg__ = unary_operator_of(arithmetic.negative)
    __abs__ = unary_operator_of(arithmetic.abs)
    __invert__ = unary_operator_of(arithmetic.bitwise_invert)

    __add__, __radd__, __iadd__ = _binary(arithmetic.add)
    __sub__, __rsub__, __isub__ = _binary(arithmetic.subtract)
    __mul__, __rmul__, __imul__ = _binary(arithmetic.multiply)
    __truediv__, __rtruediv__, __itruediv__ = _binary(arithmetic.divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary(arithmetic.floor_divide)
    __mod__, __rmod__, __imod__ = _binary(arithmetic.remainder)
    __pow__, __rpow__, __ipow__ = _binary(arithmetic.pow)
    __and__, __rand__, __iand__ = _binary(arithmetic.bitwise_and)
    __or__, __ror__, __ior__ = _binary(arithmetic.bitwise_or)
    __xor__, __rxor__, __ixor__ = _binary(arithmetic.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = _binary(arithmetic.bitwise_left_shift)
    __rshift__, __rrshift__, __irshift__ = _binary(arithmetic.bitwise_right_shift)

    if TYPE_CHECKING:  # else a checker takes the types of `object`

        def __eq__(self, other: Operand, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Operand, /) -> Array: ...  # type: ignore[override]
    else:
        __eq__ = operator_of(arithmetic.equal)
        __ne__ = operator_of(arithmetic.not_equal)
    __lt__ = operator_of(arithmetic.less)
    __le__ = operator_of(arithmetic.less_equal)
    __gt__ = operator_of(arithmetic.greater)
    __ge__ = operator_of(arithmetic.greater_equal)

    def __divmod__(self, other: Operand, /) -> tuple[Array, Array]:
        return composed.divmod(self, other) if takes(arithmetic.floor_divide, other) else NotImplemented

    def __rdivmod__(self, other: Operand, /) -> tuple[Array, Array]:
        return composed.divmod(other, self) if takes(arithmetic.floor_divide, other) else NotImplemented

    __matmul__, __rmatmul__, __imatmul__ = matrix_operators()


name_methods(Array)
show([*vars(NumPyMethods).values(), *vars(Array).values()])


def _arguments(given: tuple[Any, ...]) -> Any:
    """``f(1, 2)`` and ``f((1, 2))`` mean the same."""
    return given[0] if len(given) == 1 else given

"""The namespace of an array, and the facts about it, as the array API standard asks for them.

`standard <https://data-apis.org/array-api/2025.12/API_specification/inspection.html>`_
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, DeviceLike, as_device, default_device, devices
from tilearray.errors import DTypeError, OperandError, shown
from tilearray.functions.arguments import INDEX

API_VERSION: Final = "2025.12"
_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", API_VERSION)

_STANDARD: Final = (
    *(dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    *(dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128),
)


def namespace(api_version: str | None = None) -> ModuleType:
    """Return the module whose functions take an Array, as ``x.__array_namespace__()`` does.

    Raises
    ------
    OperandError
        If the version of the standard does not exist.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros(3).__array_namespace__() is ta
    True
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise OperandError(
            f"__array_namespace__: expected a version of the array API standard, one of {', '.join(_VERSIONS)}, "
            f"got {shown(api_version)}; write api_version=None for {API_VERSION}"
        )
    return sys.modules[__name__.partition(".")[0]]


class DeviceTuple(tuple[Device, ...]):
    """A tuple, as the standard has it since 2025.12, to which a list can be added, as before: SciPy's tests do that."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *cast("list[Any]", other)] if isinstance(other, list) else tuple(self) + other


class Info:
    """The result of `__array_namespace_info__`: five functions that the array API standard names."""

    __slots__ = ()

    def capabilities(self) -> dict[str, bool | int | None]:
        """Return the capabilities of all devices.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.__array_namespace_info__().capabilities()["max dimensions"]
        64
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device on which new arrays are created."""
        return default_device()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, np.dtype]:
        """Return the dtypes of new arrays under the active semantics, and that of indices.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
        """
        as_device(device, "default_dtypes")
        defaults = STATE.get().semantics.defaults
        return {
            "real floating": defaults["float"],
            "complex floating": defaults["complex"],
            "integral": defaults["int"],
            "indexing": INDEX,
        }

    def dtypes(
        self, *, device: DeviceLike | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """Return the dtypes that the standard names, by name; `tilearray` has more.

        Parameters
        ----------
        device : Device or str, optional
            All devices have the same.
        kind : str or tuple of str, optional
            A kind, as in `isdtype`, or several; None for all.

        Raises
        ------
        DTypeError
            If a kind does not exist.

        Examples
        --------
        >>> import tilearray as ta
        >>> sorted(ta.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        as_device(device, "dtypes")
        kinds = dtypes.KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for one in kinds:
            if one not in dtypes.KINDS:
                raise DTypeError(f"dtypes: expected a kind, got {shown(one)}; write one of {', '.join(dtypes.KINDS)}")
        return {dtype.name: dtype for dtype in _STANDARD if dtypes.isdtype(dtype, tuple(kinds))}

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that arrays can be created on, the host last."""
        return DeviceTuple(devices())


def array_namespace_info() -> Info:
    """Return the facts about the library that the array API standard asks for.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.__array_namespace_info__().default_device()
    Device('cpu')
    """
    return Info()

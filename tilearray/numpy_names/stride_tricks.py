"""``np.lib.stride_tricks``: programs and xarray's rolling windows look `sliding_window_view` up here.

NumPy's `as_strided` counts strides in bytes, and ours in elements. Under NumPy's name it would read other elements:
it is not here.
"""

from tilearray.functions.manipulation import sliding_window_view

__all__ = ["sliding_window_view"]


def __getattr__(name: str) -> object:
    if name == "as_strided":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; write ta.as_strided: strides in elements")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""NumPy's package of the same name, as far as libraries ask a namespace for it: `stride_tricks`."""

from tilearray.numpy_names import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]

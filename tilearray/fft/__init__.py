"""Discrete Fourier transforms: the extension of the array API standard, and the names of `numpy.fft` beside them.

`standard <https://data-apis.org/array-api/2025.12/extensions/fourier_transform_functions.html>`_

float32 and complex64 are transformed in single precision, float64 and complex128 in double precision. Narrower floats
are read as float32, bool and integers as the dtype of their true division. Results are complex64, complex128, float32
or float64.
"""

from typing import TYPE_CHECKING

from tilearray.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from tilearray.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from tilearray.missing_names import MissingNameError as _MissingNameError
from tilearray.ops.signatures import show as _show

# fmt: off
__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]
# fmt: on

_show([globals()[_name] for _name in __all__])

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Say what to write for a name that is missing."""
        raise _MissingNameError(name, __all__, "fft")


def __dir__() -> list[str]:
    return sorted(__all__)


del TYPE_CHECKING

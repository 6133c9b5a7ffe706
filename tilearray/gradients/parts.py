"""What runs whole functions on followed arrays: fused functions, linear algebra, Fourier transforms.

`tilearray.gradients.following` calls them, and lies below them. So they are put there when this module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilearray.gradients.following import Calls, FollowingDevice
from tilearray.gradients.fused import follow


def _matrices(device: FollowingDevice, function: str) -> Any:
    from tilearray.gradients.matrices import FollowedMatrices  # here: few programs need it

    return FollowedMatrices(function, device)


def _fourier(device: FollowingDevice, below: Callable[[Any], Any]) -> Any:
    from tilearray.gradients.fourier import FollowedFourier  # here: few programs need it

    return FollowedFourier(device, below)


Calls.follow_fused = staticmethod(follow)
Calls.follow_matrices = staticmethod(_matrices)
Calls.follow_fourier = staticmethod(_fourier)

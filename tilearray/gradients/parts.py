"""What followed arrays need that lies above them: the record of operations, and functions that run as a whole.

`FollowingDevice` calls them, so they are put there when this module is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilearray.gradients.calls import Calls
from tilearray.gradients.followed import FollowingDevice
from tilearray.gradients.following import record
from tilearray.gradients.fused import follow


class _Functions(Calls):
    """Also fused functions, linear algebra and Fourier transforms."""

    def fused(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a fused function, as one step."""
        return follow(self._device, function, args, kwargs)

    def matrices(self, function: str) -> Any:
        """Return what computes factors of followed matrices."""
        from tilearray.gradients.matrices import FollowedMatrices  # here: few programs need it

        return FollowedMatrices(function, self._device)

    def fourier(self, below: Callable[[Any], Any]) -> Any:
        """Return what computes transforms of followed arrays, given what returns it for the arrays below."""
        from tilearray.gradients.fourier import FollowedFourier  # here: few programs need it

        return FollowedFourier(self._device, below)


FollowingDevice.follow_operation = staticmethod(record)
FollowingDevice.follow_functions = _Functions

"""A kernel that only casts, for the tests that ask Triton how it does."""

import triton
import triton.language as tl


@triton.jit
def cast_kernel(x, y):
    """Cast 128 elements to the dtype of the target."""
    at = tl.arange(0, 128)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty))

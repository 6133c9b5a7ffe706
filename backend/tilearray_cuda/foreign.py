"""Memory of other libraries: which GPU it is on, and a buffer that keeps its owner alive."""

from __future__ import annotations

from tilearray_cuda.blocks import ForeignBuffer
from tilearray_cuda.device import open_device
from tilearray_cuda.driver import api, call


def borrow(pointer: int, nbytes: int, owner: object, readonly: bool, stream: int) -> tuple[int, ForeignBuffer]:
    """Return the index of the GPU that memory is on, and a buffer over it; nothing is copied or waited for.

    Raises
    ------
    CudaError
        If the address is not in a GPU's memory.
    """
    open_device(0)  # the driver has to be in use before it can be asked
    index = 0
    if nbytes:
        attribute = api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        index = int(call(api.cuPointerGetAttribute, attribute, pointer))
    return index, ForeignBuffer(open_device(index), pointer, nbytes, owner, readonly, stream)

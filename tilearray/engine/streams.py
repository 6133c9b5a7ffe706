"""The special handles of CUDA streams, as the driver and the exchange protocols number them.

Every other handle is the address of a stream. `tilearray_cuda.runtime.driver` has the same table for the backend, which
imports nothing of the library.
"""

from __future__ import annotations

LEGACY_STREAM = 0
"""The legacy default stream, as the driver takes it, and as settings and buffers hold it."""
LEGACY_ALIAS = 1
"""The same stream, as DLPack and the CUDA Array Interface name it; they cannot use 0."""
PER_THREAD_STREAM = 2
"""The per-thread default stream, a different stream in each thread; the largest special handle."""
NO_WAIT = -1
"""Not a stream: a consumer of DLPack asks for no wait."""

"""Functions that generated kernels call, in Triton: programs of one launch that wait for each other.

Read as text like numeric.py, which tells how.
"""

from __future__ import annotations

# ruff: noqa: F821
# pyright: reportUndefinedVariable=false, reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false


def take_turn(turns):
    """Return the number of this program, in the order in which programs start.

    So a program that waits for all with the next few numbers waits for programs that run or start next.
    """
    return tl.atomic_add(turns, 1, sem="relaxed")


def meet(arrivals, members):
    """Return when all members of a group have called this; then each one may read what others stored before."""
    tl.debug_barrier()  # all threads have stored
    arrived = tl.atomic_add(arrivals, 1, sem="acq_rel") + 1
    while arrived < members:
        arrived = tl.atomic_add(arrivals, 0, sem="acquire")
    tl.debug_barrier()

"""``TILEARRAY_DEBUG``: what runs, printed to stderr as it runs.

=====  =================================================================================================
level  prints
=====  =================================================================================================
1      a line for each operation that runs, and for each launch of a fused function
2      for each new plan also its expression, loop, bytes, schedule, tile and cache key, as `explain` does
3      also the source of its kernels
4      also the time of each run, and its bytes by second; on a GPU each operation is then waited for
=====  =================================================================================================

Operations of one process are planned once, so levels 2 and 3 print each plan once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilearray.engine.backend import AnyLoop
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression
from tilearray.engine.plan import Key, Plan
from tilearray.engine.signature import Signature
from tilearray.engine.watch import WATCH
from tilearray.errors import OperandError, shown
from tilearray.explaining import kernels
from tilearray.explaining.explain import launch_data, shown_operand
from tilearray.explaining.explanation import Launch, labelled

VARIABLE = "TILEARRAY_DEBUG"


def start(level: str) -> None:
    """Print what is planned from now on, as it runs. Level "0" prints nothing.

    Raises
    ------
    OperandError
        If the level is not 0 to 4.
    """
    if level not in ("0", "1", "2", "3", "4"):
        raise OperandError(f"{VARIABLE}: expected a level from 0 to 4, got {shown(level)}; write {VARIABLE}=1")
    debug = Debug(int(level))
    watching = (debug.plan, debug.launch, debug.lists) if debug.level else (None, None, None)
    WATCH.plan, WATCH.launch, WATCH.lists = watching


class Debug:
    """Prints plans and launches.

    Attributes
    ----------
    level : int
    """

    def __init__(self, level: int) -> None:
        self.level = level

    def plan(self, plan: Plan, keys: Sequence[Key]) -> None:
        """Print a new plan, and let its calls print that they run."""
        device = plan.signature.device
        operands = [shown_operand(key) if isinstance(key, Signature) else "number" for key in keys]
        title = f"{plan.operation.name}({', '.join(operands)}) -> {shown_operand(plan.signature)} on {device}"
        stages = [(each.expression, each.loop, each.kernel) for each in plan.stages]
        if plan.kernel is None:
            launches: list[Launch] = []
        else:
            parts = stages or [(plan.expression, plan.loop, plan.kernel)]
            launches = [_data(*part, device) for part in parts]
        self._planned(title, launches)
        plan.call = self._printing(title, launches, device, plan.call)

    def launch(
        self, expression: Expression, loop: AnyLoop, kernel: Any, device: Device, launch: Callable[..., None]
    ) -> Callable[..., None]:
        """Print a new launch of a fused function, and return it so that it prints that it runs."""
        if device.recorder is not None:  # nothing runs
            return launch
        data = _data(expression, loop, kernel, device)
        title = f"{_fused(expression)} over {' x '.join(map(str, loop.shape))} on {device}"
        self._planned(title, [data])
        return self._printing(title, [data], device, launch)

    def lists(
        self, expression: Expression, loops: Sequence[AnyLoop], kernel: Any, device: Device, launch: Callable[..., bool]
    ) -> Callable[..., bool]:
        """Print a new launch over a list, with the kernel of one member, and return it so that it prints its runs."""
        data = [_data(expression, loop, kernel, device) for loop in (loops if self.level >= 4 else loops[:1])]
        title = f"{_fused(expression)} over a list of {len(loops)} on {device}"
        self._planned(title, data[:1])
        return self._printing(title, data, device, launch)

    def _planned(self, title: str, launches: Sequence[Launch]) -> None:
        if self.level < 2:
            return
        lines = [f"tilearray plans {title}"]
        for launch in launches:
            for name, text in launch.lines(source=self.level >= 3):
                lines += labelled(name, text, "   ")
        _print("\n".join(lines))

    def _printing(
        self, title: str, launches: Sequence[Launch], device: Device, run: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return a function that runs and prints."""
        if self.level < 4:

            def call(*arguments: Any) -> Any:
                _print(f"tilearray runs {title}")
                return run(*arguments)

            return call
        nbytes = sum(launch.bytes_read + launch.bytes_written for launch in launches)
        wait = getattr(device.backend, "synchronize", lambda: None)

        def timed(*arguments: Any) -> Any:
            wait()
            begin = time.perf_counter()
            result = run(*arguments)
            wait()
            taken = time.perf_counter() - begin
            _print(f"tilearray runs {title}: {taken * 1e6:.4g} µs, {nbytes / taken / 1e9:.4g} GB/s")
            return result

        return timed


def _fused(expression: Expression) -> str:
    """Return the dtypes of a launch of a fused function."""
    return f"fused({', '.join([dtype for _, dtype in expression.inputs])}) -> {', '.join(expression.output_dtypes)}"


def _data(expression: Expression, loop: AnyLoop, kernel: Any, device: Device) -> Launch:
    """Return a launch as data. The kernel of a GPU has the schedule that was chosen for it, a library's call a text."""
    if device.backend.on_host:
        return launch_data(expression, loop, kernels.host_kernel(expression, loop))
    if hasattr(kernel, "text"):
        return launch_data(expression, loop, kernels.LibraryKernel(kernel.text))
    arch = getattr(device.backend, "arch", 0)
    return launch_data(expression, loop, kernels.gpu_kernel(kernel.schedule, loop, arch))


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

"""NPBench's 54 kernels, from a checkout beside the project: ``import tilearray as np``, and nothing else is changed.

NPBench's own initializers make the data, with NumPy, at the smallest preset and smaller: no size is above `LARGEST`.
The kernel runs as it is written, and again with its one import replaced. Returned values, and every array that the
kernel was given, must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients import calls

PACKAGE = "npbench"
SEMANTICS = "numpy"
CHECKOUT = "npbench"
VARIABLE = "NPBENCH"
IMPORT = "import numpy as np"
LARGEST = 60
SIZES = {"channel_flow": {"ny": 11, "nx": 11}, "azimint_naive": {"N": 2000}, "azimint_hist": {"N": 2000}}
"""Sizes that are not cut at `LARGEST`: a flow that settles soon, and enough points for every bin."""


def missing(checkout: Path | None) -> str | None:
    if checkout is None or not (checkout / "bench_info").is_dir():
        return (
            f"npbench: expected a checkout at {checkout}, but bench_info is not there; write\n"
            f"    git clone https://github.com/spcl/npbench {checkout}\n"
            f"    pip install scipy\n"
            f"or name one that you have: --checkout PATH, or {VARIABLE}=PATH"
        )
    return None


def run(checkout: Path, semantics: str, chosen: list[str]) -> dict[str, dict[str, Any]]:
    """Return the outcome of each kernel by its name."""
    import tilearray as ta

    files = sorted((checkout / "bench_info").glob("*.json"))
    with ta.semantics(semantics), np.errstate(all="ignore"):
        return {file.stem: kernel(checkout, file, ta) for file in files if not chosen or file.stem in chosen}


def kernel(checkout: Path, file: Path, ta: Any) -> dict[str, Any]:
    """Run one kernel with both libraries."""
    about = json.loads(file.read_text(encoding="utf-8"))["benchmark"]
    folder = checkout / "npbench" / "benchmarks" / about["relative_path"]
    data = made(folder / f"{about['module_name']}.py", about)
    source = (folder / f"{about['module_name']}_numpy.py").read_text(encoding="utf-8")
    if source.count(IMPORT) != 1:
        raise ValueError(f"npbench: expected one '{IMPORT}' in {about['module_name']}_numpy.py")

    def results(text: str, array: Callable[[Any], Any]) -> Any:
        arguments = [array(x) if isinstance(x, np.ndarray) else x for x in (data[name] for name in about["input_args"])]
        return calls.plain([function(text, about["func_name"])(*arguments), arguments])

    theirs = results(source, np.copy)
    try:
        ours = results(source.replace(IMPORT, "import tilearray as np"), lambda x: ta.asarray(x, copy=True))
    except Exception as error:  # whatever a kernel meets is its failure
        return {"outcome": "failed", "message": f"{type(error).__name__}: {error}"}
    problem = calls.difference(ours, theirs)
    return {"outcome": "failed", "message": f"other result: {problem}"[:500]} if problem else {"outcome": "passed"}


def made(file: Path, about: dict[str, Any], largest: int = LARGEST) -> dict[str, Any]:
    """The parameters, cut to small sizes, and the data that the kernel's own initializer makes of them."""
    data = {name: min(x, largest) if isinstance(x, int) else x for name, x in about["parameters"]["S"].items()}
    if largest == LARGEST:
        data |= SIZES.get(about["module_name"], {})
    first = about.get("init")
    if first:
        make = function(file.read_text(encoding="utf-8"), first["func_name"])
        found = make(*(data[name] for name in first["input_args"]))
        names = first["output_args"]
        data |= dict(zip(names, found if len(names) > 1 else [found]))
    return data


def function(text: str, name: str) -> Callable[..., Any]:
    """A function of a module that is given as text."""
    module: dict[str, Any] = {"__name__": "kernel"}
    exec(compile(text, name, "exec"), module)
    return module[name]


def part(test: str) -> str:
    return "kernels"

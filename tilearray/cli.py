"""The command ``tilearray``: ``info`` says what is installed and in force, ``demo`` shows it at work.

Exit status: 0; 1 if the demo cannot go on or differs from NumPy; 2 for arguments that are not understood. What went
wrong goes to standard error in one line.
"""

from __future__ import annotations

import argparse
import platform
import sys
import textwrap
from collections.abc import Iterable, Sequence

import ml_dtypes
import numpy as np

import tilearray as ta
from tilearray import dtypes
from tilearray.base import SIGNATURES
from tilearray.body import BODIES
from tilearray.caches import KERNELS, PLANS
from tilearray.promotion import SEMANTICS

CACHES = {"plans": PLANS, "signatures": SIGNATURES, "bodies": BODIES, "kernels": KERNELS}  # two generations each


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with arguments, those of the process by default; return its exit status."""
    chosen = parser().parse_args(arguments)
    from tilearray.demo_pipeline import DemoError

    try:
        if chosen.command == "info":
            print(info())
        else:
            from tilearray.demo import demo

            demo(chosen.output)
    except (DemoError, ta.TileArrayError) as error:
        print(f"tilearray {chosen.command}: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="tilearray", description="NumPy-like expressions over strided arrays.")
    top.add_argument("--version", action="version", version=f"tilearray {ta.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="{info,demo}")
    commands.add_parser("info", help="print version, devices, dtypes, semantics and caches")
    demo = commands.add_parser(
        "demo",
        help="put a photograph through a pipeline, every step checked against NumPy",
        description="Put the photograph that matplotlib ships through a pipeline over uint8, float16 and float32, "
        "check every step against NumPy, and write before.png, after.png and steps.png. "
        "Needs: pip install 'tilearray[demo]'",
    )
    demo.add_argument(
        "--output", default="demo-output", metavar="DIR", help="folder for the pictures, made if need be: demo-output"
    )
    return top


def info() -> str:
    """What ``tilearray info`` prints.

    Examples
    --------
    >>> "semantics   array-api (in force), triton" in info().splitlines()
    True
    """
    lines = (
        textwrap.fill(f"{name:12}{fact}", 100, subsequent_indent=" " * 12, break_on_hyphens=False)
        for name, fact in facts().items()
    )
    return "\n".join(lines)


def facts() -> dict[str, str]:
    """What there is to say, by topic."""
    default, rules = ta.default_device(), ta.get_semantics()
    return {
        "tilearray": ta.__version__,
        "devices": listed(f"{device} (default)" if device is default else str(device) for device in ta.devices()),
        "dtypes": listed(dtype.name for dtype in dtypes.ARITHMETIC),
        "  storage": listed(dtype.name for dtype in dtypes.STORAGE_ONLY),
        "semantics": listed(f"{name} (in force)" if known is rules else name for name, known in SEMANTICS.items()),
        "caches": listed(f"{name} {len(cache)} of {2 * cache.capacity}" for name, cache in CACHES.items()),
        "python": f"{platform.python_version()}, numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}",
    }


def listed(names: Iterable[str]) -> str:
    return ", ".join(names)

"""The command ``tilearray``: ``info`` says what is installed and in force, ``demo`` shows it at work, and ``cache``
lists, removes and prepares compiled kernels.

Exit status: 0; 1 if a command cannot go on, the demo differs from NumPy, or a kernel cannot be compiled or removed;
2 for arguments that are not understood; 130 after Ctrl-C. What went wrong goes to standard error, in one line if it
ends the command.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import ml_dtypes
import numpy as np

import tilearray as ta
from tilearray import dtypes, warm
from tilearray.base import SIGNATURES
from tilearray.body import BODIES
from tilearray.caches import KERNELS, PLANS
from tilearray.systems import SEMANTICS

CACHES = {"plans": PLANS, "signatures": SIGNATURES, "bodies": BODIES, "kernels": KERNELS}  # two generations each


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with arguments, those of the process by default; return its exit status."""
    chosen = parser().parse_args(arguments)
    from tilearray.demo_pipeline import DemoError

    try:
        status: int = chosen.run(chosen)
        sys.stdout.flush()
    except (DemoError, ta.TileArrayError) as error:
        print(f"tilearray {chosen.name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"tilearray {chosen.name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `tilearray cache list | head`: nobody reads on, and the flush at exit would fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="tilearray", description="NumPy-like expressions over strided arrays.")
    top.add_argument("--version", action="version", version=f"tilearray {ta.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="{info,demo,cache}")
    info = commands.add_parser("info", help="print version, devices, dtypes, semantics and caches")
    info.set_defaults(run=print_info, name="info")
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
    demo.set_defaults(run=run_demo, name="demo")
    cache = commands.add_parser(
        "cache",
        help="list, remove or prepare compiled kernels",
        description="Compiled kernels are kept in the directory that TILEARRAY_CACHE_DIR names, else in "
        "tilearray in XDG_CACHE_HOME or ~/.cache, and take TILEARRAY_CACHE_SIZE bytes at most.",
    )
    add_cache_commands(cache)
    return top


def print_info(chosen: argparse.Namespace) -> int:
    print(info())
    return 0


def run_demo(chosen: argparse.Namespace) -> int:
    from tilearray.demo import demo

    demo(chosen.output)
    return 0


def info() -> str:
    """What ``tilearray info`` prints.

    Examples
    --------
    >>> "semantics   array-api (in force), triton, cutile, torch, numpy" in info().splitlines()
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


# --- tilearray cache ------------------------------------------------------------------------------------------------


def add_cache_commands(cache: argparse.ArgumentParser) -> None:
    commands = cache.add_subparsers(dest="subcommand", required=True, metavar="{list,clear,warm}")
    shown = commands.add_parser("list", help="print every compiled kernel, the last used one first")
    shown.set_defaults(run=list_kernels, name="cache list")
    cleared = commands.add_parser("clear", help="remove every compiled kernel")
    cleared.set_defaults(run=clear_kernels, name="cache clear")
    warmed = commands.add_parser(
        "warm",
        help="compile kernels ahead; needs no GPU",
        description=textwrap.fill(
            "Compile the kernels that calls on a GPU will look up, for building images: of each op, with all its "
            "operands of one dtype, under the semantics in force (TILEARRAY_SEMANTICS). Names are separated by commas, "
            "options may be repeated, and `all` takes everything.",
            80,
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="layouts:\n" + "\n".join(f"  {name:12}{what}" for name, (what, _) in warm.LAYOUTS.items()),
    )
    architectures = {f"sm_{arch}": arch for arch in warm.ARCHITECTURES}
    selections: tuple[tuple[str, str, Mapping[str, Any], str], ...] = (
        ("--arch", "architecture", architectures, f"the GPUs, of {listed(architectures)}"),
        (
            "--ops",
            "op",
            warm.ROWS,
            f"functions, astype or setitem; by default those with an operator, {listed(warm.OPERATORS)}",
        ),
        ("--dtypes", "dtype", {dtype.name: dtype for dtype in dtypes.ALL}, "float32 by default"),
        ("--layouts", "layout", dict.fromkeys(warm.LAYOUTS), "how operands lie in memory, see below; all by default"),
    )
    for option, what, known, help_ in selections:
        warmed.add_argument(
            option,
            type=names_of(what, known),
            action="extend",
            metavar="NAMES",
            help=help_,
            required=option == "--arch",
        )
    warmed.add_argument("--mixed", action="store_true", help="operands of different dtypes as well")
    warmed.add_argument("--jobs", type=positive, default=processors(), metavar="N", help="processes: one a processor")
    warmed.set_defaults(run=warm_kernels, name="cache warm")


def names_of(what: str, known: Mapping[str, Any]) -> Callable[[str], list[str]]:
    """A parser of names that are separated by commas; those that are not known are an error that lists the others."""

    def parse(text: str) -> list[str]:
        if text == "all":
            return list(known)
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is no {what}; choose from {listed(known)}, or all")
        return text.split(",")

    return parse


def positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a number of processes from 1, got {text!r}")
    return int(text)


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def kernel_cache() -> Any:
    """The cache of compiled kernels on disk. Its module imports neither triton nor cuda-python."""
    return importlib.import_module("tilearray_cuda.cache")


def list_kernels(chosen: argparse.Namespace) -> int:
    from tilearray.demo import plain_table

    cache, now = kernel_cache(), time.time()
    entries = cache.entries()
    rows = [
        (
            entry.label,
            f"sm_{entry.arch}",
            f"{readable(entry.size):>10}",
            f"{duration(now - entry.last_used):>7}",
            datetime.fromtimestamp(entry.last_used).isoformat(" ", "seconds"),
        )
        for entry in entries
    ]
    if rows:
        print(plain_table(("kernel", "arch", f"{'size':>10}", f"{'age':>7}", "last used"), rows), end="\n\n")
    print(f"{counted(len(entries), 'kernel')}, {readable(sum(e.size for e in entries))}, in {cache.directory()}")
    return 0


def clear_kernels(chosen: argparse.Namespace) -> int:
    cache = kernel_cache()
    files, size = cache.clear()
    print(f"removed {counted(files, 'file')}, {readable(size)}, from {cache.directory()}")
    left = len(cache.entries())
    if left:
        raise ta.TileArrayError(
            f"{counted(left, 'kernel')} cannot be removed from {cache.directory()}; see who owns it"
        )
    return 0


def warm_kernels(chosen: argparse.Namespace) -> int:
    warm.check_ready()
    layouts = unique(chosen.layouts, warm.LAYOUTS)
    given = [dtypes.as_dtype(name) for name in unique(chosen.dtypes, ["float32"])]
    architectures = [int(name.removeprefix("sm_")) for name in unique(chosen.arch)]
    ops = [warm.ROWS[name] for name in unique(chosen.ops, warm.OPERATORS)]
    rows = [row for op in ops for row in warm.rows_of(op, given, chosen.mixed)]
    jobs, unsupported = warm.select(rows, layouts, architectures, ta.get_semantics())
    for name, reason in unsupported.items():
        print(f"not supported: {name}: {reason}")
    tally: Counter[str] = Counter()
    began = time.monotonic()
    try:
        with closing(shown(warm.compile_all(jobs, chosen.jobs), len(jobs))) as outcomes:
            for outcome in outcomes:
                tally["failed" if outcome.error else "compiled" if outcome.compiled else "there"] += 1
                tally["evicted"] += outcome.evicted
                if outcome.error:
                    print(f"failed: {outcome.label}: {textwrap.shorten(outcome.error, 300)}", file=sys.stderr)
    finally:
        print(
            f"{counted(len(jobs), 'kernel')}: {tally['compiled']} compiled, {tally['there']} already there, "
            f"{tally['failed']} failed; {counted(len(unsupported), 'combination')} not supported; "
            f"{duration(time.monotonic() - began)}, in {kernel_cache().directory()}"
        )
    if tally["evicted"]:
        raise warm.WarmError(
            f"{counted(tally['evicted'], 'kernel')} had to go to make room; raise TILEARRAY_CACHE_SIZE, and warm again"
        )
    return 1 if tally["failed"] or not jobs else 0


def unique(given: Iterable[str] | None, default: Iterable[str] = ()) -> list[str]:
    return list(dict.fromkeys(default if given is None else given))


def shown(outcomes: Generator[warm.Outcome, None, None], total: int) -> Generator[warm.Outcome, None, None]:
    """Pass outcomes on as they come: a bar in a terminal, if rich is installed, else ten lines on standard error."""
    with closing(outcomes):
        try:
            if not sys.stderr.isatty():
                raise ImportError
            progress: Any = importlib.import_module("rich.progress")
            console = importlib.import_module("rich.console").Console(stderr=True)
        except ImportError:
            for done, outcome in enumerate(outcomes, 1):
                if done * 10 // total > (done - 1) * 10 // total:
                    print(f"{done} of {total}: {outcome.label}", file=sys.stderr, flush=True)
                yield outcome
            return
        columns = (*progress.Progress.get_default_columns(), progress.MofNCompleteColumn())
        with progress.Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("compiling", total=total)
            for outcome in outcomes:
                bar.update(task, advance=1, description=f"{outcome.label:24}")
                yield outcome


def counted(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "kernel"), counted(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def readable(size: float) -> str:
    """A number of bytes.

    Examples
    --------
    >>> readable(1000), readable(5000), readable(2**30)
    ('1000 B', '4.9 KiB', '1.0 GiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def duration(seconds: float) -> str:
    """A span of time, in the largest unit of which there are two or more.

    Examples
    --------
    >>> duration(0.2), duration(119), duration(150), duration(86400), duration(200_000)
    ('0 s', '119 s', '2 min', '24 h', '2 d')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"

"""``tilearray cache``: list, remove and prepare the compiled kernels on disk."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

import tilearray as ta
from tilearray import dtypes
from tilearray.commands.cache import warm
from tilearray.commands.progress import bar
from tilearray.commands.text import counted, duration, listed, readable


def add_cache_commands(cache: argparse.ArgumentParser) -> None:
    commands = cache.add_subparsers(dest="subcommand", required=True, metavar="{list,clear,warm}")
    shown = commands.add_parser("list", help="print every compiled kernel, the most recently used first")
    shown.set_defaults(run=list_kernels, name="cache list")
    cleared = commands.add_parser("clear", help="remove every compiled kernel")
    cleared.set_defaults(run=clear_kernels, name="cache clear")
    warmed = commands.add_parser(
        "warm",
        help="compile kernels ahead of use; needs no GPU",
        description=textwrap.fill(
            "Compile the kernels that calls on a GPU will look up, for example when you build an image: for each op, "
            "with all operands of one dtype, under the semantics in force (TILEARRAY_SEMANTICS). Separate names by "
            "commas. Options can be repeated. `all` selects everything. Only the owner of the files can read them. If "
            "an image's programs run as another user, let root warm the cache, then write: chmod -R go+rX DIRECTORY",
            80,
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="layouts:\n" + "\n".join(f"  {name:12}{text}" for name, (text, _) in warm.LAYOUTS.items()),
    )
    architectures = {f"sm_{arch}": arch for arch in warm.ARCHITECTURES}
    selections: tuple[tuple[str, str, Mapping[str, Any], str], ...] = (
        ("--arch", "architecture", architectures, f"the GPU architectures: {listed(architectures)}"),
        (
            "--ops",
            "op",
            warm.ROWS,
            f"functions, astype or setitem (default: the functions with an operator, {listed(warm.OPERATORS)})",
        ),
        ("--dtypes", "dtype", {dtype.name: dtype for dtype in dtypes.ALL}, "the dtypes (default: float32)"),
        ("--layouts", "layout", dict.fromkeys(warm.LAYOUTS), "the operands' layouts, see below (default: all)"),
    )
    for option, noun, known, help_ in selections:
        warmed.add_argument(
            option,
            type=names_of(noun, known),
            action="extend",
            metavar="NAMES",
            help=help_,
            required=option == "--arch",
        )
    warmed.add_argument("--mixed", action="store_true", help="also operands of different dtypes")
    warmed.add_argument(
        "--jobs", type=positive, default=processors(), metavar="N", help="processes (default: one for each processor)"
    )
    warmed.set_defaults(run=warm_kernels, name="cache warm")


def names_of(noun: str, known: Mapping[str, Any]) -> Callable[[str], list[str]]:
    """Return a parser of names separated by commas. An unknown name is an error that lists the known names."""

    def parse(text: str) -> list[str]:
        if text == "all":
            return list(known)
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown {noun} {name!r}; choose from {listed(known)}, or all")
        return text.split(",")

    return parse


def positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a number of processes of 1 or more, got {text!r}")
    return int(text)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def kernel_cache() -> Any:
    """Return the module of the kernel cache on disk. It imports neither triton nor cuda-python."""
    return importlib.import_module("tilearray_cuda.kernels.disk_cache")


def list_kernels(chosen: argparse.Namespace) -> int:
    from tilearray.commands.demo.command import plain_table

    cache, now = kernel_cache(), time.time()
    entries = cache.entries()
    rows = [
        (
            ascii(entry.label)[1:-1],  # a file may say anything, and a terminal obeys escape sequences
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
    try:
        cache.process_cache().check()
    except cache.UntrustedError as error:
        print(f"not used: {error}")
    except OSError:  # nothing is there
        pass
    return 0


def clear_kernels(chosen: argparse.Namespace) -> int:
    cache = kernel_cache()
    files, size = cache.clear()
    print(f"removed {counted(files, 'file')}, {readable(size)}, from {cache.directory()}")
    left = len(cache.entries())
    if left:
        raise ta.TileArrayError(
            f"cannot remove {counted(left, 'kernel')} from {cache.directory()}; check the owner of that directory"
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
            f"the cache evicted {counted(tally['evicted'], 'kernel')} to make room; "
            "increase TILEARRAY_CACHE_SIZE, and warm again"
        )
    return 1 if tally["failed"] or not jobs else 0


def unique(given: Iterable[str] | None, default: Iterable[str] = ()) -> list[str]:
    return list(dict.fromkeys(default if given is None else given))


def shown(outcomes: Generator[warm.Outcome, None, None], total: int) -> Generator[warm.Outcome, None, None]:
    """Yield the outcomes as they arrive. Show a bar in a terminal with rich, else ten lines on standard error."""
    with closing(outcomes), bar("compiling", total) as advance:
        for done, outcome in enumerate(outcomes, 1):
            if advance is not None:
                advance(1, f"{outcome.label:24}")
            elif done * 10 // total > (done - 1) * 10 // total:
                print(f"{done} of {total}: {outcome.label}", file=sys.stderr, flush=True)
            yield outcome

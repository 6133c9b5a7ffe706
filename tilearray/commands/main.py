"""The command ``tilearray``: ``info`` prints versions, devices and settings, ``demo`` processes a photograph, ``eval``
computes an expression over files, and ``cache`` lists, removes and prepares compiled kernels.

Exit status: 0 for success; 1 if a command fails, the demo differs from NumPy, a kernel cannot be compiled or removed,
or standard output cannot be written; 2 for invalid arguments, including an invalid expression; 130 after Ctrl-C, 143
and 129 after SIGTERM and SIGHUP, which also let the command remove its unfinished files. Errors go to standard error.
An error that ends the command takes one line.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import textwrap
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO, cast

import ml_dtypes
import numpy as np

import tilearray as ta
from tilearray import dtypes
from tilearray.commands.cache.command import add_cache_commands
from tilearray.commands.eval import command
from tilearray.commands.eval.vocabulary import CONSTANTS, FUNCTIONS
from tilearray.commands.text import listed
from tilearray.engine.caches import KERNELS, PLANS, RECIPES
from tilearray.engine.operation import EXPRESSIONS
from tilearray.engine.signature import SIGNATURES
from tilearray.errors import SemanticsError
from tilearray.promotion.systems import SEMANTICS, as_semantics

CACHES = {  # two generations each
    "plans": PLANS,
    "recipes": RECIPES,
    "signatures": SIGNATURES,
    "expressions": EXPRESSIONS,
    "kernels": KERNELS,
}

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""The signals that end a command; Windows has no SIGHUP."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    chosen = parsed(arguments)
    from tilearray.commands.demo.pipeline import DemoError

    if cast("TextIO | None", sys.stdout) is None:
        print(f"tilearray {chosen.name}: standard output is closed; write > /dev/null for no output", file=sys.stderr)
        return 1
    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # for names in an encoding that does not have their characters
    try:
        with ending_on_signals():
            status: int = chosen.run(chosen)
            sys.stdout.flush()
    except command.UsageError as error:
        print(f"tilearray {chosen.name}: {error}", file=sys.stderr)
        return 2
    except (DemoError, ta.TileArrayError) as error:
        print(f"tilearray {chosen.name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"tilearray {chosen.name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `tilearray cache list | head`: the reader is gone
        drop_output()
        return 1
    except OSError as error:
        print(f"tilearray {chosen.name}: cannot write to standard output: {error.strerror}", file=sys.stderr)
        drop_output()
        return 1
    return status


def drop_output() -> None:
    """Send the rest of standard output nowhere, because the flush at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def ending_on_signals() -> Generator[None, None, None]:
    """End the command with status 128 + N on SIGTERM and SIGHUP, so that it removes its unfinished files.

    A signal that the parent ignores (``nohup``) stays ignored. Only the main thread can receive signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    taken = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments by name. Unlike argparse alone, accept an expression's files before and after options."""
    top = parser()
    chosen, more = top.parse_known_args(arguments)
    if more and (chosen.name != "eval" or any(argument.startswith("-") for argument in more)):
        top.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        chosen.files += more
    return chosen


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="tilearray", description="NumPy-like expressions over strided arrays.")
    top.add_argument("--version", action="version", version=f"tilearray {ta.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="{info,demo,eval,cache}")
    info = commands.add_parser("info", help="print version, devices, dtypes, semantics and caches")
    info.set_defaults(run=print_info, name="info")
    demo = commands.add_parser(
        "demo",
        help="process a photograph in a pipeline, with every step checked against NumPy",
        description="Process matplotlib's sample photograph in a pipeline over uint8, float16 and float32, "
        "check every step against NumPy, and write before.png, after.png and steps.png. "
        "Needs: pip install matplotlib rich",
    )
    demo.add_argument(
        "--output", default="demo-output", metavar="DIR", help="folder for the pictures (default: demo-output)"
    )
    demo.set_defaults(run=run_demo, name="demo")
    add_eval(commands)
    cache = commands.add_parser(
        "cache",
        help="list, remove or prepare compiled kernels",
        description="The cache keeps compiled kernels in the directory TILEARRAY_CACHE_DIR, or by default in "
        "the directory tilearray in XDG_CACHE_HOME or ~/.cache. It takes at most TILEARRAY_CACHE_SIZE bytes.",
    )
    add_cache_commands(cache)
    return top


def add_eval(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:  # pyright: ignore[reportPrivateUsage]
    grammar = (
        f"An expression consists of Python's operators, x.T, x[...], numbers, ta.{', ta.'.join(CONSTANTS)}, the names "
        f"of the files, and calls (with or without ta.) of: {listed(sorted(FUNCTIONS))}. Write dtypes as ta.float32 or "
        "'float32'. Put an expression that begins with - in parentheses."
    )
    command = commands.add_parser(
        "eval",
        help="compute an expression over .npy files",
        description="Map .npy files into memory and compute an expression over them. Print the result, or write it to "
        "a file. The file is complete or not written at all.",
        epilog=textwrap.fill(grammar, 100, break_on_hyphens=False),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("expression", metavar="EXPR", help="such as 'sqrt(a * a + b[:, ::-1]) / 2'")
    command.add_argument(
        "files", nargs="*", metavar="NAME=FILE", help="the arrays; NAME:DTYPE=FILE gives the dtype of raw bytes"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="the .npy file for the result")
    command.add_argument("--device", metavar="DEVICE", help="cpu, cuda or cuda:N (default: a GPU if there is one)")
    command.add_argument(
        "--semantics",
        metavar="NAME[,KIND=DTYPE]",
        type=known_semantics,
        help=f"the rules for dtypes, one of {', '.join(SEMANTICS)}, and defaults behind it such as float=float64",
    )
    command.add_argument("--explain", action="store_true", help="print the stages of every operation")
    command.add_argument("--source", action="store_true", help="print the stages with the Triton source of the kernels")
    command.set_defaults(run=run_eval, name="eval")


def known_semantics(spec: str) -> str:
    """Return the name of semantics that exist, for argparse."""
    try:
        return as_semantics(spec, "--semantics").name
    except SemanticsError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--semantics: ")) from None


def print_info(chosen: argparse.Namespace) -> int:
    print(info())
    return 0


def run_demo(chosen: argparse.Namespace) -> int:
    from tilearray.commands.demo.command import demo

    demo(chosen.output)
    return 0


def run_eval(chosen: argparse.Namespace) -> int:
    task = command.task(chosen.expression, chosen.files, chosen.output, chosen.device)
    command.run(task, chosen.semantics, chosen.explain, chosen.source)
    return 0


def info() -> str:
    """Return the text that ``tilearray info`` prints.

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
    """Return the facts of ``tilearray info`` by topic."""
    default, rules = ta.default_device(), ta.get_semantics()
    return {
        "tilearray": ta.__version__,
        "devices": listed(f"{device} (default)" if device is default else str(device) for device in ta.devices()),
        "dtypes": listed(dtype.name for dtype in dtypes.ARITHMETIC),
        "  storage": listed(dtype.name for dtype in dtypes.STORAGE_ONLY),
        "semantics": listed(
            f"{name} (in force)" if name == rules.name else name for name in dict.fromkeys([*SEMANTICS, rules.name])
        ),
        "  defaults": listed(rules.defaults[kind].name for kind in ("int", "float", "complex")),
        "caches": listed(f"{name} {len(cache)} of {2 * cache.capacity}" for name, cache in CACHES.items()),
        "python": f"{platform.python_version()}, numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}",
    }

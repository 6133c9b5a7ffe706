#!/usr/bin/env python3
"""Runs clients with tilearray's namespace on one device, and says what passed, what failed, and why.

::

    scripts/clients                      every client that is installed or has a checkout
    scripts/clients scipy -- scipy/optimize -k chandrupatla
    scripts/clients xarray dask --record write the records
    scripts/clients npbench --device cuda with arrays on a GPU, whose records have names of their own
    scripts/clients einops --device cuda --library cupy with CuPy's arrays instead of ours, or torch's
    scripts/clients scipy --processes 6 --minutes 8     a suite in six processes, and what it has after 8 minutes
    scripts/clients scipy --minutes 8 --resume FILE     goes on from the outcomes in FILE, and adds to them

Nothing is fetched: a client is an installed package, or a checkout beside the project. What is missing is said with
the command that brings it. What stands after ``--`` goes to pytest, or names kernels of NPBench.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT), str(ROOT / "backend")]

from clients import calls, peers, record, suite  # noqa: E402

SUITES = {
    "scipy": "scipy_suite",
    "scikit-learn": "scikit_learn",
    "array-api-extra": "array_api_extra",
    "dask-tests": "dask_suite",
}
TABLES = {
    "numpy": "numpy_calls",
    "einops": "einops_calls",
    "xarray": "xarray_calls",
    "dask": "dask_calls",
    "mixed": "mixed_calls",
}
CLIENTS = SUITES | TABLES | {"npbench": "npbench"}
PEERED = ("scipy", "scikit-learn", "array-api-extra", "einops")
"""The clients that also run with the arrays of a peer; `benchmarks.npbench` has NPBench beside CuPy."""


def main(arguments: list[str]) -> int:
    """Run the chosen clients. Return 2 if a client that is named is missing, else 0: a record is not a verdict."""
    parser = argparse.ArgumentParser(description="Run client libraries with tilearray's namespace.")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(CLIENTS)}; all by default")
    parser.add_argument("--checkout", type=Path, help="a checkout of the one client that needs one")
    parser.add_argument("--device", default="cpu", help="the device of new arrays; the host by default")
    parser.add_argument("--library", default=peers.OURS, choices=(peers.OURS, *peers.PEERS), help="whose arrays")
    parser.add_argument("--semantics", help="instead of the client's own")
    parser.add_argument("--processes", type=int, default=0, help="run suites with as many workers of pytest-xdist")
    parser.add_argument("--minutes", type=float, help="end a suite after so long, and count what it has")
    parser.add_argument("--resume", type=Path, help="keep the outcomes of one suite here; run no test that has one")
    parser.add_argument("--record", action="store_true", help="write the records of the folder records/")
    parser.add_argument("--json", type=Path, help="write the record of one client to this file")
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest = parser.parse_args(arguments[:cut]), arguments[cut + 1 :]
    if options.record and rest:
        parser.error("--record writes the record of a whole run; leave out what stands after --")
    for name in options.clients:
        if name not in CLIENTS:
            parser.error(
                f"expected a client, got {name!r}; write one of {', '.join(CLIENTS)}; pytest's follow after --"
            )
    if options.library != peers.OURS and not set(options.clients or CLIENTS) <= set(PEERED):
        parser.error(f"--library takes the clients {', '.join(PEERED)}; name some of them")
    if options.resume and (len(options.clients) != 1 or options.clients[0] not in SUITES):
        parser.error(f"--resume takes one suite; name one of {', '.join(SUITES)}")
    os.environ["TILEARRAY_DEVICE"] = options.device  # of this process, and of those that it starts
    os.environ[peers.VARIABLE] = options.library
    found = [run(name, options, rest) for name in options.clients or CLIENTS]
    return max(found) if options.clients else 0


def run(name: str, options: argparse.Namespace, rest: list[str]) -> int:
    client = importlib.import_module(f"clients.{CLIENTS[name]}")
    checkout = options.checkout or default_checkout(client)
    if problem := client.missing(checkout):
        print(problem, file=sys.stderr)
        return 2
    semantics = options.semantics or client.SEMANTICS
    ended, whole = outcomes(name, client, checkout, semantics, rest, options)
    found = record.of(name, client, semantics, options.device, ended, whole)
    print(record.text(found))
    if options.json:
        record.write(found, options.json)
    if options.record and whole:
        on = "" if options.device == "cpu" else f"-{options.device}"
        on += "" if options.library == peers.OURS else f"-{options.library}"
        record.write(found, HERE / "records" / f"{name}{on}.json")
    return 0


def outcomes(
    name: str, client: Any, checkout: Path | None, semantics: str, rest: list[str], options: argparse.Namespace
) -> tuple[dict[str, Any], bool]:
    """The outcome of each test or call, and whether all ran."""
    if name in SUITES:
        return suite.run(client, checkout, semantics, rest, options.processes, options.minutes, options.resume)
    return (calls.run(client, semantics) if name in TABLES else client.run(checkout, semantics, rest)), True


def default_checkout(client: Any) -> Path | None:
    """The checkout beside the project, or where the client's variable says."""
    if not hasattr(client, "CHECKOUT"):
        return None
    return Path(os.environ.get(client.VARIABLE, ROOT.parent / client.CHECKOUT)).resolve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

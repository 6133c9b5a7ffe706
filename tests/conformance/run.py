#!/usr/bin/env python3
"""Runs data-apis/array-api-tests, the array API standard's own test suite, against tilearray on one device.

The suite is on no package index; it is a checkout beside the project, or wherever ``--suite`` or the environment
variable ARRAY_API_TESTS says. Further arguments go to pytest, and replace the whole suite where they name tests::

    scripts/conformance
    scripts/conformance -k searchsorted --max-examples 500
    scripts/conformance array_api_tests/test_set_functions.py
    scripts/conformance --device cuda -n 14

What is skipped stands in skips.txt, each with its reason; `conformance_skips.py` reads it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = "2025.12"
EXAMPLES = 20


def main(arguments: list[str]) -> int:
    """Run the suite, and return pytest's exit status."""
    parser = argparse.ArgumentParser(description="Run data-apis/array-api-tests against tilearray.")
    parser.add_argument(
        "--suite", type=Path, default=os.environ.get("ARRAY_API_TESTS", ROOT.parent / "array-api-tests")
    )
    parser.add_argument("--device", default="cpu", help="the device of new arrays; the host by default")
    parser.add_argument("--look", action="store_true", help="only say whether the checkout is there")
    options, rest = parser.parse_known_args(arguments)
    suite = Path(options.suite).resolve()
    if problem := missing(suite):
        print(problem, file=sys.stderr)
        return 2
    if options.look:
        return 0
    return subprocess.run(command(rest), cwd=suite, env=environment(options.device)).returncode


def missing(suite: Path) -> str | None:
    """Name the part that a checkout lacks, and say how to get it; None if nothing is missing."""
    for part in ("array_api_tests", f"array-api/src/array_api_stubs/_{VERSION.replace('.', '_')}"):
        if not (suite / part).is_dir():
            return (
                f"conformance: expected a checkout of array-api-tests at {suite}, but {part} is not there; write\n"
                f"    git clone --recurse-submodules https://github.com/data-apis/array-api-tests {suite}\n"
                f"or name one that you have: --suite PATH, or ARRAY_API_TESTS=PATH"
            )
    return None


def command(rest: list[str]) -> list[str]:
    """The command line of pytest; later options win over earlier ones."""
    selected = [] if any(argument.startswith("array_api_tests") for argument in rest) else ["array_api_tests"]
    options = ["-q", "-n", "2", "-p", "conformance_skips", "-p", "no:cacheprovider", "-p", "no:warnings"]
    return [
        sys.executable,
        "-m",
        "pytest",
        *options,
        "--disable-deadline",
        f"--max-examples={EXAMPLES}",
        *selected,
        *rest,
    ]


def environment(device: str) -> dict[str, str]:
    """The tree as it is, installed or not, on a device."""
    paths = [str(ROOT), str(ROOT / "backend"), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "tilearray",
        "ARRAY_API_TESTS_VERSION": VERSION,
        "TILEARRAY_DEVICE": device,
        "TILEARRAY_SEMANTICS": "array-api",
        "PYTHONPATH": os.pathsep.join(paths),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(tempfile.gettempdir()) / "tilearray-conformance"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

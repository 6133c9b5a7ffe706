"""The benchmarks: tilearray beside its peers in one process, each result checked before it is timed. See README.md."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("tilearray_host") is None:  # the uninstalled tree
    sys.path.append(str(Path(__file__).resolve().parent.parent / "backend"))

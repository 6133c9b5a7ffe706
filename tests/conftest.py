"""What all tests share: Hypothesis' settings, and an environment that does not depend on who runs them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import settings

# Read when tilearray is imported. Examples print their device: on a machine with a GPU they stay on the host, too.
os.environ["TILEARRAY_DEVICE"] = "cpu"
os.environ.pop("TILEARRAY_SEMANTICS", None)
# Kernels that tests compile do not go to the user's cache; runs and workers share one of their own.
os.environ.setdefault("TILEARRAY_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"tilearray-tests-{os.getuid()}"))

# No deadline: a busy machine is not a failure. The blob reproduces a case found on another one.
settings.register_profile("tilearray", deadline=None, print_blob=True)
settings.load_profile("tilearray")

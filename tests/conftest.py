"""What all tests share: Hypothesis' settings, and an environment that does not depend on who runs them."""

from __future__ import annotations

import os

from hypothesis import settings

# Read when tilearray is imported. Examples print their device: on a machine with a GPU they stay on the host, too.
os.environ["TILEARRAY_DEVICE"] = "cpu"
os.environ.pop("TILEARRAY_SEMANTICS", None)

# No deadline: a busy machine is not a failure. The blob reproduces a case found on another one.
settings.register_profile("tilearray", deadline=None, print_blob=True)
settings.load_profile("tilearray")

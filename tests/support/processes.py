"""Code and commands in another Python interpreter."""

from __future__ import annotations

import os
import subprocess
import sys


def in_fresh_python(code: str) -> str:
    """Standard output of `code` in an interpreter of its own, which finds what this one finds."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def command_in_fresh_python(
    *arguments: str, without: tuple[str, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command in an interpreter of its own, where some packages cannot be imported."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({without!r})); "
        f"from tilearray.commands.main import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

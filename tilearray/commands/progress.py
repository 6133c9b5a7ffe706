"""A progress bar on standard error for long work, if standard error is a terminal and rich is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol


class Advance(Protocol):
    """Advances the bar, and can change its description."""

    def __call__(self, amount: int, description: str | None = None, /) -> None: ...


@contextmanager
def bar(description: str, total: int, *, of_bytes: bool = False) -> Generator[Advance | None, None, None]:
    """Show a progress bar. Yield the function that advances it, or None if there is no bar.

    Examples
    --------
    >>> with bar("compiling", 3) as advance:
    ...     print(advance)
    None
    """
    try:
        if not sys.stderr.isatty():
            raise ImportError
        progress: Any = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        yield None
        return
    done = progress.DownloadColumn() if of_bytes else progress.MofNCompleteColumn()
    columns = (*progress.Progress.get_default_columns(), done)
    with progress.Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(description, total=total)

        def advance(amount: int, description: str | None = None, /) -> None:
            shown.update(task, advance=amount, **({} if description is None else {"description": description}))

        yield advance

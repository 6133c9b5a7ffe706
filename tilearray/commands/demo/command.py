"""``tilearray demo``: process matplotlib's sample photograph in `tilearray.commands.demo.pipeline`.

The result is three pictures and a table. Where there is a GPU, it runs the same steps as well. The pictures are
rendered in memory after every step has been checked, and each is renamed into place. So the folder never contains an
incomplete picture, or a picture of a failed run. Only this module imports matplotlib and rich (the extra ``demo``), and
only when they are needed.
"""

from __future__ import annotations

import importlib
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import tilearray as ta
from tilearray.commands.demo.beside import Beside, beside
from tilearray.commands.demo.pipeline import STEPS, DemoError, Report, Step, run, summary
from tilearray.engine.devices import CPU, Device, as_device, using_device

PHOTOGRAPH = "grace_hopper.jpg"
COLUMNS = ("step", "shows", "dtype", "shape", "strides", "loops planned", "tilearray", "NumPy", "checked")
GPU_COLUMNS = ("GPU", "beside the host")
RIGHT = (6, 7, 9)  # columns of numbers
NEEDS_WIDTH = {"shows": 150, "shape": 110, "strides": 96}  # the column is omitted in narrower terminals
GPU_WIDTH = 28  # of the two columns of a GPU
TILES = 7  # pictures in a row of the contact sheet
R = TypeVar("R", Report, Beside)


def demo(output: str | os.PathLike[str], repeats: int = 5) -> list[Report]:
    """Run the demo, print its table, and write its pictures to a folder. Make the folder if it does not exist.

    Raises
    ------
    DemoError
        If a package is missing, the folder is not writable, or a step differs from NumPy. Then no picture is written.
    """
    needed("matplotlib")
    console = needed("rich.console").Console()
    folder = writable(Path(output))
    photo = photograph()
    print(f"{PHOTOGRAPH}: {photo.dtype} of shape {photo.shape}, read-only memory of matplotlib's sample data\n")
    with using_device(CPU):  # the photograph is in host memory
        reports = list(with_progress(console, run(photo, STEPS, repeats), len(STEPS)))
    device = gpu()
    others = [] if device is None else list(with_progress(console, beside(photo, reports, device, repeats), len(STEPS)))
    print_table(console, reports, others)
    print(f"\nAll {len(reports)} steps equal NumPy. Times are the best of {repeats} runs on the host.")
    if device is not None:
        print(beside_text(device, others))
    for name, content in pictures(photo, reports).items():
        write_whole(folder / name, content)
        print(f"wrote {folder / name}")
    return reports


def gpu() -> Device | None:
    """The first GPU, or None if there is none."""
    return as_device("cuda:0") if ta.cuda.device_count() else None


def beside_text(device: Device, others: Sequence[Beside]) -> str:
    """Return in words how the steps on a GPU compare with the host's."""
    same = sum(other.ulps == 0 for other in others)
    rest = f", {len(others) - same} within the ulps that the table shows" if same < len(others) else ""
    return f"On {device}, {same} steps have the bits of the host{rest}."


def needed(module: str) -> Any:
    """Import a module of the extra ``demo``, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise DemoError(f"cannot import {package} ({error}); write: pip install matplotlib rich") from error


def photograph() -> np.ndarray:
    """Read the photograph: uint8, with axes height, width and colour (red, green, blue)."""
    try:
        path = needed("matplotlib.cbook").get_sample_data(PHOTOGRAPH, asfileobj=False)
        return needed("matplotlib.image").imread(path)
    except OSError as error:
        raise DemoError(
            f"matplotlib's sample data lacks {PHOTOGRAPH} ({error}); write: pip install --force-reinstall matplotlib"
        ) from error


def writable(folder: Path) -> Path:
    """Make a folder if it does not exist, and check that files can be made in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(folder, error) from error
    write_whole(folder / ".tilearray-demo", b"")
    (folder / ".tilearray-demo").unlink()
    return folder


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name in the same folder, then rename it, so that no incomplete file appears."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        try:
            unfinished.write_bytes(content)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise refused(path.parent, error) from error


def refused(folder: Path, error: OSError) -> DemoError:
    return DemoError(
        f"cannot write to the folder {str(folder)!r}: {error.strerror}; write --output DIR with a writable folder"
    )


# ---------------------------------------------------------------------- pictures


def pictures(photo: np.ndarray, reports: Sequence[Report]) -> dict[str, bytes]:
    """Return the contents of the demo's picture files, by name."""
    return {
        "before.png": png(photo),
        "after.png": png(visible(reports[-1].step, reports[-1].result)),
        "steps.png": contact_sheet(reports),
    }


def png(picture: np.ndarray) -> bytes:
    content = io.BytesIO()
    needed("matplotlib.image").imsave(content, np.ascontiguousarray(picture), format="png")
    return content.getvalue()


def visible(step: Step, result: Any) -> np.ndarray:
    """Return a step's result as a coloured uint8 picture. Floats are brightness, from 0 to the step's `white`."""
    picture = ta.to_numpy(result)
    if picture.shape[0] == 3:
        return planes_as_bands(picture)
    if picture.dtype != np.uint8:
        picture = np.clip(picture.astype(np.float32) * (255 / step.white), 0, 255).astype(np.uint8)
    return picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=-1)


def planes_as_bands(planes: np.ndarray) -> np.ndarray:
    """Return one picture of blue, green and red planes: three bands with the same third of each, in its colour."""
    third = planes.shape[1] // 3
    bands = np.zeros((3 * third, planes.shape[2], 3), np.uint8)
    for position, colour in enumerate((2, 1, 0)):
        bands[position * third : (position + 1) * third, :, colour] = planes[position, third // 3 : third // 3 + third]
    return bands


def contact_sheet(reports: Sequence[Report]) -> bytes:
    """Return one picture of all steps, each with its name, dtype and strides."""
    rows = math.ceil(len(reports) / TILES)
    figure = needed("matplotlib.figure").Figure(figsize=(2.3 * TILES, 3.7 * rows), dpi=120, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.12)
    axes = figure.subplots(rows, TILES, squeeze=False)
    for axis in axes.flat[len(reports) :]:
        axis.set_axis_off()
    for number, (axis, report) in enumerate(zip(axes.flat, reports), 1):
        axis.imshow(visible(report.step, report.result), interpolation="antialiased")
        axis.set(xticks=[], yticks=[], anchor="N")
        axis.spines[:].set_visible(False)
        axis.set_title(f"{number}  {report.step.name}", fontsize=11, fontweight="bold", color="#14213d", loc="left")
        label = f"{report.result.dtype.name} {report.result.shape}\nstrides {report.result.strides}"
        axis.set_xlabel(label, loc="left", fontsize=7.5, color="#444444")
    content = io.BytesIO()
    figure.savefig(content, format="png", facecolor="#f4efe4")
    return content.getvalue()


# ---------------------------------------------------------------------- text


def with_progress(console: Any, reports: Iterable[R], total: int) -> Iterator[R]:
    """Yield the reports as they arrive. In a terminal, show a progress bar."""
    if not console.is_terminal:
        yield from reports
        return
    with needed("rich.progress").Progress(console=console, transient=True) as progress:
        task = progress.add_task("checking every step against NumPy", total=total)
        for report in reports:
            progress.update(task, advance=1, description=f"{report.step.name:9}")
            yield report


def row_of(report: Report, other: Beside | None = None) -> tuple[str, ...]:
    """Return a report, and perhaps the same step on a GPU, as the cells of a table row."""
    step, result = report.step, report.result
    given = "exact" if step.ulps == 0 else f"{report.ulps} of {step.ulps} ulp"
    layout = [str(part).replace(" ", "") for part in (result.shape, result.strides)]
    times = [f"{seconds * 1e3:.2f} ms" for seconds in (report.seconds, report.numpy_seconds)]
    cells = (step.name, step.shows, result.dtype.name, *layout, summary(report.loops), *times, given)
    if other is None:
        return cells
    equal = "same bits" if other.ulps == 0 else f"{other.ulps} ulp of the host"
    return (*cells, f"{other.seconds * 1e3:.2f} ms", equal)


def print_table(console: Any, reports: Sequence[Report], others: Sequence[Beside] = ()) -> None:
    """Print the table of steps: a table of rich with the columns that fit in a terminal, else plain text.

    With the same steps on a GPU it has two columns more.
    """
    rows = [row_of(report, other) for report, other in zip_longest(reports, others)]
    columns = (*COLUMNS, *GPU_COLUMNS) if others else COLUMNS
    if not console.is_terminal:
        print(plain_table(columns, rows))
        return
    room = console.width - (GPU_WIDTH if others else 0)
    shown = [column for column, name in enumerate(columns) if room >= NEEDS_WIDTH.get(name, 0)]
    table = needed("rich.table").Table(box=needed("rich.box").SIMPLE_HEAD, pad_edge=False)
    for column in shown:
        table.add_column(columns[column], justify="right" if column in RIGHT else "left")
    for row in rows:
        table.add_row(*(row[column] for column in shown))
    console.print(table)


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text. Each column is as wide as its widest cell.

    Examples
    --------
    >>> print(plain_table(["step", "dtype"], [["luma", "float32"], ["vignette", "float32"]]))
    step      dtype
    --------  -------
    luma      float32
    vignette  float32
    """
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in RIGHT else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )

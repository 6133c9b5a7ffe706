"""``tilearray demo``: the photograph that matplotlib ships, through `tilearray.commands.demo.pipeline`, to pictures and a table.

The three pictures are rendered in memory when every step has been checked, and each is moved into place whole, so the
folder never holds half a picture, nor any of a run that failed. matplotlib and rich are imported here and when they are
needed only; they are the extra ``demo``.
"""

from __future__ import annotations

import importlib
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.commands.demo.pipeline import STEPS, DemoError, Report, Step, run, summary
from tilearray.engine.devices import CPU, using_device

PHOTOGRAPH = "grace_hopper.jpg"
COLUMNS = ("step", "shows", "dtype", "shape", "strides", "loops planned", "tilearray", "NumPy", "checked")
RIGHT = (6, 7)  # columns of numbers
LEFT_OUT = {"shows": 150, "shape": 110, "strides": 96}  # in terminals narrower than this
TILES = 7  # pictures in a row of the contact sheet


def demo(output: str | os.PathLike[str], repeats: int = 5) -> list[Report]:
    """Run the demo, print its table, and write its pictures to a folder, which is made if need be.

    Raises
    ------
    DemoError
        If a package is missing, the folder cannot be written to, or a step differs from NumPy. No picture is
        written then.
    """
    needed("matplotlib")
    console = needed("rich.console").Console()
    folder = writable(Path(output))
    photo = photograph()
    print(f"{PHOTOGRAPH}: {photo.dtype} of shape {photo.shape}, read-only memory of matplotlib's sample data\n")
    with using_device(CPU):  # whose memory the photograph is in
        reports = list(with_progress(console, run(photo, STEPS, repeats), len(STEPS)))
    print_table(console, reports)
    print(f"\nAll {len(reports)} steps equal NumPy. Times are the best of {repeats} runs, on the host.")
    for name, content in pictures(photo, reports).items():
        write_whole(folder / name, content)
        print(f"wrote {folder / name}")
    return reports


def needed(module: str) -> Any:
    """Import a module of the extra ``demo``, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise DemoError(f"{package} cannot be imported ({error}); write: pip install matplotlib rich") from error


def photograph() -> np.ndarray:
    """Read the photograph: uint8, height by width by red, green and blue."""
    try:
        path = needed("matplotlib.cbook").get_sample_data(PHOTOGRAPH, asfileobj=False)
        return needed("matplotlib.image").imread(path)
    except OSError as error:
        raise DemoError(
            f"matplotlib's sample data lacks {PHOTOGRAPH} ({error}); write: pip install --force-reinstall matplotlib"
        ) from error


def writable(folder: Path) -> Path:
    """Make a folder, unless it is there, and find out now whether files can be made in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(folder, error) from error
    write_whole(folder / ".tilearray-demo", b"")
    (folder / ".tilearray-demo").unlink()
    return folder


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name beside its place, then move it there, so that nobody sees half of it."""
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
        f"cannot write to the folder {str(folder)!r}: {error.strerror}; write --output DIR with a folder that you own"
    )


# ---------------------------------------------------------------------- pictures


def pictures(photo: np.ndarray, reports: Sequence[Report]) -> dict[str, bytes]:
    """The files of the demo, by name."""
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
    """A step's result as a coloured uint8 picture; floats are brightness, from 0 to the step's `white`."""
    picture = ta.to_numpy(result)
    if picture.shape[0] == 3:
        return planes_as_bands(picture)
    if picture.dtype != np.uint8:
        picture = np.clip(picture.astype(np.float32) * (255 / step.white), 0, 255).astype(np.uint8)
    return picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=-1)


def planes_as_bands(planes: np.ndarray) -> np.ndarray:
    """Blue, green and red planes as one picture of their size: the same third of each, in its colour."""
    third = planes.shape[1] // 3
    bands = np.zeros((3 * third, planes.shape[2], 3), np.uint8)
    for position, colour in enumerate((2, 1, 0)):
        bands[position * third : (position + 1) * third, :, colour] = planes[position, third // 3 : third // 3 + third]
    return bands


def contact_sheet(reports: Sequence[Report]) -> bytes:
    """All steps in one picture, each with its name, dtype and strides."""
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


def with_progress(console: Any, reports: Iterable[Report], total: int) -> Iterator[Report]:
    """Pass the reports on as they come; in a terminal a bar shows how far it is."""
    if not console.is_terminal:
        yield from reports
        return
    with needed("rich.progress").Progress(console=console, transient=True) as progress:
        task = progress.add_task("checking every step against NumPy", total=total)
        for report in reports:
            progress.update(task, advance=1, description=f"{report.step.name:9}")
            yield report


def row_of(report: Report) -> tuple[str, ...]:
    """A report as the cells of the table."""
    step, result = report.step, report.result
    given = "exact" if step.ulps == 0 else f"{report.ulps} of {step.ulps} ulp"
    layout = [str(part).replace(" ", "") for part in (result.shape, result.strides)]
    times = [f"{seconds * 1e3:.2f} ms" for seconds in (report.seconds, report.numpy_seconds)]
    return (step.name, step.shows, result.dtype.name, *layout, summary(report.loops), *times, given)


def print_table(console: Any, reports: Sequence[Report]) -> None:
    """Print the table of steps: rich's in a terminal, as many columns as fit; plain text elsewhere."""
    rows = [row_of(report) for report in reports]
    if not console.is_terminal:
        print(plain_table(COLUMNS, rows))
        return
    shown = [column for column, name in enumerate(COLUMNS) if console.width >= LEFT_OUT.get(name, 0)]
    table = needed("rich.table").Table(box=needed("rich.box").SIMPLE_HEAD, pad_edge=False)
    for column in shown:
        table.add_column(COLUMNS[column], justify="right" if column in RIGHT else "left")
    for row in rows:
        table.add_row(*(row[column] for column in shown))
    console.print(table)


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, as wide as their widest cell.

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

"""The demo's pipeline: the steps that process the photograph, and the same steps in NumPy to check them.

A step is two functions of the same inputs, one over tilearray and one over NumPy. They share no code. The NumPy chain
starts from the photograph itself. The results of a step must agree in shape, dtype and bits. Only a step with a
function such as exp may differ, by the ulps in its row of `STEPS`. The NumPy chain then continues from tilearray's
values, so that errors do not accumulate and a mismatch is found in the step that causes it.

A step's `Report` contains the result and the planner's loops. All plans are dropped before the step's first run, so the
plans after the run are the step's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.engine.execute import plans_in_force

RADIUS = 4  # of the blur, in pixels
BORDER = 22  # of the frame, in pixels
STRIP = 96  # height of the strip below the picture, for the thumbnails
CREAM = (244, 239, 228)
WEIGHTS = (0.114, 0.587, 0.299)  # of blue, green and red in luminance: ITU-R BT.601
SHADOW = (0.03, 0.07, 0.19)
HIGHLIGHT = (1.04, 0.98, 0.86)


class DemoError(Exception):
    """The demo cannot continue, or a result is wrong; the message gives the reason and the place."""


# Each step exists twice: with tilearray, and with NumPy (np_...).


def load(photograph: np.ndarray) -> ta.Array:
    return ta.asarray(photograph)


def np_load(photograph: np.ndarray) -> np.ndarray:
    return photograph


def crop(photo: ta.Array) -> ta.Array:
    return photo[8:584, 16:496]


def np_crop(photo: np.ndarray) -> np.ndarray:
    return photo[8:584, 16:496]


def planes(colour: ta.Array) -> ta.Array:
    return ta.permute_dims(ta.flip(colour, axis=-1), (2, 0, 1))


def np_planes(colour: np.ndarray) -> np.ndarray:
    return np.moveaxis(colour, 2, 0)[::-1]


def luminance(channels: ta.Array) -> Any:
    blue, green, red = channels * ta.asarray(WEIGHTS)[:, None, None]
    return blue + green + red


def np_luminance(channels: np.ndarray) -> np.ndarray:
    weighted = channels.astype(np.float32) * np.array(WEIGHTS, np.float32).reshape(3, 1, 1)
    return weighted[0] + weighted[1] + weighted[2]


def levels(luma: ta.Array) -> Any:
    return ta.clip((luma - 8) / 232, 0, 1)


def np_levels(luma: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum((luma - np.float32(8)) / np.float32(232), 0), 1)


def blur(grey: ta.Array) -> Any:
    return box(box(grey).T).T


def box(grey: ta.Array) -> Any:
    """Return the mean over windows along the first axis, with repeated edges: a padded copy, and a view of windows."""
    padded = ta.empty((grey.shape[0] + 2 * RADIUS, grey.shape[1]))
    padded[RADIUS:-RADIUS] = grey
    padded[:RADIUS] = grey[:1]
    padded[-RADIUS:] = grey[-1:]
    windows = ta.moveaxis(ta.sliding_window_view(padded, 2 * RADIUS + 1, axis=0), -1, 0)
    total = windows[0].copy()
    for window in windows[1:]:
        total += window
    return total / (2 * RADIUS + 1)


def np_blur(grey: np.ndarray) -> np.ndarray:
    height, width = grey.shape
    taps = range(2 * RADIUS + 1)
    padded = np.pad(grey, RADIUS, mode="edge")
    tall = reduce(np.add, [padded[tap : tap + height] for tap in taps]) / len(taps)
    return reduce(np.add, [tall[:, tap : tap + width] for tap in taps]) / len(taps)


def edges(soft: ta.Array) -> Any:
    found = ta.zeros_like(soft)
    across = soft[1:-1, 2:] - soft[1:-1, :-2]
    down = soft[2:, 1:-1] - soft[:-2, 1:-1]
    ta.sqrt(across * across + down * down, out=found[1:-1, 1:-1])
    return found


def np_edges(soft: np.ndarray) -> np.ndarray:
    across = np.square(soft[1:-1, 2:] - soft[1:-1, :-2])
    down = np.square(soft[2:, 1:-1] - soft[:-2, 1:-1])
    return np.pad(np.sqrt(across + down), 1)


def clarity(grey: ta.Array, soft: ta.Array, drawn: ta.Array) -> Any:
    amount = ta.where(drawn > 0.03, 1.0, -0.4)
    return ta.clip(grey + amount * (grey - soft), 0, 1).astype("float16")


def np_clarity(grey: np.ndarray, soft: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    amount = np.full(drawn.shape, -0.4, np.float32)
    amount[drawn > np.float32(0.03)] = 1
    return np.minimum(np.maximum((grey - soft) * amount + grey, 0), 1).astype(np.float16)


def tone(clear: ta.Array) -> Any:
    return (ta.tanh(1.7 * clear) / math.tanh(1.7)) ** 1.35


def np_tone(clear: np.ndarray) -> np.ndarray:
    shoulder = np.tanh(clear * np.float16(1.7)) / np.float16(np.tanh(1.7))
    return np.power(shoulder, np.float16(1.35))


def vignette(grey: ta.Array) -> Any:
    height, width = grey.shape
    column = ta.square(ta.linspace(-1, 1, height))[:, None]
    row = ta.square(ta.linspace(-1, 1, width))
    return ta.exp(-0.5 * (column + row))


def np_vignette(grey: np.ndarray) -> np.ndarray:
    column, row = (np.linspace(-1, 1, size).astype(np.float32) for size in grey.shape)
    return np.exp(np.add.outer(column * column, row * row) * np.float32(-0.5))


def grade(toned: ta.Array, light: ta.Array) -> Any:
    shadow, highlight = ta.asarray(SHADOW, dtype="float16"), ta.asarray(HIGHLIGHT, dtype="float16")
    lit = (toned * light).astype("float16")
    return shadow + lit[..., None] * (highlight - shadow)


def np_grade(toned: np.ndarray, light: np.ndarray) -> np.ndarray:
    shadow, highlight = np.array(SHADOW, np.float16), np.array(HIGHLIGHT, np.float16)
    lit = np.multiply(light, toned).astype(np.float16)
    return np.multiply.outer(lit, highlight - shadow) + shadow


def accent(graded: ta.Array, colour: ta.Array, channels: ta.Array) -> Any:
    blue, green, red = channels
    warmth = red.astype("int16") - ta.maximum(green, blue)
    amount = ta.clip((warmth - 10) / 50, 0, 1)[..., None].astype("float16")
    return graded + amount * ((colour / 255).astype("float16") - graded)


def np_accent(graded: np.ndarray, colour: np.ndarray, channels: np.ndarray) -> np.ndarray:
    warmth = channels[2].astype(np.float32) - np.max(channels[:2], axis=0)
    amount = np.minimum(np.maximum((warmth - 10) / 50, 0), 1).astype(np.float16)
    towards = (colour.astype(np.float32) / 255).astype(np.float16) - graded
    return np.einsum("ij,ijk->ijk", amount, towards) + graded


def to_bytes(accented: ta.Array) -> Any:
    return (accented * 255 + 0.5).astype("uint8")


def np_to_bytes(accented: np.ndarray) -> np.ndarray:
    scaled = accented * np.float16(255) + np.float16(0.5)
    return np.clip(np.trunc(scaled.astype(np.float64)), 0, 255).astype(np.uint8)


def frame(pixels: ta.Array, colour: ta.Array, luma: ta.Array, drawn: ta.Array, toned: ta.Array) -> Any:
    height, width = pixels.shape[:2]
    framed = ta.empty((height + 2 * BORDER + STRIP, width + 2 * BORDER, 3), dtype="uint8")
    framed[...] = ta.asarray(CREAM, dtype="uint8")
    picture = framed[BORDER : BORDER + height, BORDER : BORDER + width]
    picture[...] = pixels
    transposed = picture.permute_dims(1, 0, 2)
    for side in (picture, picture[::-1, ::-1], transposed, transposed[::-1, ::-1]):
        side[7, 7:-7] //= 2
        side[7, 7:-7] += 90
    small = (colour, luma[..., None].astype("uint8"), drawn[..., None] * 1020, toned[..., None] * 255, pixels)
    for position, image in enumerate(small):
        thumbnail = image[::8, ::8]
        tall, wide = thumbnail.shape[:2]
        left = BORDER + position * (width - wide) // (len(small) - 1)
        framed[-BORDER - tall : -BORDER, left : left + wide] = ta.clip(thumbnail, 0, 255).astype("uint8")
    return framed


def np_frame(
    pixels: np.ndarray, colour: np.ndarray, luma: np.ndarray, drawn: np.ndarray, toned: np.ndarray
) -> np.ndarray:
    picture = pixels.copy()
    line = np.zeros(pixels.shape[:2], bool)
    line[7:-7, [7, -8]] = line[[7, -8], 7:-7] = True
    picture[line] = picture[line] // 2 + np.uint8(90)
    for corner in product((7, -8), (7, -8)):  # two lines cross at a corner, and both are drawn
        picture[corner] = picture[corner] // 2 + np.uint8(90)
    margins = ((BORDER, BORDER + STRIP), (BORDER, BORDER))
    framed = np.stack([np.pad(picture[..., c], margins, constant_values=CREAM[c]) for c in range(3)], axis=-1)
    grey = [np.minimum(x[::8, ::8], 255).astype(np.uint8) for x in (luma, drawn * 1020, toned * np.float16(255))]
    small = [colour[::8, ::8], *(np.repeat(x[..., None], 3, axis=-1) for x in grey), pixels[::8, ::8]]
    tall, wide = grey[0].shape
    bottom = framed.shape[0] - BORDER
    for left, image in zip(range(BORDER, framed.shape[1], (pixels.shape[1] - wide) // 4), small):
        framed[bottom - tall : bottom, left : left + wide] = image
    return framed


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the pipeline.

    Attributes
    ----------
    name, shows : its name, and the features of the library that it shows
    inputs : the steps whose results are its inputs
    ours, numpy : the two functions that compute it
    ulps : the allowed difference between the two; 0 for exact steps
    view : whether the result is a view of the photograph's own memory
    white : the value that is white in a picture of the result
    """

    name: str
    shows: str
    inputs: tuple[str, ...]
    ours: Callable[..., Any]
    numpy: Callable[..., np.ndarray]
    ulps: int = 0
    view: bool = False
    white: float = 1.0


STEPS = (
    Step("photo", "asarray: the photograph's own memory", ("photograph",), load, np_load, view=True),
    Step("crop", "slices", ("photo",), crop, np_crop, view=True),
    Step("planes", "blue, green, red: flipped and permuted", ("crop",), planes, np_planes, view=True),
    Step("luma", "uint8 planes * float32 weights, summed", ("planes",), luminance, np_luminance, white=255),
    Step("levels", "contrast stretched and clipped", ("luma",), levels, np_levels),
    Step("blur", "sliding windows, in-place sums, x.T", ("levels",), blur, np_blur),
    Step("edges", "shifted slices, sqrt(out=a view)", ("blur",), edges, np_edges, white=0.25),
    Step("clarity", "where: edges sharper, the rest softer", ("levels", "blur", "edges"), clarity, np_clarity),
    Step("tone", "film curve in float16: tanh, power", ("clarity",), tone, np_tone, ulps=4),
    Step("vignette", "a column and a row, exp", ("levels",), vignette, np_vignette, ulps=4),
    Step("grade", "shadow and highlight: (h, w, 1) * (3,)", ("tone", "vignette"), grade, np_grade),
    Step("accent", "warm colours stay: int16 - uint8", ("grade", "crop", "planes"), accent, np_accent),
    Step("bytes", "back to uint8, saturating", ("accent",), to_bytes, np_to_bytes),
    Step("frame", "writes through views", ("bytes", "crop", "luma", "edges", "tone"), frame, np_frame),
)


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one step: the result, its difference from NumPy, the planner's loops, and both times."""

    step: Step
    result: Any
    ulps: int
    loops: tuple[str, ...]
    seconds: float
    numpy_seconds: float


def run(photograph: np.ndarray, steps: tuple[Step, ...] = STEPS, repeats: int = 5) -> Iterator[Report]:
    """Run the steps on an (h, w, 3) uint8 picture. Yield the `Report` of each step after it has run.

    Times are the best of `repeats` runs. The first run plans, and does not count unless it is the only one.

    Raises
    ------
    DemoError
        If a step differs from NumPy.
    """
    ours: dict[str, Any] = {"photograph": photograph}
    theirs: dict[str, np.ndarray] = {"photograph": photograph}
    for step in steps:
        with ta.semantics("array-api"):  # must not span the yield, or it would be in force for the caller
            PLANS.clear()
            result, seconds = timed(step.ours, [ours[name] for name in step.inputs], repeats)
            loops = tuple(plan.loop.case.value for plan in dict.fromkeys(plans_in_force()))
        expected, numpy_seconds = timed(step.numpy, [theirs[name] for name in step.inputs], repeats)
        if step.view:
            check_view(step, ta.to_numpy(result), expected)
        ulps = compare(step, result, expected)
        ours[step.name] = result
        theirs[step.name] = expected if ulps == 0 else np.array(ta.to_numpy(result))
        yield Report(step, result, ulps, loops, seconds, numpy_seconds)


def timed(
    function: Callable[..., Any], arguments: list[Any], repeats: int, wait: Callable[[], object] | None = None
) -> tuple[Any, float]:
    """Return the result of the first call, and the seconds of the fastest later call until `wait` returns."""
    result: Any = None
    seconds: list[float] = []
    for repeat in range(repeats):
        start = perf_counter()
        found = function(*arguments)
        if wait is not None:
            wait()
        seconds.append(perf_counter() - start)
        result = found if repeat == 0 else result
    return result, min(seconds[1:] or seconds)


def summary(loops: tuple[str, ...]) -> str:
    """Return the number of loops of each kind, as ``flat 2, rows 1``. A view has none.

    Examples
    --------
    >>> summary(("rows", "flat", "flat"))
    'flat 2, rows 1'
    """
    return ", ".join(f"{case} {count}" for case, count in sorted(Counter(loops).items())) or "view, no launch"


def check_view(step: Step, found: np.ndarray, expected: np.ndarray) -> None:
    """Raise `DemoError` if a step's result is not NumPy's view of the photograph."""
    same_place = found.ctypes.data == expected.ctypes.data
    if not same_place or found.strides != expected.strides:
        raise DemoError(
            f"step {step.name!r}: expected NumPy's view of the photograph with strides {expected.strides}, "
            f"got strides {found.strides} and {'the same' if same_place else 'another'} first element"
        )


def compare(step: Step, result: Any, expected: np.ndarray, peer: str = "NumPy") -> int:
    """Return the largest difference from a peer's result in ulps. Raise `DemoError` if the step does not allow it."""
    found = ta.to_numpy(result)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        raise DemoError(
            f"step {step.name!r}: expected {expected.dtype} of shape {expected.shape} as in {peer}, "
            f"got {found.dtype} of shape {found.shape}"
        )
    apart = ulps_apart(found, expected)
    worst = int(apart.max())
    if worst > step.ulps:
        where = tuple(int(index) for index in np.unravel_index(int(apart.argmax()), apart.shape))
        raise DemoError(
            f"step {step.name!r}: {int((apart > step.ulps).sum())} of {apart.size} elements differ from {peer} by "
            f"more than {step.ulps} ulp; at {where} expected {expected[where]!s}, got {found[where]!s}"
        )
    return worst


def ulps_apart(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the distance in representable numbers between the elements of two arrays. 0 and -0 have distance 1.

    Examples
    --------
    >>> ulps_apart(np.float16([1, 0, 2]), np.float16([1.001, -0.0, 2]))
    array([1, 1, 0])
    """
    return np.abs(ordered(found) - ordered(expected))


def ordered(x: np.ndarray) -> np.ndarray:
    """Map floats to integers in the same order, so that neighbours differ by 1. Integers are unchanged."""
    if x.dtype.kind != "f":
        return x.astype(np.int64)
    bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, -(bits & (2 ** (8 * x.dtype.itemsize - 1) - 1)) - 1, bits)

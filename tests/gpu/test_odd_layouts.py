"""Elements of 1 to 4 bytes in rows with any alignment: reads and writes use words and vectors, and stay in bounds.

Each draw is an operation over views of memory at any offset and pitch, transposed, flipped or repeated, large enough
for whole tiles. Results equal NumPy's bit for bit. Only the elements of a target's memory change.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.formats import dtype_of

import tilearray as ta

DEVICE = "cuda"
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16")
OPERATIONS = {
    "bool": (np.logical_or, np.logical_and, np.logical_xor),
    "int": (np.add, np.subtract, np.multiply, np.maximum, np.bitwise_xor),
    "float": (np.add, np.subtract, np.multiply),
}
DRAWS = 24


def memory(rng: np.random.Generator, dtype: np.dtype, size: int) -> np.ndarray:
    """Return values of a dtype, without NaN, for which NumPy may keep other bits."""
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 256**dtype.itemsize, size, dtype=f"uint{8 * dtype.itemsize}").view(dtype)
    return (rng.standard_normal(size) * 8).astype(dtype)


def room(rng: np.random.Generator, rows: int, columns: int) -> tuple[int, int, int, int]:
    """Draw an offset, a pitch and a first column; return them with the number of elements of the memory."""
    offset, first = (int(count) for count in rng.integers(0, 40, 2))
    pitch = first + columns + int(rng.integers(0, 3)) * int(rng.integers(0, 40))
    return offset, pitch, first, offset + rows * pitch + int(rng.integers(0, 20))


def block(x, place: tuple[int, int, int, int], rows: int, columns: int):
    """Return the view at a place, of a NumPy array or of ours."""
    offset, pitch, first, _ = place
    return x[offset : offset + rows * pitch].reshape((rows, pitch))[:, first : first + columns]


FORMS = {
    "as it is": lambda x: x,
    "turned": lambda x: x.T,
    "backwards": lambda x: x[:, ::-1],
    "upside down": lambda x: x[::-1],
    "turned, backwards": lambda x: x.T[:, ::-1],
    "row": lambda x: x[:1],
    "column": lambda x: x[:, -1:],
}


def view_of(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, int]):
    """Return a view of a shape, or of one that broadcasts to it: NumPy's, ours, and its description."""
    form = str(rng.choice(list(FORMS)))
    rows, columns = shape[::-1] if form.startswith("turned") else shape
    place = room(rng, rows, columns)
    host = memory(rng, dtype, place[3])
    ours = ta.asarray(host, device=DEVICE, copy=True)
    return *(FORMS[form](block(x, place, rows, columns)) for x in (host, ours)), f"{form} {place}"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", DTYPES)
def test_operations(name: str, seed: int) -> None:
    rng, dtype = np.random.default_rng([seed, len(name), ord(name[0])]), dtype_of(name)
    kind = "bool" if name == "bool" else "int" if dtype.kind in "iu" else "float"
    for _ in range(DRAWS):
        shape = tuple(int(extent) for extent in rng.integers(440, 1300, 2))
        operation = OPERATIONS[kind][rng.integers(len(OPERATIONS[kind]))]
        (x, ours_x, about_x), (y, ours_y, about_y) = (view_of(rng, dtype, shape) for _ in range(2))
        place = room(rng, *shape)
        target = memory(rng, dtype, place[3])
        ours = ta.asarray(target, device=DEVICE, copy=True)
        called = getattr(ta, operation.__name__)
        what = f"{operation.__name__} {name} {shape}: {about_x}, {about_y}, out {place}"
        wanted = operation(x, y).astype(dtype)
        assert ta.to_numpy(called(ours_x, ours_y)).tobytes() == wanted.tobytes(), what
        wanted = np.broadcast_to(wanted, shape)
        block(target, place, *shape)[...] = wanted
        called(ours_x, ours_y, out=block(ours, place, *shape))
        assert ta.to_numpy(ours).tobytes() == target.tobytes(), what


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", DTYPES)
def test_copies_and_casts(name: str, seed: int) -> None:
    rng, dtype = np.random.default_rng([seed, len(name), ord(name[0]), 1]), dtype_of(name)
    others = [dtype, dtype, dtype_of("float32"), dtype_of("uint8")] if name != "bool" else [dtype]
    for _ in range(DRAWS):
        shape = tuple(int(extent) for extent in rng.integers(440, 1300, 2))
        source = others[rng.integers(len(others))]
        x, ours_x, about = view_of(rng, source, shape)
        if source.name == "float32" and dtype.kind in "iu":
            x, ours_x = np.abs(x), ta.abs(ours_x)
        place = room(rng, *shape)
        target = memory(rng, dtype, place[3])
        ours = ta.asarray(target, device=DEVICE, copy=True)
        block(target, place, *shape)[...] = np.broadcast_to(x, shape).astype(dtype)
        block(ours, place, *shape)[...] = ours_x.astype(name)
        assert ta.to_numpy(ours).tobytes() == target.tobytes(), f"{source} to {name} {shape}: {about}, into {place}"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["float32", "int32", "uint32"])
def test_words_of_one_array(name: str, seed: int) -> None:
    """Transposed at any offset and pitch, with two and with three axes."""
    rng, dtype = np.random.default_rng([seed, ord(name[0])]), dtype_of(name)
    for _ in range(DRAWS):
        shape = tuple(int(extent) for extent in rng.integers(1100, 1500, 2))
        place, out_place = room(rng, *shape[::-1]), room(rng, *shape)
        x, target = (memory(rng, dtype, each[3]) for each in (place, out_place))
        ours_x, ours = (ta.asarray(each, device=DEVICE, copy=True) for each in (x, target))
        block(target, out_place, *shape)[...] = -block(x, place, *shape[::-1]).T
        ta.negative(block(ours_x, place, *shape[::-1]).T, out=block(ours, out_place, *shape))
        assert ta.to_numpy(ours).tobytes() == target.tobytes(), f"{shape}: {place}, into {out_place}"
        boxes = x[: 3 * 300 * 1301].reshape(3, 300, 1301)
        found = ta.empty((3, 1301, 300), dtype=name, device=DEVICE)
        ta.add(ta.asarray(boxes, device=DEVICE, copy=True).permute_dims(0, 2, 1), 1, out=found)
        assert ta.to_numpy(found).tobytes() == (boxes.transpose(0, 2, 1) + dtype.type(1)).tobytes()

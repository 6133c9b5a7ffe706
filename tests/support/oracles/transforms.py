"""The functions of `ta.fft` on any device, against NumPy in double precision: drawn shapes, dtypes and layouts."""

from __future__ import annotations

import random

import numpy as np

import tilearray as ta

REAL = ("float16", "bfloat16", "float32", "float64", "int16")
COMPLEX = ("complex64", "complex128")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn")
SIZES = (1, 2, 3, 4, 5, 8, 9, 12, 17)


def operand(rng: random.Random, name: str, shape: tuple[int, ...], device: object) -> tuple[np.ndarray, ta.Array]:
    """Moderate numbers, exactly on the host, and in some layout on the device."""
    given = np.random.default_rng(rng.randrange(2**31))
    values = given.normal(size=shape) * (8 if name == "int16" else 1)
    values = values + 1j * given.normal(size=shape) if name in COMPLEX else values
    order = list(range(len(shape)))
    if rng.random() < 0.4:
        rng.shuffle(order)
    memory = np.ascontiguousarray(np.transpose(values, order))
    wide = ta.asarray(memory.astype("int64") if name == "int16" else memory, device=device)
    back = tuple(order.index(axis) for axis in range(len(shape)))
    x = ta.permute_dims(ta.astype(wide, name), back)
    if shape and rng.random() < 0.3:
        axis = rng.randrange(len(shape))
        key = [slice(None)] * len(shape)
        key[axis] = rng.choice([slice(None, None, 2), slice(1, None), slice(None, None, -1)])
        x = x[tuple(key)]
    exact = ta.to_numpy(ta.astype(x, "complex128" if name in COMPLEX else "float64"))
    return exact, x


def check_transforms(device: object, seed: int, count: int) -> None:
    """Every function for drawn operands and arguments."""
    for case in range(count):
        rng = random.Random(f"{seed} {case}")
        function = rng.choice(ONE + MANY)
        real = function.startswith(("rfft", "ihfft"))
        name = rng.choice(REAL if real else REAL + COMPLEX)
        ndim = rng.choice((1, 2, 3, 4, 5) if function in ONE + MANY[2:4] + MANY[6:] else (2, 3, 4))
        shape = tuple(rng.choice(SIZES[: 9 if ndim < 4 else 4]) for _ in range(ndim))
        exact, x = operand(rng, name, shape, device)
        if not x.size:
            continue
        options: dict[str, object] = {"norm": rng.choice(["backward", "ortho", "forward"])}
        if function in ONE:
            options["axis"] = rng.randrange(-ndim, ndim)
            size = x.shape[options["axis"]]
            least = 2 if function in ("irfft", "hfft") and size == 1 else 1
            if rng.random() < 0.5 or least == 2:
                options["n"] = max(least, rng.choice((size - 2, size, size + 1, 2 * size)))
        else:
            most = 2 if "2" in function else ndim
            axes = rng.sample(range(ndim), rng.randint(2 if most == 2 else 1, most))
            options["axes"] = tuple(axis - rng.choice((0, ndim)) for axis in axes)
            needs = function.startswith("irfft") and x.shape[axes[-1]] == 1
            if rng.random() < 0.4 or needs:
                options["s"] = tuple(max(2 if needs else 1, x.shape[axis] + rng.choice((-1, 0, 0, 2))) for axis in axes)
        found = getattr(ta.fft, function)(x, **options)
        wanted = getattr(np.fft, function)(exact, **options)
        told = case, function, name, x.shape, x.strides, options
        double = name in ("float64", "complex128")
        kind = "complex" if np.iscomplexobj(wanted) else "float"
        assert found.dtype.name == f"{kind}{(128 if double else 64) // (1 if kind == 'complex' else 2)}", told
        assert found.shape == wanted.shape, told
        size = float(np.abs(wanted).max(initial=0)) + float(np.sqrt((np.abs(wanted) ** 2).sum()))
        bound = (4e-15 if double else 3e-6) * (size + 1e-3)
        given = ta.to_numpy(found)
        assert np.abs(given - wanted).max(initial=0) <= bound, (told, np.abs(given - wanted).max(initial=0) / bound)
        assert np.array_equal(ta.to_numpy(ta.astype(x, exact.dtype)), exact), ("the operand changed", told)

"""Damaged and hostile files of arrays, and command lines that read them: an array, or an error that says so.

Files are `.npy`, `.npz` and safetensors files of which bytes are cut, flipped, inserted, or exchanged with those of
other files, whose headers claim other sizes and dtypes, or which are pickles. No code of a file runs, a result holds no
more memory than its file can fill, and a file that a command writes is the old one or the new one, as a whole.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks.outcome import Outcome
from support.attacks.texts import text
from tilearray.commands.main import main
from tilearray.errors import TileArrayError

DTYPES = ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float8_e4m3fn", "float32", "complex128")
CLAIMS = (
    *(
        (b"(2, 3)", b"(2, 4)"),
        (b"(2, 3)", b"(2305843009213693952, 8)"),
        (b"(2, 3)", b"(-2, -3)"),
        (b"(2, 3)", b"(2,3,)"),
    ),
    *((b"False", b"True"), (b"<f4", b"|O"), (b"<f4", b"<f8"), (b"<i8", b"<U9"), (b"<f4", b"<m8"), (b"descr", b"Descr")),
    *((b"[2,3]", b"[2,4]"), (b"[2,3]", b"[4611686018427387904,9]"), (b"[2,3]", b"[-1,3]"), (b"[0,", b"[8,")),
    *((b"[2,3]", b"[[2]]"), (b'"F32"', b'"F99"'), (b'"F32"', b'"F4"'), (b'"dtype"', b'"Dtype"'), (b"{", b"[" * 3000)),
)
"""What a header says, and what it says instead."""
RAN: list[str] = []
"""What code in a file did."""


def ran(told: str) -> None:
    """Note that code of a file ran."""
    RAN.append(told)


class Ran:
    """An object whose pickle runs code when it is read."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return ran, ("a pickle was read",)


def made(rng: random.Random) -> tuple[str, bytes]:
    """Return the suffix and the bytes of a file."""
    shape = rng.choice([(2, 3), (2, 3), (6,), (), (0, 3), (2, 1, 3)])
    x = ta.asarray(np.arange(np.prod(shape)).reshape(shape) % 5).astype(rng.choice(DTYPES))
    data, kind = io.BytesIO(), rng.choice(["npy", "npy", "npz", "compressed", "safetensors", "safetensors", "pickle"])
    if kind == "npy":
        ta.save(data, x)
    elif kind == "npz":
        ta.savez(data, x, second=x)
    elif kind == "compressed":
        ta.savez_compressed(data, first=x)
    elif kind == "pickle":
        objects = np.array([Ran(), 1], object)
        (data.write(pickle.dumps(Ran())) if rng.random() < 0.5 else np.save(data, objects, allow_pickle=True))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x"
            names = x.dtype.name.startswith(("bool", "int", "uint", "float", "bfloat"))
            ta.save_safetensors(path, {"x": x if names else ta.zeros((2, 3)), "y": ta.ones((2, 3))}, {"format": "pt"})
            data.write(path.read_bytes())
    return {"compressed": ".npz", "pickle": rng.choice([".npy", ".npz"])}.get(kind, f".{kind}"), data.getvalue()


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with some damage, or without."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
        way, at = rng.randrange(6), rng.randrange(len(data) + 1)
        if way == 0:
            data = data[:at]
        elif way == 1 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif way == 2:
            data = data[:at] + rng.randbytes(rng.choice([1, 8, 40])) + data[at:]
        elif way == 3:
            data = data[:at] + made(rng)[1][at:]
        else:
            data = data.replace(*rng.choice(CLAIMS))
    return data


def read(rng: random.Random, path: Path, device: str) -> list[Any]:
    """Read a file in one of the ways; return the arrays."""
    way = rng.randrange(5)
    if way == 0:
        found: Any = ta.load_safetensors(path, device=device)
    elif way == 1:
        return [*ta.safetensors_metadata(path)] and []
    else:
        found = ta.load(path, device=device, **({"mmap_mode": rng.choice(["r", "c"])} if way == 2 else {}))
    return list(found.values()) if isinstance(found, dict) else [found]


def command(rng: random.Random, path: Path) -> str:
    """Run a command line over a file, and return what is wrong with its end."""
    out = path.with_name("out.npy")
    before = out.read_bytes() if out.exists() else None
    words = [text(rng), path.name, "-o", "--device", "cpu", "--semantics", "numpy", str(out), f"a={path}", "--explain"]
    line = ["eval", rng.choice(["a + 1", "a[0]", "sqrt(a) * 2", text(rng)]), rng.choice([f"a={path}", str(path)])]
    line += ["-o", str(out)] if rng.random() < 0.7 else rng.sample(words, rng.randrange(4))
    if rng.random() < 0.2:
        line = rng.sample(["cache", "info", "eval", "list", "--version", "-h", *words], rng.randrange(1, 4))
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            status: Any = main(line)
        except SystemExit as end:
            status = end.code
    if status not in (0, 1, 2, None):
        return f"status {status} of {line}"
    if out.exists() and (after := out.read_bytes()) != before:
        np.load(io.BytesIO(after), allow_pickle=False)
    left = [each.name for each in path.parent.iterdir() if each.name.endswith(".unfinished")]
    return f"{left} are left by {line}" if left else ""


def one(rng: random.Random, folder: Path, device: str) -> tuple[str, str]:
    """Read one file, and return how that ended, and what is wrong."""
    suffix, data = made(rng)
    path = folder / f"x{suffix}"
    path.write_bytes(damaged(rng, data))
    if rng.random() < 0.25:
        return "commands", command(rng, path)
    try:
        arrays = read(rng, path, device)
    except (TileArrayError, OSError) as error:
        return "refused", "" if str(error) else f"{error!r} says nothing"
    held = sum(x.nbytes for x in arrays)
    if held > 1100 * max(1, path.stat().st_size):  # zeros are compressed to a thousandth
        return "read", f"{held} bytes of a file of {path.stat().st_size}"
    for x in arrays:
        ta.to_numpy(x.to_device("cpu")).tobytes()
    return "read", ""


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Read random files."""
    outcome, rng = Outcome("damaged files and command lines", device), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            RAN.clear()
            try:
                end, wrong = one(rng, Path(folder), device)
            except Exception as error:
                end, wrong = "other errors", f"{type(error).__name__}: {error}"
            if RAN:
                wrong += f" {RAN[0]}"
            outcome.count(end, cases)
            if wrong:
                outcome.fail(f"#{number} of seed {seed}: {wrong}"[:300])
    return outcome

"""The peers that compile do the same work as the others, are checked like them, and say what they cannot do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import compilers, libraries, peers, run, timing
from benchmarks.cases import CALLS, LAYOUTS, Call, Case

LAYOUT = {case.name: case for case in LAYOUTS}
CALL = {call.name: call for call in CALLS}
COPIES = {"o[...] = a.T", "float64 o[...] = a.T", "odd d[...] = e.T", "s[...] = r.permute(2, 1, 0)"}
WRITES = COPIES | {"o[...] = 2.5", "add(a, b, out=o)", "a += b"}
FRESH = {call.name for call in CALLS if call.fresh}
VIEWS = {"view a[1:]", "view m.T"}


def session(**here: Any) -> run.Session:
    """A run on the host of a moment's effort."""
    effort = timing.Effort(0, 1, 1, 2, 1)
    return run.Session("small", here, {}, peers.NumPy("cpu"), timing.HostClock(), effort)


def status(library: Any, row: Case | Call) -> str:
    measure = run.run_case if isinstance(row, Case) else run.run_call
    found = measure(session(it=library), row)["results"]["it"]  # type: ignore[arg-type]
    return found["status"] + (f": {found['why']}" if "why" in found else "")


def refusals(kind: type[libraries.Library]) -> dict[str, set[str]]:
    """The rows that an adapter refuses, by its reason; asked without the library."""
    adapter = kind.__new__(kind)
    found: dict[str, set[str]] = {}
    for row in (*LAYOUTS, *CALLS):
        found.setdefault(adapter.refuses(row), set()).add(row.name)
    del found[""]
    return found


def test_adapters_declare_unsupported_rows():
    assert refusals(compilers.CompiledTorch) == {
        "not supported": {"a[:, ::-1] + b"},
        compilers.COMPILES: FRESH,
        compilers.NOTHING: VIEWS,
        compilers.STATEMENT: {"a += b"},
    }
    assert refusals(compilers.FusedCuPy) == {
        compilers.COMPILES: FRESH,
        compilers.NOTHING: VIEWS - {"view m.T"} | WRITES | {"a.copy()"},
        compilers.NO_VIEWS: {"view m.T", "m + m.T (32x32)"},
    }
    for kind in (compilers.Jax, compilers.CompiledJax):
        wanted = {compilers.COMPILES: FRESH, compilers.NO_VIEWS: VIEWS, compilers.IMMUTABLE: WRITES}
        assert refusals(kind) == wanted
    assert refusals(compilers.FlagGems) == refusals(libraries.Torch) == {"not supported": {"a[:, ::-1] + b"}}


# ---------------------------------------------------------------------- JAX


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = pytest.importorskip("jax")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    before = module.config.jax_enable_x64
    yield module
    module.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("kind", [compilers.Jax, compilers.CompiledJax])
@pytest.mark.parametrize("row", [*LAYOUTS, *CALLS], ids=lambda row: row.name)
def test_jax_does_the_same_work(kind: Any, row: Case | Call, jax: Any):
    library = kind("cpu")
    assert status(library, row) == (library.refuses(row) or "ok")


def test_jit_compiles_the_views(jax: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax, "jit", lambda function: lambda arrays: (function, arrays))
    arrays = {"a": jax.numpy.ones((2, 3)), "b": jax.numpy.ones((3, 2))}
    function, given = compilers.CompiledJax("cpu").prepared(LAYOUT["a + b.T"], arrays)()
    assert given == arrays
    assert (function(given) == 2).all()


def test_a_wrong_result_of_a_compiler_is_caught(jax: Any, monkeypatch: pytest.MonkeyPatch):
    library = compilers.CompiledJax("cpu")
    monkeypatch.setattr(library, "transformed", lambda function: lambda *given: function(*given) + 1)
    assert status(library, LAYOUT["a + b"]).startswith("mismatch: ")
    assert status(library, CALL["a + b"]).startswith("mismatch: ")


def test_jax_is_waited_for(jax: Any):
    log: list[Any] = []

    class Waiting(compilers.Jax):
        def wait(self, result: Any) -> None:
            log.append(result.shape)

    assert status(Waiting("cpu"), LAYOUT["a + b"]) == "ok"
    assert log == [(96, 96)] * 4  # for the check, after the two to warm up, the one to see, the batch


def test_memory_that_jax_cannot_share_is_reported(jax: Any):
    library = compilers.Jax("cpu")
    raw = np.zeros(64 + 256, np.uint8)
    start = -raw.ctypes.data % 64
    aligned, between = (raw[start + by : start + by + 128].view(np.float32) for by in (0, 4))
    assert library.adopt(aligned).unsafe_buffer_pointer() == aligned.ctypes.data
    assert library.copied == ""
    library.adopt(between)
    assert library.copied == "JAX shares only aligned memory"


# ---------------------------------------------------------------------- torch.compile


@pytest.fixture
def compiled_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch.compile up to the code generator, which needs a compiler and seconds for each row."""
    torch = pytest.importorskip("torch")
    real = torch.compile
    monkeypatch.setattr(compilers.shutil, "which", lambda name: name)

    def traced(function: Any, *, dynamic: bool) -> Any:
        assert dynamic is False
        return real(function, backend="eager", dynamic=False, fullgraph=True)

    monkeypatch.setattr(torch, "compile", traced)
    return compilers.CompiledTorch("cpu")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_torch_compile_traces_every_row_whole(compiled_torch: Any):
    for row in (*LAYOUTS, *CALLS):
        assert status(compiled_torch, row) == (compiled_torch.refuses(row) or "ok"), row.name


# ---------------------------------------------------------------------- cupy.fuse, FlagGems: stand-ins over NumPy


class FusedNumPy(compilers.FusedCuPy):
    """cupy.fuse over NumPy: it takes arrays only, and functions whose name is one in C++."""

    adopt = libraries.Library.adopt
    to_numpy = libraries.Library.to_numpy
    release = libraries.Library.release

    def __init__(self) -> None:
        self.xp = SimpleNamespace(fuse=self.fuse, transpose=np.transpose, exp=np.exp, add=np.add)
        self.fused = 0

    def fuse(self, function: Any) -> Any:
        assert function.__name__.isidentifier()

        def fused(*given: Any) -> Any:
            assert all(isinstance(x, np.ndarray) for x in given)
            self.fused += 1
            return function(*given)

        return fused


@pytest.mark.parametrize("row", [*LAYOUTS, *CALLS], ids=lambda row: row.name)
def test_fused_functions_take_only_arrays(row: Case | Call):
    library = FusedNumPy()
    assert status(library, row) == (library.refuses(row) or "ok")
    assert (library.fused > 2) == (library.refuses(row) == "")


class Gems(peers.NumPy):
    """NumPy in the place of torch under FlagGems; `inside` says whether FlagGems is in force."""

    inside = False
    active = compilers.FlagGems.active

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.gems = SimpleNamespace(use_gems=self.use_gems)
        self.log: set[tuple[str, bool]] = set()

    @contextmanager
    def use_gems(self) -> Iterator[None]:
        self.inside = True
        yield
        self.inside = False

    def copy(self, x: Any) -> Any:
        self.log.add(("copy", self.inside))
        return x.copy()

    def spoil(self, x: Any) -> None:
        self.log.add(("spoil", self.inside))

    def to_numpy(self, x: Any) -> Any:
        self.log.add(("to_numpy", self.inside))
        return x


def test_flag_gems_is_in_force_only_for_the_timed_code():
    library = Gems("cpu")
    assert status(library, LAYOUT["a.copy()"]) == "ok"
    assert library.log == {("copy", True), ("spoil", False), ("to_numpy", False)}
    library.log.clear()
    assert status(library, CALL["a + b"]) == "ok"
    assert not library.inside


# ---------------------------------------------------------------------- what is not here

NAMES = ("torch.compile", "cupy.fuse", "jax", "jax.jit", "flag_gems")


def test_a_missing_package_is_the_reason(monkeypatch: pytest.MonkeyPatch):
    for package in ("torch", "jax", "jax.numpy", "cupy", "flag_gems"):
        monkeypatch.setitem(sys.modules, package, None)
    here, missing = peers.open_libraries("cuda", NAMES)
    assert here == {}
    assert missing == dict.fromkeys(NAMES, "not installed")
    _, missing = peers.open_libraries("cpu", ("cupy.fuse", "flag_gems"))
    assert missing == dict.fromkeys(("cupy.fuse", "flag_gems"), "GPU only")


def test_flag_gems_that_cannot_be_imported_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(libraries.Torch, "__init__", lambda self, device: None)
    monkeypatch.setitem(sys.modules, "flag_gems", None)
    assert peers.open_libraries("cuda", ("flag_gems",))[1] == {"flag_gems": "not installed"}

    def failing(name: str) -> Any:
        raise RuntimeError("no device")

    monkeypatch.setattr(compilers.importlib, "import_module", failing)
    assert peers.open_libraries("cuda", ("flag_gems",))[1] == {"flag_gems": "cannot be imported: no device"}


def test_torch_compile_needs_a_compiler_on_the_host(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(compilers.shutil, "which", lambda name: None)
    assert peers.open_libraries("cpu", ("torch.compile",))[1] == {"torch.compile": "no C++ compiler"}


def test_jax_without_the_device_says_so(jax: Any, monkeypatch: pytest.MonkeyPatch):
    def nothing(platform: str) -> Any:
        raise RuntimeError(f"Unknown backend {platform}")

    monkeypatch.setattr(jax, "devices", nothing)
    assert peers.open_libraries("cuda", ("jax",))[1] == {"jax": "built without CUDA, or no GPU"}
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"

"""What `import tilearray` costs and brings: no framework, little time, and exactly the public names."""

from __future__ import annotations

import json
from types import ModuleType

from support.processes import in_fresh_python

import tilearray as ta

LAZY = ("triton", "cuda", "torch", "cupy", "jax", "scipy", "matplotlib", "rich", "tilearray_cuda")


def test_import_brings_no_framework():
    code = "import json, sys, tilearray; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    imported = json.loads(in_fresh_python(code))
    assert {"numpy", "ml_dtypes", "tilearray"} <= set(imported)
    assert set(imported).isdisjoint(LAZY)


def test_a_host_expression_brings_no_framework():
    code = "import sys, tilearray as ta; (ta.asarray([1, 2, 3], device='cpu') * 2.5).tolist(); print(*sys.modules)"
    imported = {name.partition(".")[0] for name in in_fresh_python(code).split()}
    assert "tilearray_host" in imported
    assert imported.isdisjoint(LAZY)


def test_memory_on_its_way_to_a_gpu_loads_no_host_kernels():
    code = (
        "import sys, numpy; from tilearray_host import HOST; "
        "HOST.from_numpy(numpy.ones(3), copy=True); print(*sys.modules)"
    )
    imported = set(in_fresh_python(code).split())
    assert "tilearray_host.memory" in imported
    assert imported.isdisjoint({"tilearray_host.kernel", "tilearray_host.functions", "fractions"})


def test_import_is_little_work_beyond_numpy():
    """Modules and calls and not seconds, which a busy machine has more of: benchmarks/startup.py measures those."""
    code = """
import json, sys, numpy, ml_dtypes
before, calls = set(sys.modules), 0

def count(frame, event, what):
    global calls
    calls += event == "call"

sys.setprofile(count)
import tilearray
sys.setprofile(None)
print(json.dumps([calls, sorted(set(sys.modules) - before)]))
"""
    calls, modules = json.loads(in_fresh_python(code))
    others = [name for name in modules if name.partition(".")[0] != "tilearray"]
    assert len(modules) - len(others) <= 125
    assert len(others) <= 12, others
    assert calls <= 40_000
    slow = {"asyncio", "ctypes", "decimal", "fractions", "hashlib", "importlib.metadata", "subprocess", "tempfile"}
    assert slow.isdisjoint(others)


def test_all_is_the_public_interface():
    public = {
        name
        for name, value in vars(ta).items()
        if not name.startswith("_") and not (isinstance(value, ModuleType) and value.__name__.startswith("tilearray."))
    }
    assert public <= set(ta.__all__), "public by their names, but not in __all__"
    assert [name for name in ta.__all__ if not hasattr(ta, name)] == []
    assert len(ta.__all__) == len(set(ta.__all__))


def test_dir_shows_public_names_only():
    modules = [name for name in dir(ta) if isinstance(getattr(ta, name), ModuleType)]
    assert modules == ["cuda", "distributed", "fft", "lib", "linalg", "random", "special"]
    assert set(ta.__all__) == set(dir(ta)) - {"cuda"}

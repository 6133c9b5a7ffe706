"""The property test of the op table, on the GPU: the same cases and the same oracle as on the host."""

from __future__ import annotations

import pytest
from support.drawing import Case, cases, moves
from support.oracles import calls
from support.oracles.calls import CUDA_PROMISES, CUDA_ULPS
from support.oracles.formats import ARITHMETIC
from support.oracles.promotion import SEMANTICS
from support.oracles.rules import RULES
from support.properties import COUNTS, EXAMPLES, LEAST, check_astype, check_call, check_setitem, many

import tilearray as ta

FILLINGS = 3
"""The cases that share a drawn call, and so its kernels: most of the time is the compiler's."""


@pytest.fixture(autouse=True)
def bounds_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the bounds of the GPU instead of NumPy's; data are no error there."""
    bounds = {(name, dtype): CUDA_PROMISES for name in RULES for dtype in ("float32", "float64")} | CUDA_ULPS
    monkeypatch.setattr(calls, "ULPS", bounds)
    monkeypatch.setattr(calls, "REFUSES_NEGATIVE_POWERS", False)


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("name", [name for name in RULES if name != "identity"])
def test_operation(name: str, semantics: str) -> None:
    def check(case: Case) -> bool:
        with ta.semantics(semantics):
            return check_call(name, semantics, case, "cuda")

    many(cases(name), check, f"{name} {semantics}", COUNTS[semantics], min(LEAST[semantics], 0.1), FILLINGS)


@pytest.mark.parametrize("dtype", ARITHMETIC)
@pytest.mark.parametrize("form", ["astype", "setitem"])
def test_casts_and_assignments(form: str, dtype: str) -> None:
    check = check_astype if form == "astype" else check_setitem
    many(
        moves(form, dtype),
        lambda case: check(case, "cuda"),
        f"{form} {dtype}",
        EXAMPLES,
        0.05 if form == "setitem" else 0.2,  # most dtypes may not be stored in an unsigned array
        FILLINGS,
    )

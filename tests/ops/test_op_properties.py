"""Every operation on random shapes, views, dtypes, numbers and targets, against tests/support/oracles/.

One test per operation and semantics draws a fixed number of calls, 20,000 and more in all.
``TILEARRAY_EXAMPLES=2000`` draws more of them, and ``TILEARRAY_SEED=7`` others: without it a run draws what it drew.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from support.drawing import Case, cases, moves
from support.oracles.formats import ARITHMETIC, FORMATS, STORAGE, nearest
from support.oracles.promotion import SEMANTICS
from support.oracles.rules import RULES
from support.properties import COUNTS, EXAMPLES, LEAST, check_astype, check_call, check_setitem, many

import tilearray as ta
import tilearray_host.kernel
from tilearray.ops import PUBLIC

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("name", [name for name in RULES if name != "identity"])
def test_operation(name: str, semantics: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(case: Case) -> bool:
        monkeypatch.setattr(tilearray_host.kernel, "BLOCK", case.block)
        with ta.semantics(semantics):
            return check_call(name, semantics, case)

    many(cases(name), check, f"{name} {semantics}", COUNTS[semantics], LEAST[semantics])


def test_these_are_all_operations_and_20000_cases() -> None:
    """The counts that every test above asserts of itself, in sum."""
    assert set(RULES) - {"identity"} == set(PUBLIC)
    assert (len(RULES) - 1) * sum(COUNTS.values()) >= 20_000


@pytest.mark.parametrize("dtype", [*ARITHMETIC, *STORAGE])
@pytest.mark.parametrize("form", ["astype", "setitem"])
def test_casts_and_assignments(form: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(case: Case) -> bool:
        monkeypatch.setattr(tilearray_host.kernel, "BLOCK", case.block)
        return (check_astype if form == "astype" else check_setitem)(case)

    many(moves(form, dtype), check, f"{form} {dtype}", EXAMPLES)


# --- the oracle itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "float64"])
def test_the_oracle_rounds_to_the_nearest_value(name: str) -> None:
    """Against Fractions: no value of the format is nearer than the one it gives, and of two as near it is the even."""
    fmt, rng = FORMATS[name], random.Random(name)
    values = [rng.uniform(1, 2) * 2.0 ** rng.randrange(-20, 20) for _ in range(400)]
    values += [(2 * rng.randrange(2**fmt.precision) + 1) * 2.0 ** rng.randrange(fmt.lowest - 1, 3) for _ in range(400)]
    for value, found in zip(values, nearest(values, name), strict=True):
        last = Fraction(2) ** max(math.frexp(value)[1] - fmt.precision, fmt.lowest)
        count, left = divmod(Fraction(value), last)
        exact = last * (count + (left > last / 2 or (left == last / 2 and count % 2)))
        if exact <= Fraction(fmt.largest):
            assert Fraction(found) == exact
        else:
            assert found == (fmt.largest if fmt.beyond is None else fmt.beyond) or math.isnan(found)

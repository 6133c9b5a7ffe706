"""The signatures that `help`, `inspect.signature` and IPython show: one for each function, with its types."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import re

import pytest

import tilearray as ta
from tilearray.ops.signatures import LateSignature, show, type_text


def public_functions() -> dict[str, object]:
    found = {f"ta.{name}": getattr(ta, name) for name in ta.__all__}
    found |= {
        f"Array.{name}": value for name, value in inspect.getmembers(ta.Array, inspect.isfunction) if name[0] != "_"
    }
    return {name: value for name, value in found.items() if callable(value) and not isinstance(value, type)}


def test_no_signature_shows_quotes_or_the_type_variable() -> None:
    found = {name: str(inspect.signature(value)) for name, value in public_functions().items()}
    assert len(found) > 200
    wrong = {name: text for name, text in found.items() if re.search(r": '|-> '|\bA\b|ArrayBase|\bSelf\b|np\.", text)}
    assert wrong == {}


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (ta.add, "(x1: Operand, x2: Operand, /"),
        (ta.exp, "rounding: Literal['full', 'approx'] | None = None"),
        (ta.maximum, "propagate_nan: bool = True) -> Array"),
        (ta.sum, "axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, out: Array | None = None"),
        (ta.Array.sum, "(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None"),
        (ta.ones(1).argmax, "(axis: int | None = None, out: Array | None = None, *, keepdims: bool = False) -> Array"),
        (ta.zeros, "dtype: DTypeLike | None = None"),
    ],
)
def test_signatures_say_the_types(function, text) -> None:
    assert text in str(inspect.signature(function))
    if inspect.isroutine(function):  # Python 3.13 breaks long lines
        assert re.sub(r"\s+", "", text) in re.sub(r"\s+", "", pydoc.render_doc(function))


def test_a_row_has_one_signature() -> None:
    """IPython shows that of the object, and that of its `__call__` if it differs."""
    oinspect = pytest.importorskip("IPython.core.oinspect")
    themed = "theme_name" in inspect.signature(oinspect.Inspector.__init__).parameters
    inspector = oinspect.Inspector(**({"theme_name": "nocolor"} if themed else {}))
    for row in (ta.exp, ta.add, ta.fma):
        assert inspect.signature(row) == inspect.signature(row.__call__)
        found = inspector.info(row, oname="row")
        assert found["call_def"] is None
        assert "Operand" in found["definition"]


def test_a_late_signature_is_a_signature() -> None:
    def function(x: "A", *rest: int, k: "Axes" = 3) -> "A":  # noqa: F821, UP037
        return x

    show([function, 3, len])
    found = inspect.signature(function)
    assert isinstance(found, LateSignature)
    assert str(found) == "(x: Array, *rest: int, k: Axes = 3) -> Array"
    assert found.bind(1, 2, k=4).arguments == {"x": 1, "rest": (2,), "k": 4}
    assert found.replace(return_annotation=int) == found.replace(
        parameters=[*found.parameters.values()], return_annotation=int
    )
    for other in (copy.copy(found), pickle.loads(pickle.dumps(found.replace()))):
        assert other == found
    with pytest.raises(AttributeError):
        found.nothing  # noqa: B018
    assert type_text(int) is int
    assert repr(type_text("A | Array | None")) == "Array | None"

"""Other defaults for semantics: creation, division and the ladder move together; a choice is one object with a name."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.errors import SemanticsError
from tilearray.promotion.semantics import as_semantics
from tilearray.promotion.systems import ARRAY_API, NUMPY, SEMANTICS, TORCH

LATTICES = [name for name in SEMANTICS if name != "numpy"]
COMPLEX_OF = {"float16": "complex64", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


def dtype_of(call: Callable[[], Any]) -> str:
    return call().dtype.name


@pytest.mark.parametrize("base", LATTICES)
@pytest.mark.parametrize("name", COMPLEX_OF)
def test_the_default_float_moves_everything_that_is_a_float_unasked(base: str, name: str) -> None:
    integers, halves = ta.asarray([1, 2], dtype="int16"), ta.asarray([1.0], dtype="float16")
    with ta.semantics(base, float=name):
        floats = [
            lambda: ta.zeros(2),
            lambda: ta.linspace(0, 1, 3),
            lambda: ta.arange(0, 1, 0.5),
            lambda: ta.asarray(0.5),
            lambda: ta.asarray([1, 2.5]),
            lambda: ta.full(2, 0.5),
            lambda: integers / integers,
            lambda: integers / 2,
            lambda: integers + 0.5,
            lambda: ta.sqrt(integers),
            lambda: ta.atan2(integers, integers),
            lambda: ta.mean(integers),
            lambda: ta.reciprocal(integers),
        ]
        assert [dtype_of(call) for call in floats] == [name] * len(floats)
        assert dtype_of(lambda: halves + 0.5) == "float16", "a number beside floats has no say"
        assert dtype_of(lambda: ta.asarray(1j)) == COMPLEX_OF[name]
        assert ta.__array_namespace_info__().default_dtypes()["real floating"] == name
        if base != "cutile":  # it has no complex numbers
            assert dtype_of(lambda: integers + 1j) == COMPLEX_OF[name]
            assert dtype_of(lambda: ta.ones(1, dtype="float32") + 1j) == "complex64", "of the array's precision"
            assert dtype_of(lambda: ta.ones(1, dtype="float64") + 1j) == "complex128"


@pytest.mark.parametrize("base", LATTICES)
@pytest.mark.parametrize("name", ["int32", "int64"])
def test_the_default_integer_moves(base: str, name: str) -> None:
    truth = ta.asarray([True])
    with ta.semantics(base, int=name):
        assert [dtype_of(call) for call in (lambda: ta.arange(3), lambda: ta.asarray([1]), lambda: ta.sum(truth))] == (
            [name] * 3
        )
        assert dtype_of(lambda: ta.asarray(2**40)) == "int64", "a number that the default does not hold"
        assert dtype_of(lambda: ta.asarray([1], dtype="int16") + 1) == "int16"
        if base in ("triton", "torch"):  # there the rung of a small number is the default integer
            assert dtype_of(lambda: ta.asarray([True, False], dtype="bool").astype("int8") + 1) == "int8"
            assert ta.result_type("bool", 3) == name


def test_the_rest_stays() -> None:
    moved = as_semantics("torch", float="float64")
    unmoved = {"name", "defaults", "ladder", "true_division"}
    assert {name: rule for name, rule in moved.rules().items() if name not in unmoved} == {
        name: rule for name, rule in TORCH.rules().items() if name not in unmoved
    }


def test_torchs_default_dtype() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    try:
        for name in ("float64", "float32", "float16", "bfloat16"):
            torch.set_default_dtype(getattr(torch, name))
            theirs, mine = torch.ones(2, dtype=torch.int16), ta.ones(2, dtype="int16")
            with ta.semantics("torch", float=name):
                for call in (lambda x: x + 0.5, lambda x: x / x, lambda x: x / 2):
                    assert dtype_of(lambda call=call, x=mine: call(x)) == str(call(theirs).dtype).removeprefix("torch.")
                if name != "float16":  # torch has complex32
                    wanted = str((theirs + 1j).dtype).removeprefix("torch.")
                    assert dtype_of(lambda x=mine: x + 1j) == wanted
                assert dtype_of(lambda: ta.zeros(1)) == str(torch.zeros(1).dtype).removeprefix("torch.")
                assert dtype_of(lambda: ta.asarray([0.5])) == str(torch.tensor([0.5]).dtype).removeprefix("torch.")
    finally:
        torch.set_default_dtype(before)


SAME = [
    (("array-api", {"float": "float64"}), ("array-api,float=float64", {})),
    (("array-api", {"float": np.float64}), (" array-api , float = f8", {})),
    (("array-api", {"float": "float64", "int": "int32"}), ("array-api,float=float64", {"int": "int32"})),
    (("triton", {"float": "f8", "complex": "complex64"}), ("triton,float=float64,complex=complex64", {})),
    (("array-api,float=float64", {"float": "float32"}), ("array-api", {})),
    (("triton", {"int": "int32"}), ("triton", {})),
    (("numpy", {"float": float, "int": int, "complex": complex}), ("numpy", {})),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=str)
def test_equal_choices_are_one_object(one: tuple[str, dict], other: tuple[str, dict]) -> None:
    found = as_semantics(one[0], **one[1])
    assert found is as_semantics(other[0], **other[1])
    assert found is as_semantics(found.name) is as_semantics(found)
    assert pickle.loads(pickle.dumps(found)) is found
    assert len(pickle.dumps(found)) < 150


def test_different_choices_share_neither_equality_nor_plans() -> None:
    x = ta.asarray([1, 2])
    seen = set()
    for spec in ("array-api", "array-api,float=float64", "array-api,float=bfloat16", "array-api,int=int32"):
        with ta.semantics(spec) as rules:
            seen.add((id(rules.key), rules.name, (x / 2).dtype.name))
            again = (x / 2).dtype.name  # from the plan that was kept
            assert (rules.name, again) in {(name, dtype) for _, name, dtype in seen}
    assert len({key for key, _, _ in seen}) == 4
    assert sorted(dtype for _, _, dtype in seen) == ["bfloat16", "float32", "float32", "float64"]
    assert as_semantics("array-api", float="float64") != ARRAY_API
    with ta.semantics("array-api,float=float64") as first:
        count = len(first.plans or ())
        with ta.semantics("array-api", float="float64"):
            x / 2
        assert len(first.plans or ()) == count > 0, "a block that is entered again plans nothing again"


def test_derived_semantics_take_defaults() -> None:
    mine = ta.Semantics.derive("array-api", name="mine", integer_division="trunc")
    one, other = as_semantics(mine, float="float64"), as_semantics(mine, float="float64")
    assert one is other
    assert (one.name, one.integer_division, one.true_division) == ("mine,float=float64", "trunc", ta.float64)
    assert pickle.loads(pickle.dumps(one)) == one
    directly = ta.Semantics.derive("array-api", name="mine,float=float64", integer_division="trunc", float="float64")
    assert directly == one
    assert ta.Semantics.derive("array-api", float="float64").name == "array-api-derived"
    gone = weakref.ref(one)
    del mine, one, other
    gc.collect()
    assert gone() is None


def test_a_name_like_that_of_other_defaults_is_no_such_choice() -> None:
    named = ta.Semantics.derive("torch", name="torch,float=float64")
    assert as_semantics(named) is named
    assert as_semantics(named.name).true_division == ta.float64 != named.true_division
    assert pickle.loads(pickle.dumps(named)) == named


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        ("array-api", {"float": "int8"}, "semantics: float is 'int8'; write 'float16' or 'bfloat16' or 'float32' or"),
        ("array-api", {"float": "flaot"}, "semantics: float is 'flaot'; write 'float16'"),
        ("array-api", {"int": "uint64"}, "semantics: int is 'uint64'; write 'int32' or 'int64'"),
        ("array-api", {"complex": "f4"}, "semantics: complex is 'f4'; write 'complex64' or 'complex128'"),
        ("array-api,fp=float64", {}, "semantics: kind 'fp' has no default; write one of int, float, complex"),
        (
            "array-api,float64",
            {},
            "semantics: expected defaults as kind=dtype behind 'array-api', got 'float64'",
        ),
        ("torhc,float=float64", {}, "semantics: unknown semantics 'torhc'; write 'array-api' or"),
        (
            "numpy",
            {"float": "float32"},
            "semantics: semantics 'numpy' leave Python numbers to NumPy, whose default float is float64, got "
            "float='float32'; write 'array-api' with float='float32'",
        ),
    ],
)
def test_what_cannot_be_a_default(spec: str, given: dict, message: str) -> None:
    with pytest.raises(SemanticsError) as caught:
        ta.semantics(spec, **given)
    assert str(caught.value).startswith(message)
    with pytest.raises(SemanticsError, match=r"^set_semantics: "):
        ta.set_semantics(spec, **given)
    assert ta.get_semantics() is ARRAY_API


def test_a_complex_dtype_that_does_not_follow_the_float_is_part_of_the_name() -> None:
    """Else semantics with and without it would share a name, and so be one object."""
    apart, together = as_semantics("triton", float="float64", complex="complex64"), as_semantics("triton,float=float64")
    assert (apart.name, together.name) == ("triton,float=float64,complex=complex64", "triton,float=float64")
    assert (apart.defaults["complex"], together.defaults["complex"]) == (ta.complex64, ta.complex128)
    assert as_semantics(apart.name) is apart


def test_the_text_says_the_defaults() -> None:
    assert repr(ARRAY_API) == "<Semantics 'array-api', defaults int64, float32, complex64>"
    assert repr(NUMPY) == "<Semantics 'numpy', defaults int64, float64, complex128>"
    assert str(as_semantics("triton", float="float64")) == "triton,float=float64"
    assert "triton,float=float64', defaults int32, float64, complex128>" in repr(as_semantics("triton,float=f8"))


def test_the_whole_process() -> None:
    try:
        ta.set_semantics("array-api", float="float64")
        assert ta.zeros(1).dtype == ta.float64
    finally:
        ta.set_semantics("array-api")
    code = "import tilearray as ta; print(repr(ta.get_semantics()), (ta.arange(2) / 2).dtype)"
    environment = {**os.environ, "TILEARRAY_SEMANTICS": "array-api,float=float64"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == "<Semantics 'array-api,float=float64', defaults int64, float64, complex128> float64\n"
    environment["TILEARRAY_SEMANTICS"] = "array-api,float=int8"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert "TILEARRAY_SEMANTICS: float is 'int8'; write" in done.stderr


def test_an_error_recommends_the_default_float() -> None:
    x = ta.asarray([2])
    for spec, name in (("array-api", "float32"), ("array-api,float=float64", "float64"), ("numpy", "float64")):
        with ta.semantics(spec), pytest.raises(ValueError, match=rf"write x.astype\('{name}'\) \*\* -1"):
            x**-1


def test_an_explanation_lists_the_semantics_in_force() -> None:
    with ta.semantics("array-api", float="float64"):
        found = ta.explain_promotion("int32", 0.5)
    assert found.result == ta.float64
    assert found.answers["array-api,float=float64"] == ta.float64
    assert found.answers["array-api"] == ta.float32

"""Fused functions that a process reads from pickles: one where code and constants are equal."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import tilearray as ta
from tilearray.arrays.fusion.sameness import Incomparable, content

cloudpickle = pytest.importorskip("cloudpickle")

X = ta.asarray([1.0, 4.0, 9.0])


def again(function):
    """The function as the receiver of a message has it."""
    return cloudpickle.loads(cloudpickle.dumps(function))


def made(factor=2.0, *, kind=ta.fuse, offsets=(1.0, 2.0), inner=math.sqrt, dtype="float64"):
    """A function without a name in its module, which refers to numbers, a tuple, functions and a module."""
    helper = functools.partial(lambda x, scale: ta.astype(x, dtype) * scale, scale=factor)

    def function(x, shift=0.5):
        def last(y):
            return y + offsets[1]

        return last(helper(ta.sqrt(x)) + shift + offsets[0] + inner(4.0))

    return kind(function)


@pytest.mark.parametrize(
    "kind",
    [ta.fuse, ta.fuse(contract=True), ta.fuse(intermediates="compute"), ta.fuse(keep=["sqrt"]), ta.pointwise],
)
def test_pickles_of_one_function_are_one_function(kind):
    function = made(kind=kind)
    first, second = again(function), again(function)
    assert first is second
    assert first is not function
    assert first is again(made(kind=kind))
    assert first is again(first)
    assert first(X).tolist() == function(X).tolist() == [7.5, 9.5, 11.5]
    read, sent = (getattr(each, "fused", each) for each in (first, function))
    assert read.traces == 1
    assert (read.intermediates, read.contract, read.keep) == (sent.intermediates, sent.contract, sent.keep)


def nested(offset, kind=ta.fuse):
    """A fused function that calls another one."""
    inner = kind(lambda x: x + offset)
    return ta.fuse(lambda x: inner(x) * 2)


def elementwise(x):
    return x * 2 + 1


def test_other_constants_options_or_code_are_another_function():
    functions = [
        made(),
        made(3.0),
        made(-0.0),
        made(0.0),
        made(0),
        made(False),
        made(np.float32(2.0)),
        made(offsets=(1.0, 2)),
        made(inner=math.exp),
        made(inner=lambda x: x),
        made(inner=lambda x: x + 0),
        nested(1),
        nested(2),
        nested(2, ta.pointwise),
        made(dtype="float32"),
        made(kind=ta.fuse(contract=True)),
        made(kind=ta.fuse(intermediates="compute")),
        made(kind=ta.fuse(keep=[])),
        made(kind=ta.fuse(keep=("sqrt",))),
        nested(2, ta.fuse(keep=[])),
        made(kind=ta.pointwise),
        made(kind=ta.pointwise(promotion=[(0, "default")])),
        ta.fuse(lambda x, shift=0.5: x + shift),
        ta.fuse(lambda x, shift=0.25: x + shift),
        ta.fuse(lambda x, *, shift=0.25: x + shift),
    ]
    assert len({again(function) for function in functions}) == len(functions)
    for function in functions:
        assert again(function) is again(function)
        assert again(function)(X).tolist() == function(X).tolist()


@pytest.mark.parametrize(
    "changing", [[1.0], {"a": 1.0}, np.ones(3), X, object(), slice(X), (1.0, [2.0])], ids=lambda x: type(x).__name__
)
def test_what_may_change_is_not_compared(changing):
    function = ta.fuse(lambda x: x if changing is None else x + 1)
    assert again(function) is not again(function)
    with pytest.raises(Incomparable):
        content(function.function)


class Unhashable(type):
    """The class of a class that cannot be a key."""

    __hash__ = None

    def __eq__(cls, other):
        return NotImplemented


def test_a_constant_without_a_hash_is_not_a_key():
    constant = Unhashable("Constant", (), {})
    for kind in (ta.fuse, ta.pointwise):
        read, parts = kind(lambda x: x if constant is None else x + 1).__reduce__()
        assert read(*parts)(X).tolist() == [2.0, 5.0, 10.0]


def test_a_function_that_calls_itself_is_compared():
    def power(x, n):
        return x * power(x, n - 1) if n > 1 else x

    function = ta.fuse(lambda x: power(x, 3))
    assert again(function) is again(function)
    assert again(function)(X).tolist() == [1.0, 64.0, 729.0]


def test_every_public_function_is_compared_by_its_identity():
    for name in ta.__all__:
        value = getattr(ta, name)
        if callable(value):
            assert content(value) == (type(value), value), name


def test_functions_of_modules_keep_their_names():
    assert again(NAMED) is NAMED
    assert again(NAMED_POINTWISE) is NAMED_POINTWISE


NAMED, NAMED_POINTWISE = ta.fuse(elementwise), ta.pointwise(elementwise)
NAMED.__qualname__, NAMED_POINTWISE.__qualname__ = "NAMED", "NAMED_POINTWISE"

"""Expressions as text: what they come to, by Python's own `eval`; and that nothing but the grammar is ever computed."""

from __future__ import annotations

import ast
import inspect
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilearray as ta
from tilearray.commands.eval import grammar, vocabulary
from tilearray.commands.eval.grammar import evaluate, read
from tilearray.errors import ExpressionError
from tilearray.numpy_names import names
from tilearray.ops.op import Op

A = np.arange(12, dtype="uint8").reshape(3, 4)
B = np.linspace(-1, 1, 4, dtype="float32")
ARRAYS = {"a": ta.asarray(A, device="cpu"), "b": ta.asarray(B, device="cpu")}


def by_python(text: str) -> Any:
    """The oracle: Python evaluates the same text."""
    bare = {name: getattr(ta, name) for name in vocabulary.FUNCTIONS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of 0[0]
        return eval(text, {"ta": ta, **bare, **ARRAYS})


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for pair in zip(found, expected):
            assert_same(*pair)
    elif isinstance(expected, ta.Array):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert ta.to_numpy(found).tobytes() == ta.to_numpy(expected).tobytes()
    else:
        assert found == expected or found != found


# --- what expressions come to ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "  a + b\n",
        "sqrt(a * a + b[::-1] ** 2) / 2",
        "ta.sqrt(a)",
        "a.T[1:, ::-1][0]",
        "a[..., None, 1:3]",
        "a[:, ta.newaxis]",
        "a[0, -1]",
        "-a + +b - ~a",
        "(a << 1) | (a >> 1) & 3 ^ a",
        "a // 3 % 2",
        "(a < 3) & (a != 1) | (a >= 10)",
        "5 - a",
        "True + a",
        "ta.where(a > 3, a, ta.pi)",
        "ta.clip(a, 2, None)",
        "ta.clip(b, min=-0.5, max=ta.inf)",
        "astype(a, ta.bfloat16) * ta.astype(b, 'float16')",
        "astype(a, 'bf16') + ta.astype(b, 'f64')",
        "ta.zeros((2, 3), dtype=ta.int8) + 1j",
        "ta.full([2, 2], 7, dtype='uint16')",
        "ta.asarray([[1, 2.5], [3, 4]]) * 2",
        "ta.concat([a, a], axis=1)",
        "ta.meshgrid(a[0], b, indexing='ij')[1]",
        "ta.broadcast_arrays(a, b)[0]",
        "ta.permute_dims(a, (1, 0))",
        "ta.arange(0, 10, 3)",
        "2 ** 7 - 1",
        "7 // 2 * 1.5 + 0x10",
        "not_equal(a, 300)",
        "a == b",
    ],
)
def test_an_expression_equals_pythons_result(text: str):
    assert_same(evaluate(text, ARRAYS), by_python(text.strip()))


def numbers() -> st.SearchStrategy[str]:
    return st.sampled_from(["0", "1", "2", "3", "7", "200", "0.5", "1e3", "1j", "True", "ta.pi", "ta.inf"])


OPERATORS = "+ - * / // % ** & | ^ << >> < <= > >= == !="


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(OPERATORS.split())
    functions = st.sampled_from(
        [name for name, op in vocabulary.FUNCTIONS.items() if isinstance(op, Op) and op.arity == 1]
    )
    keys = st.sampled_from(["0", "-1", "..., 0", "::-1", "1:", "None", "..., ::2", ":, None"])
    return st.one_of(
        st.builds("({} {} {})".format, parts, operators, parts),
        st.builds("{}{}".format, st.sampled_from(["-", "+"]), parts),
        st.builds("~{}".format, st.sampled_from(["a", "b", "(a < 3)", "7"])),  # of Python's bools ~ is no longer said
        st.builds("{}({})".format, functions, parts),
        st.builds("ta.{}({})".format, functions, parts),
        st.builds("{}.T".format, parts),
        st.builds("{}[{}]".format, parts, keys),
        st.builds("ta.where({}, {}, {})".format, parts, parts, parts),
        st.builds("ta.astype({}, {!r})".format, parts, st.sampled_from(["int8", "bfloat16", "bool"])),
    )


LEGAL = st.recursive(st.one_of(st.sampled_from(["a", "b"]), numbers()), combined, max_leaves=6)


@settings(max_examples=500)
@given(LEGAL)
def test_random_expressions_equal_pythons_results(text: str):
    try:
        found = evaluate(text, ARRAYS)
    except ExpressionError as error:
        cause = error.__cause__
        while isinstance(cause, ExpressionError) and cause.__cause__ is not None:
            cause = cause.__cause__
        if not isinstance(cause, ExpressionError):  # the library refuses it, and does so to everybody
            with pytest.raises(type(cause)):
                by_python(text)
        return
    assert_same(found, by_python(text))


# --- what is no expression ------------------------------------------------------------------------------------------

REFUSED = [
    ("__import__('os')", "`__import__`: an expression cannot call this; `tilearray eval --help` lists the functions"),
    ("__import__('os').system('true')", "`__import__('os').system`: an expression cannot call this; write ta.NAME(.."),
    ("eval('a')", "`eval`: an expression cannot call this; "),
    ("ta.from_dlpack(a)", "`ta.from_dlpack`: an expression cannot call this; "),
    ("ta.empty(3)", "`ta.empty`: an expression cannot call this; "),
    ("ta.set_default_device('cpu')", "`ta.set_default_device`: an expression cannot call this; "),
    ("ta.semantics('triton')", "`ta.semantics`: an expression cannot call this; "),
    ("ta.sqr(a)", "`ta.sqr`: an expression cannot call this; write ta.sqrt"),
    ("ta.ops.add(a, b)", "`ta.ops.add`: an expression cannot call methods; write ta.add(x, ...)"),
    ("a.astype('int8')", "`a.astype`: an expression cannot call methods; write ta.astype(x, ...)"),
    ("frobnicate(a)", "`frobnicate`: an expression cannot call this; `tilearray eval --help` lists the functions"),
    ("(a.T)()", "`a.T`: an expression cannot call this; write ta.NAME(...)"),
    ("ta.sqrt(a)(b)", "`ta.sqrt(a)`: an expression cannot call this; write ta.NAME(...)"),
    ("a.dtype", "`a.dtype`: an expression cannot read attributes except .T; omit it"),
    ("a.reshape", "`a.reshape`: an expression cannot read attributes except .T; write ta.reshape(x)"),
    ("a.__class__.__mro__", "`a.__class__.__mro__`: an expression cannot read attributes except .T"),
    ("ta.__doc__", "`ta.__doc__`: an expression cannot use this; `tilearray eval --help` lists the grammar"),
    ("ta.T", "`ta.T`: an expression cannot use this"),
    ("ta.add", "`ta.add`: a function must be called; write ta.add(...)"),
    ("ta", "`ta`: no array has this name; write ta=array"),
    ("c + a", "`c`: no array has this name; write c=array"),
    ("a * float16", "`float16`: no array has this name; write ta.float16"),
    ("a * pi", "`pi`: no array has this name; write ta.pi"),
    ("a + sqrt", "`sqrt`: a function must be called; write sqrt(...)"),
    ("ta.float32", "`ta.float32`: an expression cannot use this"),
    ("a + 'float32'", "`'float32'`: expected a string only as a dtype's name, or as rounding="),
    ("divide(a, 3, rounding='up')", "a dtype's name, or as rounding= one of 'rn', 'rz', 'rm'"),
    ("ta.astype(a, 'rm -rf')", "`'rm -rf'`: expected a string only as a dtype's name"),
    ("b'bytes'", "`b'bytes'`: an expression cannot contain Constant"),
    ("...", "`...`: an expression cannot contain Constant"),
    ("None", "`None`: an expression cannot contain Constant"),
    ("a and b", "`a and b`: `and` and `or` do not work on elements; write (x) & (y), (x) | (y)"),
    ("not a", "`not a`: `not` does not work on elements; write ~x"),
    (
        "0 < a < 3",
        "`0 < a < 3`: an expression takes one comparison at a time, without `in` and `is`; write (x < y) & (y < z)",
    ),
    ("a is b", "`a is b`: an expression takes one comparison at a time"),
    ("1 in a", "`1 in a`: an expression takes one comparison at a time"),
    ("a if b else a", "`a if b else a`: `if` does not work on elements; write ta.where(condition, x, y)"),
    ("(a, b)", "`(a, b)`: a tuple can be an argument or an index, but not an operand; write ta.asarray([...])"),
    ("[1, 2] * a", "`[1, 2]`: a list can be an argument, but not an operand; write ta.asarray([...])"),
    ("lambda: a", "`lambda: a`: an expression cannot contain Lambda; omit it"),
    ("[x for x in a]", "`[x for x in a]`: an expression cannot contain ListComp"),
    ("{1: a}", "`{1: a}`: an expression cannot contain Dict"),
    ("f'{a}'", "`f'{a}'`: an expression cannot contain JoinedStr"),
    ("(x := a)", "`x := a`: an expression cannot contain NamedExpr"),
    ("(yield)", "`yield`: an expression cannot contain Yield"),
    ("ta.add(*a)", "`*a`: an expression does not unpack arguments; write each argument without *"),
    ("ta.add(**a)", "`ta.add(**a)`: an expression does not unpack arguments; write each argument without **"),
    ("ta.add(a, b, out=a)", "`ta.add(a, b, out=a)`: an expression cannot have the keyword 'out'; omit it"),
    ("ta.zeros(3, device='cuda')", "an expression cannot have the keyword 'device'; omit it"),
    ("a[b, (1, 2)]", "`(1, 2)`: a tuple can be an argument or an index"),
    ("a = b", "'a = b' is not an expression: "),
    ("import os", "'import os' is not an expression: invalid syntax"),
    ("a +", "'a +' is not an expression: invalid syntax"),
    ("", "'' is not an expression: invalid syntax"),
    ("a; b", "'a; b' is not an expression: invalid syntax"),
    ("a\0", "'a?' is not an expression: "),
    ("a + '\ud800'", "is not an expression: "),
    ("1if 1else 2", "'1if 1else 2' is not an expression: "),
    ("9" * 1000, "`" + "9" * 57 + "...`: an integer can have at most 128 bits; write a float, such as 2.0"),
    (
        "a" * 1_000_000,
        "expected an expression of at most 4000 characters, got 1000000; write several expressions",
    ),
    ("-" * 3000 + "1", "expected at most 100 nested operations, got more; write several expressions"),
    ("a" + " + a" * 900, "expected at most 100 nested operations, got more; write several expressions"),
    ("(" * 150 + "a" + ")" * 151, " is not an expression: "),
    ("[" * 120 + "]" * 120, "expected at most 100 nested operations"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:30] for text, _ in REFUSED])
def test_text_outside_of_the_grammar_is_an_error_before_the_computation(text: str, message: str):
    with pytest.raises(ExpressionError) as error:
        read(text, ARRAYS)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


FAILING = [
    ("9**9**9", "`9**9**9`: an integer can have at most 128 bits; write a float, such as 2.0"),
    ("1 << 10**30", "`1 << 10**30`: an integer can have at most 128 bits"),
    ("2**100 * 2**100", "`2**100 * 2**100`: an integer can have at most 128 bits"),
    ("1 / 0", "`1 / 0`: ZeroDivisionError: division by zero"),
    ("1e300 ** 10", "`1e300 ** 10`: OverflowError: "),
    ("1 @ 2", "`1 @ 2`: TypeError: "),
    ("a + ta.zeros(5)", "`a + ta.zeros(5)`: add: expected equal sizes, or 1, along axis -1 "),
    ("ta.add(a)", "`ta.add(a)`: TypeError: add: expected 2 operands, got 1"),
    ("a & b", "`a & b`: bitwise_and: expected dtypes of kind "),
    ("a[7]", "`a[7]`: "),
    ("(1).T", "`(1).T`: expected an array before .T, got a int; omit .T"),
    ("(1)[0]", "`(1)[0]`: expected an array before [...], got a int; index several arrays by an integer"),
    ("ta.meshgrid(b, b) * 1000000000", "expected arrays or numbers, got a tuple; write x[0], x[1], ... for its parts"),
    ("ta.meshgrid(b, b)[7]", "`ta.meshgrid(b, b)[7]`: IndexError: tuple index out of range"),
    ("ta.zeros(10**13)", "`ta.zeros(10**13)`: MemoryError"),
    ("ta.sqrt(ta.add(a, ta.ones(9)))", "`ta.add(a, ta.ones(9))`: add: expected equal sizes"),
]


@pytest.mark.parametrize(("text", "message"), FAILING)
def test_a_failing_step_is_quoted_with_the_reason(text: str, message: str):
    with pytest.raises(ExpressionError) as error:
        evaluate(text, ARRAYS)
    assert message in str(error.value)
    assert str(error.value).startswith("`")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["ta", "1a", "a b", "lambda", "a.T", ""])
def test_an_invalid_name_is_an_error(name: str):
    with pytest.raises(ExpressionError, match=f"'{name}' cannot be an array's name; write letters"):
        read("1", [name])


def test_quotations_are_short_and_printable():
    assert grammar.short("a\x1b[31m +\n\t b") == "a?[31m + b"
    assert grammar.short("x" * 100) == "x" * 57 + "..."


def test_names_are_those_used_in_order_and_steps_are_counted():
    found = read("b + sqrt(a.T[0]) * b - 2", ["a", "b", "c"])
    assert (found.names, found.steps) == (("b", "a"), 6)


def test_a_watch_sees_every_step_with_its_operands():
    seen: list[tuple[str, int]] = []

    def watch(part: str, operands: tuple[Any, ...], compute: Any) -> Any:
        seen.append((part, len(operands)))
        return compute()

    read("sqrt(a + 1)[0]", ARRAYS).evaluate(ARRAYS, watch)
    assert seen == [("a + 1", 2), ("sqrt(a + 1)", 1), ("sqrt(a + 1)[0]", 2)]


# --- the vocabulary -------------------------------------------------------------------------------------------------

CLOSED = {  # public functions that an expression does not call
    *("broadcast_shapes", "can_cast", "default_device", "devices", "empty", "empty_like", "finfo", "from_dlpack"),
    *("get_semantics", "iinfo", "isdtype", "promote_types", "result_type", "semantics", "set_default_device"),
    *("get_printoptions", "printoptions", "set_printoptions"),
    *("set_semantics", "set_transfer_guard", "to_device", "to_numpy", "__array_namespace_info__", "array_agnostic"),
    *("get_printoptions", "printoptions", "set_printoptions"),
    *("einsum", "explain_promotion", "to_cupy", "to_jax", "to_torch", "set_index_check", "fuse"),
    *("foreach", "lazy", "tiles"),
    *("draw", "evaluate", "explain", "pointwise"),
    *("grad", "jvp", "value_and_grad", "vjp"),
    *("quantize", "dequantize", "pack_float4", "unpack_float4", "scaled_matmul"),
    *("load_safetensors", "save_safetensors", "safetensors_metadata", "top_k"),
}


def test_every_public_function_is_open_or_closed_on_purpose():
    functions = {
        name
        for name in ta.__all__
        if callable(getattr(ta, name)) and not (isinstance(getattr(ta, name), type) and name[0].isupper())
    }
    closed = CLOSED | {name for name, module in names.MODULE_OF.items() if module != "aliases"}
    assert functions - set(vocabulary.FUNCTIONS) <= closed | {"ndarray"}
    assert not set(vocabulary.FUNCTIONS) & CLOSED


def test_every_keyword_is_open_or_closed_on_purpose():
    keywords = {
        parameter.name
        for function in vocabulary.FUNCTIONS.values()
        if inspect.isfunction(function)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    assert keywords - vocabulary.KEYWORDS <= {
        "a_max",
        "a_min",
        "assume_unique",
        "casting",
        "device",
        "kind",
        "mode",
        "order",
        "out",
        "retstep",
        "sparse",
        "x",
    }


def test_an_expression_writes_to_none_of_its_arrays():
    x = ta.asarray([np.nan, 1.0])
    with pytest.raises(ta.TileArrayError, match="copy"):
        ta.evaluate("nan_to_num(x, copy=0)", x=x)
    assert ta.evaluate("nan_to_num(x, 2)", x=x).tolist() == [2, 1]
    assert np.isnan(x[0].item())


def test_every_operation_of_the_table_is_there():
    assert set(ta.ops.PUBLIC) & set(ta.__all__) <= set(vocabulary.FUNCTIONS)


# --- random text ------------------------------------------------------------------------------------------------------

SOUP = r"""a b ta ta.sqrt sqrt ta.zeros (3) ( ) [ ] { } , : . .T .dtype .__class__ + - * ** / // % @ & | ^ ~ < == !=
<< >> not and or in is if else lambda for := = 0 1 9 1e3 1j 'float32' 'x' f'{a}' "" ... None True axis=0 out=a
__import__ __import__('os') open('/nowhere') eval exec print(a) globals() ta.pi ta.float32 ta.set_semantics yield await
; # \ é ª"""
PIECES = st.sampled_from([*SOUP.split(), " ", "\n", "\t", "\0", "\x1b"])
WATCHED = ("open", "exec", "import", "os.", "subprocess.", "socket.", "shutil.", "ctypes.", "marshal.", "pickle.")
events: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if events is None or not event.startswith(WATCHED):
        return
    if event == "exec" and arguments[0].co_filename.startswith("<tilearray host "):
        return  # the host backend's own text, at the first call of an operation
    events.append(event)


sys.addaudithook(_note)  # Python tells of every file, import and process; for this process' life, so off but in tests


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The first call of a process imports the backend."""
    evaluate("a * 2.0", ARRAYS)


def audited(text: str) -> tuple[Any, list[str]]:
    """Evaluate: the result or the ExpressionError, and what Python tells an auditor of meanwhile."""
    global events
    events = noted = []
    try:
        return evaluate(text, ARRAYS), noted
    except ExpressionError as error:
        return error, noted
    finally:
        events = None


ABSENT = (ast.Lambda, ast.comprehension, ast.JoinedStr, ast.NamedExpr, ast.Starred, ast.BoolOp, ast.IfExp, ast.Dict)


def refused_or_computed(text: str) -> None:
    """What is computed is within the grammar; what is not is an ExpressionError; neither opens or imports anything."""
    found, noted = audited(text)
    assert noted == []
    if isinstance(found, ExpressionError):
        assert "\n" not in str(found)
        return
    assert isinstance(found, (ta.Array, bool, int, float, complex, tuple, list))
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        assert not isinstance(node, ABSENT)
        if isinstance(node, ast.Attribute):
            assert node.attr == "T" or (isinstance(node.value, ast.Name) and node.value.id == "ta")
        if isinstance(node, ast.Name):
            assert node.id in {"a", "b", "ta", *vocabulary.FUNCTIONS}


def test_the_auditor_would_hear_of_an_import_and_a_file():
    global events
    events = []
    try:
        eval("(__import__('os'), open('/dev/null').close())")
        assert {"import", "open"} <= set(events) or "open" in events
    finally:
        events = None


@settings(max_examples=500)
@given(st.text(max_size=40))
def test_random_text_is_an_expression_or_an_expression_error(text: str):
    refused_or_computed(text)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=12))
def test_random_pieces_of_python_are_expressions_or_expression_errors(pieces: list[str]):
    refused_or_computed("".join(pieces))
    refused_or_computed(" ".join(pieces))


HARMFUL = st.sampled_from(
    ["__import__('os')", "a.dtype", "open('x')", "ta.set_semantics('triton')", "().__class__", "(lambda: a)()", "c"]
)


@given(st.recursive(st.one_of(st.sampled_from(["a", "b"]), HARMFUL), combined, max_leaves=5))
def test_an_expression_with_a_harmful_part_computes_nothing(text: str):
    harmful = any(part in text for part in ("__", "dtype", "open", "set_", "lambda", "c[", "c)", "c ", "c,", "c."))
    computed: list[str] = []
    try:
        read(text, ARRAYS).evaluate(ARRAYS, lambda part, operands, compute: computed.append(part) or compute())
    except ExpressionError:
        if harmful:
            assert computed == []
        return
    assert not harmful

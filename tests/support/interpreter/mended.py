"""Triton's interpreter, corrected to the behaviour of the hardware.

Corrected are the functions of libdevice that IEEE 754 or C defines exactly, the conversions of bfloat16, ``~`` of
unsigned integers, and the order of 0.0 and -0.0. It is stricter than the hardware: a kernel may not shift, divide or
convert where LLVM leaves the result undefined, and every claim that a value is a multiple of a number must be true.
"""

from __future__ import annotations

import ast
import atexit
import dataclasses
import gc
import linecache
import textwrap
from types import CodeType, FunctionType
from typing import Any

import ml_dtypes
import numpy as np

from support.interpreter import rounding


class FaultError(Exception):
    """A kernel read or wrote what it should not have, left something unwritten, or computed what is undefined."""


def of_the_host(name: str) -> Any:
    """A function of the host backend."""
    from tilearray_host.functions import FUNCTIONS

    def apply(*operands: np.ndarray) -> np.ndarray:
        out = np.empty(np.broadcast_shapes(*[operand.shape for operand in operands]), operands[0].dtype)
        FUNCTIONS[name](*operands, out=out)
        return out

    return apply


def _sine_of_pi(x: np.ndarray) -> np.ndarray:
    """``sin(pi x)``, at integers a zero of the sign of x."""
    whole = np.rint(x)
    sine = np.sin(np.pi * (x - whole)) * np.where(np.fmod(whole, 2), -1, 1).astype(x.dtype)
    return np.where(x == whole, np.copysign(sine, x), sine)


def _saturated(dtype: str) -> Any:
    """The conversion of PTX to an integer of 32 bits, which saturates and takes NaN for 0; a word without a sign."""
    limits = np.iinfo(dtype)

    def apply(x: np.ndarray) -> np.ndarray:
        whole = np.clip(np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0)), limits.min, limits.max)
        return whole.astype(dtype).view(np.int32)

    return apply


_FUNCTIONS: dict[str, Any] = {
    **{name: of_the_host(name) for name in ("hypot", "pow", "erf", "erfc", "erfinv", "lgamma", "fma")},
    "tgamma": of_the_host("gamma"),
    "normcdf": of_the_host("ndtr"),
    "div_rn": np.divide,
    "mul_rn": np.multiply,
    "rcp_rn": np.reciprocal,
    "rcp64h": np.reciprocal,
    "ldexp": np.ldexp,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ilogb": lambda x: np.frexp(x)[1] - np.int32(1),
    "sinpi": _sine_of_pi,
    "float2int_rz": _saturated("int32"),
    "float2uint_rz": _saturated("uint32"),
    "popc": lambda x: np.bitwise_count(x.view(f"u{x.itemsize}")).astype(np.int32),
}
"""Functions of libdevice that NumPy does not have under C's name, or computes otherwise.

They are exact if IEEE 754 or C defines the result. Otherwise they are accurate enough to show that a kernel calls the
right function on the right operands.
"""
_OTHER_RESULTS = ("remainder", "isnan", "isinf", "signbit")
"""Functions that NumPy defines otherwise than C: the remainder has another sign, the others return bool, not int32."""


def _functions(libdevice: Any) -> dict[str, Any]:
    """Return functions of libdevice by name: `_FUNCTIONS`, and each ufunc of NumPy that has the name of C's function.

    The array API's names are C's names: ``np.atan2`` is ``atan2``.
    """
    shared = {name: getattr(np, name, None) for name in vars(libdevice) if name not in _OTHER_RESULTS}
    return {name: ufunc for name, ufunc in shared.items() if isinstance(ufunc, np.ufunc)} | _FUNCTIONS


def mend(interpreter: Any, tl: Any) -> None:
    """Put right what the interpreter does not do as the hardware does."""
    from triton.language import standard
    from triton.language.extra import libdevice

    if hasattr(libdevice, "mended"):
        return
    libdevice.mended = True
    interpreter._patch_lang(standard.max.fn)  # a launch prepares the module that kernels name, not that of `tl.max`
    _remember_types(tl)
    _broadcast_unlike_shapes(interpreter)
    _rewrite_once(interpreter)
    for name, function in _functions(libdevice).items():
        setattr(libdevice, name, _on_tensors(function, interpreter, tl))
    rounding.mend(interpreter, tl, libdevice)
    original, to_tensor = interpreter.InterpreterBuilder.cast_impl, interpreter.interpreter_semantic.to_tensor

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        pair = src.dtype.scalar, dst_type.scalar
        if pair == (tl.float32, tl.bfloat16):
            return interpreter.TensorHandle(src.data.astype(ml_dtypes.bfloat16).view(np.uint16), tl.bfloat16)
        if pair == (tl.bfloat16, tl.float32):
            return interpreter.TensorHandle(src.data.view(ml_dtypes.bfloat16).astype(np.float32), tl.float32)
        return original(self, src, dst_type)

    def create_dot(self: Any, a: Any, b: Any, d: Any, *precision: Any) -> Any:
        """Narrow floats are multiplied and added up in the dtype of the sum."""
        kind = d.data.dtype
        x, y = (cast_impl(self, each, tl.float32) if each.dtype.scalar == tl.bfloat16 else each for each in (a, b))
        return interpreter.TensorHandle(x.data.astype(kind) @ y.data.astype(kind) + d.data, d.dtype.scalar)

    def get_all_ones_value(self: Any, kind: Any) -> Any:
        return interpreter.TensorHandle(~np.zeros(1, interpreter._get_np_dtype(kind)), kind.scalar)

    def of_any(value: Any, check_type: bool = True) -> Any:
        """An assignment of several values makes tensors of each, as the compiler does."""
        return tuple(map(to_tensor, value)) if isinstance(value, tuple) else to_tensor(value, check_type)

    def call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Without preparing Triton's whole language again, which the launch has done."""
        return self.rewrite()(*args, **kwargs)

    generic_reduce = interpreter.ReduceOps.generic_reduce

    def reduce(self: Any, given: Any) -> Any:
        """All rows at once, in the order of the interpreter, which calls the function for each pair of elements."""
        if self.axis is None:
            return generic_reduce(self, given)
        kinds = [each.dtype for each in given]
        steps = zip(*[np.moveaxis(each.handle.data, self.axis, 0) for each in given], strict=True)
        found = list(map(self.to_tensor, next(steps), kinds))
        for step in steps:
            combined = self.combine_fn.fn(*found, *map(self.to_tensor, step, kinds))
            found = list(combined) if isinstance(combined, tuple) else [combined]
        shape = list(given[0].handle.data.shape)
        del shape[self.axis]
        whole = [each.handle.data.reshape(shape) for each in found]
        if self.keep_dims:
            whole = [np.expand_dims(each, self.axis) for each in whole]
        return list(map(self.to_tensor, whole, kinds))

    interpreter.ReduceOps.generic_reduce = reduce

    def set_attr(self: Any, key: str, values: Any) -> None:
        step = self.dtype.element_ty.primitive_bitwidth // 8 if self.dtype.is_ptr() else 1
        for axis, value in enumerate(np.atleast_1d(values) if np.ndim(self.data) else ()):
            if not _HINTS[key](np.moveaxis(np.asarray(self.data), axis, -1), int(value), step):
                raise FaultError(f"the kernel says {key} of {value} along axis {axis} of values that have it not")
        if not np.ndim(self.data) and key == "tt.divisibility" and self.data % np.max(values):
            raise FaultError(f"the kernel says {key} of {values} of a value that has it not")

    for name, ufunc in (("create_maximumf", np.maximum), ("create_minimumf", np.minimum)):
        setattr(interpreter.InterpreterBuilder, name, _of_signed_zeros(ufunc))
    for name, undefined in _UNDEFINED.items():
        setattr(
            interpreter.InterpreterBuilder, name, _defined(getattr(interpreter.InterpreterBuilder, name), undefined)
        )
    for name in ("create_fp_to_si", "create_fp_to_ui"):
        setattr(interpreter.InterpreterBuilder, name, _truncated(cast_impl, interpreter))
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)  # an assertion that is never made
    interpreter.InterpretedFunction.__call__ = call_device_function
    interpreter.TensorHandle.set_attr = set_attr
    interpreter.InterpreterBuilder.cast_impl = cast_impl
    interpreter.InterpreterBuilder.create_dot = create_dot
    interpreter.InterpreterBuilder.get_all_ones_value = get_all_ones_value
    interpreter.interpreter_semantic.to_tensor = of_any
    gc.freeze()  # full collections need not walk over Triton, whose end reports what is not collected
    atexit.register(gc.unfreeze)


def _remember_types(tl: Any) -> None:
    """Compute the attributes of block types and tensors once each, which saves a third of the interpreter's time."""
    blocks: dict[Any, dict[str, Any]] = {}
    tensors: dict[Any, dict[str, Any]] = {}
    make_block, make_tensor = tl.block_type.__init__, tl.tensor.__init__

    def block(self: Any, element_ty: Any, shape: Any) -> None:
        key = element_ty.name, *[getattr(extent, "value", extent) for extent in shape]
        if key not in blocks:
            make_block(self, element_ty, shape)
            blocks[key] = dict(vars(self))
        vars(self).update(blocks[key])

    def tensor(self: Any, handle: Any, type: Any) -> None:
        if type.name not in tensors:
            make_tensor(self, handle, type)
            tensors[type.name] = {name: vars(self)[name] for name in ("shape", "numel", "type", "dtype")}
        self.handle = handle
        vars(self).update(tensors[type.name])

    tl.block_type.__init__, tl.tensor.__init__ = block, tensor


def _broadcast_unlike_shapes(interpreter: Any) -> None:
    """Leave blocks of one shape as they are, without a comparison of each extent."""
    broadcast = interpreter.interpreter_semantic.broadcast_impl_value

    def broadcast_impl_value(x: Any, y: Any) -> Any:
        alike = x.type.is_block() and y.type.is_block() and x.handle.data.shape == y.handle.data.shape
        return (x, y) if alike else broadcast(x, y)

    interpreter.interpreter_semantic.broadcast_impl_value = broadcast_impl_value


def _rewrite_once(interpreter: Any) -> None:
    """Rewrite equal functions once, since the text of each kernel has copies of the library's functions."""
    codes: dict[CodeType, CodeType] = {}
    rewriter = interpreter.FunctionRewriter

    def rewrite_ast(self: Any) -> Any:
        fn = self.fn
        key = fn.__code__.replace(co_filename="", co_firstlineno=1)
        if key not in codes:
            codes[key] = _rewritten(fn.__code__, rewriter.ast_transformer)
        for name, value in vars(interpreter).items():
            fn.__globals__.setdefault(name, value)
        found = FunctionType(codes[key], fn.__globals__, fn.__name__, fn.__defaults__)
        found.__annotations__, found.__kwdefaults__ = fn.__annotations__, fn.__kwdefaults__
        return found

    rewriter.rewrite_ast = rewrite_ast


def _rewritten(code: CodeType, transformer: ast.NodeTransformer) -> CodeType:
    """The code of a function whose assignments and chained comparisons call the interpreter."""
    last = max(end for _, end, *_ in code.co_positions() if end)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : last]
    tree: Any = ast.parse(textwrap.dedent("".join(lines)))
    tree.body[0].decorator_list = []
    module = compile(ast.fix_missing_locations(transformer.visit(tree)), code.co_filename, "exec")
    return next(each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == code.co_name)


def _of_signed_zeros(ufunc: np.ufunc) -> Any:
    """A maximum or minimum of floats for which -0.0 is less than 0.0, as PTX defines them."""
    signs = np.logical_and if ufunc is np.maximum else np.logical_or

    def apply(self: Any, lhs: Any, rhs: Any) -> Any:
        found = self.binary_op(lhs, rhs, ufunc)
        x, y = lhs.data, rhs.data
        zeros = (x == 0) & (y == 0)
        negative = np.where(signs(np.signbit(x), np.signbit(y)), -0.0, 0.0).astype(found.data.dtype)
        found.data = np.where(zeros, negative, found.data)
        return found

    return apply


def _are_multiples(data: np.ndarray, value: int, step: int) -> bool:
    """Whether all are, or the first of every run of so many."""
    if not (data % np.array(value, data.dtype)).any():
        return True
    starts = data[..., :: max(value // step, 1)]
    return _are_runs(data, max(value // step, 1), step) and not (starts % np.array(value, data.dtype)).any()


def _are_runs(data: np.ndarray, value: int, step: int) -> bool:
    runs = _in_groups(data, value)
    return bool((np.diff(runs.astype(np.int64), axis=-1) == step).all())


def _are_alike(data: np.ndarray, value: int, step: int) -> bool:
    runs = _in_groups(data, value)
    return bool((runs == runs[..., :1]).all())


def _in_groups(data: np.ndarray, count: int) -> np.ndarray:
    count = min(count, data.shape[-1])
    return data.reshape(*data.shape[:-1], data.shape[-1] // count, count)


_HINTS = {"tt.divisibility": _are_multiples, "tt.contiguity": _are_runs, "tt.constancy": _are_alike}
"""What a kernel says of values to the compiler, and whether it is so, along the last axis, of so many neighbours."""


def _shifts_out(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(((y < 0) | (y >= 8 * x.itemsize)).any())


def _divides_badly(x: np.ndarray, y: np.ndarray) -> bool:
    smallest = np.iinfo(x.dtype).min
    return bool(((y == 0) | ((x == smallest) & (y == -1) & (smallest < 0))).any())


_UNDEFINED = {
    **dict.fromkeys(("create_shl", "create_lshr", "create_ashr"), _shifts_out),
    **dict.fromkeys(("create_sdiv", "create_udiv", "create_srem", "create_urem"), _divides_badly),
}
"""Integer operations, and for which operands LLVM leaves them undefined; NumPy has some value for all."""


def _defined(operation: Any, undefined: Any) -> Any:
    def apply(self: Any, lhs: Any, rhs: Any) -> Any:
        if undefined(lhs.data, rhs.data):
            raise FaultError("the kernel shifts or divides where the result is undefined")
        return operation(self, lhs, rhs)

    return apply


def _truncated(cast_impl: Any, interpreter: Any) -> Any:
    def apply(self: Any, src: Any, dst_type: Any) -> Any:
        limits, whole = np.iinfo(interpreter._get_np_dtype(dst_type)), np.trunc(src.data.astype(np.float64))
        if not ((whole >= float(limits.min)) & (whole < float(limits.max + 1))).all():
            raise FaultError("the kernel makes an integer of a float beyond its range")
        return cast_impl(self, src, dst_type)

    return apply


def _on_tensors(function: Any, interpreter: Any, tl: Any) -> Any:
    def apply(*given: Any) -> Any:
        """What a function gives for tensors and numbers; the first one is a tensor."""
        number = given[0].handle.data.dtype.type
        tensors = [each for each in given if not isinstance(each, float)]
        found = function(*[number(each) if isinstance(each, float) else each.handle.data for each in given])
        like = max(tensors, key=lambda tensor: tensor.handle.data.size).type
        scalar = tensors[0].dtype if found.dtype == tensors[0].handle.data.dtype else tl.int32
        kind = tl.block_type(scalar, like.shape) if like.is_block() else scalar
        return tl.tensor(interpreter.TensorHandle(found, scalar), kind)

    return apply

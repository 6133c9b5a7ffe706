"""Operands for which roundings go wrong: ties and their neighbours, the edges of the range, denormals, cancellation.

`operands` and `sources` use tests/support/oracles/rounding.py; the same seed gives the same values.
"""

from __future__ import annotations

import numpy as np

from support.oracles import rounding as exact
from support.oracles.formats import FORMATS, dtype_of, kind_of, limits_of
from support.oracles.rounding import Array

ARITY = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "sqrt": 1, "fma": 3}


def operands(op: str, name: str, count: int, seed: int = 0) -> tuple[Array, ...]:
    """`count` rows of operands of a dtype for ``add``, ``subtract``, ``multiply``, ``divide``, ``sqrt`` or ``fma``."""
    rng = np.random.default_rng([seed, *op.encode(), *name.encode()])
    arity = ARITY[op]
    places = rng.integers(0, special(name).size, (arity, max(count // 10, 1)))
    groups = [tuple(special(name)[place] for place in places)]
    size = count // 8 + 1
    groups.append(tuple(patterns(name, size, rng) for _ in range(arity)))
    groups.append(tuple(numbers(name, size, rng, span=4) for _ in range(arity)))
    groups += {"subtract": _for_sums, "add": _for_sums, "multiply": _for_products, "divide": _for_quotients}.get(
        op, _for_roots if op == "sqrt" else _for_fused
    )(name, size, rng)
    columns = [np.concatenate(column) for column in zip(*groups, strict=True)]
    if op == "subtract":
        columns[1] = exact.negated(columns[1])
    order = rng.permutation(columns[0].size)
    order = np.resize(order, count)
    return tuple(column[order] for column in columns)


def sources(source: str, target: str, count: int, seed: int = 0) -> Array:
    """`count` values of a dtype, a third of them on and next to what lies between two values of the target."""
    rng = np.random.default_rng([seed, *source.encode(), *target.encode()])
    third = count // 3 + 1
    lower = patterns(target, third, rng).view(f"u{dtype_of(target).itemsize}") if target in FORMATS else None
    parts = [patterns(source, third, rng)]
    if lower is not None:
        with np.errstate(all="ignore"):
            below, above = ((lower + lower.dtype.type(k)).view(dtype_of(target)).astype(np.float64) for k in (0, 1))
            largest = FORMATS[target].largest
            last = np.array([1, 1 - 2.0**-12, 1 + 2.0 ** -FORMATS[target].precision, 2]) * largest / 1.0
            between = np.concatenate([below / 2 + above / 2, below, np.resize(last, third // 8 + 1)])
        if kind_of(source) == "int":
            low, high = limits_of(source)
            near = np.clip(np.nan_to_num(between, nan=0.0), float(low), float(high))
            inside = near.astype(np.longdouble).clip(low, high).astype(dtype_of(source))
            parts.append(moved(inside, rng))
        else:
            parts.append(moved(exact.cast(np.array(between), source), rng))
    if kind_of(source) == "float":
        parts.append(special(source)[rng.integers(0, special(source).size, third)])
        parts.append(
            moved(exact.cast(np.ldexp(1.0, rng.integers(0, 65, third)) * rng.choice([1, -1], third), source), rng)
        )
    found = np.concatenate(parts)
    return found[np.resize(rng.permutation(found.size), count)]


# --- numbers ------------------------------------------------------------------------------------------------------


def special(name: str) -> Array:
    """Zeros, ones, the ends of the denormals and of the range, infinities, and NaNs of several payloads."""
    dtype, fmt = dtype_of(name), FORMATS[name]
    least = 2.0**fmt.lowest
    normal = least * 2.0 ** (fmt.precision - 1)
    values = [0.0, least, 2 * least, 3 * least, normal - least, normal, normal + least, 0.5, 1.0, 1.5, 2.0, 3.0]
    values += [1 + 2.0 ** (1 - fmt.precision), 1 - 2.0**-fmt.precision, fmt.largest, fmt.largest / 2, np.inf]
    with np.errstate(all="ignore"):
        found = np.array(values).astype(dtype)
        found = np.concatenate([found, np.array([np.nan], dtype), exact.negated(found[1:2])])
    if name in ("float16", "bfloat16", "float32", "float64"):
        bits = found.view(f"u{dtype.itemsize}")
        infinity = np.array([np.inf], dtype).view(bits.dtype)
        payloads = infinity + np.array([1, 3, 2 ** (fmt.precision - 2) + 5], bits.dtype)
        found = np.concatenate([bits, payloads]).view(dtype)
    return np.concatenate([found, exact.negated(found)])


def patterns(name: str, count: int, rng: np.random.Generator) -> Array:
    """Any bits."""
    dtype = dtype_of(name)
    raw = rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8)
    return (raw & 1).astype(np.bool_).reshape(-1) if name == "bool" else raw.view(dtype).reshape(-1)


def numbers(
    name: str,
    count: int,
    rng: np.random.Generator,
    span: int | None = None,
    bits: Array | int | None = None,
    exponents: Array | int = 0,
) -> Array:
    """Odd integers of some bits, of either sign, their leading bit at some exponents: any within `span` around them."""
    precision = FORMATS[name].precision
    bits = np.broadcast_to(precision if bits is None else bits, count).astype(np.int64)
    whole = (rng.integers(0, 2**62, count) >> (62 - bits)) | 1 | (np.int64(1) << (bits - 1))
    exponents = exponents + rng.integers(-(span or 0), (span or 0) + 1, count)
    with np.errstate(all="ignore"):
        found = np.ldexp(whole * rng.choice(np.array([1.0, -1.0]), count), (exponents - bits + 1).astype(np.int32))
    return exact.cast(found, name)


def moved(x: Array, rng: np.random.Generator, by: int = 1) -> Array:
    """The neighbours of values, at most so many steps away."""
    bits = x.view(f"u{x.itemsize}")
    with np.errstate(all="ignore"):
        return (bits + rng.integers(-by, by + 1, x.size).astype(bits.dtype)).view(x.dtype)


def _limits(name: str) -> tuple[int, int]:
    """The exponents of the smallest and the largest number."""
    return FORMATS[name].lowest, int(np.log2(FORMATS[name].largest))


# --- by operation -------------------------------------------------------------------------------------------------


def _for_sums(name: str, size: int, rng: np.random.Generator) -> list[tuple[Array, ...]]:
    precision, (low, high) = FORMATS[name].precision, _limits(name)
    x = numbers(name, size, rng, exponents=rng.integers(low + precision + 1, high, size))
    exponent = np.frexp(x.astype(np.float64))[1] - 1
    half = numbers(name, size, rng, bits=1, exponents=exponent - precision)
    top = moved(np.full(size, FORMATS[name].largest).astype(x.dtype), rng, 2)
    end = moved(numbers(name, size, rng, bits=1, span=1, exponents=high - precision), rng)
    small = numbers(name, size, rng, span=precision, exponents=low + precision)
    wide = numbers(name, size, rng, exponents=exponent - rng.integers(0, 2 * precision, size))
    groups = [(x, moved(half, rng)), (half, x), (x, moved(exact.negated(x), rng, 4)), (x, exact.negated(x))]
    return [
        *groups,
        (top, end),
        (exact.negated(top), end),
        (small, moved(small, rng, 3)),
        (small, small[::-1]),
        (x, wide),
    ]


def _for_products(name: str, size: int, rng: np.random.Generator) -> list[tuple[Array, ...]]:
    precision, (low, high) = FORMATS[name].precision, _limits(name)
    bits = rng.integers(1, precision + 1, size)
    groups = []
    for total in (0, low, low + precision, high):  # with p + 1 bits in all, every other product is a tie
        x_at = rng.integers(-precision, precision, size) + total // 2
        x = numbers(name, size, rng, bits=bits, exponents=x_at)
        y = numbers(name, size, rng, bits=precision + 1 - bits, span=1, exponents=total - x_at)
        groups += [(x, y), (moved(x, rng), y)]
        x = numbers(name, size, rng, exponents=x_at)
        groups.append((x, numbers(name, size, rng, span=2, exponents=total - x_at)))
    return groups


def _for_quotients(name: str, size: int, rng: np.random.Generator) -> list[tuple[Array, ...]]:
    groups = []
    for quotient, divisor in _for_products(name, size // 2 + 1, rng):
        product = exact.multiply(quotient, divisor)
        groups += [(product, divisor), (moved(product, rng), divisor), (quotient, divisor)]
    precision, (low, high) = FORMATS[name].precision, _limits(name)
    for total in (low, low + precision - 1, high):
        bits = rng.integers(1, precision + 1, size)
        x = numbers(name, size, rng, bits=bits, exponents=total // 2)
        power = numbers(name, size, rng, bits=1, span=3, exponents=total // 2 - total)
        groups += [(x, power), (x, moved(power, rng))]
    return groups


def _for_roots(name: str, size: int, rng: np.random.Generator) -> list[tuple[Array, ...]]:
    precision, (low, high) = FORMATS[name].precision, _limits(name)
    groups = []
    for bits in (precision // 2, precision):
        root = np.abs(numbers(name, size, rng, bits=bits, exponents=rng.integers(low // 2, high // 2, size)))
        groups += [(moved(exact.multiply(root, root), rng),), (exact.multiply(root, root),)]
        between = moved(root, rng)
        groups.append((moved(exact.multiply(root, between), rng, 2),))
    return [*groups, (np.abs(numbers(name, size, rng, span=precision, exponents=low + precision)),)]


def _for_fused(name: str, size: int, rng: np.random.Generator) -> list[tuple[Array, ...]]:
    precision, (low, high) = FORMATS[name].precision, _limits(name)
    groups: list[tuple[Array, ...]] = []
    for x, y in _for_products(name, size // 2 + 1, rng):
        product = exact.multiply(x, y)
        exponent = np.frexp(np.nan_to_num(product.astype(np.float64), posinf=1, neginf=1))[1] - 1
        far = numbers(
            name, x.size, rng, bits=1, exponents=exponent - rng.integers(precision - 2, 2 * precision + 3, x.size)
        )
        tiny = numbers(name, x.size, rng, span=1, bits=1, exponents=low + 1)
        groups += [(x, y, moved(exact.negated(product), rng, 2)), (x, y, far), (x, y, moved(far, rng)), (x, y, tiny)]
        above = numbers(
            name, x.size, rng, exponents=np.minimum(exponent + rng.integers(1, precision + 3, x.size), high)
        )
        groups.append((x, y, above))
    return groups

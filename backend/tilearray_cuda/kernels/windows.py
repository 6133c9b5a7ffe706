"""The text of sums over windows: places beyond the ends of the longer array do not count.

A thread keeps the sums of its neighbouring places. It takes elements of the shorter array a few at a time: where all
windows of the program lie inside, it reads as many elements of the longer array as it takes, as vectors, and keeps the
others from the step before; elsewhere each product has a mask. So nothing is multiplied that does not count: a NaN or
an infinity beside it does no harm. Steps begin where the elements of the longer array are aligned, which may be before
the first that count.
"""

from __future__ import annotations

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.schedules.windows import PLACES, Windows
from tilearray_cuda.kernels.storage import STORAGE

AT_ONCE, VECTOR = 4, 16
"""The neighbours of the longer array that a thread reads at once, and the most bytes."""


def windowed(schedule: Windows) -> list[str]:
    """Return the lines of a kernel after its setup."""
    spec = schedule.spec
    number, node = schedule.node()
    _, _, _, dtype, conjugated, *numbers = node
    (arm,) = schedule.arms()
    loads, values = computed(schedule, arm.branch, numbers)
    size, count, before, step = (values[each][0][0] for each in numbers)
    parts = 2 if STORAGE[dtype].kind == "complex" else 1
    register = STORAGE[dtype].register
    totals = [tuple([f"total{place}_{part}" for part in range(parts)]) for place in range(PLACES)]
    window = 2 * PLACES
    n1 = "n1" if spec.rank > 1 else "1"
    share = f"(({count} + {n1} * {PLACES} - 1) // ({n1} * {PLACES}) * {PLACES})"
    first = f"i1 * {share}" if spec.rank > 1 else "0"

    def longer(place: int, mask: str | None, tag: str) -> tuple[list[str], Value]:
        """The lines that read an element of the longer array for each thread, and the value."""
        return _element(schedule, node[1], f"(at + {place})", mask, f"_{tag}{place}")

    def shorter(place: int, mask: str | None, tag: str) -> tuple[list[str], Value]:
        """The same of the shorter array, one element for all threads."""
        return _element(schedule, node[2], f"((k + {place}) * {step})", mask, f"_{tag}{place}")

    at = f"at = lane + tl.multiple_of(k - {before}, {PLACES})"
    names = [tuple([f"window{place}_{part}" for part in range(parts)]) for place in range(window)]
    begin = [at]
    reads = [at]
    element = spec.operands[spec.outputs + spec.nodes[node[1][1]][1]]
    at_once = min(AT_ONCE, VECTOR // element.itemsize)
    for place in range(0, window, at_once):
        mask, parted = ("whole" if place < PLACES else None), names[place : place + at_once]
        lines = _neighbours(schedule, node[1], place, mask, parted)
        (begin if place < PLACES else reads).extend(lines)
    adds: list[str] = []
    for place in range(PLACES):
        lines, value = shorter(place, None, "whole")
        reads += lines
        for total, other in zip(totals, names[place:]):
            adds += [f"{name} = {new}" for name, new in zip(total, _sums(total, value, other, conjugated), strict=True)]
    moves = [
        f"{name} = {later}"
        for place in range(PLACES)
        for name, later in zip(names[place], names[place + PLACES], strict=True)
    ]

    edge = [at, *[f"counts{place} = (at + {place} >= 0) & (at + {place} < {size})" for place in range(window - 1)]]
    edge += [f"takes{place} = (k + {place} >= begin) & (k + {place} < stop)" for place in range(PLACES)]
    others = [longer(place, f"counts{place}", "edge") for place in range(window - 1)]
    taken = [shorter(place, f"takes{place}", "one") for place in range(PLACES)]
    for lines, _ in [*others, *taken]:
        edge += lines
    for place, (_, value) in enumerate(taken):
        for own, total in enumerate(totals):
            new = _sums(total, value, others[place + own][1], conjugated)
            mask = f"counts{place + own} & takes{place}"
            edge += [f"{name} = tl.where({mask}, {one}, {name})" for name, one in zip(total, new, strict=True)]

    inside = (
        f"(k >= begin) & (k + {PLACES} <= stop) & (k + start >= {before}) & "
        f"(k + start + (BLOCK + {PLACES}) <= {size} + {before})"
    )
    lines, results = computed(
        schedule,
        arm.branch,
        range(number + 1, len(spec.nodes)),
        {number: (tuple([_joined([total[part] for total in totals]) for part in range(parts)]), dtype)},
    )
    return [
        *loads,
        *[f"{name} = tl.zeros((BLOCK // {PLACES},), {register})" for total in totals for name in total],
        f"begin = tl.maximum({first}, {before} - (start + (BLOCK - 1)))",
        f"k = begin - (begin + ({PLACES} - 1) * {before}) % {PLACES}",
        f"stop = tl.minimum(tl.minimum({first} + {share}, {count}), {size} + {before} - start)",
        "while k < stop:",
        *indented(
            [
                f"whole = {inside}",
                *begin,
                f"while {inside}:",
                *indented([*reads, *adds, *moves, f"k += {PLACES}"]),
                *edge,
                f"k += {PLACES}",
            ]
        ),
        *lines,
        *stored(schedule, arm.branch, results),
    ]


def _element(
    schedule: Windows, chain: tuple[int, ...], place: str, mask: str | None, tag: str, position: str = "lane"
) -> tuple[list[str], Value]:
    """Return the lines that read elements at a place, and the values of the last node of a chain."""
    node, *nodes = chain
    (arm,) = schedule.arms()
    at: Values = {node: ((place,), "int64")}
    lines, values = computed(schedule, arm.branch._replace(mask=mask, position=position, tag=tag), nodes, at)
    return lines, values[chain[-1]][0]


def _neighbours(
    schedule: Windows, chain: tuple[int, ...], first: int, mask: str | None, names: list[Value]
) -> list[str]:
    """Return the lines that read neighbours of each thread from a place on, as one vector if it is aligned."""
    count = len(names)
    place, position = f"(at + {first})", "lane"
    if count > 1:
        place, position = f"(at[:, None] + {first} + tl.arange(0, {count})[None, :])", "lane[:, None]"
    lines, value = _element(schedule, chain, place, mask, f"_whole{first}", position)
    for part, one in enumerate(value):
        lines += _apart(one, [name[part] for name in names])
    return lines


def _apart(block: str, names: list[str]) -> list[str]:
    """Return the lines that give names to the elements of each thread."""
    if len(names) == 1:
        return [f"{names[0]} = {block}"]
    if len(names) == 2:
        return [f"{', '.join(names)} = tl.split({block})"]
    even, odd = f"{names[0]}_even", f"{names[0]}_odd"
    line = f"{even}, {odd} = tl.split(tl.reshape({block}, (BLOCK // {PLACES}, 2, 2)))"
    return [line, *_apart(even, names[::2]), *_apart(odd, names[1::2])]


def _sums(total: Value, short: Value, long: Value, conjugated: str) -> Value:
    """Return the sums of totals and products."""
    if len(total) == 1:
        return (f"{total[0]} + {short[0]} * {long[0]}",)
    (re, im), (a, b), (c, d) = total, short, long
    signs = {"": "-++", "short": "++-", "long": "+-+"}[conjugated]
    return f"{re} + {a} * {c} {signs[0]} {b} * {d}", f"{im} {signs[1]} {a} * {d} {signs[2]} {b} * {c}"


def _joined(names: list[str]) -> str:
    """Return the values of neighbours of each thread in their order."""
    return f"tl.reshape({_pairs(names)}, (BLOCK,))"


def _pairs(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"tl.join({_pairs(names[::2])}, {_pairs(names[1::2])})"

"""The text of sums over windows: places beyond the ends of the longer array do not count.

A thread keeps the sums of its neighbouring places. It takes elements of the shorter array a few at a time: where all
windows of the program lie inside, it reads as many elements of the longer array as it takes, and keeps the others from
the step before; elsewhere each product has a mask. So nothing is read, or multiplied, that does not count: a NaN or an
infinity beside it does no harm.
"""

from __future__ import annotations

from tilearray_cuda.kernels.casts import Value
from tilearray_cuda.kernels.expression import Values, computed, indented, stored
from tilearray_cuda.kernels.schedules.windows import PLACES, Windows
from tilearray_cuda.kernels.storage import STORAGE


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
    kept, window = PLACES - 1, 2 * PLACES - 1
    n1 = "n1" if spec.rank > 1 else "1"
    share = f"(({count} + {n1} * {PLACES} - 1) // ({n1} * {PLACES}) * {PLACES})"
    first = f"i1 * {share}" if spec.rank > 1 else "0"

    def longer(place: int, mask: str | None, tag: str) -> tuple[list[str], Value]:
        """The lines that read an element of the longer array for each thread, and the value."""
        return _element(schedule, node[1], f"(at + {place})", mask, f"_{tag}{place}")

    def shorter(place: int, mask: str | None, tag: str) -> tuple[list[str], Value]:
        """The same of the shorter array, one element for all threads."""
        return _element(schedule, node[2], f"((k + {place}) * {step})", mask, f"_{tag}{place}")

    at = f"at = lane + (k - {before})"
    begin = [at]
    reads = [at]
    adds: list[str] = []
    names: list[Value] = []
    for place in range(window):
        lines, value = longer(place, "whole" if place < kept else None, "whole")
        names.append(tuple([f"window{place}_{part}" for part in range(parts)]))
        lines += [f"{name} = {one}" for name, one in zip(names[-1], value, strict=True)]
        (begin if place < kept else reads).extend(lines)
    for place in range(PLACES):
        lines, value = shorter(place, None, "whole")
        reads += lines
        for total, other in zip(totals, names[place:]):
            adds += [f"{name} = {new}" for name, new in zip(total, _sums(total, value, other, conjugated), strict=True)]
    moves = [
        f"{name} = {later}"
        for place in range(kept)
        for name, later in zip(names[place], names[place + PLACES], strict=True)
    ]

    edge = [at, *[f"counts{place} = (at + {place} >= 0) & (at + {place} < {size})" for place in range(window)]]
    others = [longer(place, f"counts{place}", "edge") for place in range(window)]
    taken = [shorter(place, f"(k + {place} < stop)", "one") for place in range(PLACES)]
    for lines, _ in [*others, *taken]:
        edge += lines
    for place, (_, value) in enumerate(taken):
        for own, total in enumerate(totals):
            new = _sums(total, value, others[place + own][1], conjugated)
            mask = f"counts{place + own} & (k + {place} < stop)"
            edge += [f"{name} = tl.where({mask}, {one}, {name})" for name, one in zip(total, new, strict=True)]

    inside = f"(k + {PLACES} <= stop) & (k + start >= {before}) & (k + start + (BLOCK + {kept}) <= {size} + {before})"
    lines, results = computed(
        schedule,
        arm.branch,
        range(number + 1, len(spec.nodes)),
        {number: (tuple([_joined([total[part] for total in totals]) for part in range(parts)]), dtype)},
    )
    return [
        *loads,
        *[f"{name} = tl.zeros((BLOCK // {PLACES},), {register})" for total in totals for name in total],
        f"k = tl.maximum({first}, {before} - (start + (BLOCK - 1)))",
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
    schedule: Windows, chain: tuple[int, ...], place: str, mask: str | None, tag: str
) -> tuple[list[str], Value]:
    """Return the lines that read elements at a place, and the values of the last node of a chain."""
    position, *nodes = chain
    (arm,) = schedule.arms()
    at: Values = {position: ((place,), "int64")}
    lines, values = computed(schedule, arm.branch._replace(mask=mask, position="lane", tag=tag), nodes, at)
    return lines, values[chain[-1]][0]


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

"""The cells of a block: what each thread has of a row, element by element.

A block of ``ROWS`` by ``COLUMNS`` lanes is split into its cells: block ``i`` of ``ROWS`` by ``THREADS`` has the
elements ``i`` of runs of a few neighbours, which a thread reads as a vector. So neighbours are combined within threads.
"""

from __future__ import annotations


def cells_of(run: int) -> list[str]:
    """Return the suffixes of the cells of a block: the bits of their position in a run, the lowest first.

    >>> cells_of(4), cells_of(1)
    (['_00', '_10', '_01', '_11'], [''])
    """
    bits = run.bit_length() - 1
    return [f"_{''.join(str(cell >> bit & 1) for bit in range(bits))}" if bits else "" for cell in range(run)]


BLOCK = ("ROWS", "THREADS")


def split(name: str, run: int, shape: tuple[str, str] = BLOCK) -> list[str]:
    """Return the lines that split a block into cells of a shape.

    >>> split("a", 2)
    ['a_ = tl.reshape(a, (ROWS, THREADS, 2))', 'a_0, a_1 = tl.split(a_)']
    """
    rows, threads = shape
    if run == 1:
        return [] if shape == BLOCK else [f"{name} = tl.reshape({name}, ({rows}, {threads}))"]
    bits = run.bit_length() - 1
    lines = [f"{name}_ = tl.reshape({name}, ({rows}, {threads}, {', '.join('2' * bits)}))"]
    for cell in _inner(bits):
        lines.append(f"{name}_{cell}0, {name}_{cell}1 = tl.split({name}_{cell})")
    return lines


def whole(name: str, run: int) -> list[str]:
    """Return the lines that join the cells of a block.

    >>> whole("a", 2)
    ['a_ = tl.join(a_0, a_1)', 'a = tl.reshape(a_, (ROWS, COLUMNS))']
    """
    if run == 1:
        return []
    lines = [f"{name}_{cell} = tl.join({name}_{cell}0, {name}_{cell}1)" for cell in _inner(run.bit_length() - 1)[::-1]]
    return [*lines, f"{name} = tl.reshape({name}_, (ROWS, COLUMNS))"]


def _inner(bits: int) -> list[str]:
    """Return the blocks that are split in two, in order.

    >>> _inner(2)
    ['', '0', '1']
    """
    found = [""]
    for length in range(1, bits):
        found += [format(cell, f"0{length}b") for cell in range(2**length)]
    return found

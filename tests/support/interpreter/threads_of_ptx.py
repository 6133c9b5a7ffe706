"""PTX in inline assembly that a block's threads run together: with shared memory, votes and shuffles, on NumPy.

Every instruction runs for all threads before the next one, so barriers have nothing to do. A thread that takes a
branch forward waits at its label. A branch back is the end of a loop: threads that do not take it wait behind it. An
instruction that is not known is an error.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

WORD, ADDRESS = np.uint32, np.uint64
_LAST = threading.local()
"""The shared memory of a program's last block, and the names in it; programs that run at once have a thread each."""
_ASKED = 227 << 10
"""The bytes of shared memory for which launches ask, the most there may be. They are not zero."""
_SIZES = {"u8": 1, "b8": 1, "u16": 2, "b16": 2, "u32": 4, "b32": 4, "s32": 4}


class Block:
    """The registers and the shared memory of a block, and the threads that run."""

    def __init__(self, threads: int, operands: Sequence[np.ndarray], outside: Any = None) -> None:
        self.thread = np.arange(threads, dtype=WORD)
        self.outside = outside
        self.registers: dict[str, np.ndarray] = {f"${k}": each for k, each in enumerate(operands)}
        self.registers["%tid.x"] = self.thread
        self.registers["%dynamic_smem_size"] = np.full(threads, _ASKED, WORD)
        self.registers["%lanemask_lt"] = ((WORD(1) << (self.thread % 32)) - 1).astype(WORD)
        self.places: dict[str, int] = getattr(_LAST, "places", {})
        self.memory = getattr(_LAST, "memory", np.zeros(0, np.uint8))
        self.is_new = False  # whether the block has declared memory; if not, it reads that of assembly before it
        self.waiting: dict[str, np.ndarray] = {}
        self.active = np.ones(threads, bool)

    def value(self, text: str) -> np.ndarray:
        """Return a register, an address or a number, for each thread."""
        if text in self.registers:
            return self.registers[text]
        if text == "global_smem" and text not in self.places:
            self._declare(text, 16, _ASKED)
        number = self.places[text] if text in self.places else int(text, 0) & 0xFFFFFFFF
        return np.full(len(self.thread), number, WORD)

    def run(self, asm: str) -> None:
        """Run the instructions."""
        statements, labels = _statements(asm)
        place = 0
        while place < len(statements):
            for label in [each for each, at in labels.items() if at == place]:
                self.active = self.active | self.waiting.pop(label, np.zeros_like(self.active))
            self.step(statements[place])
            place += 1
            back = [each for each in self.waiting if labels.get(each, place) < place]
            if back and not self.waiting[back[0]].any():
                del self.waiting[back[0]]
            elif back:
                after = f"after {place}"
                labels[after] = place
                self.waiting[after] = self.waiting.get(after, np.zeros_like(self.active)) | self.active
                self.active = self.waiting.pop(back[0])
                place = labels[back[0]]
        assert self.active.all(), "threads wait at a label that does not come"

    def step(self, words: str) -> None:
        """Run one instruction, for the threads that are active and whose predicate holds."""
        if shared := re.fullmatch(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]", words):
            self._declare(shared[2], int(shared[1]), int(shared[3]))
            return
        if words.startswith(".reg"):
            return
        mask = self.active
        if guard := re.match(r"@(!?)(\w+)\s+", words):
            held = self.registers[guard[2]].astype(bool)
            mask = mask & (~held if guard[1] else held)
            words = words[guard.end() :]
        name, _, rest = words.partition(" ")
        operands = [each.strip() for each in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)]
        parts = name.split(".")
        getattr(self, f"do_{parts[0]}")(parts[1:], operands, mask)

    def _declare(self, name: str, alignment: int, size: int) -> None:
        if not self.is_new:
            self.places, self.memory, self.is_new = {}, np.zeros(0, np.uint8), True
        start = -(-len(self.memory) // alignment) * alignment
        self.places[name] = start
        rest = np.full(start + size - len(self.memory), 0xA5, np.uint8)
        self.memory = np.concatenate([self.memory, rest])

    def put(self, name: str, value: np.ndarray, mask: np.ndarray) -> None:
        """Change a register in some threads."""
        kind = value.dtype if value.dtype in (bool, ADDRESS) else WORD
        old = self.registers.get(name, np.zeros(len(self.thread), kind))
        self.registers[name] = np.where(mask, value, old).astype(kind)

    # ------------------------------------------------------------------ memory

    def addresses(self, text: str) -> np.ndarray:
        """Return where each thread accesses memory."""
        base, _, more = text[1:-1].partition("+")
        return self.value(base).astype(np.int64) + int(more or "0")

    def do_ld(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts == ["relaxed", "gpu", "global", "b32"]:
            self.outside.pause()
            place = self.addresses(operands[1]).astype(ADDRESS)
            found = self.outside.load(place, mask, np.zeros_like(place, WORD), np.dtype(WORD))
            self.put(operands[0], found, mask)
            return
        assert parts[0] == "shared"
        place, size = self.addresses(operands[1]), _SIZES[parts[-1]]
        names = operands[0].strip("{}").split(",")
        self._check(place, size * len(names), mask)
        for number, name in enumerate(names):
            self.put(name.strip(), self._read(place + number * size, size, mask), mask)

    def _read(self, place: np.ndarray, size: int, mask: np.ndarray) -> np.ndarray:
        found = np.zeros(len(place), WORD)
        for byte in range(size):
            found |= self.memory[np.where(mask, place + byte, 0)].astype(WORD) << WORD(8 * byte)
        return found

    def _check(self, place: np.ndarray, size: int, mask: np.ndarray) -> None:
        used = place[mask]
        assert not (used % size).any(), "an address is not aligned"
        assert not used.size or 0 <= used.min() <= used.max() <= len(self.memory) - size, "outside shared memory"

    def do_st(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts == ["relaxed", "gpu", "global", "b32"]:
            self.outside.store(self.addresses(operands[0]).astype(ADDRESS), self.value(operands[1]), mask)
            self.outside.pause()
            return
        assert parts[0] == "shared"
        place, size = self.addresses(operands[0]), _SIZES[parts[-1]]
        values = operands[1].strip("{}").split(",")
        self._check(place, size * len(values), mask)
        for number, name in enumerate(values):
            value = self.value(name.strip())
            for byte in range(size):
                self.memory[place[mask] + number * size + byte] = (value[mask] >> WORD(8 * byte)).astype(np.uint8)

    def do_red(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts == ["global", "add", "u64"]:
            place = self.registers[operands[0][1:-1]]
            assert len(set(place[mask])) == mask.sum(), "one thread at a place"
            found = self.outside.load(place, mask, np.zeros_like(place), np.dtype(ADDRESS))
            self.outside.store(place, found + ADDRESS(int(operands[1])), mask)
            return
        combine = {("shared", "add", "u32"): np.add, ("shared", "or", "b32"): np.bitwise_or}[tuple(parts)]
        place = self.addresses(operands[0])
        self._check(place, 4, mask)
        combine.at(self.memory.view(WORD), place[mask] // 4, self.value(operands[1])[mask])

    def do_atom(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert parts == ["shared", "add", "u32"]
        place, value = self.addresses(operands[1]), np.where(mask, self.value(operands[2]), 0).astype(np.uint64)
        self._check(place, 4, mask)
        order = np.argsort(place, kind="stable")
        before = np.cumsum(value[order]) - value[order]  # also of words before this one, of which the first has none
        starts = np.searchsorted(place[order], place[order])
        added = np.empty_like(before)
        added[order] = before - before[starts]
        self.put(operands[0], self._read(place, 4, mask) + added.astype(WORD), mask)
        np.add.at(self.memory.view(WORD), place[mask] // 4, self.value(operands[2])[mask])

    # ------------------------------------------------------------------ control

    def do_bra(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        (label,) = operands
        self.waiting[label] = self.waiting.get(label, np.zeros_like(mask)) | mask
        self.active = self.active & ~mask

    def do_trap(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert not mask.any(), "a trap"

    def do_bar(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts[0] == "sync":
            assert mask.all(), "a barrier that not all threads reach"
        else:
            assert (parts == ["warp", "sync"], self._warps_whole(mask)) == (True, True)

    def _warps_whole(self, mask: np.ndarray) -> bool:
        return bool((mask.reshape(-1, 32).all(1) | ~mask.reshape(-1, 32).any(1)).all())

    # ------------------------------------------------------------------ arithmetic

    def do_setp(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        compare: dict[str, Callable[..., Any]] = {
            "ne": np.not_equal, "eq": np.equal, "lt": np.less, "ge": np.greater_equal, "gt": np.greater
        }  # fmt: skip
        kind = np.int32 if parts[1] == "s32" else WORD
        self.put(operands[0], compare[parts[0]](*[self.value(each).view(kind) for each in operands[1:]]), mask)

    def _binary(self, operands: list[str], mask: np.ndarray, function: Callable[..., Any]) -> None:
        self.put(operands[0], function(*[self.value(each) for each in operands[1:]]), mask)

    def do_mov(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self.put(operands[0], self.value(operands[1]), mask)

    def do_add(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts == ["s64"]:
            base, more = operands[1:]
            added = self.registers[more] if more in self.registers else np.int64(int(more)).astype(ADDRESS)
            self.put(operands[0], self.value(base) + added, mask)
            return
        self._binary(operands, mask, np.add)

    def do_min(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert parts == ["u32"]
        self._binary(operands, mask, np.minimum)

    def do_sub(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.subtract)

    def do_mul(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts == ["wide", "u32"]:
            self._binary(operands, mask, lambda x, y: x.astype(ADDRESS) * y)
            return
        self._binary(operands, mask, np.multiply)

    def do_mad(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, lambda x, y, z: x * y + z)

    def do_and(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.bitwise_and)

    def do_or(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.bitwise_or)

    def do_xor(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.bitwise_xor)

    def do_lop3(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert operands.pop() == "0x80", "the table of bits that are in all words"
        self._binary(operands, mask, lambda x, y, z: x & y & z)

    def do_not(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.invert)

    def do_shl(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.left_shift)

    def do_shr(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert parts == ["u32"]
        self._binary(operands, mask, np.right_shift)

    def do_selp(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        chosen = self.registers[operands[3]].astype(bool)
        self.put(operands[0], np.where(chosen, self.value(operands[1]), self.value(operands[2])), mask)

    def do_popc(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        self._binary(operands, mask, np.bitwise_count)

    def do_brev(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        bits = np.unpackbits(self.value(operands[1]).view(np.uint8).reshape(-1, 4), 1, bitorder="little")
        self.put(operands[0], np.packbits(bits[:, ::-1], 1, bitorder="little").view(WORD)[:, 0], mask)

    def do_bfind(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert parts == ["shiftamt", "u32"]
        found = 32 - np.frexp(self.value(operands[1]).astype(np.float64))[1]
        self.put(operands[0], found.astype(WORD), mask)

    # ------------------------------------------------------------------ between the threads of a warp

    def do_vote(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert (parts[0], operands[2], self._warps_whole(mask)) == ("sync", "-1", True)
        held = self.registers[operands[1]].astype(WORD).reshape(-1, 32)
        if parts[1:] == ["all", "pred"]:
            self.put(operands[0], np.repeat(held.astype(bool).all(1), 32), mask)
            return
        assert parts[1:] == ["ballot", "b32"]
        words = (held << np.arange(32, dtype=WORD)).sum(1, dtype=WORD)
        self.put(operands[0], np.repeat(words, 32), mask)

    def do_match(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        assert (parts, operands[2], self._warps_whole(mask)) == (["any", "sync", "b32"], "-1", True)
        values = self.value(operands[1]).reshape(-1, 32)
        same = values[:, :, None] == values[:, None, :]
        words = (same.astype(WORD) << np.arange(32, dtype=WORD)).sum(2, dtype=WORD)
        self.put(operands[0], words.reshape(-1), mask)

    def do_shfl(self, parts: list[str], operands: list[str], mask: np.ndarray) -> None:
        if parts == ["sync", "idx", "b32"]:
            assert (operands[-2:], self._warps_whole(mask)) == (["31", "-1"], True)
            lanes = self.value(operands[1]).reshape(-1, 32)
            self.put(operands[0], np.repeat(lanes[:, int(operands[2])], 32), mask)
            return
        assert (parts, operands[-2:], self._warps_whole(mask)) == (["sync", "up", "b32"], ["0", "-1"], True)
        found, _, inside = operands[0].partition("|")
        step = int(operands[2])
        value, lane = self.value(operands[1]), self.thread % 32
        self.put(found, np.where(lane >= step, np.roll(value, step), value), mask)
        if inside:
            self.put(inside, lane >= step, mask)


def _statements(asm: str) -> tuple[list[str], dict[str, int]]:
    """Return the statements of assembly, and the place of the one behind each label."""
    statements: list[str] = []
    labels: dict[str, int] = {}
    for statement in re.sub(r"(^|;)\s*\{", r"\1", asm.strip()).removesuffix("}").split(";"):
        words = statement.strip()
        while found := re.match(r"(\w+):\s*", words):
            labels[found[1]] = len(statements)
            words = words[found.end() :]
        if words:
            statements.append(words)
    return statements, labels


def run_in_threads(
    asm: str, outputs: int, pack: int, arrays: Sequence[np.ndarray], outside: Any = None
) -> list[np.ndarray]:
    """Return the results of assembly for the elements of a block.

    Parameters
    ----------
    asm : str
        Its operands are, for each result, and then for each input, the `pack` elements of a thread.
    outputs : int
        The number of results.
    pack : int
        The elements of a thread. Thread t has the elements t, t + threads, t + 2 * threads, ...
    arrays : sequence of numpy.ndarray
        The inputs, of 32 bits, or addresses of 64.
    outside : object, optional
        Global memory: ``load(addresses, mask, other, dtype)``, ``store(addresses, value, mask)``, and ``pause()``, in
        which other programs run.
    """
    threads = arrays[0].size // pack
    given = [np.zeros(threads, WORD)] * (outputs * pack)
    kinds = {4: WORD, 8: ADDRESS}
    given += [each.reshape(pack, threads)[k].view(kinds[each.itemsize]) for each in arrays for k in range(pack)]
    block = Block(threads, given, outside)
    with np.errstate(over="ignore"):
        block.run(asm)
    _LAST.places, _LAST.memory = block.places, block.memory
    found = [np.stack([block.registers[f"${result * pack + k}"] for k in range(pack)]) for result in range(outputs)]
    return [each.reshape(-1).view(np.int32) for each in found]

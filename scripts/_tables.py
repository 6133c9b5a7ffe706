"""Write the generated tables of the documentation, or check that they are up to date.

    scripts/tables [--check] [FILE.md ...]      without files: README.md and docs/*.md

A table stands between ``<!-- table: NAME -->`` and ``<!-- end table -->``; `TABLES` below lists the names. This script
replaces the text between the two markers with the library's own answers, so every table shows the code as it is.
With --check it writes nothing: the exit status is 1 if a table is stale, and the output names it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "backend")]

from tilearray.dtypes import ALL, ARITHMETIC, PACKED, DTypeInfo, info  # noqa: E402
from tilearray.errors import TileArrayError  # noqa: E402
from tilearray.promotion.scalars import classify  # noqa: E402
from tilearray.promotion.semantics import Semantics  # noqa: E402
from tilearray.promotion.systems import SEMANTICS  # noqa: E402

if TYPE_CHECKING:
    from tilearray.ops.op import Op

DType = Any  # an np.dtype; NumPy itself is not needed here

MARKED = re.compile(r"(<!-- table: (?P<name>\S+) -->\n)(?P<text>.*?)(<!-- end table -->)", re.DOTALL)
MARKER = re.compile(r"<!-- (?:table: \S+|end table) -->")
NONE = "✗"

SHORT = {"bool": "bool", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "bfloat16": "bf16"}
NUMBERS = ("True", "3", "2**31", "2**40", "2**63", "0.5", "1e300", "1j")

INTEGERS = tuple(dtype for dtype in ARITHMETIC if info(dtype).kind in ("int", "uint"))
FLOATS = tuple(dtype for dtype in ARITHMETIC if info(dtype).kind == "float")
OPERANDS_COUNT = {
    "numbers": "0-d arrays count as arrays; a number counts only if its kind is higher",
    "categories": "arrays with dimensions before 0-d arrays before numbers",
    "numpy": "as in NumPy",
}
STORED = {
    "same_kind": "no lower kind, no signed dtype into unsigned",
    "kind": "no lower kind",
    "promotion": "only the common dtype",
    "numpy": "NumPy's `same_kind`",
}

# The table shows the questions for which the semantics give different answers.
QUESTIONS = (
    "ta.asarray(3).dtype",
    "ta.asarray(2**31).dtype",
    "ta.asarray(2**63).dtype",
    "ta.asarray(0.5).dtype",
    "ta.asarray(1e300).dtype",
    "ta.asarray(1j).dtype",
    "ta.zeros(3).dtype",
    "ta.arange(3).dtype",
    "(ta.arange(3) / 2).dtype",
    "(ta.asarray(True) + 3).dtype",
    "(ta.asarray(3) + 0.5).dtype",
    "(ta.asarray(-7) // 2).item()",
    "(ta.asarray(-7) % 2).item()",
    "(ta.asarray(7) // -2).item()",
    "(ta.asarray(7) % -2).item()",
    "(ta.asarray(-7.0) // 2).item()",
    "(ta.asarray(-7.0) % 2).item()",
    "(ta.asarray(7) // 0).item()",
)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def short(name: str) -> str:
    return SHORT.get(name) or re.sub(r"(uint|int|float|complex)", lambda match: match[0][0], name)


def answer(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except TileArrayError:
        return NONE


def lattice(semantics: Semantics) -> str:
    """The join of every two dtypes, then what Python numbers do to them."""
    exact = [dtype for dtype in ARITHMETIC if info(dtype).kind in ("bool", "int", "uint")]
    inexact = [dtype for dtype in ARITHMETIC if dtype not in exact]
    if any(answer(lambda pair=pair: semantics.promote(pair)) != str(pair[1]) for pair in product(exact, inexact)):
        return matrix(semantics, ARITHMETIC) + "\n" + scalars(semantics)
    note = "A bool or integer with a float or complex dtype gives the latter.\n"
    return "\n".join([matrix(semantics, exact), matrix(semantics, inexact), note, scalars(semantics)])


def matrix(semantics: Semantics, dtypes: Sequence[DType]) -> str:
    """The joins of some dtypes, names shortened."""

    def join(*pair: DType) -> str:
        return short(answer(lambda: semantics.promote(pair).name))

    return markdown(["", *map(join, dtypes)], [[f"**{join(a)}**", *(join(a, b) for b in dtypes)] for a in dtypes])


def scalars(semantics: Semantics) -> str:
    """The dtype of each dtype with a Python number. Dtypes with equal answers share a row."""
    classes = [classify(eval(number)) for number in NUMBERS]
    groups: dict[tuple[str, ...], list[str]] = {}
    for dtype in ARITHMETIC:
        found = [answer(lambda dtype=dtype, c=c: semantics.result_type((dtype, c)).name) for c in classes]
        row = tuple("·" if name == dtype.name else name for name in found)
        groups.setdefault(row, []).append(dtype.name)
    rows = [[", ".join(names), *row] for row, names in groups.items()]
    alone = ["*no array*", *(answer(lambda c=c: semantics.result_type((c,)).name) for c in classes)]
    return markdown(["`·`: the array's dtype", *(f"`{number}`" for number in NUMBERS)], [*rows, alone])


def semantics_table() -> str:
    """The pairs of dtypes and the expressions for which the semantics differ."""
    import tilearray as ta

    def under(semantics: Semantics, ask: Callable[[], object]) -> str:
        with ta.semantics(semantics):
            return answer(ask)

    questions: dict[str, Callable[[], object]] = {
        f"{a.name} with {b.name}": lambda a=a, b=b: ta.promote_types(a, b) for a, b in combinations(ARITHMETIC, 2)
    }
    questions |= {f"`{text}`": lambda text=text: eval(text, {"ta": ta}) for text in QUESTIONS}
    rows = [[text, *(under(s, ask) for s in SEMANTICS.values())] for text, ask in questions.items()]
    return markdown(["", *(f"`{name}`" for name in SEMANTICS)], [row for row in rows if len(set(row[1:])) > 1])


def systems_table() -> str:
    """One row for each semantics, with the rules that no promotion table shows."""

    def cells(rules: Semantics) -> list[str]:
        numbers = ", ".join(rules.defaults[kind].name for kind in ("int", "float", "complex"))
        floats = sorted({rules.integer_functions.get(d, rules.true_division).name for d in INTEGERS})
        refused = [short(dtype.name) for dtype in ARITHMETIC if dtype not in rules.arithmetic]
        return [
            f"`{rules.name}`", numbers, {"floor": "down", "trunc": "toward 0"}[rules.integer_division],
            rules.true_division.name, ", ".join(floats), OPERANDS_COUNT[rules.rule], STORED[rules.inplace],
            ", ".join(refused) or "-",
        ]  # fmt: skip

    header = ["", "defaults", "`//`", "int `/`", "sqrt of ints", "numbers and 0-d arrays", "in place", "not computed"]
    return markdown(header, map(cells, SEMANTICS.values()))


def ops_table() -> str:
    """The op table: one row per op."""
    import tilearray as ta

    public = list(ta.ops.PUBLIC.values())
    rows = [(f"`{op.name}`", operator(op), kinds(op), op.promotion.value, op.summary) for op in public]
    return markdown(["function", "operator", "takes", "result dtype", ""], rows)


def derivatives_table() -> str:
    """What each op adds to the gradients of its operands."""
    import tilearray as ta

    def cell(text: str) -> str:
        return f"`{text}`" if text else "-"

    public = [row for row in ta.ops.OPS if row.derivative]
    rows = [(f"`{row.name}`", ", ".join(map(cell, row.derivative or ()))) for row in public]
    return markdown(["function", "added to the gradient of each operand"], rows)


def differentiability_table() -> str:
    """Which public functions have gradients."""
    from _differentiability import DIFFERENTIABLE, REFUSED, WITHOUT, calls

    groups = {
        "has a gradient": DIFFERENTIABLE,
        "has none by nature: places, truth values, constants": WITHOUT,
        "raises `GradientError`": REFUSED,
    }
    rows = [(title, " ".join(f"`{name}`" for name in sorted(calls(text)))) for title, text in groups.items()]
    return markdown(["", "functions"], rows)


def rounding_table() -> str:
    """The dtypes for which each operation takes each option, and the device."""
    import tilearray as ta
    from tilearray.ops.options import GPU_ONLY

    rows = [op for op in ta.ops.PUBLIC.values() if op.options.names]
    modes = list(dict.fromkeys(mode for op in rows for mode in op.options.rounding))
    ways = [{"rounding": mode} for mode in modes] + [{"flush_to_zero": True}, {"propagate_nan": False}]

    def cell(op: Op, way: dict[str, Any]) -> str:
        (mode,) = way.values()
        dtypes = taken(op, way)
        where = f" on a GPU, {op.options.bounds[mode]}" if dtypes and mode in GPU_ONLY else ""
        names = "every float" if len(dtypes) == len(FLOATS) else ", ".join(map(short, dtypes))
        return names + where or "-"

    header = ["function", *(f"`{name}={value!r}`" for way in ways for name, value in way.items())]
    return markdown(header, [[f"`{op.name}`", *(cell(op, way) for way in ways)] for op in rows])


def taken(op: Op, way: dict[str, Any]) -> list[str]:
    """The names of the dtypes that an op takes with an option."""
    from tilearray.engine.operation import expression_of
    from tilearray.ops.variants import variant
    from tilearray.promotion.systems import ARRAY_API

    def accepted(dtype: DType) -> bool:
        return answer(lambda: expression_of(variant(op, **way), ARRAY_API, (dtype,) * op.arity, None)) != NONE

    return [dtype.name for dtype in FLOATS if accepted(dtype)]


def casts_table() -> str:
    """The options of `astype`, by the kinds of the two dtypes."""
    from tilearray.ops.options import CAST_MODES, cast_choice

    kinds = {"bool": "bool", "int": "integer", "float": "float", "complex": "complex"}
    ways = [*((mode, False) for mode in (*CAST_MODES, "rs", "rzi")), (None, True)]

    def cell(before: str, after: str, way: tuple[str | None, bool]) -> str:
        pairs = product(*([d for d in ALL if info(d).kind.removeprefix("u") == kind] for kind in (before, after)))
        return "yes" if all(answer(lambda pair=pair: cast_choice(*pair, *way)) != NONE for pair in pairs) else "-"

    header = ["from", "to", *(f"`{mode}`" for mode, _ in ways[:-1]), "`saturate=True`"]
    rows = [[kinds[a], kinds[b], *(cell(a, b, way) for way in ways)] for a, b in product(kinds, repeat=2)]
    return markdown(header, [row for row in rows if "yes" in row])


def operator(op: Op) -> str:
    return f"`{op.operator}`" if op.operator else ""


def kinds(op: Op) -> str:
    """The kinds that an op takes, signed and unsigned integers as one."""
    accepted = {kind.removeprefix("u") for kind in op.kinds}
    return ", ".join(kind for kind in ("bool", "int", "float", "complex") if kind in accepted)


def dtypes_table() -> str:
    """The dtype table."""

    def cells(row: DTypeInfo) -> list[str]:
        use = (
            "arithmetic" if row.arithmetic else "views and copies" if row.kind == "pair" else "views, copies and casts"
        )
        lanes = "{}, {}".format(*row.dlpack) + ", two lanes" * (row.kind == "pair")
        return [f"`{row.name}`", row.kind, str(row.bits), row.triton or "", lanes, use]

    rows = [cells(info(dtype)) for dtype in (*ALL, *PACKED)]
    return markdown(["dtype", "kind", "bits", "Triton", "DLPack code, bits", "for"], rows)


def aliases_table() -> str:
    """NumPy's other names of what has another name here."""
    import tilearray as ta
    from tilearray.numpy_names import names

    aliases = names.LATER["aliases"].split()
    rows = [(f"`{name}`", f"`{called(getattr(ta, name))}`") for name in aliases]
    return markdown(["NumPy", "here"], rows)


def called(value: Any) -> str:
    """The name of a function or a dtype."""
    return getattr(value, "__name__", None) or value.name


def names_table() -> str:
    """NumPy's other functions by subject, and where they run."""
    import tilearray as ta
    from tilearray.numpy_names import names

    def cells(module: str, line: str) -> list[str]:
        places: list[list[str]] = [[], [], []]
        for name in line.split():
            places[place_of(name, getattr(ta, name))].append(f"`{name}`")
        return [module.replace("_", " "), *(" ".join(given) or "-" for given in places)]

    rows = [cells(module, line) for module, line in names.LATER.items() if module != "aliases"]
    heads = ["", "made of other functions", "by NumPy, on the host only", "by NumPy; on a GPU by other functions"]
    return markdown(heads, rows)


def place_of(name: str, value: Any) -> int:
    """Where a function runs: 0 where its parts do, 1 in NumPy on the host, 2 on a GPU where its parts do."""
    import inspect

    if not (inspect.isfunction(value) or (inspect.isclass(value) and value.__module__.startswith("tilearray."))):
        return 0
    source = inspect.getsource(value)
    asks_numpy = ("by_numpy(", "_joined_by_numpy(", "_dividing(", "memory_of(", "np.vectorize(")
    if not any(call in source for call in asks_numpy):
        return 0
    return (
        2
        if any(call in source for call in ("there(", "_dividing(", "by_expressions(", "computes_places", "_BY_INDEX"))
        else 1
    )


def missing_table() -> str:
    """What to write for names that are not here."""
    from tilearray.numpy_names.names import MISSING

    by_advice: dict[str, list[str]] = {}
    for name, advice in MISSING.items():
        by_advice.setdefault(advice, []).append(name)
    rows = [
        (" ".join(f"`{name}`" for name in group), advice.format(name=group[0] if len(group) == 1 else "NAME"))
        for advice, group in by_advice.items()
    ]
    return markdown(["missing", ""], rows)


def records() -> list[dict[str, Any]]:
    """The records of the client libraries, in the order of the alphabet."""
    files = sorted((ROOT / "tests" / "conformance" / "clients" / "records").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def clients_table() -> str:
    """The counts of each client."""

    def cells(one: dict[str, Any]) -> list[str]:
        version = one["versions"].get(one["package"], "a checkout")
        counts = map(str, one["counts"].values())
        library = one.get("library", "tilearray")
        semantics = one["semantics"] if library == "tilearray" else ""
        device = one["device"] + ("" if one.get("whole", True) else ", in part")
        return [one["client"], version, library, device, semantics, *counts, str(one.get("arrays", ""))]

    header = ["client", "version", "arrays of", "device", "semantics", "passed", "failed", "skipped", "Arrays"]
    return markdown(header, map(cells, records()))


def client_causes_table() -> str:
    """The causes of the failures of each client."""
    rows = [
        [one["client"], one.get("library", "tilearray"), one["device"], str(row["count"]), row["cause"], row["whose"]]
        for one in records()
        for row in one["causes"]
    ]
    return markdown(["client", "arrays of", "device", "failed", "cause", "whose"], rows)


def partner_table(partner: str) -> str:
    """The calls of another library beside ours."""
    from _partners import PARTNERS

    rows = [(f"`{call}`", f"`{same}`") for call, same in PARTNERS[partner].items()]
    return markdown([partner, "here"], rows)


def partner_names_table(library: str) -> str:
    """The public names of another library by module: how many are here, and which are not."""
    import _partner_names
    from _partners import OTHERWISE

    version, modules = _partner_names.read(library)
    rows: list[list[str]] = []
    for module, names in modules.items():
        others = [name for name in names if name not in OTHERWISE.get(module, {})]
        here = [name for name in others if _partner_names.is_here(module, name)]
        missing = [f"`{name}`" for name in others if name not in here]
        ways = str(len(names) - len(others) or "-")
        rows.append([f"`{module}`", f"{len(here)} of {len(names)}", ways, " ".join(missing) or "-"])
    return markdown([f"{library} {version}", "same name", "another way", "not here"], rows)


def partner_ways_table(library: str) -> str:
    """The names of another library that have another name or another way here."""
    import _partner_names
    from _partners import OTHERWISE

    _, modules = _partner_names.read(library)
    rows = [
        (f"`{module}.{name}`", _code(OTHERWISE[module][name]))
        for module in modules
        for name in sorted(OTHERWISE.get(module, {}))
    ]
    return markdown([library, "here"], rows)


def _code(way: str) -> str:
    """What to write, as code if it is some."""
    try:
        compile(way, "way", "exec")
    except SyntaxError:
        return way
    return f"`{way}`"


TABLES: dict[str, Callable[[], str]] = {
    **{f"lattice-{name}": (lambda rules=rules: lattice(rules)) for name, rules in SEMANTICS.items()},
    "semantics": semantics_table,
    "systems": systems_table,
    "ops": ops_table,
    "derivatives": derivatives_table,
    "differentiability": differentiability_table,
    "rounding": rounding_table,
    "casts": casts_table,
    "dtypes": dtypes_table,
    "aliases": aliases_table,
    "names": names_table,
    "missing": missing_table,
    "clients": clients_table,
    "client-causes": client_causes_table,
    **{f"names-{name}": (lambda name=name: partner_names_table(name)) for name in ("cupy", "jax")},
    **{f"ways-{name}": (lambda name=name: partner_ways_table(name)) for name in ("cupy", "jax")},
    **{f"calls-{name}": (lambda name=name: partner_table(name)) for name in ("torch", "CuPy", "JAX")},
}


def complaints(text: str) -> list[str]:
    """Name unknown and unbalanced markers: a table between those would never be updated."""
    unknown = [name for name in re.findall(r"<!-- table: (\S+) -->", text) if name not in TABLES]
    stray = MARKER.findall(MARKED.sub("", text))
    inside = [marker for match in MARKED.finditer(text) for marker in MARKER.findall(match["text"])]
    return [f"unknown table {name!r}; write one of {', '.join(TABLES)}" for name in unknown] + [
        f"{marker} has no counterpart" for marker in stray + inside
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a table is stale")
    parser.add_argument(
        "files", nargs="*", type=Path, default=[ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))], metavar="FILE.md"
    )
    arguments = parser.parse_args()
    wrong = [line for path in arguments.files for line in update(path, arguments.check)]
    print("\n".join(wrong) or "all tables are up to date")
    return 1 if wrong else 0


def update(path: Path, check: bool) -> list[str]:
    """Write a document's tables, or name the stale ones; return the complaints."""
    if not path.is_file():
        return [f"{path}: there is no such file"]
    text = path.read_text(encoding="utf-8")
    if wrong := complaints(text):
        return [f"{path}: {complaint}" for complaint in wrong]
    fresh = {match["name"]: TABLES[match["name"]]() for match in MARKED.finditer(text)}
    stale = [match["name"] for match in MARKED.finditer(text) if match["text"] != fresh[match["name"]]]
    if check:
        return [f"{path}: the table {name!r} is stale; run scripts/tables" for name in stale]
    if stale:
        path.write_text(MARKED.sub(lambda match: match[1] + fresh[match["name"]] + match[4], text), encoding="utf-8")
        print(f"{path}: wrote {', '.join(stale)}")
    return []


if __name__ == "__main__":
    sys.exit(main())

"""The measurements: for every row of the tables and every library, check the result, then time it.

All functions return plain dictionaries, the rows of the report. An outcome's ``status`` is one of

    ok              timed; the result was right
    mismatch        the result was wrong, and was not timed
    error           the library raised an error; ``why`` contains it
    not supported, arrays are immutable, ...   the adapter declares that the library cannot do this row's work
    not installed, ...   the library does not run on this machine
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks import cases, check
from benchmarks.cases import Call, Case
from benchmarks.libraries import Library
from benchmarks.timing import LAUNCH, DriverError, Effort, HostTimer, host_timing, kernel_timing

Outcome = dict[str, Any]
SEED = 20_000
TURNS = 5


@dataclass
class Session:
    """The resources of a run.

    Attributes
    ----------
    size : str
        One of `cases.SIZES`.
    libraries, missing : dict
        The libraries that run on this machine, and the reasons why others do not.
    owner : Library
        The library that makes the arrays.
    clock : HostClock or GpuClock
    effort : Effort
    """

    size: str
    libraries: Mapping[str, Library]
    missing: Mapping[str, str]
    owner: Any
    clock: Any
    effort: Effort
    copies: list[float] = field(default_factory=list[float])
    fills: list[float] = field(default_factory=list[float])

    def release(self) -> None:
        """Release the unused memory of all libraries."""
        self.clock.synchronize()
        for library in (*self.libraries.values(), self.owner):
            library.release()


def attempted(session: Session, measure: Callable[[Library], Outcome]) -> dict[str, Outcome]:
    """Return an outcome for every library, also if it raises an error."""
    missing: dict[str, Outcome] = {name: {"status": why} for name, why in session.missing.items()}
    return missing | {name: outcome_of(measure, library) for name, library in session.libraries.items()}


def outcome_of(measure: Callable[[Library], Outcome], library: Library) -> Outcome:
    try:
        return measure(library)
    except check.MismatchError as error:
        return {"status": "mismatch", "why": str(error)}
    except Exception as error:  # any error of a library; the run continues, and the report contains the error
        text = (str(error).strip() or "no message").splitlines()[0]
        return {"status": "error", "why": f"{type(error).__name__}: {text}"}


# ---------------------------------------------------------------------- kernels


def run_case(session: Session, case: Case) -> dict[str, Any]:
    """Measure one kernel with every library."""
    known = cases.shapes(session.size)
    arrays = {
        name: session.owner.random(known[name], dtype, SEED + position)
        for position, (name, dtype) in enumerate(case.arrays.items())
    }
    row = {
        "name": case.name,
        "arrays": {name: [dtype, list(known[name])] for name, dtype in case.arrays.items()},
        "operands": list(case.operands),
        "expression": case.expression,
        "against": case.against,
        "ideal_bytes": case.ideal_bytes(session.size),
        "traffic": case.traffic(session.size),
    }
    row["results"] = attempted(session, lambda library: time_case(session, case, library, arrays))
    return row


def time_case(session: Session, case: Case, library: Library, arrays: Mapping[str, Any]) -> Outcome:
    """Check and time one kernel with one library."""
    refused = library.refuses(case)
    if refused:
        return {"status": refused}
    wanted = check.expected(case, session.size, session.owner, arrays)
    call = library.prepared(case, {name: library.adopt(x) for name, x in arrays.items()})
    if not case.mutates:
        with library.active():
            before = call()
        library.spoil(before)
        del before
    with library.active():
        result = call()
    library.wait(result)
    session.clock.synchronize()
    check.compare(case, library, result, wanted, case.geometry(session.size)[1])
    del result
    with library.active():
        timing = kernel_timing(session.clock, call, session.effort, None if library.ordered else library.wait)
    gigabytes = case.ideal_bytes(session.size) / timing.seconds / 1e9
    return {"status": "ok", **timing.as_dict(), "gb_per_s": gigabytes}


def run_cases(session: Session, chosen: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """Yield rows of kernels. Measure the yardsticks before each row; `finish` adds the fractions."""
    shape = cases.shapes(session.size)["a"]
    source, target = (session.owner.random(shape, "float32", SEED + position) for position in range(2))
    nbytes = source.nbytes
    copy, fill = session.clock.copier(target, source), session.clock.filler(target)
    for case in chosen:
        session.copies.append(2 * nbytes / kernel_timing(session.clock, copy, session.effort).seconds / 1e9)
        session.fills.append(nbytes / kernel_timing(session.clock, fill, session.effort).seconds / 1e9)
        yield run_case(session, case)
        session.release()


def finish(session: Session, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Add fractions of the yardsticks and ratios to the best peer; return the yardsticks, in GB/s."""
    for row in rows:
        yardstick = median(session.fills if row["against"] == "memset" else session.copies)
        for found in row["results"].values():
            if found["status"] == "ok":
                found["of_yardstick"] = row["traffic"] / found["seconds"] / 1e9 / yardstick
        rank(row)
    return {name: spread(values) for name, values in (("copy", session.copies), ("memset", session.fills)) if values}


def rank(row: dict[str, Any]) -> None:
    """Add the name of the fastest peer, and its time as a multiple of tilearray's (above 1: tilearray is faster)."""
    timed = {name: found["seconds"] for name, found in row["results"].items() if found["status"] == "ok"}
    ours = timed.pop("tilearray", None)
    if ours is not None and timed:
        row["best_peer"] = min(timed, key=timed.__getitem__)
        row["speed_of_best_peer"] = timed[row["best_peer"]] / ours


def spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "lowest": min(values), "highest": max(values), "measured": len(values)}


# ---------------------------------------------------------------------- calls


def run_call(session: Session, call: Call) -> dict[str, Any]:
    """Measure the host time of one small operation with every library.

    The libraries take turns, so that a disturbance of the machine does not affect only one of them.
    """
    timers: dict[Library, HostTimer] = {}
    results = attempted(session, lambda library: check_and_prepare(session, call, library, timers))
    turns = min(TURNS, session.effort.call_batches)
    for _ in range(turns):
        for name, library in session.libraries.items():
            if results[name]["status"] == "ok":
                measure = partial(time_call, timers[library], session.effort.call_batches // turns)
                results[name] = outcome_of(measure, library)
    row = {"name": call.name, "statement": call.statement, "results": results}
    rank(row)
    return row


def time_call(timer: HostTimer, batches: int, library: Library) -> Outcome:
    """Return the host time of one small operation with one library, after one more turn."""
    with library.active():
        timing = timer.measure(batches)
    return {"status": "ok", **timing.as_dict(), "microseconds": timing.seconds * 1e6}


def check_and_prepare(session: Session, call: Call, library: Library, timers: dict[Library, HostTimer]) -> Outcome:
    """Check the result of a small operation with one library, and add its timer."""
    refused = library.refuses(call)
    if refused:
        return {"status": refused}
    data = small_data()

    def adopted(shape: cases.Shape) -> Any:
        return library.adopt(session.owner.array(np.resize(data["a"], shape)))

    operands = {name: library.adopt(session.owner.array(x.copy())) for name, x in data.items()}
    operands["add"] = library.names["add"]
    statement, names = library.statement(call, operands)
    batches = itertools.repeat(names) if not call.fresh else fresh_batches(call, adopted, session.effort, names)
    with library.active():
        check_call(replace(call, statement=statement), call, library, next(batches), data)
    timers[library] = HostTimer(session.clock, statement, batches, session.effort.calls)
    return {"status": "ok"}


def small_data() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(SEED)
    return {name: generator.random(shape, np.float32) + np.float32(1) for name, shape in cases.OPERANDS.items()}


def fresh_batches(
    call: Call, array: Callable[[cases.Shape], Any], effort: Effort, operands: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the names for each batch. No shape occurs twice."""
    for start in itertools.count(0, effort.calls):
        xs, ys = cases.FRESH[call.name](array, start, effort.calls)
        yield {**operands, "xs": iter(xs), "ys": iter(ys)}


def check_call(
    timed: Call, call: Call, library: Library, operands: Mapping[str, Any], data: Mapping[str, np.ndarray]
) -> None:
    """Raise MismatchError unless the timed statement gives NumPy's result for the row of the table."""
    if call.fresh:
        x, y = next(operands["xs"]), next(operands["ys"])
        wanted, got = library.to_numpy(x) + library.to_numpy(y), operands["add"](x, y)
    else:
        wanted = evaluated(call, {**{name: x.copy() for name, x in data.items()}, "add": np.add})
        got = evaluated(timed, dict(operands))
    values = np.asarray(library.to_numpy(got))
    if values.shape != wanted.shape or not np.allclose(values, wanted, rtol=1e-6, atol=0):
        raise check.MismatchError(f"{call.statement} differs from NumPy")


def evaluated(call: Call, names: dict[str, Any]) -> Any:
    if call.value:
        exec(call.statement, names)
    return eval(call.value or call.statement, names)


def launch_floor(session: Session) -> Outcome | None:
    """Return the host time of a bare launch, or an error if the driver cannot compile PTX."""
    try:
        names = session.clock.launcher()
    except DriverError as error:
        return {"status": "error", "why": str(error)}
    if names is None:
        return None
    timing = host_timing(session.clock, LAUNCH, itertools.repeat(names), session.effort)
    return {"status": "ok", **timing.as_dict(), "microseconds": timing.seconds * 1e6}

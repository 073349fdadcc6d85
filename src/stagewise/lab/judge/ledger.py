"""The ledger: every claim with its verdict, its control, and the figures behind them."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewise.errors import Failed, one_line
from stagewise.lab.judge.claims import Claim
from stagewise.lab.judge.nulls import Calibration, calibrated
from stagewise.lab.judge.verdict import BROKEN, HOLDS, Interval, Verdict, untested
from stagewise.lab.spec.experiment import PRESETS, Experiment
from stagewise.lab.spec.study import NOT_YET, Grid
from stagewise.lab.store.block import code_of
from stagewise.precision import in_double

if TYPE_CHECKING:
    from stagewise.lab.store.run import Runs


@dataclass(frozen=True)
class Entry:
    """A claim, judged."""

    claim: Claim
    verdict: Verdict
    control: Verdict
    preset: str
    seconds: float
    runs: tuple[str, ...]
    trace: str = ""  # of the error that kept the claim from being judged, if any
    code: Mapping[str, str] = field(default_factory=dict)  # digests, by experiment
    null: Calibration | None = None
    fragile: bool = False  # whether the verdict is another one where starts differ by rounding errors

    @property
    def defect(self) -> str:
        """What is wrong with the claim itself: it broke, or it also holds where it must not."""
        if self.verdict.outcome == BROKEN:
            return self.verdict.why
        if self.control.outcome == HOLDS:
            return "holds on its control"
        return self.null.defect if self.null else ""

    def to_json(self) -> dict[str, Any]:
        claim, verdict = self.claim, self.verdict
        return {
            "id": claim.id,
            "paper": claim.paper,
            "source": claim.source,
            "statement": claim.statement,
            "verdict": verdict.outcome,
            "measured": {name: _plain(interval) for name, interval in verdict.measured.items()},
            "predicted": claim.predicted,
            "threshold": claim.threshold,
            "reason": claim.reason,
            "seeds": verdict.seeds,
            "margin": None if verdict.margin is None else round(verdict.margin, 3),
            "control": {
                "what": claim.control_is,
                "verdict": self.control.outcome,
                "measured": {name: _plain(interval) for name, interval in self.control.measured.items()},
            },
            "beyond_paper": claim.beyond_paper,
            "preset": self.preset,
            "seconds": round(self.seconds, 3),
            "runs": list(self.runs),
            "restated": claim.restated,
            "note": claim.note,
            "why": verdict.why,
            "decides": verdict.decides,
            "uses": list(claim.uses),
            "null": self.null.to_json() if self.null else None,
            "fragile": self.fragile,
            "code": dict(self.code),
            "defect": self.defect,
        }


def experiments_of(needs: Mapping[str, Any]) -> list[Experiment]:
    """The experiments behind a claim's needs, the cells of its studies included."""
    found: list[Experiment] = []
    for need in needs.values():
        if isinstance(need, Experiment):
            found.append(need)
        elif isinstance(need, Grid):
            found += [experiment for _, experiment in need.cells()]
    return found


def missing(needs: Mapping[str, Any]) -> bool:
    """Whether a need is left to a larger preset."""
    return any(need is NOT_YET for need in needs.values())


def experiments_for(claims: Iterable[Claim], preset: str) -> list[Experiment]:
    """Everything that the claims and their controls need."""
    tested = [claim for claim in claims if not missing(claim.needs_at(preset))]
    return [
        e
        for claim in tested
        for needs in (claim.needs_at(preset), claim.needs_at(preset, True), claim.arms_at(preset))
        for e in experiments_of(needs)
    ]


@in_double
def judge_all(claims: Iterable[Claim], preset: str, root: Path, runs: Runs, trials: int = 0) -> list[Entry]:
    """Judge each claim, and each on its control, from finished runs; one whose run failed is broken. With
    `trials`, each judge is put to its null so many times."""
    return [_judge(claim, preset, root, runs, trials) for claim in claims]


def _judge(claim: Claim, preset: str, root: Path, runs: Runs, trials: int) -> Entry:
    began = time.monotonic()
    needs = claim.needs_at(preset)
    if missing(needs):
        larger = next_preset(claim, preset)
        verdict = untested(
            f"it takes more than preset {preset} has: try --preset {larger}", f"preset {larger}"
        )
        return Entry(claim, verdict, verdict, preset, 0.0, ())
    used = [runs[experiment] for experiment in experiments_of(needs) if experiment in runs]
    folders = tuple(dict.fromkeys(str(f.relative_to(root)) for run in used for f in run.folders))
    code = {run.experiment.name: code_of(type(run.experiment)) for run in used}
    null = None
    try:
        handed = {name: given(need, runs) for name, need in needs.items()}
        verdict = claim.judge(**handed)
        fooled = claim.judge(
            **{name: given(need, runs) for name, need in claim.needs_at(preset, control=True).items()}
        )
        if trials and claim.null:
            arms = {name: given(need, runs) for name, need in claim.arms_at(preset).items()}
            null = calibrated(claim.judge, claim.null, handed, arms, trials)
        trace = ""
    except Failed as error:
        verdict, trace = Verdict(BROKEN, {}, 0, str(error)), error.trace
        fooled = verdict
    except Exception as error:  # a defect of that claim, which must not take the others along
        verdict = fooled = Verdict(BROKEN, {}, 0, f"its judge broke: {one_line(error)}")
        trace = "".join(traceback.format_exception(error))
    seconds = sum({run.folders: run.seconds for run in used}.values()) + time.monotonic() - began
    return Entry(claim, verdict, fooled, preset, seconds, folders, trace, dict(sorted(code.items())), null)


def next_preset(claim: Claim, preset: str) -> str:
    """The first larger preset that has all a claim needs."""
    larger = PRESETS[PRESETS.index(preset) + 1 :]
    return next((each for each in larger if not missing(claim.needs_at(each))), larger[-1])


def given(need: Any, runs: Runs) -> Any:
    """What a claim or a figure is handed for a need: a trajectory, a gathered dataset, or the value
    itself."""
    if isinstance(need, Experiment):
        return runs[need].trajectory
    if isinstance(need, Grid):
        cells = tuple(experiment for _, experiment in need.cells())
        if cells not in runs.gathered:
            from stagewise.lab.store.gather import gather

            runs.gathered[cells] = gather(need.axes, [runs[experiment].arrays for experiment in cells])
        return runs.gathered[cells]
    return need


def to_json(entries: Iterable[Entry]) -> dict[str, Any]:
    from stagewise.lab.store.provenance import environment

    return {"environment": environment(), "claims": [entry.to_json() for entry in entries]}


def marked_fragile(entries: Iterable[Entry], nudged: Iterable[Entry]) -> list[Entry]:
    """Entries, each with whether another start, off by rounding errors, gave it another verdict."""
    other = {entry.claim.id: entry.verdict.outcome for entry in nudged}
    return [replace(entry, fragile=other[entry.claim.id] != entry.verdict.outcome) for entry in entries]


def changes(before: Mapping[str, Any], after: Mapping[str, Any], complete: bool = True) -> list[str]:
    """What changed between two ledgers, a line a claim; claims that are gone are told only of a complete
    one."""
    old, new = ({c["id"]: c["verdict"] for c in ledger["claims"]} for ledger in (before, after))
    lines = [f"{id}: {old[id]} -> {new[id]}" for id in new if id in old and old[id] != new[id]]
    lines += [f"{id}: new, {new[id]}" for id in new if id not in old]
    return lines + [f"{id}: no longer there" for id in old if complete and id not in new]


def _plain(interval: Interval) -> dict[str, float | None]:
    values = {"value": interval.value, "low": interval.low, "high": interval.high}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}

"""Ledgers that are kept, one for each preset: lines from several machines and days, each with what it was
made by, and the figures that more seeds are added to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stagewise.errors import Refused, require
from stagewise.lab.judge.evidence import judged_again, united
from stagewise.lab.judge.ledger import Entry
from stagewise.lab.judge.verdict import UNTESTED
from stagewise.lab.spec.experiment import PRESETS, Experiment
from stagewise.lab.spec.settings import digest
from stagewise.lab.store.block import code_of
from stagewise.lab.store.files import Damaged, read_json, write_json
from stagewise.lab.store.provenance import environment

Line = dict[str, Any]
Ledger = dict[str, Any]


def read(path: Path) -> Ledger:
    """A kept ledger; refused if it is none."""
    try:
        found = read_json(path)
        require(all(isinstance(line["id"], str) and line["verdict"] for line in found["claims"]), "")
        return found
    except (Damaged, Refused, KeyError, TypeError) as error:
        raise Refused(f"{path} is not a ledger that can be read") from error


def kept_lines(folder: Path) -> dict[str, dict[str, Line]]:
    """The lines of every ledger in a folder, by preset and by claim."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.json"))}
    order = {preset: number for number, preset in enumerate(PRESETS)}
    return {
        preset: {line["id"]: line for line in found[preset]["claims"]}
        for preset in sorted(found, key=lambda preset: order.get(preset, len(order)))
    }


def check_is_of(path: Path, preset: str) -> Ledger:
    """The kept ledger to merge into, an empty one if there is none yet; refused if it is another preset's."""
    before = read(path) if path.exists() else {"claims": []}
    require(
        before.get("preset", preset) == preset,
        f"{path} is a ledger of preset {before.get('preset')}, not {preset} (set --into)",
    )
    return before


def merge_into(path: Path, entries: Iterable[Entry], preset: str) -> list[str]:
    """Put lines into a kept ledger, and say of which the seeds were added to those that were there.

    Figures of the same rules and thresholds, by the same code, add up, and the claim is judged on all of
    them; any other line takes the place of the old one. What was not tested this time stays as it was."""
    before = check_is_of(path, preset)
    lines, told = {line["id"]: line for line in before["claims"]}, []
    quick = _quick_beside(path)
    for entry in entries:
        line, old = _line(entry, quick), lines.get(entry.claim.id)
        if old and old["verdict"] != UNTESTED == entry.verdict.outcome:
            continue
        if old and (whole := _added(old, line, entry)):
            told.append(f"{line['id']}: {old['seeds']} and {line['seeds']} seeds, {whole['seeds']} in all")
            line = whole
        lines[entry.claim.id] = line
    write_json(path, {"preset": str(preset), "claims": [lines[id] for id in sorted(lines)]})
    return told


def stale(
    ledger: Ledger, experiments: Mapping[str, type[Experiment]], quick: Mapping[str, str]
) -> dict[str, str]:
    """Lines whose code has changed since they were made, and which experiments' it is.

    A line stays valid while the quick runs of its experiments give the same numbers as they did then: `quick`
    has digests of what was measured, by claim."""
    found = {}
    for line in ledger["claims"]:
        changed = [
            name
            for name, code in line.get("code", {}).items()
            if name not in experiments or code_of(experiments[name]) != code
        ]
        then = line.get("quick", {})
        same = bool(then) and all(quick.get(id) == numbers for id, numbers in then.items())
        if changed and not same:
            found[line["id"]] = ", ".join(changed)
    return found


def numbers(ledger: Ledger) -> dict[str, tuple[set[str], str]]:
    """Of every line the experiments behind it, and a digest of what was measured, to six digits: those of
    another machine agree to no more."""
    return {
        line["id"]: (set(line.get("code", {})), digest(_rounded(line["measured"])))
        for line in ledger["claims"]
        if line.get("code")
    }


def _rounded(measured: Mapping[str, Mapping[str, float | None]]) -> dict[str, str]:
    return {
        name: " ".join("none" if value is None else f"{value:.6g}" for value in interval.values())
        for name, interval in measured.items()
    }


def _quick_beside(path: Path) -> dict[str, tuple[set[str], str]]:
    """What the kept ledger of preset quick says, if there is one."""
    beside = path.with_name("quick.json")
    return numbers(read(beside)) if beside.exists() and beside != path else {}


def _added(old: Line, line: Line, entry: Entry) -> Line | None:
    """The line on the seeds of both; None if they do not add up."""
    both = united(old.get("figures", {}), line["figures"]) if old.get("code") == line["code"] else None
    verdict = judged_again(both) if both else None
    if verdict is None:
        return None
    judged = replace(entry, verdict=verdict).to_json()
    kept = {name: judged[name] for name in ("verdict", "seeds", "margin", "why", "decides")}
    return line | kept | {"measured": line["measured"] | judged["measured"], "figures": both}


def _line(entry: Entry, quick: Mapping[str, tuple[set[str], str]]) -> Line:
    """A line as it is kept."""
    where = environment()
    made = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{where['cores']} cores ({where['processor']})",
        "commit": where["commit"],
    }
    figures = {name: dict(figure) for name, figure in entry.verdict.figures.items()}
    known = {id: found for id, (behind, found) in quick.items() if behind & set(entry.code)}
    return entry.to_json() | {"made": made, "figures": figures} | ({"quick": known} if known else {})

"""Claims of papers run, judged and told: the ledger, the figures and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagewise.errors import Refused, nearest, require
from stagewise.lab import catalogue
from stagewise.lab.execute.progress import Progress
from stagewise.lab.judge.claims import Claim
from stagewise.lab.spec.experiment import Experiment, Preset, check_preset
from stagewise.lab.spec.study import names
from stagewise.lab.store.files import make_folder, prepare_for, write_json
from stagewise.lab.store.runs import blocks, runs_root

if TYPE_CHECKING:
    from stagewise.lab.catalogue import Paper
    from stagewise.lab.draw.figures import Figure


@dataclass(frozen=True)
class Reproduction:
    """A ledger with its files."""

    entries: list
    undrawn: Mapping[str, str]  # figures that could not be drawn, and why
    ledger: Path
    report: Path
    added: Sequence[str] = ()  # lines of the kept ledger to which seeds were added

    @property
    def defects(self) -> list[str]:
        """What is wrong with the reproduction itself, a line each."""
        wrong = {entry.claim.id: entry.defect for entry in self.entries if entry.defect}
        wrong |= {f"figure {name}": why for name, why in self.undrawn.items()}
        return [f"{name}: {why}" for name, why in wrong.items()]


def claims_named(name: str) -> list[Claim]:
    """The claims of a paper, one claim, or all of them."""
    known = catalogue.claims()
    if name == "all":
        return list(known.values())
    if name in known:
        return [known[name]]
    if name in catalogue.papers():
        return list(catalogue.papers()[name].claims.values())
    if name in catalogue.experiments() | catalogue.studies():
        raise Refused(f"{name} is something to run, not a claim: use `stagewise run {name}`")
    names = [*catalogue.papers(), *known]
    raise Refused(f"unknown paper or claim {name!r}{nearest(name, names)}; `stagewise list` shows them all")


def reproduce(
    name: str = "all",
    preset: str = "quick",
    *,
    out: Path | str | None = None,
    runs: Path | str | None = None,
    progress: Progress = Progress(),
    stored_only: bool = False,
    engine: str = "process",
    workers: int | None = None,
    address: str | None = None,
    retry: bool = False,
    first_seed: int = 0,
    nulls: int = 0,
    fragile: bool = False,
    into: Path | str | None = None,
    ledgers: Path | str | None = None,
) -> Reproduction:
    """Judge the claims of a paper, one claim, or all, and write `ledger.json`, `report.html` and the figures.

    What is stored is not run again; with `stored_only`, nothing is, and missing runs are refused. Of a single
    claim, only those figures are drawn that need no further runs. Claims whose runs fail are `broken`, and
    the others are judged. `engine` and `retry` are those of `run`.

    `first_seed` judges on other seeds, such as fresh ones from 1000 on. With `nulls`, every judge is put to
    so many nulls of its claim. With `fragile`, everything is run a second time from starts that are off by
    rounding errors, and verdicts that change are marked. `into` names a kept ledger to add the lines to, and
    `ledgers` a folder of kept ones, whose verdicts the report shows beside these."""
    check_preset(preset)
    require(0 <= nulls <= 10_000, f"nulls must lie between 0 and 10000, not {nulls} (set --nulls)")
    asked, claims = preset, claims_named(name)
    if first_seed:
        preset = Preset.but(preset, first_seed=first_seed)
    root = make_folder(Path(runs) if runs else runs_root())
    target = make_folder(Path(out) if out else root / "reports" / f"{name}.{preset}")
    from stagewise.lab.execute import engines
    from stagewise.lab.execute.run import run_all
    from stagewise.lab.judge.kept import check_is_of, kept_lines, merge_into
    from stagewise.lab.judge.ledger import experiments_for, judge_all, marked_fragile, to_json
    from stagewise.lab.report import write
    from stagewise.lab.report.painter import Painter

    if into:
        prepare_for(Path(into), progress.note)
        check_is_of(Path(into), asked)
    kept = kept_lines(Path(ledgers)) if ledgers else {}
    found = engines.engine(engine, workers, address)
    experiments, figures = wanted(claims, preset)
    if stored_only:
        missing = sum(
            not all(block.finished or block.failure for block in blocks(e, root))
            for e in dict.fromkeys(experiments)
        )
        require(
            not missing,
            f"{missing} of the runs are not stored yet: `stagewise reproduce {name} --preset {preset}` makes "
            "them",
        )
    painter = Painter(figures, preset, root, target, alone=engine in ("auto", "pool"))
    try:
        painter.begin()
        done = run_all(experiments, root, progress, found, retry, units=asked == "long")
        painter.paint()
        entries = judge_all(claims, preset, root, done, nulls)
        if fragile:
            nudged = Preset.but(asked, first_seed=first_seed, perturbed=1)
            again = run_all(experiments_for(claims, nudged), root, progress, found, retry)
            entries = marked_fragile(entries, judge_all(claims, nudged, root, again))
        added = merge_into(Path(into), entries, asked) if into else []
        write_json(target / "ledger.json", to_json(entries))
        charts, undrawn = painter.drawn(done)
    finally:
        painter.end()
    report = write(papers_of(claims), entries, charts, preset, done, target, kept)
    return Reproduction(entries, undrawn, target / "ledger.json", report, added)


def wanted(claims: Sequence[Claim], preset: str) -> tuple[list[Experiment], list[Figure]]:
    """What is run for some claims and their papers' figures, and which figures can be drawn then: of a single
    claim, those that need no further runs."""
    from stagewise.lab.judge.ledger import experiments_for, experiments_of, missing

    experiments = experiments_for(claims, preset)
    figures = [figure for paper in papers_of(claims) for figure in paper.figures().values()]
    if len(claims) == 1:
        run = {experiment.name for experiment in experiments}
        figures = [figure for figure in figures if names(figure.needs) <= run]
    needed_by = {
        figure: experiments_of(needs) for figure in figures if not missing(needs := figure.needs_at(preset))
    }
    if len(claims) == 1:
        needed_by = {figure: needs for figure, needs in needed_by.items() if set(needs) <= set(experiments)}
    return experiments + [e for needs in needed_by.values() for e in needs], list(needed_by)


def page(name: str, preset: str, root: Path) -> str:
    """The report's page, from runs that are all stored. Only reads."""
    from stagewise.lab.judge.ledger import judge_all
    from stagewise.lab.report import draw_all
    from stagewise.lab.report import page as page_of
    from stagewise.lab.store.run import stored_runs

    claims = claims_named(name)
    experiments, figures = wanted(claims, preset)
    done = stored_runs(experiments, root)
    return page_of(
        papers_of(claims),
        judge_all(claims, preset, root, done),
        draw_all(figures, preset, done)[0],
        preset,
        done,
    )


def papers_of(claims: Sequence[Claim]) -> list[Paper]:
    return [catalogue.papers()[paper] for paper in dict.fromkeys(claim.paper for claim in claims)]

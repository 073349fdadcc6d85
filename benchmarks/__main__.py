"""`make bench`: run every benchmark, print a table, write benchmarks/results.json."""

import json
from pathlib import Path

import stagewise  # noqa: F401  (switches double precision on before jax is imported)
from stagewise import threads

threads.all_cores()  # both sides have them all
from benchmarks import cooccurrence, mixture, parity  # noqa: E402
from stagewise.lab.provenance import environment


def main() -> None:
    rows = [row for part in (mixture, cooccurrence, parity) for row in part.rows()]
    wide = max(len(row["what"]) for row in rows)
    print(f"{'what':<{wide}}  {'ours':>12}  {'peer':>12}  {'ratio':>8}  unit")
    for row in rows:
        print(f"{row['what']:<{wide}}  {row['ours']:>12,.1f}  {row['peer']:>12,.1f}  {row['ratio']:>8.1f}  {row['unit']}")
    path = Path(__file__).parent / "results.json"
    path.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()

"""`make bench`: run every benchmark, print a table, write benchmarks/results.json. `python -m benchmarks
lego` runs those of one paper and writes nothing."""

import json
import os
import sys
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"  # some programs are timed without what runs them
from benchmarks import composition, cooccurrence, lego, mixture, page, parity, sweep  # noqa: E402
from stagewise.lab.store.provenance import environment  # noqa: E402


def main() -> None:
    parts = {
        "mixture": mixture,
        "cooccurrence": cooccurrence,
        "parity": parity,
        "lego": lego,
        "composition": composition,
        "sweep": sweep,
        "page": page,
    }
    if unknown := set(sys.argv[1:]) - set(parts):
        sys.exit(f"benchmarks: there is none for {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    rows = [row for name in sys.argv[1:] or parts for row in parts[name].rows()]
    wide = max(len(row["what"]) for row in rows)
    print(f"{'what':<{wide}}  {'ours':>12}  {'peer':>12}  {'ratio':>8}  unit")
    for row in rows:
        print(
            f"{row['what']:<{wide}}  {row['ours']:>12,.1f}  {row['peer']:>12,.1f}  {row['ratio']:>8.1f}  "
            f"{row['unit']}"
        )
    if sys.argv[1:]:
        return
    path = Path(__file__).parent / "results.json"
    path.write_text(json.dumps({"environment": environment(), "rows": rows}, indent=1) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()

"""make bench: measures every number of docs/reference/numbers.md. One JSON line per number (bench/measure.py says what is in it).

  bench/run.py                 all parts, about 10 minutes
  bench/run.py node ptx        these parts only
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bench import charge_bench, defence_bench, hostile_bench, ktask_bench, models_bench, node_bench, parts_bench, pipeline_bench, shares_bench, shim_bench  # noqa: E402

PARTS = {
    "policy": parts_bench.policy,
    "simulator": parts_bench.simulator,
    "sandbox": parts_bench.sandbox,
    "ptx": parts_bench.ptx_machine,
    "driver": parts_bench.software_driver,
    "shim": shim_bench.main,
    "shares": shares_bench.main,
    "charge": charge_bench.main,
    "hostile": hostile_bench.main,
    "defence": defence_bench.main,
    "node": node_bench.main,
    "ktask": ktask_bench.main,
    "models": models_bench.main,
    "pipeline": pipeline_bench.main,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or more of: {', '.join(PARTS)}")
    chosen = parser.parse_args().parts or list(PARTS)
    for part in chosen:
        if part not in PARTS:
            parser.error(f"no part named {part}; there are {', '.join(PARTS)}")
    for part in chosen:
        PARTS[part]()


if __name__ == "__main__":
    main()

"""make bench: measures every number of docs/reference/numbers.md. One JSON line per number (bench/measure.py says what is in it).

  bench/run.py                 all parts, about 10 minutes
  bench/run.py node ptx        these parts only
  bench/run.py shares --minutes 10 --seeds 5
                               shares alone: each row so long, and with so many seeds
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bench import batch_bench, bursts_bench, charge_bench, defence_bench, hostile_bench, ktask_bench, models_bench, node_bench, parts_bench, pipeline_bench, shares_bench, shim_bench, store_bench, streams_bench, traces_bench, turns_bench  # noqa: E402

PARTS = {
    "policy": parts_bench.policy,
    "simulator": parts_bench.simulator,
    "sandbox": parts_bench.sandbox,
    "ptx": parts_bench.ptx_machine,
    "driver": parts_bench.software_driver,
    "shim": shim_bench.main,
    "shares": shares_bench.main,
    "bursts": bursts_bench.main,
    "batch": batch_bench.main,
    "charge": charge_bench.main,
    "hostile": hostile_bench.main,
    "defence": defence_bench.main,
    "node": node_bench.main,
    "traces": traces_bench.main,
    "streams": streams_bench.main,
    "store": store_bench.main,
    "ktask": ktask_bench.main,
    "models": models_bench.main,
    "pipeline": pipeline_bench.main,
    "turns": turns_bench.main,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or more of: {', '.join(PARTS)}")
    parser.add_argument("--minutes", type=float, help="of each row of shares; a third by default")
    parser.add_argument("--seeds", type=int, default=1, help="of each row of shares, 1 by default")
    options = parser.parse_args()
    chosen = options.parts or list(PARTS)
    for part in chosen:
        if part not in PARTS:
            parser.error(f"no part named {part}; there are {', '.join(PARTS)}")
    if (options.minutes or options.seeds != 1) and chosen != ["shares"]:
        parser.error("--minutes and --seeds are of the part shares alone")
    if (options.minutes is not None and options.minutes <= 0) or options.seeds < 1:
        parser.error("--minutes and --seeds are more than 0")
    for part in chosen:
        if chosen == ["shares"]:
            PARTS[part](60 * options.minutes if options.minutes else shares_bench.SECONDS, options.seeds)
        else:
            PARTS[part]()


if __name__ == "__main__":
    main()

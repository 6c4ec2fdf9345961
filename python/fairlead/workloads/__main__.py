"""Writes a workload as a bundle, and beside it, as inputs/NAME.bin, inputs for a call."""

import argparse
import pathlib

from fairlead import workloads


def main():
    parser = argparse.ArgumentParser(prog="python3 -m fairlead.workloads", description=__doc__)
    parser.add_argument("workload", choices=workloads.WORKLOADS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--factor", type=float, default=1, help="size of every dimension, 1 is the paper's")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other constants")
    options = parser.parse_args()
    if not 0 < options.factor <= 4:
        parser.error(f"--factor is {options.factor}, more than 0 and at most 4 is possible")
    task, inputs = workloads.make(options.workload, options.factor, options.seed)
    task.save(options.folder)
    (options.folder / "inputs").mkdir(exist_ok=True)
    for name, array in inputs.items():
        array.tofile(options.folder / "inputs" / f"{name}.bin")
    constants = sum(len(data) for data in task.constants().values())
    print(f"{options.folder}: {len(task.launches)} kernels, {constants / 1e6:.1f} MB of constants")


if __name__ == "__main__":
    main()

"""A pipeline of kernel tasks and a program, without PyTorch: what is long is cut before it is scaled."""

import array
import tempfile

import fairlead
from fairlead import ktask


def is_long(values):
    return array.array("B", [int(sum(values) > 4)])


def scaling(factor):
    task = ktask.Task()
    task.output("y", task.scale(task.input("x", "f32", (4,)), factor))
    return task


class Scaled(fairlead.Pipeline):
    inputs = {"values": ("f32", (4,))}

    def dag(self, values):
        long = self.program(is_long, values, returns={"is_long": ("u8", (1,))})
        with self.when(long):
            cut = self.task(scaling(0.5), values, name="halve")
        return {"scaled": self.task(scaling(10), self.join(cut, values), name="scale")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with fairlead.pipeline.load(Scaled().build(folder)) as run:
            for first in (1, 9):
                values = array.array("f", [first, 1, 1, 0])
                print(list(values), "->", list(run(values=values)["scaled"]), "by", run.ran)

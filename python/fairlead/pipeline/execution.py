"""Which components of a pipeline run for these values, and with what: the rule of description.py, in one place."""

import struct

from fairlead.arrays import as_array
from fairlead.pipeline.description import sources_of, wanted
from fairlead.types import TYPES


def pick(said, values):
    """The name of the first source that is there, or None."""
    return next((source for source in sources_of(said) if source in values), None)


def truth(value, type):
    """Whether the one element of an array is other than zero (NaN is)."""
    element, = struct.unpack("<" + TYPES[type].code, bytes(as_array(value).data))
    return element != 0


def runs(component, values, tensors):
    """`values`: {"component.output": array} of what is there; `tensors`: their types and shapes."""
    when = component.get("when")
    if when:
        decider = when["value"]
        if decider not in values or truth(values[decider], tensors[decider][0]) != wanted(when):
            return False
    return all(pick(said, values) for said in component["inputs"].values())


def execute(components, values, tensors, call):
    """Runs what can run, in this order; `call(component, {input: value})` gives {output: value}. Values are added to
    `values`; the names of the components that ran are returned."""
    ran = []
    for component in components:
        if not runs(component, values, tensors):
            continue
        inputs = {name: values[pick(said, values)] for name, said in component["inputs"].items()}
        for name, value in call(component, inputs).items():
            values[f"{component['name']}.{name}"] = value
        ran.append(component["name"])
    return ran

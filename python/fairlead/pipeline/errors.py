"""What is wrong with a pipeline, and where its author wrote it."""

import pathlib
import traceback

from fairlead.types import TaskError

_PACKAGE = str(pathlib.Path(__file__).resolve().parents[1])


class PipelineError(TaskError):
    """A pipeline that cannot be: the message names component, edge, value, bound, and the line of the author's file."""


def author_line():
    """FILE:LINE of the innermost caller that is not of this package; "" where there is none."""
    for frame in reversed(traceback.extract_stack()):
        if not str(pathlib.Path(frame.filename).resolve()).startswith(_PACKAGE):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def at(line):
    return f" ({line})" if line else ""

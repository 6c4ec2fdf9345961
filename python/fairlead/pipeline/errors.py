"""What is wrong with a pipeline, and where its author wrote it."""

import contextlib
import pathlib
import traceback

from fairlead.types import TaskError

_NOT_THE_AUTHORS = (str(pathlib.Path(__file__).resolve().parent), contextlib.__file__)


class PipelineError(TaskError):
    """A pipeline that cannot be: the message names component, edge, value, bound, and the line of the author's file."""


def author_line():
    """FILE:LINE of the innermost caller that is not of fairlead.pipeline; "" where there is none."""
    for frame in reversed(traceback.extract_stack()):
        if not str(pathlib.Path(frame.filename).resolve()).startswith(_NOT_THE_AUTHORS):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def at(line):
    return f" ({line})" if line else ""

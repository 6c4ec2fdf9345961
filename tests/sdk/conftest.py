"""The Python package from this tree, on a software GPU of its own."""

import os
import tempfile

import pytest
import sdk_paths  # noqa: F401  puts the package on the path


@pytest.fixture(autouse=True, scope="session")
def software_gpu():
    """One software GPU for the session: its folder is read when the first test uses it."""
    with tempfile.TemporaryDirectory(prefix="fairlead-sdk-") as home:
        os.environ["SOFTGPU_HOME"] = home
        yield

# SPDX-License-Identifier: Apache-2.0
"""The profiler as a context manager: every run inside it is measured."""
import json
import os

from . import _core, _executable


class Profile:
    """What `anymps.profile()` measures. Print it, or write a trace that Perfetto and chrome://tracing open.

        with anymps.profile() as p:
            model(x)
        print(p)
        p.save_trace("trace.json")
    """

    def __init__(self):
        self._core = _core.Profiler()

    def __enter__(self):
        _executable._profilers.append(self)
        return self

    def __exit__(self, *_):
        _executable._profilers.remove(self)

    @property
    def table(self):
        """Nodes and ops with their kernels and times, as text."""
        return self._core.text("table")

    def json(self):
        """The same as data."""
        return json.loads(self._core.text("json"))

    @property
    def trace(self):
        """The trace, as JSON text."""
        return self._core.text("trace")

    def save_trace(self, path):
        """Writes the trace to a file."""
        _core.write_file(os.fspath(path), self.trace)

    def reset(self):
        """Forgets what was measured."""
        self._core.reset()

    def __str__(self):
        return self.table

    def _repr_html_(self):
        text = self.table.replace("&", "&amp;").replace("<", "&lt;")
        return f"<pre>{text}</pre>"


def profile():
    """A profiler for the runs inside a `with` block; see Profile."""
    return Profile()

# SPDX-License-Identifier: Apache-2.0
"""Files that are there as a whole or not at all: written aside and renamed, so that what fails leaves none behind."""

import contextlib
import os
import stat


@contextlib.contextmanager
def new_file(path):
    """The name to write to instead of `path`, which takes its place at the end. A link keeps its place, and what is no
    file, such as /dev/null, is written as it is."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        yield path
        return
    aside = f"{path}.{os.getpid()}.tmp"
    try:
        yield aside
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(aside)
        raise


def write_file(path, data):
    with new_file(path) as name, open(name, "wb") as out:
        out.write(data)

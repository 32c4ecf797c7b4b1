# SPDX-License-Identifier: Apache-2.0
"""Exports an example model to a program that runs on MPSBackend: upstream's command under upstream's name.

python3 -m examples.apple.mps.scripts.mps_example --model_name="mv2" --bundled

from this door's folder, or from the repository's root, whose examples/apple is a link to the one here.
"""

import pathlib
import sys

DOOR = pathlib.Path(__file__).resolve().parents[4]

if __name__ == "__main__":
    sys.path.insert(1, str(DOOR))
    from anymps_executorch.environment import ensure_executorch

    ensure_executorch("examples.apple.mps.scripts.mps_example")
    from anymps_executorch.mps_example import main

    main()

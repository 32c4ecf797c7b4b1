# SPDX-License-Identifier: Apache-2.0
"""Exports an example model to a program that runs on MPSBackend: upstream's command under upstream's name.

cd doors/executorch && python3 -m examples.apple.mps.scripts.mps_example --model_name="mv2" --bundled
"""

from anymps_executorch.environment import ensure_executorch

if __name__ == "__main__":
    ensure_executorch("examples.apple.mps.scripts.mps_example")
    from anymps_executorch.mps_example import main

    main()

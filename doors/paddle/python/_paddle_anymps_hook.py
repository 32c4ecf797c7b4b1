# SPDX-License-Identifier: Apache-2.0
"""Waits for `import paddle`: paddle_anymps.pth imports this file whenever Python starts, so it imports nothing but sys,
which is always there. What it does with Paddle is in paddle_anymps/importing.py."""

import sys

_WATCHED = ("paddle", "paddle.base.core", "paddle.distributed.launch.context.device")


class _Finder:
    """Finds the watched modules as everybody else would, and tells paddle_anymps when they are loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _WATCHED:
            return None
        for finder in sys.meta_path:
            spec = None if finder is _Finder else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        if spec.loader is not None:
            try:
                from paddle_anymps import importing

                importing.watch(name, spec.loader)
            except Exception as error:  # Paddle is imported whatever happens here
                print(f"paddle_anymps: the device mps is not available: {error!r}", file=sys.stderr)
        return spec


sys.meta_path.insert(0, _Finder)

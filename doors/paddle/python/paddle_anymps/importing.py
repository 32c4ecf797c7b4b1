# SPDX-License-Identifier: Apache-2.0
"""What happens around `import paddle`.

A custom device makes itself Paddle's default device, and changes `paddle.cuda.is_available()` and what
`paddle.distributed` chooses. All of that is decided while Paddle is imported, by asking which custom devices there are.
So that installing this package changes nothing, Paddle does not hear of `mps` until its import is over.
"""

import ctypes
import os
import re
import sys

DEVICE = "mps"
_quiet = False  # whether Paddle's messages about loading the plug-in are held back


def watch(name, loader):
    """Has `loader`, which is about to load the module `name`, tell us before and after."""
    load = loader.exec_module

    def exec_module(module):
        if name == "paddle":
            _hush()
            _shorten(os.path.dirname(getattr(module, "__file__", None) or ""))
        load(module)
        try:
            _loaded[name](module)
        except Exception as error:  # Paddle works without us
            print(f"paddle_anymps: the device mps is not available: {error!r}", file=sys.stderr)

    loader.exec_module = exec_module


def _hide(module):
    """Lets `module` ask for custom devices as if `mps` were not there, unless it is the device in use."""
    from paddle.base import core

    every_type = getattr(core, "_anymps_every_type", None) or core.get_all_custom_device_type
    core._anymps_every_type = every_type

    def get_all_custom_device_type():
        framework = sys.modules.get("paddle.base.framework")
        place = getattr(framework, "_global_expected_place_", None)
        if isinstance(place, core.CustomPlace) and place.get_device_type() == DEVICE:
            return every_type()
        return [name for name in every_type() if name != DEVICE]

    module.get_all_custom_device_type = get_all_custom_device_type


def _finish(paddle):
    from paddle.base import core

    from . import install

    core.get_all_custom_device_type = core._anymps_every_type
    install.install(paddle)
    _speak(core)


_loaded = {
    "paddle": _finish,
    "paddle.base.core": _hide,
    "paddle.distributed.launch.context.device": _hide,
}


def _hush():
    """Paddle logs five lines whenever it loads a plug-in. They are not for the user of an installed one."""
    global _quiet
    if any(name in os.environ for name in ("GLOG_v", "GLOG_vmodule", "GLOG_minloglevel")):
        return
    _quiet = True
    os.environ["GLOG_minloglevel"] = "1"


def _shorten(package):
    """Puts the shortcuts (csrc/shortcuts) where Paddle's libraries, which are loaded next, find their functions first. They are
    for one version of Paddle; in another, or without them, Paddle is slower and does the same."""
    if os.environ.get("ANYMPS_PADDLE_SHORTCUTS") == "0":
        return
    path = os.path.join(os.path.dirname(__file__), "libpaddle_anymps_shortcuts.so")
    try:
        made_for = ctypes.c_char_p.in_dll(ctypes.CDLL(path), "anymps_paddle_shortcuts_version").value.decode()
        with open(os.path.join(package, "version", "__init__.py")) as version:
            if re.search(rf"^full_version\s*=\s*'{re.escape(made_for)}'$", version.read(), re.MULTILINE):
                ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except (OSError, ValueError):
        pass


def _speak(core):
    """Afterwards its messages are shown as before: each of its libraries has a copy of the level."""
    if not _quiet:
        return
    os.environ.pop("GLOG_minloglevel", None)
    package = os.path.dirname(os.path.dirname(core.__file__))
    for path in ("base/libpaddle.so", "libs/libphi_core.so"):
        try:
            library = ctypes.CDLL(os.path.join(package, path))
            ctypes.c_int.in_dll(library, "_ZN3fLI17FLAGS_minloglevelE").value = 0
        except (OSError, ValueError):
            pass

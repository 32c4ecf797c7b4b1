# SPDX-License-Identifier: Apache-2.0
"""`python -m paddle_anymps kernels`: the table of kernels that the device has, as docs/generated/paddle_kernels.md."""

import ctypes
import sys


def main():
    if sys.argv[1:] != ["kernels"]:
        sys.exit("usage: python -m paddle_anymps kernels")
    import paddle  # noqa: F401  it loads the kernels

    from paddle_anymps import native

    function = native.library().anymps_paddle_kernels
    function.restype = ctypes.c_char_p
    sys.stdout.write(function().decode())


main()

// SPDX-License-Identifier: Apache-2.0
#include <metal_stdlib>

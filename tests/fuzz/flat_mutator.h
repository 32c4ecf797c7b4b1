// SPDX-License-Identifier: Apache-2.0
// Changes a FlatBuffer at the places where its numbers are, now and then at any byte. Returns the
// new size.
#pragma once

#include <cstddef>
#include <cstdint>

size_t mutate_flat(uint8_t* data, size_t size, size_t max_size, unsigned seed);

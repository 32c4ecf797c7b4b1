// SPDX-License-Identifier: Apache-2.0
// Pages of memory that is about to be read or written as a whole. The system maps them in one go,
// which takes less than a page fault for each; where it cannot, they are mapped as they are
// touched.
#pragma once

#include <cstddef>

namespace anymps {

void map_for_reading(const void* data, size_t bytes);  // of a mapped file, or any other memory
void map_for_writing(void* data, size_t bytes);
// Pages of a mapped file that are not needed for now.
void give_back_pages(const void* data, size_t bytes);

}  // namespace anymps

// SPDX-License-Identifier: Apache-2.0
// Pages of memory that is about to be written as a whole. The system maps them in one go, which
// takes less than a page fault for each; where it cannot, they are mapped as they are touched. (A
// mapped file's are left to faults: each brings 16 that are there, in less time.)
#pragma once

#include <cstddef>

namespace anymps {

void map_for_writing(void* data, size_t bytes);
// Pages of a mapped file that are not needed for now.
void give_back_pages(const void* data, size_t bytes);

// Bytes of a large page, of which the system clears one in a seventh of the time that it takes for
// as many ordinary ones; 0: there are none.
size_t large_page();
// Asks for large pages under memory that is still untouched and begins at one, which is mapped at
// once to see how long that takes: a virtual machine whose free memory is with its host waits for
// each. After a slow one there are no more.
void use_large_pages(void* data, size_t bytes);

}  // namespace anymps

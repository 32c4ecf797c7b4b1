// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/elementwise/strided_tile.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "drivers/cpu/common/by_size.h"

namespace anymps::cpu {

void fill_tile(void* tile, const void* element_at, size_t element, int64_t n) {
  by_size(element, [&]<typename T>() {
    T value;
    std::memcpy(&value, element_at, sizeof(T));
    std::fill_n(static_cast<T*>(tile), n, value);
  });
}

void gather_tile(void* tile, const void* from, size_t element, int64_t rows, int64_t columns,
                 int64_t row_stride, int64_t column_stride) {
  by_size(element, [&]<typename T>() {
    T* to = static_cast<T*>(tile);
    const T* source = static_cast<const T*>(from);
    if (column_stride == 1) {
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(to + r * columns, source + r * row_stride,
                    static_cast<size_t>(columns) * sizeof(T));
    } else if (column_stride == 0) {
      for (int64_t r = 0; r < rows; ++r)
        std::fill_n(to + r * columns, columns, source[r * row_stride]);
    } else if (rows > 1 && std::abs(row_stride) < std::abs(column_stride)) {
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = 0; r < rows; ++r)
          to[r * columns + c] = source[r * row_stride + c * column_stride];
    } else {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          to[r * columns + c] = source[r * row_stride + c * column_stride];
    }
  });
}

void scatter_tile(void* to, const void* tile, size_t element, int64_t rows, int64_t columns,
                  int64_t row_stride, int64_t column_stride) {
  by_size(element, [&]<typename T>() {
    T* target = static_cast<T*>(to);
    const T* source = static_cast<const T*>(tile);
    for (int64_t r = 0; r < rows; ++r) {
      if (column_stride == 1) {
        std::memcpy(target + r * row_stride, source + r * columns,
                    static_cast<size_t>(columns) * sizeof(T));
        continue;
      }
      for (int64_t c = 0; c < columns; ++c)
        target[r * row_stride + c * column_stride] = source[r * columns + c];
    }
  });
}

}  // namespace anymps::cpu

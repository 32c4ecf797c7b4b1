// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: how tensors come into and go out of the programs here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"

namespace common {

struct Array {
  amps::DType dtype = amps::DType::f32;
  std::vector<int64_t> shape;
  std::vector<char> data;  // row-major

  size_t count() const { return data.size() / amps::size_of(dtype); }
};

Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);
Array to_array(const amps::Tensor& tensor);

// Element i as a number, whatever the dtype (the real part of a complex one).
double element(const Array& array, size_t i);

}  // namespace common

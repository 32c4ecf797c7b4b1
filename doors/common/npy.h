// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: how tensors come into and go out of the programs here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anymps/anymps.hpp"

namespace anymps::common {

struct Array {
  amps::DType dtype = amps::DType::f32;
  std::vector<int64_t> shape;
  std::vector<char> data;            // row-major
  std::vector<std::string> strings;  // instead, of strings

  size_t count() const {
    return dtype == amps::DType::string ? strings.size() : data.size() / amps::size_of(dtype);
  }
};

// Strings are NumPy's unicode arrays (<U). What NumPy has no type for is refused.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);
Array to_array(const amps::Tensor& tensor);
amps::Tensor to_tensor(const amps::Device& device, const Array& array);

// Element i as a number (the real part of a complex one). Strings and types narrower than a byte's
// integers have none.
double element(const Array& array, size_t i);

}  // namespace anymps::common

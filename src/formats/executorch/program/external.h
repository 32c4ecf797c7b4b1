// SPDX-License-Identifier: Apache-2.0
// Weights in a separate file (.ptd, identifier "FT01"), by name. The file is looked for beside the
// program: under the program's name, then under the one that the exporter gives by default.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "formats/executorch/program/flat.h"
#include "formats/executorch/program/program.h"

namespace anymps::executorch {

class ExternalData {
 public:
  explicit ExternalData(const std::string& program);  // the path of the .pte file

  // The elements of a tensor; `table` is named when they are not there or are of another type.
  std::string_view find(const FlatTable& table, const Tensor& tensor, size_t bytes) const;
  std::shared_ptr<const MappedFile> file() const { return file_; }

 private:
  struct Entry {
    std::string_view data;
    bool is_tensor = false;
    DType dtype = DType::kF32;
    Ints sizes;
    std::vector<uint8_t> dim_order;
  };
  void read();

  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace anymps::executorch

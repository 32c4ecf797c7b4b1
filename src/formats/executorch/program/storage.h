// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a program lie: in the FlatBuffer itself, or in segments after it, which an
// extended header describes. Every piece that is handed out was checked to lie in the file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/executorch/program/external.h"
#include "formats/executorch/program/flat.h"
#include "formats/executorch/program/program.h"

namespace anymps::executorch {

class Storage {
 public:
  explicit Storage(const Source& source);

  const FlatTable& root() const { return root_; }

  // `table` and its fields are named when the piece is not there.
  std::string_view constant(const FlatTable& table, uint64_t buffer, size_t bytes) const;
  std::string_view state(const FlatTable& table, uint64_t segment, uint64_t buffer,
                         size_t bytes) const;
  std::string_view external(const FlatTable& table, const Tensor& tensor, size_t bytes) const;
  std::shared_ptr<const void> external_file() const;  // null: none was used
  std::string_view payload(const FlatTable& reference) const;
  std::vector<std::pair<std::string, std::string_view>> named_data() const;

 private:
  struct Pieces {  // of a segment; each goes on to its end
    bool there = false;
    std::vector<std::string_view> list;
  };
  static std::string_view flat_part(const Source& source);
  void read_segments();
  Pieces pieces(const FlatTable& offsets) const;

  const Source& source_;
  mutable std::unique_ptr<ExternalData> external_;  // opened when it is needed
  FlatBuffer flat_;
  FlatTable root_;
  std::vector<std::string_view> segments_;
  std::vector<std::string_view> inline_constants_, inline_payloads_;
  Pieces constants_;
  std::vector<Pieces> states_;
};

// "ET12", "BP08": two letters and a version of two digits. Other versions are recognised too, to
// say that they are not supported.
bool has_identifier(std::string_view bytes, std::string_view letters);

// The segments that a vector of DataSegment tables describes; they must not overlap.
std::vector<std::string_view> read_segments(const FlatTable& root, FlatField field,
                                            std::string_view all);

// Parts of a Tensor table, which programs and bundles have in common.
Ints read_sizes(const FlatTable& table, FlatField field);
std::vector<uint8_t> read_dim_order(const FlatTable& table, FlatField field, size_t rank);
DType read_dtype(const FlatTable& table, FlatField field);
// An Int, a Bool or a Double of the two unions, which have the same numbers for them.
EValue read_number(const FlatTable& value, uint8_t kind);
// The size of the elements; `field` is the one to blame when they are too many.
size_t read_bytes(const FlatTable& table, FlatField field, DType dtype, const Ints& sizes);

}  // namespace anymps::executorch

// SPDX-License-Identifier: Apache-2.0
// The values of a payload while its nodes are added: what each id is declared to be, and what it
// holds at this point of the program. Ids may be written more than once: in half precision the
// exporter casts in place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/executorch/program/flat.h"
#include "formats/executorch/program/program.h"
#include "formats/node_builder.h"

namespace anymps::executorch {

// The dtype that a field names.
DType to_dtype_of_mps(const FlatTable& table, FlatField field);

// A node reads an id that no input, constant or node before it has set.
struct NeverWritten {
  Error error;
};

class PayloadValues {
 public:
  // `segment` is where the constants lie.
  PayloadValues(Graph& graph, const FlatTable& root, const Source& payload,
                std::string_view segment, std::string stem);

  // The id in a field of a table, of the whole graph or of a node; checked.
  size_t id(const FlatTable& table, int64_t id, FlatField field) const;

  DType dtype(size_t id) const;
  const Ints& dims(size_t id) const { return values_[id].dims; }
  bool is_converted(size_t id) const { return values_[id].converted; }

  Value* get(size_t id, const FlatTable& reader, FlatField field);
  // `converted`: its type is what a cast asked for, whatever is declared.
  void set(size_t id, Value* value, bool converted = false);
  void set_later(size_t id, std::function<Value*()> make);  // when somebody reads it

  // The inputs have the shapes that the payload was made for, so every value must have its own.
  bool exact = false;

 private:
  struct Entry {
    FlatTable table;  // MPSTensor
    Ints dims;
    bool constant = false, converted = false;
    Value* now = nullptr;
    std::function<Value*()> later;
  };
  Entry read(const FlatTable& table) const;
  std::string_view data_of(const FlatTable& table) const;
  Value* constant(const Entry& entry, size_t id) const;

  Graph& graph_;
  Source payload_;
  std::string_view segment_;
  std::string stem_;
  std::vector<Entry> values_;
};

}  // namespace anymps::executorch

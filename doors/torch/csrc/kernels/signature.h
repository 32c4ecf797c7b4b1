// SPDX-License-Identifier: Apache-2.0
// How the arguments and results of an ATen op, as its schema has them, meet a row of the table.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/function_schema.h>
#include "kernels/bounds.h"
#include "table/table_row.h"

namespace anymps::aten {

struct Slot {
  enum class Kind {
    kTensor,
    kTensors,
    kNumber,
    kInt,
    kFloat,
    kFlag,
    kInts,
    kFloats,
    kText,
    kDType,
    kGenerator,
    kOther
  };
  Kind kind = Kind::kOther;
  bool out = false;               // written and not read
  bool common = false;            // takes part in promotion
  bool on_cpu = false;            // may lie there
  bool counts_from_zero = false;  // indices, none of them below 0
  bool probabilities = false;     // elements from 0 to 1
  bool not_negative = false;      // elements of 0 and more
  bool held = false;              // a number that the type of what is written holds
  bool masks = false;             // a list of indices with masks among them
  Bound bound = Bound::kNone;     // a number that bounds the others
};

struct Signature {
  Signature(const c10::FunctionSchema& schema, const TableRow& row);
  void take_one(Slot::Kind& kind, size_t i);

  std::string arguments;  // as a row of the lowering has them
  std::vector<Slot> slots;
  // Arguments that results go to, behind those that are made: `out` ones, those that the schema
  // calls changed, and others.
  std::vector<size_t> written;
  size_t made = 0;  // results in new memory
  size_t returns = 0;
  bool common = false, common_float = false, state = false, out_type = false, out_dims = false,
       format = false, any_format = false;
  bool each = false;
  bool checked = false;
  size_t check_errors = 0, info = 0;  // the arguments of these names, if it is checked
  std::vector<size_t> lists;          // arguments that are lists, of which a call takes one place
  bool in_place = false;              // what is written has its shape
  bool flag = false;                  // the result is a bool of the host
  bool takes_out = false;             // results are given by the caller
};

}  // namespace anymps::aten

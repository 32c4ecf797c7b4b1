// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace anymps::aten {

// A row of the table: which ops ("add.out", or several with spaces between), what is to be known of
// their arguments, and what they compute in the language of lowering/expression.h, with the names
// of the schema. Marks of an argument, of which it may have several:
//   ~x  a number that changes from call to call
//   ^x  a tensor whose half types are computed with in f32
//   *x  a tensor, or number, of the common type
//   !x  a tensor that is written, though the schema does not say so
//   @x  a tensor that may lie on the CPU
//   +x  a tensor of indices, none of them below 0
//   %x  a tensor whose elements are probabilities
//   &x  a tensor, none of whose elements is below 0
//   =x  a number, or a tensor of one, that the type of what is written holds
//   #x  a list of indices, which may lie on the CPU; a mask stands for the places where it is true
// and names of what a body wants besides:
//   common        the type that PyTorch's rules of promotion give to the arguments with a star
//   common_float  the same, where integers become the default type of floats
//   state         a place in the generator's stream of random numbers
//   out_type      the type of the first tensor that is written
//   out_dims      the extents of the first result, where they are known: in graphs, and if written
// or of how it is called:
//   format        results lie in memory as the first tensor does, channels last for one
//   any_format    the same, where any tensor of their rank decides that lies channels last
//   each          once for each place of the lists of tensors, whose names are tensors in the body
//   checked       where check_errors is set, an `info` that is not 0 is an error
struct TableRow {
  const char *names, *marks, *body;
};

}  // namespace anymps::aten

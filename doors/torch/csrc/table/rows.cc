// SPDX-License-Identifier: Apache-2.0
// The table: one family per file. This file knows nothing of PyTorch's headers, so that a new row
// compiles at once.
#include "table/rows.h"

namespace anymps::aten {

namespace {

constexpr TableRow kRows[] = {
#define OP(names, marks, body) {names, marks, body},
#define DEFINE(name, parameters, body)
#include "table/families.inc"
#undef DEFINE
#undef OP
};

constexpr TableRow kGraphRows[] = {
#define OP(names, marks, body) {names, marks, body},
#define DEFINE(name, parameters, body)
#include "table/composed.inc"
#include "table/views.inc"
#undef DEFINE
#undef OP
};

constexpr lowering::DefinitionText kDefinitions[] = {
#define OP(names, marks, body)
#define DEFINE(name, parameters, body) {name, parameters, body},
#include "table/composed.inc"
#include "table/families.inc"
#include "table/views.inc"
#undef DEFINE
#undef OP
};

}  // namespace

std::span<const TableRow> rows() { return kRows; }
std::span<const TableRow> graph_rows() { return kGraphRows; }
std::span<const lowering::DefinitionText> definitions() { return kDefinitions; }

}  // namespace anymps::aten

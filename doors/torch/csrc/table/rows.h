// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lowering/definitions.h"
#include "table/table_row.h"

namespace anymps::aten {

// Of all families.
std::span<const TableRow> rows();
std::span<const TableRow> graph_rows();  // views, which are kernels in graphs alone
std::span<const lowering::DefinitionText> definitions();

}  // namespace anymps::aten

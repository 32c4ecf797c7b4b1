// SPDX-License-Identifier: Apache-2.0
#include "ops/subgraph.h"

namespace anymps {

namespace {

Signature (*signature_reader)(const Graph& body) = nullptr;

}  // namespace

SignatureReader::SignatureReader(Signature (*read)(const Graph& body)) { signature_reader = read; }

Signature signature_of(const Graph& body) {
  require(signature_reader != nullptr, "[graph] nobody has said how the types of a graph are read");
  return signature_reader(body);
}

}  // namespace anymps

// SPDX-License-Identifier: Apache-2.0
// Running the ops of src/ops/control/maps.cc: the keys and the values are kept as the two tensors
// they are.
#include "runtime/structural.h"

namespace anymps {

STRUCTURAL(zip_map) {
  Tensor keys = call.inputs[0], values = call.copy(call.inputs[1]);
  if (values.desc.rank() == 1)
    values.desc = TensorDesc(values.desc.dtype, Shape{1, values.desc.shape[0]});
  Tensor maps;
  maps.desc.dtype = values.desc.dtype;
  maps.container = Container::kMaps;
  maps.items = std::make_shared<const std::vector<Tensor>>(
      std::vector<Tensor>{std::move(keys), std::move(values)});
  return {maps};
}

STRUCTURAL(map_items) {
  const Tensor& maps = call.inputs[0];
  const DType wanted = call.node.attrs.dtype("key_dtype");
  const Tensor &keys = maps.items->at(0), &values = maps.items->at(1);
  require(keys.desc.dtype == wanted, "[map_items] the keys are {}, must be {} ({})",
          name(keys.desc.dtype), name(wanted), call.node.label());
  return {keys, values};
}

}  // namespace anymps

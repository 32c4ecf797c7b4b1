# SPDX-License-Identifier: Apache-2.0
"""The peer of scripts/bench serving: a model of Triton's Python backend that runs model.onnx with ONNX Runtime.

As one would write it for speed: the requests of a batch are laid together and run at once. Threads come from the
parameter `threads` of config.pbtxt. The backend's Python looks at no PYTHONPATH: PEER_PACKAGES says where the
packages of environment `triton-python` are.
"""
import json
import os
import sys

sys.path.insert(0, os.environ["PEER_PACKAGES"])

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import triton_python_backend_utils as utils  # noqa: E402


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(config["parameters"]["threads"]["string_value"])
        options.inter_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.batched = config["max_batch_size"] > 0

    def run(self, arrays):
        return self.session.run(self.outputs, dict(zip(self.inputs, arrays)))

    def execute(self, requests):
        tensors = [[utils.get_input_tensor_by_name(r, name).as_numpy() for name in self.inputs] for r in requests]
        if len(requests) == 1 or not self.batched:
            results = [self.run(arrays) for arrays in tensors]
        else:
            ends = np.cumsum([arrays[0].shape[0] for arrays in tensors])[:-1]
            whole = self.run([np.concatenate(arrays) for arrays in zip(*tensors)])
            results = list(zip(*(np.split(array, ends) for array in whole)))
        return [utils.InferenceResponse([utils.Tensor(name, array) for name, array in zip(self.outputs, result)])
                for result in results]

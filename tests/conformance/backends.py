# SPDX-License-Identifier: Apache-2.0
"""The backends that are put through the suite. Each remembers how far a test came, so that a wrong output can be told
from a refusal: `stage` is 'prepare', 'run' or 'compare'. Libraries are imported in the worker, not before."""
import os

import numpy as np
from onnx.backend.base import Backend, BackendRep


class Staged(Backend):
    stage = "prepare"

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        cls.stage = "prepare"
        rep = cls.load(model)
        cls.stage = "run"
        return _Rep(cls, rep)


class _Rep(BackendRep):
    def __init__(self, owner, rep):
        self.owner, self.rep = owner, rep

    def run(self, inputs, **options):
        self.owner.stage = "run"
        results = self.rep(inputs)
        self.owner.stage = "compare"
        return results


class AnyMPS(Staged):
    """anymps.onnx_backend.AnyMPSBackend."""

    @classmethod
    def load(cls, model):
        from anymps.onnx_backend import AnyMPSBackend
        return AnyMPSBackend.prepare(model).run


class OnnxRuntime(Staged):
    """ONNX Runtime, with every type that it takes and newer opsets unlocked."""

    @classmethod
    def load(cls, model):
        os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda inputs: cls.run_session(session, inputs)

    @classmethod
    def run_session(cls, session, inputs):
        feeds = {}
        for info, value in zip(session.get_inputs(), inputs):
            feeds[info.name] = cls.feed(value)
        if any(type(v).__name__ == "OrtValue" for v in feeds.values()) or cls.has_odd_types(session.get_outputs()):
            import onnxruntime as ort
            ort_feeds = {n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v)
                         for n, v in feeds.items()}
            results = session.run_with_ort_values(None, ort_feeds)
            return [cls.result(r, info) for r, info in zip(results, session.get_outputs())]
        return session.run(None, feeds)

    ODD = {"bfloat16": "BFLOAT16", "float8_e4m3fn": "FLOAT8E4M3FN", "float8_e4m3fnuz": "FLOAT8E4M3FNUZ",
           "float8_e5m2": "FLOAT8E5M2", "float8_e5m2fnuz": "FLOAT8E5M2FNUZ", "int4": "INT4", "uint4": "UINT4"}

    @classmethod
    def has_odd_types(cls, outputs):
        names = {name.replace("_", "") for name in cls.ODD}
        return any(o.type.startswith("tensor(") and o.type[7:-1] in names for o in outputs)

    @classmethod
    def feed(cls, value):
        if isinstance(value, (list, tuple)):
            return [np.asarray(v) for v in value]
        if value is None:
            return None
        array = np.asarray(value)
        if array.dtype.name in cls.ODD:
            import onnx
            import onnxruntime as ort
            kind = getattr(onnx.TensorProto, cls.ODD[array.dtype.name])
            carrier = np.uint16 if array.dtype.itemsize == 2 else np.uint8
            return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).view(carrier), kind)
        return array

    @classmethod
    def result(cls, value, info):
        array = value.numpy()
        names = {name.replace("_", ""): name for name in cls.ODD}
        odd = names.get(info.type[7:-1]) if info.type.startswith("tensor(") else None
        if odd and array.dtype.name != odd:
            import ml_dtypes
            array = array.view(getattr(ml_dtypes, odd))
        return array


BACKENDS = {"anymps": AnyMPS, "onnxruntime": OnnxRuntime}

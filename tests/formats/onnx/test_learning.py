# SPDX-License-Identifier: Apache-2.0
"""Ops of ai.onnx.ml beside ONNX Runtime."""
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "build" / "python"))

import anymps  # noqa: E402

rng = np.random.default_rng(11)
X = rng.standard_normal((7, 4)).astype(np.float32)


def model_of(op, inputs, outputs, attrs):
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, outputs, domain="ai.onnx.ml", **attrs)
    infos = []
    for name, value in zip(names, inputs):
        kind = TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(name, kind, value.shape))
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info(o) for o in outputs])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(), dict(zip(names, inputs))


def both(op, inputs, outputs, attrs):
    model, feeds = model_of(op, inputs, outputs, attrs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    ours = anymps.load(model)(**feeds)
    return (ours if isinstance(ours, tuple) else (ours,)), theirs


def compare(op, inputs, outputs=("y",), tolerance=1e-5, **attrs):
    for ours, theirs in zip(*both(op, inputs, outputs, attrs), strict=True):
        ours = np.asarray(ours)
        assert ours.shape == theirs.shape
        if theirs.dtype.kind == "f":
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(ours, theirs)


def test_scaler():
    compare("Scaler", [X], offset=[0.5, 1.0, -1.0, 0.0], scale=[2.0, 1.0, 0.5, 3.0])
    compare("Scaler", [np.arange(8).reshape(2, 4)], offset=[0.5] * 4, scale=[2.0] * 4)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    compare("Normalizer", [np.abs(X)], norm=norm)


def test_imputer():
    x = X.copy()
    x[0, 1] = x[3, 2] = np.nan
    compare("Imputer", [x], imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan"))
    compare("Imputer", [np.array([[1, 0], [0, 5]])], imputed_value_int64s=[7], replaced_value_int64=0)


def test_one_hot_encoder():
    compare("OneHotEncoder", [np.array([[3, 1], [9, 5]])], cats_int64s=[1, 3, 5], zeros=1)


def test_one_hot_encoder_that_knows_all_categories():
    compare("OneHotEncoder", [np.array([[3, 1], [5, 5]])], cats_int64s=[1, 3, 5], zeros=0)
    compare("OneHotEncoder", [np.array(["b", "a"], object)], cats_strings=["a", "b"], zeros=0)
    model, feeds = model_of("OneHotEncoder", [np.array([[3, 2]])], ["y"], {"cats_int64s": [1, 3], "zeros": 0})
    with pytest.raises(anymps.InvalidArgument, match="index 2 is out of range"):
        anymps.load(model)(**feeds)


def test_small_ones():
    compare("Binarizer", [X], threshold=0.2)
    compare("ArrayFeatureExtractor", [X, np.array([[2, 0]])])
    compare("FeatureVectorizer", [X, X[:, :2].copy()], inputdimensions=[4, 2])


@pytest.mark.parametrize("targets", [1, 2])
def test_linear_regressor(targets):
    compare("LinearRegressor", [X], coefficients=rng.standard_normal(4 * targets).tolist(), intercepts=[0.5] * targets, targets=targets)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_classifier(post):
    compare("LinearClassifier", [X], ("l", "p"), coefficients=rng.standard_normal(12).tolist(), intercepts=[0.1, 0.2, -0.3],
            classlabels_ints=[5, 6, 7], post_transform=post)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_linear_classifier_of_two(post):
    w = rng.standard_normal(4)
    compare("LinearClassifier", [X], ("l", "p"), coefficients=[*(-w).tolist(), *w.tolist()], intercepts=[-0.1, 0.1],
            classlabels_ints=[3, 8], post_transform=post)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kernel):
    compare("SVMRegressor", [X], kernel_type=kernel, kernel_params=[0.4, 0.1, 3.0], n_supports=5, rho=[0.2],
            coefficients=rng.standard_normal(5).tolist(), support_vectors=rng.standard_normal(20).tolist())


def machine(classes, proba, **more):
    """Support vectors of a classifier: 2 for the first class, one more for each after it."""
    per_class = [2 + i for i in range(classes)]
    n, pairs = sum(per_class), classes * (classes - 1) // 2
    attrs = {"kernel_params": [0.4, 0.1, 3.0], "vectors_per_class": per_class, "rho": rng.standard_normal(pairs).tolist(),
             "coefficients": rng.standard_normal(n * (classes - 1)).tolist(), "support_vectors": rng.standard_normal(n * 4).tolist(),
             "classlabels_ints": [10 * i + 3 for i in range(classes)], **more}
    if proba:
        attrs |= {"prob_a": (-1 - rng.random(pairs)).tolist(), "prob_b": rng.standard_normal(pairs).tolist()}
    return attrs


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("proba", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_svm_classifier(kernel, proba, classes):
    compare("SVMClassifier", [X], ("l", "p"), kernel_type=kernel, tolerance=1e-4, **machine(classes, proba))


@pytest.mark.parametrize("post", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("proba", [False, True])
def test_svm_classifier_with_a_transform(post, proba):
    compare("SVMClassifier", [X], ("l", "p"), kernel_type="RBF", post_transform=post, tolerance=1e-4, **machine(4, proba))


def test_svm_classifier_of_strings_and_integers():
    attrs = machine(3, True, classlabels_strings=["a", "b", "c"])
    del attrs["classlabels_ints"]
    compare("SVMClassifier", [np.arange(12).reshape(3, 4)], ("l", "p"), kernel_type="LINEAR", tolerance=1e-4, **attrs)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_svm_classifier(post):
    compare("SVMClassifier", [X], ("l", "p"), coefficients=rng.standard_normal(12).tolist(), rho=[0.3], classlabels_ints=[5, 6, 7],
            kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], post_transform=post)


@pytest.mark.parametrize("attrs,words", [
    ({"coefficients": [1.0], "rho": [0.0], "classlabels_ints": [0, 1]}, "for 2 classes"),
    ({"coefficients": [1.0] * 8, "rho": [0.0], "classlabels_ints": [0, 1]}, "linear support vectors of 2 classes"),
    ({"coefficients": [1.0] * 2, "rho": [0.0], "classlabels_ints": [0, 1], "vectors_per_class": [1, 9], "support_vectors": [0.0] * 8},
     "8 numbers for 10 support vectors"),
    ({"coefficients": [1.0] * 2, "rho": [0.0], "classlabels_ints": [0, 1], "vectors_per_class": [1, -1], "support_vectors": [0.0] * 8},
     "-1 support vectors"),
])
def test_svm_classifiers_that_lie(attrs, words):
    model, _ = model_of("SVMClassifier", [X], ["l", "p"], {"kernel_type": "LINEAR", **attrs})
    with pytest.raises(anymps.Error, match=words):
        anymps.load(model)


def map_model(op, keys, values, attrs):
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attrs)
    kind = helper.make_map_type_proto(keys, helper.make_tensor_type_proto(values, []))
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", kind)], [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def compare_maps(op, keys, values, x, expected=None, **attrs):
    """ONNX Runtime's Python takes maps to floats only; for others the answer is given."""
    model = map_model(op, keys, values, attrs)
    if expected is None:
        theirs, = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    else:
        theirs = np.array([expected], object if isinstance(expected[0], str) else None)
    ours = anymps.load(model)(x=x)
    assert ours.shape == theirs.shape and (ours.dtype == theirs.dtype or theirs.dtype == object)
    np.testing.assert_array_equal(ours, theirs)


def test_dict_vectorizer():
    words = ["a", "b", "zz"]
    compare_maps("DictVectorizer", TensorProto.STRING, TensorProto.FLOAT, {"b": 1.5, "q": 2.0, "a": -3.0}, string_vocabulary=words)
    compare_maps("DictVectorizer", TensorProto.STRING, TensorProto.INT64, {"zz": 7}, [0, 0, 7], string_vocabulary=words)
    compare_maps("DictVectorizer", TensorProto.INT64, TensorProto.FLOAT, {3: 1.5, 1: 2.5}, int64_vocabulary=[1, 2, 3])
    compare_maps("DictVectorizer", TensorProto.INT64, TensorProto.STRING, {3: "x"}, ["", "x"], int64_vocabulary=[1, 3])


def test_cast_map():
    for to in ("TO_FLOAT", "TO_INT64"):
        compare_maps("CastMap", TensorProto.INT64, TensorProto.FLOAT, {4: 1.5, 0: -2.5, 2: 7.0}, cast_to=to)
        compare_maps("CastMap", TensorProto.INT64, TensorProto.FLOAT, {4: 1.5, 0: 2.5, 9: 7.0}, cast_to=to, map_form="SPARSE", max_map=6)
    compare_maps("CastMap", TensorProto.INT64, TensorProto.STRING, {4: "15", 0: "2"}, [2, 15], cast_to="TO_INT64")
    compare_maps("CastMap", TensorProto.INT64, TensorProto.STRING, {4: "x", 0: "y"}, ["y", "x"], cast_to="TO_STRING")


def test_maps_that_do_not_fit():
    model = anymps.load(map_model("DictVectorizer", TensorProto.STRING, TensorProto.FLOAT, {"string_vocabulary": ["a"]}))
    for x, words in (({1: 2.0}, "the keys are i64"), ([{"a": 1.0}, {"b": 1.0}], "the same keys"), (3, "a dict is needed"),
                     ({"a": 1.0, 2: 1.0}, "strings, or integers"), ([{"a": 1.0}, {"a": 2.0}], "squeeze")):
        with pytest.raises(anymps.Error, match=words):
            model(x=x)


def forest(trees, depth, kind, ids, positive=False):
    """Complete trees with random splits; every leaf has a weight for each of ids."""
    out = {k: [] for k in ("nodes_treeids nodes_nodeids nodes_featureids nodes_values nodes_modes nodes_truenodeids nodes_falsenodeids "
                           f"nodes_missing_value_tracks_true {kind}_treeids {kind}_nodeids {kind}_ids {kind}_weights").split()}
    inner, total = 2 ** depth - 1, 2 ** (depth + 1) - 1
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    for tree in range(trees):
        for n in range(total):
            leaf = n >= inner
            row = (tree, n, int(rng.integers(4)), float(np.float32(rng.standard_normal())), "LEAF" if leaf else modes[tree % 4],
                   0 if leaf else 2 * n + 1, 0 if leaf else 2 * n + 2, int(rng.integers(2)))
            for key, value in zip(list(out)[:8], row):
                out[key].append(value)
            if leaf:
                for i in ids:
                    weight = float(np.float32(rng.standard_normal()))
                    for key, value in zip(list(out)[8:], (tree, n, i, abs(weight) if positive else weight)):
                        out[key].append(value)
    return out


ROWS = rng.standard_normal((33, 4)).astype(np.float32)
ROWS[3, 1] = ROWS[9, 0] = np.nan


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    compare("TreeEnsembleRegressor", [ROWS], n_targets=2, aggregate_function=aggregate, **forest(6, 3, "target", [0, 1]))


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_tree_classifier(post):
    compare("TreeEnsembleClassifier", [ROWS], ("l", "p"), classlabels_int64s=[4, 5, 6], post_transform=post,
            base_values=[0.1, 0.2, 0.3], **forest(5, 3, "class", [0, 1, 2]))


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("label", [0, 1])
def test_tree_classifier_of_two(positive, post, label):
    compare("TreeEnsembleClassifier", [ROWS], ("l", "p"), classlabels_int64s=[3, 8], post_transform=post,
            **forest(3, 2, "class", [label], positive))


def test_zip_map():
    p = rng.random((3, 2)).astype(np.float32)
    (ours,), (theirs,) = both("ZipMap", [p], ["y"], {"classlabels_strings": ["no", "yes"]})
    assert [list(m) for m in ours] == [list(m) for m in theirs]
    for a, b in zip(ours, theirs):
        assert all(np.float32(a[k]) == np.float32(b[k]) for k in b)


def test_strings():
    compare("OneHotEncoder", [np.array([["a", "b"], ["c", "a"]], object)], cats_strings=["a", "b"], zeros=1)
    compare("TreeEnsembleClassifier", [ROWS], ("l", "p"), classlabels_strings=["no", "yes"], **forest(3, 2, "class", [0]))


def test_category_mapper():
    attrs = {"cats_int64s": [3, 7], "cats_strings": ["a", "b"], "default_int64": -5, "default_string": "?"}
    compare("CategoryMapper", [np.array(["b", "x", "a"], object)], **attrs)
    compare("CategoryMapper", [np.array([7, 3, 1])], **attrs)

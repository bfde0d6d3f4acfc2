"""Metrics: results after each of several batches, for tests/public/keras_metrics_test.cpp."""

from values import Cases

import keras
import numpy as np

rng = np.random.RandomState(11)
cases = Cases("metrics")
M = keras.metrics
SIZES = (6, 4, 5)


def f32(x):
    return np.asarray(x, np.float32)


def case(name, metric, batches):
    """`batches` are tuples of what update_state takes. Started again after the first round, it must say the same."""
    tensors, results = {}, []
    for i, batch in enumerate(batches):
        for key, value in zip(("y_true", "y_pred", "sample_weight"), batch):
            if value is not None:
                tensors[f"{key}_{i}"] = value
        metric.update_state(*batch)
        results.append(np.asarray(metric.result()))
        tensors[f"result_{i}"] = f32(results[-1])
    metric.reset_state()
    for batch, result in zip(batches, results):
        metric.update_state(*batch)
        np.testing.assert_array_equal(np.asarray(metric.result()), result)
    cases.add(name, **tensors)


def batches(make, weights=None):
    return [(*make(n), weights(n)) if weights else make(n) for n in SIZES]


def weight(*rest):
    return lambda n: f32(rng.uniform(0, 2, (n, *rest)))


def numbers(*rest):
    return lambda n: (f32(rng.normal(0, 2, (n, *rest))), f32(rng.normal(0, 2, (n, *rest))))


def positives(*rest):
    return lambda n: (f32(rng.uniform(0.2, 4, (n, *rest))), f32(rng.uniform(0.2, 4, (n, *rest))))


def binary(*rest):
    return lambda n: (rng.randint(0, 2, (n, *rest)).astype(np.int32), f32(rng.uniform(0, 1, (n, *rest))))


def round_binary(*rest):
    """Predictions that lie on thresholds, 0 and 1 among them."""
    return lambda n: (rng.randint(0, 2, (n, *rest)).astype(np.int32), f32(rng.randint(0, 9, (n, *rest)) / 8))


def simplex(n, *rest):
    p = rng.uniform(0.05, 1, (n, *rest))
    return f32(p / p.sum(-1, keepdims=True))


def sparse(classes, *rest):
    return lambda n: (rng.randint(0, classes, (n, *rest)).astype(np.int32), simplex(n, *rest, classes))


def one_hot(classes, *rest):
    return lambda n: (f32(np.eye(classes)[rng.randint(0, classes, (n, *rest))]), simplex(n, *rest, classes))


# Values.
for name, make in {"Mean": M.Mean, "Sum": M.Sum}.items():
    case(name, make(), [(f32(rng.normal(size=n)),) for n in SIZES])
    case(name + "/scalars", make(), [(f32(2),), (f32(5),), (f32(-1),)])
    case(name + "/scalar_weights", make(), [(f32(2), f32(3)), (f32(5), f32(0)), (f32(-1), f32(1))])
    case(name + "/weights", make(), [(f32(rng.normal(size=n)), weight()(n)) for n in SIZES])
    case(name + "/weight_columns", make(), [(f32(rng.normal(size=n)), weight(1)(n)) for n in SIZES])
    case(name + "/matrix", make(), [(f32(rng.normal(size=(n, 3))),) for n in SIZES])
    case(name + "/matrix_weights", make(), [(f32(rng.normal(size=(n, 3))), weight()(n)) for n in SIZES])
    case(name + "/matrix_every_weight", make(), [(f32(rng.normal(size=(n, 3))), weight(3)(n)) for n in SIZES])
    case(name + "/cube_weights", make(), [(f32(rng.normal(size=(n, 3, 2))), weight(3)(n)) for n in SIZES])
    case(name + "/no_weight", make(), [(f32(rng.normal(size=n)), f32(np.zeros(n))) for n in SIZES])
case("Mean/one_weight", M.Mean(), [(f32(rng.normal(size=n)), f32(1.5 * n)) for n in SIZES])
case("MeanMetricWrapper", M.MeanMetricWrapper(lambda y, p: keras.ops.max(keras.ops.abs(y - p), axis=-1)), batches(numbers(3), weight()))

# Accuracies.
case("Accuracy", M.Accuracy(), [(rng.randint(0, 3, n).astype(np.int32), rng.randint(0, 3, n).astype(np.int32)) for n in SIZES])
case("Accuracy/columns", M.Accuracy(), [(rng.randint(0, 3, (n, 1)).astype(np.int32), f32(rng.randint(0, 3, n)), weight()(n)) for n in SIZES])
case("BinaryAccuracy", M.BinaryAccuracy(), batches(binary(1)))
case("BinaryAccuracy/several", M.BinaryAccuracy(threshold=0.3), batches(binary(3), weight()))
case("BinaryAccuracy/every_weight", M.BinaryAccuracy(), batches(binary(3), weight(3)))
case("BinaryAccuracy/vectors", M.BinaryAccuracy(), batches(binary()))
case("CategoricalAccuracy", M.CategoricalAccuracy(), batches(one_hot(3)))
case("CategoricalAccuracy/steps", M.CategoricalAccuracy(), batches(one_hot(3, 4), weight(4)))
case("SparseCategoricalAccuracy", M.SparseCategoricalAccuracy(), batches(sparse(3)))
case("SparseCategoricalAccuracy/weights", M.SparseCategoricalAccuracy(), batches(sparse(3), weight()))
case("SparseCategoricalAccuracy/column", M.SparseCategoricalAccuracy(), [(y[:, None], p) for y, p in batches(sparse(3))])
case("SparseCategoricalAccuracy/steps", M.SparseCategoricalAccuracy(), batches(sparse(3, 4), weight(4)))
case("TopKCategoricalAccuracy", M.TopKCategoricalAccuracy(), batches(one_hot(8)))
case("TopKCategoricalAccuracy/k_2", M.TopKCategoricalAccuracy(k=2), batches(one_hot(5, 3), weight(3)))
case("SparseTopKCategoricalAccuracy", M.SparseTopKCategoricalAccuracy(), batches(sparse(8), weight()))
case("SparseTopKCategoricalAccuracy/k_2", M.SparseTopKCategoricalAccuracy(k=2), batches(sparse(5, 3)))
case("SparseTopKCategoricalAccuracy/ties", M.SparseTopKCategoricalAccuracy(k=2),
     [(rng.randint(0, 4, n).astype(np.int32), f32(rng.randint(0, 3, (n, 4)))) for n in SIZES])
case("SparseTopKCategoricalAccuracy/sorted_ids", M.SparseTopKCategoricalAccuracy(k=2, from_sorted_ids=True),
     [(rng.randint(0, 6, n).astype(np.int32), np.stack([rng.permutation(6) for _ in range(n)]).astype(np.int32)) for n in SIZES])
for kind, make, data in (("binary", M.BinaryAccuracy, binary(1)), ("sparse", M.SparseCategoricalAccuracy, sparse(3)),
                         ("one_hot", M.CategoricalAccuracy, one_hot(3))):
    case("by_shapes/accuracy_" + kind, make(), batches(data))
for kind, make, data in (("binary", M.BinaryCrossentropy, binary(1)), ("sparse", M.SparseCategoricalCrossentropy, sparse(3)),
                         ("one_hot", M.CategoricalCrossentropy, one_hot(3))):
    case("by_shapes/crossentropy_" + kind, make(), batches(data))

# Numbers.
for name in ("MeanSquaredError", "RootMeanSquaredError", "MeanAbsoluteError", "LogCoshError", "CosineSimilarity",
             "PearsonCorrelation", "ConcordanceCorrelation"):
    case(name, getattr(M, name)(), batches(numbers(4)))
    case(name + "/weights", getattr(M, name)(), batches(numbers(4), weight()))
    case(name + "/steps", getattr(M, name)(), batches(numbers(3, 4), weight(3)))
for name in ("MeanAbsolutePercentageError", "MeanSquaredLogarithmicError"):
    case(name, getattr(M, name)(), batches(positives(4)))
    case(name + "/weights", getattr(M, name)(), batches(positives(4), weight()))
for name in ("CosineSimilarity", "PearsonCorrelation", "ConcordanceCorrelation"):
    case(name + "/axis_1", getattr(M, name)(axis=1), batches(numbers(4, 2)))
case("RootMeanSquaredError/every_weight", M.RootMeanSquaredError(), batches(numbers(4), weight(4)))
case("RootMeanSquaredError/vectors", M.RootMeanSquaredError(), [(y, p[:, None]) for y, p in batches(numbers())])
case("R2Score", M.R2Score(), batches(numbers(3)))
case("R2Score/weights", M.R2Score(), batches(numbers(3), weight()))
case("R2Score/each", M.R2Score(class_aggregation=None), batches(numbers(3), weight(3)))
case("R2Score/variance", M.R2Score(class_aggregation="variance_weighted_average"), batches(numbers(3)))
case("R2Score/adjusted", M.R2Score(num_regressors=2), batches(numbers(3)))
case("R2Score/adjusted_too_many", M.R2Score(num_regressors=20), batches(numbers(3)))
case("R2Score/one_output", M.R2Score(), batches(numbers(1)))

# Means of losses.
for name, make in {"Hinge": M.Hinge, "SquaredHinge": M.SquaredHinge}.items():
    case(name, make(), [(f32(np.sign(y)), p) for y, p in batches(numbers(3))])
    case(name + "/binary", make(), batches(binary(3), weight()))
case("CategoricalHinge", M.CategoricalHinge(), batches(one_hot(4), weight()))
case("KLDivergence", M.KLDivergence(), [(simplex(n, 3), simplex(n, 3)) for n in SIZES])
case("Poisson", M.Poisson(), batches(positives(3), weight()))
case("BinaryCrossentropy", M.BinaryCrossentropy(), batches(binary(3)))
case("BinaryCrossentropy/logits", M.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
     [(y, f32(6 * p - 3), w) for y, p, w in batches(binary(3), weight())])
case("CategoricalCrossentropy", M.CategoricalCrossentropy(), batches(one_hot(4)))
case("CategoricalCrossentropy/logits", M.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2), batches(one_hot(4), weight()))
case("CategoricalCrossentropy/axis_1", M.CategoricalCrossentropy(axis=1),
     [(y.transpose(0, 2, 1), p.transpose(0, 2, 1)) for y, p in batches(one_hot(4, 3))])
case("SparseCategoricalCrossentropy", M.SparseCategoricalCrossentropy(), batches(sparse(4)))
case("SparseCategoricalCrossentropy/logits", M.SparseCategoricalCrossentropy(from_logits=True), batches(sparse(4), weight()))
case("SparseCategoricalCrossentropy/ignore", M.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2), batches(sparse(4)))
case("SparseCategoricalCrossentropy/ignore_weights", M.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2),
     batches(sparse(4), weight()))

# Counts, at one threshold, at several, and at several that are spread evenly.
several, even = [0.2, 0.5, 0.55], [0.0, 0.25, 0.5, 0.75, 1.0]
for name in ("TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives", "Precision", "Recall"):
    make = getattr(M, name)
    case(name, make(), batches(binary(1)))
    case(name + "/weights", make(), batches(binary(3), weight()))
    case(name + "/every_weight", make(thresholds=0.3), batches(binary(3), weight(3)))
    case(name + "/several", make(thresholds=several), batches(binary(), weight()))
    case(name + "/even", make(thresholds=even), batches(round_binary(3), weight()))
    case(name + "/on_thresholds", make(thresholds=[0.25, 0.5]), batches(round_binary(3)))
    case(name + "/columns", make(), [(y, p[:, None]) for y, p in batches(binary())])
for name in ("Precision", "Recall"):
    make = getattr(M, name)
    case(name + "/top_k", make(top_k=2), batches(binary(4)))
    case(name + "/top_k_ties", make(top_k=2), batches(round_binary(4)))
    case(name + "/top_k_thresholds", make(top_k=2, thresholds=[0.4, 0.8]), batches(binary(4), weight()))
    case(name + "/class_id", make(class_id=2), batches(binary(4), weight()))
    case(name + "/top_k_class_id", make(top_k=2, class_id=1, thresholds=0.1), batches(binary(4)))
    case(name + "/nothing", make(), [(np.zeros((n, 2), np.int32), f32(np.zeros((n, 2)))) for n in SIZES])
for name in ("SensitivityAtSpecificity", "SpecificityAtSensitivity", "PrecisionAtRecall", "RecallAtPrecision"):
    make = getattr(M, name)
    case(name, make(0.6), batches(binary(3)))
    case(name + "/thresholds_7", make(0.3, num_thresholds=7), batches(binary(3), weight()))
    case(name + "/thresholds_1", make(0.3, num_thresholds=1), batches(binary(3), weight()))
    case(name + "/class_id", make(0.5, class_id=1), batches(binary(3)))
    case(name + "/out_of_reach", make(1.0, num_thresholds=5), batches(binary(3)))

# Areas.
for curve in ("ROC", "PR", "PRGAIN"):
    for method in ("interpolation", "minoring", "majoring"):
        case(f"AUC/{curve}_{method}", M.AUC(num_thresholds=20, curve=curve, summation_method=method), batches(binary(2), weight()))
    case(f"AUC/{curve}_multi_label", M.AUC(num_thresholds=9, curve=curve, multi_label=True), batches(binary(3), weight()))
    case(f"AUC/{curve}_on_thresholds", M.AUC(num_thresholds=9, curve=curve), batches(round_binary(3)))
    case(f"AUC/{curve}_thresholds", M.AUC(curve=curve, thresholds=[0.7, 0.2, 0.45]), batches(binary(2), weight()))
case("AUC", M.AUC(), batches(binary(1)))
case("AUC/logits", M.AUC(from_logits=True), [(y, f32(8 * p - 4)) for y, p in batches(binary(1))])
case("AUC/even_thresholds", M.AUC(thresholds=[0.25, 0.5, 0.75]), batches(round_binary(2)))
case("AUC/label_weights", M.AUC(num_thresholds=15, label_weights=[0.5, 2.0, 1.0]), batches(binary(3), weight()))
case("AUC/label_weights_thresholds", M.AUC(thresholds=[0.3, 0.4], label_weights=[0.5, 2.0, 1.0]), batches(binary(3)))
case("AUC/multi_label_weights", M.AUC(num_thresholds=15, multi_label=True, num_labels=3, label_weights=[0.5, 2.0, 1.0]), batches(binary(3)))
case("AUC/multi_label_weights_pr", M.AUC(num_thresholds=15, curve="PR", multi_label=True, num_labels=3, label_weights=[0.5, 2.0, 1.0]), batches(binary(3)))
case("AUC/multi_label_thresholds", M.AUC(thresholds=[0.3, 0.4], multi_label=True), batches(binary(3)))
case("AUC/multi_label_thresholds_weights", M.AUC(thresholds=[0.3, 0.4], multi_label=True), batches(binary(3), weight()))
case("AUC/of_one_class", M.AUC(num_thresholds=9), [(np.ones((n, 1), np.int32), f32(rng.uniform(size=(n, 1)))) for n in SIZES])

# F scores.
for average in (None, "micro", "macro", "weighted"):
    case(f"F1Score/{average}", M.F1Score(average=average), batches(one_hot(3), weight()))
    case(f"FBetaScore/{average}", M.FBetaScore(average=average, beta=2.0, threshold=0.4), batches(binary(3), weight()))
    case(f"FBetaScore/{average}_unweighted", M.FBetaScore(average=average, beta=0.5), batches(one_hot(4)))
case("F1Score/zeros", M.F1Score(), [(y, f32(0 * p)) for y, p in batches(one_hot(3))])


# Intersections.
def class_pairs(classes, *rest):
    return lambda n: (rng.randint(0, classes, (n, *rest)).astype(np.int32), rng.randint(0, classes, (n, *rest)).astype(np.int32))


case("IoU", M.IoU(num_classes=3, target_class_ids=[0, 2]), batches(class_pairs(3)))
case("IoU/weights", M.IoU(num_classes=3, target_class_ids=[1], dtype="float32"), batches(class_pairs(3), weight()))
case("IoU/integer_weights", M.IoU(num_classes=3, target_class_ids=[0, 1]),
     batches(class_pairs(3), lambda n: rng.randint(0, 4, n).astype(np.int32)))
case("IoU/scores", M.IoU(num_classes=3, target_class_ids=[0, 1], sparse_y_pred=False), batches(sparse(3, 4)))
case("IoU/ignore", M.IoU(num_classes=3, target_class_ids=[0, 1, 2], ignore_class=1), batches(class_pairs(3, 4)))
case("IoU/no_classes", M.IoU(num_classes=2, target_class_ids=[0, 1]), batches(class_pairs(4)))
case("BinaryIoU", M.BinaryIoU(), batches(binary(3)))
case("BinaryIoU/threshold", M.BinaryIoU(target_class_ids=[1], threshold=0.3, dtype="float32"), batches(binary(3), weight(3)))
case("BinaryIoU/on_threshold", M.BinaryIoU(target_class_ids=[0], threshold=0.5), batches(round_binary(3)))
case("MeanIoU", M.MeanIoU(num_classes=4), batches(class_pairs(3, 4)))
case("MeanIoU/ignore", M.MeanIoU(num_classes=4, ignore_class=0), batches(class_pairs(4, 2, 2)))
case("MeanIoU/scores", M.MeanIoU(num_classes=3, sparse_y_true=False, sparse_y_pred=False), batches(one_hot(3, 4)))
case("OneHotIoU", M.OneHotIoU(num_classes=3, target_class_ids=[0, 2]), batches(one_hot(3, 2)))
case("OneHotIoU/sparse", M.OneHotIoU(num_classes=3, target_class_ids=[0, 2], sparse_y_pred=True, dtype="float32"),
     [(y, p.argmax(-1).astype(np.int32), w) for y, p, w in batches(one_hot(3), weight())])
case("OneHotMeanIoU", M.OneHotMeanIoU(num_classes=3), batches(one_hot(3, 2)))
case("OneHotMeanIoU/ignore", M.OneHotMeanIoU(num_classes=3, ignore_class=1), batches(one_hot(3, 2)))
cases.write()
print(len(cases.names), "cases")

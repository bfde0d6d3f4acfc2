"""Losses: values and derivatives with respect to the predictions, for tests/public/keras_losses_test.cpp."""

from values import Cases

import jax
import keras
import numpy as np

rng = np.random.RandomState(7)
cases = Cases("losses")


def f32(x):
    return np.asarray(x, np.float32)


def case(name, loss, y_true, y_pred, sample_weight=None, gradient=True):
    """A loss object of labels and predictions; `gradient` is that of the sum of what it gives."""
    tensors = {"y_true": y_true, "y_pred": y_pred}
    if sample_weight is not None:
        tensors["sample_weight"] = sample_weight

    def value(p):
        return loss(y_true, p, sample_weight=sample_weight)

    tensors["loss"] = np.asarray(value(y_pred))
    if gradient:
        tensors["gradient"] = np.asarray(jax.grad(lambda p: value(p).sum())(y_pred))
        assert np.isfinite(tensors["gradient"]).all(), name
    cases.add(name, **tensors)


def probabilities(*shape):
    return f32(rng.uniform(0.02, 0.98, shape))


def simplex(*shape):
    p = rng.uniform(0.05, 1, shape)
    return f32(p / p.sum(-1, keepdims=True))


def numbers(*shape):
    return f32(rng.normal(0, 2, shape))


def classes(count, *shape):
    return rng.randint(0, count, shape).astype(np.int32)


def one_hot(labels, count):
    return f32(np.eye(count)[labels])


L = keras.losses
weights = f32([0.5, 2, 0, 1, 3])

# Losses of numbers: the defaults, weights, every reduction, three axes.
positive = f32(rng.uniform(0.1, 5, (5, 4)))
regressions = {
    "MeanSquaredError": L.MeanSquaredError,
    "MeanAbsoluteError": L.MeanAbsoluteError,
    "MeanAbsolutePercentageError": L.MeanAbsolutePercentageError,
    "MeanSquaredLogarithmicError": L.MeanSquaredLogarithmicError,
    "LogCosh": L.LogCosh,
    "Huber": L.Huber,
    "CosineSimilarity": L.CosineSimilarity,
    "Poisson": L.Poisson,
}
for name, make in regressions.items():
    y_true = f32(rng.uniform(0.2, 4, (5, 4)))
    y_pred = f32(rng.uniform(0.2, 4, (5, 4)))
    if name in ("MeanSquaredError", "MeanAbsoluteError", "LogCosh", "Huber", "CosineSimilarity"):
        y_true, y_pred = numbers(5, 4), numbers(5, 4)
    case(name, make(), y_true, y_pred)
    case(name + "/weights", make(), y_true, y_pred, weights)
    for reduction in ("sum", "mean", "mean_with_sample_weight", "none"):
        case(f"{name}/{reduction}", make(reduction=reduction), y_true, y_pred, weights)
    case(name + "/none_unweighted", make(reduction="none"), y_true, y_pred)
    deep_true, deep_pred = np.stack([y_true] * 3, 1), f32(np.stack([y_pred] * 3, 1) * rng.uniform(0.5, 2, (5, 3, 1)))
    case(name + "/steps", make(), deep_true, deep_pred)
    case(name + "/steps_weights", make(), deep_true, deep_pred, f32(rng.uniform(0, 2, (5, 3))))
    case(name + "/steps_weights_column", make(reduction="mean_with_sample_weight"), deep_true, deep_pred, weights[:, None])
    case(name + "/steps_weights_trailing", make(reduction="none"), deep_true, deep_pred, f32(rng.uniform(0, 2, (5, 3, 1))))
    case(name + "/weight_of_all", make(), y_true, y_pred, f32(2.5))
    case(name + "/weights_column", make(reduction="none"), y_true, y_pred, weights[:, None])
    case(name + "/no_weight_at_all", make(reduction="mean_with_sample_weight"), y_true, y_pred, f32(np.zeros(5)), gradient=False)
    case(name + "/integer_labels", make(), np.arange(1, 21, dtype=np.int32).reshape(5, 4), y_pred)

column, vector = numbers(5, 1), numbers(5)
case("MeanSquaredError/labels_vector", L.MeanSquaredError(), vector, column)
case("MeanSquaredError/predictions_vector", L.MeanSquaredError(), column, vector)
case("MeanSquaredError/vectors", L.MeanSquaredError(), vector, numbers(5))
case("MeanAbsolutePercentageError/zeros", L.MeanAbsolutePercentageError(), f32([[0, 1], [2, 0]]), f32([[0.5, 2], [1, 1e-7]]))
case("MeanSquaredLogarithmicError/negative", L.MeanSquaredLogarithmicError(), f32([[-1, 1], [2, 0]]), f32([[0.5, -2], [1, -0.5]]))
case("LogCosh/far", L.LogCosh(), f32([[0, 0, 0]]), f32([[200, -200, 30]]))
case("Poisson/zeros", L.Poisson(), f32([[0, 1], [2, 0]]), f32([[0, 2], [1, 3]]))
for delta in (0.1, 2.5):
    case(f"Huber/delta_{delta}", L.Huber(delta=delta), numbers(5, 4), numbers(5, 4), weights)
case("CosineSimilarity/axis_0", L.CosineSimilarity(axis=0), numbers(5, 4), numbers(5, 4))
case("CosineSimilarity/axis_1", L.CosineSimilarity(axis=1, reduction="none"), numbers(5, 3, 4), numbers(5, 3, 4))
case("CosineSimilarity/zero_vector", L.CosineSimilarity(), f32([[0, 0], [1, 2]]), f32([[1, 2], [3, 4]]))

# Hinges.
for name, make in {"Hinge": L.Hinge, "SquaredHinge": L.SquaredHinge}.items():
    signs = f32(np.sign(rng.normal(size=(5, 4))))
    case(name, make(), signs, numbers(5, 4), weights)
    case(name + "/binary", make(), f32(signs > 0), numbers(5, 4))
    case(name + "/mixed", make(reduction="none"), f32([[0, 1], [-1, 1]]), f32([[0.5, 0.5], [2, -1]]))
case("CategoricalHinge", L.CategoricalHinge(), one_hot(classes(4, 5), 4), numbers(5, 4), weights)
case("CategoricalHinge/steps", L.CategoricalHinge(reduction="sum"), one_hot(classes(4, 5, 3), 4), numbers(5, 3, 4))

# Crossentropies of two classes.
for name, make in {"BinaryCrossentropy": L.BinaryCrossentropy, "BinaryFocalCrossentropy": L.BinaryFocalCrossentropy}.items():
    labels, p, z = f32(rng.randint(0, 2, (5, 4))), probabilities(5, 4), numbers(5, 4)
    case(name, make(), labels, p)
    case(name + "/weights", make(), labels, p, weights)
    case(name + "/logits", make(from_logits=True), labels, z)
    case(name + "/smoothing", make(label_smoothing=0.2), labels, p)
    case(name + "/logits_smoothing", make(from_logits=True, label_smoothing=0.1), labels, z, weights)
    case(name + "/axis_0", make(axis=0), labels, p)
    case(name + "/axis_1", make(axis=1, reduction="none"), f32(rng.randint(0, 2, (5, 3, 2))), probabilities(5, 3, 2))
    case(name + "/soft_labels", make(from_logits=True, reduction="sum"), probabilities(5, 4), z)
    case(name + "/certain", make(), f32([[0, 1, 0, 1]]), f32([[0, 1, 1, 0]]), gradient=name == "BinaryCrossentropy")
    case(name + "/vectors", make(), labels[:, 0], p[:, :1])
    case(name + "/integer_labels", make(from_logits=True), labels.astype(np.int32), z)
case("BinaryCrossentropy/far_logits", L.BinaryCrossentropy(from_logits=True, reduction="none"),
     f32([[0], [1], [0], [1], [0], [1]]), f32([[50], [50], [-50], [-50], [0], [0]]))
case("BinaryFocalCrossentropy/balanced", L.BinaryFocalCrossentropy(apply_class_balancing=True), labels, p)
case("BinaryFocalCrossentropy/balanced_alpha_gamma",
     L.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.7, gamma=3.5, from_logits=True), labels, z, weights)
case("BinaryFocalCrossentropy/gamma_0", L.BinaryFocalCrossentropy(gamma=0.0), labels, p)

# Of several.
for name, make in {"CategoricalCrossentropy": L.CategoricalCrossentropy,
                   "CategoricalFocalCrossentropy": L.CategoricalFocalCrossentropy}.items():
    labels, p, z = one_hot(classes(4, 5), 4), simplex(5, 4), numbers(5, 4)
    case(name, make(), labels, p)
    case(name + "/weights", make(), labels, p, weights)
    case(name + "/logits", make(from_logits=True), labels, z)
    case(name + "/smoothing", make(label_smoothing=0.2), labels, p)
    case(name + "/logits_smoothing", make(from_logits=True, label_smoothing=0.1), labels, z, weights)
    case(name + "/soft_labels", make(from_logits=True, reduction="sum"), simplex(5, 4), z)
    case(name + "/unscaled", make(), labels, f32(p * 3))
    case(name + "/certain", make(), f32([[0, 1], [0, 1]]), f32([[0, 1], [1, 0]]))
    case(name + "/axis_1", make(axis=1), one_hot(classes(3, 5, 2), 3).transpose(0, 2, 1), probabilities(5, 3, 2))
    case(name + "/axis_1_logits", make(axis=1, from_logits=True, reduction="none"),
         one_hot(classes(3, 5, 2), 3).transpose(0, 2, 1), numbers(5, 3, 2))
    case(name + "/steps", make(), one_hot(classes(4, 5, 3), 4), simplex(5, 3, 4), f32(rng.uniform(0, 2, (5, 3))))
case("CategoricalFocalCrossentropy/alpha_gamma", L.CategoricalFocalCrossentropy(alpha=0.6, gamma=0.5), labels, p, weights)
case("CategoricalFocalCrossentropy/gamma_3_logits", L.CategoricalFocalCrossentropy(gamma=3.0, from_logits=True), labels, z)

make = L.SparseCategoricalCrossentropy
labels, p, z = classes(4, 5), simplex(5, 4), numbers(5, 4)
ignored = np.array([1, 3, 0, 3, 2], np.int32)
case("SparseCategoricalCrossentropy", make(), labels, p)
case("SparseCategoricalCrossentropy/logits", make(from_logits=True), labels, z)
case("SparseCategoricalCrossentropy/weights", make(from_logits=True), labels, z, weights)
case("SparseCategoricalCrossentropy/column", make(), labels[:, None], p)
case("SparseCategoricalCrossentropy/float_labels", make(), f32(labels), p)
case("SparseCategoricalCrossentropy/unscaled", make(), labels, f32(3 * p))
case("SparseCategoricalCrossentropy/certain", make(reduction="none"), np.array([0, 1], np.int32), f32([[0, 1], [0, 1]]))
case("SparseCategoricalCrossentropy/steps", make(from_logits=True), classes(4, 5, 3), numbers(5, 3, 4), f32(rng.uniform(0, 2, (5, 3))))
case("SparseCategoricalCrossentropy/axis_1", make(from_logits=True, axis=1, reduction="none"), classes(3, 5, 3), numbers(5, 3, 3))
case("SparseCategoricalCrossentropy/axis_1_probabilities", make(axis=1), classes(3, 5, 3), probabilities(5, 3, 3))
for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight", "none"):
    case(f"SparseCategoricalCrossentropy/ignore_{reduction}", make(from_logits=True, ignore_class=3, reduction=reduction), ignored, z)
    case(f"SparseCategoricalCrossentropy/ignore_weights_{reduction}",
         make(from_logits=True, ignore_class=3, reduction=reduction), ignored, z, weights)
case("SparseCategoricalCrossentropy/ignore_negative", make(from_logits=True, ignore_class=-1), np.array([[-1, 2, 0], [1, -1, 3]], np.int32), numbers(2, 3, 4))
case("SparseCategoricalCrossentropy/ignore_probabilities", make(ignore_class=3), ignored, p, gradient=False)
case("SparseCategoricalCrossentropy/ignore_all", make(from_logits=True, ignore_class=3), np.array([3, 3], np.int32), numbers(2, 4))
for q in (0.5, 0.1, 0.9):
    case(f"CategoricalGeneralizedCrossEntropy/q_{q}", L.CategoricalGeneralizedCrossEntropy(q=q), labels, p, weights)
case("KLDivergence", L.KLDivergence(), simplex(5, 4), simplex(5, 4), weights)
case("KLDivergence/zeros", L.KLDivergence(reduction="none"), f32([[0, 1], [0.5, 0.5]]), f32([[0.5, 0.5], [0, 0.9]]))
case("KLDivergence/steps", L.KLDivergence(), simplex(5, 3, 4), simplex(5, 3, 4))

# Sequences: 0 is the blank, and behind the labels.
sequences = np.array([[1, 2, 3], [2, 2, 0], [3, 0, 0], [1, 3, 1], [0, 0, 0]], np.int32)
case("CTC", L.CTC(), sequences, numbers(5, 7, 4))
case("CTC/weights", L.CTC(), sequences, numbers(5, 7, 4), weights)
case("CTC/none", L.CTC(reduction="none"), sequences, numbers(5, 6, 4))

# Overlaps.
masks = f32(rng.randint(0, 2, (5, 3, 3, 2)))
for name, make in {"Dice": L.Dice, "Tversky": L.Tversky}.items():
    p = probabilities(5, 3, 3, 2)
    case(name, make(), masks, p)
    case(name + "/weight_of_all", make(), masks, p, f32(3))
    case(name + "/weights_of_scalar", make(), masks, p, weights)
    case(name + "/axis", make(axis=(1, 2, 3)), masks, p, weights)
    case(name + "/axis_last", make(axis=-1, reduction="none"), masks, p)
case("Tversky/alpha_beta", L.Tversky(alpha=0.3, beta=0.7, axis=(1, 2)), masks, p)

# Embeddings.
embeddings = numbers(6, 3)
embeddings /= np.linalg.norm(embeddings, axis=-1, keepdims=True)
labels = np.array([0, 1, 0, 2, 1, 0], np.int32)
case("Circle", L.Circle(), np.array([0, 1, 0, 1, 1, 0], np.int32), embeddings)
case("Circle/lonely", L.Circle(), labels, embeddings, gradient=False)
case("Circle/lonely_none", L.Circle(reduction="none"), labels, embeddings, gradient=False)
case("Circle/weights", L.Circle(gamma=10, margin=0.25), labels, embeddings, f32(rng.uniform(0.5, 2, 6)), gradient=False)
case("Circle/diagonal", L.Circle(gamma=16, remove_diagonal=False), labels, embeddings)
case("Circle/sum", L.Circle(gamma=16, reduction="sum"), np.array([0, 1, 0, 1, 1, 0], np.int32)[:, None], embeddings)
reference = numbers(4, 3)
reference /= np.linalg.norm(reference, axis=-1, keepdims=True)
reference_labels = np.array([0, 1, 2, 0], np.int32)
cases.add("circle/reference", y_true=labels, y_pred=embeddings, ref_labels=reference_labels, ref_embeddings=reference,
          loss=L.circle(labels, embeddings, reference_labels, reference, remove_diagonal=False, gamma=20, margin=0.3))
cases.write()
print(len(cases.names), "cases")

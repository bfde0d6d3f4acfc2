"""Objects as Keras writes them into a config.json: object_configs.json, {"kind": [entry, …], …}; and what compile() was
given, under "compile". tests/keras/object_configs_test.cpp makes the same objects in the same order."""

import values  # chooses the backend

import json
import pathlib

import keras
import numpy as np
from keras import constraints as c
from keras import initializers as i
from keras import losses as l
from keras import metrics as m
from keras import optimizers as o
from keras import regularizers as r
from keras.optimizers import schedules as s
from keras.saving import serialize_keras_object as entry

FANS = [i.GlorotNormal, i.GlorotUniform, i.HeNormal, i.HeUniform, i.LecunNormal, i.LecunUniform]
INITIALIZERS = [
    i.Zeros(),
    i.Ones(),
    i.Constant(),
    i.Constant(2.5),
    i.Constant(np.array([[1.5, 2], [3, 4]])),
    i.Constant(keras.ops.ones([2])),
    i.Constant([1.0, 2.0]),
    i.Identity(),
    i.Identity(gain=3.0),
    i.RandomNormal(),
    i.RandomNormal(mean=1.0, stddev=0.5, seed=7),
    i.RandomNormal(seed=keras.random.SeedGenerator(7)),
    i.RandomUniform(),
    i.RandomUniform(minval=-1, maxval=2, seed=7),
    i.TruncatedNormal(),
    i.TruncatedNormal(mean=1.0, stddev=0.5, seed=7),
    i.VarianceScaling(),
    i.VarianceScaling(scale=2.0, mode="fan_out", distribution="uniform", seed=7),
    i.VarianceScaling(distribution="untruncated_normal", input_axes=[0], output_axes=[1, 2], seed=7),
    i.Orthogonal(),
    i.Orthogonal(gain=2.0, seed=7),
    i.STFT(),
    i.STFT(side="imag", window="hamming", scaling="spectrum", periodic=True),
    i.STFT(window=None, scaling=None),
] + [one(**given) for one in FANS for given in [{}, {"seed": 7}, {"seed": 8, "input_axes": [0], "output_axes": [1]}]]

REGULARIZERS = [
    r.L1(),
    r.L1(0.1),
    r.L2(),
    r.L2(0.5),
    r.L1L2(),
    r.L1L2(l1=0.1, l2=0.25),
    r.OrthogonalRegularizer(),
    r.OrthogonalRegularizer(factor=0.5, mode="columns"),
]
CONSTRAINTS = [
    c.MaxNorm(),
    c.MaxNorm(3, axis=[0, 1, 2]),
    c.NonNeg(),
    c.UnitNorm(),
    c.UnitNorm(axis=1),
    c.MinMaxNorm(),
    c.MinMaxNorm(min_value=0.5, max_value=2.0, rate=0.75, axis=[0, 1]),
]
SCHEDULES = [
    s.ExponentialDecay(0.5, 100, 0.9),
    s.ExponentialDecay(0.5, 100, 0.9, staircase=True, name="mine"),
    s.PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.25]),
    s.PiecewiseConstantDecay([10], [1.0, 0.5], name="mine"),
    s.PolynomialDecay(0.5, 100),
    s.PolynomialDecay(0.5, 100, end_learning_rate=0.01, power=2.0, cycle=True, name="mine"),
    s.InverseTimeDecay(0.5, 100, 0.9),
    s.InverseTimeDecay(0.5, 100, 0.9, staircase=True, name="mine"),
    s.CosineDecay(0.5, 100),
    s.CosineDecay(0.0, 100, alpha=0.1, warmup_target=0.5, warmup_steps=10, name="mine"),
    s.CosineDecayRestarts(0.5, 100),
    s.CosineDecayRestarts(0.5, 100, t_mul=1.5, m_mul=0.9, alpha=0.1, name="mine"),
]

PLAIN_LOSSES = [
    l.MeanSquaredError,
    l.MeanAbsoluteError,
    l.MeanAbsolutePercentageError,
    l.MeanSquaredLogarithmicError,
    l.LogCosh,
    l.Huber,
    l.SparseCategoricalCrossentropy,
    l.CategoricalCrossentropy,
    l.CategoricalFocalCrossentropy,
    l.CategoricalGeneralizedCrossEntropy,
    l.BinaryCrossentropy,
    l.BinaryFocalCrossentropy,
    l.KLDivergence,
    l.Poisson,
    l.CTC,
    l.Hinge,
    l.SquaredHinge,
    l.CategoricalHinge,
    l.CosineSimilarity,
    l.Dice,
    l.Tversky,
    l.Circle,
]
LOSSES = [one(**given) for one in PLAIN_LOSSES for given in [{}, {"reduction": "sum", "name": "mine"}]] + [
    l.MeanSquaredError(reduction=None),
    l.MeanSquaredError(reduction="none"),
    l.MeanSquaredError(reduction="mean_with_sample_weight", dtype="float64"),
    l.Huber(delta=2.5),
    l.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3, axis=1),
    l.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, axis=1),
    l.CategoricalFocalCrossentropy(alpha=0.5, gamma=3.0, from_logits=True, label_smoothing=0.1, axis=1),
    l.CategoricalGeneralizedCrossEntropy(q=0.25),
    l.BinaryCrossentropy(from_logits=True, label_smoothing=0.1, axis=1),
    l.BinaryFocalCrossentropy(
        apply_class_balancing=True, alpha=0.5, gamma=3.0, from_logits=True, label_smoothing=0.1, axis=1
    ),
    l.CosineSimilarity(axis=1),
    l.Dice(axis=(1, 2)),
    l.Dice(axis=1),
    l.Tversky(alpha=0.25, beta=0.75, axis=(1, 2)),
    l.Circle(gamma=10.0, margin=0.25, remove_diagonal=False),
]

PLAIN_METRICS = [
    m.Accuracy,
    m.BinaryAccuracy,
    m.CategoricalAccuracy,
    m.SparseCategoricalAccuracy,
    m.TopKCategoricalAccuracy,
    m.SparseTopKCategoricalAccuracy,
    m.MeanSquaredError,
    m.RootMeanSquaredError,
    m.MeanAbsoluteError,
    m.MeanAbsolutePercentageError,
    m.MeanSquaredLogarithmicError,
    m.LogCoshError,
    m.CosineSimilarity,
    m.PearsonCorrelation,
    m.ConcordanceCorrelation,
    m.R2Score,
    m.BinaryCrossentropy,
    m.CategoricalCrossentropy,
    m.SparseCategoricalCrossentropy,
    m.KLDivergence,
    m.Poisson,
    m.Hinge,
    m.SquaredHinge,
    m.CategoricalHinge,
    m.AUC,
    m.Precision,
    m.Recall,
    m.TruePositives,
    m.TrueNegatives,
    m.FalsePositives,
    m.FalseNegatives,
    m.F1Score,
    m.FBetaScore,
    m.BinaryIoU,
    m.Mean,
    m.Sum,
]
AT = [m.SensitivityAtSpecificity, m.SpecificityAtSensitivity, m.PrecisionAtRecall, m.RecallAtPrecision]
METRICS = (
    [one(**given) for one in PLAIN_METRICS for given in [{"name": "a"}, {"name": "mine", "dtype": "float64"}]]
    + [one(0.5, **given) for one in AT for given in [{"name": "a"}, {"num_thresholds": 10, "class_id": 1, "name": "b"}]]
    + [
        m.MeanSquaredError(),
        m.LogCoshError(),
        m.FBetaScore(),
        m.BinaryAccuracy(name="a", threshold=0.25),
        m.TopKCategoricalAccuracy(k=2),
        m.SparseTopKCategoricalAccuracy(k=2, from_sorted_ids=True),
        m.CosineSimilarity(axis=1),
        m.PearsonCorrelation(axis=1),
        m.ConcordanceCorrelation(axis=1),
        m.R2Score(class_aggregation="variance_weighted_average", num_regressors=2),
        m.R2Score(class_aggregation=None),
        m.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
        m.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, axis=1),
        m.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3, axis=1),
        m.AUC(num_thresholds=5, curve="PR", summation_method="minoring", from_logits=True, name="a"),
        m.AUC(thresholds=[0.25, 0.5], name="a"),
        m.AUC(multi_label=True, num_labels=3, label_weights=[1.0, 2.0, 3.0], curve="PRGAIN", name="a"),
        m.AUC(summation_method="majoring", name="a"),
        m.Precision(thresholds=0.25, top_k=2, class_id=1, name="a"),
        m.Precision(thresholds=[0.25, 0.75], name="a"),
        m.Recall(thresholds=[0.25, 0.75], name="a"),
        m.Recall(top_k=2, name="a"),
        m.TruePositives(thresholds=0.25, name="a"),
        m.FalseNegatives(thresholds=[0.25, 0.75], name="a"),
        m.F1Score(average="macro", threshold=0.5),
        m.FBetaScore(average="weighted", beta=2.0, threshold=0.5),
        m.IoU(3, [0, 2], name="a"),
        m.IoU(3, (0, 2), ignore_class=1, sparse_y_true=False, sparse_y_pred=False, axis=1, name="a", dtype="float32"),
        m.BinaryIoU(target_class_ids=[1], threshold=0.25, name="a"),
        m.MeanIoU(3, name="a"),
        m.MeanIoU(3, ignore_class=1, sparse_y_true=False, sparse_y_pred=False, axis=1, name="a"),
        m.OneHotIoU(3, [0, 2], name="a"),
        m.OneHotIoU(3, [0], ignore_class=1, sparse_y_pred=True, axis=1, name="a"),
        m.OneHotMeanIoU(3, name="a"),
        m.OneHotMeanIoU(3, ignore_class=1, sparse_y_pred=True, axis=1, name="a"),
    ]
)

ALL_OPTIMIZERS = [
    o.SGD,
    o.RMSprop,
    o.Adagrad,
    o.Adadelta,
    o.Adam,
    o.AdamW,
    o.Adamax,
    o.Nadam,
    o.Lion,
    o.Ftrl,
    o.Lamb,
    o.Adafactor,
    o.Muon,
    o.ScheduleFreeAdamW,
]
SHARED = {
    "learning_rate": 0.25,
    "weight_decay": 0.125,
    "clipnorm": 2.0,
    "use_ema": True,
    "ema_momentum": 0.5,
    "ema_overwrite_frequency": 3,
    "loss_scale_factor": 8.0,
    "gradient_accumulation_steps": 2,
    "name": "mine",
}
OPTIMIZERS = [one(**given) for one in ALL_OPTIMIZERS for given in [{}, SHARED]] + [
    o.SGD(momentum=0.5, nesterov=True),
    o.SGD(s.ExponentialDecay(0.5, 100, 0.9), clipvalue=1.0),
    o.SGD(s.PiecewiseConstantDecay([10, 20], [1.0, 0.5, 0.25]), global_clipnorm=1.0),
    o.RMSprop(rho=0.5, momentum=0.25, epsilon=1e-3, centered=True),
    o.Adagrad(initial_accumulator_value=0.5, epsilon=1e-3),
    o.Adadelta(rho=0.5, epsilon=1e-3),
    o.Adam(beta_1=0.5, beta_2=0.75, epsilon=1e-3, amsgrad=True),
    o.AdamW(beta_1=0.5, beta_2=0.75, epsilon=1e-3, amsgrad=True),
    o.Adamax(beta_1=0.5, beta_2=0.75, epsilon=1e-3),
    o.Nadam(beta_1=0.5, beta_2=0.75, epsilon=1e-3),
    o.Lion(beta_1=0.5, beta_2=0.75),
    o.Ftrl(
        learning_rate_power=-0.25,
        initial_accumulator_value=0.5,
        l1_regularization_strength=0.1,
        l2_regularization_strength=0.2,
        l2_shrinkage_regularization_strength=0.3,
        beta=0.4,
    ),
    o.Lamb(beta_1=0.5, beta_2=0.75, epsilon=1e-3),
    o.Adafactor(beta_2_decay=-0.5, epsilon_1=1e-20, epsilon_2=1e-2, clip_threshold=2.0, relative_step=False),
    o.Muon(
        adam_beta_1=0.5,
        adam_beta_2=0.75,
        adam_weight_decay=0.01,
        epsilon=1e-3,
        exclude_layers=["head"],
        exclude_embeddings=False,
        muon_a=1.0,
        muon_b=2.0,
        muon_c=3.0,
        adam_lr_ratio=0.5,
        momentum=0.5,
        ns_steps=3,
        nesterov=False,
        rms_rate=None,
    ),
    o.ScheduleFreeAdamW(beta_1=0.5, beta_2=0.75, epsilon=1e-3, warmup_steps=10),
    o.LossScaleOptimizer(o.Adam()),
    o.LossScaleOptimizer(o.SGD(0.25, momentum=0.5), initial_scale=1024.0, dynamic_growth_steps=10, name="mine"),
]


def model(outputs):
    x = keras.Input([2], name="x")
    return keras.Model(x, [keras.layers.Dense(2, name=name)(x) for name in outputs])


def compiled(outputs, **given):
    one = model(outputs)
    one.compile(**given)
    return {"outputs": outputs, "config": one.get_compile_config()}


TWO = ["first", "second"]
COMPILED = [
    compiled(["y"]),
    compiled(["y"], optimizer="adam", loss="mse", metrics=["accuracy", "mae"]),
    compiled(["y"], optimizer=o.SGD(0.5), loss=l.Huber(delta=2.0), metrics=[m.AUC(name="a")], weighted_metrics=["mse"]),
    compiled(["y"], optimizer="SGD", loss=l.mean_squared_error, metrics=[m.mean_absolute_error, "acc"]),
    compiled(["y"], optimizer="adam", loss="mse", run_eagerly=True, steps_per_execution=3, jit_compile=False),
    compiled(["y"], optimizer="adam", loss=["mse"], loss_weights=[0.5], metrics=[["mse", "mae"]]),
    compiled(TWO, optimizer="adam", loss="mse"),
    compiled(TWO, optimizer="adam", loss=["mse", l.MeanAbsoluteError()], loss_weights=[1, 0.5], metrics=["mse", ["mae"]]),
    compiled(TWO, optimizer="adam", loss=["mse", None], metrics=[["mse", "mae"], None]),
    compiled(TWO, optimizer="adam", loss=["mse", "mae"], metrics=[["mse", "mae"], []], weighted_metrics=[[], ["mse"]]),
    compiled(
        TWO,
        optimizer="adam",
        loss={"first": "mse", "second": l.MeanAbsoluteError()},
        loss_weights={"first": 1.0, "second": 0.25},
        metrics={"first": ["mse", m.MeanAbsoluteError()], "second": "mae"},
        weighted_metrics={"second": ["mse"]},
    ),
    compiled(TWO, optimizer="adam", loss={"second": "mse"}, loss_weights={"second": 2}),
]

path = pathlib.Path(__file__).resolve().parent / "object_configs.json"
objects = {
    "keras": keras.__version__,
    "initializer": [entry(one) for one in INITIALIZERS],
    "regularizer": [entry(one) for one in REGULARIZERS],
    "constraint": [entry(one) for one in CONSTRAINTS],
    "learning rate schedule": [entry(one) for one in SCHEDULES],
    "loss": [entry(one) for one in LOSSES],
    "metric": [entry(one) for one in METRICS],
    "optimizer": [entry(one) for one in OPTIMIZERS],
    "compile": COMPILED,
}
lines = []
for kind, entries in objects.items():
    if isinstance(entries, str):
        lines.append(f"{json.dumps(kind)}: {json.dumps(entries)}")
    else:
        lines.append(f"{json.dumps(kind)}: [\n" + ",\n".join(json.dumps(one) for one in entries) + "\n]")
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")

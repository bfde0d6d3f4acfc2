"""Steps of Keras's optimizers in double precision: optimizers.txt. Rates, values and gradients are exact in f32."""

from values import Cases

import jax

jax.config.update("jax_enable_x64", True)

import keras
import numpy as np
from keras import optimizers as o

keras.config.set_floatx("float64")

NAMES = ["bias", "tall", "wide", "filters", "scale", "square"]
SHAPES = [(3,), (4, 2), (2, 5), (2, 2, 3, 2), (), (3, 3)]
STEPS = 7
KEPT = (0, 3, 6)  # steps after which values are stored

random = np.random.default_rng(7)
cases = Cases("optimizers")


def eighths(shape):
    return np.asarray(np.round(random.normal(size=shape) * 8) / 8)


START = [eighths(shape) for shape in SHAPES]
GRADIENTS = [[eighths(shape) for shape in SHAPES] for _ in range(STEPS)]
START[0][1] = 0
START[3][:] = np.where(START[3] == 0, 0.5, START[3])
for step in range(STEPS):
    GRADIENTS[step][0][2] = 0  # never pushed
GRADIENTS[2][1] *= 16  # worth clipping

data = {f"start_{i}": START[i] for i in range(len(SHAPES))}
for step in range(STEPS):
    data |= {f"gradient_{step}_{i}": GRADIENTS[step][i] for i in range(len(SHAPES))}
cases.add("data", **data)


def variables():
    return [keras.Variable(v, dtype="float64", name=n) for v, n in zip(START, NAMES)]


def run(name, optimizer, prepare=None, steps=STEPS, final=False):
    kept = variables()
    if prepare:
        prepare(optimizer, kept)
    values = {}
    for step in range(steps):
        optimizer.apply([jax.numpy.asarray(g) for g in GRADIENTS[step]], kept)
        if step in KEPT:
            values |= {f"after_{step}_{i}": v.numpy() for i, v in enumerate(kept)}
    if final:
        optimizer.finalize_variable_values(kept)
        values |= {f"final_{i}": v.numpy() for i, v in enumerate(kept)}
    cases.add(name, **values)


run("sgd", o.SGD(0.125))
run("sgd momentum", o.SGD(0.125, momentum=0.75))
run("sgd nesterov", o.SGD(0.125, momentum=0.75, nesterov=True))
run("rmsprop", o.RMSprop(0.125))
run("rmsprop centered", o.RMSprop(0.125, rho=0.7, momentum=0.6, epsilon=0.01, centered=True))
run("adagrad", o.Adagrad(0.125))
run("adagrad options", o.Adagrad(0.125, initial_accumulator_value=0.7, epsilon=0.1))
run("adadelta", o.Adadelta(1.0))
run("adadelta options", o.Adadelta(0.5, rho=0.6, epsilon=0.01))
run("adam", o.Adam(0.125))
run("adam options", o.Adam(0.125, beta_1=0.6, beta_2=0.7, epsilon=0.01))
run("adam amsgrad", o.Adam(0.125, beta_2=0.5, amsgrad=True))
run("adamw", o.AdamW(0.125))
run("adamw options", o.AdamW(0.125, weight_decay=0.3, beta_1=0.8, beta_2=0.9, epsilon=1e-3, amsgrad=True))
run(
    "adamw excluded",
    o.AdamW(0.125, weight_decay=0.5),
    lambda opt, v: opt.exclude_from_weight_decay(var_list=[v[1]], var_names=["bias", "^w.de"]),
)
run("adamax", o.Adamax(0.125))
run("adamax options", o.Adamax(0.125, beta_1=0.5, beta_2=0.6, epsilon=0.25))
run("nadam", o.Nadam(0.125))
run("nadam options", o.Nadam(0.125, beta_1=0.5, beta_2=0.7, epsilon=0.01))
run("lion", o.Lion(0.125))
run("lion options", o.Lion(0.125, beta_1=0.4, beta_2=0.3, weight_decay=0.25))
run("ftrl", o.Ftrl(0.125))
run(
    "ftrl options",
    o.Ftrl(
        0.125,
        learning_rate_power=-0.75,
        initial_accumulator_value=0.5,
        l1_regularization_strength=0.25,
        l2_regularization_strength=0.125,
        l2_shrinkage_regularization_strength=0.0625,
        beta=0.1,
    ),
)
run("lamb", o.Lamb(0.125))
run("lamb options", o.Lamb(0.125, beta_1=0.5, beta_2=0.6, epsilon=0.01, weight_decay=0.125))
run("adafactor", o.Adafactor(0.125))
run("adafactor options", o.Adafactor(2.0, beta_2_decay=-0.5, epsilon_2=0.25, clip_threshold=0.5, relative_step=False))
run("muon", o.Muon(0.125))
run(
    "muon options",
    o.Muon(
        0.125,
        adam_beta_1=0.8,
        adam_beta_2=0.7,
        adam_weight_decay=0.25,
        epsilon=0.01,
        weight_decay=0.5,
        exclude_layers=["wi"],
        muon_a=3.0,
        muon_b=-4.0,
        muon_c=2.0,
        adam_lr_ratio=0.5,
        momentum=0.75,
        ns_steps=3,
        nesterov=False,
        rms_rate=None,
    ),
)
run("schedule free", o.ScheduleFreeAdamW(0.125))
run(
    "schedule free options",
    o.ScheduleFreeAdamW(0.25, beta_1=0.7, beta_2=0.8, epsilon=0.01, warmup_steps=4, weight_decay=0.25),
)

# What all of them share.
run("clipnorm", o.SGD(0.125, clipnorm=1.5))
run("clipvalue", o.SGD(0.125, clipvalue=0.75))
run("global clipnorm", o.SGD(0.125, global_clipnorm=4.0))
run("global clipnorm not reached", o.SGD(0.125, global_clipnorm=1000.0))
run("weight decay", o.SGD(0.125, momentum=0.5, weight_decay=0.5))
run("ema", o.SGD(0.125, use_ema=True, ema_momentum=0.75), final=True)
run("ema overwrite", o.Adam(0.125, use_ema=True, ema_momentum=0.75, ema_overwrite_frequency=3), final=True)
run("loss scale factor", o.SGD(0.125, loss_scale_factor=4.0))
run("accumulation", o.Adam(0.125, gradient_accumulation_steps=2))
run("accumulation nadam", o.Nadam(0.125, gradient_accumulation_steps=3))
run(
    "accumulation of everything",
    o.SGD(
        0.125,
        momentum=0.5,
        nesterov=True,
        weight_decay=0.25,
        clipnorm=1.0,
        use_ema=True,
        ema_momentum=0.5,
        ema_overwrite_frequency=2,
        loss_scale_factor=0.5,
        gradient_accumulation_steps=3,
    ),
    final=True,
)
run(
    "schedule",
    o.Adam(o.schedules.ExponentialDecay(0.25, 3, 0.5, staircase=True), weight_decay=0.25),
)
run(
    "accumulation schedule",
    o.SGD(o.schedules.PiecewiseConstantDecay([1, 4], [0.5, 0.25, 0.125]), gradient_accumulation_steps=2),
)


def run_loss_scale(name, optimizer, broken):
    """Gradients of a scaled loss; those of the steps in `broken` are infinite in one place."""
    kept = variables()
    optimizer.build(kept)
    values, scales = {}, []
    for step in range(STEPS):
        scale = float(optimizer.scale_loss(1.0))
        gradients = [jax.numpy.asarray(g * scale) for g in GRADIENTS[step]]
        if step in broken:
            gradients[3] = gradients[3].at[1, 0, 1, 0].set(np.inf if step % 2 else np.nan)
        new, state = optimizer.stateless_apply([v.value for v in optimizer.variables], gradients, [v.value for v in kept])
        for variable, value in zip(kept + optimizer.variables, new + state):
            variable.assign(value)
        scales.append(float(optimizer.scale_loss(1.0)))
        if step in KEPT:
            values |= {f"after_{step}_{i}": v.numpy() for i, v in enumerate(kept)}
    cases.add(name, scales=np.asarray(scales), **values)


run_loss_scale("loss scale optimizer", o.LossScaleOptimizer(o.Adam(0.125), initial_scale=64.0, dynamic_growth_steps=2), {3, 4})
run_loss_scale(
    "loss scale optimizer accumulation",
    o.LossScaleOptimizer(o.SGD(0.125, gradient_accumulation_steps=2, clipnorm=2.0), initial_scale=1024.0, dynamic_growth_steps=3),
    {0, 5},
)

cases.write()

"""Rates of Keras's schedules in double precision, but for cosines, which Keras takes in f32: schedules.txt."""

from values import Cases

import jax

jax.config.update("jax_enable_x64", True)

import keras
import numpy as np
from keras.optimizers import schedules as s

keras.config.set_floatx("float64")
cases = Cases("schedules")
RATE = 0.3


def run(name, schedule, steps):
    rates = [float(schedule(np.int64(step))) for step in steps]
    cases.add(name, step=np.asarray(steps, dtype="int64"), rate=np.asarray(rates, dtype="float64"))


few = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 15, 19, 20, 21, 29, 30, 31, 40, 99, 100, 101, 1000]
run("exponential", s.ExponentialDecay(RATE, 10, 0.6), few)
run("exponential staircase", s.ExponentialDecay(RATE, 10, 0.6, staircase=True), few)
run("piecewise", s.PiecewiseConstantDecay([3, 10, 30], [1.0, 0.5, 0.2, 0.1]), few)
run("polynomial", s.PolynomialDecay(RATE, 20), few)
run("polynomial power", s.PolynomialDecay(RATE, 20, end_learning_rate=0.05, power=2.5), few)
run("polynomial cycle", s.PolynomialDecay(RATE, 10, end_learning_rate=0.01, power=0.5, cycle=True), few)
run("inverse time", s.InverseTimeDecay(RATE, 10, 0.7), few)
run("inverse time staircase", s.InverseTimeDecay(RATE, 10, 0.7, staircase=True), few)
run("cosine", s.CosineDecay(RATE, 30), few)
run("cosine alpha", s.CosineDecay(RATE, 30, alpha=0.1), few)
run("cosine warmup", s.CosineDecay(0.1, 20, alpha=0.05, warmup_target=0.5, warmup_steps=10), few)
run("cosine warmup from zero steps", s.CosineDecay(0.1, 20, warmup_target=0.5, warmup_steps=0), few)
run("restarts", s.CosineDecayRestarts(RATE, 10), few)
# Not at the starts of periods: there Keras's logarithm may be one off.
run("restarts options", s.CosineDecayRestarts(RATE, 10, t_mul=1.5, m_mul=0.8, alpha=0.1), [0, 1, 5, 9, 11, 20, 26, 40, 100])
run("restarts equal", s.CosineDecayRestarts(RATE, 10, t_mul=1.0, m_mul=0.9), few)

cases.write()

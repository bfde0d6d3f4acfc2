// Transcendental primitives written with arithmetic ones, so that every code generator has vector code for them from
// one definition and no call of a math library blocks a loop.
#pragma once
#include "stet/ir/expr.h"

namespace stet {

/// exp, log, sin, cos, tanh, erf, erfc and power of f32 and f64 replaced by polynomials over + - * / sqrt, fma, floor,
/// minimum, maximum, select, comparisons, casts, bitcasts and integer operations (nothing else remains). Of f16 and
/// bf16 by way of f32. Integer power too, exactly as `evaluate` states it. Other primitives pass through unchanged;
/// stated derivatives are dropped.
///
/// Special values are as in C's math library: NaN, infinities, signed zeros, overflow to infinity, gradual underflow.
/// Error in units in the last place, as tests/cpu/math_ulp_test.cpp asserts it over every exponent:
///         exp   log   sin, cos   tanh   erf   erfc   power   1/(1+exp(-x))
///   f32   1.1   1.0   1.6        2.5    1.5   3.7    1.3     3
///   f64   1.1   1.0   1.6        2.7    1.2   4.3    1.5     3
/// sin and cos hold for |x| up to 2^46; beyond it they are some number from -1 to 1. The composed sigmoid is 0 where
/// exp(-x) overflows, below -88.7 (f32) and -709.8 (f64). power of exactly -1, 0.5, 1, 2 and 3 is 1/x, sqrt(x), x, x*x
/// and x*x*x, whether the exponent is a constant or not.
Expr expand_math(Expr);

}  // namespace stet

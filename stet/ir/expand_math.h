// Transcendental primitives written with arithmetic ones, so that every code generator has vector code for them from
// one definition and no call of a math library blocks a loop.
#pragma once
#include "stet/ir/expr.h"

namespace stet {

/// The primitives that are transcendental of f32 and f64 replaced by polynomials over + - * / sqrt, fma, floor, round,
/// minimum, maximum, select (rarely or not), comparisons, casts, bitcasts and integer operations (nothing else
/// remains). Of f16 and bf16 by way of f32. Integer power too, exactly as `evaluate` states it. Other primitives pass
/// through unchanged; stated derivatives are dropped.
///
/// Special values are as in C's math library: NaN, infinities, signed zeros, overflow to infinity, gradual underflow.
/// Error in units in the last place, as tests/cpu/math_ulp_test.cpp asserts it over every exponent:
///         exp   exp2   expm1   log   log2, log10   power   sin, cos   atan2   1/(1+exp(-x))   tanh   erf   erfc erfinv
///   f32   1.1   1.2    1.6     1.0   0.6           1.3     1.6        1.6     3               2.5    1.5   3.7    0.8
///   f64   1.1   1.2    2.0     1.0   0.6           1.5     1.6        1.6     3               2.7    1.2   4      2.2
/// log_gamma and digamma: f32 0.6; f64 3.3 and 4, where results near a zero are measured in units of 4 (log_gamma below
/// 0), of 1 (digamma above 0) and of the larger of 4 and 2 log|x| (digamma below 0), which are differences of such
/// terms. The composed sigmoid is 0 where exp(-x) overflows, below -88.7 (f32) and -709.8 (f64). Powers of two have an
/// exact log2, and whole numbers an exact exp2. power of exactly -1, 0.5, 1, 2 and 3 is 1/x, sqrt(x), x, x*x and x*x*x,
/// whether the exponent is a constant or not.
Expr expand_math(Expr);

}  // namespace stet

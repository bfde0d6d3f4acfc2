// STET_FOR_EACH(macro, a, b, c) is macro(a) macro(b) macro(c): what lists of fields are made with.
#pragma once

#define STET_PARENTHESES ()
#define STET_EXPAND(...) STET_EXPAND_3(STET_EXPAND_3(STET_EXPAND_3(STET_EXPAND_3(__VA_ARGS__))))
#define STET_EXPAND_3(...) STET_EXPAND_2(STET_EXPAND_2(STET_EXPAND_2(STET_EXPAND_2(__VA_ARGS__))))
#define STET_EXPAND_2(...) STET_EXPAND_1(STET_EXPAND_1(STET_EXPAND_1(STET_EXPAND_1(__VA_ARGS__))))
#define STET_EXPAND_1(...) __VA_ARGS__
#define STET_FOR_EACH(macro, ...) __VA_OPT__(STET_EXPAND(STET_FOR_EACH_STEP(macro, __VA_ARGS__)))
#define STET_FOR_EACH_STEP(macro, first, ...) \
  macro(first) __VA_OPT__(STET_FOR_EACH_AGAIN STET_PARENTHESES(macro, __VA_ARGS__))
#define STET_FOR_EACH_AGAIN() STET_FOR_EACH_STEP

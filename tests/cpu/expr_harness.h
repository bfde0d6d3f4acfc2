// Expressions compiled into loops over arrays, for tests and measurements.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stet/base/text.h"
#include "stet/cpu/emit_expr.h"
#include "stet/cpu/jit.h"

namespace stet::cpu {

/// out[i] = expr(inputs[0][i], inputs[1][i], …), elements as they are stored; loop 0 is i. `count` is a multiple of the
/// lanes it was compiled for.
using ArrayFunction = void (*)(const void* const* inputs, void* out, std::int64_t count);

inline CodeRequest array_request(Expr expr, int lanes) {
  return {text("test array ", lanes, " ", name(expr.dtype()), " ", expr.str(true)), [expr, lanes](LlvmBuilder& b) {
            b.begin_function(entry_name, LLVMVoidTypeInContext(b.context()), {b.pointer(), b.pointer(), b.index()});
            Value inputs = b.parameter(0), out = b.parameter(1), count = b.parameter(2);
            int operands = expr.operand_count();
            std::vector<DType> dtypes(static_cast<std::size_t>(operands), f32);
            for (Expr e : topological(expr))
              if (e.is(Primitive::operand)) dtypes[static_cast<std::size_t>(e->number)] = e.dtype();
            std::vector<Value> bases;
            for (int i = 0; i < operands; ++i)
              bases.push_back(b.load(b.pointer(), b.element_pointer(b.pointer(), inputs, b.index(i)), 8));
            b.loop(b.index(0), count, b.index(lanes), [&](Value i) {
              auto operand = [&](int number) {
                DType d = dtypes[static_cast<std::size_t>(number)];
                Value at = b.element_pointer(b.storage(d), bases[static_cast<std::size_t>(number)], i);
                return from_storage(b, d, b.load(b.vector(b.storage(d), lanes), at, 1));
              };
              auto loop_index = [&](int) { return b.add(b.splat(i, lanes), b.lane_numbers(b.index(), lanes)); };
              Value value = emit_expr(b, expr, lanes, operand, loop_index);
              b.store(to_storage(b, expr.dtype(), value), b.element_pointer(b.storage(expr.dtype()), out, i), 1);
            });
            LLVMBuildRetVoid(b.raw());
          }};
}

/// Never from the disk: what a test measures is the present emitter.
inline ArrayFunction array_function(Expr expr, int lanes) {
  set_cache_folder("");
  return reinterpret_cast<ArrayFunction>(load_code(array_request(expr, lanes)));
}

}  // namespace stet::cpu

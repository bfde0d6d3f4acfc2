// What random ops are made of: the words of a counter, and the counters that a call takes. Private to ops/.
#pragma once
#include <array>

#include "stet/core/call.h"
#include "stet/core/trace.h"
#include "stet/ir/op.h"
#include "stet/ops/ops.h"

namespace stet {

struct RandomAttributes {
  std::vector<Dim> shape;
  DType dtype = DType::f32;
  STET_ATTRIBUTES(shape, dtype)
};

/// The four words (as i64 values below 2^32) for a 64-bit counter and a 64-bit key: Philox 4x32 with 10 rounds.
/// `block`: further words of the same counter.
std::array<Expr, 4> philox(Expr counter, Expr key, int block = 0);
/// The same on the host; `purpose` 0 is what ops draw.
std::array<std::uint32_t, 4> philox_words(std::uint64_t counter, std::uint64_t key, std::uint32_t purpose);
/// Uniform in [0, 1): the top bits of a word, or of two for f64, as many as the type has.
Expr unit_interval(const std::array<Expr, 4>& words, int first, DType type);
/// Two independent normal numbers from uniform ones in [0, 1) (Box and Muller).
std::array<Expr, 2> normal_pair(Expr u, Expr v);
/// c[0] + x (c[1] + x (…)), each step rounded once.
Expr polynomial(Expr x, std::span<const double> coefficients);

/// Counters that one call took from where it draws. If the call throws, it gives them back.
class Reservation {
 public:
  Reservation(const random::Source& from, const Dim& count, Where where);
  ~Reservation();
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  /// A row's draw of `shape` at the next counters of the reservation, one for every element: its operands are seed,
  /// counter, then `parameters`.
  Tensor draw(const OpDef& row, const Shape& shape, std::initializer_list<In> parameters, AttributesView attributes);
  /// Uniform in [0, 1), standard normal.
  Tensor uniform(const Shape& shape, DType type);
  Tensor normal(const Shape& shape, DType type);
  /// Integers of which every bit is random.
  Tensor bits(const Shape& shape);
  /// Counters that are not drawn after all.
  void skip(const Dim& count) { used_ = begun_ ? used_ + count : count, begun_ = true; }

 private:
  Variable state_;  // undefined: nothing is taken
  Tensor before_, seed_, counter_;
  Dim count_, used_ = 0;
  Where where_;
  bool begun_ = false;
  int exceptions_;
};

/// A number in the type that rows compute in: f32 or f64.
inline Tensor scalar_of(double value, DType dtype) {
  return compute_type(floating_type(dtype)) == DType::f64 ? Tensor(value) : Tensor(static_cast<float>(value));
}
/// A parameter's type and range as options and numbers state them.
[[noreturn]] void refuse(const char* name, const std::string& what, Where where, const std::string& advice);
/// Refuses a number that is not in [low, high], or, `open`, is low; tensors are not looked at.
void check_number(const char* name, const char* parameter, const In& value, double low, double high, bool open,
                  Where where);
/// What the result of a draw is: the option, or the type that floating parameters promote to, f32 without one.
DType drawn_type(const char* name, std::optional<DType> option, std::initializer_list<In> parameters, Where where);
/// A parameter as a tensor of `type` that fits `shape`: a scalar, or of that shape without a copy.
Tensor fitted(const In& parameter, DType type, const Shape& shape);

}  // namespace stet

// What callables of convolutions and pools share: their options checked, and sizes from them. Errors name the callable.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/in.h"
#include "stet/ops/ops.h"

namespace stet {

/// Where windows lie along one axis: `size` of them, the first begins `low` before the input does.
struct WindowAxis {
  Dim size = 0, low = 0;
};

/// "one entry for height and one for width"
const char* entries_text(int spatial);

/// One call of a public function over windows. While it lives, errors name that function.
class WindowCall {
 public:
  /// Operands are [batch, spatial axes…, channels] and what `names` says; all are tensors from here on.
  WindowCall(const char* function, std::span<const char* const> names, std::span<const In> operands);

  [[noreturn]] void fail(const Problem& problem) const;
  void require(bool condition, const std::string& problem, const std::string& advice = {}) const {
    if (!condition) fail(Problem(problem, advice));
  }
  const Tensor& operand(int number) const { return operands_[static_cast<std::size_t>(number)].tensor(); }
  Where where() const;

  /// 'x' has rank 4, not 3: "images are …".
  void require_rank(int number, int rank, const std::string& advice) const;
  /// All operands have one floating type.
  void require_floating() const;
  /// "strides have one entry for height and one for width, not 3".
  void require_entries(const char* what, std::size_t count, int spatial) const;
  void require_equal(const Dim& a, const Dim& b, const std::string& what, const std::string& advice = {}) const;

  /// Windows of `window` elements, `dilation` apart, every `stride` of the input. Called for each axis.
  WindowAxis axis(int number, const Dim& input, const Dim& window, std::int64_t stride, std::int64_t dilation,
                  const WindowPadding& padding) const;
  /// How many input positions windows come from, of which there are `windows`: the other way round.
  WindowAxis transposed_axis(int number, const Dim& windows, const Dim& window, std::int64_t stride,
                             std::int64_t dilation, const WindowPadding& padding,
                             const std::vector<std::int64_t>& output_padding) const;
  /// "valid" or "same", or one pair per axis.
  void require_padding(const WindowPadding& padding, int spatial) const;

  /// Runs f, with Problems reported as this function's.
  template <class F>
  auto reporting(const F& f) const {
    try {
      return f();
    } catch (const Problem& problem) {
      fail(problem);
    }
  }

 private:
  Reason reason(const char* what) const { return {function_, what, where()}; }

  const char* function_;
  std::span<const char* const> names_;
  std::span<const In> operands_;
  Frame frame_;
};

}  // namespace stet

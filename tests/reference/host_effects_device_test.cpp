// Host code in programs of a device whose memory the host cannot read.
#include <memory>

#include "stet/core/function.h"
#include "stet/core/host_call.h"
#include "stet/core/scope.h"
#include "tests/ops/op_harness.h"
#include "tests/reference/reference_device.h"

namespace stet::op_test {
namespace {

class HostEffectsOnADevice : public OpTest {
 protected:
  void SetUp() override {
    on_print([this](const std::string& text) { printed += text; });
  }
  void TearDown() override { on_print({}); }
  static Tensor moved(const Tensor& tensor) { return on_device(tensor, reference_device()); }
  std::string printed;
};

TEST_F(HostEffectsOnADevice, ValuesAreCopiedOutAndIn) {
  auto code = [](Tensor x) {
    print("x", x, "of", x.dim(0));
    assert_that(x > 0.f, "positive", x);
    Tensor y = host_call(
        [](Tensor given) {
          EXPECT_EQ(given.node()->device(), nullptr);
          return given * 2;
        },
        {DType::f32, x.shape()}, x + 1);
    return y + x;
  };
  Function f = function("f(x)", code);
  for (int size : {3, 1, 0}) {
    printed.clear();
    Tensor x = moved(ones({size}));
    Tensor traced = f(x), eager = code(x);
    for (const Tensor& y : {traced, eager}) {
      ASSERT_EQ(y.node()->device(), &reference_device());
      EXPECT_EQ(on_host(y).to_vector<float>(), std::vector<float>(static_cast<std::size_t>(size), 5));
    }
    std::string once = text("x ", to_string(ones({size})), " of ", size, "\n");
    EXPECT_EQ(printed, once + once);
  }
  EXPECT_THROW(f(moved(zeros({2}))), UserError);
  EXPECT_THROW(code(moved(zeros({2}))), UserError);
}

}  // namespace
}  // namespace stet::op_test

#include "stet/keras/dropout.h"

#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class DropoutBody : public CustomLayer {
 public:
  DropoutBody(double rate, std::string name) : CustomLayer(std::move(name)), rate_(rate) {}

  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, const Context& context) override {
    if (!context.training || rate_ == 0) return x;
    Frame frame("Dropout", context.where);
    if (rate_ == 1) return zeros_like(x);
    Tensor keep = random::uniform(x.shape(), {}, context.where) >= rate_;
    return where(keep, x * (1 / (1 - rate_)), 0);
  }

 private:
  double rate_;
};

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options, Where where)
    : Layer(std::make_shared<DropoutBody>(rate, std::move(options.name))) {
  if (!(rate >= 0 && rate <= 1))
    throw UserError(error_text(text("Dropout: a rate of ", rate), where, "it is a probability, from 0 to 1"));
}

}  // namespace stet::keras

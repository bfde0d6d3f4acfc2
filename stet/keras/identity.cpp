#include "stet/keras/identity.h"

#include <memory>
#include <utility>

#include "stet/keras/library_layer.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class ActivityRegularizationBody final : public LibraryLayer {
 public:
  ActivityRegularizationBody(ActivityRegularizationOptions options, Where where)
      : LibraryLayer("ActivityRegularization", options.name, {.layout = "any tensor"}, options.dtype),
        rule_(regularizers::L1L2({.l1 = options.l1, .l2 = options.l2}, where)) {}
  bool supports_masking() const override { return true; }

 private:
  Tensor run(const Tensor& x, const Context& context) override {
    const Tensor penalty = rule_(x, context.where);
    add_loss(x.rank() == 0 ? penalty : penalty / maximum(cast(x.dim(0), penalty.dtype()), 1), context.where);
    return x;
  }
  const Regularizer rule_;
};

}  // namespace

Identity::Identity(IdentityOptions options)
    : Layer(plain_layer({.class_name = "Identity",
                         .name = std::move(options.name),
                         .takes = {.layout = "any tensor"},
                         .call = [](const Tensor& x, const Context&) { return x; },
                         .supports_masking = true,
                         .policy = options.dtype})) {}

ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions options, Where where)
    : Layer(std::make_shared<ActivityRegularizationBody>(std::move(options), where)) {}

}  // namespace stet::keras

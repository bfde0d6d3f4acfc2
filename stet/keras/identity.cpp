#include "stet/keras/identity.h"

#include <memory>
#include <utility>

#include "stet/keras/layer_fields.h"
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

using IdentityRecipe = PlainRecipe<Identity, "Identity", IdentityOptions>;
struct ActivityRegularizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "ActivityRegularization";
  ActivityRegularizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("l1", options.l1);
    f("l2", options.l2);
  }
  Layer make(Where where) const { return ActivityRegularization(options, where); }
};
const Savable<IdentityRecipe> savable_identity;
const Savable<ActivityRegularizationRecipe> savable_activity_regularization;

}  // namespace

Identity::Identity(IdentityOptions options)
    : Layer(plain_layer({.class_name = "Identity",
                         .name = options.name,
                         .takes = {.layout = "any tensor"},
                         .call = [](const Tensor& x, const Context&) { return x; },
                         .supports_masking = true,
                         .policy = options.dtype})) {
  note_recipe(*this, IdentityRecipe{options});
}

ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions options, Where where)
    : Layer(std::make_shared<ActivityRegularizationBody>(options, where)) {
  note_recipe(*this, ActivityRegularizationRecipe{options});
}

}  // namespace stet::keras

#include "stet/keras/flatten.h"

#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class FlattenBody : public CustomLayer {
 public:
  explicit FlattenBody(std::string name) : CustomLayer(std::move(name)) {}

  Tensor call(const Tensor& x, const Context& context) override {
    if (x.rank() < 1)
      throw UserError(
          error_text(text(description(), ": its input has no batch axis"), context.where, "it takes [batch, …]"));
    Dim values = 1;  // not -1, which an empty batch would leave open
    for (int axis = 1; axis < x.rank(); ++axis) values = values * x.dim(axis);
    return reshape(In(x, context.where), {x.dim(0), values});
  }
};

struct FlattenRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Flatten";
  FlattenOptions options = {};
  DTypePolicy dtype = {};
  void fields(Fields& f) {
    f.layer_name(options.name);
    f("dtype", dtype);
    f.only("data_format", "channels_last");
  }
  Layer make(Where) const {
    Layer made = Flatten(options);
    note_recipe(made, *this);  // with the type, which is no option here
    return made;
  }
};
const Savable<FlattenRecipe> savable_flatten;

}  // namespace

Flatten::Flatten(FlattenOptions options) : Layer(std::make_shared<FlattenBody>(options.name)) {
  note_recipe(*this, FlattenRecipe{std::move(options)});
}

}  // namespace stet::keras

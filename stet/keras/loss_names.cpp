// Losses by name, as compile() and Keras's losses.get() resolve them.
#include <array>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/config.h"
#include "stet/keras/losses.h"

namespace stet::keras {
namespace {

struct NamedLoss {
  std::string_view name, class_name, short_name, short_capitals;
  Loss (*made)();
};
template <class L>
Loss made() {
  return L();
}
using namespace losses;
constexpr NamedLoss named_losses[] = {
    {"mean_squared_error", "MeanSquaredError", "mse", "MSE", made<MeanSquaredError>},
    {"mean_absolute_error", "MeanAbsoluteError", "mae", "MAE", made<MeanAbsoluteError>},
    {"mean_absolute_percentage_error", "MeanAbsolutePercentageError", "mape", "MAPE",
     made<MeanAbsolutePercentageError>},
    {"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError", "msle", "MSLE",
     made<MeanSquaredLogarithmicError>},
    {"log_cosh", "LogCosh", "", "", made<LogCosh>},
    {"huber", "Huber", "", "", made<Huber>},
    {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy", "", "", made<SparseCategoricalCrossentropy>},
    {"categorical_crossentropy", "CategoricalCrossentropy", "", "", made<CategoricalCrossentropy>},
    {"categorical_focal_crossentropy", "CategoricalFocalCrossentropy", "", "", made<CategoricalFocalCrossentropy>},
    {"categorical_generalized_cross_entropy", "CategoricalGeneralizedCrossEntropy", "", "",
     made<CategoricalGeneralizedCrossEntropy>},
    {"binary_crossentropy", "BinaryCrossentropy", "bce", "BCE", made<BinaryCrossentropy>},
    {"binary_focal_crossentropy", "BinaryFocalCrossentropy", "", "", made<BinaryFocalCrossentropy>},
    {"kl_divergence", "KLDivergence", "kld", "KLD", made<KLDivergence>},
    {"poisson", "Poisson", "", "", made<Poisson>},
    {"ctc", "CTC", "", "", made<CTC>},
    {"hinge", "Hinge", "", "", made<Hinge>},
    {"squared_hinge", "SquaredHinge", "", "", made<SquaredHinge>},
    {"categorical_hinge", "CategoricalHinge", "", "", made<CategoricalHinge>},
    {"cosine_similarity", "CosineSimilarity", "", "", made<CosineSimilarity>},
    {"dice", "Dice", "", "", made<Dice>},
    {"tversky", "Tversky", "", "", made<Tversky>},
    {"circle", "Circle", "", "", made<Circle>},
};

}  // namespace

Loss::Loss(const char* given, Where where) {
  const std::string_view wanted = given;
  std::string known;
  for (const NamedLoss& one : named_losses) {
    for (std::string_view name : {one.name, one.class_name, one.short_name, one.short_capitals})
      if (!name.empty() && name == wanted) {
        body_ = one.made().body();
        // As in Keras, what is given by name is written by name.
        static_cast<CustomLoss&>(*body_).set_recipe(std::make_shared<NameRecipe>(given));
        return;
      }
    known += text(known.empty() ? "" : ", ", one.name);
    if (!one.short_name.empty()) known += text(" (", one.short_name, ")");
  }
  throw UserError(
      error_text(text("there is no loss '", wanted, "'"), where, text("one of ", known, "; or a function")));
}

}  // namespace stet::keras

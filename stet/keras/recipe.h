// Recipes: what an object was made from, kept so that it can be saved.
#pragma once
#include <memory>
#include <utility>

#include "stet/base/export.h"

namespace stet::keras {

class Recipe;  // a class of Keras's, and arguments for its constructor
using RecipePointer = std::shared_ptr<const Recipe>;

/// What has a recipe if it is one of Keras's own: made from a lambda or a class of your own, it has none.
class STET_API Recorded {
 public:
  const RecipePointer& recipe() const { return recipe_; }
  void set_recipe(RecipePointer recipe) { recipe_ = std::move(recipe); }

 private:
  RecipePointer recipe_;
};

}  // namespace stet::keras

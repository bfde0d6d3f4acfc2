// Sequential: layers one after the other.
#pragma once
#include <initializer_list>
#include <string>

#include "stet/keras/model.h"

namespace stet::keras {

struct SequentialOptions {
  std::string name = {};
};
/// Each layer gets what the one before gives:
///
///   keras::Sequential model{keras::Input({28, 28}), keras::Flatten(), keras::Dense(10)};
///
/// Starting with an Input it has its weights at once; otherwise its first call makes them.
class STET_API Sequential : public Model {
 public:
  Sequential();
  Sequential(std::initializer_list<Layer> layers, SequentialOptions options = {}, Where where = Where::here());
  /// One more layer at the end. A model that starts with an Input has it from its next call on (steps that were traced
  /// are traced again); without one it is a UserError once the model has been called.
  void add(const Layer& layer, Where where = Where::here()) const;
  STET_HANDLE(Sequential, Model)
};

}  // namespace stet::keras

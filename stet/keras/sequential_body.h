// What stands behind a Sequential. Not a public header.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
#include "stet/keras/sequential.h"

namespace stet::keras {

class SequentialBody : public CustomModel {
 public:
  explicit SequentialBody(std::string name) : CustomModel(std::move(name)) {}

  Tensors call_many(const Tensors& inputs, const Context& context) override;
  void visit_members(MemberVisitor& visitor) override;
  ModelNames names() const override;

  /// As they are now: another thread may add one meanwhile.
  std::vector<Layer> layers() const;
  /// UserError for a layer that does not fit behind the others.
  void add(const Layer& layer, Where where);

 private:
  void check(const Layer& layer, Where where) const;

  mutable Lock guard_;
  std::vector<Layer> layers_;
};

/// With an Input in front all shapes are known: makes the weights.
void build_if_known(SequentialBody& body, Where where);

}  // namespace stet::keras

// Elements through a function, one by one.
#include <utility>

#include "stet/data/stage.h"

namespace stet::data {
namespace {

using ElementFunction = std::function<void(const Tensors&, Tensors&)>;

class MapCursor : public Elements {
 public:
  MapCursor(std::unique_ptr<Elements> upstream, const ElementFunction& function)
      : upstream_(std::move(upstream)), function_(function) {}
  bool next(Tensors& out) override {
    if (!upstream_->next(element_)) return false;
    function_(element_, out);
    return true;
  }

 private:
  std::unique_ptr<Elements> upstream_;
  const ElementFunction& function_;
  Tensors element_;
};

class MapStage : public LaterStage {
 public:
  MapStage(StagePointer before, ElementFunction function)
      : LaterStage(std::move(before)), function_(std::move(function)) {}
  std::unique_ptr<Elements> elements(const Pass& pass) const override {
    return std::make_unique<MapCursor>(upstream->elements(pass), function_);
  }
  std::int64_t count() const override { return upstream->count(); }

 private:
  ElementFunction function_;
};

}  // namespace

StagePointer map_stage(StagePointer upstream, ElementFunction function) {
  return std::make_shared<MapStage>(std::move(upstream), std::move(function));
}

}  // namespace stet::data

// Elements through a function, one by one.
#include <utility>

#include "stet/data/stage.h"

namespace stet::data {
namespace {

using ElementFunction = std::function<void(const Tensors&, Tensors&)>;

class MapCursor : public Elements {
 public:
  MapCursor(std::unique_ptr<Elements> upstream, const ElementFunction& function, const Pass& pass)
      : upstream_(std::move(upstream)), function_(function), draws_(pass) {}
  bool next(Tensors& out) override {
    if (!upstream_->next(element_)) return false;
    RandomStream::Use draws = draws_.next();
    function_(element_, out);
    return true;
  }

 private:
  std::unique_ptr<Elements> upstream_;
  const ElementFunction& function_;
  ElementDraws draws_;
  Tensors element_;
};

class MapStage : public LaterStage {
 public:
  MapStage(StagePointer before, ElementFunction function)
      : LaterStage(std::move(before)), function_(std::move(function)) {}
  std::unique_ptr<Elements> elements(const Pass& pass) const override {
    Pass before = pass;
    ++before.maps;
    return std::make_unique<MapCursor>(upstream->elements(before), function_, pass);
  }
  std::int64_t count() const override { return upstream->count(); }
  bool draws() const override { return true; }  // its function may

 private:
  ElementFunction function_;
};

}  // namespace

StagePointer map_stage(StagePointer upstream, ElementFunction function) {
  return std::make_shared<MapStage>(std::move(upstream), std::move(function));
}

}  // namespace stet::data

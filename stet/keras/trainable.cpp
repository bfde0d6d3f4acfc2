// Which layers are trained: freezing, and what is told of it.
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

std::atomic<std::uint64_t> changes_of_layers{0};

/// Calls what it is given for a layer and everything in it, each once.
class ForEachLayer : public MemberVisitor {
 public:
  explicit ForEachLayer(std::function<void(CustomLayer&)> f) : f_(std::move(f)) {}
  void enter(CustomLayer& layer) {
    if (!seen_.insert(layer.object_id()).second) return;
    f_(layer);
    layer.visit_members(*this);
  }

 private:
  void visit(const std::string&, const Layer& layer) override {
    if (layer.defined()) enter(static_cast<CustomLayer&>(*layer.body()));
  }
  void visit(const std::string&, const Variable&) override {}
  void visit(const std::string&, const Metric&) override {}
  const std::function<void(CustomLayer&)> f_;
  std::set<std::uint64_t> seen_;
};

bool frozen_with_all(CustomLayer& layer) {
  bool frozen = true;
  ForEachLayer([&](CustomLayer& one) { frozen = frozen && !one.trainable(); }).enter(layer);
  return frozen;
}

class FrozenMembers : public MemberVisitor {
 public:
  std::vector<std::string> paths;
  void enter(CustomLayer& layer, const std::string& path) {
    if (!seen_.insert(layer.object_id()).second) return;
    if (!layer.trainable()) {
      paths.push_back(path);
      if (frozen_with_all(layer)) return;
    }
    const std::string outer = std::exchange(path_, path);
    layer.visit_members(*this);
    path_ = outer;
  }

 private:
  void visit(const std::string& name, const Layer& layer) override {
    if (layer.defined()) enter(static_cast<CustomLayer&>(*layer.body()), path_.empty() ? name : text(path_, "/", name));
  }
  void visit(const std::string&, const Variable&) override {}
  void visit(const std::string&, const Metric&) override {}
  std::string path_;
  std::set<std::uint64_t> seen_;
};

}  // namespace

std::uint64_t layer_changes() { return changes_of_layers.load(std::memory_order_acquire); }
void note_layer_change(CustomLayer& layer) {
  layer.note_change();
  std::set<const LayerState*> seen{&layer.state()};
  std::vector<std::shared_ptr<LayerState>> todo{layer.shared_state()};
  while (!todo.empty()) {
    std::vector<std::shared_ptr<LayerState>> parents;
    {
      std::lock_guard lock(todo.back()->guard);
      for (const auto& [id, parent] : todo.back()->parents)
        if (std::shared_ptr<LayerState> alive = parent.lock()) parents.push_back(std::move(alive));
    }
    todo.pop_back();
    for (const std::shared_ptr<LayerState>& parent : parents) {
      if (!seen.insert(parent.get()).second) continue;
      {
        std::lock_guard lock(parent->guard);
        if (parent->body) parent->body->note_change();
      }
      todo.push_back(parent);
    }
  }
  changes_of_layers.fetch_add(1, std::memory_order_acq_rel);
}

void note_new_table(CustomLayer& layer) {
  layer.state().tables.fetch_add(1, std::memory_order_acq_rel);
  note_layer_change(layer);
}

void note_parent(CustomLayer& layer, CustomLayer& parent) {
  std::lock_guard lock(layer.state().guard);
  auto& parents = layer.state().parents;
  if (parents.contains(parent.object_id())) return;
  std::erase_if(parents, [](const auto& known) { return known.second.expired(); });
  parents.emplace(parent.object_id(), parent.shared_state());
}

bool CustomLayer::trainable() const { return state_->trainable.load(std::memory_order_acquire); }
void CustomLayer::set_trainable(bool trainable) {
  ForEachLayer([&](CustomLayer& layer) {
    if (layer.state().trainable.exchange(trainable) != trainable) note_layer_change(layer);
  }).enter(*this);
}

std::vector<std::string> frozen_members(CustomLayer& layer) {
  FrozenMembers all;
  all.enter(layer, "");
  return all.paths;
}

void tell_all_frozen(CustomLayer& layer, Where where) {
  if (inventory(layer).weights.empty()) return;
  warn("keras", text("stet: ", layer.description(), " has no weights to train: all of them are frozen",
                     at_line(where, ", at "), "\n  fix: set_trainable(true) on the layers that are to learn\n"));
}

bool Layer::trainable(Where where) const { return layer_body("trainable", where).trainable(); }
void Layer::set_trainable(bool trainable, Where where) const {
  layer_body("set_trainable", where).set_trainable(trainable);
}

}  // namespace stet::keras

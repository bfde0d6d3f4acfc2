#include "stet/core/hit.h"

#include <array>
#include <atomic>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/thread_end.h"
#include "stet/core/tensor_node.h"

namespace stet {
namespace {

std::atomic<std::uint64_t> current_epoch{1};
std::atomic<std::uint64_t> last_function{0};

constexpr std::size_t sets = 16, ways = 4;
struct Slots {
  std::array<std::array<HitSlot, ways>, sets> of;
  std::uint32_t clock = 0;
  std::uint64_t swept = 0;  // the epoch at which the slots of older ones were emptied
};

// A plain pointer costs one load.
[[gnu::tls_model("initial-exec")]] constinit thread_local Slots* slots = nullptr;

Slots& slots_of_this_thread() { return slots ? *slots : make_for_this_thread(slots); }

/// Traces that were dropped must not live on in slots that nobody looks at. Their destructors may run user's code,
/// which may come here again.
void empty_stale(Slots& all, std::uint64_t epoch) {
  if (all.swept == epoch) return;
  all.swept = epoch;
  for (auto& set : all.of)
    for (HitSlot& slot : set)
      if (slot.function != 0 && slot.epoch != epoch) HitSlot gone = std::exchange(slot, HitSlot());
}

std::uint64_t word_of(const TensorNode& node) {
  return reinterpret_cast<std::uint64_t>(node.device()) << 17 | std::uint64_t{node.weak} << 16 |
         static_cast<std::uint64_t>(node.dtype) << 8 | static_cast<std::uint64_t>(node.rank);
}

/// The word of an undefined one, which knows whether it is a gradient that does not exist.
std::uint64_t no_tensor(const Tensor& tensor) { return UINT64_MAX - tensor.is_no_gradient(); }

bool matches(const HitSlot& slot, const LeafViews& leaves) {
  if (slot.leaf_count != leaves.size()) return false;
  std::size_t next = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const LeafView& leaf = leaves[i];
    if (!leaf.tensor) {
      if (slot.leaves[i] != leaf.bits) return false;
      continue;
    }
    const TensorNode* node = leaf.tensor->node();
    if (!node && slot.leaves[i] == no_tensor(*leaf.tensor)) continue;
    if (!node || node->traced || !node->dense || slot.leaves[i] != word_of(*node)) return false;
    for (int axis = 0; axis < node->rank; ++axis)
      if (slot.sizes[next++] != node->sizes[axis]) return false;
  }
  return true;
}

}  // namespace

std::uint64_t next_function_id() { return ++last_function; }

HitSlot* find_hit(std::uint64_t function, const LeafViews& leaves) {
  if (!slots || !leaves.complete()) return nullptr;
  std::uint64_t epoch = current_epoch.load(std::memory_order_acquire);
  for (HitSlot& slot : slots->of[function % sets]) {
    if (slot.function != function) continue;
    if (slot.epoch != epoch) continue;
    if (!matches(slot, leaves)) continue;
    slot.last_use = ++slots->clock;
    return &slot;
  }
  return nullptr;
}

std::uint64_t hit_epoch() { return current_epoch.load(std::memory_order_acquire); }

void remember_hit(std::uint64_t function, std::uint64_t epoch, const Leaves& leaves, std::shared_ptr<Entry> entry,
                  std::shared_ptr<const BoundProgram> bound) {
  if (leaves.size() > LeafViews::most) return;
  empty_stale(slots_of_this_thread(), current_epoch.load(std::memory_order_acquire));
  Slots& all = slots_of_this_thread();
  HitSlot* oldest = nullptr;
  for (HitSlot& slot : all.of[function % sets])
    if (!oldest || slot.last_use < oldest->last_use) oldest = &slot;
  HitSlot made;
  std::size_t next = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const bool is_input = leaves[i].kind == Leaf::size || (leaves[i].kind == Leaf::tensor && leaves[i].value.defined());
    made.inputs |= static_cast<std::uint32_t>(is_input) << i;
    if (leaves[i].kind != Leaf::tensor) {
      made.leaves[i] = leaves[i].kind == Leaf::variable ? leaves[i].state.id()
                       : leaves[i].kind == Leaf::size   ? static_cast<std::uint64_t>(leaves[i].length.constant())
                                                        : leaves[i].bits;
      continue;
    }
    if (!leaves[i].value.defined()) {
      made.leaves[i] = no_tensor(leaves[i].value);
      continue;
    }
    const TensorNode& node = *leaves[i].value.node();
    made.leaves[i] = word_of(node);
    if (next + node.rank > HitSlot::most_sizes) return;
    for (int axis = 0; axis < node.rank; ++axis) made.sizes[next++] = node.sizes[axis];
  }
  made.function = function;
  made.epoch = epoch;
  made.entry = std::move(entry);
  made.bound = std::move(bound);
  made.leaf_count = static_cast<std::uint32_t>(leaves.size());
  made.last_use = ++all.clock;
  std::swap(*oldest, made);
}

void forget_hits() {
  std::uint64_t now = current_epoch.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (slots) empty_stale(*slots, now);
}

}  // namespace stet

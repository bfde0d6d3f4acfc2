// The shortest way of a call: each thread keeps the last calls it served, with everything that was decided for them. A
// call that looks the same is served from there: no lock, no map, no copy of the arguments. Private to core/.
#pragma once
#include <cstdint>
#include <memory>

#include "stet/base/inside.h"
#include "stet/core/function_entry.h"

namespace stet {

/// A call that was served. It keeps its trace alive until the slot is used for another call or forgotten.
struct HitSlot {
  std::uint64_t function = 0;
  std::uint64_t epoch = 0;
  std::shared_ptr<Entry> entry;
  std::shared_ptr<const BoundProgram> bound;
  std::uint32_t leaf_count = 0;
  std::uint32_t last_use = 0;
  std::uint32_t inputs = 0;  // by leaf, a bit: it is an input of the program (a tensor that is defined, or a size)
  static_assert(LeafViews::most <= 32);
  /// Of a tensor dtype and rank, of any other leaf its bits; then the sizes of all tensors, one after the other.
  std::uint64_t leaves[LeafViews::most];
  static constexpr std::size_t most_sizes = 32;
  std::int64_t sizes[most_sizes];
};

/// Numbers that are never used again.
std::uint64_t next_function_id();
/// The slot for a call that looks like this one; null when there is none. Of tensors: dense, and not traced.
HitSlot* find_hit(std::uint64_t function, const LeafViews& leaves);
/// Counts until something is forgotten.
std::uint64_t hit_epoch();
/// `epoch` is that of before the entry was looked up.
void remember_hit(std::uint64_t function, std::uint64_t epoch, const Leaves& leaves, std::shared_ptr<Entry> entry,
                  std::shared_ptr<const BoundProgram> bound);
/// All slots of all threads stop counting: a trace was dropped. This thread's are emptied now, another's when it next
/// remembers a call. Not to be called with a lock held: traces may end here, and with them what they captured.
void forget_hits();

}  // namespace stet

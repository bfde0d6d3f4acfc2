#include "stet/core/kept_tensors.h"

#include "stet/base/thread_end.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

struct OfThread {
  struct Kept {
    const Trace* trace;  // that ran; null: none
    KeptTensor one;
  };
  std::vector<Kept> all;
};
constinit thread_local OfThread* this_thread_kept = nullptr;
OfThread& of_thread() { return this_thread_kept ? *this_thread_kept : make_for_this_thread(this_thread_kept); }

/// A later trace may stand where an earlier one stood: its values tell them apart.
bool belongs_to(const OfThread::Kept& kept, const Trace* trace) {
  if (kept.trace != trace) return false;
  const TensorNode& node = *kept.one.tensor.node();
  return !node.traced || node.traced->life->trace == trace;
}

}  // namespace

void keep_tensors(std::uint64_t owner, const std::vector<KeptTensor>& tensors) {
  if (tensors.empty() && !this_thread_kept) return;
  const Trace* trace = current_trace();
  std::vector<OfThread::Kept>& all = of_thread().all;
  std::erase_if(all, [&](const OfThread::Kept& kept) { return kept.one.owner == owner || !belongs_to(kept, trace); });
  for (const KeptTensor& one : tensors) all.push_back({trace, one});
}

const Trace* keeping_trace() { return current_trace(); }

std::vector<KeptTensor> kept_tensors() {
  std::vector<KeptTensor> out;
  if (!this_thread_kept) return out;
  for (const OfThread::Kept& kept : of_thread().all)
    if (belongs_to(kept, current_trace())) out.push_back(kept.one);
  return out;
}

void forget_kept_of(const Trace& trace) {
  if (!this_thread_kept) return;
  std::erase_if(of_thread().all, [&](const OfThread::Kept& kept) {
    const TensorNode& node = *kept.one.tensor.node();
    return kept.trace == &trace || (node.traced && !node.traced->life->trace);
  });
}

}  // namespace stet

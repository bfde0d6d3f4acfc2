#include "stet/ir/kernel.h"

#include <map>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/ir/kernel_text.h"

namespace stet {
namespace {

void for_each_dim(const Kernel& kernel, const std::function<void(const Dim&)>& f) {
  for (const Loop& loop : kernel.loops) f(loop.extent);
  for (const Access& access : kernel.operands) for_each_dim(access, f);
  for (const Access& access : kernel.epilogue_operands) for_each_dim(access, f);
  for (const Access* result : kernel.results()) for_each_dim(*result, f);
}

}  // namespace

std::vector<Expr> Kernel::bodies() const {
  std::vector<Expr> out{body};
  for (const FurtherResult& one : further) out.push_back(one.body);
  return out;
}

std::vector<const Access*> Kernel::results() const {
  std::vector<const Access*> out{&result};
  for (const FurtherResult& one : further) out.push_back(&one.to);
  return out;
}

std::vector<Dim> Kernel::numbers() const {
  NumberList out;
  for_each_dim(*this, [&](const Dim& dim) { out.add(dim); });
  return out.numbers;
}

std::string Kernel::key() const {
  KeyWriter write;
  std::string out = "loops";
  for (const Loop& loop : loops) out += text(" ", loop.reduced ? "r" : "k", write.dim(loop.extent));
  for (const Access& access : operands) out += text("; in ", write.access(access));
  out += text("; body ", body.str(true), "; ", stet::name(combine));
  for (const Access& access : epilogue_operands) out += text("; end ", write.access(access));
  if (epilogue.defined()) out += text("; epilogue ", epilogue.str(true));
  out += text("; out ", write.access(result), accumulate ? " accumulate" : "");
  for (const FurtherResult& one : further) out += text("; body ", one.body.str(true), "; out ", write.access(one.to));
  out += text("; buffers ", buffer_count);
  return out;
}

std::string Kernel::str() const {
  auto access = [](const Access& a) { return access_text(a); };
  std::string out = text("kernel ", name, "\n");
  for (std::size_t i = 0; i < loops.size(); ++i)
    out += text("  i", i, " < ", loops[i].extent, loops[i].reduced ? "  (reduced)" : "", "\n");
  for (std::size_t i = 0; i < operands.size(); ++i) out += text("  x", i, " = ", access(operands[i]), "\n");
  out += text("  value = ", body.str(), "\n");
  if (has_reduction()) out += text("  combined by ", stet::name(combine), "\n");
  for (std::size_t i = 0; i < epilogue_operands.size(); ++i)
    out += text("  e", i + 1, " = ", access(epilogue_operands[i]), "\n");
  if (epilogue.defined()) out += text("  stored = ", epilogue.str(), "  (x0 is the combined value)\n");
  out += text("  to ", access(result), accumulate ? ", added" : "", "\n");
  for (const FurtherResult& one : further) out += text("  value = ", one.body.str(), "\n  to ", access(one.to), "\n");
  return out;
}

namespace {

std::vector<Access*> accesses(Kernel& kernel) {
  std::vector<Access*> out;
  for (Access& access : kernel.operands) out.push_back(&access);
  for (Access& access : kernel.epilogue_operands) out.push_back(&access);
  out.push_back(&kernel.result);
  for (FurtherResult& one : kernel.further) out.push_back(&one.to);
  return out;
}

/// Loops `at` and `at + 1` can be one: every affine map walks the outer one as a continuation of the inner one.
bool mergeable(Kernel& kernel, std::size_t at, const std::vector<bool>& index_used) {
  const Loop &outer = kernel.loops[at], &inner = kernel.loops[at + 1];
  if (outer.reduced != inner.reduced || index_used[at] || index_used[at + 1]) return false;
  auto continues = [&](const Affine& a) { return identical(a.strides[at], a.strides[at + 1] * inner.extent); };
  for (Access* access : accesses(kernel)) {
    if (access->source == Access::memory && !continues(access->address)) return false;
    for (const Guard& guard : access->guards)
      if (!continues(guard.position)) return false;
  }
  return true;
}

void erase_loop(Kernel& kernel, std::size_t at) {
  kernel.loops.erase(kernel.loops.begin() + static_cast<std::ptrdiff_t>(at));
  auto erase = [&](Affine& a) {
    if (!a.strides.empty()) a.strides.erase(a.strides.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (Access* access : accesses(kernel)) {
    erase(access->address);
    for (Guard& guard : access->guards) erase(guard.position);
  }
}

/// Which loops the expressions ask the index of; those stay as they are.
std::vector<bool> used_indices(const Kernel& kernel) {
  std::vector<bool> used(kernel.loops.size(), false);
  std::vector<Expr> exprs = kernel.bodies();
  if (kernel.epilogue.defined()) exprs.push_back(kernel.epilogue);
  for (Expr e : exprs)
    for (Expr part : topological(e))
      if (part.is(Primitive::index)) used[static_cast<std::size_t>(part->number)] = true;
  if (kernel.combine == Combine::argmax || kernel.combine == Combine::argmin)
    for (std::size_t i = 0; i < used.size(); ++i)
      if (kernel.loops[i].reduced) used[i] = true;  // the result is this loop's index
  return used;
}

void renumber_after_erase(Kernel& kernel, std::size_t erased, std::size_t before) {
  std::vector<int> loops;
  for (std::size_t i = 0; i < before; ++i) loops.push_back(static_cast<int>(i > erased ? i - 1 : i));
  kernel.body = renumber_loops(kernel.body, loops);
  for (FurtherResult& one : kernel.further) one.body = renumber_loops(one.body, loops);
  if (kernel.epilogue.defined()) kernel.epilogue = renumber_loops(kernel.epilogue, loops);
}

}  // namespace

Kernel collapse_loops(const Kernel& given) {
  Kernel kernel = given;
  for (std::size_t at = 0; at < kernel.loops.size();) {
    std::vector<bool> used = used_indices(kernel);
    const Loop& loop = kernel.loops[at];
    bool unit = loop.extent.is_constant() && loop.extent.constant() == 1;
    if (unit && !used[at] && kernel.loops.size() > 1) {
      // A reduction keeps at least one reduced loop, so that its combine has something to run over.
      int reduced = 0;
      for (const Loop& l : kernel.loops) reduced += l.reduced;
      if (!loop.reduced || reduced > 1) {
        std::size_t before = kernel.loops.size();
        erase_loop(kernel, at);
        renumber_after_erase(kernel, at, before);
        at = at > 0 ? at - 1 : 0;
        continue;
      }
    }
    if (at + 1 < kernel.loops.size() && mergeable(kernel, at, used)) {
      kernel.loops[at + 1].extent = kernel.loops[at].extent * kernel.loops[at + 1].extent;
      std::size_t before = kernel.loops.size();
      erase_loop(kernel, at);
      renumber_after_erase(kernel, at, before);
      at = at > 0 ? at - 1 : 0;
      continue;
    }
    ++at;
  }
  return kernel;
}

namespace {

using Ensure = std::function<void(bool condition, const char* rule)>;

void verify_accesses(const Kernel& kernel, const Ensure& ensure) {
  auto check = [&](const Access& access, std::size_t operands_before) {
    if (access.source == Access::number) return;
    ensure(access.address.strides.size() == kernel.loops.size(), "an access has a stride per loop");
    ensure(access.buffer >= 0 && access.buffer < kernel.buffer_count, "an access is to one of the buffers");
    for (const Guard& guard : access.guards)
      ensure(guard.position.strides.size() == kernel.loops.size(), "a guard has a stride per loop");
    for (const Indirection& indirection : access.indirections) {
      // Earlier, so that indices are there when they are needed, and never go round in a circle.
      ensure(indirection.operand >= 0 && static_cast<std::size_t>(indirection.operand) < operands_before,
             "an indirection is through an earlier operand");
      ensure(is_integer(kernel.operands[static_cast<std::size_t>(indirection.operand)].dtype),
             "an indirection is through integers");
    }
  };
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) check(kernel.operands[i], i);
  for (const Access& access : kernel.epilogue_operands) {
    check(access, 0);
    ensure(access.guards.empty() && access.indirections.empty(), "an epilogue operand is read as it is");
  }
  for (const Access* result : kernel.results()) {
    ensure(result->source == Access::memory, "the result is in memory");
    check(*result, kernel.operands.size());
    ensure(result->guards.empty(), "a result has no guards");
  }
}

/// Types of operands, loops that exist.
void verify_leaves(const Kernel& kernel, const Ensure& ensure) {
  for (Expr body : kernel.bodies()) {
    ensure(body.operand_count() <= static_cast<int>(kernel.operands.size()), "the body's operands exist");
    for (Expr part : topological(body)) {
      if (part.is(Primitive::operand))
        ensure(part.dtype() == kernel.operands[static_cast<std::size_t>(part->number)].dtype,
               "an operand has its access's type");
      if (part.is(Primitive::index))
        ensure(part->number >= 0 && part->number < static_cast<int>(kernel.loops.size()), "a loop index is of a loop");
    }
  }
  if (!kernel.epilogue.defined()) return;
  ensure(kernel.has_reduction(), "an epilogue follows a reduction");
  ensure(kernel.epilogue.operand_count() <= static_cast<int>(kernel.epilogue_operands.size()) + 1,
         "the epilogue's operands exist");
  for (Expr part : topological(kernel.epilogue)) {
    ensure(!part.is(Primitive::index), "an epilogue has no loop index");
    if (part.is(Primitive::operand) && part->number > 0)
      ensure(part.dtype() == kernel.epilogue_operands[static_cast<std::size_t>(part->number) - 1].dtype,
             "an operand has its access's type");
  }
}

void verify_reduction(const Kernel& kernel, const Ensure& ensure) {
  int reduced = 0;
  for (const Loop& loop : kernel.loops) reduced += loop.reduced;
  ensure((reduced > 0) == kernel.has_reduction(), "reduced loops and a combine go together");
  for (std::size_t i = 0; i < kernel.loops.size(); ++i) {
    const Dim& stride = kernel.result.address.strides[i];
    if (kernel.loops[i].reduced)
      ensure(stride.is_constant() && stride.constant() == 0, "the result does not move along reduced loops");
  }
  if (!kernel.has_reduction()) return;
  ensure(kernel.result.indirections.empty(), "a reduction stores at a fixed place");
  ensure(compute_type(kernel.body.dtype()) == kernel.body.dtype(), "an accumulator is not f16 or bf16");
  bool position = kernel.combine == Combine::argmax || kernel.combine == Combine::argmin;
  ensure(!position || reduced == 1, "a position is along one loop");
  ensure(!position || kernel.epilogue.defined() || kernel.result.dtype == DType::i64, "a position is an i64");
}

void verify_further(const Kernel& kernel, const Ensure& ensure) {
  if (kernel.further.empty()) return;
  ensure(!kernel.has_reduction() && !kernel.accumulate, "only a map has further results");
  std::vector<const Access*> results = kernel.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    ensure(results[i]->indirections.empty(), "several results are stored at fixed places");
    for (std::size_t k = 0; k < i; ++k) ensure(results[i]->buffer != results[k]->buffer, "results are apart");
  }
  for (const FurtherResult& one : kernel.further)
    ensure(one.body.dtype() == one.to.dtype, "the stored value has the result's type");
}

/// Adding to memory is done for a whole vector at a time, at places that lie side by side.
void verify_accumulate(const Kernel& kernel, const Ensure& ensure) {
  if (!kernel.accumulate) return;
  ensure(!kernel.has_reduction(), "only a map adds to memory");
  const Dim& stride = kernel.result.address.strides.back();
  ensure(stride.is_constant() && stride.constant() == 1, "what adds to memory has lanes side by side");
}

/// The emitter moves a result by values that are the same for all lanes only.
void verify_result_indirections(const Kernel& kernel, const Ensure& ensure) {
  for (const Indirection& indirection : kernel.result.indirections) {
    const Access& through = kernel.operands[static_cast<std::size_t>(indirection.operand)];
    if (through.source == Access::number) continue;
    const Dim& stride = through.address.strides.back();
    bool still = stride.is_constant() && stride.constant() == 0 && through.indirections.empty();
    for (const Guard& guard : through.guards) {
      const Dim& moves = guard.position.strides.back();
      still &= moves.is_constant() && moves.constant() == 0;
    }
    ensure(still, "a result's indirection stands still along the last loop");
  }
}

}  // namespace

void verify(const Kernel& kernel) {
  Ensure ensure = [&](bool condition, const char* rule) {
    if (!condition) throw InternalError(text("kernel breaks the rule: ", rule, "\n", kernel.str()));
  };
  if (!kernel.body.defined()) throw InternalError(text("kernel breaks the rule: it has a body\nkernel ", kernel.name));
  for (Expr body : kernel.bodies()) verify(body);
  ensure(!kernel.loops.empty(), "it has a loop");
  verify_accesses(kernel, ensure);
  verify_leaves(kernel, ensure);
  verify_reduction(kernel, ensure);
  verify_accumulate(kernel, ensure);
  verify_further(kernel, ensure);
  verify_result_indirections(kernel, ensure);
  Expr stored = kernel.epilogue.defined() ? kernel.epilogue : kernel.body;
  bool position = kernel.combine == Combine::argmax || kernel.combine == Combine::argmin;
  if (!position || kernel.epilogue.defined())
    ensure(stored.dtype() == kernel.result.dtype, "the stored value has the result's type");
}

}  // namespace stet

#include "stet/ir/row_kernel.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/ir/kernel_text.h"

namespace stet {
namespace {

bool is_position(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

std::vector<Access*> accesses_of(RowKernel& kernel) {
  std::vector<Access*> out;
  for (const Access* access : kernel.accesses()) out.push_back(const_cast<Access*>(access));
  return out;
}

void for_each_dim(const RowKernel& kernel, const std::function<void(const Dim&)>& f) {
  for (const Dim& extent : kernel.outer) f(extent);
  f(kernel.length);
  for (const Access* access : kernel.accesses()) for_each_dim(*access, f);
}

void renumber(RowKernel& kernel, const std::vector<int>& loops) {
  for (RowKernel::Stage& stage : kernel.stages) {
    for (RowKernel::Scalar& one : stage.scalars) one.value = renumber_loops(one.value, loops);
    for (RowKernel::Reduction& one : stage.reductions) one.body = renumber_loops(one.body, loops);
    for (RowKernel::Line& one : stage.lines) one.value = renumber_loops(one.value, loops);
  }
}

/// Loop `at` is gone; the one after it walks what both did, or it had one turn.
void erase_loop(RowKernel& kernel, std::size_t at) {
  std::vector<int> loops;
  for (std::size_t i = 0; i <= kernel.outer.size(); ++i) loops.push_back(static_cast<int>(i > at ? i - 1 : i));
  renumber(kernel, loops);
  kernel.outer.erase(kernel.outer.begin() + static_cast<std::ptrdiff_t>(at));
  for (Access* access : accesses_of(kernel))
    if (access->source == Access::memory)
      access->address.strides.erase(access->address.strides.begin() + static_cast<std::ptrdiff_t>(at));
}

std::vector<bool> used_indices(const RowKernel& kernel) {
  std::vector<bool> used(kernel.outer.size() + 1, false);
  for (Expr body : kernel.bodies())
    for (Expr part : topological(body))
      if (part.is(Primitive::index)) used[static_cast<std::size_t>(part->number)] = true;
  return used;
}

}  // namespace

DType RowKernel::Reduction::dtype() const { return is_position(combine) ? DType::i64 : body.dtype(); }

int RowKernel::first_value(std::size_t stage) const {
  std::size_t out = operands.size();
  for (std::size_t s = 0; s < stage; ++s) out += stages[s].scalars.size() + stages[s].reductions.size();
  return static_cast<int>(out);
}

bool RowKernel::moves(const Access& access) {
  return access.source == Access::memory && !access.address.strides.back().is_constant(0);
}

std::vector<const Access*> RowKernel::accesses() const {
  std::vector<const Access*> out;
  for (const Access& access : operands) out.push_back(&access);
  for (const Stage& stage : stages) {
    for (const Scalar& one : stage.scalars)
      if (one.to) out.push_back(&*one.to);
    for (const Line& one : stage.lines) out.push_back(&one.to);
  }
  return out;
}

std::vector<Expr> RowKernel::bodies() const {
  std::vector<Expr> out;
  for (const Stage& stage : stages) {
    for (const Scalar& one : stage.scalars) out.push_back(one.value);
    for (const Reduction& one : stage.reductions) out.push_back(one.body);
    for (const Line& one : stage.lines) out.push_back(one.value);
  }
  return out;
}

std::vector<Dim> RowKernel::numbers() const {
  NumberList out;
  for_each_dim(*this, [&](const Dim& dim) { out.add(dim); });
  return out.numbers;
}

std::string RowKernel::key() const {
  KeyWriter write;
  std::string out = "rows";
  for (const Dim& extent : outer) out += text(" k", write.dim(extent));
  out += text(" r", write.dim(length));
  for (const Access& access : operands) out += text("; in ", write.access(access));
  for (const Stage& stage : stages) {
    out += "; stage";
    for (const Scalar& one : stage.scalars) {
      out += text("; once ", one.value.str(true));
      if (one.to) out += text(" to ", write.access(*one.to));
    }
    for (const Reduction& one : stage.reductions) out += text("; ", stet::name(one.combine), " ", one.body.str(true));
    for (const Line& one : stage.lines) out += text("; line ", one.value.str(true), " to ", write.access(one.to));
  }
  out += text("; scratch ");
  for (DType dtype : scratch) out += text(dtype, ",");
  return out + text(" buffers ", buffer_count);
}

std::string RowKernel::str() const {
  std::string out = text("rows ", name, "\n");
  for (std::size_t i = 0; i < outer.size(); ++i) out += text("  i", i, " < ", outer[i], "\n");
  out += text("  i", outer.size(), " < ", length, "  (the row)\n");
  for (std::size_t i = 0; i < operands.size(); ++i) out += text("  x", i, " = ", access_text(operands[i]), "\n");
  for (std::size_t s = 0; s < stages.size(); ++s) {
    out += text("  stage ", s, "\n");
    int number = first_value(s);
    for (const Scalar& one : stages[s].scalars) {
      out += text("    x", number++, " = ", one.value.str());
      out += one.to ? text(", to ", access_text(*one.to), "\n") : "\n";
    }
    for (const Reduction& one : stages[s].reductions)
      out += text("    x", number++, " = ", stet::name(one.combine), " of ", one.body.str(), "\n");
    for (const Line& one : stages[s].lines) out += text("    ", one.value.str(), " to ", access_text(one.to), "\n");
  }
  return out;
}

RowKernel collapse_loops(const RowKernel& given) {
  RowKernel kernel = given;
  std::vector<bool> used = used_indices(kernel);
  auto continues = [&](std::size_t at) {
    if (used[at] || used[at + 1]) return false;
    for (const Access* access : kernel.accesses())
      if (access->source == Access::memory &&
          !identical(access->address.strides[at], access->address.strides[at + 1] * kernel.outer[at + 1]))
        return false;
    return true;
  };
  for (std::size_t at = 0; at < kernel.outer.size() && kernel.outer.size() > 1;) {
    bool next = at + 1 < kernel.outer.size() && continues(at);
    if (next) kernel.outer[at + 1] = kernel.outer[at] * kernel.outer[at + 1];
    if (next || (kernel.outer[at].is_constant(1) && !used[at])) {
      erase_loop(kernel, at);
      used = used_indices(kernel);
      at = at > 0 ? at - 1 : 0;
    } else {
      ++at;
    }
  }
  return kernel;
}

void verify(const RowKernel& kernel) {
  auto ensure = [&](bool condition, const char* rule) {
    if (!condition) throw InternalError(text("rows break the rule: ", rule, "\n", kernel.str()));
  };
  ensure(!kernel.outer.empty(), "there is a loop over rows");
  ensure(!kernel.stages.empty(), "there is a stage");
  for (const Access* access : kernel.accesses()) {
    if (access->source == Access::number) continue;
    ensure(access->address.strides.size() == kernel.outer.size() + 1, "an access has a stride per loop");
    ensure(access->buffer >= 0 && access->buffer < kernel.buffer_count, "an access is to one of the buffers");
    ensure(access->guards.empty() && access->indirections.empty(), "an access is plain");
  }
  // By number: the types of values, and whether they are the same all along a row.
  std::vector<DType> types;
  std::vector<bool> moving;
  for (const Access& access : kernel.operands) {
    types.push_back(access.dtype);
    moving.push_back(RowKernel::moves(access));
  }
  auto check = [&](Expr body, bool once) {
    ensure(body.defined(), "a value has an expression");
    verify(body);
    for (Expr part : topological(body)) {
      if (part.is(Primitive::operand)) {
        auto number = static_cast<std::size_t>(part->number);
        ensure(number < types.size(), "a value is used after it is made");
        ensure(part.dtype() == types[number], "an operand has its value's type");
        ensure(!once || !moving[number], "a scalar is made of what stands still along the row");
      }
      if (part.is(Primitive::index))
        ensure(part->number >= 0 && static_cast<std::size_t>(part->number) < kernel.outer.size() + (once ? 0 : 1),
               "a loop index is of a loop");
    }
  };
  std::vector<int> stored;
  auto stores = [&](const Access& to) {
    ensure(to.source == Access::memory, "a result is in memory");
    stored.push_back(to.buffer);
  };
  for (const RowKernel::Stage& stage : kernel.stages) {
    for (const RowKernel::Scalar& one : stage.scalars) {
      check(one.value, true);
      if (one.to) {
        stores(*one.to);
        ensure(one.to->dtype == one.value.dtype(), "the stored value has the result's type");
        ensure(!RowKernel::moves(*one.to), "a scalar is stored once in a row");
      }
      types.push_back(one.value.dtype());
      moving.push_back(false);
    }
    for (const RowKernel::Reduction& one : stage.reductions) {
      ensure(one.combine != Combine::none, "a reduction combines");
      check(one.body, false);
      ensure(compute_type(one.body.dtype()) == one.body.dtype(), "an accumulator is not f16 or bf16");
    }
    for (const RowKernel::Line& one : stage.lines) {
      check(one.value, false);
      stores(one.to);
      ensure(one.to.dtype == one.value.dtype(), "the stored value has the result's type");
      ensure(one.to.address.strides.back().is_constant(1), "a line is stored side by side");
    }
    for (const RowKernel::Reduction& one : stage.reductions) {
      types.push_back(one.dtype());
      moving.push_back(false);
    }
  }
  for (std::size_t i = 0; i < kernel.scratch.size(); ++i)
    ensure(std::find(stored.begin(), stored.end(), kernel.first_scratch() + static_cast<int>(i)) != stored.end(),
           "scratch is written");
}

}  // namespace stet

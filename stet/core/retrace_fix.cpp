#include "stet/core/retrace_fix.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/core/unrolled.h"

namespace stet {
namespace {

// --- dtypes

/// Whether values of `from` may not be values of `to`.
bool loses(DType from, DType to) {
  if (from == to || from == DType::bool_) return false;
  if (to == DType::bool_ || (is_floating(from) && !is_floating(to))) return true;
  if (!is_floating(from) && is_floating(to)) return size_of(from) >= size_of(to);
  return promote(from, to) != to;
}

/// The type that all calls should come in: the floating one beside integers, the wider integer, and of two floating
/// types the one that the traces served most calls with.
DType common_type(std::size_t number, DType traced, DType now, std::span<const CallRecord> earlier) {
  if (is_floating(traced) != is_floating(now)) return is_floating(traced) ? traced : now;
  if (!is_floating(now)) return promote(traced, now);
  std::map<DType, std::uint64_t> calls;
  for (const CallRecord& record : earlier)
    if (number < record.key.size() && record.key[number].kind == Leaf::tensor && is_floating(record.key[number].dtype))
      if (std::shared_ptr<const Entry> trace = record.trace.lock())
        calls[record.key[number].dtype] += 1 + trace->calls.load(std::memory_order_relaxed);
  return calls[now] > calls[traced] ? now : traced;
}

std::string inexactly(DType from, DType to) {
  if (!loses(from, to)) return "";
  return text(is_floating(to) ? ", which rounds " : ", which cuts off fractions of ", from);
}

/// "x", "the elements of list": what code would cast.
std::string cast_text(const MissedCall& call, std::size_t number, DType to) {
  const std::string& part = call.leaves[number].path;
  std::size_t element = part.find('[');
  if (element == std::string::npos)
    return text("cast(", call.arguments.in(call.owners[number], part), ", ", to, ") before the call");
  return text("cast the elements of ", call.arguments.in(call.owners[number], part.substr(0, element)), " to ", to,
              " before the call");
}

Fix fix_of_dtype(const MissedCall& call, std::size_t number, DType traced, std::span<const CallRecord> earlier) {
  DType now = call.key[number].dtype;
  DType to = common_type(number, traced, now, earlier);
  Fix fix;
  fix.change = [=](CallRecord& record) {
    if (number < record.key.size() && record.key[number].kind == Leaf::tensor) record.key[number].dtype = to;
  };
  if (call.key[number].bits) {  // a number that takes the type of what it meets
    fix.text = text(is_floating(traced) == is_floating(now) ? "pass numbers of one C++ type as "
                                                            : "pass integers or reals, not both, as ",
                    call.arguments.in(call.owners[number], call.leaves[number].path));
    return fix;
  }
  DType other = to == now ? traced : now;
  fix.text = text(cast_text(call, number, to), inexactly(other, to));
  return fix;
}

// --- C++ numbers

Fix fix_of_number(const MissedCall& call, std::size_t number) {
  const Leaf& leaf = call.leaves[number];
  std::string name = call.arguments.in(call.owners[number], leaf.path);
  if (leaf.dtype == DType::bool_) return {"none is needed: a bool makes two traces at most", {}, true};
  Fix fix;
  fix.change = [=](CallRecord& record) {
    if (number >= record.key.size() || record.key[number].kind != Leaf::number) return;
    record.key[number].kind = Leaf::tensor;
    record.key[number].bits = 0;
  };
  if (leaf.path.find('[') != std::string::npos) {
    fix.text = text("pass ", call.arguments.in(call.owners[number], leaf.path.substr(0, leaf.path.find('['))),
                    " as one Tensor instead of C++ numbers");
    return fix;
  }
  fix.text = text("declare ", name, " as Scalar instead of a C++ number: then it is an input of the program");
  if (leaf.dtype == DType::i64) {
    fix.text += ", if host code only computes with it (a loop count or a size has to stay a number)";
    fix.certain = false;
  }
  return fix;
}

// --- replay

/// Whether the trace of `first` would serve `call`, whose leaves are the same.
bool serves(const CallRecord& first, const CallRecord& call) {
  if (first.sizes == call.sizes) return true;
  std::shared_ptr<const Entry> trace = first.trace.lock();
  return trace && trace->fits(call.sizes);
}

/// How many traces the calls need, one after the other.
std::size_t traces_for(std::span<const CallRecord> calls) {
  std::vector<const CallRecord*> made;
  for (const CallRecord& call : calls)
    if (std::none_of(made.begin(), made.end(),
                     [&](const CallRecord* first) { return first->key == call.key && serves(*first, call); }))
      made.push_back(&call);
  return made.size();
}

std::size_t traces_after(std::vector<CallRecord> calls, std::span<const Fix> fixes) {
  for (const Fix& fix : fixes)
    if (fix.change)
      for (CallRecord& call : calls) fix.change(call);
  return traces_for(calls);
}

}  // namespace

CallRecord record_of(const MissedCall& call, const std::shared_ptr<const Entry>& made) {
  CallRecord out{.key = call.key, .sizes = {}, .trace = made};
  for (const Tensor& tensor : call.tensors) {
    std::span<const std::int64_t> sizes = tensor.node()->size_span();
    out.sizes.emplace_back(sizes.begin(), sizes.end());
  }
  return out;
}

Fix fix_of_leaf(const MissedCall& call, const Entry& nearest, std::size_t number, std::span<const CallRecord> earlier) {
  const LeafKey &traced = nearest.key[number], &now = call.key[number];
  std::string name = call.arguments.in(call.owners[number], call.leaves[number].path);
  if (traced.kind != now.kind) return {"pass the same kind of value in every call", {}, false};
  // The same object in every call, whichever it is.
  auto one_identity = [=](CallRecord& record) {
    if (number < record.key.size() && record.key[number].kind == now.kind) record.key[number] = now;
  };
  switch (now.kind) {
    case Leaf::tensor:
      if (traced.rank == no_tensor_rank || now.rank == no_tensor_rank)
        return {text("pass a tensor as ", name, " in every call, or none in every call"), {}, false};
      if (traced.bits != now.bits)
        return {text("pass a number as ", name, " in every call, or a tensor in every call"), one_identity, true};
      if (traced.dtype != now.dtype) return fix_of_dtype(call, number, traced.dtype, earlier);
      if (traced.rank == now.rank) return {text("move ", name, " to one device before the call"), {}, false};
      return {text("reshape or expand_dims ", name, " to one rank before the call"), {}, false};
    case Leaf::text:
      return {"make a function for each text, or pass few different", {}, false};
    case Leaf::variable:
      return {text("pass the same Variable in every call, or its value as a Tensor"), one_identity, true};
    case Leaf::number:
      return fix_of_number(call, number);
    case Leaf::object:
      if (inside::Body::object_of(traced.bits) == inside::Body::object_of(now.bits))
        return {text("change ", name, " before its first call: each change needs a trace of its own"), one_identity,
                true};
      return {text("make ", name, " once and pass the same one in every call"), one_identity, true};
    default:
      return {"pass as many in every call, or stack them into one Tensor", {}, false};
  }
}

std::vector<Fix> fixes_of_sizes(const MissedCall& call, const Entry& nearest, const std::vector<Fact>& broken,
                                std::span<const CallRecord> earlier) {
  // The axes that the facts speak of, and the largest size of each: what calls could be padded to.
  std::set<int> symbols;
  bool host = false;
  Where line;
  std::set<int> asked;  // by host code
  for (const Fact& fact : broken) {
    const bool by_host = std::string_view(fact.reason.asker) == "host code";
    for (const Dim* side : {&fact.left, &fact.right})
      for (int symbol : side->symbols()) {
        symbols.insert(symbol);
        if (by_host) asked.insert(symbol);
      }
    if (by_host) {
      host = true;
      line = fact.reason.where;
    }
  }
  struct Axis {
    std::size_t tensor;
    std::size_t axis;
    std::int64_t largest;
  };
  std::vector<Axis> axes;
  std::vector<std::string> names;
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < call.leaves.size(); ++i) {
    if (call.leaves[i].kind == Leaf::size) ++tensor;
    if (call.leaves[i].kind != Leaf::tensor || !call.leaves[i].value.defined()) continue;
    const Shape& shape = nearest.program->inputs[tensor].shape;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::optional<int> symbol = shape[axis].as_symbol();
      if (!symbol || !symbols.contains(*symbol)) continue;
      auto at = static_cast<std::size_t>(axis);
      std::int64_t largest = call.tensors[tensor].node()->sizes[axis];
      for (const CallRecord& record : earlier)
        if (record.key == call.key) largest = std::max(largest, record.sizes[tensor][at]);
      axes.push_back({tensor, at, largest});
      names.push_back(
          text("axis ", axis, " of ", call.arguments.in(call.owners[i], call.leaves[i].path), " to ", largest));
    }
    ++tensor;
  }
  std::vector<Fix> out;
  for (int symbol : asked) {
    const std::int64_t turns = nearest.graph.scope->symbol_hint(symbol).value_or(0);
    std::vector<RepeatedLines> loop = lines_of_turns(nearest.graph, turns);
    if (loop.empty()) continue;
    out.push_back(
        {text("loop inside of the program instead of in host code, where ", loop[0].str(), " was recorded for each of ",
              turns, " turns: scan(body, carry, xs) over the elements of xs, or for_loop(n, body, state)"),
         {},
         false});
    break;
  }
  if (host)
    out.push_back(
        {text("keep the size a Dim in host code", at_line(line), ", where what it is used for takes one"), {}, false});
  if (!axes.empty())
    out.push_back({text("let all calls agree in these sizes, or pad ", joined(names, ", ")),
                   [axes, key = call.key](CallRecord& record) {
                     if (record.key != key) return;
                     for (const Axis& one : axes) record.sizes[one.tensor][one.axis] = one.largest;
                   },
                   true});
  return out;
}

std::vector<std::string> tried(const std::vector<Fix>& fixes, const MissedCall& call,
                               std::span<const CallRecord> earlier) {
  std::vector<CallRecord> calls(earlier.begin(), earlier.end());
  calls.push_back(record_of(call, nullptr));
  std::size_t before = traces_for(calls);
  auto with_count = [&](const Fix& fix, std::size_t after) {
    std::string count = text(" (", before, " traces -> ", after, ")");
    return text(fix.certain ? "" : "perhaps ", fix.text, count);
  };
  std::vector<std::string> out, guesses;
  std::vector<Fix> useful;
  for (const Fix& fix : fixes) {
    if (!fix.change)
      (fix.certain ? out : guesses).push_back(text(fix.certain ? "" : "perhaps ", fix.text));
    else
      useful.push_back(fix);
  }
  if (!useful.empty()) {
    std::size_t all = traces_after(calls, useful);
    // One that does it alone, a certain one first.
    const Fix* alone = nullptr;
    for (const Fix& fix : useful)
      if (traces_after(calls, std::span(&fix, 1)) == all && (!alone || (fix.certain && !alone->certain))) alone = &fix;
    if (all >= before) {
      for (const Fix& fix : useful) guesses.push_back(text("perhaps ", fix.text));
    } else if (alone) {
      out.push_back(with_count(*alone, all));
    } else {
      Fix together;
      std::vector<std::string> texts;
      for (const Fix& fix : useful) {
        texts.push_back(fix.text);
        together.certain &= fix.certain;
      }
      together.text = joined(texts, "; and ");
      out.push_back(with_count(together, all));
    }
  }
  out.insert(out.end(), guesses.begin(), guesses.end());
  return out;
}

}  // namespace stet

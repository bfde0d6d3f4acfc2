#include "stet/core/verify_call.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/variable_overlay.h"

namespace stet {

bool verifies_all() {
  static const bool asked = [] {
    const char* value = std::getenv("STET_VERIFY");
    return value && *value && std::string_view(value) != "0";
  }();
  return asked;
}

namespace {

/// What a call did.
struct Outcome {
  std::vector<Tensor> results;  // the tensors among them; undefined ones too
  Leaves form;
  std::map<std::uint64_t, Tensor> state;  // of Variables that were written
  std::vector<Tensor> gradients;          // undefined where nothing depends
  std::string error, gradient_error;      // of what was thrown; else empty
};

/// What a call begins with.
struct Start {
  Leaves leaves;
  std::vector<Tensor> arguments;  // the tensors among them
  std::vector<Tensor> state;      // of the Variables used
};

/// The first line of an error, without what depends on where it was found.
std::string first_line(const std::exception& error) {
  std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

class Check {
 public:
  Check(Entry& entry, const HostFunction& host, const MissedCall& call)
      : entry_(entry),
        host_(host),
        call_(call),
        start_{call.leaves, inputs_of(call.leaves, false, call.where), entry.variable_values()} {}

  void run(bool gradients) {
    HiddenTapes hidden;
    MutedPrint muted;
    with_gradients_ = gradients;
    Outcome eager = run_eagerly(start_);
    Outcome traced = outcome(VariableOverlay::compiled, start_, [&] { return run_traced(); });
    compare(eager, traced);
  }

 private:
  /// Picks one of the tensors that a call made.
  using Part = std::function<Tensor(const Outcome&)>;

  Outcome run_eagerly(const Start& start) const {
    return outcome(VariableOverlay::eager, start, [&] { return host_.body(start.leaves); });
  }

  Leaves run_traced() const {
    ResultTensors tensors;
    try {
      if (tapes_open()) {
        run_under_tape(entry_, call_.function, start_.arguments, tensors, call_.where);
      } else {
        std::optional<Bindings> bindings = entry_.accepts(call_.key, call_.tensors);
        if (!bindings) throw InternalError("a trace does not accept the call that it is verified with");
        std::vector<const Tensor*> pointers;
        for (const Tensor& tensor : call_.tensors) pointers.push_back(&tensor);
        run_compiled(entry_, *entry_.bound_to(*bindings), pointers, tensors);
      }
    } catch (const Problem& problem) {
      throw UserError(problem.text());
    }
    Leaves out = entry_.result_form;
    Tensor* next = tensors.begin();
    for (Leaf& leaf : out) {
      if (leaf.undefined) continue;
      if (leaf.kind == Leaf::tensor) leaf.value = std::move(*next++);
      if (leaf.kind == Leaf::size) leaf.length = (next++)->item<std::int64_t>();
    }
    return out;
  }

  template <class Run>
  Outcome outcome(VariableOverlay::Functions functions, const Start& start, const Run& run) const {
    Outcome out;
    {
      VariableOverlay apart(functions);
      show_state(apart, start);
      try {
        out.form = run();
        for (const Leaf& leaf : out.form)
          if (leaf.kind == Leaf::tensor) out.results.push_back(leaf.value);
      } catch (const InternalError&) {
        throw;
      } catch (const std::exception& error) {
        out.error = first_line(error);
      }
      for (const auto& [id, value] : apart.written()) out.state.emplace(id, value);
    }
    if (with_gradients_ && out.error.empty()) add_gradients(functions, start, run, out);
    return out;
  }

  template <class Run>
  void add_gradients(VariableOverlay::Functions functions, const Start& start, const Run& run, Outcome& out) const {
    VariableOverlay apart(functions);
    show_state(apart, start);
    try {
      GradientTape tape;
      std::vector<Source> sources;
      for (const Tensor& argument : start.arguments)
        if (is_floating(argument.dtype())) {
          tape.watch(argument);
          sources.emplace_back(argument);
        }
      for (const Variable& variable : entry_.used)
        if (variable.trainable() && is_floating(variable.dtype())) sources.emplace_back(variable);
      std::vector<Tensor> targets, weights;
      for (const Leaf& leaf : run())
        if (leaf.kind == Leaf::tensor && leaf.value.defined() && is_floating(leaf.value.dtype())) {
          targets.push_back(leaf.value);
          weights.push_back(ones_like(leaf.value));
        }
      out.gradients = gradients_of(tape, targets, weights, sources);
    } catch (const InternalError&) {
      throw;
    } catch (const std::exception& error) {
      out.gradient_error = first_line(error);
    }
  }

  void show_state(VariableOverlay& apart, const Start& start) const {
    for (std::size_t i = 0; i < entry_.used.size(); ++i) apart.show(entry_.used[i], start.state[i]);
  }

  [[noreturn]] void fail(const std::string& what, const std::string& eager, const std::string& traced) const {
    throw VerifyError(text("stet: '", call_.function, "' does not do what its code does eagerly",
                           at_line(call_.where, ", called at "), "\n", explanation_line("what", what),
                           explanation_line("eager", eager), explanation_line("traced", traced),
                           explanation_line("fix",
                                            "look for host state that the code relies on or changes; if there "
                                            "is none, this is a bug in stet")));
  }

  void compare(const Outcome& eager, const Outcome& traced) const {
    auto thrown = [](const std::string& error) { return error.empty() ? std::string("no exception") : error; };
    if (eager.error.empty() != traced.error.empty()) fail("an exception", thrown(eager.error), thrown(traced.error));
    if (!eager.error.empty()) return;
    if (eager.results.size() != traced.results.size())
      fail("the number of tensors returned", text(eager.results.size()), text(traced.results.size()));
    for (std::size_t i = 0; i < eager.results.size(); ++i)
      compare_parts(
          text("result ", i),
          [&](const Outcome& outcome) { return i < outcome.results.size() ? outcome.results[i] : Tensor(); }, eager,
          traced);
    for (std::size_t i = 0; i < std::min(eager.form.size(), traced.form.size()); ++i) {
      const Leaf &a = eager.form[i], &b = traced.form[i];
      if (a.kind == Leaf::tensor) continue;
      if (a.kind != b.kind || a.bits != b.bits || !identical(a.length, b.length))
        fail("a host value returned", described(a), described(b));
    }
    compare_state(eager, traced);
    if (eager.gradient_error.empty() != traced.gradient_error.empty())
      fail("an exception in the gradient", thrown(eager.gradient_error), thrown(traced.gradient_error));
    for (std::size_t i = 0; i < std::min(eager.gradients.size(), traced.gradients.size()); ++i) {
      // On the side of a branch that was not taken nothing depends on a source: a program has zeros for it.
      auto gradient = [&](const Outcome& outcome) {
        for (const std::vector<Tensor>* list : {&outcome.gradients, &traced.gradients, &eager.gradients})
          if (i < list->size() && (*list)[i].defined())
            return list == &outcome.gradients ? (*list)[i] : zeros_like((*list)[i]);
        return Tensor();
      };
      compare_parts(text("gradient ", i), gradient, eager, traced);
    }
  }

  void compare_state(const Outcome& eager, const Outcome& traced) const {
    for (std::size_t i = 0; i < entry_.used.size(); ++i) {
      const Variable& variable = entry_.used[i];
      auto after = [&](const Outcome& outcome) {
        auto found = outcome.state.find(variable.id());
        return found == outcome.state.end() ? start_.state[i] : found->second;
      };
      compare_parts(text("the Variable ", variable.name().empty() ? text("number ", variable.id()) : variable.name()),
                    after, eager, traced);
    }
    for (const auto& [id, value] : eager.state)
      if (std::none_of(entry_.used.begin(), entry_.used.end(), [&](const Variable& used) { return used.id() == id; }))
        fail(text("the Variable number ", id), "written", "not written");
  }

  void compare_parts(const std::string& what, const Part& part, const Outcome& eager, const Outcome& traced) const {
    const Tensor a = part(eager), b = part(traced);
    if (!a.defined() || !b.defined()) {
      if (a.defined() != b.defined())
        fail(what, a.defined() ? "a tensor" : "undefined", b.defined() ? "a tensor" : "undefined");
      return;
    }
    std::string form = text(a.dtype(), a.shape()), traced_form = text(b.dtype(), b.shape());
    if (form != traced_form) fail(what, form, traced_form);
    std::vector<std::size_t> apart = places_apart(a, b);
    if (apart.empty()) return;
    if (is_floating(a.dtype())) apart = not_explained_by_rounding(apart, part, a, b);
    if (!apart.empty()) fail(text(what, ", element ", apart[0]), shown(a, apart[0]), shown(b, apart[0]));
  }

  static std::vector<double> elements(const Tensor& tensor) {
    return core_ops.cast(In(tensor), DType::f64).contiguous().to_vector<double>();
  }
  static std::string shown(const Tensor& tensor, std::size_t at) { return text(elements(tensor)[at]); }

  static double largest(const Tensor& tensor) {
    double out = 0;
    for (double value : elements(tensor))
      if (std::isfinite(value)) out = std::max(out, std::abs(value));
    return out;
  }
  /// Of the call's arguments and Variables.
  double magnitude() const {
    double out = 0;
    for (const std::vector<Tensor>* list : {&start_.arguments, &start_.state})
      for (const Tensor& tensor : *list)
        if (tensor.defined() && is_floating(tensor.dtype())) out = std::max(out, largest(tensor));
    return out;
  }

  /// Which elements differ by more than what another order of summation may change: programs fuse sums. Where
  /// everything cancels, nothing but rounding errors of terms that were as large as what came in is left.
  std::vector<std::size_t> places_apart(const Tensor& eager, const Tensor& traced) const {
    std::vector<double> a = elements(eager), b = elements(traced);
    const double scale = std::max(largest(eager), 1e-4 * magnitude());
    DType dtype = eager.dtype();
    double relative = !is_floating(dtype) ? 0 : dtype == DType::f64 ? 1e-9 : size_of(dtype) == 4 ? 2e-4 : 4e-2;
    std::vector<std::size_t> out;
    for (std::size_t at = 0; at < a.size(); ++at) {
      if (a[at] == b[at] || (std::isnan(a[at]) && std::isnan(b[at]))) continue;
      if (!(std::abs(a[at] - b[at]) <= relative * scale + (relative > 0 ? 1e-30 : 0))) out.push_back(at);
    }
    return out;
  }

  /// Of places where results are apart, those where the code itself gives nearly the same when all that it begins with
  /// is moved by rounding errors. The others say nothing: an optimizer that divides gradients by their size makes whole
  /// steps of gradients that are 0 but for rounding (those of the bias of keys in attention).
  std::vector<std::size_t> not_explained_by_rounding(const std::vector<std::size_t>& places, const Part& part,
                                                     const Tensor& eager, const Tensor& traced) const {
    if (moved_.empty())
      for (std::uint32_t turn = 0; turn < 3; ++turn) moved_.push_back(run_eagerly(moved_start(turn)));
    std::vector<double> a = elements(eager), b = elements(traced), spread(a.size());
    for (const Outcome& outcome : moved_) {
      if (!outcome.error.empty() || !outcome.gradient_error.empty()) continue;
      Tensor tensor = part(outcome);
      if (!tensor.defined() || text(tensor.shape()) != text(eager.shape())) continue;
      std::vector<double> c = elements(tensor);
      for (std::size_t i = 0; i < a.size(); ++i)
        if (std::isfinite(c[i] - a[i])) spread[i] = std::max(spread[i], std::abs(c[i] - a[i]));
    }
    // One element may stay where it is by chance; that half of a tensor's do is none.
    std::vector<double> sorted = spread;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    const double usual = sorted[sorted.size() / 2];
    std::vector<std::size_t> out;
    for (std::size_t at : places)
      if (!(std::abs(a[at] - b[at]) <= 8 * std::max(spread[at], usual))) out.push_back(at);
    return out;
  }

  Start moved_start(std::uint32_t turn) const {
    Start out = start_;
    for (Leaf& leaf : out.leaves)
      if (leaf.kind == Leaf::tensor && leaf.value.defined()) leaf.value = moved(leaf.value, turn);
    out.arguments = inputs_of(out.leaves, false, call_.where);
    for (Tensor& tensor : out.state)
      if (tensor.defined()) tensor = moved(tensor, turn);
    return out;
  }
  /// Every element up or down by about two of its last places. Whole numbers stay: they may be classes, positions or
  /// flags, of which others are not near.
  static Tensor moved(const Tensor& tensor, std::uint32_t turn) {
    DType dtype = tensor.dtype();
    if (!is_floating(dtype) || tensor.node()->weak) return tensor;
    const int digits = dtype == DType::f64 ? 51 : dtype == DType::f32 ? 22 : dtype == DType::f16 ? 9 : 6;
    std::vector<double> values = elements(tensor);
    std::uint32_t word = 0x9E3779B9u * (turn + 1);
    for (double& value : values) {
      word = word * 1664525u + 1013904223u;
      if (value != std::floor(value)) value *= 1 + std::ldexp(word >> 31 ? 1 : -1, -digits);
    }
    return core_ops.cast(stet::tensor(values, tensor.shape()), dtype);
  }

  Entry& entry_;
  const HostFunction& host_;
  const MissedCall& call_;
  const Start start_;
  bool with_gradients_ = false;
  mutable std::vector<Outcome> moved_;  // of eager runs, where somebody asked
};

}  // namespace

void verify_call(Entry& entry, const HostFunction& host, const MissedCall& call, bool gradients) {
  Check(entry, host, call).run(gradients);
}

}  // namespace stet

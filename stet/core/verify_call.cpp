#include "stet/core/verify_call.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

/// The first line of an error, without what depends on where it was found.
std::string first_line(const std::exception& error) {
  std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

class Check {
 public:
  Check(Entry& entry, const HostFunction& host, const MissedCall& call) : entry_(entry), host_(host), call_(call) {
    before_ = entry.variable_values();
    arguments_ = inputs_of(call.leaves, false, call.where);
  }

  void run(bool gradients) {
    HiddenTapes hidden;
    MutedPrint muted;
    Outcome eager = outcome(VariableOverlay::eager, gradients, [&] { return host_.body(call_.leaves); });
    Outcome traced = outcome(VariableOverlay::compiled, gradients, [&] { return run_traced(); });
    compare(eager, traced);
  }

 private:
  Leaves run_traced() {
    ResultTensors tensors;
    try {
      if (tapes_open()) {
        run_under_tape(entry_, call_.function, arguments_, tensors, call_.where);
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
  Outcome outcome(VariableOverlay::Functions functions, bool gradients, const Run& run) {
    Outcome out;
    {
      VariableOverlay apart(functions);
      show_state(apart);
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
    if (gradients && out.error.empty()) add_gradients(functions, run, out);
    return out;
  }

  template <class Run>
  void add_gradients(VariableOverlay::Functions functions, const Run& run, Outcome& out) {
    VariableOverlay apart(functions);
    show_state(apart);
    try {
      GradientTape tape;
      std::vector<Source> sources;
      for (const Tensor& argument : arguments_)
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

  void show_state(VariableOverlay& apart) const {
    for (std::size_t i = 0; i < entry_.used.size(); ++i) apart.show(entry_.used[i], before_[i]);
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
      compare_tensors(text("result ", i), eager.results[i], traced.results[i]);
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
      Tensor a = eager.gradients[i], b = traced.gradients[i];
      // On the side of a branch that was not taken nothing depends on a source: a program has zeros for it.
      if (!a.defined() && b.defined()) a = zeros_like(b);
      if (!b.defined() && a.defined()) b = zeros_like(a);
      compare_tensors(text("gradient ", i), a, b);
    }
  }

  void compare_state(const Outcome& eager, const Outcome& traced) const {
    for (std::size_t i = 0; i < entry_.used.size(); ++i) {
      const Variable& variable = entry_.used[i];
      auto after = [&](const Outcome& outcome) {
        auto found = outcome.state.find(variable.id());
        return found == outcome.state.end() ? before_[i] : found->second;
      };
      compare_tensors(text("the Variable ", variable.name().empty() ? text("number ", variable.id()) : variable.name()),
                      after(eager), after(traced));
    }
    for (const auto& [id, value] : eager.state)
      if (std::none_of(entry_.used.begin(), entry_.used.end(), [&](const Variable& used) { return used.id() == id; }))
        fail(text("the Variable number ", id), "written", "not written");
  }

  void compare_tensors(const std::string& what, const Tensor& eager, const Tensor& traced) const {
    if (!eager.defined() || !traced.defined()) {
      if (eager.defined() != traced.defined())
        fail(what, eager.defined() ? "a tensor" : "undefined", traced.defined() ? "a tensor" : "undefined");
      return;
    }
    std::string a = text(eager.dtype(), eager.shape()), b = text(traced.dtype(), traced.shape());
    if (a != b) fail(what, a, b);
    std::size_t at = 0;
    if (!close(eager, traced, at)) fail(text(what, ", element ", at), shown(eager, at), shown(traced, at));
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
    for (const std::vector<Tensor>* list : {&arguments_, &before_})
      for (const Tensor& tensor : *list)
        if (tensor.defined() && is_floating(tensor.dtype())) out = std::max(out, largest(tensor));
    return out;
  }

  /// Equal up to what another order of summation may change: programs fuse sums. Where everything cancels, nothing but
  /// rounding errors of terms that were as large as what came in is left.
  bool close(const Tensor& eager, const Tensor& traced, std::size_t& at) const {
    std::vector<double> a = elements(eager), b = elements(traced);
    const double scale = std::max(largest(eager), 1e-4 * magnitude());
    DType dtype = eager.dtype();
    double relative = !is_floating(dtype) ? 0 : dtype == DType::f64 ? 1e-9 : size_of(dtype) == 4 ? 2e-4 : 4e-2;
    for (at = 0; at < a.size(); ++at) {
      if (a[at] == b[at] || (std::isnan(a[at]) && std::isnan(b[at]))) continue;
      if (!(std::abs(a[at] - b[at]) <= relative * scale + (relative > 0 ? 1e-30 : 0))) return false;
    }
    return true;
  }

  Entry& entry_;
  const HostFunction& host_;
  const MissedCall& call_;
  std::vector<Tensor> before_;  // of the Variables used
  std::vector<Tensor> arguments_;
};

}  // namespace

void verify_call(Entry& entry, const HostFunction& host, const MissedCall& call, bool gradients) {
  Check(entry, host, call).run(gradients);
}

}  // namespace stet

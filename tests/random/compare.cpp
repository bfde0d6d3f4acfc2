#include "compare.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "reference.h"

namespace stet::random_programs {
namespace {

/// Operations whose order of summation may be another one when fused, or that multiply rounding errors.
bool sums(const Block& block) {
  static const std::set<std::string> rows{"sum",         "mean",    "prod",       "matmul",    "conv",
                                          "scatter_add", "softmax", "layer_norm", "fill_with", "sparse_cross_entropy"};
  for (const Statement& s : block.statements) {
    if (s.kind == Statement::gradient || s.kind == Statement::layer || s.kind == Statement::call) return true;
    if (s.kind == Statement::op && rows.contains(s.name)) return true;
    for (const Block& inner : s.blocks)
      if (sums(inner)) return true;
  }
  return false;
}

/// Exact where nothing is summed; otherwise within a bound relative to the largest element. With `not_numbers`, b may
/// be NaN where a is not.
bool same(const std::vector<double>& a, const std::vector<double>& b, double bound, bool not_numbers) {
  if (a.size() != b.size()) return false;
  double largest = 1;
  for (double v : a)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) && not_numbers) continue;
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (std::isnan(a[i]) || a[i] == b[i]) continue;
    if (!(std::abs(a[i] - b[i]) <= bound * largest)) return false;
  }
  return true;
}

bool takes_gradients(const Block& block) {
  return std::any_of(block.statements.begin(), block.statements.end(), [](const Statement& s) {
    return s.kind == Statement::gradient || std::any_of(s.blocks.begin(), s.blocks.end(), takes_gradients);
  });
}
bool differentiates(const Program& program, Way way) {
  auto routine = [](const Routine& r) { return takes_gradients(r.body); };
  return way == Way::tape || takes_gradients(program.body) ||
         std::any_of(program.functions.begin(), program.functions.end(), routine) ||
         std::any_of(program.layers.begin(), program.layers.end(),
                     [&](const LayerPart& part) { return routine(part.routine); });
}

std::string text_of(const std::vector<double>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size() && i < 12; ++i) text += (i ? " " : "") + std::to_string(values[i]);
  return text + (values.size() > 12 ? " …]" : "]");
}

std::string without_numbers(const std::string& text) {
  std::string out;
  for (char c : text)
    if (c < '0' || c > '9') out += c;
  return out.substr(0, 60);
}

std::optional<Difference> between(const Outcome& left, const Outcome& right, const std::string& left_name,
                                  const std::string& right_name, double bound, bool not_numbers, std::size_t call) {
  std::string at = "call " + std::to_string(call) + ": ";
  auto told = [&](const std::string& text, const std::string& kind) { return Difference{Way::call, at + text, kind}; };
  if (left.error.empty() != right.error.empty())
    return told(left_name + (left.error.empty() ? " no error" : " " + left.error) + "; " + right_name +
                    (right.error.empty() ? " no error" : " " + right.error),
                "error " + without_numbers(left.error + "|" + right.error));
  if (!left.error.empty()) return std::nullopt;
  if (left.types != right.types) {
    std::string text = "types " + left_name;
    for (const std::string& t : left.types) text += " (" + t + ")";
    text += ", " + right_name;
    for (const std::string& t : right.types) text += " (" + t + ")";
    return told(text, "types");
  }
  for (std::size_t i = 0; i < left.values.size(); ++i)
    if (!same(left.values[i], right.values[i], bound, not_numbers))
      return told("value " + std::to_string(i) + " is " + text_of(left.values[i]) + " " + left_name + ", " +
                      text_of(right.values[i]) + " " + right_name,
                  "values " + left_name);
  return std::nullopt;
}

}  // namespace

std::optional<Difference> difference(const Program& program, Way way, Counts* counts) {
  Run eager = run_all(program, way, false), traced = run_all(program, way, true);
  for (const Run* run : {&eager, &traced})
    for (const Outcome& call : run->calls)
      if (call.refused) {
        if (counts) ++counts->refused;
        return std::nullopt;
      }
  bool exact = way != Way::tape && !sums(program.body);
  for (const LayerPart& part : program.layers) exact = exact && !sums(part.routine.body);
  for (const Routine& r : program.functions) exact = exact && !sums(r.body);
  double bound = exact ? 0 : program.real == DType::f64 ? 1e-9 : 5e-4;
  std::optional<Difference> found;
  for (std::size_t i = 0; i < eager.calls.size() && !found; ++i) {
    // A branch gives zeros as the gradient of what only the other side needs, and zero times infinity is NaN.
    found = between(eager.calls[i], traced.calls[i], "eagerly", "traced", bound, differentiates(program, way), i);
    if (counts) {
      ++counts->calls;
      counts->errors_on_both_sides += !eager.calls[i].error.empty();
    }
  }
  bool generic =
      program.size_sets[0][0] > 1 && program.size_sets[0][1] > 1 && program.size_sets[0][0] != program.size_sets[0][1];
  if (!found && generic && !program.facts && way != Way::clear && way != Way::verified && traced.traces > 1)
    found = Difference{way, std::to_string(traced.traces) + " traces\n" + traced.explanation, "traces"};
  // By itself the reference cannot tell what is near a decision.
  Reference reference = reference_of(program, way);
  for (std::size_t i = 0; i < reference.calls.size(); ++i) {
    if (!reference.known[i]) {
      if (reference.ambiguous) return std::nullopt;
      break;
    }
    if (found) break;
    found = between(reference.calls[i], eager.calls[i], "by the reference", "eagerly",
                    program.real == DType::f64 ? 1e-7 : 2e-3, false, i);
    if (counts) ++counts->compared_with_reference;
  }
  if (found) found->way = way;
  return found;
}

}  // namespace stet::random_programs

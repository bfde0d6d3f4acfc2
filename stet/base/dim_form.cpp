#include "stet/base/dim_form.h"

#include "stet/base/error.h"
#include "stet/base/polynomial.h"

namespace stet {
namespace {

void append_form(const Dim& dim, std::vector<DimStep>& out);

void append_atom(const Atom& atom, std::vector<DimStep>& out) {
  if (!atom.quotient) {
    out.push_back({DimStep::symbol, atom.symbol});
    return;
  }
  append_form(atom.quotient->numerator, out);
  if (atom.quotient->form == Quotient::Form::positive) {
    out.push_back({DimStep::positive, 0});
    return;
  }
  append_form(atom.quotient->divisor, out);
  out.push_back({atom.quotient->form == Quotient::Form::floor ? DimStep::floor : DimStep::modulo, 0});
}

void append_form(const Dim& dim, std::vector<DimStep>& out) {
  if (dim.is_constant()) {
    out.push_back({DimStep::constant, dim.constant()});
    return;
  }
  bool first = true;
  for (const Term& term : terms_of(dim)) {
    out.push_back({DimStep::constant, term.coefficient});
    for (const Atom& atom : term.monomial) {
      append_atom(atom, out);
      out.push_back({DimStep::multiply, 0});
    }
    if (!first) out.push_back({DimStep::add, 0});
    first = false;
  }
}

constexpr std::size_t deepest_stack = 64;

Dim applied_step(DimStep::Kind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case DimStep::add:
      return a + b;
    case DimStep::multiply:
      return a * b;
    case DimStep::floor:
      return a / b;
    default:
      return a % b;
  }
}

}  // namespace

std::vector<DimStep> form_of(const Dim& dim) {
  std::vector<DimStep> out;
  append_form(dim, out);
  return out;
}

Dim dim_of_form(std::span<const DimStep> steps, std::span<const Dim> symbols) {
  std::vector<Dim> stack;
  auto pop = [&] {
    if (stack.empty()) throw Problem("a size is made of nothing");
    Dim top = std::move(stack.back());
    stack.pop_back();
    return top;
  };
  for (const DimStep& step : steps) {
    if (stack.size() >= deepest_stack) throw Problem("a size is too deep");
    switch (step.kind) {
      case DimStep::constant:
        stack.emplace_back(step.number);
        break;
      case DimStep::symbol:
        if (step.number < 0 || static_cast<std::uint64_t>(step.number) >= symbols.size())
          throw Problem(text("there is no size ", step.number));
        stack.push_back(symbols[static_cast<std::size_t>(step.number)]);
        break;
      case DimStep::positive:
        stack.push_back(larger_of(pop(), 0));
        break;
      case DimStep::add:
      case DimStep::multiply:
      case DimStep::floor:
      case DimStep::modulo: {
        Dim right = pop(), left = pop();
        stack.push_back(applied_step(step.kind, left, right));
        break;
      }
      default:
        throw Problem("a size is made of something unknown");
    }
  }
  if (stack.size() != 1) throw Problem("a size is made of several");
  return stack[0];
}

}  // namespace stet

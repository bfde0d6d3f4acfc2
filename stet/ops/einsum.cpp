// einsum: sums of products over letters that name axes, as matrix products wherever two operands share a summed letter.
#include <algorithm>
#include <array>
#include <string_view>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- products

/// Sums of products, by Einstein's convention: einsum("bhqd,bhkd->bhqk", {q, k}) names every axis of every operand with
/// a letter, and sums over the letters that the result does not have. A letter that stands twice in an operand is its
/// diagonal; "..." stands for any number of axes, which broadcast and come first if the result is not given. Without
/// "->" the result has the letters that stand once, in alphabetical order. Operands promote to one type; of 8- and
/// 16-bit integers the result is i32.
///
/// Of three and more operands two at a time are multiplied: those whose product has the fewest letters, of several the
/// ones that sum over the most, then the first. That is a rule on letters alone, so one trace serves all sizes; if
/// sizes make another order better, write several einsums.
/// Names: numpy.einsum, jax.numpy.einsum, tf.einsum, torch.einsum
/// Example: einsum("ij,jk->ik", {tensor({{1, 2}, {3, 4}}), tensor({{5, 6}, {7, 8}})})
STET_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Where where = Where::here());
#endif

namespace {

constexpr const char* operand_names[] = {"operand 0", "operand 1", "operand 2", "operand 3",
                                         "operand 4", "operand 5", "operand 6", "operand 7"};

/// What names an axis: a letter, or (below 0) an axis of "...", counted from its end: -1 is the last one.
using Label = int;
using Labels = std::vector<Label>;

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
int position(const Labels& labels, Label label) {
  return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}
Labels joined(std::initializer_list<const Labels*> parts) {
  Labels out;
  for (const Labels* part : parts) out.insert(out.end(), part->begin(), part->end());
  return out;
}
Dim product(const std::vector<Dim>& sizes) {
  Dim out = 1;
  for (const Dim& size : sizes) out = out * size;
  return out;
}

/// A tensor whose axes are named.
struct Term {
  Tensor value;
  Labels labels;

  Dim size(Label label) const { return value.dim(position(labels, label)); }
  std::vector<Dim> sizes(const Labels& some) const {
    std::vector<Dim> out;
    for (Label label : some) out.push_back(size(label));
    return out;
  }
  /// The same with its axes in another order.
  Term ordered(const Labels& order) const {
    if (order == labels) return *this;
    std::vector<int> axes;
    for (Label label : order) axes.push_back(position(labels, label));
    return {transpose(value, axes), order};
  }
  /// With axes of size 1 where `order` has labels that it has not.
  Tensor spread_over(const Labels& order) const {
    Labels own;
    for (Label label : order)
      if (has(labels, label)) own.push_back(label);
    Term mine = ordered(own);
    if (own.size() == order.size()) return mine.value;
    std::vector<Dim> out;
    for (Label label : order) out.push_back(has(own, label) ? mine.size(label) : Dim(1));
    return reshape(mine.value, out);
  }
};

// --- the equation

/// One list of letters as it is written, "..." as a mark.
struct Subscript {
  std::string text;
  std::string letters;  // "..." left out
  int ellipsis = -1;    // how many letters stand before it; -1: there is none
};

struct Equation {
  std::string text;
  std::vector<Subscript> operands;
  Subscript result;
  bool has_result = false;
};

Subscript subscript_of(const Composite& call, const std::string& equation, std::string_view part) {
  Subscript out;
  out.text = part;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      out.letters += c;
    } else if (part.substr(i, 3) == "..." && out.ellipsis < 0) {
      out.ellipsis = static_cast<int>(out.letters.size());
      i += 2;
    } else {
      call.fail(text("'", c, "' in '", part, "' of the equation '", equation, "' is no letter"),
                "an operand is written as letters, with one \"...\" at most; operands are separated by \",\"");
    }
  }
  return out;
}

Equation equation_of(const Composite& call, std::string_view given) {
  Equation out;
  for (char c : given)
    if (c != ' ') out.text += c;
  std::string_view rest = out.text;
  if (std::size_t arrow = rest.find("->"); arrow != rest.npos) {
    out.has_result = true;
    out.result = subscript_of(call, out.text, rest.substr(arrow + 2));
    rest = rest.substr(0, arrow);
  }
  for (std::size_t comma = rest.find(','); comma != rest.npos; comma = rest.find(',')) {
    out.operands.push_back(subscript_of(call, out.text, rest.substr(0, comma)));
    rest = rest.substr(comma + 1);
  }
  out.operands.push_back(subscript_of(call, out.text, rest));
  return out;
}

Labels labels_of(const Subscript& subscript, int ellipsis_axes) {
  Labels out(subscript.letters.begin(), subscript.letters.end());
  if (subscript.ellipsis >= 0)
    for (int axis = 1; axis <= ellipsis_axes; ++axis) out.insert(out.begin() + subscript.ellipsis, -axis);
  return out;
}

/// Without "->": the axes of "...", then the letters that stand once, in order.
Labels implicit_result(const Equation& equation, int ellipsis_axes) {
  Labels out;
  for (int axis = ellipsis_axes; axis >= 1; --axis) out.push_back(-axis);
  std::string all;
  for (const Subscript& operand : equation.operands) all += operand.letters;
  std::sort(all.begin(), all.end());
  for (char c : all)
    if (std::count(all.begin(), all.end(), c) == 1) out.push_back(c);
  return out;
}

/// The operands as terms of one type, whose letters agree in their sizes, and the labels of the result.
class Sum {
 public:
  Sum(const Composite& call, const Equation& equation, const std::vector<Tensor>& operands)
      : call_(call), equation_(equation) {
    name_axes(operands);
    name_result();
    require_sizes();
    DType type = DType::bool_;
    for (const Term& term : terms_) type = promote(type, term.value.dtype());
    call_.require(type != DType::bool_, "einsum does not take bool", "cast to i32 or f32 first");
    for (Term& term : terms_) term.value = cast(term.value, sum_type(type));
  }

  Tensor value() {
    for (Term& term : terms_) {
      take_diagonals(term);
      sum_alone(term);
    }
    while (terms_.size() > 1) {
      auto [first, second] = next_pair();
      Term left = std::move(terms_[first]), right = std::move(terms_[second]);
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(second));
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(first));
      Term both = multiplied(left, right);
      terms_.insert(terms_.begin() + static_cast<std::ptrdiff_t>(first), std::move(both));
    }
    return terms_[0].ordered(result_).value;
  }

 private:
  // --- what is asked of the operands

  void name_axes(const std::vector<Tensor>& operands) {
    const std::size_t count = operands.size();
    call_.require(equation_.operands.size() == count,
                  text("the equation '", equation_.text, "' has ", equation_.operands.size(), " operands, ", count,
                       " are given"));
    for (std::size_t i = 0; i < count; ++i) {
      const Subscript& subscript = equation_.operands[i];
      call_.require(operands[i].defined(), text("operand ", i, " is an undefined tensor"));
      const int rank = operands[i].rank(), named = static_cast<int>(subscript.letters.size());
      call_.require(subscript.ellipsis >= 0 ? named <= rank : named == rank,
                    text("operand ", i, " has rank ", rank, ", and '", subscript.text, "' of the equation '",
                         equation_.text, "' names ", named, subscript.ellipsis >= 0 ? " axes and more" : " axes"),
                    "name every axis with a letter; \"...\" stands for the rest");
      if (subscript.ellipsis >= 0) ellipsis_axes_ = std::max(ellipsis_axes_, rank - named);
      terms_.push_back({operands[i], labels_of(subscript, rank - named)});
    }
  }

  void name_result() {
    if (!equation_.has_result) {
      result_ = implicit_result(equation_, ellipsis_axes_);
      return;
    }
    const Subscript& subscript = equation_.result;
    call_.require(
        subscript.ellipsis >= 0 || ellipsis_axes_ == 0,
        text("the result of the equation '", equation_.text, "' has no \"...\", but operands have axes there"),
        "write \"...\" in the result, or letters instead to sum over them");
    result_ = labels_of(subscript, ellipsis_axes_);
    for (char letter : subscript.letters) {
      call_.require(std::count(subscript.letters.begin(), subscript.letters.end(), letter) == 1,
                    text("letter '", letter, "' stands twice in the result of the equation '", equation_.text, "'"));
      bool found = false;
      for (const Term& term : terms_) found = found || has(term.labels, letter);
      call_.require(
          found, text("letter '", letter, "' of the result of the equation '", equation_.text, "' is in no operand"));
    }
  }

  /// Axes of one letter have one size. (Those of "..." broadcast, which the ops they go into decide.)
  void require_sizes() const {
    for (std::size_t i = 0; i < terms_.size(); ++i)
      for (std::size_t axis = 0; axis < terms_[i].labels.size(); ++axis) {
        const Label label = terms_[i].labels[axis];
        if (label < 0) continue;
        std::size_t first = 0;
        while (!has(terms_[first].labels, label)) ++first;
        const Dim here = terms_[i].value.dim(static_cast<int>(axis)), there = terms_[first].size(label);
        const char letter = static_cast<char>(label);
        if (!call_.agree(there, here, text("letter '", letter, "'")))
          call_.fail(text("letter '", letter, "' of the equation '", equation_.text, "' has size ", size_text(there),
                          " in operand ", first, " and ", size_text(here), " in operand ", i),
                     "axes that have the same letter have the same size");
      }
  }

  // --- one operand

  /// A letter that stands twice: the elements where both axes are at the same position.
  static void take_diagonals(Term& term) {
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      const Label label = term.labels[i];
      const auto later = std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, term.labels.end(), label);
      if (later == term.labels.end()) continue;
      const auto other = static_cast<std::size_t>(later - term.labels.begin());
      const Dim size = term.value.dim(static_cast<int>(i));
      std::vector<int> order;
      std::vector<Dim> sizes;
      Labels labels;
      for (std::size_t axis = 0; axis < term.labels.size(); ++axis)
        if (axis != i && axis != other) {
          order.push_back(static_cast<int>(axis));
          sizes.push_back(term.value.dim(static_cast<int>(axis)));
          labels.push_back(term.labels[axis]);
        }
      order.push_back(static_cast<int>(i));
      order.push_back(static_cast<int>(other));
      sizes.push_back(size * size);
      labels.push_back(label);
      Tensor square = reshape(transpose(term.value, order), sizes);
      term = {gather(square, arange(size) * (size + 1), -1), labels};
      i = static_cast<std::size_t>(-1);  // from the first again: positions have changed
    }
  }

  /// Whether a label is in the result or in a term other than this one.
  bool is_needed(Label label, const Term* but = nullptr) const {
    if (has(result_, label)) return true;
    for (const Term& term : terms_)
      if (&term != but && has(term.labels, label)) return true;
    return false;
  }

  void sum_alone(Term& term) const {
    std::vector<int> axes;
    Labels left;
    for (std::size_t axis = 0; axis < term.labels.size(); ++axis) {
      if (is_needed(term.labels[axis], &term))
        left.push_back(term.labels[axis]);
      else
        axes.push_back(static_cast<int>(axis));
    }
    if (!axes.empty()) term = {sum(term.value, axes), left};
  }

  // --- two operands

  struct Cost {
    int letters = 0, not_summed = 0, all = 0;
    auto operator<=>(const Cost&) const = default;
  };

  Cost cost(std::size_t first, std::size_t second) const {
    Cost out;
    const Labels &left = terms_[first].labels, &right = terms_[second].labels;
    auto count = [&](Label label) {
      bool needed = has(result_, label);
      for (std::size_t other = 0; other < terms_.size(); ++other)
        if (other != first && other != second) needed = needed || has(terms_[other].labels, label);
      ++out.all;
      out.letters += needed;
      out.not_summed -= !needed;
    };
    for (Label label : left) count(label);
    for (Label label : right)
      if (!has(left, label)) count(label);
    return out;
  }

  std::pair<std::size_t, std::size_t> next_pair() const {
    std::pair<std::size_t, std::size_t> best{0, 1};
    Cost least = cost(0, 1);
    for (std::size_t first = 0; first < terms_.size(); ++first)
      for (std::size_t second = first + 1; second < terms_.size(); ++second)
        if (Cost other = cost(first, second); other < least) {
          least = other;
          best = {first, second};
        }
    return best;
  }

  /// What the labels of two terms are to their product.
  struct Roles {
    Labels batch, left, right, summed;
  };

  /// Of terms that are no longer among the others.
  Roles roles(const Term& left, const Term& right) const {
    Roles out;
    for (Label label : left.labels) {
      if (!has(right.labels, label))
        out.left.push_back(label);
      else
        (is_needed(label) ? out.batch : out.summed).push_back(label);
    }
    for (Label label : right.labels)
      if (!has(left.labels, label)) out.right.push_back(label);
    return out;
  }

  Term multiplied(const Term& left, const Term& right) const {
    const Roles parts = roles(left, right);
    if (parts.summed.empty() || (parts.left.empty() && parts.right.empty())) return elementwise(left, right, parts);
    // The last product is written in the order of the result, if that only takes the other operand first.
    const bool last = terms_.empty() && !parts.left.empty() && !parts.right.empty();
    if (last && position(result_, parts.right[0]) < position(result_, parts.left[0]))
      return matrix_product(right, left, roles(right, left));
    return matrix_product(left, right, parts);
  }

  /// Products of elements, and a sum of them where both operands have nothing but what they share.
  Term elementwise(const Term& left, const Term& right, const Roles& parts) const {
    Labels order = joined({&parts.batch, &parts.left, &parts.right});
    if (terms_.empty()) order = result_;
    Labels all = joined({&order, &parts.summed});
    call_.require(
        all.size() <= static_cast<std::size_t>(max_rank),
        text("a product in the equation '", equation_.text, "' has ", all.size(), " axes, more than ", max_rank));
    Tensor out = left.spread_over(all) * right.spread_over(all);
    std::vector<int> summed;
    for (std::size_t axis = order.size(); axis < all.size(); ++axis) summed.push_back(static_cast<int>(axis));
    return {summed.empty() ? out : sum(out, summed), order};
  }

  /// [batch..., rows, columns], or the other way round if the axes lie so.
  struct Matrix {
    Tensor value;
    bool transposed = false;
  };

  /// The letters among the `batch` as one axis if there are more of them than a product has room for.
  static std::vector<Dim> batch_sizes(const Term& term, const Labels& batch, bool merged) {
    if (!merged) return term.sizes(batch);
    std::vector<Dim> out{1};
    for (Label label : batch) {
      if (label < 0) out.insert(out.end() - 1, term.size(label));
      if (label >= 0) out.back() = out.back() * term.size(label);
    }
    return out;
  }

  static Matrix matrix(const Term& term, const Labels& batch, const Labels& rows, const Labels& columns, bool merged) {
    Matrix out;
    out.transposed = term.labels == joined({&batch, &columns, &rows}) && !rows.empty() && !columns.empty();
    const Labels &outer = out.transposed ? columns : rows, &inner = out.transposed ? rows : columns;
    Term mine = term.ordered(joined({&batch, &outer, &inner}));
    out.value = mine.value;
    if (merged || outer.size() != 1 || inner.size() != 1) {
      std::vector<Dim> sizes = batch_sizes(mine, batch, merged);
      sizes.push_back(product(mine.sizes(outer)));
      sizes.push_back(product(mine.sizes(inner)));
      out.value = reshape(mine.value, sizes);
    }
    return out;
  }

  Term matrix_product(const Term& left, const Term& right, Roles parts) const {
    const bool merged = parts.batch.size() > static_cast<std::size_t>(max_rank) - 2;
    if (merged) std::stable_partition(parts.batch.begin(), parts.batch.end(), [](Label label) { return label < 0; });
    Matrix a = matrix(left, parts.batch, parts.left, parts.summed, merged);
    Matrix b = matrix(right, parts.batch, parts.summed, parts.right, merged);
    Tensor out = matmul(a.value, b.value, {.transpose_a = a.transposed, .transpose_b = b.transposed});
    Labels labels = joined({&parts.batch, &parts.left, &parts.right});
    if (!merged && parts.left.size() == 1 && parts.right.size() == 1) return {out, labels};
    call_.require(
        labels.size() <= static_cast<std::size_t>(max_rank),
        text("a product in the equation '", equation_.text, "' has ", labels.size(), " axes, more than ", max_rank));
    std::vector<Dim> sizes;
    for (std::size_t i = 0; i < parts.batch.size(); ++i) {
      const bool own_axis = !merged || parts.batch[i] < 0;
      sizes.push_back(own_axis ? out.dim(static_cast<int>(i)) : left.size(parts.batch[i]));
    }
    for (const Dim& size : left.sizes(parts.left)) sizes.push_back(size);
    for (const Dim& size : right.sizes(parts.right)) sizes.push_back(size);
    return {reshape(out, sizes), labels};
  }

  const Composite& call_;
  const Equation& equation_;
  std::vector<Term> terms_;
  Labels result_;
  int ellipsis_axes_ = 0;
};

}  // namespace

Tensor einsum(std::string_view given, const std::vector<Tensor>& operands, Where line) {
  std::vector<In> inputs;
  for (const Tensor& operand : operands) inputs.emplace_back(operand, line);
  Composite call("einsum", {std::begin(operand_names), std::end(operand_names)}, std::move(inputs), line);
  const Equation equation = equation_of(call, given);
  return Sum(call, equation, operands).value();
}

}  // namespace stet

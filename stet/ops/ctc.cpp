// Connectionist temporal classification: A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal
// classification: labelling unsegmented sequence data with recurrent neural networks", ICML 2006.
#include <functional>
#include <limits>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- losses

struct CtcOptions {
  std::int64_t blank = 0;  // the class that stands for no label; negative: from the end
};
/// -log of the probability of a sequence of labels, summed over all ways to align it with the time steps: labels in
/// order, each for one step or more, blanks between them wherever, and at least one between equal labels. One number
/// per sequence, [batch].
///
/// `log_probs` are logarithms of probabilities, [time, batch, classes] (log_softmax makes them), `labels` integers
/// [batch, length] without the blank, `input_lengths` (at most time) and `label_lengths` (at most length) integers
/// [batch]; what stands behind a length does not count. Infinite where no alignment exists; derivatives are 0 there.
///
/// Every step is recorded by itself: a trace serves all sizes of batch, classes and length, but one of time.
/// Example: ctc_loss(log(tensor({{{0.5f, 0.5f}}, {{0.5f, 0.5f}}})), tensor({{1}}), tensor({2}), tensor({1}))
/// Names: torch.nn.functional.ctc_loss, tf.nn.ctc_loss, optax.ctc_loss
STET_API Tensor ctc_loss(In log_probs, In labels, In input_lengths, In label_lengths, CtcOptions options = {});
#endif

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr IndexWords label_words{"label", "at flat position", "classes",
                                 "labels are class numbers: 0, 1, … up to the number of classes less one"};

/// log(exp(a) + exp(b) + exp(c)); -inf if all are. Its derivatives are the three shares, and theirs are stated too:
/// derived, both would be NaN where all are -inf, which most states are at first.
Expr log_of_sum(Expr a, Expr b, Expr c) {
  const Expr terms[] = {a, b, c};
  const Expr zero = constant(0.0, a.dtype()), lowest = constant(-infinity, a.dtype());
  Expr largest = scalar::maximum(a, scalar::maximum(b, c)), none = scalar::equal(largest, lowest);
  Expr shift = scalar::select(none, zero, largest);
  Expr total = scalar::exp(a - shift) + scalar::exp(b - shift) + scalar::exp(c - shift);
  Expr value = scalar::select(none, lowest, shift + scalar::log(total));
  Expr shares[3];
  for (int i = 0; i < 3; ++i) shares[i] = scalar::select(none, zero, scalar::exp(terms[i] - shift) / total);
  // A function of three operands with stated slopes: itself as one of the first, and nothing as one of the others.
  auto stated = [&](Expr of, const Expr(&slopes)[3]) {
    return scalar::with_derivative(of, a, slopes[0]) + scalar::with_derivative(zero, b, slopes[1]) +
           scalar::with_derivative(zero, c, slopes[2]);
  };
  Expr slopes[3];
  for (int i = 0; i < 3; ++i) {
    Expr curvature[3];
    for (int k = 0; k < 3; ++k) curvature[k] = i == k ? shares[i] * (1 - shares[i]) : -(shares[i] * shares[k]);
    slopes[i] = stated(shares[i], curvature);
  }
  return stated(value, slopes);
}

/// One step of time, of operands: the state itself, the one before it and the one before that, whether the latter may
/// be followed by this one, the step's emission, and whether the sequence still runs.
Expr step_of_time(DType dtype) {
  Expr stay = operand(0, dtype);
  Expr skipped = scalar::select(operand(3, DType::bool_), operand(2, dtype), constant(-infinity, dtype));
  Expr next = log_of_sum(stay, operand(1, dtype), skipped) + operand(4, dtype);
  return scalar::select(operand(5, DType::bool_), next, stay);
}

/// What alignments walk through: a blank, the first label, a blank, … the last label, a blank: [batch, states].
struct States {
  Tensor classes;  // i64
  Tensor skips;    // may follow the state before the previous one: a label that is not the label before
};

/// [batch, length] twice as pairs, and a last column: [batch, 2 length + 1].
Tensor interleaved(const Tensor& first, const Tensor& second, const Tensor& last) {
  Dim batch = first.dim(0), length = first.dim(1);
  return concat({reshape(stack({first, second}, 2), {batch, length * 2}), last}, 1);
}

States states_of(const Tensor& given, const Tensor& label_length, const Dim& classes, const Dim& blank) {
  Tensor label = in_type(given, DType::i64);
  Tensor inside = less(arange(given.dim(1)), label_length);
  // A label that is not a class is an error, unless it stands behind the sequence's end.
  label = gather(arange(classes), where(inside, label, blank));
  Tensor blank_column = zeros_like(label_length) + blank, blanks = zeros_like(label) + blank;
  Tensor before = slice(concat({zeros_like(label_length) - 1, label}, 1), {0, 0}, {label.dim(0), label.dim(1)});
  Tensor skips = logical_and(not_equal(label, before), not_equal(label, blanks));
  return {interleaved(blanks, label, blank_column),
          interleaved(not_equal(blanks, blanks), skips, not_equal(blank_column, blank_column))};
}

/// Calls `step` with every slice along the first axis. By halves: a slice's gradient has the size of what it is a slice
/// of, so slices of the whole would cost the square of their number.
void for_each_slice(const Tensor& x, std::int64_t count, const std::function<void(const Tensor&)>& step) {
  if (count == 1) return step(squeeze(x, 0));
  const std::int64_t half = count / 2;
  auto part = [&](std::int64_t begin, std::int64_t size) {
    return slice(x, {begin, 0, 0}, {size, x.dim(1), x.dim(2)});
  };
  for_each_slice(part(0, half), half, step);
  for_each_slice(part(half, count - half), count - half, step);
}

void check_ctc(const Composite& call) {
  static constexpr const char* names[] = {"log_probs", "labels", "input_lengths", "label_lengths"};
  static constexpr int ranks[] = {3, 2, 1, 1};
  const char* shapes =
      "log_probs are [time, batch, classes], labels [batch, length], input_lengths and label_lengths [batch]";
  for (std::size_t i = 0; i < 4; ++i) {
    call.require(call[i].rank() == ranks[i], text("'", names[i], "' have rank ", call[i].rank(), ", not ", ranks[i]),
                 shapes);
    call.require(i == 0 ? is_floating(call[i].dtype()) : is_integer(call[i].dtype()),
                 text("'", names[i], "' are ", call[i].dtype(), i == 0 ? ", not floating" : ", not integers"),
                 "cast them first");
    if (i > 0)
      call.require_equal(call[0].dim(1), call[i].dim(0), text("batches of 'log_probs' and '", names[i], "'"), shapes);
  }
}

}  // namespace

Tensor ctc_loss(In log_probs, In labels, In input_lengths, In label_lengths, CtcOptions options) {
  Composite call("ctc_loss", {"log_probs", "labels", "input_lengths", "label_lengths"},
                 {log_probs, labels, input_lengths, label_lengths}, &label_words);
  check_ctc(call);
  Tensor log_p = widened(call[0]);
  const DType dtype = log_p.dtype();
  const Dim batch = log_p.dim(1), classes = log_p.dim(2),
            blank = options.blank < 0 ? classes + options.blank : Dim(options.blank);
  const Reason reason{"ctc_loss", "classes", frame_where()};
  call.require(require(0, Relation::less_equal, blank, reason) && require(blank, Relation::less, classes, reason),
               text("the blank ", options.blank, " is not one of the ", size_text(classes), " classes"));
  Tensor input_length = expand_dims(in_type(call[2], DType::i64), 1);
  Tensor label_length = expand_dims(in_type(call[3], DType::i64), 1);
  States states = states_of(call[1], label_length, classes, blank);

  const std::int64_t time = log_p.dim(0).value(frame_where());
  Tensor columns = states.classes + expand_dims(arange(batch), 1) * classes;
  Tensor emissions = gather(reshape(log_p, {time, batch * classes}), columns, 1);

  // Two columns stand before the states of a step: nowhere to come from. At first a sequence is in the second of them,
  // from where it goes to the first blank or label.
  const Dim count = states.classes.dim(1);
  Tensor nowhere = cast(zeros_like(input_length), dtype) - infinity, no_columns = concat({nowhere, nowhere}, 1);
  Tensor alpha = cast(zeros_like(states.classes), dtype) - infinity;
  Tensor padded = concat({nowhere, zeros_like(nowhere), alpha}, 1);
  const Expr body = step_of_time(dtype);
  std::int64_t now = 0;
  auto step = [&](const Tensor& emission) {
    auto from = [&](int column) { return slice(padded, {0, column}, {batch, count}); };
    Tensor itself = from(2), previous = from(1), skipped = from(0), running = greater(input_length, now++);
    In operands[] = {itself, previous, skipped, states.skips, emission, running};
    alpha = call_map(body, operands);
    padded = concat({no_columns, alpha}, 1);
  };
  if (time > 0) for_each_slice(emissions, time, step);

  // The last label or the blank behind it; of nothing, in no time, nothing is certain.
  Tensor position = arange(count), end = label_length * 2;
  Tensor at_end = logical_or(equal(position, end), equal(position, end - 1));
  Tensor loss = -logsumexp(where(at_end, alpha, -infinity), 1, {.keepdims = true});
  Tensor nothing = logical_and(equal(input_length, 0), equal(label_length, 0));
  return in_type(squeeze(where(nothing, 0, loss), 1), call[0].dtype());
}

}  // namespace stet

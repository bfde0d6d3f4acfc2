// The way forward over a tape: tangents.
#include <algorithm>
#include <utility>

#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/gradient_reads.h"
#include "stet/core/tape.h"
#include "stet/core/tape_state.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

/// One record: the tangents of its inputs (undefined: 0), and what becomes of them.
class ForwardStep {
 public:
  ForwardStep(const TapeRecord& record, const std::vector<Tensor>& tangents) : record_(record), tangents_(tangents) {
    for (const TapeValue& input : record.inputs) inputs_.push_back(input.tensor);
    for (const TapeValue& output : record.outputs) outputs_.push_back(output.tensor);
    for (const Tensor& tangent : tangents) moving_.push_back(tangent.defined());
  }

  /// By output; undefined where nothing changes.
  std::vector<Tensor> run() {
    const OpDef& op = *record_.op;
    if (&op == &alias_row)
      return {tangents_[record_.attributes.as<AliasAttributes>().kind == AliasAttributes::attached ? 1 : 0]};
    if (op.kind == Kind::map && (!op.gradient || op.gradient == map_gradient)) return {of_map()};
    if (op.kind != Kind::structure && op.kind != Kind::branch && !current_trace()) {
      auto reads = gradient_reads(op, inputs_, record_.attributes.view(), outputs_, moving_);
      if (reads->together || reads->multilinear) return of_linear(reads->together);
    }
    return by_gradient();
  }

 private:
  /// The sum of slope times tangent over the operands.
  Tensor of_map() {
    auto known = map_derivatives(*record_.op, inputs_, record_.attributes.view());
    const DType computed = compute_type(known->body.dtype());
    std::vector<Tensor> operands = inputs_;
    operands.push_back(outputs_[0]);
    Expr sum;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const MapDerivatives::Slope& slope = known->slopes[i];
      if (!moving_[i] || !slope.value.defined() || slope.value.constant() == 0.0) continue;
      Expr tangent = scalar::cast(operand(static_cast<int>(operands.size()), tangents_[i].dtype()), computed);
      operands.push_back(tangents_[i]);
      Expr term = weighted_slope(tangent, scalar::cast(slope.value, computed), slope.may_be_infinite);
      sum = sum.defined() ? sum + term : term;
    }
    if (!sum.defined()) return {};
    Tensor out = call_map_of(scalar::cast(sum, known->body.dtype()), operands);
    return core_ops.broadcast_to(In(out, Where{}), outputs_[0].shape());
  }

  /// The row itself, of the tangents.
  std::vector<Tensor> of_linear(bool together) {
    auto called_with = [&](const std::vector<Tensor>& operands) {
      std::vector<In> given;
      for (const Tensor& one : operands) given.emplace_back(one, Where{});
      std::vector<Tensor> results(outputs_.size());
      call_into(*record_.op, given, record_.attributes.view(), results);
      return results;
    };
    if (together) {
      std::vector<Tensor> operands = inputs_;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (is_floating(operands[i].dtype())) operands[i] = moving_[i] ? tangents_[i] : zeros_like(operands[i]);
      return called_with(operands);
    }
    std::vector<Tensor> sums(outputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!moving_[i]) continue;
      std::vector<Tensor> operands = inputs_;
      operands[i] = tangents_[i];
      std::vector<Tensor> terms = called_with(operands);
      for (std::size_t r = 0; r < sums.size(); ++r)
        sums[r] = sums[r].defined() ? core_ops.add(In(sums[r]), In(terms[r])) : terms[r];
    }
    return sums;
  }

  /// The gradient is linear in the weights of the results: its own gradient by them, weighted by the tangents, is how
  /// the results move. At weights of 1, though any would do.
  std::vector<Tensor> by_gradient() {
    GradientTape tape({.watch_variables = false});
    std::vector<Tensor> weights;
    std::vector<Source> sources;
    std::vector<std::size_t> numbers;
    for (std::size_t r = 0; r < outputs_.size(); ++r) {
      weights.emplace_back();
      if (!is_floating(outputs_[r].dtype())) continue;
      weights[r] = same_value(ones_like(outputs_[r]));
      tape.watch(weights[r]);
      sources.emplace_back(weights[r]);
      numbers.push_back(r);
    }
    std::vector<Tensor> gradients = gradients_of_record(record_, weights, moving_);
    std::vector<Tensor> targets, along;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined() || !moving_[i]) continue;
      targets.push_back(gradients[i]);
      along.push_back(tangents_[i]);
    }
    std::vector<Tensor> found = stet::gradients_of(tape, targets, along, sources), out(outputs_.size());
    for (std::size_t k = 0; k < numbers.size(); ++k) out[numbers[k]] = found[k];
    return out;
  }

  const TapeRecord& record_;
  const std::vector<Tensor>& tangents_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<bool> moving_;
};

}  // namespace

std::vector<Tensor> tangents_of(GradientTape::State& tape, const std::vector<Tensor>& targets,
                                const std::vector<TapeSource>& sources, const std::vector<Tensor>& tangents) {
  PausedTape paused(tape);
  std::unordered_map<std::uint64_t, Tensor> known;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!tangents[i].defined()) continue;
    if (sources[i].variable == 0) known[sources[i].tensor] = tangents[i];
    for (const GradientTape::State::Reading& reading : tape.reads)
      if (sources[i].variable != 0 && reading.variable == sources[i].variable) known[reading.tensor] = tangents[i];
  }
  for (const TapeRecord& record : tape.records) {
    std::vector<Tensor> moving;
    bool any = false;
    for (std::size_t i = 0; i < record.inputs.size(); ++i) {
      auto found = known.find(record.inputs[i].identity);
      moving.push_back(found == known.end() || !record.followed[i] ? Tensor() : found->second);
      any = any || moving.back().defined();
    }
    if (!any) continue;
    std::vector<Tensor> out = ForwardStep(record, moving).run();
    for (std::size_t r = 0; r < out.size(); ++r)
      if (out[r].defined() && is_floating(record.outputs[r].tensor.dtype())) known[record.outputs[r].identity] = out[r];
  }
  std::vector<Tensor> out;
  for (const Tensor& target : targets) {
    auto found = known.find(identity_of(*target.node()));
    out.push_back(found == known.end() ? Tensor() : found->second);
  }
  return out;
}

}  // namespace stet

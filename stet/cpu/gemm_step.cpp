#include "stet/cpu/gemm_step.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"

namespace stet::cpu {

class BoundGemm : public BoundStep {
 public:
  BoundGemm(const GemmStep& step, const Bindings& bindings) : kernel_(step.kernel_) {
    const ContractionSpec& spec = step.spec_;
    arguments_.m = spec.m.evaluate(bindings);
    arguments_.n = spec.n.evaluate(bindings);
    arguments_.k = spec.k.evaluate(bindings);
    std::int64_t left_row = spec.transpose_left ? arguments_.m : arguments_.k;
    std::int64_t right_row = spec.transpose_right ? arguments_.k : arguments_.n;
    places_.push_back(place(spec.left, left_row, bindings));
    places_.push_back(place(spec.right, right_row, bindings));
    places_.push_back(place(spec.result, arguments_.n, bindings));
    for (const MatrixPlace& operand : spec.operands) places_.push_back(place(operand, arguments_.n, bindings));
    for (const Dim& extent : spec.batch) batch_.push_back(extent.evaluate(bindings));
    for (std::int64_t extent : batch_) empty_ |= extent == 0;
    merge_batch_axes();
    fold_batch_into_rows(spec);
    together_ = axes_of_a_call();
  }

  void run(void* const* table) const override {
    if (empty_) return;
    GemmArguments arguments = arguments_;
    std::vector<GemmOperand> operands(places_.size() - 3);
    arguments.operands = operands;
    std::int64_t calls = 1;
    for (std::size_t axis = 0; axis < batch_.size() - together_; ++axis) calls *= batch_[axis];
    if (together_ > 0) arguments.batch = batch_.back();
    if (together_ > 1) arguments.outer = batch_[batch_.size() - 2];
    for (std::int64_t call = 0; call < calls; ++call) {
      arguments.left = matrix(places_[0], table, call);
      arguments.right = matrix(places_[1], table, call);
      arguments.result = matrix(places_[2], table, call);
      for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = matrix(places_[i + 3], table, call);
      kernel_->run(arguments);
    }
  }

 private:
  struct BoundPlace {
    int buffer;
    int element_bytes;
    std::int64_t offset, leading, extent;
    std::vector<std::int64_t> batch_strides;
  };

  BoundPlace place(const MatrixPlace& given, std::int64_t row, const Bindings& bindings) const {
    BoundPlace out{given.buffer,
                   0,
                   given.offset.evaluate(bindings),
                   given.leading.evaluate(bindings),
                   given.extent.evaluate(bindings),
                   {}};
    // A matrix of one row may come with any stride between rows.
    out.leading = std::max(out.leading, row);
    out.extent -= out.offset;
    for (const Dim& stride : given.batch_strides) out.batch_strides.push_back(stride.evaluate(bindings));
    out.element_bytes = given.element_bytes;
    return out;
  }

  /// Batch axes that every matrix walks as one become one.
  void merge_batch_axes() {
    for (std::size_t axis = 0; axis + 1 < batch_.size();) {
      bool together = std::all_of(places_.begin(), places_.end(), [&](const BoundPlace& p) {
        return p.batch_strides[axis] == p.batch_strides[axis + 1] * batch_[axis + 1];
      });
      if (!together) {
        ++axis;
        continue;
      }
      batch_[axis + 1] *= batch_[axis];
      batch_.erase(batch_.begin() + static_cast<std::ptrdiff_t>(axis));
      for (BoundPlace& p : places_) p.batch_strides.erase(p.batch_strides.begin() + static_cast<std::ptrdiff_t>(axis));
      axis = axis > 0 ? axis - 1 : 0;
    }
  }

  /// One right matrix for all: the batch is just more rows.
  void fold_batch_into_rows(const ContractionSpec& spec) {
    if (batch_.size() != 1 || spec.transpose_left) return;
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].batch_strides[0] != (i < 3 ? matrix_after(i) : operand_after(spec.epilogue.operands[i - 3], i)))
        return;
    arguments_.m *= batch_[0];
    batch_.clear();
    for (BoundPlace& p : places_) p.batch_strides.clear();
  }
  /// How far the next matrix is from this one where its rows follow this one's.
  std::int64_t matrix_after(std::size_t i) const { return i == 1 ? 0 : places_[i].leading * arguments_.m; }
  std::int64_t operand_after(EpilogueOperand kind, std::size_t i) const {
    if (kind == EpilogueOperand::full) return places_[i].leading * arguments_.m;
    return kind == EpilogueOperand::per_row ? arguments_.m : 0;
  }

  /// How many of the last batch axes one call of the kernel takes: it wants strides that are not negative.
  std::size_t axes_of_a_call() const {
    if (batch_.size() < 2) return batch_.size();
    const std::size_t outer = batch_.size() - 2;
    return std::all_of(places_.begin(), places_.end(), [&](const BoundPlace& p) { return p.batch_strides[outer] >= 0; })
               ? 2
               : 1;
  }

  GemmMatrix matrix(const BoundPlace& p, void* const* table, std::int64_t call) const {
    std::int64_t offset = p.offset;
    for (std::size_t axis = batch_.size() - together_; axis-- > 0;) {
      offset += call % batch_[axis] * p.batch_strides[axis];
      call /= batch_[axis];
    }
    std::int64_t moved = offset - p.offset;
    return {static_cast<const char*>(table[p.buffer]) + offset * p.element_bytes, p.leading,
            together_ > 0 ? p.batch_strides.back() : 0, p.extent - moved,
            together_ > 1 ? p.batch_strides[batch_.size() - 2] : 0};
  }

  std::shared_ptr<const GemmKernel> kernel_;
  GemmArguments arguments_;
  std::vector<BoundPlace> places_;  // left, right, result, epilogue operands
  std::vector<std::int64_t> batch_;
  std::size_t together_ = 0;
  bool empty_ = false;
};

GemmStep::GemmStep(ContractionSpec spec) : spec_(std::move(spec)) {
  GemmSpec product;
  product.dtype = spec_.dtype;
  product.transpose_left = spec_.transpose_left;
  product.transpose_right = spec_.transpose_right;
  product.epilogue = spec_.epilogue;
  kernel_ = std::make_shared<GemmKernel>(std::move(product));
  reads = {spec_.left.buffer, spec_.right.buffer};
  for (const MatrixPlace& operand : spec_.operands) reads.push_back(operand.buffer);
  writes = {spec_.result.buffer};
}

std::unique_ptr<BoundStep> GemmStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundGemm>(*this, bindings);
}

std::string GemmStep::str() const {
  std::string out = text("gemm ", spec_.dtype, " ", spec_.transpose_left ? "T" : "N", spec_.transpose_right ? "T" : "N",
                         " m=", spec_.m, " n=", spec_.n, " k=", spec_.k);
  for (const Dim& extent : spec_.batch) out += text(" batch=", extent);
  if (spec_.epilogue.expression.defined()) out += text(" epilogue=", spec_.epilogue.expression);
  return out + "\n";
}

std::string GemmStep::title() const {
  std::string out =
      text("gemm ", spec_.dtype, " ", spec_.transpose_left ? "T" : "N", spec_.transpose_right ? "T" : "N");
  for (const Dim& extent : spec_.batch) out += text(" ", extent, " of");
  out += text(" m=", spec_.m, " n=", spec_.n, " k=", spec_.k);
  if (spec_.epilogue.expression.defined()) out += text(", then ", spec_.epilogue.expression);
  return out;
}

std::vector<CodeRequest> GemmStep::code_requests() const {
  auto hinted = [](const Dim& dim) { return dim.hint().value_or(64); };
  return kernel_->code_requests(hinted(spec_.m), hinted(spec_.n), hinted(spec_.k));
}

}  // namespace stet::cpu

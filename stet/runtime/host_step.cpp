#include "stet/runtime/host_step.h"

#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"

namespace stet {
namespace {

struct BoundOperand {
  int buffer;
  DType dtype;
  std::vector<std::int64_t> sizes;
  std::size_t bytes;
};

std::vector<BoundOperand> bound(const std::vector<HostStep::Operand>& operands, const Bindings& bindings) {
  std::vector<BoundOperand> out;
  for (const HostStep::Operand& operand : operands) {
    std::vector<std::int64_t> sizes = operand.shape.evaluate(bindings);
    auto bytes = static_cast<std::size_t>(size_of(operand.dtype));
    for (std::int64_t size : sizes) bytes *= static_cast<std::size_t>(size);
    out.push_back({operand.buffer, operand.dtype, std::move(sizes), bytes});
  }
  return out;
}

class BoundHostStep : public BoundStep {
 public:
  BoundHostStep(Device& device, HostCodePointer code, std::vector<BoundOperand> inputs,
                std::vector<BoundOperand> results)
      : device_(device), code_(std::move(code)), inputs_(std::move(inputs)), results_(std::move(results)) {}

  void run(void* const* table) const override {
    std::vector<HostValue> values;
    std::vector<HostPlace> places;
    std::vector<Buffer> copies;
    for (const BoundOperand& input : inputs_) {
      const void* data = table[input.buffer];
      if (!device_.is_host()) {
        copies.push_back(Buffer::allocate(input.bytes));
        if (input.bytes > 0) device_.copy_out(copies.back().data(), data, input.bytes);
        data = copies.back().data();
      }
      values.push_back({input.dtype, input.sizes, data});
    }
    for (const BoundOperand& result : results_) {
      void* data = table[result.buffer];
      if (!device_.is_host()) {
        copies.push_back(Buffer::allocate(result.bytes));
        data = copies.back().data();
      }
      places.push_back({result.dtype, result.sizes, data});
    }
    code_->run(values, places);
    if (device_.is_host()) return;
    for (std::size_t r = 0; r < results_.size(); ++r)
      if (results_[r].bytes > 0) device_.copy_in(table[results_[r].buffer], places[r].data, results_[r].bytes);
  }

 private:
  Device& device_;
  HostCodePointer code_;
  std::vector<BoundOperand> inputs_, results_;
};

}  // namespace

HostStep::HostStep(Device& device, HostCodePointer code, std::vector<Operand> inputs, std::vector<Operand> results)
    : device_(device), code_(std::move(code)), inputs_(std::move(inputs)), results_(std::move(results)) {
  for (const Operand& input : inputs_) reads.push_back(input.buffer);
  for (const Operand& result : results_) writes.push_back(result.buffer);
}

std::unique_ptr<BoundStep> HostStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundHostStep>(device_, code_, bound(inputs_, bindings), bound(results_, bindings));
}

std::string HostStep::str() const {
  std::string out = code_->str();
  for (const Operand& input : inputs_) out += text(" buffer ", input.buffer);
  if (!results_.empty()) out += " ->";
  for (const Operand& result : results_) out += text(" buffer ", result.buffer);
  return out;
}

}  // namespace stet

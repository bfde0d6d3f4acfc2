// The CPU as a Target and a Device: the first of both.
#include <cstring>

#include "stet/cpu/convolution_step.h"
#include "stet/cpu/gemm_step.h"
#include "stet/cpu/kernel_step.h"
#include "stet/cpu/linalg_step.h"
#include "stet/cpu/line_steps.h"
#include "stet/cpu/pool_step.h"
#include "stet/cpu/positions_step.h"
#include "stet/cpu/rows_step.h"
#include "stet/cpu/scatter_step.h"
#include "stet/cpu/transpose_step.h"
#include "stet/runtime/device.h"
#include "stet/runtime/target.h"

namespace stet::cpu {
namespace {

class CpuTarget : public Target {
 public:
  std::unique_ptr<Step> kernel(KernelLaunch launch) const override {
    if (TransposeStep::is_one(launch)) return std::make_unique<TransposeStep>(std::move(launch));
    return std::make_unique<KernelStep>(std::move(launch));
  }
  std::unique_ptr<Step> rows(RowLaunch launch) const override { return std::make_unique<RowsStep>(std::move(launch)); }
  std::unique_ptr<Step> contraction(ContractionSpec spec) const override {
    return std::make_unique<GemmStep>(std::move(spec));
  }
  std::unique_ptr<Step> convolution(ConvolutionSpec spec) const override {
    return std::make_unique<ConvolutionStep>(std::move(spec));
  }
  std::unique_ptr<Step> scan(ScanSpec spec, Lines lines, int from, int to) const override {
    return std::make_unique<ScanStep>(std::move(spec), std::move(lines), from, to);
  }
  std::unique_ptr<Step> sort(SortSpec spec) const override { return std::make_unique<SortStep>(std::move(spec)); }
  std::unique_ptr<Step> search(SearchSpec spec) const override { return std::make_unique<SearchStep>(std::move(spec)); }
  std::unique_ptr<Step> scatter(ScatterSpec spec, KernelCheck check) const override {
    return std::make_unique<ScatterStep>(std::move(spec), std::move(check));
  }
  std::unique_ptr<Step> pool(PoolSpec spec) const override { return std::make_unique<PoolStep>(std::move(spec)); }
  std::unique_ptr<Step> positions(PositionsSpec spec) const override {
    return std::make_unique<PositionsStep>(std::move(spec));
  }
  std::unique_ptr<Step> linalg(LinalgSpec spec) const override { return std::make_unique<LinalgStep>(std::move(spec)); }

  bool contracts(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

  /// One request for all of them: what is missing is compiled on several threads.
  void provide_code(std::span<Step* const> steps) const override {
    std::vector<CodeRequest> requests;
    std::vector<CodeStep*> owners;
    std::vector<std::size_t> ends;
    for (Step* step : steps)
      if (auto* owner = dynamic_cast<CodeStep*>(step)) {
        for (CodeRequest& request : owner->code_requests()) requests.push_back(std::move(request));
        owners.push_back(owner);
        ends.push_back(requests.size());
      }
    std::vector<Code> code = shared_code(requests);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      owners[i]->hold_code(
          {code.begin() + static_cast<std::ptrdiff_t>(begin), code.begin() + static_cast<std::ptrdiff_t>(ends[i])});
      begin = ends[i];
    }
  }
  std::uint64_t mode() const override {
    return static_cast<std::uint64_t>(checked_kernels()) | static_cast<std::uint64_t>(!library_convolutions()) << 1;
  }
};

class CpuDevice : public Device {
 public:
  const char* name() const override { return "cpu"; }
  const Target& target() const override { return target_; }
  Buffer allocate(std::size_t bytes) override { return Buffer::allocate(bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void wait() override {}  // a program has run when its call returns

 private:
  CpuTarget target_;
};

}  // namespace
}  // namespace stet::cpu

namespace stet {

Device& Device::host() {
  static Device* const device = new cpu::CpuDevice;  // never destroyed: see base/thread_end.h
  return *device;
}

}  // namespace stet

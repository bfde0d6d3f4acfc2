#include "stet/cpu/positions_step.h"

#include <utility>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"

namespace stet::cpu {
namespace {

class BoundPositions : public BoundStep {
 public:
  BoundPositions(int flags, int positions, std::vector<std::int64_t> sizes)
      : flags_(flags), positions_(positions), sizes_(std::move(sizes)) {}
  void run(void* const* table) const override {
    const auto* flag = static_cast<const unsigned char*>(table[flags_]);
    auto* out = static_cast<std::int64_t*>(table[positions_]);
    std::int64_t count = 1;
    for (std::int64_t size : sizes_) count *= size;
    std::vector<std::int64_t> index(sizes_.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      if (flag[i])
        for (std::int64_t position : index) *out++ = position;
      for (std::size_t axis = sizes_.size(); axis-- > 0 && ++index[axis] == sizes_[axis];) index[axis] = 0;
    }
  }

 private:
  int flags_, positions_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

PositionsStep::PositionsStep(PositionsSpec spec) : spec_(std::move(spec)) {
  reads = {spec_.flags};
  writes = {spec_.positions};
}

std::unique_ptr<BoundStep> PositionsStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundPositions>(spec_.flags, spec_.positions, spec_.shape.evaluate(bindings));
}

std::string PositionsStep::str() const { return text("positions of non-zero elements in ", spec_.shape, "\n"); }

}  // namespace stet::cpu

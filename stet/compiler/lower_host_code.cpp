#include "stet/compiler/lower_host_code.h"

#include <utility>

#include "stet/runtime/host_step.h"

namespace stet {

void lower_host_code(LowerCall& call) {
  const auto& host = call.attributes<HostCodeAttributes>();
  std::vector<HostStep::Operand> inputs, results;
  for (int i = 0; i < static_cast<int>(call.node().inputs.size()); ++i)
    inputs.push_back({call.dense(i).buffer, call.in(i).dtype, call.in(i).shape});
  if (!host.dtypes.empty()) {
    std::vector<Place> places = call.results();
    for (std::size_t r = 0; r < places.size(); ++r) {
      const ValueType& type = call.node().results[r];
      // The code fills in all of them, also those that nobody reads.
      if (places[r].buffer < 0) places[r] = call.temporary(type.dtype, type.shape);
      results.push_back({places[r].buffer, type.dtype, type.shape});
    }
  }
  call.step(std::make_unique<HostStep>(call.device(), host.code, std::move(inputs), std::move(results)));
}

}  // namespace stet

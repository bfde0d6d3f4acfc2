#include "stet/cpu/line_steps.h"

#include <functional>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/cpu/sort.h"

namespace stet::cpu {
namespace {

/// A step whose sizes are known and that is one call.
class BoundCall : public BoundStep {
 public:
  explicit BoundCall(std::function<void(void* const*)> call) : call_(std::move(call)) {}
  void run(void* const* table) const override { call_(table); }

 private:
  std::function<void(void* const*)> call_;
};

}  // namespace

ScanStep::ScanStep(ScanSpec spec, Lines lines, int from, int to)
    : kernel_(std::move(spec)), lines_(std::move(lines)), from_(from), to_(to) {
  reads = {from_};
  writes = {to_};
}

std::unique_ptr<BoundStep> ScanStep::bind(const Bindings& bindings) const {
  ScanArguments arguments;
  arguments.outer = lines_.outer.evaluate(bindings);
  arguments.length = lines_.length.evaluate(bindings);
  arguments.inner = lines_.inner.evaluate(bindings);
  arguments.from_extent = arguments.to_extent = arguments.outer * arguments.length * arguments.inner;
  return std::make_unique<BoundCall>([kernel = kernel_, arguments, from = from_, to = to_](void* const* table) {
    ScanArguments mine = arguments;
    mine.from = table[from];
    mine.to = table[to];
    kernel.run(mine);
  });
}

std::string ScanStep::str() const {
  const ScanSpec& spec = kernel_.spec();
  return text("scan ", spec.stored, " by ", spec.combine, spec.reverse ? " backwards" : "",
              spec.exclusive ? " without the element" : "", " of [", lines_.outer, ",", lines_.length, ",",
              lines_.inner, "]\n");
}

std::vector<CodeRequest> ScanStep::code_requests() const {
  auto hinted = [](const Dim& dim) { return dim.hint().value_or(64); };
  return kernel_.code_requests(hinted(lines_.outer), hinted(lines_.length), hinted(lines_.inner));
}

SortStep::SortStep(SortSpec spec) : spec_(std::move(spec)) {
  reads = {spec_.from};
  for (int buffer : {spec_.values, spec_.positions})
    if (buffer >= 0) writes.push_back(buffer);
}

std::unique_ptr<BoundStep> SortStep::bind(const Bindings& bindings) const {
  SortArguments arguments;
  arguments.dtype = spec_.dtype;
  arguments.descending = spec_.descending;
  arguments.outer = spec_.lines.outer.evaluate(bindings);
  arguments.length = spec_.lines.length.evaluate(bindings);
  arguments.inner = spec_.lines.inner.evaluate(bindings);
  arguments.kept = spec_.kept.evaluate(bindings);
  return std::make_unique<BoundCall>(
      [arguments, from = spec_.from, values = spec_.values, positions = spec_.positions](void* const* table) {
        SortArguments mine = arguments;
        mine.from = table[from];
        if (values >= 0) mine.values = table[values];
        if (positions >= 0) mine.positions = static_cast<std::int64_t*>(table[positions]);
        sort(mine);
      });
}

std::string SortStep::str() const {
  return text("sort ", spec_.dtype, spec_.descending ? " from the largest" : "", " of [", spec_.lines.outer, ",",
              spec_.lines.length, ",", spec_.lines.inner, "], first ", spec_.kept, "\n");
}

SearchStep::SearchStep(SearchSpec spec) : spec_(std::move(spec)) {
  reads = {spec_.lines, spec_.elements};
  writes = {spec_.positions};
}

std::unique_ptr<BoundStep> SearchStep::bind(const Bindings& bindings) const {
  SearchArguments arguments;
  arguments.dtype = spec_.dtype;
  arguments.right = spec_.right;
  arguments.outer = spec_.outer.evaluate(bindings);
  arguments.length = spec_.length.evaluate(bindings);
  arguments.count = spec_.count.evaluate(bindings);
  return std::make_unique<BoundCall>([arguments, spec = spec_](void* const* table) {
    SearchArguments mine = arguments;
    mine.lines = table[spec.lines];
    mine.elements = table[spec.elements];
    mine.positions = static_cast<std::int64_t*>(table[spec.positions]);
    search_sorted(mine);
  });
}

std::string SearchStep::str() const {
  return text("search ", spec_.count, " of ", spec_.dtype, " in lines of ", spec_.length, "\n");
}

}  // namespace stet::cpu

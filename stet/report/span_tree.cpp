#include "stet/report/span_tree.h"

namespace stet::reporting {

using recording::Kind;

SpanTree::SpanTree(const Recorded& recorded) : facts_(recorded.spans.size()), threads_(recorded.threads.size()) {
  const std::vector<RecordedSpan>& spans = recorded.spans;
  std::vector<std::uint32_t> open;                               // the spans around this one
  std::vector<std::uint32_t> open_calls(recorded.names.size());  // by name
  auto is_call = [&](std::uint32_t i) { return recorded.kind_of(spans[i]) == Kind::call; };
  auto close = [&] {
    if (is_call(open.back())) --open_calls[spans[open.back()].name];
    open.pop_back();
  };
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    const RecordedSpan& span = spans[i];
    if (i == 0 || spans[i - 1].thread != span.thread) {
      while (!open.empty()) close();
      threads_[span.thread].first = i;
    }
    threads_[span.thread].second = i + 1;
    while (!open.empty() && spans[open.back()].end() <= span.begin) close();
    Facts& facts = facts_[i];
    if (!open.empty()) {
      const std::uint32_t parent = open.back();
      const std::optional<Kind> around = recorded.kind_of(spans[parent]);
      const Facts& outer = facts_[parent];
      facts.parent = parent;
      facts.call = around == Kind::call ? parent : outer.call;
      facts.step = around == Kind::step ? parent : outer.step;
      facts.around = outer.around != Around::nothing ? outer.around
                     : around == Kind::wait          ? Around::wait
                     : around == Kind::trace         ? Around::trace
                     : around == Kind::audit         ? Around::audit
                                                     : Around::nothing;
    }
    if (is_call(i)) facts.in_call_of_its_name = open_calls[span.name]++ > 0;
    open.push_back(i);
  }
}

}  // namespace stet::reporting

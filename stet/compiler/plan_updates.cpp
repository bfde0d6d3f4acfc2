#include "stet/compiler/plan_updates.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"

namespace stet {
namespace {

bool contains(const std::vector<int>& list, int number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

/// The step that writes `buffer`; -1 if there is none or more than one.
int only_writer(const Program& program, int buffer) {
  int writer = -1;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (!contains(program.steps[s]->writes, buffer)) continue;
    if (writer >= 0) return -1;
    writer = static_cast<int>(s);
  }
  return writer;
}

/// K itself may have result `to` in the memory of `from`.
bool may_overwrite(const Step& step, int from, int to) {
  return !step.may_throw() && (!contains(step.reads, from) || step.pointwise(from, to));
}

/// What must run before what. Steps are numbered as they stand; one number more is the commit, which every step that
/// may throw precedes.
class StepOrder {
 public:
  explicit StepOrder(const Program& program)
      : program_(program), commit_(program.steps.size()), after_(program.steps.size() + 1) {
    // Readers come after the last writer, and the next writer after them.
    std::vector<int> writer(program.buffers.size(), -1);
    std::vector<std::vector<int>> readers(program.buffers.size());
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      const Step& step = *program.steps[s];
      int number = static_cast<int>(s);
      for (int buffer : step.reads) {
        auto at = static_cast<std::size_t>(buffer);
        if (writer[at] >= 0) add(writer[at], number);
        readers[at].push_back(number);
      }
      for (int buffer : step.writes) {
        auto at = static_cast<std::size_t>(buffer);
        if (writer[at] >= 0) add(writer[at], number);
        for (int reader : readers[at]) add(reader, number);
        readers[at].clear();
        writer[at] = number;
      }
      if (step.may_throw()) add(number, commit());
    }
  }

  int commit() const { return static_cast<int>(commit_); }
  void add(int before, int after) {
    if (before != after) after_[static_cast<std::size_t>(before)].push_back(after);
  }
  /// Everything that runs after `from`.
  std::vector<bool> followers(int from) const {
    std::vector<bool> seen(after_.size(), false);
    std::vector<int> open{from};
    while (!open.empty()) {
      int at = open.back();
      open.pop_back();
      for (int next : after_[static_cast<std::size_t>(at)]) {
        if (seen[static_cast<std::size_t>(next)]) continue;
        seen[static_cast<std::size_t>(next)] = true;
        open.push_back(next);
      }
    }
    return seen;
  }

  /// The steps in an order that obeys; the lowest number first among those that may come next.
  std::vector<int> sorted() const {
    std::vector<int> waiting(after_.size(), 0);
    for (const std::vector<int>& list : after_)
      for (int next : list) ++waiting[static_cast<std::size_t>(next)];
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (std::size_t s = 0; s < after_.size(); ++s)
      if (waiting[s] == 0) ready.push(static_cast<int>(s));
    std::vector<int> out;
    while (!ready.empty()) {
      int step = ready.top();
      ready.pop();
      if (step != commit()) out.push_back(step);
      for (int next : after_[static_cast<std::size_t>(step)])
        if (--waiting[static_cast<std::size_t>(next)] == 0) ready.push(next);
    }
    if (out.size() != program_.steps.size()) throw InternalError("planned updates wait for each other");
    return out;
  }

 private:
  const Program& program_;
  std::size_t commit_;
  std::vector<std::vector<int>> after_;
};

/// Makes the update go in place if that is possible: gives the order what it needs, and says whether it did.
bool place(const Program& program, const Update& update, StepOrder& order) {
  const ProgramInput& input = program.inputs[static_cast<std::size_t>(update.input)];
  const ProgramResult& result = program.results[static_cast<std::size_t>(update.result)];
  int from = update.input, to = result.buffer;
  const ProgramBuffer &old = program.buffers[static_cast<std::size_t>(from)],
                      &next = program.buffers[static_cast<std::size_t>(to)];
  if (!input.strides.empty() || old.dtype != next.dtype || !identical(old.elements, next.elements)) return false;
  int writer = only_writer(program, to);
  if (writer < 0 || !may_overwrite(*program.steps[static_cast<std::size_t>(writer)], from, to)) return false;
  std::vector<bool> later = order.followers(writer);
  if (later[static_cast<std::size_t>(order.commit())]) return false;
  std::vector<int> readers;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    if (static_cast<int>(s) == writer || !contains(program.steps[s]->reads, from)) continue;
    if (later[s]) return false;
    readers.push_back(static_cast<int>(s));
  }
  for (int reader : readers) order.add(reader, writer);
  order.add(order.commit(), writer);
  return true;
}

std::int64_t size_of_update(const Program& program, const Update& update) {
  const ProgramResult& result = program.results[static_cast<std::size_t>(update.result)];
  const ProgramBuffer& buffer = program.buffers[static_cast<std::size_t>(result.buffer)];
  return buffer.elements.hint().value_or(0) * size_of(buffer.dtype);
}

}  // namespace

void plan_updates(Program& program, std::span<const Update> updates) {
  program.in_place.assign(program.results.size(), -1);
  if (!program.late.empty() || updates.empty()) return;
  std::vector<Update> largest_first(updates.begin(), updates.end());
  std::stable_sort(largest_first.begin(), largest_first.end(), [&](const Update& a, const Update& b) {
    return size_of_update(program, a) > size_of_update(program, b);
  });
  StepOrder order(program);
  for (const Update& update : largest_first)
    if (place(program, update, order)) program.in_place[static_cast<std::size_t>(update.result)] = update.input;
  std::vector<std::unique_ptr<Step>> steps;
  for (int step : order.sorted()) steps.push_back(std::move(program.steps[static_cast<std::size_t>(step)]));
  program.steps = std::move(steps);
  for (std::size_t r = 0; r < program.results.size(); ++r)
    if (program.in_place[r] >= 0)
      program.steps[static_cast<std::size_t>(only_writer(program, program.results[r].buffer))]->overwrites = true;
  verify_updates(program);
}

void verify_updates(const Program& program) {
  std::vector<bool> overwritten(program.buffers.size(), false);
  bool committing = false;
  auto fail = [&](std::size_t step, const char* what) {
    throw InternalError(text("step ", step, " ", what, "\n", program.str()));
  };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = *program.steps[s];
    for (int buffer : step.reads)
      if (overwritten[static_cast<std::size_t>(buffer)]) fail(s, "reads state that is overwritten already");
    for (std::size_t r = 0; r < program.results.size(); ++r) {
      int from = program.in_place[r], to = program.results[r].buffer;
      if (from < 0 || !contains(step.writes, to)) continue;
      if (overwritten[static_cast<std::size_t>(from)]) fail(s, "overwrites state that is overwritten already");
      if (!may_overwrite(step, from, to)) fail(s, "cannot overwrite what it reads");
      overwritten[static_cast<std::size_t>(from)] = true;
      committing = true;
    }
    if (committing && step.may_throw()) fail(s, "may throw after state was overwritten");
  }
}

}  // namespace stet

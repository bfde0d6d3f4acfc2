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

/// By buffer: the steps that read and those that write it, in their order.
class BufferUsers {
 public:
  explicit BufferUsers(const Program& program) : readers_(program.buffers.size()), writers_(program.buffers.size()) {
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      note(readers_, program.steps[s]->reads, static_cast<int>(s));
      note(writers_, program.steps[s]->writes, static_cast<int>(s));
    }
  }
  const std::vector<int>& readers_of(int buffer) const { return readers_[static_cast<std::size_t>(buffer)]; }
  const std::vector<int>& writers_of(int buffer) const { return writers_[static_cast<std::size_t>(buffer)]; }
  /// The step that writes `buffer`; -1 if there is none or more than one.
  int only_writer(int buffer) const { return writers_of(buffer).size() == 1 ? writers_of(buffer)[0] : -1; }

 private:
  static void note(std::vector<std::vector<int>>& users, const std::vector<int>& buffers, int step) {
    for (int buffer : buffers) {
      std::vector<int>& list = users[static_cast<std::size_t>(buffer)];
      if (list.empty() || list.back() != step) list.push_back(step);
    }
  }
  std::vector<std::vector<int>> readers_, writers_;
};

/// K itself may have result `to` in the memory of `from`.
bool may_overwrite(const Step& step, int from, int to) {
  return !step.may_throw() && (!contains(step.reads, from) || step.pointwise(from, to));
}

/// What must run before what. Steps are numbered as they stand; one number more is the commit, which every step that
/// may throw precedes.
///
/// Steps have places in an order that obeys all of it, kept up as more is asked for (the way of Pearce and Kelly): what
/// can follow a step stands after it, so that a question about two steps looks at what stands between them alone, and
/// mostly at nothing.
class StepOrder {
 public:
  explicit StepOrder(const Program& program)
      : program_(program),
        commit_(program.steps.size()),
        after_(program.steps.size() + 1),
        before_(program.steps.size() + 1),
        seen_(program.steps.size() + 1, 0) {
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
    place_first();
  }

  /// Puts `step` behind the commit and behind all of `others`; false, and nothing changed, if one of them follows it.
  bool put_last(int step, const std::vector<int>& others) {
    if (place(step) < place(commit())) return false;  // the commit follows it
    int end = place(step);
    for (int other : others) end = std::max(end, place(other));
    std::vector<int> followers = reached({step}, after_, [&](int at) { return place(at) <= end; });
    for (int other : others)
      if (was_reached(other)) return false;
    std::vector<int> late;  // of the others: those that do not stand before it yet
    for (int other : others)
      if (place(other) > place(step)) late.push_back(other);
    std::vector<int> leaders = reached(late, before_, [&](int at) { return place(at) > place(step); });
    exchange(leaders, followers);
    for (int other : others) add(other, step);
    add(commit(), step);
    return true;
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

  std::size_t visits() const { return visits_; }

 private:
  int commit() const { return static_cast<int>(commit_); }
  int& place(int step) { return place_[static_cast<std::size_t>(step)]; }
  void add(int before, int after) {
    if (before == after) return;
    after_[static_cast<std::size_t>(before)].push_back(after);
    before_[static_cast<std::size_t>(after)].push_back(before);
  }

  /// What the commit needs, then the commit, then the rest: what is put behind the commit is no other than what does
  /// not lead to it, so that this never changes.
  void place_first() {
    reached({commit()}, before_, [](int) { return true; });
    place_.assign(after_.size(), 0);
    int next = 0;
    for (int step = 0; step < commit(); ++step)
      if (was_reached(step)) place(step) = next++;
    place(commit()) = next++;
    for (int step = 0; step < commit(); ++step)
      if (!was_reached(step)) place(step) = next++;
  }

  /// `from` and everything that `next` leads to from there through steps that are `within`.
  template <class Within>
  std::vector<int> reached(const std::vector<int>& from, const std::vector<std::vector<int>>& next,
                           const Within& within) {
    ++search_;
    std::vector<int> out;
    auto meet = [&](int step) {
      ++visits_;
      if (was_reached(step)) return;
      seen_[static_cast<std::size_t>(step)] = search_;
      out.push_back(step);
    };
    for (int step : from) meet(step);
    for (std::size_t i = 0; i < out.size(); ++i)
      for (int step : next[static_cast<std::size_t>(out[i])])
        if (within(step)) meet(step);
    return out;
  }
  bool was_reached(int step) const { return seen_[static_cast<std::size_t>(step)] == search_; }

  /// The places that all of them have, given to `first` and then to `second`; each keeps its own order.
  void exchange(std::vector<int>& first, std::vector<int>& second) {
    if (first.empty()) return;
    std::vector<int> places;
    for (std::vector<int>* steps : {&first, &second}) {
      std::sort(steps->begin(), steps->end(), [&](int a, int b) { return place(a) < place(b); });
      for (int step : *steps) places.push_back(place(step));
    }
    std::sort(places.begin(), places.end());
    std::size_t next = 0;
    for (const std::vector<int>* steps : {&first, &second})
      for (int step : *steps) place(step) = places[next++];
  }

  const Program& program_;
  std::size_t commit_;
  std::vector<std::vector<int>> after_, before_;
  std::vector<int> place_;
  std::vector<int> seen_;  // by step: the search that reached it last
  int search_ = 0;
  std::size_t visits_ = 0;
};

/// Makes the update go in place if that is possible: gives the order what it needs, and says whether it did.
bool place(const Program& program, const BufferUsers& users, const Update& update, StepOrder& order) {
  const ProgramInput& input = program.inputs[static_cast<std::size_t>(update.input)];
  const ProgramResult& result = program.results[static_cast<std::size_t>(update.result)];
  int from = update.input, to = result.buffer;
  const ProgramBuffer &old = program.buffers[static_cast<std::size_t>(from)],
                      &next = program.buffers[static_cast<std::size_t>(to)];
  if (!input.strides.empty() || old.dtype != next.dtype || !identical(old.elements, next.elements)) return false;
  int writer = users.only_writer(to);
  if (writer < 0 || !may_overwrite(*program.steps[static_cast<std::size_t>(writer)], from, to)) return false;
  std::vector<int> readers = users.readers_of(from);
  std::erase(readers, writer);
  return order.put_last(writer, readers);
}

std::int64_t size_of_update(const Program& program, const Update& update) {
  const ProgramResult& result = program.results[static_cast<std::size_t>(update.result)];
  const ProgramBuffer& buffer = program.buffers[static_cast<std::size_t>(result.buffer)];
  return buffer.elements.hint().value_or(0) * size_of(buffer.dtype);
}

}  // namespace

void plan_updates(Program& program, std::span<const Update> updates, std::size_t* visits) {
  program.in_place.assign(program.results.size(), -1);
  if (!program.late.empty() || updates.empty()) return;
  std::vector<Update> largest_first(updates.begin(), updates.end());
  std::stable_sort(largest_first.begin(), largest_first.end(), [&](const Update& a, const Update& b) {
    return size_of_update(program, a) > size_of_update(program, b);
  });
  StepOrder order(program);
  BufferUsers users(program);
  for (const Update& update : largest_first) {
    if (!place(program, users, update, order)) continue;
    program.in_place[static_cast<std::size_t>(update.result)] = update.input;
    int writer = users.only_writer(program.results[static_cast<std::size_t>(update.result)].buffer);
    program.steps[static_cast<std::size_t>(writer)]->overwrites = true;
  }
  if (visits) *visits += order.visits();
  std::vector<std::unique_ptr<Step>> steps;
  for (int step : order.sorted()) steps.push_back(std::move(program.steps[static_cast<std::size_t>(step)]));
  program.steps = std::move(steps);
  verify_updates(program);
}

void verify_updates(const Program& program) {
  std::vector<std::vector<std::size_t>> made(program.steps.size());  // by step: results that it writes over old state
  BufferUsers users(program);
  for (std::size_t r = 0; r < program.results.size(); ++r)
    if (program.in_place[r] >= 0)
      for (int step : users.writers_of(program.results[r].buffer)) made[static_cast<std::size_t>(step)].push_back(r);
  std::vector<bool> overwritten(program.buffers.size(), false);
  bool committing = false;
  auto fail = [&](std::size_t step, const char* what) {
    throw InternalError(text("step ", step, " ", what, "\n", program.str()));
  };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = *program.steps[s];
    for (int buffer : step.reads)
      if (overwritten[static_cast<std::size_t>(buffer)]) fail(s, "reads state that is overwritten already");
    for (std::size_t r : made[s]) {
      int from = program.in_place[r], to = program.results[r].buffer;
      if (overwritten[static_cast<std::size_t>(from)]) fail(s, "overwrites state that is overwritten already");
      if (!may_overwrite(step, from, to)) fail(s, "cannot overwrite what it reads");
      overwritten[static_cast<std::size_t>(from)] = true;
      committing = true;
    }
    if (committing && step.may_throw()) fail(s, "may throw after state was overwritten");
  }
}

}  // namespace stet

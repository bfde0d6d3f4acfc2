#include "stet/runtime/loop_step.h"

#include <algorithm>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/runtime/scalar_memory.h"

namespace stet {
namespace {

/// A program of the loop, ready to be run again and again: pointers that stay the same are set once.
class Repeated {
 public:
  Repeated(const Program& program, const Bindings& bindings) : program_(program.bind(bindings)) {}

  const BoundProgram& bound() const { return *program_; }

  /// One run of the loop: the memory that its turns share.
  class Run {
   public:
    explicit Run(const Repeated& repeated)
        : program_(*repeated.program_),
          inputs(program_.input_count(), nullptr),
          results(program_.result_count(), nullptr),
          arena_(program_.make_arena()) {}
    void turn() { program_.run_into(inputs.data(), results.data(), arena_); }

   private:
    const BoundProgram& program_;

   public:
    std::vector<void*> inputs, results;

   private:
    Buffer arena_;
  };

 private:
  std::shared_ptr<const BoundProgram> program_;
};

class BoundLoop : public BoundStep {
 public:
  BoundLoop(const LoopParts& parts, const Bindings& bindings) : parts_(parts), device_(*parts.body->device) {
    if (parts.turns) turns_ = std::max<std::int64_t>(parts.turns->evaluate(bindings), 0);
    // What is wrong with the sizes of a turn counts only when there is one.
    try {
      if (parts.condition) condition_.emplace(*parts.condition, bindings);
    } catch (const Problem&) {
      condition_problem_ = std::current_exception();
    }
    try {
      body_.emplace(*parts.body, bindings);
    } catch (const Problem&) {
      body_problem_ = std::current_exception();
    }
    auto bytes = [&](const ProgramInput& type) {
      std::int64_t elements = size_of(type.dtype);
      for (const Dim& size : type.shape) elements *= std::max<std::int64_t>(size.evaluate(bindings), 0);
      return static_cast<std::size_t>(elements);
    };
    const std::size_t carried = parts.carried.size();
    for (std::size_t i = 0; i < carried; ++i) carried_bytes_.push_back(bytes(parts.body->inputs[i]));
    for (std::size_t i = 0; i < parts.sequences.size(); ++i)
      element_bytes_.push_back(bytes(parts.body->inputs[carried + i]));
    for (std::size_t r = 0; body_ && r < parts.stacked.size(); ++r) {
      const ProgramResult& result = parts.body->results[carried + r];
      stacked_bytes_.push_back(bytes({result.dtype, result.shape}));
    }
  }

  void run(void* const* table) const override { run_loop(table, nullptr); }

  /// Stacked results of a loop that ends by a condition grow while it runs.
  void run_bringing(void* const* table, std::span<Buffer> brought) const override {
    std::vector<Growing> stacks;
    for (std::size_t r = 0; r < parts_.stacked.size(); ++r) stacks.push_back({{}, 0, stacked_bytes(r)});
    run_loop(table, &stacks);
    for (std::size_t r = 0; r < stacks.size(); ++r)
      brought[r] = stacks[r].memory ? std::move(stacks[r].memory) : device_.allocate(0);
  }

 private:
  /// A stacked result that nobody knows the length of yet.
  struct Growing {
    Buffer memory;
    std::int64_t room;
    std::size_t element_bytes;

    std::byte* element(Device& device, std::int64_t number) {
      if (number >= room) {
        const std::int64_t more = std::max<std::int64_t>(16, room * 2);
        Buffer larger = device.allocate(static_cast<std::size_t>(more) * element_bytes);
        if (number > 0) device.copy(larger.data(), memory.data(), static_cast<std::size_t>(number) * element_bytes);
        memory = std::move(larger);
        room = more;
      }
      return memory.data() + static_cast<std::size_t>(number) * element_bytes;
    }
  };

  std::size_t stacked_bytes(std::size_t r) const { return r < stacked_bytes_.size() ? stacked_bytes_[r] : 0; }

  /// How many turns, where that is known before the first.
  std::optional<std::int64_t> turns_known(void* const* table) const {
    if (parts_.condition) return std::nullopt;
    if (parts_.turns) return turns_;
    return std::max<std::int64_t>(read_scalar<std::int64_t>(device_, table[parts_.count]), 0);
  }

  /// Where carried values lie: each has its result's memory and, if it cannot be updated in place, one more.
  struct Carried {
    void* now;
    void *result, *other;
    bool in_place;
  };

  std::int64_t run_loop(void* const* table, std::vector<Growing>* stacks) const {
    const std::size_t carried = parts_.carried.size(), sequences = parts_.sequences.size();
    const std::optional<std::int64_t> known = turns_known(table);
    Buffer others = device_.allocate(other_bytes());
    std::vector<Carried> values;
    std::size_t at = 0;
    for (std::size_t i = 0; i < carried; ++i) {
      values.push_back({table[parts_.carried[i]], table[parts_.next[i]], others.data() + at, in_place(i)});
      if (!values[i].in_place) at += aligned(carried_bytes_[i]);
    }
    std::int64_t place = 0;
    Buffer place_memory;
    void* place_pointer = &place;
    if (!device_.is_host()) {
      place_memory = device_.allocate(sizeof place);
      place_pointer = place_memory.data();
    }
    std::optional<Repeated::Run> body, condition;
    auto begin = [&](std::optional<Repeated::Run>& run, const std::optional<Repeated>& program,
                     const std::exception_ptr& problem) {
      if (problem) std::rethrow_exception(problem);
      run.emplace(*program);
      run->inputs[carried + sequences] = place_pointer;
      for (std::size_t i = 0; i < parts_.captured.size(); ++i)
        run->inputs[carried + sequences + 1 + i] = table[parts_.captured[i]];
    };
    unsigned char goes_on = 0;
    Buffer answer;
    void* answer_pointer = &goes_on;
    if (parts_.condition) {
      begin(condition, condition_, condition_problem_);
      if (!device_.is_host()) {
        answer = device_.allocate(1);
        answer_pointer = answer.data();
      }
    }
    std::int64_t turn = 0;
    for (;; ++turn) {
      place = parts_.reverse && known ? *known - 1 - turn : turn;
      if (!device_.is_host()) device_.copy_in(place_pointer, &place, sizeof place);
      if (condition) {
        for (std::size_t i = 0; i < carried; ++i) condition->inputs[i] = values[i].now;
        condition->results[0] = answer_pointer;
        condition->turn();
        if (!device_.is_host()) device_.copy_out(&goes_on, answer_pointer, 1);
        if (!goes_on) break;
      } else if (turn == *known) {
        break;
      }
      if (!body) begin(body, body_, body_problem_);
      for (std::size_t i = 0; i < carried; ++i) {
        Carried& value = values[i];
        body->inputs[i] = value.now;
        const bool to_result = value.in_place || (known ? (*known - 1 - turn) % 2 == 0 : turn % 2 == 0);
        body->results[i] = to_result ? value.result : value.other;
        value.now = body->results[i];
      }
      const auto element = static_cast<std::size_t>(place);
      for (std::size_t i = 0; i < sequences; ++i)
        body->inputs[carried + i] = static_cast<std::byte*>(table[parts_.sequences[i]]) + element * element_bytes_[i];
      for (std::size_t r = 0; r < parts_.stacked.size(); ++r)
        body->results[carried + r] =
            stacks ? (*stacks)[r].element(device_, place)
                   : static_cast<std::byte*>(table[parts_.stacked[r]]) + element * stacked_bytes_[r];
      body->turn();
    }
    for (std::size_t i = 0; i < carried; ++i)
      if (values[i].now != values[i].result && carried_bytes_[i] > 0)
        device_.copy(values[i].result, values[i].now, carried_bytes_[i]);
    if (parts_.turns_taken >= 0) device_.copy_in(table[parts_.turns_taken], &turn, sizeof turn);
    return turn;
  }

  static std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  bool in_place(std::size_t i) const {
    return i < parts_.body->in_place.size() && parts_.body->in_place[i] == static_cast<int>(i);
  }
  std::size_t other_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < carried_bytes_.size(); ++i)
      if (!in_place(i)) bytes += aligned(carried_bytes_[i]);
    return bytes;
  }

  const LoopParts& parts_;
  Device& device_;
  std::int64_t turns_ = 0;
  std::optional<Repeated> body_, condition_;
  std::exception_ptr body_problem_, condition_problem_;
  std::vector<std::size_t> carried_bytes_, element_bytes_, stacked_bytes_;
};

}  // namespace

LoopStep::LoopStep(LoopParts parts) : parts_(std::move(parts)) {
  for (const std::vector<int>* list : {&parts_.carried, &parts_.sequences, &parts_.captured})
    reads.insert(reads.end(), list->begin(), list->end());
  if (parts_.count >= 0) reads.push_back(parts_.count);
  for (const std::vector<int>* list : {&parts_.next, &parts_.stacked})
    writes.insert(writes.end(), list->begin(), list->end());
  if (parts_.turns_taken >= 0) writes.push_back(parts_.turns_taken);
  if (parts_.condition) brings = parts_.stacked;
}

std::unique_ptr<BoundStep> LoopStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundLoop>(parts_, bindings);
}

std::vector<Program*> LoopStep::children() const {
  if (parts_.condition) return {parts_.body.get(), parts_.condition.get()};
  return {parts_.body.get()};
}

std::string LoopStep::str() const {
  auto indented = [](const std::string& lines) {
    std::string out, line = "  ";
    for (char c : lines) {
      line += c;
      if (c == '\n') out += std::exchange(line, "  ");
    }
    return out;
  };
  std::string out;
  if (parts_.condition)
    out = text("while\n", indented(parts_.condition->str()));
  else if (parts_.turns)
    out = text(*parts_.turns, parts_.reverse ? " turns, the last first\n" : " turns\n");
  else
    out = text("turns as buffer ", parts_.count, " says\n");
  return out + "do\n" + indented(parts_.body->str());
}

}  // namespace stet

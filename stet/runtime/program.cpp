#include "stet/runtime/program.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/short_array.h"
#include "stet/base/text.h"
#include "stet/runtime/recorded_steps.h"

namespace stet {
namespace {

std::size_t byte_count(const Dim& elements, DType dtype, const Bindings& bindings) {
  std::int64_t count = elements.evaluate(bindings);
  std::int64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, std::int64_t{size_of(dtype)}, &bytes) ||
      bytes > (std::int64_t{1} << 62))
    throw Problem(text("a tensor of ", count, " elements of ", dtype, " is too large"));
  return static_cast<std::size_t>(bytes);
}

/// Does `dim` equal `size`, binding it if it is a symbol that has no value yet?
bool match(const Dim& dim, std::int64_t size, Bindings& bindings) {
  if (dim.is_constant()) return dim.constant() == size;
  if (std::optional<int> symbol = dim.as_symbol()) {
    std::optional<std::int64_t> known = bindings.find(*symbol);
    if (!known) {
      bindings.bind(*symbol, size);
      return true;
    }
    return *known == size;
  }
  return true;  // a polynomial: compared once every symbol has a value
}

/// Steps read constants and do not write them: the table of buffers is one for both, hence the cast.
void* constant_memory(const ProgramBuffer& buffer) {
  return buffer.memory ? static_cast<void*>(buffer.memory.data()) : const_cast<char*>(buffer.bytes.data());
}

bool equal_everywhere(const Dim& dim, std::int64_t size, const Bindings& bindings) {
  return dim.is_constant() || dim.as_symbol() || dim.evaluate(bindings) == size;
}

}  // namespace

void BoundStep::run_bringing(void* const*, std::span<Buffer>) const {
  throw InternalError("a step that brings no memory is asked for it");
}

std::string Step::title() const {
  std::string all = str();
  return all.substr(0, all.find('\n'));
}

bool has_effect(const Step& step) {
  if (step.runs_host_code()) return true;
  for (const Program* child : step.children())
    for (const std::unique_ptr<Step>& inner : child->steps)
      if (has_effect(*inner)) return true;
  return false;
}

std::optional<Bindings> Program::accepts(std::span<const ConcreteInput> given,
                                         std::span<const std::int64_t> dims) const {
  Bindings bindings;
  if (given.size() != inputs.size() || dims.size() != dim_symbols.size()) return std::nullopt;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (given[i].sizes.size() != static_cast<std::size_t>(inputs[i].shape.rank()) ||
        given[i].strides.size() != inputs[i].strides.size())
      return std::nullopt;
  for (std::size_t i = 0; i < dim_symbols.size(); ++i) bindings.bind(dim_symbols[i], dims[i]);
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ProgramInput& input = inputs[i];
      for (int axis = 0; axis < input.shape.rank(); ++axis) {
        std::int64_t size = given[i].sizes[static_cast<std::size_t>(axis)];
        const Dim& dim = input.shape[axis];
        if (round == 0 ? !match(dim, size, bindings) : !equal_everywhere(dim, size, bindings)) return std::nullopt;
      }
      for (std::size_t axis = 0; axis < input.strides.size(); ++axis) {
        const Dim& dim = input.strides[axis];
        std::int64_t stride = given[i].strides[axis];
        if (round == 0 ? !match(dim, stride, bindings) : !equal_everywhere(dim, stride, bindings)) return std::nullopt;
      }
    }
  for (const Fact& fact : facts)
    if (!fact.holds(bindings)) return std::nullopt;
  return bindings;
}

std::shared_ptr<const BoundProgram> Program::bind(Bindings bindings) const {
  recording::Span span(recording::Kind::bind, [] { return "bind"; });
  for (const SizeCheck& check : checks) test_if_known(check, bindings);
  auto bound = std::make_shared<BoundProgram>();
  bound->program_ = shared_from_this();
  bound->bindings_ = std::move(bindings);
  // A program with late sizes is bound when it runs, up to each size in turn.
  if (!late.empty()) return bound;
  for (const ProgramResult& result : results) {
    bound->result_sizes_.push_back(result.shape.evaluate(bound->bindings_));
    bound->result_bytes_.push_back(byte_count(result.shape.element_count(), result.dtype, bound->bindings_));
  }
  for (std::size_t s = 0; s < steps.size(); ++s) bound->steps_.push_back(steps[s]->bind(bound->bindings_));

  std::vector<int> first(buffers.size(), static_cast<int>(steps.size())), last(buffers.size(), -1);
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const std::vector<int>* list : {&steps[s]->reads, &steps[s]->writes})
      for (int buffer : *list) {
        auto id = static_cast<std::size_t>(buffer);
        first[id] = std::min(first[id], static_cast<int>(s));
        last[id] = static_cast<int>(s);
      }
  std::vector<PlannedBlock> blocks;
  std::vector<std::size_t> owners;
  for (std::size_t id = 0; id < buffers.size(); ++id) {
    if (buffers[id].role != ProgramBuffer::temporary) continue;
    blocks.push_back({byte_count(buffers[id].elements, buffers[id].dtype, bound->bindings_), first[id], last[id]});
    owners.push_back(id);
  }
  bound->arena_bytes_ = plan_memory(blocks);
  bound->offsets_.resize(buffers.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) bound->offsets_[owners[i]] = blocks[i].offset;
  return bound;
}

BoundProgram::BoundProgram() = default;
BoundProgram::~BoundProgram() { delete recorded_.load(); }

void BoundProgram::run(void* const* inputs, Buffer* results) const {
  ShortArray<void*, 16> memory(result_bytes_.size());
  for (std::size_t r = 0; r < result_bytes_.size(); ++r) {
    if (!results[r]) results[r] = program_->device->allocate(result_bytes_[r]);
    memory[r] = results[r].data();
  }
  run_table(inputs, memory.data(), make_arena());
}

Buffer BoundProgram::make_arena() const {
  return arena_bytes_ > 0 ? program_->device->allocate(arena_bytes_) : Buffer();
}

void BoundProgram::run_into(void* const* inputs, void* const* results) const {
  run_into(inputs, results, make_arena());
}

void BoundProgram::run_into(void* const* inputs, void* const* results, const Buffer& arena) const {
  if (!has_late_sizes()) return run_table(inputs, results, arena);
  std::vector<Buffer> buffers(program_->results.size());
  std::vector<std::vector<std::int64_t>> sizes;
  run_late(inputs, buffers.data(), sizes);
  for (std::size_t r = 0; r < buffers.size(); ++r) {
    auto bytes = static_cast<std::size_t>(size_of(program_->results[r].dtype));
    for (std::int64_t size : sizes[r]) bytes *= static_cast<std::size_t>(size);
    if (bytes > 0) program_->device->copy(results[r], buffers[r].data(), bytes);
  }
}

void BoundProgram::run_table(void* const* inputs, void* const* results, const Buffer& arena) const {
  const Program& program = *program_;
  std::size_t count = program.buffers.size();
  ShortArray<void*, 24> storage(count);
  void** table = storage.data();
  std::size_t id = 0;
  for (; id < program.inputs.size(); ++id) table[id] = inputs[id];
  for (std::size_t r = 0; r < program.results.size(); ++r, ++id) table[id] = results[r];
  for (; id < count; ++id) {
    const ProgramBuffer& buffer = program.buffers[id];
    if (buffer.role == ProgramBuffer::constant)
      table[id] = constant_memory(buffer);
    else
      table[id] = arena_bytes_ > 0 ? arena.data() + offsets_[id] : nullptr;
  }
  if (recording::on()) [[unlikely]]
    run_recorded(table);
  else
    for (const std::unique_ptr<BoundStep>& step : steps_) step->run(table);
  if (program.raises) std::rethrow_exception(program.raises);
}

void BoundProgram::run_recorded(void* const* table) const {
  const RecordedSteps* steps = recorded_.load(std::memory_order_acquire);
  if (!steps) {
    auto made = std::make_unique<const RecordedSteps>(*program_, bindings_);
    if (recorded_.compare_exchange_strong(steps, made.get())) steps = made.release();
  }
  steps->tell(*program_);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    StepClock clock((*steps)[s]);
    steps_[s]->run(table);
  }
}

void BoundProgram::run_late(void* const* inputs, Buffer* results, std::vector<std::vector<std::int64_t>>& sizes) const {
  const Program& program = *program_;
  Bindings bindings = bindings_;
  std::vector<void*> table(program.buffers.size(), nullptr);
  std::vector<Buffer> owned(program.buffers.size());
  std::copy(inputs, inputs + program.inputs.size(), table.begin());
  for (std::size_t id = 0; id < program.buffers.size(); ++id)
    if (program.buffers[id].role == ProgramBuffer::constant) table[id] = constant_memory(program.buffers[id]);
  auto provide = [&](int number) {
    auto id = static_cast<std::size_t>(number);
    if (table[id]) return;
    owned[id] = program.device->allocate(byte_count(program.buffers[id].elements, program.buffers[id].dtype, bindings));
    table[id] = owned[id].data();
  };
  // Checks of sizes that are not known yet: tested as soon as they are, before anything is read by them.
  std::vector<const SizeCheck*> waiting;
  for (const SizeCheck& check : program.checks)
    if (!test_if_known(check, bindings)) waiting.push_back(&check);
  std::size_t next_late = 0;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = *program.steps[s];
    auto is_brought = [&](int id) {
      return std::find(step.brings.begin(), step.brings.end(), id) != step.brings.end();
    };
    for (int id : step.writes)
      if (!is_brought(id)) provide(id);
    std::unique_ptr<BoundStep> bound = step.bind(bindings);
    std::optional<RecordedStep> told;
    std::optional<StepClock> clock;
    if (recording::on()) clock.emplace(told.emplace(recorded_step(program, s, bindings)));
    if (step.brings.empty()) {
      bound->run(table.data());
    } else {
      std::vector<Buffer> brought(step.brings.size());
      bound->run_bringing(table.data(), brought);
      for (std::size_t i = 0; i < brought.size(); ++i) {
        auto id = static_cast<std::size_t>(step.brings[i]);
        owned[id] = std::move(brought[i]);
        table[id] = owned[id].data();
      }
    }
    clock.reset();
    for (; next_late < program.late.size() && program.late[next_late].after == static_cast<int>(s); ++next_late) {
      const LateSize& size = program.late[next_late];
      std::int64_t value = 0;
      program.device->copy_out(&value, table[static_cast<std::size_t>(size.buffer)], sizeof value);
      bindings.bind(size.symbol, value);
      std::erase_if(waiting, [&](const SizeCheck* check) { return test_if_known(*check, bindings); });
    }
  }
  if (program.raises) std::rethrow_exception(program.raises);
  sizes.clear();
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    provide(program.results[r].buffer);
    results[r] = owned[static_cast<std::size_t>(program.results[r].buffer)];
    sizes.push_back(program.results[r].shape.evaluate(bindings));
  }
}

std::string Program::str() const {
  static constexpr const char* roles[] = {"input", "result", "temporary", "constant"};
  std::string out;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    out += text("buffer ", i, " ", roles[buffers[i].role], " ", buffers[i].dtype, " x ", buffers[i].elements, "\n");
  for (const Fact& fact : facts) out += text("fact ", fact, "\n");
  for (std::size_t i = 0; i < steps.size(); ++i) out += text("step ", i, ": ", steps[i]->str(), "\n");
  return out;
}

}  // namespace stet

#include "stet/runtime/program.h"

#include <algorithm>
#include <array>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet {
namespace {

constexpr std::size_t alignment = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::size_t byte_count(const Dim& elements, DType dtype, const Bindings& bindings) {
  std::int64_t count = elements.evaluate(bindings);
  std::int64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, std::int64_t{size_of(dtype)}, &bytes) || bytes > (std::int64_t{1} << 62))
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

bool equal_everywhere(const Dim& dim, std::int64_t size, const Bindings& bindings) {
  return dim.is_constant() || dim.as_symbol() || dim.evaluate(bindings) == size;
}

}  // namespace

std::optional<Bindings> Program::accepts(std::span<const ConcreteInput> given, std::span<const std::int64_t> dims) const {
  Bindings bindings;
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

std::size_t plan_memory(std::span<PlannedBlock> blocks) {
  std::vector<PlannedBlock*> order;
  for (PlannedBlock& block : blocks) order.push_back(&block);
  std::stable_sort(order.begin(), order.end(),
                   [](const PlannedBlock* a, const PlannedBlock* b) { return a->bytes > b->bytes; });
  std::vector<PlannedBlock*> placed;
  std::size_t total = 0;
  for (PlannedBlock* block : order) {
    std::vector<PlannedBlock*> beside;
    for (PlannedBlock* other : placed)
      if (other->first <= block->last && block->first <= other->last) beside.push_back(other);
    std::sort(beside.begin(), beside.end(),
              [](const PlannedBlock* a, const PlannedBlock* b) { return a->offset < b->offset; });
    std::size_t offset = 0;
    for (PlannedBlock* other : beside) {
      if (other->offset >= offset + block->bytes) break;
      offset = std::max(offset, aligned(other->offset + other->bytes));
    }
    block->offset = offset;
    total = std::max(total, offset + block->bytes);
    placed.push_back(block);
  }
  return aligned(total);
}

std::shared_ptr<const BoundProgram> Program::bind(Bindings bindings) const {
  for (const InferCall::Check& check : checks)
    if (!check.fact.holds(bindings)) throw Problem(check.problem, check.advice);
  auto bound = std::make_shared<BoundProgram>();
  bound->program_ = shared_from_this();
  bound->bindings_ = std::move(bindings);
  // A program with late sizes is bound when it runs, up to each size in turn.
  if (!late.empty()) return bound;
  for (const ProgramResult& result : results) {
    bound->result_sizes_.push_back(result.shape.evaluate(bound->bindings_));
    bound->result_bytes_.push_back(byte_count(result.shape.element_count(), result.dtype, bound->bindings_));
  }
  for (const std::unique_ptr<Step>& step : steps) bound->steps_.push_back(step->bind(bound->bindings_));

  std::vector<PlannedBlock> blocks;
  std::vector<std::size_t> owners;
  for (std::size_t id = 0; id < buffers.size(); ++id) {
    if (buffers[id].role != ProgramBuffer::temporary) continue;
    PlannedBlock block{byte_count(buffers[id].elements, buffers[id].dtype, bound->bindings_), static_cast<int>(steps.size()), -1};
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (const std::vector<int>* list : {&steps[s]->reads, &steps[s]->writes})
        if (std::find(list->begin(), list->end(), static_cast<int>(id)) != list->end()) {
          block.first = std::min(block.first, static_cast<int>(s));
          block.last = std::max(block.last, static_cast<int>(s));
        }
    blocks.push_back(block);
    owners.push_back(id);
  }
  bound->arena_bytes_ = plan_memory(blocks);
  bound->offsets_.resize(buffers.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) bound->offsets_[owners[i]] = blocks[i].offset;
  return bound;
}

void BoundProgram::run(void* const* inputs, Buffer* results) const {
  const Program& program = *program_;
  std::array<void*, 24> few;
  std::vector<void*> many;
  void** table = few.data();
  std::size_t count = program.buffers.size();
  if (count > few.size()) {
    many.resize(count);
    table = many.data();
  }
  std::size_t id = 0;
  for (; id < program.inputs.size(); ++id) table[id] = inputs[id];
  for (std::size_t r = 0; r < program.results.size(); ++r, ++id) {
    results[r] = Buffer::allocate(result_bytes_[r]);
    table[id] = results[r].data();
  }
  Buffer arena;
  if (arena_bytes_ > 0) arena = Buffer::allocate(arena_bytes_);
  for (; id < count; ++id) {
    const ProgramBuffer& buffer = program.buffers[id];
    if (buffer.role == ProgramBuffer::constant)
      table[id] = const_cast<char*>(buffer.bytes.data());
    else
      table[id] = arena_bytes_ > 0 ? arena.data() + offsets_[id] : nullptr;
  }
  for (const std::unique_ptr<BoundStep>& step : steps_) step->run(table);
}

void BoundProgram::run_late(void* const* inputs, Buffer* results, std::vector<std::vector<std::int64_t>>& sizes) const {
  const Program& program = *program_;
  Bindings bindings = bindings_;
  std::vector<void*> table(program.buffers.size(), nullptr);
  std::vector<Buffer> owned(program.buffers.size());
  std::copy(inputs, inputs + program.inputs.size(), table.begin());
  for (std::size_t id = 0; id < program.buffers.size(); ++id)
    if (program.buffers[id].role == ProgramBuffer::constant)
      table[id] = const_cast<char*>(program.buffers[id].bytes.data());
  auto provide = [&](int number) {
    auto id = static_cast<std::size_t>(number);
    if (table[id]) return;
    owned[id] = Buffer::allocate(byte_count(program.buffers[id].elements, program.buffers[id].dtype, bindings));
    table[id] = owned[id].data();
  };
  std::size_t next_late = 0;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = *program.steps[s];
    for (int id : step.writes) provide(id);
    step.bind(bindings)->run(table.data());
    for (; next_late < program.late.size() && program.late[next_late].after == static_cast<int>(s); ++next_late) {
      const LateSize& size = program.late[next_late];
      bindings.bind(size.symbol, *static_cast<const std::int64_t*>(table[static_cast<std::size_t>(size.buffer)]));
    }
  }
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

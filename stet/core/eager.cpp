#include "stet/core/eager.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/short_array.h"
#include "stet/base/thread_end.h"
#include "stet/core/symbolic_program.h"
#include "stet/ir/graph.h"
#include "stet/runtime/program.h"
#include "stet/runtime/recording.h"
#include "stet/runtime/target.h"

namespace stet {
namespace {

// Two caches. The first, per thread, is keyed by everything concrete (sizes included) and holds a program bound to
// those sizes: a hit costs a hash and a comparison, and cannot change which program serves a call. The second, shared,
// is keyed by what a program is compiled for (op, attributes, dtypes, ranks, which operands are strided) and holds
// programs whose facts are tried in order of creation.

/// The concrete signature of a call, as words.
class Words {
 public:
  void push(std::uint64_t word) {
    if (count_ < inline_words)
      few_[count_] = word;
    else
      many_.push_back(word);
    ++count_;
    hash_ = (hash_ ^ word) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 32;
  }
  std::uint64_t hash() const { return hash_; }
  bool operator==(const Words& other) const {
    return hash_ == other.hash_ && count_ == other.count_ &&
           std::memcmp(few_.data(), other.few_.data(), std::min(count_, inline_words) * sizeof(std::uint64_t)) == 0 &&
           many_ == other.many_;
  }

 private:
  static constexpr std::size_t inline_words = 24;
  std::array<std::uint64_t, inline_words> few_;
  std::vector<std::uint64_t> many_;
  std::size_t count_ = 0;
  std::uint64_t hash_ = 0x51ED270B0A1F39C1u;
};

std::uint64_t type_word(const Operand& operand) {
  if (!operand.tensor) return static_cast<std::uint64_t>(operand.dtype) | 1u << 30;
  const TensorNode& t = *operand.tensor;
  return static_cast<std::uint64_t>(t.dtype) | std::uint64_t{t.rank} << 8 | std::uint64_t{t.dense} << 16;
}

struct Slot {
  std::uint64_t epoch = 0;
  Words words;
  Attributes attributes;
  std::shared_ptr<const BoundProgram> bound;
};

std::atomic<std::uint64_t> epoch{1};
std::atomic<std::uint64_t> program_counter{0}, binding_counter{0};

/// The places that a hash names. Several, so that a loop over some dozens of signatures finds them all: with one place
/// each, those that fall together would push each other out at every call. Slots are made when first needed.
struct SlotSet {
  static constexpr std::size_t ways = 4;
  std::array<std::unique_ptr<Slot>, ways> slots;
  std::size_t oldest = 0;

  Slot* find(std::uint64_t now, const Words& words, AttributesView attributes) const {
    for (const std::unique_ptr<Slot>& slot : slots) {
      if (!slot) return nullptr;  // filled in order
      if (slot->epoch == now && slot->words == words &&
          (!attributes.type || attributes.type->equal(attributes.data, slot->attributes.view().data)))
        return slot.get();
    }
    return nullptr;
  }
  /// An empty slot while there is one, then the one that was filled first.
  Slot& replace() {
    std::unique_ptr<Slot>& slot = slots[oldest];
    oldest = (oldest + 1) % ways;
    if (!slot) slot = std::make_unique<Slot>();
    return *slot;
  }
};
constexpr std::size_t set_count = 256;
struct SlotSets {
  std::array<SlotSet, set_count> of;
};

// initial-exec: one load instead of a call. The variable is one pointer, which fits the room kept for opened libraries.
[[gnu::tls_model("initial-exec")]] constinit thread_local SlotSets* this_thread_sets = nullptr;

SlotSet& set_for(std::uint64_t hash) {
  SlotSets& sets = this_thread_sets ? *this_thread_sets : make_for_this_thread(this_thread_sets);
  return sets.of[hash >> 40 & (set_count - 1)];
}

// --- the shared cache

/// What a program is compiled for.
struct ProgramKey {
  const OpDef* op;
  Attributes attributes;  // with sizes taken out
  std::string form;       // dtypes, ranks and strides' classes, checked mode
  bool operator==(const ProgramKey& other) const {
    return op == other.op && form == other.form && attributes == other.attributes;
  }
};
struct ProgramKeyHash {
  std::size_t operator()(const ProgramKey& key) const {
    return attribute::mix(attribute::mix(reinterpret_cast<std::size_t>(key.op), key.attributes.hash()),
                          std::hash<std::string>()(key.form));
  }
};
struct Programs {
  Lock guard;
  std::unordered_map<ProgramKey, std::vector<std::shared_ptr<Program>>, ProgramKeyHash> known;
};
Programs& programs() {
  static Programs* const all = [] {
    recording::watch("eager ops looked up", [] { return binding_counter.load(); });
    recording::watch("eager ops compiled", [] { return program_counter.load(); });
    return new Programs;  // never destroyed: see thread_end.h
  }();
  return *all;
}

/// The sizes inside attributes become inputs of the program, so that another size is not another program. Symbols are
/// never negative: of a negative size (a padding that cuts) the magnitude is the input, and the sign part of the form.
std::vector<std::int64_t> attribute_sizes(const Attributes& attributes, std::string& form) {
  std::vector<std::int64_t> out;
  attributes.map_dims([&](const Dim& dim) {
    std::int64_t value = dim.value();
    form += value < 0 ? '-' : '+';
    out.push_back(value < 0 ? -value : value);
    return dim;
  });
  return out;
}

/// Strides that matter to a kernel's form: 0 (repeated) and 1 (contiguous) are structure, others are numbers.
std::vector<Dim> stride_dims(const TensorNode& tensor, SymbolScope* scope, int number) {
  std::vector<Dim> out;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    std::int64_t stride = tensor.strides[axis];
    if (stride == 0 || stride == 1 || !scope)
      out.push_back(stride == 0 || stride == 1 ? Dim(stride) : Dim(2));
    else
      out.push_back(scope->symbol(text("t", number, "_", axis), stride));
  }
  return out;
}

std::string form_of(std::span<const Operand> operands, const Device& device) {
  std::string form = text(device.name(), device.target().mode(), " ");
  for (const Operand& operand : operands) {
    form += name(operand.type());
    if (operand.tensor) {
      form += static_cast<char>('0' + operand.tensor->rank);
      if (!operand.tensor->dense)
        for (const Dim& stride : stride_dims(*operand.tensor, nullptr, 0)) form += text("/", stride);
    } else {
      form += "0";
    }
    form += ' ';
  }
  return form;
}

/// Of an op with more operands the sizes are no symbols: the size of a concatenation is the sum of all of them.
constexpr std::size_t most_symbolic_operands = 256;

std::shared_ptr<Program> compile_one(const OpDef& op, std::span<const Operand> operands, const Attributes& attributes,
                                     Where where, Device& device) {
  Graph graph;
  auto scope = std::make_shared<RecordingScope>();
  graph.scope = scope;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Shape shape;
    std::vector<Dim> strides;
    if (const TensorNode* tensor = operands[i].tensor) {
      for (int axis = 0; axis < tensor->rank; ++axis)
        shape.push_back(operands.size() > most_symbolic_operands
                            ? Dim(tensor->sizes[axis])
                            : scope->symbol(text("s", i, "_", axis), tensor->sizes[axis]));
      if (!tensor->dense) strides = stride_dims(*tensor, scope.get(), static_cast<int>(i));
    }
    inputs.push_back(graph.add_input({operands[i].type(), shape}, std::move(strides)));
  }
  std::vector<int> dim_symbols;
  Attributes symbolic = attributes.map_dims([&](const Dim& dim) {
    std::int64_t value = dim.value();
    Dim symbol = scope->symbol(text("d", dim_symbols.size()), value < 0 ? -value : value);
    dim_symbols.push_back(*symbol.as_symbol());
    return value < 0 ? Dim(0) - symbol : symbol;
  });
  graph.results = graph.add_parts(graph.add_call(op, inputs, symbolic, where));

  std::shared_ptr<Program> program = compile_symbolic(graph, device);
  program->dim_symbols = std::move(dim_symbols);
  // What was assumed of sizes (divisible, not empty) is refused like a fact: the call then fails on its own sizes, with
  // the message that inference has for them.
  for (const SizeCheck& check : scope->checks()) program->facts.push_back(check.fact);
  program_counter.fetch_add(1, std::memory_order_relaxed);
  return program;
}

std::shared_ptr<const BoundProgram> bind_program(const OpDef& op, std::span<const Operand> operands,
                                                 AttributesView view, Where where, Device& device) {
  Attributes attributes(view);
  ProgramKey key{&op, attributes.map_dims([](const Dim&) { return Dim(0); }), form_of(operands, device)};
  std::vector<std::int64_t> dims = attribute_sizes(attributes, key.form);
  std::vector<ConcreteInput> concrete;
  for (const Operand& operand : operands) {
    if (!operand.tensor)
      concrete.push_back({});
    else
      concrete.push_back({operand.tensor->size_span(),
                          operand.tensor->dense ? std::span<const std::int64_t>() : operand.tensor->stride_span()});
  }
  binding_counter.fetch_add(1, std::memory_order_relaxed);
  std::vector<std::shared_ptr<Program>> candidates;
  {
    std::lock_guard lock(programs().guard);
    auto found = programs().known.find(key);
    if (found != programs().known.end()) candidates = found->second;
  }
  for (const std::shared_ptr<Program>& program : candidates)
    if (std::optional<Bindings> bindings = program->accepts(concrete, dims)) return program->bind(std::move(*bindings));

  // First with plain integers: a wrong call fails here, with the user's sizes in the message.
  std::vector<ValueType> types;
  for (const Operand& operand : operands) types.push_back(operand.value_type());
  Graph trial;
  std::vector<ValueId> inputs;
  for (ValueType& type : types) inputs.push_back(trial.add_input(std::move(type)));
  trial.add_call(op, inputs, attributes, where);

  std::shared_ptr<Program> program = compile_one(op, operands, attributes, where, device);
  std::optional<Bindings> bindings = program->accepts(concrete, dims);
  if (!bindings)
    throw InternalError(text("the program of ", op.name, " does not accept its own sizes\n", program->str()));
  {
    std::lock_guard lock(programs().guard);
    programs().known[key].push_back(program);
  }
  return program->bind(std::move(*bindings));
}

void run_bound(const BoundProgram& bound, std::span<const Operand> operands, std::span<Tensor> results,
               Device& device) {
  std::array<void*, 16> few;
  std::vector<void*> many;
  void** inputs = few.data();
  if (operands.size() > few.size()) {
    many.resize(operands.size());
    inputs = many.data();
  }
  // A program does not write to its inputs: the table of buffers is one for inputs and results, hence the cast.
  for (std::size_t i = 0; i < operands.size(); ++i)
    inputs[i] = operands[i].tensor ? static_cast<void*>(operands[i].tensor->data)
                                   : const_cast<std::uint64_t*>(&operands[i].bits);
  std::vector<Buffer> numbers;  // in the device's memory
  if (!device.is_host())
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].tensor) continue;
      numbers.push_back(device.allocate(sizeof operands[i].bits));
      device.copy_in(numbers.back().data(), &operands[i].bits, sizeof operands[i].bits);
      inputs[i] = numbers.back().data();
    }
  ShortArray<Buffer, 4> buffers(results.size());
  std::vector<std::vector<std::int64_t>> late;
  if (bound.has_late_sizes())
    bound.run_late(inputs, buffers.data(), late);
  else
    bound.run(inputs, buffers.data());
  const std::vector<std::vector<std::int64_t>>& sizes = bound.has_late_sizes() ? late : bound.result_sizes();
  for (std::size_t r = 0; r < results.size(); ++r)
    results[r] = dense_tensor(bound.result_type(r), sizes[r], std::move(buffers[r]));
}

}  // namespace

void run_eager(const OpDef& op, std::span<const Operand> operands, AttributesView attributes, Where where,
               std::span<Tensor> results, Device& device) {
  recording::Span span(recording::Kind::run, [&] { return op.name; });
  Words words;
  words.push(reinterpret_cast<std::uint64_t>(&op) ^ device.target().mode());
  if (!device.is_host()) words.push(reinterpret_cast<std::uint64_t>(&device));
  if (attributes.type) words.push(attributes.type->hash(attributes.data));
  for (const Operand& operand : operands) {
    words.push(type_word(operand));
    if (!operand.tensor) continue;
    for (std::int64_t size : operand.tensor->size_span()) words.push(static_cast<std::uint64_t>(size));
    if (!operand.tensor->dense)
      for (std::int64_t stride : operand.tensor->stride_span()) words.push(static_cast<std::uint64_t>(stride));
  }
  SlotSet& set = set_for(words.hash());
  std::uint64_t now = epoch.load(std::memory_order_acquire);
  Slot* slot = set.find(now, words, attributes);
  if (!slot) {
    std::shared_ptr<const BoundProgram> bound = bind_program(op, operands, attributes, where, device);
    slot = &set.replace();
    slot->epoch = now;
    slot->bound = std::move(bound);
    slot->words = words;
    slot->attributes = Attributes(attributes);
  }
  run_bound(*slot->bound, operands, results, device);
  recording::sample_memory();
}

EagerStatistics eager_statistics() { return {program_counter.load(), binding_counter.load()}; }

void clear_eager_programs() {
  std::lock_guard lock(programs().guard);
  programs().known.clear();
  epoch.fetch_add(1, std::memory_order_release);
}

}  // namespace stet

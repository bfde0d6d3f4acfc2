// The inside of a GradientTape: what it has recorded. Private to core/.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stet/core/gradient.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/ir/graph.h"

namespace stet {

/// A tensor on a tape: its name, and itself where the gradient reads it. Otherwise a stand-in of its type and shape,
/// whose elements are NaN: a gradient that reads what it said it would not is seen to be wrong.
struct TapeValue {
  std::uint64_t identity = 0;
  Tensor tensor = {};
};

struct TapeRecord {
  const OpDef* op;
  Attributes attributes;
  std::vector<TapeValue> inputs;
  std::vector<TapeValue> outputs;
  /// By input: the tape followed it then. What is watched later is not followed here, and what its gradient would read
  /// is not kept.
  std::vector<bool> followed;
  std::shared_ptr<const std::string> name_scope = {};  // that the op was recorded in
};

struct GradientTape::State {
  bool persistent = false;
  bool watches_variables = true;
  bool notes_readings_only = false;  // see ReadingNotes
  bool spent = false;                // has given its gradients
  int stopped = 0;                   // by how many that are alive
  bool was_stopped = false;          // where it was returned to last: a branch that began there is not for it
  std::uint64_t resets = 0;
  std::uint64_t asked = 0;  // for gradients, how often
  std::vector<TapeRecord> records;
  std::unordered_set<std::uint64_t> tracked;  // depend on something watched
  struct Watched {
    std::uint64_t tensor = 0, variable = 0;  // one of them; none where recording was stopped in a trace
  };
  std::vector<Watched> watched;
  std::unordered_set<std::uint64_t> variables;  // watched ones
  struct Reading {
    std::uint64_t tensor;
    std::uint64_t variable;
    Tensor value = {};  // of a tape that notes readings only
    bool trainable = true;
  };
  /// Tensors read from Variables, in the order they were read: gradients add up in it.
  std::vector<Reading> reads;
  /// Of a tape that notes readings only: what ops were given from outside that gradients may be asked for.
  std::vector<Tensor> uses;
  std::unordered_set<std::uint64_t> known_uses;  // those, and what was made inside
  std::vector<const State*> outer;               // that record; in a trace, any may come later

  bool recording() const { return stopped == 0 && (persistent || !spent); }
  bool tracks(const TapeValue& value) const { return tracked.contains(value.identity); }
  bool tracks(const Tensor& tensor) const {
    const std::uint64_t identity = tensor.node()->identity.load(std::memory_order_relaxed);
    return identity != 0 && tracked.contains(identity);
  }
  bool follows(std::uint64_t variable, bool trainable) const {
    return (trainable && watches_variables) || variables.contains(variable);
  }
};

/// While it lives, a tape records nothing.
class PausedTape {
 public:
  explicit PausedTape(GradientTape::State& tape) : tape_(tape) { ++tape_.stopped; }
  ~PausedTape() { --tape_.stopped; }
  PausedTape(const PausedTape&) = delete;
  PausedTape& operator=(const PausedTape&) = delete;

 private:
  GradientTape::State& tape_;
};

/// What a gradient is taken with respect to, as records name it.
struct TapeSource {
  std::uint64_t tensor = 0, variable = 0;  // one of them
};
TapeSource tape_source(const inside::Source& source, Where where);

/// Gradients by tensor while walking backwards.
class Accumulator {
 public:
  void add(std::uint64_t at, const Tensor& gradient);
  /// Blocks wait until the sum is asked for: those of many slices of one tensor are put together in one go.
  void add(std::uint64_t at, const Shape& shape, GradientBlock block);
  Tensor take(std::uint64_t at, bool keep);
  Tensor find(std::uint64_t at);

 private:
  struct Gradient {
    Tensor sum;
    Shape shape;  // of the tensor, if there are blocks
    std::vector<GradientBlock> blocks;
  };
  std::unordered_map<std::uint64_t, Gradient> gradients_;
};

/// The gradients by the sources, from those by the targets that are in `gradients` already. Undefined where there is
/// none. `frees`: records are dropped on the way, and the tape is empty then.
std::vector<Tensor> walk_back(GradientTape::State& tape, const std::vector<TapeSource>& sources, Accumulator& gradients,
                              bool frees);

/// The gradient of one record with respect to its inputs; `wanted` by input.
std::vector<Tensor> gradients_of_record(const TapeRecord& record, std::vector<Tensor> ds, std::vector<bool> wanted);

/// Forward mode: how the targets change when the sources change along tensors of their types and shapes. Undefined for
/// targets that do not. The records are walked in the order they were made in: maps by the derivatives of their bodies,
/// linear rows (those whose gradients read no value) by themselves, the others by the gradient of their gradient, which
/// is linear in what comes in. Nothing is dropped; what is computed is seen by the tapes that record.
std::vector<Tensor> tangents_of(GradientTape::State& tape, const std::vector<Tensor>& targets,
                                const std::vector<TapeSource>& sources, const std::vector<Tensor>& tangents);

/// While it lives, the tapes outside see nothing, and every reading of a Variable that one of them would follow is
/// noted, and every tensor from outside that one of them may follow.
class ReadingNotes {
 public:
  ReadingNotes();
  const std::vector<GradientTape::State::Reading>& readings() { return tape_.state().reads; }
  const std::vector<Tensor>& uses() { return tape_.state().uses; }
  /// The tensor is given back by the code that is looked at: used, if it is from outside.
  void note_use(const Tensor& tensor);

 private:
  std::vector<const GradientTape::State*> outer_;
  std::unordered_set<std::uint64_t> variables_;
  bool watches_variables_;
  HiddenTapes hidden_;
  GradientTape tape_;
};

}  // namespace stet

// Loops over flat lists of tensors: what the public functions, replays and gradients are made of.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stet/core/tensor.h"
#include "stet/ir/graph.h"

namespace stet {

/// What a turn leaves: the next carried values, and an element of each stacked result.
struct FlatTurn {
  std::vector<Tensor> carried, stacked;
  /// Whatever the body says of the form of its results: a loop that is followed gives back what was said when it was
  /// recorded, should its body not get to its end.
  std::shared_ptr<const void> form = {};
};

struct FlatLoop {
  const char* name = "loop";  // of the function that the user called
  Where where = {};
  LoopAttributes::Count count = LoopAttributes::by_size;
  Dim turns = 0;            // by_size
  Tensor count_value = {};  // by_value: an i64 scalar
  std::vector<Tensor> carried = {};
  std::vector<std::string> carried_names = {};  // in messages; may be empty
  std::vector<Tensor> sequences = {};           // [turns, …]
  bool reverse = false;
  bool recompute = false;
  bool stacks = true;  // turns may give results; known not to: false
  /// No turn depends on another, and there are no carried values: ops take the elements of all turns at once where they
  /// can (batch.h). What draws random numbers, writes Variables or has other effects is done turn by turn all the same.
  bool at_once = false;
  /// One turn; `place` is an i64 scalar. Run eagerly once a turn; traced once, or a few times with the same outcome.
  std::function<FlatTurn(std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place)> body =
      {};
  std::function<Tensor(std::span<const Tensor> carried, const Tensor& place)> condition = {};  // by_condition

  // Only while tracing: sequences of which it turns out in the end whether the body needs them.
  struct Further {
    std::vector<Tensor> sequences;  // those that it needs
    Dim turns;
  };
  std::vector<ValueType> further_elements = {};  // handed to the body behind the others
  std::function<Further(const std::vector<bool>& needed)> further = {};
};

/// Runs it turn by turn or, while a function is traced, records it as one op.
FlatTurn run_flat_loop(const FlatLoop& loop);

}  // namespace stet

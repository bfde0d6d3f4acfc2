// A function that came from a file: what is known of it, and how it is run. Not a public header.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "stet/core/replay.h"
#include "stet/core/signature.h"
#include "stet/core/structure.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/ir/graph.h"

namespace stet {

/// What a graph takes beside its arguments: a Variable or a tensor.
struct PortableInput {
  Variable variable = {};
  Tensor constant = {};
};
/// A tensor that the graph gives, or a number that host code gave.
struct PortableOutput {
  int result = -1;     // of the graph, or
  Tensor number = {};  // itself
};

struct PortableFunction {
  std::string name;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<std::int64_t> hints;  // sizes of the inputs' axes, one after the other, that all facts hold for
  std::vector<SizeCheck> facts;     // about the sizes of inputs
  std::vector<PortableInput> hidden;
  std::vector<PortableOutput> gives;
  Graph graph;  // arguments, then what is hidden

  /// Runs it through the door: eagerly, or as a part of the open trace. Every op's types are inferred anew; UserError
  /// if they are not what the file says.
  inside::Leaves run(const inside::Leaves& arguments) const;
  /// The same of what run() does not come to: the ways back of functions with gradients of their own. Nothing is kept.
  void check_ways_back() const;
};

}  // namespace stet

// Losses that layers add while they are called. Not a public header.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/base/where.h"
#include "stet/core/tensor.h"

namespace stet {
class Trace;
}

namespace stet::keras {

class CustomLayer;

/// A call of a layer on this thread, nested as calls are. Its host code may run several times, for the sides of a
/// branch: what it adds goes out through the scope of the call like its result, and then to the call around it.
class LossesOfCall {
 public:
  struct Added {
    std::uint64_t layer;  // its object id
    Tensor loss;
  };

  explicit LossesOfCall(const CustomLayer& layer);
  ~LossesOfCall();
  LossesOfCall(const LossesOfCall&) = delete;
  LossesOfCall& operator=(const LossesOfCall&) = delete;

  /// Host code starts, perhaps again.
  void restart() { added_.clear(); }
  /// What the scope returns: the layer's results, then the losses.
  std::vector<Tensor> with(std::vector<Tensor> results) const;
  /// What the scope gave: keeps the losses, and gives the results. Losses cannot leave a function that is traced on its
  /// own inside the call of another layer (UserError): its cache would serve later calls without them.
  std::vector<Tensor> taken(std::vector<Tensor> given, Where where);
  /// Those of a call that stands for nothing but a turn of a loop: they leave it as results, and are added after it.
  const std::vector<Added>& added() const { return added_; }

  /// Inside a call on this thread; a UserError elsewhere.
  static void add(const CustomLayer& layer, const Tensor& loss, Where where);
  static void add(const Added& one);
  /// Added in the last calls from outside of layers, in the trace that runs now, if one does; in the order of adding.
  static std::vector<Added> latest();

 private:
  const CustomLayer& layer_;
  const Trace* const trace_;  // that ran when it began
  LossesOfCall* const around_;
  std::vector<Added> added_;
};

/// While it lives, what layers add on this thread is dropped: they are called to make their weights.
class LossesDropped {
 public:
  LossesDropped();
  ~LossesDropped();
  LossesDropped(const LossesDropped&) = delete;
  LossesDropped& operator=(const LossesDropped&) = delete;

 private:
  LossesOfCall* const around_;
  const bool dropped_;  // there
};

}  // namespace stet::keras

// NameScope: parts of a traced function have names, for whoever looks at its graph.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "stet/base/export.h"

namespace stet {

/// While it lives, ops that this thread records belong to the part of that name; parts may have parts. Layers do so for
/// their ops by themselves, and gradients are in "gradients/", in the part of the op that they are of. It changes no
/// result, and outside of traced functions it does nothing.
///
///   {
///     NameScope encoder("encoder");
///     h = relu(matmul(x, w));  // "encoder/matmul" and "encoder/relu" in TensorBoard's graph
///   }
class STET_API NameScope {
 public:
  explicit NameScope(std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

  /// The names of those that are open, "sequential/dense"; null outside of all.
  static const std::shared_ptr<const std::string>& current();

 private:
  bool open_ = false;
  std::shared_ptr<const std::string> before_;
};

}  // namespace stet

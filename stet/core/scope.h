// What host code may ask and do while it is traced: fork scopes, leaving the trace, and whether there is one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/in.h"
#include "stet/core/structure.h"
#include "stet/core/tape.h"

namespace stet {

/// The trace that runs on this thread, if any.
struct Tracing {
  std::string function = {};
  bool audit = false;  // host code is only run to see whether it would still do the same
  explicit operator bool() const { return !function.empty(); }
};
STET_API Tracing tracing();

namespace branches {
/// Runs `body` as a fork scope of the open trace.
STET_API inside::Leaves run_scope(const std::function<inside::Leaves()>& body, Where where);
STET_API bool may_fork();  // a trace is open on this thread
STET_API bool truth(const In& condition, Where where);
}  // namespace branches

/// Runs `body` and gives what it returns. While a function is traced, `if (tensor)` inside runs the innermost scope
/// again for the other outcome, and the paths become one branch at the scope's end: what follows is recorded once. The
/// body of a traced function and every layer call are scopes; this makes smaller ones. Paths must return the same
/// structure, types and ranks (TraceError).
template <class F>
auto scope(F&& body, Where where = Where::here()) -> std::invoke_result_t<F> {
  using R = std::invoke_result_t<F>;
  if (!branches::may_fork()) return body();
  inside::Leaves results = branches::run_scope(
      [&]() -> inside::Leaves {
        inside::Leaves out;
        if constexpr (std::is_void_v<R>)
          body();
        else
          structure::Of<R>::write(body(), out);
        return out;
      },
      where);
  if constexpr (!std::is_void_v<R>) {
    inside::LeafReader reader(results);
    return structure::Of<R>::read(reader);
  }
}

/// What `yes` gives if the condition, a tensor with one element, is true, otherwise what `no` gives. Traced, both are
/// recorded as one branch; eagerly, the chosen one runs. Both are called without arguments and give the same structure.
template <class Yes, class No>
auto cond(const In& condition, Yes&& yes, No&& no, Where where = Where::here()) -> std::invoke_result_t<Yes> {
  static_assert(std::is_same_v<std::invoke_result_t<Yes>, std::invoke_result_t<No>>,
                "both sides of a cond return the same type");
  return scope([&] { return branches::truth(condition, where) ? yes() : no(); }, where);
}

/// While it lives, code on this thread runs eagerly, outside of any trace and unseen by tapes: how the first values of
/// Variables are made inside traced code. Tensors of the trace have no values there (TraceError).
class STET_API InitScope {
 public:
  [[nodiscard]] InitScope();
  ~InitScope();
  InitScope(const InitScope&) = delete;
  InitScope& operator=(const InitScope&) = delete;

 private:
  void* trace_;
  HiddenTapes tapes_;
};

}  // namespace stet

#include "stet/core/ambient.h"

#include <utility>

namespace stet {
namespace {
// initial-exec: one load on the way of every call.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint64_t current = 0;
}  // namespace

std::uint64_t ambient() { return current; }
AmbientScope::AmbientScope(std::uint64_t number) : before_(std::exchange(current, number)) {}
AmbientScope::~AmbientScope() { current = before_; }

}  // namespace stet

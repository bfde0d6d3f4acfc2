#include "stet/core/name_scope.h"

#include <utility>

#include "stet/base/text.h"
#include "stet/core/trace.h"

namespace stet {
namespace {
thread_local std::shared_ptr<const std::string> open_scope;
}

NameScope::NameScope(std::string_view name) {
  // Calls that are not traced do not pay for a name that nobody will see.
  if (name.empty() || !current_trace()) return;
  open_ = true;
  before_ = std::exchange(
      open_scope, std::make_shared<const std::string>(open_scope ? text(*open_scope, "/", name) : std::string(name)));
}

NameScope::~NameScope() {
  if (open_) open_scope = std::move(before_);
}

const std::shared_ptr<const std::string>& NameScope::current() { return open_scope; }

}  // namespace stet

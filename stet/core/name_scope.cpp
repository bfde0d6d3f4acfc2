#include "stet/core/name_scope.h"

#include <utility>

#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/trace.h"

namespace stet {
namespace {
using Names = std::shared_ptr<const std::string>;
constinit thread_local Names* this_thread_names = nullptr;
}  // namespace

NameScope::NameScope(std::string_view name) {
  // Calls that are not traced do not pay for a name that nobody will see.
  if (name.empty() || !current_trace()) return;
  open_ = true;
  Names& names = this_thread_names ? *this_thread_names : make_for_this_thread(this_thread_names);
  before_ =
      std::exchange(names, std::make_shared<const std::string>(names ? text(*names, "/", name) : std::string(name)));
}

NameScope::~NameScope() {
  if (open_ && this_thread_names) *this_thread_names = std::move(before_);
}

const std::shared_ptr<const std::string>& NameScope::current() {
  static const auto* const none = new Names;
  return this_thread_names ? *this_thread_names : *none;
}

}  // namespace stet

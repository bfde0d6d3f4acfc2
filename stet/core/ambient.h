// What host code may depend on beside its arguments and Variables. Private to the library.
#pragma once
#include <cstdint>

namespace stet {

/// A number that is part of the key of every trace made or used on this thread, so that host code may read it: 0
/// outside of all scopes. Layers are its one user: 1 where a layer that is called inherits `training`.
std::uint64_t ambient();

/// While it lives, that is the number on this thread.
class AmbientScope {
 public:
  explicit AmbientScope(std::uint64_t number);
  ~AmbientScope();
  AmbientScope(const AmbientScope&) = delete;
  AmbientScope& operator=(const AmbientScope&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace stet

// Bodies and handles: a handle is what users hold and copy (a layer, an optimizer), its body the one object behind all
// copies. Handles may be arguments of traced functions: told apart by the identity of their bodies.
#pragma once
#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>

#include "stet/base/export.h"

namespace stet::inside {

/// An object with an identity of its own: no two of a process ever share a number, whatever addresses they had. A
/// copied or moved body is another object.
class STET_API Body {
 public:
  Body();
  Body(const Body&) : Body() {}
  Body& operator=(const Body&) { return *this; }
  virtual ~Body();

  std::uint64_t object_id() const { return object_id_; }
  /// What traces that take it as an argument are kept by: the object, and how often it was changed.
  std::uint64_t identity() const { return object_id_ + (changes_.load(std::memory_order_acquire) << change_shift); }
  static constexpr std::uint64_t object_of(std::uint64_t identity) {
    return identity & ((std::uint64_t{1} << change_shift) - 1);
  }
  /// Host code that uses it will do something else from here on: traces made before do not serve calls that take it.
  void note_change() { changes_.fetch_add(1, std::memory_order_acq_rel); }
  /// It will do what it did, or will do, after so many changes: traces made then serve again.
  void set_changes(std::uint64_t count) { changes_.store(count, std::memory_order_release); }
  /// What messages call it: "Dense 'dense_1'".
  virtual std::string description() const { return "object"; }

 private:
  static constexpr int change_shift = 44;
  std::uint64_t object_id_;
  std::atomic<std::uint64_t> changes_{0};
};

/// A handle gives its body (perhaps null, when it is undefined), and can be made from one.
template <class T>
concept Handle = requires(const T& handle, std::shared_ptr<Body> body) {
  { handle.body() } -> std::convertible_to<std::shared_ptr<Body>>;
  { T::from_body(body) } -> std::same_as<T>;
};

}  // namespace stet::inside

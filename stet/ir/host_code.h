// HostCode: code of the host that a program runs where a node stands: what prints, asserts or calls back.
//
// It has effects. A row that runs host code says so (OpDef::has_effect), and then its node is not dropped as dead, not
// shared with an equal one, and keeps its place among other effects.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/shape.h"
#include "stet/ir/attributes.h"

namespace stet {

/// A dense tensor in the host's memory, for the length of one run.
struct HostValue {
  DType dtype = DType::f32;
  std::span<const std::int64_t> sizes;
  const void* data = nullptr;
};
/// The same, to be filled in.
struct HostPlace {
  DType dtype = DType::f32;
  std::span<const std::int64_t> sizes;
  void* data = nullptr;
};

class HostCode {
 public:
  virtual ~HostCode() = default;
  /// Runs on the thread that runs the program. What it throws ends the run and reaches the caller as it is.
  virtual void run(std::span<const HostValue> inputs, std::span<const HostPlace> results) const = 0;
  /// Host code that is traced again has made the same: as far as that can be seen.
  virtual bool same_as(const HostCode& other) const = 0;
  virtual std::string str() const = 0;
};

/// The attributes of a row that runs host code. Without results, its node gives an i64 scalar that nobody reads.
struct HostCodeAttributes {
  HostCodePointer code;
  std::vector<DType> dtypes;  // of the results
  std::vector<Shape> shapes;
  STET_ATTRIBUTES(code, dtypes, shapes)
};

}  // namespace stet

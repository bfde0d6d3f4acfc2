// Inputs to test a structured row with, and wrong calls with the text of their messages. Rows fill these lists; the
// tests run them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/ir/attributes.h"

namespace stet {

struct SampleInput {
  std::vector<std::int64_t> sizes;
  /// Not negative: the operand holds indices, drawn from 0 to below - 1, in i64.
  std::int64_t below = -1;
};

struct Sample {
  std::vector<SampleInput> inputs;
  Attributes attributes;
};

class SampleList {
 public:
  SampleList& add(std::vector<SampleInput> inputs, AttributesView attributes = {}) {
    samples.push_back({std::move(inputs), Attributes(attributes)});
    return *this;
  }
  std::vector<Sample> samples;
};

/// A wrong call: operands of these types, and a part of the message that must come.
struct ErrorSample {
  struct Input {
    DType dtype;
    std::vector<std::int64_t> sizes;
  };
  std::string message;
  std::vector<Input> inputs;
  Attributes attributes;
};

class ErrorList {
 public:
  ErrorList& add(std::string message, std::vector<ErrorSample::Input> inputs, AttributesView attributes = {}) {
    samples.push_back({std::move(message), std::move(inputs), Attributes(attributes)});
    return *this;
  }
  std::vector<ErrorSample> samples;
};

}  // namespace stet

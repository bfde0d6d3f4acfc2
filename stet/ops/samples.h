// Inputs to test a structured row with, and wrong calls with the text of their messages. Rows fill these lists; the
// tests run them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/ir/attributes.h"

namespace stet {

/// How the elements of an operand are drawn; tests/ops/op_harness.h says it in C++, tests/oracle/make_values.py in
/// Python.
enum class Draw : std::uint8_t {
  plain,     // within 2.1 of 0; integers within 100
  factors,   // close to 1 in magnitude, so that products of many stay within the type
  marks,     // 1 two times in three, otherwise 0
  definite,  // the last two axes are symmetric matrices whose eigenvalues are positive
  regular,   // the last two axes are matrices that are far from singular
  ordered,   // plain, sorted along the last axis
};

struct SampleInput {
  std::vector<std::int64_t> sizes;
  /// Not negative: the operand holds indices, drawn from 0 to below - 1, in i64.
  std::int64_t below = -1;
  Draw draw = Draw::plain;
  bool grows = true;  // false: one entry per axis of another operand, as many in a larger call
};

/// What a larger call that the same program serves looks like.
enum class Grows : std::uint8_t {
  operands,    // operands' sizes grow; the attributes stay
  everything,  // sizes in attributes grow as operands' do
  first,       // the first size of the operand and the first of the attributes double
};

/// How a floating result is rounded; the bounds of tests follow from it.
enum class Rounding : std::uint8_t {
  exact,          // elements move or are chosen
  sums,           // terms are added up
  products,       // factors are multiplied
  functions,      // elementary functions of single elements
  factorisation,  // of matrices: backward stable
};

struct Sample {
  std::vector<SampleInput> inputs;
  Attributes attributes;
  Grows grows = Grows::operands;
  Rounding rounding = Rounding::exact;
};

class SampleList {
 public:
  /// How the samples that follow grow.
  SampleList& growing(Grows how) {
    grows_ = how;
    return *this;
  }
  /// How the results of the samples that follow are rounded.
  SampleList& rounded(Rounding how) {
    rounding_ = how;
    return *this;
  }
  SampleList& add(std::vector<SampleInput> inputs) {
    samples.push_back({std::move(inputs), {}, grows_, rounding_});
    return *this;
  }
  /// `attributes`: the row's struct of them.
  template <class T>
  SampleList& add(std::vector<SampleInput> inputs, const T& attributes) {
    samples.push_back({std::move(inputs), Attributes(view_of(attributes)), grows_, rounding_});
    return *this;
  }
  std::vector<Sample> samples;

 private:
  Grows grows_ = Grows::operands;
  Rounding rounding_ = Rounding::exact;
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
  ErrorList& add(std::string message, std::vector<ErrorSample::Input> inputs) {
    samples.push_back({std::move(message), std::move(inputs), {}});
    return *this;
  }
  template <class T>
  ErrorList& add(std::string message, std::vector<ErrorSample::Input> inputs, const T& attributes) {
    samples.push_back({std::move(message), std::move(inputs), Attributes(view_of(attributes))});
    return *this;
  }
  std::vector<ErrorSample> samples;
};

}  // namespace stet

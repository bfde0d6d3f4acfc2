// Values that Keras made, tests/oracle/keras/*.txt: named cases of named tensors. tests/oracle/keras/values.py writes
// them.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "stet/stet.h"

namespace stet {

/// The tensors of a case.
class KerasCase {
 public:
  KerasCase() = default;
  explicit KerasCase(std::string name) : name_(std::move(name)) {}
  void add(const std::string& key, Tensor value) { tensors_[key] = std::move(value); }
  bool has(const std::string& key) const { return tensors_.contains(key); }
  const Tensor& operator[](const std::string& key) const {
    auto found = tensors_.find(key);
    if (found == tensors_.end()) throw std::runtime_error("case " + name_ + " has no tensor " + key);
    return found->second;
  }
  const std::string& name() const { return name_; }
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const auto& [key, value] : tensors_) out.push_back(key);
    return out;
  }

 private:
  std::string name_;
  std::map<std::string, Tensor> tensors_;
};

/// One file of cases.
class KerasValues {
 public:
  explicit KerasValues(const std::string& family) {
    std::filesystem::path path = std::filesystem::path(__FILE__).parent_path() / "../oracle/keras" / (family + ".txt");
    if (!std::filesystem::exists(path)) path = "tests/oracle/keras/" + family + ".txt";
    std::ifstream file(path);
    if (!file) throw std::runtime_error("there is no " + path.string());
    std::string line, name;
    while (std::getline(file, line)) {
      if (line.empty() || line[0] == '#') continue;
      if (line.starts_with("case ")) {
        name = line.substr(5);
        cases_.emplace(name, KerasCase(name));
        continue;
      }
      std::istringstream words(line);
      std::string key, type, sizes;
      words >> key >> type >> sizes;
      cases_.at(name).add(key, read(type, sizes, words));
    }
  }
  const KerasCase& at(const std::string& name) {
    auto found = cases_.find(name);
    if (found == cases_.end()) throw std::runtime_error("there is no case " + name);
    asked_.insert(name);
    return found->second;
  }
  /// Cases that nobody has asked for: a test that is missing. Where a program runs a part of its tests (shards), nobody
  /// can say; the run under STET_VERIFY has all of them.
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    if (const char* shards = std::getenv("GTEST_TOTAL_SHARDS"); shards && std::atoi(shards) > 1) return out;
    for (const auto& [name, one] : cases_)
      if (!asked_.contains(name)) out.push_back(name);
    return out;
  }

 private:
  static Tensor read(const std::string& type, const std::string& sizes, std::istringstream& words) {
    std::vector<Dim> shape;
    std::istringstream numbers(sizes.substr(1, sizes.size() - 2));
    for (std::string size; std::getline(numbers, size, ',');) shape.push_back(std::stoll(size));
    std::vector<double> values;
    for (std::string word; words >> word;) values.push_back(std::strtod(word.c_str(), nullptr));
    static const std::map<std::string, DType> types = {{"f32", f32}, {"f64", f64},    {"i32", i32},
                                                       {"i64", i64}, {"bool", bool_}, {"u8", u8}};
    return cast(reshape(tensor(values), shape), types.at(type));
  }

  std::map<std::string, KerasCase> cases_;
  std::set<std::string> asked_;
};

/// Equal up to rounding: relative to the larger of 1 and the value, NaN to NaN.
inline void expect_close(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape().sizes(), expected.shape().sizes()) << what;
  std::vector<double> a = cast(got, f64).to_vector<double>(), b = cast(expected, f64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
                      std::abs(a[i] - b[i]) <= tolerance * std::max(1.0, std::abs(b[i]));
    ASSERT_TRUE(same) << what << ": element " << i << " is " << a[i] << ", Keras has " << b[i];
  }
}

/// The same of many tensors, of which it remembers the largest difference, for the reader of a test's output.
class KerasComparison {
 public:
  void close(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
    expect_close(got, expected, tolerance, what);
    if (::testing::Test::HasFatalFailure()) return;
    ++tensors_;
    std::vector<double> a = cast(got, f64).to_vector<double>(), b = cast(expected, f64).to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::isfinite(b[i])) largest_ = std::max(largest_, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  }
  int tensors() const { return tensors_; }
  double largest() const { return largest_; }

 private:
  int tensors_ = 0;
  double largest_ = 0;
};

}  // namespace stet

// The stored reference values, tests/oracle/values.txt and values/*.txt, written by tests/oracle/make_values.py.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/ops/op_harness.h"

namespace stet::op_test {

inline std::filesystem::path oracle_folder() {
  // Tests run in the project's folder; a compiler cache may have made the file's own path relative to another one.
  if (std::filesystem::exists("tests/oracle/values.txt")) return "tests/oracle";
  return std::filesystem::path(__FILE__).parent_path().parent_path() / "oracle";
}

/// What stands before the names of a result's lines: nothing for the first, "1:" for the second.
inline std::string result_prefix(std::size_t result) { return result == 0 ? std::string() : text(result, ":"); }

/// A block of the file: its lines by their first word.
class OracleBlock {
 public:
  std::map<std::string, std::string> lines;

  bool has(const std::string& name) const { return lines.count(name) != 0; }
  Values values(const std::string& name) const {
    Values out;
    std::istringstream words(lines.at(name));
    for (std::string word; words >> word;) {
      bool integer = word.find_first_not_of("-0123456789") == std::string::npos;
      out.push_back(integer ? static_cast<Value>(std::strtoll(word.c_str(), nullptr, 10))
                            : static_cast<Value>(std::strtod(word.c_str(), nullptr)));
    }
    return out;
  }
  Sizes shape(std::size_t result = 0) const {
    Sizes out;
    std::istringstream parts(lines.at(result_prefix(result) + "shape"));
    for (std::string part; std::getline(parts, part, ',');) out.push_back(std::stoll(part));
    return out;
  }
};

class Oracle {
 public:
  static const Oracle& instance() {
    static const Oracle one;
    return one;
  }
  const OracleBlock* find(const std::string& header) const {
    auto found = blocks_.find(header);
    return found == blocks_.end() ? nullptr : &found->second;
  }

 private:
  Oracle() {
    read(oracle_folder() / "values.txt");
    for (const auto& entry : std::filesystem::directory_iterator(oracle_folder() / "values")) read(entry.path());
  }
  void read(const std::filesystem::path& path) {
    std::ifstream file(path);
    OracleBlock* block = nullptr;
    for (std::string line; std::getline(file, line);) {
      std::string word = line.substr(0, line.find(' '));
      if (word == "map" || word == "cast" || word == "sample" || word == "composite" || word == "random" ||
          word == "special")
        block = &blocks_[line];
      else if (block && word != "#")
        block->lines[word] = line.size() > word.size() ? line.substr(word.size() + 1) : std::string();
    }
  }
  std::map<std::string, OracleBlock> blocks_;
};

}  // namespace stet::op_test

// The documented functions of stet/ops/*.cpp, as the build collected them.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stet::tools {

struct FunctionRow {
  std::string_view family;      // "Elementwise"
  std::string_view name;        // "relu", "random::normal"
  std::string_view signatures;  // as code of Markdown: "`(In x, In y)`"
  std::string_view words;       // what it gives
  std::string_view elsewhere;   // its names in other libraries, with ", " between them
  std::string_view example;     // empty if it has none
  std::string (*result)();      // of the example, computed now, on one line
};

/// In the order of the files; functions of a family may stand in several places.
std::span<const FunctionRow> function_rows();
/// The names of one in other libraries: {"numpy.add", "torch.add"}.
std::vector<std::string> names_elsewhere(const FunctionRow& row);

/// Every function as Markdown: what it gives, its names elsewhere, an example and what the example gives.
std::string functions_page();
/// The names of other libraries that functions are known under, as Markdown, by library.
std::string names_page();

}  // namespace stet::tools

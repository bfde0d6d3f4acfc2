#include "stet/tools/functions.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>

#include "stet/ops/ops.h"

namespace stet {
namespace {

/// On one line, as a list has it.
std::string shown(const Tensor& result) {
  std::string out, text = to_string(result);
  for (char c : text)
    if (c != '\n' && (c != ' ' || out.empty() || (out.back() != ' ' && out.back() != '['))) out += c;
  return out;
}

void print_function(const std::string& name, const std::string& words, const std::string& elsewhere,
                    const std::string& example = {}, const std::string& result = {}) {
  std::cout << "- **`" << name << "`** " << words;
  if (!elsewhere.empty()) std::cout << " *" << elsewhere << "*";
  if (!example.empty()) std::cout << " `" << example << "` → `" << result << "`";
  std::cout << "\n";
}

}  // namespace

#define STET_FUNCTION(name, words, elsewhere, ...) \
  print_function(name, words, elsewhere, #__VA_ARGS__, shown(__VA_ARGS__));
#define STET_FUNCTION_WITHOUT_EXAMPLE(name, words, elsewhere) print_function(name, words, elsewhere);

void print_functions() {
#include "stet/ops/functions.def"
}

}  // namespace stet

#include "stet/tools/functions.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stet/base/text.h"
#include "stet/ops/ops.h"

namespace stet::tools {
namespace {

/// On one line, as a list has it.
std::string shown(const Tensor& result) {
  std::string out, text = to_string(result);
  for (char c : text)
    if (c != '\n' && (c != ' ' || out.empty() || (out.back() != ' ' && out.back() != '['))) out += c;
  return out;
}
std::string shown(const Shape& result) { return result.str(); }

/// What functions.def is read into.
class Rows {
 public:
  Rows() {
#define STET_FAMILY(name) family_ = name;
#define STET_FUNCTION(name, signatures, words, elsewhere, ...)               \
  rows.push_back({family_, name, signatures, words, elsewhere, #__VA_ARGS__, \
                  []() -> std::string { return shown(__VA_ARGS__); }});
#define STET_FUNCTION_WITHOUT_EXAMPLE(name, signatures, words, elsewhere) \
  rows.push_back({family_, name, signatures, words, elsewhere, {}, nullptr});
#include "stet/ops/functions.def"
#undef STET_FAMILY
#undef STET_FUNCTION
#undef STET_FUNCTION_WITHOUT_EXAMPLE
  }
  std::vector<FunctionRow> rows;

 private:
  std::string_view family_;
};

/// The last part of tf.nn.relu, or of random::uniform.
std::string_view own_name(std::string_view name) { return name.substr(name.find_last_of(".:") + 1); }

/// Names of one library, and what has them here.
using Library = std::map<std::string, std::vector<std::string>>;

bool same(const std::string& elsewhere, const std::vector<std::string>& here) {
  return here.size() == 1 && own_name(elsewhere) == own_name(here[0]);
}

std::string library_page(const char* title, const Library& library) {
  std::string out = text("\n### ", title, "\n\nUnder the same name: ");
  const char* between = "";
  for (const auto& [elsewhere, here] : library)
    if (same(elsewhere, here)) {
      out += text(between, "`", elsewhere, "`");
      between = ", ";
    }
  out += ".\n\n| elsewhere | stet |\n|---|---|\n";
  for (const auto& [elsewhere, here] : library)
    if (!same(elsewhere, here)) out += text("| `", elsewhere, "` | `", joined(here, "`, `"), "` |\n");
  return out;
}

}  // namespace

std::span<const FunctionRow> function_rows() {
  static const Rows all;
  return all.rows;
}

std::vector<std::string> names_elsewhere(const FunctionRow& row) {
  std::vector<std::string> out;
  for (std::string_view rest = row.elsewhere; !rest.empty();) {
    std::size_t end = std::min(rest.find(", "), rest.size());
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return out;
}

std::string functions_page() {
  struct Family {
    std::string_view name;
    std::string lines;
  };
  std::vector<Family> families;
  for (const FunctionRow& row : function_rows()) {
    auto family =
        std::find_if(families.begin(), families.end(), [&](const Family& known) { return known.name == row.family; });
    if (family == families.end()) family = families.insert(family, {row.family, ""});
    family->lines += text("- **`", row.name, "`** ", row.signatures, " ", row.words);
    if (!row.elsewhere.empty()) family->lines += text(" *", row.elsewhere, "*");
    if (row.result) family->lines += text(" `", row.example, "` → `", row.result(), "`");
    family->lines += "\n";
  }
  std::string out;
  for (const Family& family : families) out += text("\n### ", family.name, "\n\n", family.lines);
  return out + "\n";
}

std::string names_page() {
  // An array-API name has a page's table of its own; jax.numpy has NumPy's names.
  std::map<std::string, Library> libraries;
  for (const FunctionRow& row : function_rows())
    for (const std::string& one : names_elsewhere(row)) {
      if (one.starts_with("array_api.") || one.starts_with("jax.numpy.")) continue;
      std::vector<std::string>& here = libraries[one.substr(0, one.find('.'))][one];
      if (std::find(here.begin(), here.end(), row.name) == here.end()) here.emplace_back(row.name);
    }
  static constexpr std::pair<const char*, const char*> titles[] = {
      {"numpy", "NumPy"}, {"scipy", "SciPy"},   {"tf", "TensorFlow"},
      {"keras", "Keras"}, {"torch", "PyTorch"}, {"jax", "JAX (jax.numpy: as NumPy)"}};
  std::string out;
  for (auto [library, title] : titles) out += library_page(title, libraries.at(library));
  return out + "\n";
}

}  // namespace stet::tools

#include "stet/tools/functions.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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
std::string shown(const Shape& result) { return result.str(); }

/// Functions that belong together, and their lines.
struct Family {
  std::string name, lines;
};

class Page {
 public:
  /// What follows belongs to it. A family may come several times: its functions stand in several files.
  void family(const std::string& name) {
    current_ = std::find_if(families_.begin(), families_.end(), [&](const Family& f) { return f.name == name; });
    if (current_ == families_.end()) current_ = families_.insert(current_, {name, ""});
  }

  void function(const std::string& name, const std::string& signatures, const std::string& words,
                const std::string& elsewhere, const std::string& example = {}, const std::string& result = {}) {
    std::string& out = current_->lines;
    out += "- **`" + name + "`** " + signatures + " " + words;
    if (!elsewhere.empty()) out += " *" + elsewhere + "*";
    if (!example.empty()) out += " `" + example + "` → `" + result + "`";
    out += "\n";
  }

  void print() const {
    for (const Family& f : families_) std::cout << "\n### " << f.name << "\n\n" << f.lines;
    std::cout << "\n";
  }

 private:
  std::vector<Family> families_;
  std::vector<Family>::iterator current_ = families_.end();
};

/// The last part of tf.nn.relu, or of random::uniform.
std::string_view own_name(std::string_view name) { return name.substr(name.find_last_of(".:") + 1); }

/// Names of other libraries, and what has them here.
class Names {
 public:
  /// `elsewhere` is a list with commas. An array-API name has a page's table of its own; jax.numpy has NumPy's names.
  void function(const std::string& name, std::string_view elsewhere) {
    while (!elsewhere.empty()) {
      std::size_t end = std::min(elsewhere.find(", "), elsewhere.size());
      std::string_view one = elsewhere.substr(0, end);
      elsewhere.remove_prefix(std::min(end + 2, elsewhere.size()));
      if (one.starts_with("array_api.") || one.starts_with("jax.numpy.")) continue;
      std::vector<std::string>& here = libraries_[std::string(one.substr(0, one.find('.')))][std::string(one)];
      if (std::find(here.begin(), here.end(), name) == here.end()) here.push_back(name);
    }
  }

  void print() const {
    static constexpr std::pair<const char*, const char*> titles[] = {
        {"numpy", "NumPy"}, {"scipy", "SciPy"},   {"tf", "TensorFlow"},
        {"keras", "Keras"}, {"torch", "PyTorch"}, {"jax", "JAX (jax.numpy: as NumPy)"}};
    for (auto [library, title] : titles) print(title, libraries_.at(library));
    std::cout << "\n";
  }

 private:
  using Library = std::map<std::string, std::vector<std::string>>;

  static void print(const char* title, const Library& library) {
    std::cout << "\n### " << title << "\n\nUnder the same name: ";
    const char* between = "";
    for (const auto& [elsewhere, here] : library)
      if (same(elsewhere, here)) {
        std::cout << between << "`" << elsewhere << "`";
        between = ", ";
      }
    std::cout << ".\n\n| elsewhere | stet |\n|---|---|\n";
    for (const auto& [elsewhere, here] : library) {
      if (same(elsewhere, here)) continue;
      std::cout << "| `" << elsewhere << "` |";
      for (const std::string& name : here) std::cout << (&name == &here[0] ? " `" : ", `") << name << "`";
      std::cout << " |\n";
    }
  }
  static bool same(const std::string& elsewhere, const std::vector<std::string>& here) {
    return here.size() == 1 && own_name(elsewhere) == own_name(here[0]);
  }

  std::map<std::string, Library> libraries_;
};

}  // namespace

#define STET_FAMILY(name) page.family(name);
#define STET_FUNCTION(name, signatures, words, elsewhere, ...) \
  page.function(name, signatures, words, elsewhere, #__VA_ARGS__, shown(__VA_ARGS__));
#define STET_FUNCTION_WITHOUT_EXAMPLE(name, signatures, words, elsewhere) \
  page.function(name, signatures, words, elsewhere);

void print_functions() {
  Page page;
#include "stet/ops/functions.def"
  page.print();
}

#undef STET_FAMILY
#undef STET_FUNCTION
#undef STET_FUNCTION_WITHOUT_EXAMPLE
#define STET_FAMILY(name)
#define STET_FUNCTION(name, signatures, words, elsewhere, ...) names.function(name, elsewhere);
#define STET_FUNCTION_WITHOUT_EXAMPLE(name, signatures, words, elsewhere) names.function(name, elsewhere);

void print_names() {
  Names names;
#include "stet/ops/functions.def"
  names.print();
}

}  // namespace stet

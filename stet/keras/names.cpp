#include "stet/keras/names.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <memory>
#include <typeinfo>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/keras/layer.h"

namespace stet::keras {
namespace {

struct Numbers {
  Lock guard;
  std::map<std::string, int, std::less<>> used;
};
Numbers& numbers() {
  static Numbers* const all = new Numbers;  // never destroyed: handles may be made until the process ends
  return *all;
}

bool upper(char c) { return std::isupper(static_cast<unsigned char>(c)); }
bool lower(char c) { return std::islower(static_cast<unsigned char>(c)); }

}  // namespace

std::string class_name_of(const inside::Body& body) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(typeid(body).name(), nullptr, nullptr, &status),
                                               std::free);
  std::string name = plain ? plain.get() : "Layer";
  const bool ours = name.starts_with("stet::keras::");
  // Without namespaces, but not cut inside template arguments.
  std::size_t end = name.find('<');
  std::size_t colon = name.rfind("::", end);
  name = name.substr(colon == std::string::npos ? 0 : colon + 2,
                     end == std::string::npos ? end : end - (colon == std::string::npos ? 0 : colon + 2));
  constexpr std::string_view suffix = "Body";  // the word that tells our bodies from their handles
  if (ours && name.size() > suffix.size() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

std::string snake_case(std::string_view class_name) {
  std::string out;
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    const bool word_starts = i > 0 && upper(class_name[i]) &&
                             (lower(class_name[i - 1]) || (i + 1 < class_name.size() && lower(class_name[i + 1])));
    if (word_starts) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(class_name[i])));
  }
  return out;
}

std::string next_name(std::string_view class_name) {
  std::string base = snake_case(class_name);
  Numbers& all = numbers();
  std::lock_guard lock(all.guard);
  int number = all.used[base]++;
  return number == 0 ? base : text(base, "_", number);
}

void clear_session() {
  Numbers& all = numbers();
  std::lock_guard lock(all.guard);
  all.used.clear();
}

}  // namespace stet::keras

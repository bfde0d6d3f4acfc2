#include "stet/tools/words.h"

#include <algorithm>
#include <numeric>

#include "stet/base/text.h"
#include "stet/files/utf8.h"

namespace stet::tools {
namespace {

/// How many letters are to be put in, taken out, changed or swapped with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string out;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& one : known) {
    // What was begun and not finished is near, too.
    std::size_t apart = word.size() >= 2 && one.starts_with(word) ? 1 : distance(word, one);
    if (apart < least) {
      least = apart;
      out = one;
    }
  }
  return out;
}

UsageError unknown_word(std::string_view what, std::string_view word, std::span<const std::string> known,
                        std::string_view see) {
  std::string near = nearest(word, known);
  return UsageError(text("there is no ", what, " ", files::quoted_name(word), "; ",
                         near.empty() ? std::string() : text("the nearest is '", near, "' ("), see,
                         near.empty() ? " lists all" : " lists all)"));
}

Words::Words(const Command& command, std::span<const std::string> given) : command_(command) {
  bool options_end = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& word = given[i];
    if (options_end || word.size() < 2 || word[0] != '-') {
      plain_.push_back(word);
      continue;
    }
    if (word == "--") {
      options_end = true;
      continue;
    }
    std::string name = word.substr(0, word.find('='));
    auto option = std::find_if(command.options.begin(), command.options.end(),
                               [&](const Option& candidate) { return candidate.name == name; });
    if (option == command.options.end()) {
      std::vector<std::string> known = {"--help"};
      for (const Option& one : command.options) known.emplace_back(one.name);
      throw unknown_word(text("option of stet ", command.name), name, known, text("stet help ", command.name));
    }
    const bool joined = name.size() < word.size();
    if (option->value.empty() && joined)
      throw UsageError(text("stet ", command.name, ": ", name, " takes no value, and got ", files::quoted_name(word)));
    if (!option->value.empty() && !joined && i + 1 == given.size())
      throw UsageError(text("stet ", command.name, ": behind ", name, " stands its value: ", name, " ", option->value));
    std::string value;
    if (!option->value.empty()) value = joined ? word.substr(name.size() + 1) : given[++i];
    options_.push_back({name, value});
  }
}

std::optional<std::string> Words::value(std::string_view option) const {
  // Given twice, the last one counts.
  for (auto one = options_.rbegin(); one != options_.rend(); ++one)
    if (one->option == option) return one->value;
  return std::nullopt;
}

std::vector<std::string> Words::values(std::string_view option) const {
  std::vector<std::string> out;
  for (const Given& one : options_)
    if (one.option == option) out.push_back(one.value);
  return out;
}

std::string Words::one_of(std::span<const std::string_view> words, std::size_t more) const {
  if (plain_.empty()) return {};
  if (std::find(words.begin(), words.end(), plain_[0]) == words.end())
    throw unknown_word(text("word of stet ", command_.name), plain_[0],
                       std::vector<std::string>(words.begin(), words.end()), text("stet help ", command_.name));
  at_most(1 + more);
  return plain_[0];
}

void Words::at_most(std::size_t count) const {
  if (plain_.size() > count)
    throw UsageError(text("stet ", command_.name, ": ", files::quoted_name(plain_[count]),
                          " is one word too many; stet help ", command_.name, " shows how it is called"));
}

}  // namespace stet::tools

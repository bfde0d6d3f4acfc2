#include "stet/report/source_lines.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "stet/files/utf8.h"
#include "stet/report/json_members.h"

namespace stet::reporting {
namespace {

constexpr int around = 3;
constexpr std::size_t largest_file = std::size_t{4} << 20, longest_line = 400;

bool is_source(std::string_view file) {
  constexpr std::string_view endings[] = {"c",  "cc",  "cpp", "cxx", "c++", "cu",  "h",
                                          "hh", "hpp", "hxx", "h++", "inc", "ipp", "def"};
  const std::size_t point = file.rfind('.');
  return point != std::string_view::npos &&
         std::find(std::begin(endings), std::end(endings), file.substr(point + 1)) != std::end(endings);
}

/// None if it is not there, is no regular file of a usual size, or was changed since.
std::optional<std::vector<std::string>> read_file(const std::string& path, std::int64_t began_at) {
  struct stat about {};
  if (!is_source(path) || path.find('\0') != std::string::npos || stat(path.c_str(), &about) != 0) return std::nullopt;
  const std::int64_t changed = about.st_mtim.tv_sec * std::int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
  if (!S_ISREG(about.st_mode) || static_cast<std::size_t>(about.st_size) > largest_file || changed > began_at)
    return std::nullopt;
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(files::is_utf8(line) ? std::move(line) : files::shown_name(line));
  }
  return out;
}

/// Not in the middle of a character.
std::string cut(std::string line) {
  if (line.size() <= longest_line) return line;
  std::size_t end = longest_line;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "…";
}

}  // namespace

Sources::Sources(const Recorded& recorded) : began_at_(recorded.began_at) {
  for (const files::Json& note : recorded.notes) {
    if (string_in(note, "note") != "source") continue;
    SourceLines part{small_integer_in(note, "line"), {}};
    for (const files::Json& line : list_in(note, "lines"))
      part.lines.push_back(line.if_string() ? cut(*line.if_string()) : std::string());
    if (part.first > 0 && !part.lines.empty()) told_[string_in(note, "file")].push_back(std::move(part));
  }
}

std::optional<SourceLines> Sources::around(const std::string& file, int line) {
  if (file.empty() || line <= 0) return std::nullopt;
  if (auto told = told_.find(file); told != told_.end())
    for (const SourceLines& part : told->second)
      if (line >= part.first && line - part.first < static_cast<int>(part.lines.size())) return part;
  const std::vector<std::string>* lines = lines_of(file);
  if (!lines || line > static_cast<int>(lines->size())) return std::nullopt;
  SourceLines out{std::max(1, line - reporting::around), {}};
  const int last = std::min(static_cast<int>(lines->size()), line + reporting::around);
  for (int number = out.first; number <= last; ++number)
    out.lines.push_back(cut((*lines)[static_cast<std::size_t>(number) - 1]));
  return out;
}

const std::vector<std::string>* Sources::lines_of(const std::string& file) {
  auto [found, added] = read_.try_emplace(file);
  if (added) found->second = read_file(file, began_at_);
  return found->second ? &*found->second : nullptr;
}

}  // namespace stet::reporting

// Files of TensorBoard's profile tab, read by rules of their own: what a recording was written to, as a reader that has
// never seen its code takes it (tsl/profiler/protobuf/xplane.proto).
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "event_files.h"

namespace profile_files {

using event_files::Message;

/// A number, or a text.
struct Stat {
  std::string text = {};
  double number = 0;
  bool operator==(const Stat&) const = default;
};
using Stats = std::map<std::string, Stat>;

struct Event {
  std::string name = {};
  std::int64_t begin = 0, duration = 0;  // ps
  Stats stats = {};                      // of its kind, too

  std::int64_t end() const { return begin + duration; }
  bool has(const std::string& stat) const { return stats.contains(stat); }
  std::string text(const std::string& stat) const { return has(stat) ? stats.at(stat).text : std::string(); }
  double number(const std::string& stat) const { return has(stat) ? stats.at(stat).number : 0; }
};

struct Line {
  std::int64_t id = 0, duration = 0;
  std::string name = {};
  std::vector<Event> events = {};
};

struct Plane {
  std::string name = {};
  Stats stats = {};
  std::vector<Line> lines = {};

  const Line& line(const std::string& called) const {
    for (const Line& one : lines)
      if (one.name == called) return one;
    throw std::runtime_error("there is no line " + called);
  }
  bool has(const std::string& called) const {
    for (const Line& one : lines)
      if (one.name == called) return true;
    return false;
  }
};

struct Space {
  std::vector<Plane> planes = {};
  std::vector<std::string> warnings = {}, hosts = {};

  const Plane& plane(const std::string& called) const {
    for (const Plane& one : planes)
      if (one.name == called) return one;
    throw std::runtime_error("there is no plane " + called);
  }
  const Plane& host() const { return plane("/host:CPU"); }
  /// Of a stat "kind", on all threads.
  std::vector<Event> of_kind(const std::string& kind) const {
    std::vector<Event> out;
    for (const Line& line : host().lines)
      for (const Event& event : line.events)
        if (event.text("kind") == kind) out.push_back(event);
    return out;
  }
  std::vector<Event> named(const std::string& called) const {
    std::vector<Event> out;
    for (const Line& line : host().lines)
      for (const Event& event : line.events)
        if (event.name == called) out.push_back(event);
    return out;
  }
};

/// Nothing but these numbers is in it.
inline void only(const Message& message, const std::set<unsigned>& numbers, const char* what) {
  for (const Message::Field& field : message.fields)
    if (!numbers.contains(field.number))
      throw std::runtime_error(std::string(what) + " has a field " + std::to_string(field.number));
}

/// A string: readers of protocol buffers refuse a file in which one is not UTF-8.
inline std::string string_of(const Message& message, unsigned number) {
  const std::string out = message.bytes(number);
  for (std::size_t at = 0; at < out.size();) {
    const auto first = static_cast<unsigned char>(out[at]);
    const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (length == 0 || at + length > out.size()) throw std::runtime_error("a string that is not UTF-8");
    for (std::size_t next = at + 1; next < at + length; ++next)
      if ((static_cast<unsigned char>(out[next]) & 0xC0) != 0x80)
        throw std::runtime_error("a string that is not UTF-8");
    at += length;
  }
  return out;
}

using Names = std::map<std::uint64_t, std::string>;

inline void add_stat(Stats& to, const Message& stat, const Names& names) {
  only(stat, {1, 2, 3, 4, 5, 7}, "a stat");
  if (stat.fields.size() != 2) throw std::runtime_error("a stat has a name and one value");
  Stat value;
  if (stat.has(2)) value.number = stat.real(2);
  if (stat.has(3)) value.number = static_cast<double>(stat.integer(3));
  if (stat.has(4)) value.number = static_cast<double>(static_cast<std::int64_t>(stat.integer(4)));
  if (stat.has(5)) value.text = string_of(stat, 5);
  if (stat.has(7)) value.text = names.at(stat.integer(7));
  if (!to.emplace(names.at(stat.integer(1)), value).second) throw std::runtime_error("two stats of one name");
}

inline Plane plane_of(const Message& in) {
  only(in, {1, 2, 3, 4, 5, 6}, "a plane");
  Plane out{.name = in.bytes(2)};
  Names stat_names;
  std::set<std::string> different;
  for (const Message& entry : in.messages(5)) {
    const Message metadata = entry.message(2);
    only(metadata, {1, 2}, "a stat's metadata");
    if (entry.integer(1) == 0 || entry.integer(1) != metadata.integer(1))
      throw std::runtime_error("a stat's metadata has another number than its key");
    stat_names[entry.integer(1)] = string_of(metadata, 2);
    if (!different.insert(metadata.bytes(2)).second)
      throw std::runtime_error("two stats are called " + metadata.bytes(2));
  }
  std::map<std::uint64_t, Event> kinds;
  for (const Message& entry : in.messages(4)) {
    const Message metadata = entry.message(2);
    only(metadata, {1, 2, 5}, "an event's metadata");
    if (entry.integer(1) == 0 || entry.integer(1) != metadata.integer(1))
      throw std::runtime_error("an event's metadata has another number than its key");
    Event& kind = kinds[entry.integer(1)];
    kind.name = string_of(metadata, 2);
    for (const Message& stat : metadata.messages(5)) add_stat(kind.stats, stat, stat_names);
  }
  for (const Message& stat : in.messages(6)) add_stat(out.stats, stat, stat_names);
  std::set<std::int64_t> ids;
  for (const Message& line : in.messages(3)) {
    only(line, {1, 2, 4, 9}, "a line");
    out.lines.push_back({.id = static_cast<std::int64_t>(line.integer(1)),
                         .duration = static_cast<std::int64_t>(line.integer(9)),
                         .name = string_of(line, 2)});
    if (out.lines.back().id == 0 || !ids.insert(out.lines.back().id).second)
      throw std::runtime_error("two lines have one number");
    std::vector<std::int64_t> ends;
    for (const Message& event : line.messages(4)) {
      only(event, {1, 2, 3, 4}, "an event");
      Event one = kinds.at(event.integer(1));
      one.begin = static_cast<std::int64_t>(event.integer(2));
      one.duration = static_cast<std::int64_t>(event.integer(3));
      for (const Message& stat : event.messages(4)) add_stat(one.stats, stat, stat_names);
      if (one.begin < 0 || one.duration < 0) throw std::runtime_error("a time before the beginning");
      // What a line has one after the other nests.
      while (!ends.empty() && ends.back() <= one.begin) ends.pop_back();
      if (!ends.empty() && one.end() > ends.back()) throw std::runtime_error(one.name + " does not nest");
      ends.push_back(one.end());
      out.lines.back().events.push_back(std::move(one));
    }
  }
  return out;
}

/// Throws for what is no XSpace.
inline Space parse(std::string_view bytes) {
  const Message in(bytes);
  only(in, {1, 3, 4}, "a space");
  Space out;
  for (const Message& plane : in.messages(1)) out.planes.push_back(plane_of(plane));
  for (const Message::Field& field : in.all(3)) out.warnings.push_back(field.bytes);
  for (const Message::Field& field : in.all(4)) out.hosts.push_back(field.bytes);
  return out;
}

inline Space read(const std::string& path) { return parse(data_files::bytes_of(path)); }

/// All of a folder that TensorBoard is called with, by name.
inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> out;
  if (!std::filesystem::exists(folder)) return out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(".xplane.pb")) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace profile_files

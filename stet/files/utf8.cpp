#include "stet/files/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace stet::files {

std::size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                       : first >= 0xE0 && first <= 0xEF ? 3
                       : first >= 0xF0 && first <= 0xF4 ? 4
                                                        : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  auto second = static_cast<unsigned char>(text[1]);
  bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
             (first == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    // Most of most texts is ASCII.
    if (std::uint64_t eight; text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        text.remove_prefix(sizeof eight);
        continue;
      }
    }
    std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string shown_name(std::string_view name) {
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t length = character_length(name.substr(at));
    auto byte = static_cast<unsigned char>(name[at]);
    auto next = static_cast<unsigned char>(length > 1 ? name[at + 1] : 0);
    // C0, DEL, and C1, which UTF-8 has as C2 80 to C2 9F.
    bool shown = length == 1 ? byte >= 0x20 && byte != 0x7F : length > 1 && !(byte == 0xC2 && next < 0xA0);
    if (shown) {
      out += name.substr(at, length);
      at += length;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
      ++at;
    }
  }
  return out;
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t longest = 120;
  std::size_t end = std::min(name.size(), longest);
  // Not inside of a character.
  while (end < name.size() && end < longest + 3 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) ++end;
  return "'" + shown_name(name.substr(0, end)) + (end < name.size() ? "…'" : "'");
}

}  // namespace stet::files

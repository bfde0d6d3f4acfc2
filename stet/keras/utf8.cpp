#include "stet/keras/utf8.h"

#include <algorithm>

#include "stet/files/utf8.h"

namespace stet::keras {

using files::character_length;

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

}  // namespace

std::optional<std::size_t> first_invalid_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string ascii_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string without_punctuation(std::string text) {
  std::erase_if(text, is_punctuation);
  return text;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = std::find_if_not(at, text.end(), is_space);
    at = std::find_if(begin, text.end(), is_space);
    if (begin != at) out.emplace_back(begin, at);
  }
  return out;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size(); at += out.back().size())
    out.emplace_back(text.substr(at, character_length(text.substr(at))));
  return out;
}

std::vector<std::string> ngrams(const std::vector<std::string>& tokens, const std::vector<int>& widths) {
  std::vector<std::string> out;
  for (int width : widths) {
    const auto count = static_cast<std::size_t>(width);
    for (std::size_t begin = 0; begin + count <= tokens.size(); ++begin) {
      std::string joined = tokens[begin];
      for (std::size_t i = 1; i < count; ++i) joined += ' ' + tokens[begin + i];
      out.push_back(std::move(joined));
    }
  }
  return out;
}

}  // namespace stet::keras

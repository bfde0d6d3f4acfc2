// Texts of UTF-8, as TextVectorization reads them. Not a public header.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet::keras {

/// Where a text stops being UTF-8, if it does: overlong forms, surrogates and what is beyond U+10FFFF are none.
std::optional<std::size_t> first_invalid_byte(std::string_view text);

/// A to Z in lower case; all other characters stay, as in Keras.
std::string ascii_lower_case(std::string text);
/// Without the 32 punctuation characters of ASCII.
std::string without_punctuation(std::string text);
/// What stands between spaces, tabs and line ends of ASCII.
std::vector<std::string> words(std::string_view text);
/// Its code points. It is UTF-8.
std::vector<std::string> characters(std::string_view text);
/// Of each width, in order, so many tokens in a row joined by spaces.
std::vector<std::string> ngrams(const std::vector<std::string>& tokens, const std::vector<int>& widths);

}  // namespace stet::keras

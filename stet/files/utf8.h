// Whether text that a file gives is UTF-8. Not a public header.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace stet::files {

/// Bytes of the character that the text begins with; 0 if that is none: overlong forms, surrogates, beyond U+10FFFF.
std::size_t character_length(std::string_view text);
bool is_utf8(std::string_view text);
/// The same text, with U+FFFD for every byte that is no part of a character.
std::string as_utf8(std::string_view text);
/// A name that a file gave, or of a file, as errors show it: with nothing that a terminal obeys.
std::string shown_name(std::string_view name);
/// The same in quotes, and cut where it is long.
std::string quoted_name(std::string_view name);

}  // namespace stet::files

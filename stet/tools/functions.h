#pragma once

namespace stet {

/// Every documented function of stet/ops/*.cpp as Markdown: what it gives, its names elsewhere, an example and what the
/// example gives, computed now.
void print_functions();

/// The names of other libraries that functions of stet/ops/*.cpp are known under, as Markdown, by library.
void print_names();

}  // namespace stet

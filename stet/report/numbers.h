// Numbers as sentences and tables for people have them. Private to report/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace stet::reporting {

/// "850 ns", "3.2 µs", "12 ms", "8.4 s", "3 min 5 s", "2 h 4 min".
std::string seconds_text(double seconds);
/// "0.4 %", "21 %"; less than all is never 100 %.
std::string percent_text(double share);
/// "1,234,567".
std::string count_text(std::int64_t count);
/// "1 trace", "12 traces".
std::string counted(std::int64_t count, std::string_view thing);
/// Three digits and a prefix of a thousand: "12.3 G"; the unit goes behind it.
std::string prefixed(double value);
/// "1.3 MiB".
std::string bytes_text(double bytes);
/// The end of a path and a line: "train.cpp:57".
std::string place_text(std::string_view file, int line);

}  // namespace stet::reporting

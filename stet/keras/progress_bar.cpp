#include "stet/keras/progress_bar.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "stet/base/text.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

constexpr int usual_cells = 20;
constexpr double least_interval = 0.05;

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  char out[64];
  std::snprintf(out, sizeof out, format, arguments...);
  return out;
}

std::string repeated(std::string_view cell, std::int64_t count) {
  std::string out;
  for (std::int64_t i = 0; i < count; ++i) out += cell;
  return out;
}

/// Columns on a terminal: colour codes take none, and of a character's bytes only the first.
std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\33') {
      i = std::min(line.find('m', i), line.size());
      continue;
    }
    if ((static_cast<unsigned char>(line[i]) & 0xc0) != 0x80) ++count;
  }
  return count;
}

/// The first so many columns, the last of them "…"; colours end there.
std::string cut(const std::string& line, std::size_t most) {
  std::string out;
  std::size_t taken = 0;
  bool in_color = false;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '\33') {
      const std::size_t end = std::min(line.find('m', i), line.size() - 1) + 1;
      out += line.substr(i, end - i);
      in_color = !out.ends_with("\33[0m");
      i = end;
      continue;
    }
    if (++taken >= most) break;
    do out += line[i++];
    while (i < line.size() && (static_cast<unsigned char>(line[i]) & 0xc0) == 0x80);
  }
  return text(out, "…", in_color ? "\33[0m" : "");
}

std::string remaining(double seconds) {
  auto whole = static_cast<long long>(seconds);
  if (seconds > 3600) return formatted("%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
  if (seconds > 60) return formatted("%lld:%02lld", whole / 60, whole % 60);
  return formatted("%llds", whole);
}

std::string per_step(double seconds) {
  if (seconds >= 1 || seconds == 0) return formatted("%.0fs/step", seconds);
  if (seconds >= 1e-3) return formatted("%.0fms/step", seconds * 1e3);
  return formatted("%.0fus/step", seconds * 1e6);
}

std::string counted(std::int64_t current, std::optional<std::int64_t> target) {
  if (!target) return formatted("%7lld/Unknown", static_cast<long long>(current));
  return formatted("%*lld/%lld", static_cast<int>(text(*target).size()), static_cast<long long>(current),
                   static_cast<long long>(*target));
}

}  // namespace

std::string metric_text(double value) {
  if (std::isnan(value)) return "nan";  // printf may write -nan
  return formatted(std::abs(value) > 1e-3 ? "%.4f" : "%.4e", value);
}

ProgressBar::ProgressBar(std::ostream& out, ProgressOptions options)
    : out_(out), options_(std::move(options)), start_(options_.seconds()), last_drawn_(start_ - 1) {}

ProgressBar::~ProgressBar() {
  if (!line_open_) return;
  out_ << "\n" << std::flush;
  if (options_.in_place) set_line_open(false);
}

std::string ProgressBar::bold(const std::string& what) const {
  return options_.color ? text("\33[1m", what, "\33[0m") : what;
}

/// Behind a line that takes the whole width a terminal may begin another.
bool ProgressBar::fits(const std::string& line) const {
  return options_.columns == 0 || !options_.in_place || columns(line) < options_.columns;
}

std::string ProgressBar::bar(std::int64_t current, int cells) const {
  if (!options_.target) return counted(current, {});
  std::int64_t done = *options_.target > 0 ? std::min<std::int64_t>(cells * current / *options_.target, cells) : cells;
  if (cells == 0) return bold(counted(current, options_.target));
  // Without colours, what is done must look different.
  if (!options_.color)
    return text(counted(current, options_.target), " ", repeated("━", done), repeated("─", cells - done));
  return text(bold(counted(current, options_.target)), " ",
              done > 0 ? text("\33[32m", repeated("━", done), "\33[0m") : std::string(), "\33[37m",
              repeated("━", cells - done), "\33[0m");
}

/// The first step, in which functions are traced, says nothing about the others.
double ProgressBar::step_seconds(std::int64_t current) const {
  if (current == 0) return 0;
  if (first_step_end_ && current > 1) return (options_.seconds() - *first_step_end_) / static_cast<double>(current - 1);
  return (options_.seconds() - start_) / static_cast<double>(current);
}

std::string ProgressBar::notes(bool last) const {
  std::string out;
  if (tracing_seconds_ && !last)
    out += *tracing_seconds_ < 0.1 ? formatted(" (tracing %.0f ms)", 1e3 * *tracing_seconds_)
                                   : formatted(" (tracing %.1f s)", *tracing_seconds_);
  if (traces_ > 1) out += text(" · ", traces_, " traces");
  return out;
}

void ProgressBar::put(std::string line, bool last) {
  std::string out = options_.in_place ? text(std::string(columns_drawn_, '\b'), "\r") : std::string("\n");
  if (!last && !fits(line)) line = cut(line, options_.columns - 1);
  const std::size_t width = columns(line);
  out += line;
  if (options_.in_place && columns_drawn_ > width) out += std::string(columns_drawn_ - width, ' ');
  if (last) out += "\n";
  out_ << out << std::flush;
  columns_drawn_ = width;
  line_open_ = !last;
  if (options_.in_place) set_line_open(line_open_);
  last_drawn_ = options_.seconds();
}

void ProgressBar::tracing(const std::string& function) {
  if (options_.verbose == 1 && options_.in_place) put(text(bar(0, usual_cells), " tracing ", function, " …"), false);
}

void ProgressBar::traced(double seconds, int traces) {
  tracing_seconds_ = seconds;
  traces_ = traces;
}

bool ProgressBar::due() const {
  return options_.verbose == 1 && (tracing_seconds_ || options_.seconds() - last_drawn_ >= least_interval);
}

void ProgressBar::draw(std::int64_t current, const Values& values, bool last) {
  const double seconds = step_seconds(current);
  std::string line;
  if (options_.verbose == 2) {
    std::optional<std::int64_t> target = options_.target ? options_.target : current;
    line = text(counted(current, target), formatted(" - %.0fs - ", options_.seconds() - start_), per_step(seconds));
  } else {
    const bool estimated = options_.target && *options_.target > 0 && !last;
    line = text(" ",
                bold(estimated ? remaining(seconds * static_cast<double>(*options_.target - current))
                               : formatted("%.0fs", options_.seconds() - start_)),
                " ", per_step(seconds));
  }
  for (const auto& [name, value] : values) line += text(" - ", name, ": ", metric_text(value));
  line += notes(last);
  if (options_.verbose == 1) {
    // Where there is little room, numbers say more than cells.
    const std::string whole = bar(current, usual_cells) + line;
    line = last || fits(whole) ? whole : bar(current, 0) + line;
  }
  if (options_.verbose == 1)
    put(std::move(line), last);
  else
    out_ << line << "\n" << std::flush;
}

void ProgressBar::update(std::int64_t current, const Values& values) {
  if (due()) draw(current, values, false);
  if (current == 1) first_step_end_ = options_.seconds();
  tracing_seconds_.reset();
}

void ProgressBar::finish(std::int64_t current, const Values& values) {
  tracing_seconds_.reset();
  if (options_.verbose == 1 || options_.verbose == 2) draw(current, values, true);
}

}  // namespace stet::keras

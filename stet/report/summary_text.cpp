#include "stet/report/summary_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/files/utf8.h"
#include "stet/report/findings.h"
#include "stet/report/numbers.h"

namespace stet::reporting {
namespace {

/// Characters, which take a column each: near enough for the names that programs have.
std::size_t columns_of(std::string_view words) {
  return static_cast<std::size_t>(
      std::count_if(words.begin(), words.end(), [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

/// At most so many columns, the last one "…" where it was longer.
std::string fitted(std::string_view words, std::size_t columns) {
  if (columns_of(words) <= columns) return std::string(words);
  if (columns == 0) return {};
  std::size_t end = 0;
  for (std::size_t left = columns - 1; left > 0; --left)
    end += std::max<std::size_t>(files::character_length(words.substr(end)), 1);
  return std::string(words.substr(0, end)) + "…";
}

/// Rows whose cells stand below each other. Numbers stand to the right; the first cell is a name, which gets what room
/// the others leave.
class Columns {
 public:
  explicit Columns(std::vector<std::string> titles) : rows_{std::move(titles)} {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string str(std::size_t width) const {
    std::vector<std::size_t> widths(rows_[0].size());
    for (const std::vector<std::string>& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
    // Columns that nobody has anything to say in are left out.
    auto is_empty = [&](std::size_t column) {
      return std::all_of(rows_.begin() + 1, rows_.end(),
                         [&](const std::vector<std::string>& row) { return row[column].empty(); });
    };
    std::vector<std::size_t> shown;
    std::size_t numbers = indent.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (i > 0 && is_empty(i)) continue;
      shown.push_back(i);
      if (i > 0) numbers += between.size() + widths[i];
    }
    std::size_t name = std::min(widths[0], longest_name);
    // In a narrow terminal the last columns go first, then the name gets shorter.
    constexpr std::size_t shortest_name = 12;
    while (width > 0 && shown.size() > 3 && numbers + std::min(name, shortest_name) > width) {
      numbers -= between.size() + widths[shown.back()];
      shown.pop_back();
    }
    if (width > 0)
      name = std::min(name, std::max(width > numbers ? width - numbers : 0, std::min(name, shortest_name)));
    std::string out;
    for (const std::vector<std::string>& row : rows_) {
      std::string line(indent);
      const std::string first = fitted(row[0], name);
      line += first + std::string(name - columns_of(first), ' ');
      for (std::size_t i : shown) {
        if (i == 0) continue;
        line += text(between, std::string(widths[i] - columns_of(row[i]), ' '), row[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  static constexpr std::size_t longest_name = 60;
  static constexpr std::string_view indent = "  ", between = "  ";
  std::vector<std::vector<std::string>> rows_;  // the first one has titles
};

/// Words broken into lines: the first stands behind `before`, the others below it.
std::string wrapped(std::string_view words, std::size_t width, std::string_view before = {}) {
  std::string out, line(before);
  if (width == 0) return text(before, words, "\n");
  bool has_words = false;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    if (has_words && columns_of(line) + 1 + columns_of(word) > width) {
      out += line + "\n";
      line = std::string(columns_of(before), ' ');
    } else if (has_words) {
      line += ' ';
    }
    line += word;
    has_words = true;
  }
  return out + line + "\n";
}

class Writer {
 public:
  Writer(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits,
         const SummaryTextOptions& options)
      : recorded_(recorded), summary_(summary), limits_(limits), options_(options) {}

  std::string all() {
    head();
    verdict();
    shares();
    functions();
    kernels();
    caches();
    findings();
    return std::move(out_);
  }

 private:
  static std::string shown(std::string_view name) { return files::shown_name(name); }
  std::string bold(std::string_view words) const {
    return options_.color ? text("\33[1m", words, "\33[0m") : std::string(words);
  }
  void title(std::string_view words) { out_ += "\n" + bold(words) + "\n"; }
  std::string share_text(double seconds) const {
    return summary_.seconds > 0 ? percent_text(std::min(seconds / summary_.seconds, 1.0)) : std::string();
  }

  void head() {
    std::string words =
        text(recorded_.program.empty() ? "a program" : shown(recorded_.program), ", ", seconds_text(summary_.seconds));
    if (!recorded_.complete) words += is_being_written(recorded_) ? ", still running" : ", ended before its recording";
    out_ += wrapped(words, options_.width);
  }

  void verdict() {
    for (const std::string& sentence : verdict_of(recorded_, summary_)) {
      // In colour it begins and ends around every line.
      std::string lines = wrapped(shown(sentence), options_.width);
      while (!lines.empty()) {
        const std::size_t end = lines.find('\n');
        out_ += bold(lines.substr(0, end)) + "\n";
        lines.erase(0, end + 1);
      }
    }
  }

  void shares() {
    std::vector<int> order;
    for (int share = 0; share < share_count; ++share)
      if (summary_.shares[share] > 0) order.push_back(share);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return summary_.shares[a] > summary_.shares[b]; });
    if (order.empty() || recorded_.spans.empty()) return;
    title("Where the time went");
    Columns table({"", "share", "time"});
    for (int share : order)
      table.row({share_name(static_cast<Share>(share)), share_text(summary_.shares[share]),
                 seconds_text(summary_.shares[share])});
    out_ += table.str(options_.width);
  }

  void functions() {
    if (summary_.functions.empty()) return;
    title("Functions");
    Columns table({"", "calls", "time", "share", "traces", "again", "tracing", "lost"});
    for (std::size_t i = 0; i < std::min(summary_.functions.size(), options_.functions); ++i) {
      const FunctionSummary& function = summary_.functions[i];
      table.row({shown(function.name), count_text(function.calls), seconds_text(function.seconds),
                 share_text(function.seconds), count_text(function.traces_within()),
                 function.retraces > 0 ? count_text(function.retraces) : "", seconds_text(function.trace_seconds),
                 function.lost_seconds > 0 ? seconds_text(function.lost_seconds) : ""});
    }
    out_ += table.str(options_.width);
    and_more(summary_.functions.size(), options_.functions, "function");
  }

  void kernels() {
    if (summary_.kernels.empty()) return;
    title("Kernels");
    std::vector<std::string> titles = {"", "runs", "time", "share", "each", "GB/s", "GF/s", "threads"};
    if (limits_) titles.insert(titles.end() - 1, "of limit");
    Columns table(std::move(titles));
    for (std::size_t i = 0; i < std::min(summary_.kernels.size(), options_.kernels); ++i) {
      const KernelSummary& kernel = summary_.kernels[i];
      const double bytes = rate(kernel, kernel.bytes), flops = rate(kernel, kernel.flops);
      std::vector<std::string> cells = {shown(kernel.name),
                                        count_text(kernel.count),
                                        seconds_text(kernel.seconds),
                                        share_text(kernel.seconds),
                                        seconds_text(kernel.seconds / static_cast<double>(kernel.count)),
                                        giga_text(bytes),
                                        giga_text(flops)};
      if (limits_) cells.push_back(of_limit(bytes, flops));
      cells.push_back(count_text(kernel.threads));
      table.row(std::move(cells));
    }
    out_ += table.str(options_.width);
    and_more(summary_.kernels.size(), options_.kernels, "kernel");
    if (limits_)
      out_ +=
          wrapped(text("limits of this machine: ", prefixed(limits_->bytes), "B/s, ", prefixed(limits_->flops), "F/s"),
                  options_.width, "  ");
  }

  void caches() {
    if (summary_.caches.empty()) return;
    title("Caches");
    Columns table({"", "found", "of"});
    for (const CacheSummary& cache : summary_.caches)
      table.row({cache.name, percent_text(static_cast<double>(cache.found) / static_cast<double>(cache.of)),
                 count_text(cache.of)});
    out_ += table.str(options_.width);
  }

  static double rate(const KernelSummary& kernel, double amount) {
    return kernel.seconds > 0 ? amount / kernel.seconds : 0;
  }
  static std::string giga_text(double rate) {
    if (rate <= 0) return {};
    std::string digits = prefixed(rate / 1e9);
    while (!digits.empty() && digits.back() == ' ') digits.pop_back();
    return digits;
  }
  /// The nearer one: "memory 85 %".
  std::string of_limit(double bytes, double flops) const {
    const double of_memory = limits_->bytes > 0 ? bytes / limits_->bytes : 0;
    const double of_compute = limits_->flops > 0 ? flops / limits_->flops : 0;
    if (of_memory <= 0 && of_compute <= 0) return {};
    return of_memory >= of_compute ? text("memory ", percent_text(of_memory))
                                   : text("compute ", percent_text(of_compute));
  }

  void and_more(std::size_t all, std::size_t shown, std::string_view thing) {
    if (all > shown) out_ += text("  and ", counted(static_cast<std::int64_t>(all - shown), thing), " more\n");
  }

  void findings() {
    const std::vector<Finding> all = findings_of(recorded_, summary_, limits_);
    if (all.empty()) return;
    title("What to do");
    for (std::size_t i = 0; i < std::min(all.size(), options_.findings); ++i) {
      std::string cost = all[i].weight > 0 ? percent_text(all[i].weight) : "note";
      cost.insert(0, cost.size() < 6 ? 6 - cost.size() : 0, ' ');
      out_ += wrapped(shown(all[i].text), options_.width, text("  ", cost, "  "));
    }
    and_more(all.size(), options_.findings, "finding");
  }

  const Recorded& recorded_;
  const Summary& summary_;
  const std::optional<MachineLimits>& limits_;
  const SummaryTextOptions& options_;
  std::string out_;
};

}  // namespace

std::string summary_text(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits,
                         const SummaryTextOptions& options) {
  return Writer(recorded, summary, limits, options).all();
}

}  // namespace stet::reporting

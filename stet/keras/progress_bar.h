// The progress bar of fit(): Keras's, with traces named. Not a public header.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stet::keras {

struct ProgressOptions {
  std::optional<std::int64_t> target = {};  // steps, if their number is known
  int verbose = 1;                          // 0: nothing, 1: a bar, 2: one line at the end
  bool in_place = false;                    // a terminal: the bar is drawn over itself, elsewhere line by line
  bool color = false;
  std::size_t columns = 0;               // of the terminal: what is drawn over must not be longer; 0: any number
  std::function<double()> seconds = {};  // a clock
};

class ProgressBar {
 public:
  using Values = std::vector<std::pair<std::string, double>>;
  ProgressBar(std::ostream& out, ProgressOptions options);
  /// Ends a line that finish() did not: what an error says goes below it.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// A bar that stands still, before a first step that will be traced.
  void tracing(const std::string& function);
  /// The step that ends now was traced; `traces` there are in all.
  void traced(double seconds, int traces);
  /// A drawing is due: the last one is 0.05 s ago. Values need not be read otherwise.
  bool due() const;
  /// `current` steps are done.
  void update(std::int64_t current, const Values& values);
  /// The last drawing, with the elapsed time, and the end of the line.
  void finish(std::int64_t current, const Values& values);

 private:
  void draw(std::int64_t current, const Values& values, bool last);
  void put(std::string line, bool last);
  std::string bar(std::int64_t current, int cells) const;
  std::string bold(const std::string& what) const;
  bool fits(const std::string& line) const;
  double step_seconds(std::int64_t current) const;
  std::string notes(bool last) const;

  std::ostream& out_;
  ProgressOptions options_;
  double start_, last_drawn_;
  std::optional<double> first_step_end_;
  std::optional<double> tracing_seconds_;  // of the step that has just ended
  int traces_ = 0;
  std::size_t columns_drawn_ = 0;
  bool line_open_ = false;
};

/// "0.4321", "1.0000e-04", "nan".
std::string metric_text(double value);

}  // namespace stet::keras

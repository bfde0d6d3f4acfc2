#include "stet/report/findings.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "stet/base/text.h"
#include "stet/report/json_members.h"
#include "stet/report/numbers.h"
#include "stet/runtime/recording_format.h"

namespace stet::reporting {
namespace {

/// "asked for it at src/train.cpp:12" -> "… at train.cpp:12": which folder it is in the function's card says.
std::string with_short_places(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const std::size_t length = std::min(line.find(' '), line.size() - 1) + 1;
    std::string_view word = line.substr(0, length);
    line.remove_prefix(length);
    const std::size_t colon = word.rfind(':'), folder = word.substr(0, colon).rfind('/');
    const bool is_place = colon != std::string_view::npos && colon + 1 < word.size() &&
                          std::isdigit(static_cast<unsigned char>(word[colon + 1]));
    out += is_place && folder != std::string_view::npos ? word.substr(folder + 1) : word;
  }
  return out;
}

/// The line that says why, without the room that labels have.
std::string reason_line(std::string_view cause) {
  std::string out;
  while (!cause.empty() && out.empty()) {
    std::string_view line = cause.substr(0, cause.find('\n'));
    cause.remove_prefix(std::min(line.size() + 1, cause.size()));
    if (line.starts_with("stet: ")) continue;  // the headline, which says that it was traced again
    for (char c : line)
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    while (!out.empty() && out.back() == ' ') out.pop_back();
  }
  return with_short_places(out);
}

/// The same for causes that differ in numbers only: a size that changes with every call.
std::string kind_of_cause(std::string_view line) {
  std::string out;
  for (char c : line) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) && !out.ends_with("argument ");
    if (!digit)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

std::string with_call_place(std::string line, const files::Json& note) {
  const std::string place = place_text(string_in(note, "call_file"), small_integer_in(note, "call_line"));
  if (place.empty() || line.find(place) != std::string::npos) return line;
  return text(line, ", called at ", place);
}

/// The one to try first, then the others.
std::vector<std::string> fixes_of(const files::Json& note) {
  std::vector<std::string> out;
  for (const files::Json& fix : list_in(note, "fixes"))
    if (fix.if_string() && !fix.if_string()->empty()) out.push_back(with_short_places(*fix.if_string()));
  return out;
}

double part(double seconds, const Summary& summary) {
  return summary.seconds > 0 ? std::clamp(seconds / summary.seconds, 0.0, 1.0) : 0;
}
double part(Share share, const Summary& summary) { return part(summary.share_of(share), summary); }

/// "8.4 s = 21 % of the run".
std::string cost_text(double seconds, const Summary& summary) {
  return text(seconds_text(seconds), " = ", percent_text(part(seconds, summary)), " of the run");
}

std::string sentence_end(std::string line) {
  if (!line.empty() && line.back() != '.' && line.back() != '!') line += '.';
  return line;
}

// --- sentences of the verdict

std::string traces_sentence(const Summary& summary) {
  const int traces = summary.traces(), functions = summary.traced_functions(), retraces = summary.retraces();
  if (traces == 0 && summary.trace_spans > 0)
    return text(counted(summary.trace_spans, "trace"), ". Of which functions and why is not in the recording.");
  if (traces == 0) {
    const auto called = std::count_if(summary.functions.begin(), summary.functions.end(),
                                      [](const FunctionSummary& function) { return function.calls > 0; });
    if (called == 0) return "No function was called.";
    return text("No traces: ", called == 1 ? "the function that was" : text("the ", called, " functions that were"),
                " called had been traced before.");
  }
  const std::string counts =
      text(counted(traces, "trace"), " of ", counted(functions, "function"), ", ", counted(retraces, "retrace"));
  if (retraces == 0) return counts + ".";
  std::string out = text(counts, ": ", cost_text(summary.lost_seconds(), summary));
  const RetraceReason reason = retrace_reasons(summary).front();
  if (!reason.cause.empty()) out += text("; the top cause, of '", reason.function->name, "': ", reason.cause);
  out = sentence_end(out);
  const bool is_guess = reason.fix.starts_with("perhaps");
  if (!reason.fix.empty() && !reason.fix.starts_with("none is needed"))
    out += text(" The fix ", is_guess ? "may save" : "saves about", " ", seconds_text(reason.seconds), ".");
  return out;
}

std::string kernels_sentence(const Summary& summary) {
  std::string out = text(percent_text(part(Share::kernels, summary)), " of the time in kernels");
  int most = 0;
  for (int share = 1; share < share_count; ++share)
    if (summary.shares[share] > summary.shares[most]) most = share;
  if (most != static_cast<int>(Share::kernels) && static_cast<Share>(most) != Share::forgotten)
    out += text(", ", percent_text(part(summary.shares[most], summary)), " in ", share_name(static_cast<Share>(most)));
  return out + ".";
}

/// Empty where no data could have been waited for.
std::string data_sentence(const Summary& summary) {
  double waited = summary.share_of(Share::waiting), in_epochs = 0;
  for (const TrainingSummary& training : summary.training)
    for (const EpochSummary& epoch : training.epochs) in_epochs += epoch.waited;
  waited = std::max(waited, in_epochs);
  if (summary.training.empty() && summary.waits == 0) return {};
  constexpr double noticed = 0.001;
  if (part(waited, summary) < noticed) return "Data never waited for.";
  return text(seconds_text(waited), " = ", percent_text(part(waited, summary)), " of the time waiting for data.");
}

// --- findings

class Findings {
 public:
  Findings(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits)
      : recorded_(recorded), summary_(summary), limits_(limits) {}

  std::vector<Finding> all() {
    retraces();
    functions_made_anew();
    data();
    compiling();
    eager();
    calls();
    binding();
    callbacks();
    short_kernels();
    if (limits_) limits();
    std::stable_sort(out_.begin(), out_.end(), [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    lost();
    version();
    return std::move(out_);
  }

 private:
  void add(double weight, std::string text, std::string function = {}) {
    out_.push_back({std::clamp(weight, 0.0, 1.0), std::move(text), std::move(function)});
  }

  void retraces() {
    for (const RetraceReason& reason : retrace_reasons(summary_)) {
      std::string words = text("'", reason.function->name, "' was traced again",
                               reason.count > 1 ? text(" ", count_text(reason.count), " times") : "", ", which took ",
                               cost_text(reason.seconds, summary_));
      if (!reason.cause.empty()) words += text(": ", reason.cause);
      words = sentence_end(words);
      if (!reason.fix.empty()) words += text(" Fix: ", sentence_end(reason.fix));
      for (const std::string& other : reason.other_fixes) words += text(" Or ", sentence_end(other));
      add(part(reason.seconds, summary_), words, reason.function->name);
    }
  }

  /// Each is traced anew, as its first trace: no retrace, and as dear.
  void functions_made_anew() {
    for (const FunctionSummary& function : summary_.functions) {
      struct Made {
        int count = 0;
        double seconds = 0, first = 0;
      };
      std::map<std::pair<std::string, int>, Made> lines;
      for (const TraceSummary& trace : function.traces) {
        if (trace.number != 1 || !trace.within()) continue;
        Made& made = lines[{string_in(*trace.note, "file"), small_integer_in(*trace.note, "line")}];
        if (made.count++ == 0) made.first = trace.seconds;
        made.seconds += trace.seconds;
      }
      constexpr int many = 4;  // fewer may well be as many models
      for (const auto& [line, made] : lines) {
        const std::string place = place_text(line.first, line.second);
        if (made.count < many || place.empty()) continue;
        const double lost = made.seconds - made.first;
        add(part(lost, summary_),
            text(count_text(made.count), " functions '", function.name, "' were made at ", place,
                 ", and each was traced: ", cost_text(lost, summary_),
                 " more than one takes. Make the function once, outside of the loop."),
            function.name);
      }
    }
  }

  void data() {
    const double weight = part(Share::waiting, summary_);
    constexpr double noticed = 0.03;
    if (weight >= noticed) {
      std::string words =
          text(seconds_text(summary_.share_of(Share::waiting)), " = ", percent_text(weight),
               " of the time went into waiting for data. Put .prefetch(2) at the end of the dataset, give its map "
               ".num_parallel_calls, or .cache() what is the same in every epoch.");
      const StageSummary* dearest = nullptr;
      for (const StageSummary& stage : summary_.stages)
        if (stage.seconds && (!dearest || *stage.seconds > *dearest->seconds)) dearest = &stage;
      if (dearest && *dearest->seconds > 0)
        words += text(" Its dearest stage is '", dearest->name, "', with ", seconds_text(*dearest->seconds), ".");
      add(weight, words);
    }
    if (const double functions = part(Share::stages, summary_); functions >= noticed)
      add(functions, text(seconds_text(summary_.share_of(Share::stages)), " = ", percent_text(functions),
                          " of the time the program ran datasets' functions itself. Put .prefetch(2) at the end of the "
                          "dataset: then another thread runs them meanwhile."));
  }

  void compiling() {
    double first = 0;
    for (const FunctionSummary& function : summary_.functions) first += function.trace_seconds - function.lost_seconds;
    const double weight = part(first, summary_);
    constexpr double much = 0.2;
    if (weight < much || summary_.traces() == 0) return;
    add(weight, text("First traces took ", cost_text(first, summary_),
                     ". They are made once: a longer run, or one with the compiled code still in the cache "
                     "(STET_CACHE_DIR), has less of them."));
  }

  void eager() {
    double kernels = 0;
    for (const KernelSummary& kernel : summary_.kernels)
      if (!kernel.function) kernels += kernel.seconds;
    const double seconds = summary_.share_of(Share::eager) + std::min(kernels, summary_.share_of(Share::kernels));
    constexpr double much = 0.2;
    if (summary_.share_of(Share::eager) > 0 && part(seconds, summary_) >= much)
      add(part(seconds, summary_), text("Ops outside of functions took ", cost_text(seconds, summary_),
                                        ". Put them into a stet::function: then they are compiled together."));
  }

  void calls() {
    const double weight = part(Share::calls, summary_);
    constexpr double much = 0.2;
    if (weight < much) return;
    add(weight, text(percent_text(weight),
                     " of the time passed in calls of functions and not in their kernels: a call "
                     "does too little. Let a call do more: larger batches, or the loop inside of "
                     "the function."));
  }

  void binding() {
    const double weight = part(Share::binding, summary_);
    constexpr double noticed = 0.05;
    if (weight >= noticed)
      add(weight, text(percent_text(weight),
                       " of the time went into binding programs to sizes: sizes change from call "
                       "to call. Pad them to a few sizes, or give batches one size "
                       "(.drop_remainder = true)."));
  }

  void callbacks() {
    constexpr double noticed = 0.05;
    if (const double weight = part(Share::callbacks, summary_); weight >= noticed)
      add(weight, text("Callbacks took ", cost_text(summary_.share_of(Share::callbacks), summary_),
                       ". The timeline says which: let it do less, or less often."));
    if (const double weight = part(Share::audits, summary_); weight >= noticed)
      add(weight, text("Audits, which run host code again to compare it, took ",
                       cost_text(summary_.share_of(Share::audits), summary_),
                       ". They grow rare as calls go on; .audit = Audit::never leaves them out."));
  }

  void short_kernels() {
    const double weight = part(summary_.short_seconds, summary_);
    constexpr double much = 0.2;
    if (weight >= much && 2 * summary_.short_runs > summary_.runs)
      add(weight,
          text(count_text(summary_.short_runs), " of ", count_text(summary_.runs), " runs of kernels took less than ",
               seconds_text(short_run), ", too little for more than one thread. Larger batches make them longer."));
  }

  void limits() {
    constexpr double noticed = 0.05, slow = 0.3, fast = 0.7;
    for (const KernelSummary& kernel : summary_.kernels) {
      if (part(kernel.seconds, summary_) < noticed || kernel.bytes <= 0 || kernel.seconds <= 0) continue;
      const double of_memory = limits_->bytes > 0 ? kernel.bytes / kernel.seconds / limits_->bytes : 0;
      const double of_compute = limits_->flops > 0 ? kernel.flops / kernel.seconds / limits_->flops : 0;
      if (of_memory <= 0 || of_compute > of_memory || of_memory > 1) continue;  // what is faster lies in a cache
      const std::string words = text("'", kernel.name, "' moves ", prefixed(kernel.bytes / kernel.seconds), "B/s, ",
                                     percent_text(of_memory), " of what this machine's memory gives, for ",
                                     percent_text(part(kernel.seconds, summary_)), " of the time");
      const std::string function = kernel.function ? summary_.functions[*kernel.function].name : "";
      if (of_memory >= fast)
        add(part(kernel.seconds, summary_),
            text(words, ". Only fewer bytes make it faster: a smaller dtype, or more fused into it."), function);
      else if (of_memory < slow && kernel.threads == 1 && recorded_.thread_count > 1)
        add(part(kernel.seconds, summary_),
            text(words, ", on one thread. Larger operands would be shared among threads."), function);
    }
  }

  void lost() {
    constexpr const char* advice = " Give it more room, or record less of the run.";
    if (recorded_.lost_spans > 0)
      add(0, text("The recording had no room for ", counted(static_cast<std::int64_t>(recorded_.lost_spans), "span"),
                  ", the oldest.", advice));
    if (recorded_.lost_text > 0)
      add(0, text("The recording had no room for ", counted(static_cast<std::int64_t>(recorded_.lost_text), "text"),
                  ", the latest: names, graphs, and what traces were made for.", advice));
  }

  void version() {
    if (recorded_.version == recording::format_version) return;
    add(0, text("The recording has version ", recorded_.version, " of its format, and this stet reads version ",
                recording::format_version, ": parts may be missing. Read it with the stet that wrote it",
                recorded_.stet.empty() ? "" : text(", ", recorded_.stet), "."));
  }

  const Recorded& recorded_;
  const Summary& summary_;
  const std::optional<MachineLimits>& limits_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<RetraceReason> retrace_reasons(const Summary& summary) {
  std::vector<RetraceReason> out;
  for (const FunctionSummary& function : summary.functions) {
    std::map<std::string, RetraceReason> by_kind;
    for (const TraceSummary& trace : function.traces) {
      if (!trace.within() || !trace.is_retrace()) continue;
      const std::string line = reason_line(string_in(*trace.note, "cause"));
      RetraceReason& reason = by_kind[kind_of_cause(line)];
      reason.function = &function;
      reason.last = &trace;
      reason.cause = line.empty() ? line : with_call_place(line, *trace.note);
      if (std::vector<std::string> fixes = fixes_of(*trace.note); !fixes.empty()) {
        reason.fix = fixes.front();
        reason.other_fixes.assign(fixes.begin() + 1, fixes.end());
      }
      ++reason.count;
      reason.seconds += trace.seconds;
    }
    for (auto& [kind, reason] : by_kind) out.push_back(std::move(reason));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const RetraceReason& a, const RetraceReason& b) { return a.seconds > b.seconds; });
  return out;
}

std::vector<std::string> verdict_of(const Recorded& recorded, const Summary& summary) {
  if (recorded.spans.empty() && summary.functions.empty())
    return {"Nothing was recorded: no function was called, and no op ran."};
  std::vector<std::string> out = {traces_sentence(summary)};
  if (!recorded.spans.empty()) out.push_back(kernels_sentence(summary));
  if (std::string data = data_sentence(summary); !data.empty()) out.push_back(std::move(data));
  return out;
}

std::vector<Finding> findings_of(const Recorded& recorded, const Summary& summary,
                                 const std::optional<MachineLimits>& limits) {
  return Findings(recorded, summary, limits).all();
}

}  // namespace stet::reporting

// stet report: what a program did, from its recording.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "stet/base/text.h"
#include "stet/files/utf8.h"
#include "stet/report/chrome_trace.h"
#include "stet/report/findings.h"
#include "stet/report/numbers.h"
#include "stet/report/page.h"
#include "stet/report/report_data.h"
#include "stet/report/tensorboard_profile.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "stet/tools/output_file.h"
#include "stet/tools/recordings.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using reporting::FunctionSummary;
using reporting::Recorded;
using reporting::Summary;

/// How often functions may have been traced: one, or all of them.
struct Bound {
  std::string function;  // empty: each
  std::int64_t most = 0;
};

Bound bound_of(const std::string& words) {
  const std::size_t equals = words.rfind('=');
  Bound out{equals == words.npos ? std::string() : words.substr(0, equals), 0};
  const std::string number = equals == words.npos ? words : words.substr(equals + 1);
  const char* end = number.data() + number.size();
  auto [stopped, error] = std::from_chars(number.data(), end, out.most);
  if (error != std::errc() || stopped != end || out.most < 0 || (equals != words.npos && out.function.empty()))
    throw UsageError(text("stet report: '", words,
                          "' is no number of traces: --max-traces 3 bounds every function, --max-traces train_step=3 "
                          "one"));
  return out;
}

/// "train_step(x, y)" is called by that or by "train_step".
bool is_called(const FunctionSummary& function, const std::string& name) {
  return function.name == name || function.name.substr(0, function.name.find('(')) == name;
}

/// A line for each function that was traced more often.
std::vector<std::string> beyond(const std::vector<Bound>& bounds, const Summary& summary) {
  std::vector<std::string> out;
  const std::vector<reporting::RetraceReason> reasons = reporting::retrace_reasons(summary);
  for (const Bound& bound : bounds) {
    std::vector<std::string> known;
    bool found = bound.function.empty();
    for (const FunctionSummary& function : summary.functions) {
      known.push_back(function.name);
      if (!bound.function.empty() && !is_called(function, bound.function)) continue;
      found = true;
      const auto traces = static_cast<std::int64_t>(function.traces.size());
      if (traces <= bound.most) continue;
      std::string line = text("'", function.name, "' was traced ", reporting::counted(traces, "time"), ", ", bound.most,
                              bound.most == 1 ? " is" : " are", " allowed");
      auto reason = std::find_if(reasons.begin(), reasons.end(), [&](const reporting::RetraceReason& one) {
        return one.function == &function && !one.cause.empty();
      });
      if (reason != reasons.end()) line += text(": ", reason->cause);
      if (reason != reasons.end() && !reason->fix.empty()) line += text("; fix: ", reason->fix);
      out.push_back(std::move(line));
    }
    // A name that is written wrong would never be bounded.
    if (!found) throw unknown_word("function", bound.function, known, "stet report without --max-traces");
  }
  return out;
}

void refuse_overwriting(const std::string& recording, const std::string& output) {
  std::error_code missing;
  if (output != "-" && std::filesystem::equivalent(recording, output, missing))
    throw UsageError(
        text("stet report: ", files::quoted_name(output), " is the recording, which would be overwritten"));
}

int run(const Words& words) {
  const std::string path = recording_path(words);
  const std::optional<std::string> page = words.value("-o"), chrome = words.value("--chrome"),
                                   logs = words.value("--tensorboard");
  const bool json = words.has("--json");
  std::vector<Bound> bounds;
  for (const std::string& bound : words.values("--max-traces")) bounds.push_back(bound_of(bound));
  if (int{json} + (page == "-") + (chrome == "-") > 1)
    throw UsageError("stet report: --json, -o - and --chrome - all write to stdout: choose one of them");
  for (const std::optional<std::string>& output : {page, chrome})
    if (output) refuse_overwriting(path, *output);

  const Recorded recorded = reporting::read_recording(path);
  const Summary summary = summarize(recorded);
  const std::vector<std::string> exceeded = beyond(bounds, summary);
  const std::optional<reporting::MachineLimits> limits = limits_for(recorded);
  if (page || json) {
    const files::Json data = report_data(recorded, summary, limits);
    if (json) print_json(data);
    if (page) {
      OutputFile file(*page, "stet report");
      reporting::write_report_page(file.stream(), data);
      file.commit();
    }
  }
  if (chrome) {
    OutputFile file(*chrome, "stet report");
    write_chrome_trace(file.stream(), recorded);
    file.commit();
  }
  const bool stdout_is_taken = json || page == "-" || chrome == "-";
  if (logs) {
    const std::string written = reporting::write_tensorboard_profile(*logs, recorded, 1, "stet report");
    if (!stdout_is_taken) std::cout << files::shown_name(written) << "\n";
  }
  if (page && !stdout_is_taken) {
    for (const std::string& sentence : verdict_of(recorded, summary)) std::cout << files::shown_name(sentence) << "\n";
  } else if (!chrome && !logs && !stdout_is_taken) {
    std::cout << summary_text(recorded, summary, limits, text_options());
  }
  std::cout.flush();
  for (const std::string& line : exceeded) std::cerr << "stet: " << files::shown_name(line) << "\n";
  return exceeded.empty() ? 0 : 1;
}

}  // namespace

const Command report_command{
    .name = "report",
    .help = "what a program did and why it took so long, from its recording",
    .forms = {{"<recording>", "a verdict, where the time went, functions, kernels, and what to do"}},
    .options = {{"-o", "FILE", "write all of it as one page for a browser, which needs no network; -: to stdout"},
                json_option,
                {"--chrome", "FILE", "write the timeline for ui.perfetto.dev or chrome://tracing; -: to stdout"},
                {"--tensorboard", "LOGDIR", "write it for the profile tab of tensorboard --logdir LOGDIR"},
                {"--max-traces", "[NAME=]N",
                 "end with 1 if a function was traced more than N times; NAME: that function; may be given again"}},
    .text =
        "A program writes a recording where STET_PROFILE names a folder, or a Profile lives in it. The recording may "
        "be of a program that still runs, or was killed.\n"
        "\n"
        "  STET_PROFILE=. ./train\n"
        "  stet report train.stet-profile -o report.html\n"
        "  stet report train.stet-profile --tensorboard logs\n"
        "  stet report train.stet-profile --max-traces train_step=1",
    .run = run};

}  // namespace stet::tools

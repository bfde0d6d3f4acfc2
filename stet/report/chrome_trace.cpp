#include "stet/report/chrome_trace.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "stet/base/text.h"
#include "stet/files/json.h"
#include "stet/report/json_members.h"

namespace stet::reporting {
namespace {

using files::Json;

/// The format has microseconds: "1.250".
std::string microseconds(std::int64_t nanoseconds) {
  std::string behind = std::to_string(std::abs(nanoseconds % 1000));
  return text(nanoseconds < 0 ? "-" : "", std::abs(nanoseconds / 1000), ".", std::string(3 - behind.size(), '0'),
              behind);
}

class Writer {
 public:
  Writer(std::ostream& out, const Recorded& recorded) : out_(out), recorded_(recorded) {
    for (const std::string& name : recorded.names) names_.push_back(files::to_text(Json(name)));
    for (const std::string& kind : recorded.kinds) kinds_.push_back(files::to_text(Json(kind)));
    process_ = std::to_string(recorded.process & INT32_MAX);  // viewers take no more
  }

  void all() {
    out_ << R"({"displayTimeUnit": "ns", "otherData": )"
         << files::to_text(Json::Object{{"program", recorded_.program}, {"stet", recorded_.stet}})
         << ",\n\"traceEvents\": [";
    metadata();
    for (const RecordedSpan& one : recorded_.spans) span(one);
    for (const RecordedCounter& one : recorded_.counters) counter(one);
    for (const Json& note : recorded_.notes)
      if (string_in(note, "note") == "event") instant(note);
    out_ << "\n]}\n";
  }

 private:
  /// All events have these. Threads begin at 1: 0 stands for all of them in some viewers.
  void begin(std::string_view phase, std::string_view name, int thread) {
    out_ << (first_ ? "\n" : ",\n") << R"({"ph": ")" << phase << R"(", "name": )" << name << R"(, "pid": )" << process_
         << R"(, "tid": )" << thread;
    first_ = false;
  }

  void metadata() {
    const std::string program = recorded_.program.empty() ? "program" : recorded_.program;
    begin("M", "\"process_name\"", 0);
    out_ << R"(, "args": )" << files::to_text(Json::Object{{"name", program}}) << "}";
    for (std::size_t thread = 0; thread < recorded_.threads.size(); ++thread) {
      const int number = static_cast<int>(thread) + 1;
      begin("M", "\"thread_name\"", number);
      out_ << R"(, "args": )" << files::to_text(Json::Object{{"name", recorded_.threads[thread]}}) << "}";
      begin("M", "\"thread_sort_index\"", number);
      out_ << R"(, "args": {"sort_index": )" << thread << "}}";
    }
  }

  void span(const RecordedSpan& span) {
    begin("X", names_[span.name], span.thread + 1);
    out_ << R"(, "cat": )" << kinds_[span.kind] << R"(, "ts": )" << microseconds(span.begin) << R"(, "dur": )"
         << microseconds(span.duration);
    if (span.bytes > 0 || span.flops > 0) {
      Json::Object amounts;
      auto add = [&](const char* name, const char* rate, double amount) {
        if (amount <= 0) return;
        amounts.emplace_back(name, amount);
        if (span.duration > 0) amounts.emplace_back(rate, amount / static_cast<double>(span.duration));
      };
      add("bytes", "GB/s", span.bytes);
      add("flops", "GF/s", span.flops);
      out_ << R"(, "args": )" << files::to_text(std::move(amounts));
    }
    out_ << "}";
  }

  void counter(const RecordedCounter& counter) {
    begin("C", names_[counter.name], 0);
    out_ << R"(, "ts": )" << microseconds(counter.time) << R"(, "args": {"value": )"
         << files::to_text(Json(counter.value)) << "}}";
  }

  void instant(const Json& note) {
    const std::string& function = string_in(note, "function");
    const std::string name = text(string_in(note, "kind"), function.empty() ? "" : " of ", function);
    // The text of a note's time is of the steady clock, in ns.
    const auto time = static_cast<std::int64_t>(static_cast<std::uint64_t>(integer_in(note, "time")) - recorded_.began);
    begin("i", files::to_text(Json(name)), 0);
    out_ << R"(, "cat": "event", "s": "p", "ts": )" << microseconds(std::clamp<std::int64_t>(time, 0, recorded_.length))
         << R"(, "args": )" << files::to_text(Json::Object{{"text", string_in(note, "text")}}) << "}";
  }

  std::ostream& out_;
  const Recorded& recorded_;
  std::vector<std::string> names_, kinds_;  // as JSON
  std::string process_;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(std::ostream& out, const Recorded& recorded) { Writer(out, recorded).all(); }

}  // namespace stet::reporting

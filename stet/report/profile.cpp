#include "stet/report/profile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/retrace.h"
#include "stet/report/chrome_trace.h"
#include "stet/report/machine_limits.h"
#include "stet/report/page.h"
#include "stet/report/profile_state.h"
#include "stet/report/report_data.h"
#include "stet/report/summary.h"
#include "stet/report/summary_text.h"

namespace stet {

using namespace reporting;

std::string Profile::State::contents() const {
  std::string bytes = recording::contents();
  if (bytes.size() < sizeof(recording::Head)) return bytes;
  auto& head = *reinterpret_cast<recording::Head*>(bytes.data());
  head.began_at += begin - head.began;
  head.began = begin;
  head.ended.store(recording::now());
  return bytes;
}

Recorded Profile::State::recorded() const {
  if (number != 0) return parse_recording(contents(), "this profile");
  return file_is_ours ? read_recording(path) : parse_recording(ended, "this profile");
}

namespace {

/// As ordinary files are written: all of it, or UserError.
void write_file(const std::string& path, Where where, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (file) write(file);
  file.close();
  if (!file)
    throw UserError(error_text(
        text("Profile::save: '", path, "' cannot be written", errno != 0 ? text(": ", std::strerror(errno)) : ""),
        where, "name a file in a folder that exists and may be written to"));
}

}  // namespace

Profile::Profile(const std::string& path, Where where) : Profile(ProfileOptions{.path = path}, where) {}

Profile::Profile(ProfileOptions options, Where where) : state_(std::make_unique<State>()) {
  if (options.max_bytes <= 0)
    throw UserError(error_text(text("Profile: max_bytes = ", options.max_bytes), where,
                               "give the bytes that a recording may take: 64 MiB unless told"));
  State& state = *state_;
  state.path = std::move(options.path);
  state.number = recording::begin({state.path, static_cast<std::size_t>(options.max_bytes)}, where);
  state.begin = recording::now();
  state.file_is_ours = !state.path.empty() && recording::file() == state.path;
}

Profile::~Profile() {
  try {
    stop({});
  } catch (const std::exception& error) {
    report(text("stet: ", error.what(), "\n"));
  }
}

void Profile::stop(Where where) {
  State& state = *state_;
  if (state.number == 0) return;
  if (!state.file_is_ours) state.ended = state.contents();
  recording::end(std::exchange(state.number, 0));
  if (!state.path.empty() && !state.file_is_ours)
    write_file(state.path, where, [&](std::ostream& out) { out << state.ended; });
}

std::string Profile::table() const {
  const Recorded recorded = state_->recorded();
  return summary_text(recorded, summarize(recorded), machine_limits());
}

std::string Profile::json() const {
  const Recorded recorded = state_->recorded();
  return files::to_text(report_data(recorded, summarize(recorded), machine_limits()));
}

void Profile::save(const std::string& path, Where where) const {
  if (path.ends_with(".stet-profile")) {
    if (state_->number == 0 && state_->file_is_ours) {
      std::ifstream from(state_->path, std::ios::binary);
      return write_file(path, where, [&](std::ostream& out) { out << from.rdbuf(); });
    }
    const std::string bytes = state_->number != 0 ? state_->contents() : state_->ended;
    return write_file(path, where, [&](std::ostream& out) { out << bytes; });
  }
  const bool page = path.ends_with(".html"), trace = path.ends_with(".json");
  if (!page && !trace)
    throw UserError(error_text(text("Profile::save: '", path, "' has none of the endings that it knows"), where,
                               "a page ends in .html, a trace for Perfetto in .json, a recording in .stet-profile"));
  const Recorded recorded = state_->recorded();
  write_file(path, where, [&](std::ostream& out) {
    if (trace)
      write_chrome_trace(out, recorded);
    else
      write_report_page(out, report_data(recorded, summarize(recorded), machine_limits()));
  });
}

ProfileSpan::ProfileSpan(std::string_view name) {
  if (!recording::on()) return;
  name_ = recording::name_of(name);
  begin_ = recording::now();
}
ProfileSpan::~ProfileSpan() {
  if (begin_ != 0) recording::span(recording::Kind::user, name_, begin_, recording::now());
}

// --- a whole process

namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

struct WholeProcess {
  std::uint64_t number = 0;

  WholeProcess() {
    const char* folder = std::getenv("STET_PROFILE");
    if (!folder || !*folder) return;
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    const std::string name =
        length > 0 ? last_part(std::string(program, static_cast<std::size_t>(length))) : std::string("program");
    try {
      if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        throw UserError(text("a folder '", folder, "' cannot be made: ", std::strerror(errno)));
      number = recording::begin({text(folder, "/", name, "-", getpid(), ".stet-profile")});
    } catch (const std::exception& error) {
      report(text("stet: STET_PROFILE: ", error.what(), "\n"));
    }
  }
};
WholeProcess& whole_process() {
  static auto* const one = new WholeProcess;  // never destroyed: see thread_end.h
  return *one;
}

[[gnu::constructor]] void begin_of_process() { whole_process(); }
/// After all destructors of the program's own.
[[gnu::destructor]] void end_of_process() { recording::end(whole_process().number); }

}  // namespace

}  // namespace stet

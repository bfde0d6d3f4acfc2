#include "stet/report/profile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/files/file.h"
#include "stet/report/chrome_trace.h"
#include "stet/report/machine_limits.h"
#include "stet/report/page.h"
#include "stet/report/profile_state.h"
#include "stet/report/report_data.h"
#include "stet/report/summary.h"
#include "stet/report/summary_text.h"
#include "stet/report/tensorboard_profile.h"
#include "stet/runtime/log.h"

namespace stet {

using namespace reporting;

std::string Profile::State::contents() const {
  std::string bytes = recording::contents(counts_at_begin);
  if (bytes.size() < sizeof(recording::Head)) return bytes;
  auto& head = *reinterpret_cast<recording::Head*>(bytes.data());
  head.began_at += begin - head.began;
  head.began = begin;
  head.ended.store(recording::now());
  // What was lost before it began is none of its own.
  if (head.lost_until.load() <= begin) head.lost.store(0);
  return bytes;
}

void Profile::State::require_owner(const char* call, Where where) const {
  if (generation == fork_generation()) return;
  throw UserError(error_text(text(call, ": this Profile was begun before fork(), and records the parent"), where,
                             "make a Profile in the child: it records that one"));
}

Recorded Profile::State::recorded() const {
  if (number != 0) return parse_recording(contents(), "this profile");
  return file_is_ours ? read_recording(path) : parse_recording(ended, "this profile");
}

namespace {

/// All of it, or UserError, and what stood there stays.
void write_file(const std::string& path, const char* call, Where where, std::string_view bytes) {
  files::Output file(path, call, where);
  file.write(bytes);
  file.commit();
}

}  // namespace

Profile::Profile(const std::string& path, Where where) : Profile(ProfileOptions{.path = path}, where) {}

Profile::Profile(ProfileOptions options, Where where) : state_(std::make_unique<State>()) {
  if (options.max_bytes <= 0)
    throw UserError(error_text(text("Profile: max_bytes = ", options.max_bytes), where,
                               "give the bytes that a recording may take: 64 MiB unless told"));
  State& state = *state_;
  state.path = std::move(options.path);
  const bool file_is_another_ones = !state.path.empty() && recording::writes_to(state.path);
  state.generation = fork_generation();
  state.number = recording::begin({state.path, static_cast<std::size_t>(options.max_bytes)}, where);
  state.begin = recording::now();
  state.counts_at_begin = recording::counts();
  state.file_is_ours = !state.path.empty() && !file_is_another_ones && recording::writes_to(state.path);
}

Profile::~Profile() {
  try {
    stop({});
  } catch (const std::exception& error) {
    warn("profile", text("stet: ", error.what(), "\n"));
  }
}

void Profile::stop(Where where) {
  State& state = *state_;
  if (state.number == 0 || state.generation != fork_generation()) return;
  if (state.file_is_ours && recording::end_if_last(state.number)) {
    state.number = 0;
    return;
  }
  // Others go on. Were it their file, too, then this one's would have what they record: its name gets a copy, and they
  // keep a file without one. A file of another Profile, or process, that has the same name is left alone.
  state.ended = state.contents();
  const bool is_live = !state.path.empty() && recording::writes_to(state.path);
  recording::end(std::exchange(state.number, 0));
  if (std::exchange(state.file_is_ours, false) ? is_live : !state.path.empty() && !is_live)
    write_file(state.path, "Profile", where, state.ended);
}

std::string Profile::table() const {
  state_->require_owner("Profile::table", {});
  const Recorded recorded = state_->recorded();
  return summary_text(recorded, summarize(recorded), machine_limits());
}

std::string Profile::json() const {
  state_->require_owner("Profile::json", {});
  const Recorded recorded = state_->recorded();
  return files::to_text(report_data(recorded, summarize(recorded), machine_limits()));
}

void Profile::save(const std::string& path, Where where) const {
  state_->require_owner("Profile::save", where);
  if (recording::writes_to(path)) return;  // it is written as the program runs
  if (path.ends_with(".stet-profile")) {
    if (state_->number != 0) return write_file(path, "Profile::save", where, state_->contents());
    if (!state_->file_is_ours) return write_file(path, "Profile::save", where, state_->ended);
    const files::Bytes bytes = files::Input(state_->path, "Profile::save", where).read_all();
    return write_file(path, "Profile::save", where, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  const bool page = path.ends_with(".html"), trace = path.ends_with(".json");
  if (!page && !trace)
    throw UserError(error_text(text("Profile::save: '", path, "' has none of the endings that it knows"), where,
                               "a page ends in .html, a trace for Perfetto in .json, a recording in .stet-profile"));
  const Recorded recorded = state_->recorded();
  std::ostringstream out;
  if (trace)
    write_chrome_trace(out, recorded);
  else
    write_report_page(out, report_data(recorded, summarize(recorded), machine_limits()));
  write_file(path, "Profile::save", where, out.view());
}

std::string Profile::save_tensorboard(const std::string& log_dir, std::int64_t first_step, Where where) const {
  return write_tensorboard_profile(log_dir, state_->recorded(), first_step, "Profile::save_tensorboard", where);
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
      number =
          recording::begin({.file = text(folder, "/", name, "-", getpid(), ".stet-profile"), .beside_others = true});
    } catch (const std::exception& error) {
      warn("profile", text("stet: STET_PROFILE: ", error.what(), "\n"));
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

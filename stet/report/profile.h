// Profile: what a program does, when, and for how long; and the same of one function.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/function.h"

namespace stet {

namespace inside {
STET_API FunctionProfile profiled(const FunctionBase& function, const std::function<void()>& call, Where where);
}

struct ProfileOptions {
  /// A file that is written as the program runs, so that it can be read meanwhile (`stet top`), and after a crash.
  /// Empty: it is kept in memory.
  std::string path = {};
  /// Of memory or file. When it is full, the oldest spans make room for new ones, and are counted.
  std::int64_t max_bytes = std::int64_t{64} << 20;
};

/// While it lives, what this process does is recorded, on all threads: calls of traced functions, traces and why they
/// were made, compilation by pass, kernels with their bytes and flops, datasets' stages, fit()'s epochs, batches and
/// callbacks, memory.
///
///   stet::Profile profile;
///   model.fit(x, y);
///   std::cout << profile.table();
///   profile.save("run.html");
///
/// STET_PROFILE=folder in the environment records a whole process, to folder/<program>-<pid>.stet-profile; `stet
/// report` makes a page of it. Several may live at a time: each has the time between its beginning and its end.
class STET_API Profile {
 public:
  explicit Profile(ProfileOptions options = {}, Where where = Where::here());
  /// To a file. UserError if it cannot be written.
  explicit Profile(const std::string& path, Where where = Where::here());
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Ends it; what was recorded can be asked for as before. The second time nothing happens.
  void stop(Where where = Where::here());
  /// Up to now, or to its end: the verdict, where the time went, functions, kernels by time, and what to do about it.
  std::string table() const;
  /// All that the page has, as JSON, in the form of `stet report --json` (docs/command.md).
  std::string json() const;
  /// A page for people (".html"), a trace for Perfetto and chrome://tracing (".json"), or the recording itself
  /// (".stet-profile"). UserError for other endings and for what cannot be written.
  void save(const std::string& path, Where where = Where::here()) const;
  /// For the profile tab of `tensorboard --logdir log_dir` (with the plugin: pip install xprof), into
  /// <log_dir>/plugins/profile/<when it began>/<host>.xplane.pb, whose path it gives. The batches of fit() are its
  /// steps, with numbers from `first_step` on. UserError if it cannot be written.
  std::string save_tensorboard(const std::string& log_dir, std::int64_t first_step = 1,
                               Where where = Where::here()) const;

 private:
  friend FunctionProfile inside::profiled(const FunctionBase&, const std::function<void()>&, Where);
  struct State;
  std::unique_ptr<State> state_;
};

/// A part of a program by a name of its own, in the timeline of whoever records.
class STET_API ProfileSpan {
 public:
  explicit ProfileSpan(std::string_view name);
  ~ProfileSpan();
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  std::uint32_t name_ = 0;
  std::uint64_t begin_ = 0;
};

struct KernelProfile {
  std::string name = {};
  std::vector<std::string> made_of = {};  // the ops that were fused into it
  std::string not_fused = {};             // why what reads its results is another kernel; empty: nobody does
  double runs = 0;                        // of it in a call
  double seconds = 0;                     // in a call
  double bytes = 0, flops = 0;            // in a call; 0: not known
  int threads = 1;                        // that worked on it
};

/// A compiled function, measured.
struct FunctionProfile {
  std::string function = {};
  std::string arguments = {};                   // that its trace is for: "(f32[x_0,784], i64[x_0])"
  std::int64_t calls = 0;                       // that were measured
  double seconds = 0;                           // of a call
  std::vector<KernelProfile> kernels = {};      // the most time first
  std::int64_t arena_bytes = 0;                 // of memory for what is between kernels
  int updates = 0, updates_in_place = 0;        // of Variables that a call writes
  double machine_bytes = 0, machine_flops = 0;  // a second, that this machine can do at most; measured once and kept

  /// As a table.
  STET_API std::string str() const;
};

/// Calls f(arguments…) again and again for half a second, after a call that is not measured, and tells what its kernels
/// do. The calls are real: Variables change as they do. f.profile(arguments…) does the same, and errors name its line.
template <class Signature, class... Given>
FunctionProfile profile(const Function<Signature>& f, const Given&... arguments) {
  return inside::profiled(
      f, [&] { static_cast<void>(f(arguments..., Where{})); }, Where{});
}

template <class R, class... A>
FunctionProfile Function<R(A...)>::profile(A... arguments, Where where) const {
  return inside::profiled(
      *this, [&] { static_cast<void>((*this)(arguments..., where)); }, where);
}

}  // namespace stet

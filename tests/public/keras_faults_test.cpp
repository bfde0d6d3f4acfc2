// Every call of the system that writes a checkpoint fails once, is cut short once, and is the last of its process once:
// a good checkpoint is there afterwards.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <string>
#include <vector>

#include "expect_error.h"
#include "forks.h"
#include "resumed.h"

namespace faults {

enum class Kind { none, fails, cut_short, killed };

/// What happens to which of the calls to come, of this thread alone.
struct Plan {
  Kind kind = Kind::none;
  int at = 0;  // counted from 1; 0: never
  int error = EIO;
  int made = 0;
  std::vector<std::string> calls = {};
};
thread_local Plan* plan = nullptr;

/// The next call: is it the one?
bool strikes(const char* call) {
  if (!plan) return false;
  plan->calls.emplace_back(call);
  if (++plan->made != plan->at) return false;
  if (plan->kind == Kind::killed) ::_exit(9);
  return true;
}
bool fails(const char* call) {
  if (!strikes(call) || plan->kind != Kind::fails) return false;
  errno = plan->error;
  return true;
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace faults

// The library finds these before those of the system.
extern "C" {
__attribute__((visibility("default"))) ssize_t pwrite(int descriptor, const void* from, size_t count, off_t offset) {
  static const auto real = faults::next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (faults::strikes("pwrite")) {
    if (faults::plan->kind == faults::Kind::fails) {
      errno = faults::plan->error;
      return -1;
    }
    count = (count + 1) / 2;
  }
  return real(descriptor, from, count, offset);
}
__attribute__((visibility("default"))) int fsync(int descriptor) {
  static const auto real = faults::next<int (*)(int)>("fsync");
  struct stat status {};
  ::fstat(descriptor, &status);
  return faults::fails(S_ISDIR(status.st_mode) ? "fsync of the folder" : "fsync") ? -1 : real(descriptor);
}
__attribute__((visibility("default"))) int rename(const char* from, const char* to) noexcept {
  static const auto real = faults::next<int (*)(const char*, const char*)>("rename");
  return faults::fails("rename") ? -1 : real(from, to);
}
__attribute__((visibility("default"))) int unlink(const char* path) noexcept {
  static const auto real = faults::next<int (*)(const char*)>("unlink");
  return faults::fails("unlink") ? -1 : real(path);
}
__attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
  static const auto real = faults::next<int (*)(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return faults::fails(flags & O_CREAT ? "open" : "open for reading") ? -1 : real(path, flags, mode);
}
}

namespace stet {
namespace {

using faults::Kind;
using faults::Plan;
using resumed::Folder;

struct Saved {
  Folder folder;
  Variable number{zeros({}, i64), {.trainable = false}};
  Variable much{zeros({300'000}), {.trainable = false}};  // larger than what is written at once
  keras::CheckpointManager manager{
      keras::Checkpoint({.variables = {{"number", number}, {"much", much}}}), folder.path(), {.max_to_keep = 1}};

  void save(std::int64_t value) {
    number.assign(tensor(value));
    much.assign(full({300'000}, static_cast<double>(value), f32));
    manager.save();
  }
  /// What another process would find.
  std::int64_t found() {
    EXPECT_TRUE(manager.restore());
    EXPECT_EQ(much.read().item<std::int64_t>({0}), number.read().item<std::int64_t>());
    EXPECT_EQ(much.read().item<std::int64_t>({299'999}), number.read().item<std::int64_t>());
    return number.read().item<std::int64_t>();
  }
  bool has_parts() const {
    for (const std::string& name : resumed::names_in(folder.path()))
      if (name.ends_with(".part")) return true;
    return false;
  }
};

/// The calls that one save makes.
std::vector<std::string> calls_of_a_save() {
  Saved saved;
  saved.save(1);
  Plan plan;
  faults::plan = &plan;
  saved.save(2);
  faults::plan = nullptr;
  return plan.calls;
}

TEST(Faults, OrderOfCalls) {
  std::vector<std::string> calls = calls_of_a_save();
  std::erase(calls, "open for reading");
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
  // All is on the disk before it has its name, and has its name there before the one before goes.
  EXPECT_EQ(calls, (std::vector<std::string>{"open", "pwrite", "fsync", "rename", "fsync of the folder", "unlink"}));
}

TEST(Faults, AnyCallThatFails) {
  const auto count = static_cast<int>(calls_of_a_save().size());
  for (const int error : {EIO, ENOSPC, EDQUOT, EROFS})
    for (int at = 1; at <= count; ++at) {
      Saved saved;
      saved.save(1);
      Plan plan{.kind = Kind::fails, .at = at, .error = error};
      faults::plan = &plan;
      const std::string told = error_of([&] { saved.save(2); });
      faults::plan = nullptr;
      const std::string call = plan.calls.at(static_cast<std::size_t>(at) - 1);
      if (told != "no error") {
        EXPECT_CONTAINS(told, "Checkpoint: '" + saved.folder.path() + "/ckpt-2': cannot be ");
        EXPECT_CONTAINS(told, std::strerror(error));
      }
      EXPECT_EQ(told == "no error", call == "unlink" || call == "fsync of the folder" || call == "open for reading")
          << call;
      EXPECT_EQ(saved.found(), told == "no error" ? 2 : 1) << call;
      EXPECT_FALSE(saved.has_parts()) << call;
      saved.save(3);
      EXPECT_EQ(saved.found(), 3) << call;
    }
}

TEST(Faults, ShortWrites) {
  const auto count = static_cast<int>(calls_of_a_save().size());
  for (int at = 1; at <= count; ++at) {
    Saved saved;
    Plan plan{.kind = Kind::cut_short, .at = at};
    faults::plan = &plan;
    saved.save(2);
    faults::plan = nullptr;
    EXPECT_EQ(saved.found(), 2);
  }
}

TEST(Faults, KilledAtAnyCall) {
  SKIP_WITHOUT_FORK();
  const auto count = static_cast<int>(calls_of_a_save().size());
  bool before = false, after = false;
  for (int at = 1; at <= count; ++at) {
    Saved saved;
    saved.save(1);
    const pid_t child = ::fork();
    if (child == 0) {
      Plan plan{.kind = Kind::killed, .at = at};
      faults::plan = &plan;
      saved.save(2);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 9) << at;
    const std::int64_t found = saved.found();
    (found == 1 ? before : after) = true;
    EXPECT_TRUE(found == 1 || found == 2) << at;
    // A process that comes after tidies up.
    keras::CheckpointManager next(keras::Checkpoint({.variables = {{"number", saved.number}, {"much", saved.much}}}),
                                  saved.folder.path(), {.max_to_keep = 1});
    next.save();
    EXPECT_FALSE(saved.has_parts()) << at;
    EXPECT_EQ(resumed::names_in(saved.folder.path()).size(), 1U) << at;
  }
  EXPECT_TRUE(before && after);
}

}  // namespace
}  // namespace stet

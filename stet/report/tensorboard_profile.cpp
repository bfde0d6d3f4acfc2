#include "stet/report/tensorboard_profile.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/file.h"
#include "stet/files/utf8.h"
#include "stet/report/xspace.h"

namespace stet::reporting {
namespace {

/// As TensorFlow and JAX call the folders, which the tab lists by name: "2026_01_31_23_59_59".
std::string time_name(std::int64_t since_1970) {
  const std::time_t seconds = since_1970 > 0 ? since_1970 / 1'000'000'000 : std::time(nullptr);
  std::tm parts;
  char out[64] = {};
  if (!localtime_r(&seconds, &parts) || std::strftime(out, sizeof out, "%Y_%m_%d_%H_%M_%S", &parts) == 0)
    return "unknown_time";
  return out;
}

std::string host_name() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') return "localhost";
  std::string out = host;
  std::replace(out.begin(), out.end(), '/', '_');
  return out;
}

}  // namespace

std::string write_tensorboard_profile(const std::string& log_dir, const Recorded& recorded, std::int64_t first_step,
                                      const std::string& call, Where where) {
  auto fail = [&](const std::string& path, const std::string& reason, const char* advice) {
    throw UserError(error_text(text(call, ": '", files::shown_name(path), "': ", reason), where, advice));
  };
  if (log_dir.empty() || log_dir.find('\0') != std::string::npos)
    fail(log_dir, log_dir.empty() ? "the path of the folder is empty" : "a zero byte is in the path",
         "give the folder that TensorBoard is called with: tensorboard --logdir");
  const std::string host = host_name(), contents = xspace_of(recorded, {.host = host, .first_step = first_step});
  // Readers of protocol buffers take no more.
  if (contents.size() > INT32_MAX)
    fail(log_dir, text("a profile of ", contents.size() >> 20, " MiB is more than the 2 GiB that TensorBoard reads"),
         "record a shorter part of the program, or with less room: ProfileOptions::max_bytes");

  const std::string all = text(log_dir, log_dir.back() == '/' ? "" : "/", "plugins/profile");
  std::error_code failed;
  std::filesystem::create_directories(all, failed);
  const char* const advice = "give a folder that you may write to, or that can be made";
  if (failed) fail(all, text("the folder cannot be made: ", failed.message()), advice);
  const std::string name = text(all, "/", time_name(recorded.began_at));
  std::string folder = name;
  for (int number = 2; !std::filesystem::create_directory(folder, failed); ++number) {
    if (failed) fail(folder, text("the folder cannot be made: ", failed.message()), advice);
    folder = text(name, "_", number);
  }
  const std::string path = text(folder, "/", host, ".xplane.pb");
  try {
    files::Output file(path, call, where);
    file.write(contents);
    file.commit();
  } catch (...) {
    std::filesystem::remove(folder, failed);  // an empty one would be listed
    throw;
  }
  return path;
}

}  // namespace stet::reporting

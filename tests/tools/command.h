// Runs the stet command as a user does: another process, with an environment of its own.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stet/files/json.h"

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace stet::tools {

using Environment = std::map<std::string, std::string>;

struct Ran {
  int code = -1;  // 128 and the signal where one ended it
  std::string out, err;
};

/// A folder that goes with its object.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/stet_command_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string command_path() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "stet"; }

/// Both ends of a pipe, or of a terminal.
struct Ends {
  int read = -1, write = -1;
};

inline Ends open_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {ends[0], ends[1]};
}

inline Ends open_terminal(int columns) {
  Ends out;
  winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(::openpty(&out.read, &out.write, nullptr, nullptr, &size), 0);
  ::fcntl(out.read, F_SETFD, FD_CLOEXEC);
  ::fcntl(out.write, F_SETFD, FD_CLOEXEC);
  return out;
}

/// What comes out of both until both are closed. A terminal that is closed gives an error.
inline void read_both(int out, int err, Ran& ran) {
  pollfd files[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[] = {&ran.out, &ran.err};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (::poll(files, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      char bytes[4096];
      ssize_t got = ::read(files[i].fd, bytes, sizeof bytes);
      if (got > 0)
        texts[i]->append(bytes, static_cast<std::size_t>(got));
      else
        files[i].fd = -1;
    }
  }
}

inline Ran run_program(std::vector<std::string> words, const Environment& environment, Ends out) {
  Ends err = open_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& entry : entries) variables.push_back(entry.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(out.write);
  ::close(err.write);
  Ran ran;
  EXPECT_EQ(error, 0) << words[0];
  read_both(out.read, err.read, ran);
  ::close(out.read);
  ::close(err.read);
  int status = 0;
  if (error == 0 && ::waitpid(child, &status, 0) == child)
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

/// A test has a cache of its own.
class CommandTest : public ::testing::Test {
 protected:
  Environment environment() const {
    return {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
            {"HOME", folder_.path()},
            {"STET_CACHE_DIR", cache()},
            {"STET", command_path()}};
  }
  std::string cache() const { return folder_ / "cache"; }
  const Folder& folder() const { return folder_; }

  Ran stet(std::vector<std::string> words) const { return stet(std::move(words), environment()); }
  Ran stet(std::vector<std::string> words, const Environment& environment) const {
    words.insert(words.begin(), command_path());
    return run_program(std::move(words), environment, open_pipe());
  }
  /// $STET is the command.
  Ran shell(const std::string& script) const { return shell(script, environment()); }
  Ran shell(const std::string& script, const Environment& environment) const {
    return run_program({"/bin/sh", "-c", script}, environment, open_pipe());
  }
  Ran in_terminal(std::vector<std::string> words, int columns, const Environment& environment) const {
    words.insert(words.begin(), command_path());
    return run_program(std::move(words), environment, open_terminal(columns));
  }

  static files::Json json_of(const Ran& ran) {
    try {
      return files::parse_json(ran.out, {"json_of", "output", Where()});
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << ran.out << ran.err;
      return {};
    }
  }

 private:
  Folder folder_;
};

/// A member of a member: "limits.bytes_per_second". Null where there is none.
inline files::Json member(const files::Json& json, const std::string& path) {
  const std::size_t point = path.find('.');
  const files::Json* found = json.find(path.substr(0, point));
  if (!found) return {};
  return point == path.npos ? *found : member(*found, path.substr(point + 1));
}

}  // namespace stet::tools

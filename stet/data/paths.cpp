#include "stet/data/paths.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::data {

std::vector<std::string> files(const std::string& pattern, Where where) {
  auto fail = [&](const char* what, const char* advice) {
    throw UserError(error_text(text("files: ", what, " '", pattern, "'"), where, advice));
  };
  if (pattern.find('\0') != std::string::npos) fail("there is a zero byte in the pattern", "write it as a shell would");
  glob_t found{};
  std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, globfree);
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (status == GLOB_NOSPACE) fail("there is no memory for the files of", "take a narrower pattern");
  std::vector<std::string> paths;
  if (status == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      struct stat about;
      if (::stat(found.gl_pathv[i], &about) == 0 && S_ISREG(about.st_mode)) paths.emplace_back(found.gl_pathv[i]);
    }
  if (paths.empty()) fail("no file matches", "check the folder, and the pattern: * ? and [a-z] are as in a shell");
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace stet::data

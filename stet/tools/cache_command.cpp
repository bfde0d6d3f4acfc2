// stet cache: the compiled code that is kept on disk.
#include <charconv>
#include <ctime>
#include <iostream>
#include <limits>
#include <set>

#include "stet/base/text.h"
#include "stet/cpu/jit.h"
#include "stet/cpu/object_cache.h"
#include "stet/files/utf8.h"
#include "stet/tools/cache_words.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

using cpu::CachedFile;
using cpu::CacheFolder;
using cpu::ObjectCache;
using files::Json;

constexpr Option older_option{"--older-than", "DAYS", "clear: only what was not used for so many days"};
constexpr Option others_option{"--other-builds", "", "clear: only code that other builds of stet have made"};
constexpr Option remove_option{"--remove", "", "verify: remove what is damaged"};

/// What every answer begins with.
Json::Object head(const std::string& folder, const CacheFolder& found) {
  const bool unusable = found.state == CacheFolder::State::unusable;
  return {{"folder", files::shown_name(folder)},
          {"state", state_name(found.state)},
          {"why", unusable ? Json(found.why) : Json()},
          {"fix", unusable ? Json(files::shown_name(found.fix)) : Json()}};
}

void append(Json::Object& to, Json::Object members) {
  for (Json::Member& member : members) to.push_back(std::move(member));
}

/// The folder, and the answers to what is asked of it.
class Cache {
 public:
  Cache(std::string folder, bool json)
      : folder_(std::move(folder)), json_(json), found_(cpu::look_at_cache_folder(folder_)) {
    // A folder that is missing is not made.
    if (found_.state == CacheFolder::State::usable) cache_.emplace(folder_);
  }

  int list() const {
    const std::vector<CachedFile> files = this->files();
    if (json_) {
      Json::List list;
      for (const CachedFile& file : files)
        list.push_back(Json::Object{{"name", files::shown_name(file.name)},
                                    {"kind", kind_name(kind_of(file))},
                                    {"bytes", file.bytes},
                                    {"last_used", std::int64_t{file.last_used}},
                                    {"build", files::shown_name(cpu::build_of_key(file.key))},
                                    {"key", files::shown_name(file.key)}});
      return answer({{"files", list}});
    }
    if (!cache_) return tell_state();
    Table table;
    const std::time_t now = std::time(nullptr);
    for (const CachedFile& file : files)
      table.row({files::shown_name(file.name.substr(0, 16)), bytes_text(file.bytes), ago_text(now - file.last_used),
                 kind_name(kind_of(file)),
                 files::shown_name(std::string_view(file.key).substr(0, file.key.find('\n')))});
    std::cout << table.str() << total(files) << "\n";
    return 0;
  }

  int size() const {
    const std::vector<CachedFile> files = this->files();
    if (!json_) {
      if (!cache_) return tell_state();
      std::cout << total(files) << " of at most " << bytes_text(ObjectCache::usual_bound) << " in "
                << files::shown_name(folder_) << "\n";
      Table table;
      for (FileKind kind : file_kinds) {
        const Sum sum = sum_of(files, kind);
        if (sum.files > 0) table.row({kind_words(kind), counted(sum.files, "file"), bytes_text(sum.bytes)});
      }
      std::cout << table.str(2);
      return 0;
    }
    Json::Object kinds;
    Sum all;
    for (FileKind kind : file_kinds) {
      const Sum sum = sum_of(files, kind);
      kinds.push_back({kind_name(kind), Json::Object{{"files", sum.files}, {"bytes", sum.bytes}}});
      all.files += sum.files;
      all.bytes += sum.bytes;
    }
    return answer(
        {{"files", all.files}, {"bytes", all.bytes}, {"most_bytes", ObjectCache::usual_bound}, {"kinds", kinds}});
  }

  int clear(std::optional<std::int64_t> days, bool others) const {
    cpu::RemovedFiles removed;
    if (cache_) {
      const std::time_t now = std::time(nullptr);
      removed = cache_->remove_if([&](const CachedFile& file) {
        constexpr std::int64_t day = 24 * 60 * 60;
        return (!days || (now - file.last_used) / day >= *days) && (!others || kind_of(file) == FileKind::other_code);
      });
    }
    if (json_) return answer({{"removed_files", removed.files}, {"removed_bytes", removed.bytes}});
    if (!cache_) return tell_state();
    std::cout << "removed " << counted(removed.files, "file") << ", " << bytes_text(removed.bytes) << "\n";
    return 0;
  }

  int verify(bool remove) const {
    cpu::VerifiedFiles verified;
    if (cache_) verified = cpu::verify_cache(*cache_);
    cpu::RemovedFiles removed;
    if (cache_ && remove && !verified.damaged.empty()) {
      std::set<std::string> names;
      for (const cpu::DamagedFile& file : verified.damaged) names.insert(file.name);
      removed = cache_->remove_if([&](const CachedFile& file) { return names.contains(file.name); });
    }
    const auto damaged = static_cast<std::int64_t>(verified.damaged.size());
    const int code = damaged > removed.files ? 1 : 0;
    if (json_) {
      Json::List list;
      for (const cpu::DamagedFile& file : verified.damaged)
        list.push_back(Json::Object{{"name", files::shown_name(file.name)}, {"reason", file.reason}});
      return std::max(code, answer({{"files", verified.files}, {"damaged", list}, {"removed_files", removed.files}}));
    }
    if (!cache_) return tell_state();
    for (const cpu::DamagedFile& file : verified.damaged)
      std::cout << files::shown_name(file.name) << ": " << file.reason << "\n";
    std::cout << counted(verified.files, "file") << ", " << (damaged == 0 ? "none" : std::to_string(damaged))
              << " damaged" << (remove && damaged > 0 ? text(", ", removed.files, " removed") : std::string()) << "\n";
    if (code != 0 && !remove)
      std::cout << "  fix: stet cache verify --remove; what is missing is compiled again when it is needed\n";
    if (code != 0 && remove)
      std::cout << "  fix: remove the others by hand, from " << files::shown_name(folder_) << "\n";
    return code;
  }

 private:
  struct Sum {
    std::int64_t files = 0, bytes = 0;
  };

  std::vector<CachedFile> files() const { return cache_ ? cache_->files() : std::vector<CachedFile>(); }

  static Sum sum_of(const std::vector<CachedFile>& files, FileKind kind) {
    Sum out;
    for (const CachedFile& file : files)
      if (kind_of(file) == kind) {
        ++out.files;
        out.bytes += file.bytes;
      }
    return out;
  }
  static std::string total(const std::vector<CachedFile>& files) {
    std::int64_t bytes = 0;
    for (const CachedFile& file : files) bytes += file.bytes;
    return text(counted(static_cast<std::int64_t>(files.size()), "file"), ", ", bytes_text(bytes));
  }

  int code() const { return found_.state == CacheFolder::State::unusable ? 1 : 0; }
  int answer(Json::Object members) const {
    Json::Object out = head(folder_, found_);
    append(out, std::move(members));
    print_json(out);
    return code();
  }
  /// Of a cache that cannot be looked into.
  int tell_state() const {
    const StateWords words = state_words(folder_, found_);
    std::cout << words.what << "\n";
    if (!words.fix.empty()) std::cout << "  fix: " << words.fix << "\n";
    return code();
  }

  std::string folder_;
  bool json_;
  CacheFolder found_;
  std::optional<ObjectCache> cache_;
};

std::optional<std::int64_t> days_of(const Words& words) {
  std::optional<std::string> word = words.value(older_option.name);
  if (!word) return std::nullopt;
  std::int64_t days = -1;
  auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), days);
  if (error != std::errc() || end != word->data() + word->size() || days < 0)
    throw UsageError(text("stet cache: ", older_option.name, " is a number of days, such as 30, and not ",
                          files::quoted_name(*word)));
  return days;
}

int run(const Words& words) {
  static constexpr std::string_view forms[] = {"list", "size", "clear", "verify"};
  std::string form = words.one_of(forms);
  if (form.empty()) form = "list";
  auto belongs = [&](const Option& option, std::string_view to) {
    if (words.has(option.name) && form != to)
      throw UsageError(text("stet cache ", form, ": ", option.name, " goes with stet cache ", to));
  };
  belongs(older_option, "clear");
  belongs(others_option, "clear");
  belongs(remove_option, "verify");
  const std::optional<std::int64_t> days = days_of(words);

  Cache cache(cpu::default_cache_folder(), words.has(json_option.name));
  if (form == "size") return cache.size();
  if (form == "clear") return cache.clear(days, words.has(others_option.name));
  if (form == "verify") return cache.verify(words.has(remove_option.name));
  return cache.list();
}

}  // namespace

const Command cache_command{
    .name = "cache",
    .help = "the compiled code that is kept on disk",
    .forms = {{"[list]", "every file, the latest used first"},
              {"size", "how much there is"},
              {"clear", "removes files: all, or those that options name"},
              {"verify", "reads and checks every file; 1 if one is damaged"}},
    .options = {json_option, older_option, others_option, remove_option},
    .text =
        "Programs compile for the processor that they run on, and keep the machine code in a folder: $STET_CACHE_DIR, "
        "else $XDG_CACHE_HOME/stet, else ~/.cache/stet. With STET_CACHE_DIR set to nothing there is no cache. "
        "Whatever is removed is compiled again when it is needed, also while programs run. Past 256 MiB, programs "
        "remove what was not used for longest.\n"
        "\n"
        "  stet cache clear --older-than 30\n"
        "  stet cache verify --remove",
    .run = run};

}  // namespace stet::tools

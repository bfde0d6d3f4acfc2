// stet cache: what it says of folders of all kinds, and that files which are damaged, foreign or being written do no
// harm.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "stet/base/text.h"
#include "stet/cpu/jit.h"
#include "stet/cpu/object_cache.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

namespace fs = std::filesystem;
using cpu::ObjectCache;
using files::Json;

class CacheCommandTest : public CommandTest {
 protected:
  /// Three files that are code: the command compares its examples' code, and what it compiles it keeps.
  void fill() const {
    for (const char* op : {"softmax", "cumsum", "relu"}) ASSERT_EQ(stet({"ops", op}).code, 0);
    ASSERT_GE(files().size(), 3u);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    if (fs::exists(cache()))
      for (const auto& entry : fs::directory_iterator(cache())) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::string text_of(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const fs::path& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  void set_age(const fs::path& path, int days) const {
    const timespec then{.tv_sec = std::time(nullptr) - days * 86400, .tv_nsec = 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::int64_t integer(const Json& json, const std::string& path) const {
    const Json found = member(json, path);
    return found.if_integer() ? *found.if_integer() : -1;
  }
  std::string string(const Json& json, const std::string& path) const {
    const Json found = member(json, path);
    return found.if_string() ? *found.if_string() : "no string";
  }
};

TEST_F(CacheCommandTest, AFolderThatIsNotThereYetIsFineAndIsNotMade) {
  for (const char* form : {"list", "size", "clear", "verify"}) {
    Ran ran = stet({"cache", form});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, "the object cache " + cache() + " is not there yet: nothing was compiled\n");
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(string(json_of(stet({"cache", form, "--json"})), "state"), "missing");
  }
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(CacheCommandTest, ListsWhatProgramsCompiled) {
  fill();
  const std::string count = std::to_string(files().size());
  Ran ran = stet({"cache"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, stet({"cache", "list"}).out);
  EXPECT_CONTAINS(ran.out, "just now  code  ");
  EXPECT_CONTAINS(ran.out, "\n" + count + " files, ");
  Json json = json_of(stet({"cache", "list", "--json"}));
  EXPECT_EQ(string(json, "folder"), cache());
  EXPECT_EQ(string(json, "state"), "usable");
  const Json list = member(json, "files");
  ASSERT_EQ(list.if_list()->size(), files().size());
  std::vector<std::string> names;
  for (const Json& file : *list.if_list()) {
    names.push_back(string(file, "name"));
    EXPECT_EQ(string(file, "kind"), "code");
    EXPECT_EQ(string(file, "build"), cpu::code_build());
    EXPECT_EQ(integer(file, "bytes"), static_cast<std::int64_t>(fs::file_size(cache() + "/" + names.back())));
    EXPECT_LE(std::abs(integer(file, "last_used") - std::time(nullptr)), 3600);
    EXPECT_CONTAINS(string(file, "key"), "\\x0aemitter ");
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], files()[i].filename());
}

TEST_F(CacheCommandTest, SizeSaysWhatKindsThereAre) {
  fill();
  const auto own = static_cast<std::int64_t>(files().size());
  {
    ObjectCache foreign(cache());
    foreign.store("kernel\nemitter another\nllvm 1", "code");
    foreign.store(text(cpu::figures_key, "of nothing"), "figures");
  }
  write(cache() + "/tmp-1-1-x.o", "begun");
  write(cache() + "/junk.o", "junk");
  write(cache() + "/README", "of another");  // no file of a cache
  Ran ran = stet({"cache", "size"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_CONTAINS(ran.out, text(own + 4, " files, "));
  EXPECT_CONTAINS(ran.out, " of at most 256.0 MiB in " + cache() + "\n");
  EXPECT_CONTAINS(ran.out, text("\n  code                  ", own, " files  "));
  EXPECT_CONTAINS(ran.out, "\n  code of other builds  1 file   ");
  EXPECT_CONTAINS(ran.out, "\n  measured figures      1 file   ");
  EXPECT_CONTAINS(ran.out, "\n  being written         1 file   5 B\n");
  EXPECT_CONTAINS(ran.out, "\n  unreadable            1 file   4 B\n");
  Json json = json_of(stet({"cache", "size", "--json"}));
  EXPECT_EQ(integer(json, "files"), own + 4);
  EXPECT_EQ(integer(json, "most_bytes"), 256 << 20);
  EXPECT_EQ(integer(json, "kinds.code.files"), own);
  for (const char* kind : {"other_code", "figures", "unfinished", "unreadable"})
    EXPECT_EQ(integer(json, text("kinds.", kind, ".files")), 1) << kind;
  EXPECT_EQ(integer(json, "kinds.unreadable.bytes"), 4);
}

TEST_F(CacheCommandTest, ClearRemovesAllOrWhatIsOldOrOfOthers) {
  fill();
  const std::size_t own = files().size();
  ObjectCache(cache()).store("kernel\nemitter another\nllvm 1", "code");
  set_age(files()[0], 10);
  set_age(files()[1], 40);

  EXPECT_CONTAINS(stet({"cache", "clear", "--older-than", "41"}).out, "removed 0 files, 0 B\n");
  EXPECT_CONTAINS(stet({"cache", "clear", "--older-than=40"}).out, "removed 1 file, ");
  EXPECT_EQ(files().size(), own);
  EXPECT_EQ(integer(json_of(stet({"cache", "clear", "--older-than", "9", "--json"})), "removed_files"), 1);
  const std::size_t before = files().size();
  Ran others = stet({"cache", "clear", "--other-builds"});
  EXPECT_EQ(others.code, 0);
  EXPECT_LE(before - files().size(), 1u);  // it may have been among the two
  EXPECT_EQ(integer(json_of(stet({"cache", "size", "--json"})), "kinds.other_code.files"), 0);
  EXPECT_CONTAINS(stet({"cache", "clear"}).out, "removed ");
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(stet({"cache", "clear"}).out, "removed 0 files, 0 B\n");
  EXPECT_EQ(stet({"cache"}).out, "0 files, 0 B\n");
}

TEST_F(CacheCommandTest, ClearLeavesWhatIsNoFileOfACache) {
  fill();
  write(cache() + "/README", "mine");
  fs::create_directory(cache() + "/folder.o");
  write(cache() + "/folder.o/x.o", "mine");
  fs::create_symlink("/etc/passwd", cache() + "/link.o");
  EXPECT_EQ(stet({"cache", "clear"}).code, 0);
  EXPECT_EQ(files().size(), 3u);
  EXPECT_TRUE(fs::exists(cache() + "/folder.o/x.o"));
}

TEST_F(CacheCommandTest, OptionsGoWithTheirForms) {
  auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "cache");
    Ran ran = stet(words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_EQ(error({"--older-than", "3"}), "stet: stet cache list: --older-than goes with stet cache clear\n");
  EXPECT_EQ(error({"verify", "--other-builds"}),
            "stet: stet cache verify: --other-builds goes with stet cache clear\n");
  EXPECT_EQ(error({"clear", "--remove"}), "stet: stet cache clear: --remove goes with stet cache verify\n");
  for (const char* days : {"x", "-1", "", "3d", "1.5", "99999999999999999999"})
    EXPECT_EQ(error({"clear", "--older-than", days}),
              text("stet: stet cache: --older-than is a number of days, such as 30, and not '", days, "'\n"));
  EXPECT_EQ(error({"clean"}),
            "stet: there is no word of stet cache 'clean'; the nearest is 'clear' (stet help cache lists all)\n");
  EXPECT_EQ(error({"clear", "all"}),
            "stet: stet cache: 'all' is one word too many; stet help cache shows how it is called\n");
}

TEST_F(CacheCommandTest, VerifyNamesWhatIsDamagedAndWhy) {
  fill();
  EXPECT_EQ(stet({"cache", "verify"}).out, text(files().size(), " files, none damaged\n"));
  EXPECT_EQ(stet({"cache", "verify"}).code, 0);
  const std::vector<fs::path> good = files();
  const std::string whole = text_of(good[0]);

  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  write(good[0], changed);
  std::string short_by_one = text_of(good[1]);
  short_by_one.pop_back();
  write(good[1], short_by_one);
  write(cache() + "/cut.o", whole.substr(0, 10));
  write(cache() + "/empty.o", "");
  write(cache() + "/text.o", std::string(100, 'x'));
  write(cache() + "/moved.o", whole);
  {
    // Whole, and yet no code.
    ObjectCache forged(cache());
    forged.store(text("kernel\nemitter ", cpu::code_build(), "\nllvm"), "no code");
  }
  Ran ran = stet({"cache", "verify"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_CONTAINS(ran.out, good[0].filename().string() + ": its checksum is another\n");
  EXPECT_CONTAINS(ran.out, good[1].filename().string() + ": it does not have the length that its head says\n");
  EXPECT_CONTAINS(ran.out, "cut.o: it is shorter than its head\n");
  EXPECT_CONTAINS(ran.out, "empty.o: it is shorter than its head\n");
  EXPECT_CONTAINS(ran.out, "text.o: it does not begin as such files do\n");
  EXPECT_CONTAINS(ran.out, "moved.o: its name is not that of its key\n");
  EXPECT_CONTAINS(ran.out, ": its code cannot be loaded: ");
  EXPECT_CONTAINS(ran.out, text("\n", good.size() + 5, " files, 7 damaged\n"));
  EXPECT_CONTAINS(ran.out, "  fix: stet cache verify --remove; what is missing is compiled again when it is needed\n");

  Json json = json_of(stet({"cache", "verify", "--json"}));
  EXPECT_EQ(member(json, "damaged").if_list()->size(), 7u);
  EXPECT_EQ(integer(json, "removed_files"), 0);
  EXPECT_EQ(stet({"cache", "verify", "--json"}).code, 1);

  Ran removed = stet({"cache", "verify", "--remove"});
  EXPECT_EQ(removed.code, 0);
  EXPECT_CONTAINS(removed.out, " 7 damaged, 7 removed\n");
  EXPECT_EQ(files().size(), good.size() - 2);
  EXPECT_CONTAINS(stet({"cache", "verify"}).out, ", none damaged\n");
  fill();  // what is missing is made again
}

TEST_F(CacheCommandTest, EveryBitOfAFileThatIsTurnedIsFound) {
  fill();
  const fs::path file = files()[0];
  const std::string whole = text_of(file);
  for (std::size_t at = 0; at < whole.size(); at += std::max<std::size_t>(1, whole.size() / 40)) {
    std::string changed = whole;
    changed[at] ^= static_cast<char>(1 << (at % 8));
    write(file, changed);
    cpu::VerifiedFiles verified = cpu::verify_cache(ObjectCache(cache()));
    ASSERT_EQ(verified.damaged.size(), 1u) << "byte " << at;
    EXPECT_EQ(verified.damaged[0].name, file.filename());
  }
}

TEST_F(CacheCommandTest, NamesOfFilesCannotWriteToTheTerminal) {
  ASSERT_EQ(::mkdir(cache().c_str(), 0700), 0);
  write(cache() + "/\033[31m\xff.o", "junk");
  for (const char* form : {"list", "verify"}) {
    Ran ran = stet({"cache", form});
    EXPECT_EQ(ran.out.find('\033'), std::string::npos);
    EXPECT_CONTAINS(ran.out, "\\x1b[31m\\xff.o");
    json_of(stet({"cache", form, "--json"}));
  }
}

TEST_F(CacheCommandTest, AFolderThatIsNotOursAloneIsAProblem) {
  ASSERT_EQ(::mkdir(cache().c_str(), 0755), 0);
  for (const char* form : {"list", "size", "clear", "verify"}) {
    Ran ran = stet({"cache", form});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out,
              "the object cache " + cache() + " is not used: others may enter it\n  fix: chmod 700 " + cache() + "\n");
    Ran as_json = stet({"cache", form, "--json"});
    EXPECT_EQ(as_json.code, 1);
    EXPECT_EQ(string(json_of(as_json), "state"), "unusable");
    EXPECT_EQ(string(json_of(as_json), "why"), "others may enter it");
    EXPECT_EQ(string(json_of(as_json), "fix"), "chmod 700 " + cache());
  }
}

TEST_F(CacheCommandTest, AFileInThePlaceOfTheFolderIsAProblem) {
  write(cache(), "mine");
  Ran ran = stet({"cache"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "the object cache " + cache() +
                         " is not used: it is no folder\n"
                         "  fix: set STET_CACHE_DIR to a folder of yours, or to nothing to do without\n");
  Environment below = environment();
  below["STET_CACHE_DIR"] = cache() + "/deeper";
  ran = stet({"cache"}, below);
  EXPECT_EQ(ran.code, 1);
  EXPECT_CONTAINS(ran.out, "/cache/deeper is not used: it cannot be looked at: Not a directory\n");
}

TEST_F(CacheCommandTest, WithoutAFolderItIsOff) {
  Environment off = environment(), homeless = environment();
  off["STET_CACHE_DIR"] = "";
  homeless.erase("STET_CACHE_DIR");
  homeless.erase("HOME");
  Ran ran = stet({"cache"}, off);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out,
            "the object cache is off: STET_CACHE_DIR is set to nothing\n"
            "  fix: unset STET_CACHE_DIR; without the cache every start compiles everything again\n");
  ran = stet({"cache"}, homeless);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out,
            "the object cache is off: none of STET_CACHE_DIR, XDG_CACHE_HOME and HOME is set\n"
            "  fix: set STET_CACHE_DIR to a folder; without the cache every start compiles everything again\n");
  EXPECT_EQ(string(json_of(stet({"cache", "size", "--json"}, off)), "state"), "off");
}

TEST_F(CacheCommandTest, TheFolderIsThatOfPrograms) {
  Environment by_home = environment(), by_xdg = environment();
  by_home.erase("STET_CACHE_DIR");
  by_xdg.erase("STET_CACHE_DIR");
  by_xdg["XDG_CACHE_HOME"] = folder() / "xdg";
  for (const auto& [environment, expected] :
       {std::pair{by_home, folder() / ".cache/stet"}, std::pair{by_xdg, folder() / "xdg/stet"}}) {
    ASSERT_EQ(stet({"ops", "relu"}, environment).code, 0);
    EXPECT_EQ(string(json_of(stet({"cache", "--json"}, environment)), "folder"), expected);
    EXPECT_TRUE(fs::exists(expected));
  }
}

/// To the command, which reads, this process is another one.
class Writer {
 public:
  explicit Writer(const std::string& folder) : thread_([folder](std::stop_token stop) { write(folder, stop); }) {}

 private:
  static void write(const std::string& folder, std::stop_token stop) {
    ObjectCache cache(folder);
    for (unsigned i = 0; !stop.stop_requested(); ++i) {
      // Figures, because what is whole and no code is damage.
      cache.store(text(cpu::figures_key, i % 50), std::string(i % 20'000, 'x'));
      if (i % 7 == 0) cache.remove(text(cpu::figures_key, i * 31 % 50));
      if (i % 100 == 0) cache.trim();
    }
  }
  std::jthread thread_;
};

TEST_F(CacheCommandTest, AnotherProcessMayWriteMeanwhile) {
  ASSERT_EQ(::mkdir(cache().c_str(), 0700), 0);
  Writer writer(cache());
  std::int64_t seen = 0, removed = 0;
  for (int i = 0; i < 15; ++i) {
    Ran verified = stet({"cache", "verify"});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
    seen += integer(json_of(stet({"cache", "size", "--json"})), "files");
    EXPECT_EQ(stet({"cache", "list"}).code, 0);
    if (i % 3 == 2) removed += integer(json_of(stet({"cache", "clear", "--json"})), "removed_files");
  }
  EXPECT_GT(seen, 0);
  EXPECT_GT(removed, 0);
}

}  // namespace
}  // namespace stet::tools

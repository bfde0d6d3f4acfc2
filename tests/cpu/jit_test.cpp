#include "stet/cpu/jit.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/object_cache.h"

namespace stet::cpu {
namespace {

namespace files = std::filesystem;
using AddFunction = std::int64_t (*)(std::int64_t);

/// x -> x + number; the number lies in memory, so that the object has a relocation.
CodeRequest adder(std::int64_t number) {
  return {text("test: add ", number), [number](LlvmBuilder& b) {
            Value table = LLVMAddGlobal(b.module(), LLVMArrayType2(b.index(), 2), "table");
            Value values[] = {b.index(0), b.index(number)};
            LLVMSetInitializer(table, LLVMConstArray2(b.index(), values, 2));
            LLVMSetGlobalConstant(table, true);
            LLVMSetLinkage(table, LLVMPrivateLinkage);
            b.begin_function(entry_name, b.index(), {b.index()});
            Value element = b.load(b.index(), b.element_pointer(b.index(), table, b.index(1)), 8);
            b.result(b.add(b.parameter(0), element));
          }};
}

std::int64_t call(void* code, std::int64_t x) { return reinterpret_cast<AddFunction>(code)(x); }

class JitTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stet-jit-test-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    root_ = pattern;
    folder_ = root_ + "/made/by/stet";
    start(folder_);
  }
  void TearDown() override {
    set_cache_folder("");
    forget_loaded_code();
    std::error_code ignored;
    files::remove_all(root_, ignored);
  }
  void start(const std::string& folder) {
    set_cache_folder(folder);
    forget_loaded_code();
    before_ = code_statistics();
  }
  std::uint64_t compiled() { return code_statistics().compiled - before_.compiled; }
  std::uint64_t loaded() { return code_statistics().loaded - before_.loaded; }
  std::uint64_t reused() { return code_statistics().reused - before_.reused; }
  std::uint64_t rejected() { return code_statistics().rejected_files - before_.rejected_files; }
  std::vector<files::path> stored() {
    std::vector<files::path> paths;
    for (const auto& entry : files::directory_iterator(folder_)) paths.push_back(entry.path());
    return paths;
  }
  std::string root_, folder_;
  CodeStatistics before_;
};

TEST_F(JitTest, CompilesThenReuses) {
  void* code = load_code(adder(5));
  EXPECT_EQ(call(code, 37), 42);
  EXPECT_EQ(load_code(adder(5)), code);
  EXPECT_EQ(compiled(), 1u);
  EXPECT_EQ(reused(), 1u);
  EXPECT_GT(code_statistics().compile_milliseconds, before_.compile_milliseconds);
}

TEST_F(JitTest, LoadsFromDiskWhatWasForgotten) {
  void* first = load_code(adder(6));
  forget_loaded_code();
  void* second = load_code(adder(6));
  EXPECT_NE(first, second);
  EXPECT_EQ(call(first, 1), 7);  // forgotten code stays callable
  EXPECT_EQ(call(second, 1), 7);
  EXPECT_EQ(compiled(), 1u);
  EXPECT_EQ(loaded(), 1u);
}

TEST_F(JitTest, FolderAndFilesAreOursAlone) {
  load_code(adder(7));
  EXPECT_EQ(cache_folder(), folder_);
  struct stat status {};
  ASSERT_EQ(::stat(folder_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stored().size(), 1u);  // and no temporary is left
  ASSERT_EQ(::stat(stored()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(JitTest, DamagedFilesAreDeletedAndRebuilt) {
  load_code(adder(8));
  files::path path = stored().at(0);
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::string> bad = {"",
                                  good.substr(0, 7),
                                  good.substr(0, 32),
                                  good.substr(0, good.size() / 2),
                                  good.substr(0, good.size() - 1),
                                  good + "x",
                                  std::string(good.size(), '\0')};
  for (std::size_t at = 0; at < good.size(); at += at < 40 ? 1 : 97) {
    bad.push_back(good);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ (1 << (at % 8)));
  }
  for (const std::string& content : bad) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    start(folder_);
    EXPECT_EQ(call(load_code(adder(8)), 2), 10);
    EXPECT_EQ(rejected(), 1u);
    EXPECT_EQ(compiled(), 1u);
    EXPECT_EQ(loaded(), 0u);
    start(folder_);
    EXPECT_EQ(call(load_code(adder(8)), 2), 10);
    EXPECT_EQ(loaded(), 1u);
  }
}

TEST_F(JitTest, FileOfAnotherKeyIsNotUsed) {
  load_code(adder(9));
  files::path nine = stored().at(0);
  start(root_ + "/other");
  load_code(adder(10));
  files::path ten = files::directory_iterator(root_ + "/other")->path();
  files::copy_file(nine, ten, files::copy_options::overwrite_existing);
  start(root_ + "/other");
  EXPECT_EQ(call(load_code(adder(10)), 0), 10);
  EXPECT_EQ(loaded(), 0u);
  EXPECT_EQ(compiled(), 1u);
}

TEST_F(JitTest, AFolderThatOthersMayReadIsNotUsed) {
  std::string open_folder = root_ + "/open";
  ASSERT_EQ(::mkdir(open_folder.c_str(), 0700), 0);
  for (mode_t mode : {0755, 0770, 0707, 0710}) {
    ASSERT_EQ(::chmod(open_folder.c_str(), mode), 0);
    start(open_folder);
    EXPECT_EQ(cache_folder(), "");
    EXPECT_EQ(call(load_code(adder(11)), 0), 11);
    EXPECT_EQ(compiled(), 1u);
    EXPECT_TRUE(files::is_empty(open_folder));
  }
}

TEST_F(JitTest, WorksWithoutADisk) {
  std::ofstream(root_ + "/file") << "not a folder";
  std::vector<std::string> folders = {"", "/proc/no/such/place", "/dev/null/cache", root_ + "/file"};
  for (const std::string& folder : folders) {
    start(folder);
    EXPECT_EQ(cache_folder(), "");
    EXPECT_EQ(call(load_code(adder(12)), 0), 12);
  }
  start(folder_);
  files::remove_all(folder_);  // while in use
  EXPECT_EQ(call(load_code(adder(12)), 0), 12);
}

TEST_F(JitTest, TheOldestFilesGoWhenThereAreTooMany) {
  ObjectCache cache(folder_, 40'000);
  std::string object(1000, 'x');
  for (int i = 0; i < 100; ++i) cache.store(text("key ", i), object);
  std::vector<files::path> paths = stored();
  auto now = files::file_time_type::clock::now();
  bool rejected = false;
  for (const files::path& path : paths) files::last_write_time(path, now - std::chrono::hours(2));
  cache.store("young", object);
  std::ofstream(folder_ + "/tmp-1-0-abandoned.o") << "x";
  files::last_write_time(folder_ + "/tmp-1-0-abandoned.o", now - std::chrono::hours(2));
  cache.trim();
  EXPECT_LE(stored().size(), 30u);
  EXPECT_GE(stored().size(), 25u);
  EXPECT_TRUE(cache.find("young", rejected).has_value());
  EXPECT_FALSE(files::exists(folder_ + "/tmp-1-0-abandoned.o"));
}

TEST_F(JitTest, LinksInTheCacheAreNotFollowed) {
  load_code(adder(13));
  files::path path = stored().at(0);
  files::rename(path, root_ + "/elsewhere");
  files::create_symlink(root_ + "/elsewhere", path);
  start(folder_);
  EXPECT_EQ(call(load_code(adder(13)), 0), 13);
  EXPECT_EQ(loaded(), 0u);
  EXPECT_TRUE(files::is_regular_file(files::symlink_status(path)));
}

TEST_F(JitTest, SeveralAtOnceAndTwiceTheSame) {
  std::vector<CodeRequest> requests;
  for (int number : {100, 101, 102, 103, 100, 102}) requests.push_back(adder(number));
  std::vector<void*> code = load_code(requests);
  std::int64_t expected[] = {100, 101, 102, 103, 100, 102};
  for (std::size_t i = 0; i < code.size(); ++i) EXPECT_EQ(call(code[i], 0), expected[i]);
  EXPECT_EQ(code[0], code[4]);
  EXPECT_EQ(compiled(), 4u);
  EXPECT_TRUE(load_code(std::span<const CodeRequest>()).empty());
}

TEST_F(JitTest, ConcurrentCallersCompileAKeyOnce) {
  std::atomic<int> emitted{0}, wrong{0};
  auto worker = [&](int first) {
    std::vector<CodeRequest> requests;
    for (int i = 0; i < 6; ++i) {
      CodeRequest request = adder(200 + (first + i) % 6);
      request.emit = [&emitted, emit = request.emit](LlvmBuilder& b) {
        ++emitted;
        emit(b);
      };
      requests.push_back(std::move(request));
    }
    std::vector<void*> code = load_code(requests);
    for (int i = 0; i < 6; ++i) wrong += call(code[static_cast<std::size_t>(i)], 0) != 200 + (first + i) % 6;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(worker, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(emitted, 6);
  EXPECT_EQ(wrong, 0);
}

TEST_F(JitTest, AFailedKeyCanBeTriedAgain) {
  CodeRequest failing{adder(14).key, [](LlvmBuilder&) { throw InternalError("not yet"); }};
  std::vector<CodeRequest> both = {adder(15), failing};
  EXPECT_THROW(load_code(both), InternalError);
  EXPECT_EQ(call(load_code(adder(14)), 0), 14);
  EXPECT_EQ(call(load_code(adder(15)), 0), 15);
  EXPECT_EQ(compiled(), 2u);  // the good one of the two was kept
}

std::string message_of(const CodeRequest& request) {
  try {
    load_code(request);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST_F(JitTest, BadIrIsShown) {
  CodeRequest request{"test: bad", [](LlvmBuilder& b) {
                        b.begin_function(entry_name, b.index(), {b.index()});
                        b.result(b.constant(b.integer(32), 1));
                      }};
  std::string message = message_of(request);
  EXPECT_NE(message.find("bad LLVM IR for 'test: bad'"), std::string::npos) << message;
  EXPECT_NE(message.find("define i64 @stet_entry"), std::string::npos) << message;
}

TEST_F(JitTest, UnknownSymbolsAreNamed) {
  CodeRequest request{"test: external", [](LlvmBuilder& b) {
                        Type parameter = b.index();
                        Type type = LLVMFunctionType(b.index(), &parameter, 1, false);
                        Value other = LLVMAddFunction(b.module(), "no_such_function", type);
                        b.begin_function(entry_name, b.index(), {b.index()});
                        Value argument = b.parameter(0);
                        b.result(LLVMBuildCall2(b.raw(), type, other, &argument, 1, ""));
                      }};
  EXPECT_NE(message_of(request).find("no_such_function"), std::string::npos);
}

TEST_F(JitTest, LibraryCallsOfTheCodeGeneratorWork) {
  CodeRequest request{"test: remainder", [](LlvmBuilder& b) {
                        Type real = b.storage(f64);
                        b.begin_function(entry_name, real, {real, real});
                        b.result(LLVMBuildFRem(b.raw(), b.parameter(0), b.parameter(1), ""));
                      }};
  auto remainder = reinterpret_cast<double (*)(double, double)>(load_code(request));
  EXPECT_EQ(remainder(7.5, 2.0), 1.5);
  forget_loaded_code();
  remainder = reinterpret_cast<double (*)(double, double)>(load_code(request));
  EXPECT_EQ(remainder(-7.5, 2.0), -1.5);
  EXPECT_EQ(loaded(), 1u);
}

TEST_F(JitTest, ShowsTextForReaders) {
  EXPECT_NE(ir_text(adder(16)).find("define i64 @stet_entry(i64"), std::string::npos);
  EXPECT_NE(assembly_text(adder(16)).find("stet_entry:"), std::string::npos);
  EXPECT_EQ(compiled(), 0u);
}

}  // namespace
}  // namespace stet::cpu

// stet doctor in environments of all kinds.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "stet/cpu/emit_kernel.h"
#include "tests/tools/command.h"

namespace stet::tools {
namespace {

namespace fs = std::filesystem;
using files::Json;

class DoctorTest : public CommandTest {
 protected:
  struct Doctor {
    int code;
    Json json;
  };
  Doctor doctor(const Environment& environment) const {
    Ran ran = stet({"doctor", "--json"}, environment);
    EXPECT_EQ(ran.err, "");
    return {ran.code, json_of(ran)};
  }
  Doctor doctor() const { return doctor(environment()); }
  std::string of(const Doctor& doctor, const std::string& subject, const std::string& field) const {
    const Json checks = member(doctor.json, "checks");
    if (!checks.if_list()) return "no checks";
    for (const Json& check : *checks.if_list())
      if (*member(check, "subject").if_string() == subject) return *member(check, field).if_string();
    return "no check of " + subject;
  }
};

TEST_F(DoctorTest, LooksMeasuresAndKeepsWhatItMeasured) {
  Doctor first = doctor();
  for (const char* subject : {"compiler", "object cache"}) EXPECT_EQ(of(first, subject, "level"), "fine") << subject;
  EXPECT_EQ(of(first, "environment", "found"), "STET_CACHE_DIR=" + cache());
  EXPECT_EQ(member(first.json, "fine"), Json(first.code == 0));
  EXPECT_GT(*member(first.json, "limits.bytes_per_second").if_real(), 0);
  EXPECT_GT(*member(first.json, "limits.flops_per_second").if_real(), 0);
  EXPECT_EQ(member(first.json, "object_cache.files"), Json(0));  // before it measured

  Doctor second = doctor();
  EXPECT_EQ(member(second.json, "object_cache.files"), Json(1));
  for (const char* limit : {"bytes_per_second", "flops_per_second"}) {
    const std::string name = std::string("best_limits.") + limit;
    EXPECT_GE(*member(second.json, name).if_real(), *member(first.json, name).if_real());
    EXPECT_GE(*member(second.json, name).if_real(), *member(second.json, std::string("limits.") + limit).if_real());
  }
}

TEST_F(DoctorTest, SaysItForPeople) {
  Ran ran = stet({"doctor"});
  EXPECT_EQ(ran.out.find("stet 0."), 0u);
  EXPECT_CONTAINS(ran.out, " with LLVM ");
  EXPECT_CONTAINS(ran.out, cpu::checked_kernels() ? "\n  note   build         its kernels check every access"
                                                  : "\n  fine   build         ");
  EXPECT_CONTAINS(ran.out, "\n  fine   compiler      compiled kernels in ");
  EXPECT_CONTAINS(ran.out, "\n  fine   object cache  " + cache());
  EXPECT_CONTAINS(ran.out, ran.code == 0 ? "\nnothing is wrong" : " wrong\n");
}

TEST_F(DoctorTest, AFolderThatOthersMayEnterIsWrongAndSaidOnce) {
  ASSERT_EQ(::mkdir(cache().c_str(), 0755), 0);
  Ran ran = stet({"doctor"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "");
  EXPECT_CONTAINS(ran.out, "\n  wrong  object cache  ");
  EXPECT_CONTAINS(ran.out, "chmod 700");
  EXPECT_EQ(of(doctor(), "object cache", "fix"), "chmod 700 " + cache());
}

TEST_F(DoctorTest, AFolderThatCannotBeMadeIsWrong) {
  Environment below_a_file = environment(), nowhere = environment();
  std::ofstream(folder() / "file") << "x";
  below_a_file["STET_CACHE_DIR"] = folder() / "file/cache";
  nowhere["STET_CACHE_DIR"] = "/proc/nowhere/cache";
  Doctor first = doctor(below_a_file), second = doctor(nowhere);
  EXPECT_EQ(first.code, 1);
  EXPECT_CONTAINS(of(first, "object cache", "found"), "is not used: it cannot be looked at: Not a directory");
  EXPECT_EQ(second.code, 1);
  EXPECT_EQ(
      of(second, "object cache", "found"),
      "/proc/nowhere/cache: it cannot be made: No such file or directory, so every start compiles everything again");
  EXPECT_EQ(of(second, "object cache", "fix"),
            "make room or give yourself the right to write there, or set STET_CACHE_DIR to another folder of yours");
  // Everything else is looked at and measured all the same.
  for (const Doctor& one : {first, second}) {
    EXPECT_EQ(of(one, "compiler", "level"), "fine");
    EXPECT_GT(*member(one.json, "limits.flops_per_second").if_real(), 0);
  }
}

TEST_F(DoctorTest, AFolderThatTakesNoBytesIsWrong) {
  // No file may grow: the disk is as good as full. Pipes are no files.
  Ran ran = shell("ulimit -f 0; trap '' XFSZ; exec \"$STET\" doctor --json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(of({ran.code, json_of(ran)}, "object cache", "found"),
            cache() + ": nothing can be written there: File too large, so every start compiles everything again");
  EXPECT_TRUE(fs::is_empty(cache()));
}

TEST_F(DoctorTest, AFolderOfAnotherUserIsWrong) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  ASSERT_EQ(::mkdir(cache().c_str(), 0700), 0);
  ASSERT_EQ(::chown(cache().c_str(), 1, 1), 0);
  Doctor ran = doctor();
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(of(ran, "object cache", "found"),
            "the object cache " + cache() + " is not used: it belongs to another user");
}

TEST_F(DoctorTest, DamagedFilesAreWrong) {
  doctor();
  for (const auto& entry : fs::directory_iterator(cache())) std::ofstream(entry.path(), std::ios::app) << "x";
  Doctor ran = doctor();
  EXPECT_EQ(ran.code, 1);
  EXPECT_CONTAINS(of(ran, "object cache", "found"), "; 1 is damaged");
  EXPECT_EQ(
      of(ran, "object cache", "fix"),
      "stet cache verify shows which, stet cache verify --remove removes them; if it happens again, look at the disk");
  EXPECT_EQ(stet({"cache", "verify"}).code, 0);  // what it measured stands there anew
}

TEST_F(DoctorTest, WithoutACacheItMeasuresAllTheSame) {
  Environment off = environment(), homeless = environment();
  off["STET_CACHE_DIR"] = "";
  homeless.erase("STET_CACHE_DIR");
  homeless.erase("HOME");
  Doctor wanted = doctor(off), unwanted = doctor(homeless);
  EXPECT_EQ(of(wanted, "object cache", "level"), "note");
  EXPECT_EQ(of(unwanted, "object cache", "level"), "wrong");
  EXPECT_EQ(unwanted.code, 1);
  EXPECT_EQ(of(unwanted, "object cache", "found"),
            "the object cache is off: none of STET_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
  for (const Doctor& one : {wanted, unwanted}) EXPECT_GT(*member(one.json, "limits.bytes_per_second").if_real(), 0);
}

TEST_F(DoctorTest, VariablesOfTheEnvironmentThatDoNothingAreNoted) {
  Environment typo = environment();
  typo["STET_CAHCE_DIR"] = "/tmp";
  Doctor ran = doctor(typo);
  EXPECT_EQ(of(ran, "environment", "level"), "note");
  EXPECT_EQ(of(ran, "environment", "fix"), "stet does not look at STET_CAHCE_DIR; it does at STET_CACHE_DIR");
}

TEST_F(DoctorTest, ManyAtOnceDoNotHarmEachOther) {
  Ran ran = shell(
      "for i in 1 2 3 4; do \"$STET\" doctor --json > \"$HOME/$i\" 2>&1 & done; wait; \"$STET\" cache verify --json");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_EQ(member(json_of(ran), "files"), Json(1));
  for (const char* name : {"1", "2", "3", "4"}) {
    std::ifstream file(folder() / name);
    Ran one{0, {std::istreambuf_iterator<char>(file), {}}, {}};
    EXPECT_GT(*member(json_of(one), "best_limits.flops_per_second").if_real(), 0);
  }
}

}  // namespace
}  // namespace stet::tools

#include "stet/files/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "stet/base/text.h"
#include "stet/files/source.h"
#include "stet/files/utf8.h"
#include "tests/files/files.h"

namespace stet::files {
namespace {

const Where line{"user.cpp", 7};

std::string opened(const std::string& path) {
  return user_error_of([&] { Input input(path, "load", line); });
}

/// What `f` returns in a process of its own, which may give up rights and set limits.
std::string in_child(const std::function<std::string()>& f) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    std::string text = f();
    ssize_t ignored = ::write(ends[1], text.data(), text.size());
    (void)ignored;
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char part[1024];
  ssize_t got;
  while ((got = ::read(ends[0], part, sizeof part)) > 0) text.append(part, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status;
  ::waitpid(child, &status, 0);
  return text;
}

TEST(Input, ReadsPartsAndAll) {
  TemporaryFolder folder;
  write_whole(folder / "a", "hello world");
  Input input(folder / "a", "load", line);
  EXPECT_EQ(input.size(), 11u);
  EXPECT_EQ(text_of(input.read_all()), "hello world");
  EXPECT_EQ(text_of(input.read(6, 5, "word")), "world");
  EXPECT_EQ(text_of(input.read(11, 0, "word")), "");
  char two[2];
  input.read(4, two, 2, "word");
  EXPECT_EQ(std::string(two, 2), "o ");
  for (auto [offset, count] :
       {std::pair<std::uint64_t, std::size_t>{6, 6}, {12, 0}, {~std::uint64_t{0}, 1}, {1, ~std::size_t{0}}})
    EXPECT_EQ(user_error_of([&] { input.read(offset, count, "word"); }),
              text("load: '", folder / "a",
                   "': ends in its word, at byte 11\n  at user.cpp:7\n  fix: the file is damaged: fetch or "
                   "write it again"));
  write_whole(folder / "empty", "");
  EXPECT_TRUE(Input(folder / "empty", "load", line).read_all().empty());
}

TEST(Input, ManyThreadsRead) {
  TemporaryFolder folder;
  std::string all;
  for (int i = 0; i < 100'000; ++i) all += static_cast<char>(i % 1000 * (i % 1000) % 253);
  write_whole(folder / "a", all);
  Input input(folder / "a", "load", line);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (std::size_t at = k; at + 50 < all.size(); at += 997)
        wrong += text_of(input.read(at, 50, "part")) != all.substr(at, 50);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Input, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  EXPECT_EQ(opened(folder / "none"),
            text("load: '", folder / "none",
                 "': cannot be opened: No such file or directory\n  at user.cpp:7\n  fix: check the path"));
  EXPECT_EQ(opened(folder.path()),
            text("load: '", folder.path(), "': is a folder\n  at user.cpp:7\n  fix: give the path of a file"));
  EXPECT_EQ(opened("/dev/zero"),
            "load: '/dev/zero': is not a regular file\n  at user.cpp:7\n  fix: give the path of a file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(opened(folder / "pipe"), "is not a regular file");  // and nobody waits for its other end
  write_whole(folder / "a", "1");
  EXPECT_CONTAINS(opened((folder / "a") + std::string("\0.txt", 5)), "a\\x00.txt': a zero byte is in the path");
  EXPECT_EQ(opened(""), "load: '': the path is empty\n  at user.cpp:7\n  fix: check the path");
}

TEST(Input, AFileThatIsCutOffMeanwhile) {
  TemporaryFolder folder;
  write_whole(folder / "a", std::string(1000, 'x'));
  Input input(folder / "a", "load", line);
  std::filesystem::resize_file(folder / "a", 400);
  EXPECT_EQ(user_error_of([&] { input.read_all(); }),
            text("load: '", folder / "a",
                 "': became shorter while it was read, at byte 400\n  at user.cpp:7\n  fix: read it when "
                 "nobody writes to it"));
}

TEST(Input, WithoutMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer wants more memory than the limit leaves";
#endif
  TemporaryFolder folder;
  write_whole(folder / "a", "x");
  std::filesystem::resize_file(folder / "a", std::uintmax_t{1} << 40);  // a hole
  std::string text_of_error = in_child([&] {
    rlimit limit{std::size_t{8} << 30, std::size_t{8} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
    return user_error_of([&] { Input(folder / "a", "load", line).read_all(); });
  });
  EXPECT_EQ(text_of_error, text("load: '", folder / "a",
                                "': no memory for 1099511627776 bytes of its contents, at byte 0\n  at "
                                "user.cpp:7\n  fix: read it on a larger machine"));
}

TEST(Walk, TakesNumbersAndText) {
  Reading reading = test_reading();
  Bytes bytes = bytes_from(std::string("\x01\x02\x03\x04\x80\x3f\0\0name", 12));
  Walk walk(bytes, reading, 100);
  EXPECT_EQ(walk.number<std::uint16_t>("n"), 0x0201);
  EXPECT_EQ(walk.number_highest_first<std::uint16_t>("n"), 0x0304);
  EXPECT_EQ(walk.number_highest_first<std::int32_t>("n"), static_cast<std::int32_t>(0x803f0000));
  EXPECT_EQ(walk.characters(4, "name"), "name");
  EXPECT_TRUE(walk.at_end());
  EXPECT_EQ(user_error_of([&] { walk.number<std::uint32_t>("count"); }),
            "load: 'test.file': ends in its count, of which 4 bytes are missing, at byte 112\n  fix: the file is "
            "damaged: fetch or "
            "write it again");
  walk.go_to(10, "tail");
  EXPECT_EQ(walk.left(), 2u);
  EXPECT_EQ(user_error_of([&] { walk.take(~std::uint64_t{0}, "tail"); }),
            "load: 'test.file': ends in its tail, of which 18446744073709551613 bytes are missing, at byte 110\n  fix: "
            "the file is "
            "damaged: fetch or write it again");
  EXPECT_EQ(user_error_of([&] { walk.go_to(13, "table"); }),
            "load: 'test.file': its table would be at byte 113, behind its end, at byte 110\n  fix: the file is "
            "damaged: fetch or "
            "write it again");
  EXPECT_EQ(user_error_of([&] { walk.fail("no", "do this"); }), "load: 'test.file': no, at byte 110\n  fix: do this");
}

TEST(Source, PartsOfFilesAndMemory) {
  TemporaryFolder folder;
  write_whole(folder / "a", "0123456789");
  Input input(folder / "a", "load", Where{});
  for (const Source& source : {Source(input), in_memory("0123456789")}) {
    EXPECT_EQ(source.size(), 10u);
    Source part = source.part(2, 5, source.reading().inside("inner"));
    EXPECT_EQ(part.size(), 5u);
    EXPECT_EQ(text_of(part.read(1, 3, "word")), "345");
    Source smaller = part.part(4, 1, part.reading());
    EXPECT_EQ(text_of(smaller.read(0, 1, "word")), "6");
    EXPECT_CONTAINS(user_error_of([&] { part.read(3, 3, "word"); }), "/inner': ends in its word, at byte 5");
    EXPECT_CONTAINS(user_error_of([&] { smaller.read(2, 0, "word"); }), "ends in its word, at byte 1");
    EXPECT_EQ(internal_error_of([&] { part.part(3, 3, part.reading()); }), "a part of a file that is not inside of it");
  }
}

TEST(Output, IsThereAfterCommitAndNotBefore) {
  TemporaryFolder folder;
  {
    Output output(folder / "a", "save", line);
    output.write(std::string_view("hello "));
    output.write(std::string_view("world"));
    output.write_at(0, "J", 1);
    EXPECT_EQ(output.written(), 11u);
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    output.commit();
  }
  EXPECT_EQ(contents_of(folder / "a"), "Jello world");
  EXPECT_EQ(folder.count(), 1u);
  {
    Output given_up(folder / "a", "save", line);
    given_up.write(std::string(1'000'000, 'x'));
    EXPECT_EQ(folder.count(), 2u);
  }
  EXPECT_EQ(contents_of(folder / "a"), "Jello world");
  EXPECT_EQ(folder.count(), 1u);
  Output empty(folder / "empty", "save", line);
  empty.commit();
  EXPECT_EQ(contents_of(folder / "empty"), "");
}

TEST(Output, SmallAndLargePartsInOrder) {
  TemporaryFolder folder;
  std::string all;
  Output output(folder / "a", "save", line);
  for (std::size_t i = 0; i < 300; ++i) {
    std::string part(i * 37 % 5000 + (i % 50 == 0 ? 600'000 : 0), static_cast<char>('a' + i % 26));
    output.write(part);
    all += part;
    if (i % 60 == 10) {
      output.write_at(i, "#", 1);
      all[i] = '#';
    }
  }
  EXPECT_EQ(output.written(), all.size());
  output.commit();
  EXPECT_TRUE(contents_of(folder / "a") == all);
}

TEST(Output, TwoAtOnceOfTheSameName) {
  TemporaryFolder folder;
  Output first(folder / "a", "save", line), second(folder / "a", "save", line);
  first.write(std::string_view("first"));
  second.write(std::string_view("second"));
  second.commit();
  EXPECT_EQ(contents_of(folder / "a"), "second");
  first.commit();
  EXPECT_EQ(contents_of(folder / "a"), "first");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Output, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  auto written = [](const std::string& path) { return user_error_of([&] { Output output(path, "save", line); }); };
  EXPECT_EQ(written(folder.path()),
            text("save: '", folder.path(), "': is a folder\n  at user.cpp:7\n  fix: give the path of a file"));
  EXPECT_EQ(written(folder / "none/a"),
            text("save: '", folder / "none/a",
                 "': cannot be written: No such file or directory\n  at user.cpp:7\n  fix: the folder "
                 "must exist, and be yours to write to"));
  // As root it would be replaced.
  EXPECT_EQ(written("/dev/null"),
            "save: '/dev/null': is not a regular file\n  at user.cpp:7\n  fix: give the path of a file");
  EXPECT_CONTAINS(written((folder / "a") + std::string("\0b", 2)), "a zero byte is in the path");
  EXPECT_CONTAINS(written(""), "save: '': the path is empty");
  EXPECT_EQ(folder.count(), 0u);
}

TEST(Output, KeepsLinksAndModes) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  write_whole(folder / "far/real", "old");
  ::chmod((folder / "far/real").c_str(), 0600);
  std::filesystem::create_symlink("far/real", folder / "link");
  Output output(folder / "link", "save", line);
  output.write(std::string_view("new"));
  output.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(contents_of(folder / "far/real"), "new");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "far/real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

/// As a shell's > does.
TEST(Output, MakesWhatALinkLeadsTo) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "far");
  std::filesystem::create_symlink("far/second", folder / "first");
  std::filesystem::create_symlink(folder / "far/real", folder / "far/second");
  Output output(folder / "first", "save", line);
  output.write(std::string_view("new"));
  output.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "first"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "far/second"));
  EXPECT_EQ(contents_of(folder / "far/real"), "new");

  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_EQ(user_error_of([&] { Output circle(folder / "circle", "save", line); }),
            text("save: '", folder / "circle", "': cannot be written: Too many levels of symbolic links\n",
                 "  at user.cpp:7\n  fix: give the path of a file"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "circle"));
}

TEST(Output, TheLongestNameThatAFileCanHave) {
  TemporaryFolder folder;
  const std::string longest(255, 'n');
  for (const char* contents : {"old", "new"}) {
    Output output(folder / longest, "save", line), other(folder / longest, "save", line);
    output.write(std::string_view(contents));
    output.commit();
    EXPECT_EQ(contents_of(folder / longest), contents);
  }
  EXPECT_EQ(folder.count(), 1u);
  EXPECT_CONTAINS(user_error_of([&] { Output output(folder / (longest + "n"), "save", line); }), "File name too long");
}

/// Names of files come from strangers too.
TEST(Output, ErrorsShowNothingThatATerminalObeys) {
  TemporaryFolder folder;
  const std::string path = folder / "none\x1b[31m/a", shown = folder / "none\\x1b[31m/a";
  EXPECT_CONTAINS(user_error_of([&] { Output output(path, "save", line); }),
                  "save: '" + shown + "': cannot be written");
  EXPECT_CONTAINS(user_error_of([&] { Input input(path, "load", line); }), "load: '" + shown + "': cannot be opened");
}

TEST(Output, NamesThatAProcessLeft) {
  TemporaryFolder folder;
  int number = -1;
  {
    Output output(folder / "a", "save", line);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      number = std::stoi(entry.path().string().substr(entry.path().string().rfind('-') + 1));
  }
  ASSERT_GE(number, 0);
  for (int i = 1; i <= 5; ++i) write_whole(folder / text("a.", ::getpid(), "-", number + i, ".part"), "left");
  Output output(folder / "a", "save", line);
  output.write(std::string_view("new"));
  output.commit();
  EXPECT_EQ(contents_of(folder / "a"), "new");
  EXPECT_EQ(folder.count(), 6u);
}

/// A limit on sizes of files stands for a full disk: a write that gets less than it asked for, then an error.
TEST(Output, DiskFull) {
  TemporaryFolder folder;
  write_whole(folder / "a", "what stood there");
  for (std::size_t part : {std::size_t{1000}, std::size_t{1'000'000}}) {
    std::string error = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      rlimit limit{500'000, 500'000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      return user_error_of([&] {
        Output output(folder / "a", "save", line);
        for (int i = 0; i < 1000; ++i) output.write(std::string(part, 'x'));
        output.commit();
      });
    });
    EXPECT_EQ(error, text("save: '", folder / "a",
                          "': cannot be written: File too large\n  at user.cpp:7\n  fix: what stood there "
                          "before is as it was; make room, or write to another disk"));
    EXPECT_EQ(contents_of(folder / "a"), "what stood there");
    EXPECT_EQ(folder.count(), 1u);
  }
}

/// What is still in the buffer finds the disk full when it is committed.
TEST(Output, DiskFullAtTheEnd) {
  TemporaryFolder folder;
  std::string error = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return user_error_of([&] {
      Output output(folder / "a", "save", line);
      output.write(std::string(200, 'x'));
      output.commit();
    });
  });
  EXPECT_CONTAINS(error, "cannot be written: File too large");
  EXPECT_EQ(folder.count(), 0u);
}

TEST(Output, ReadOnlyFolder) {
  TemporaryFolder folder;
  write_whole(folder / "a", "what stood there");
  ::chmod(folder.path().c_str(), 0555);
  std::string error = in_child([&]() -> std::string {
    // Root may write everywhere.
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return "cannot give up rights";
    return user_error_of([&] { Output output(folder / "a", "save", line); });
  });
  ::chmod(folder.path().c_str(), 0755);
  if (error == "cannot give up rights") GTEST_SKIP() << error;
  EXPECT_EQ(error, text("save: '", folder / "a",
                        "': cannot be written: Permission denied\n  at user.cpp:7\n  fix: the folder must "
                        "exist, and be yours to write to"));
  EXPECT_EQ(contents_of(folder / "a"), "what stood there");
}

/// Killed at any moment: the old file or the new one, whole.
TEST(Output, KilledInTheMiddle) {
  TemporaryFolder folder;
  const std::string old_one(300'000, 'o'), new_one(700'000, 'n');
  for (int i = 0; i < 20; ++i) {
    write_whole(folder / "a", old_one);
    pid_t child = ::fork();
    if (child == 0) {
      while (true) {
        Output output(folder / "a", "save", line);
        for (std::size_t at = 0; at < new_one.size(); at += 10'000) output.write(new_one.substr(at, 10'000));
        output.commit();
      }
    }
    ::usleep(static_cast<useconds_t>(i * 700));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::string now = contents_of(folder / "a");
    ASSERT_TRUE(now == old_one || now == new_one) << now.size();
  }
}

TEST(Output, AChildOfForkLeavesTheParentsFileAlone) {
  TemporaryFolder folder;
  auto output = std::make_unique<Output>(folder / "a", "save", line);
  output->write("of the parent");
  const std::string error = in_child([&] {
    std::string told =
        user_error_of([&] { output->write("of the child"); }) + "\n" + user_error_of([&] { output->commit(); });
    output.reset();
    return told;
  });
  const std::string once =
      text("save: '", folder / "a",
           "': was begun before fork(), and is the parent's to write\n  at user.cpp:7\n  fix: begin "
           "anew in the child, with another file");
  EXPECT_EQ(error, once + "\n" + once);
  output->commit();
  EXPECT_EQ(contents_of(folder / "a"), "of the parent");
}

TEST(Checksum, IsCastagnolis) {
  // The vectors of RFC 3720, B.4, and the one everybody gives.
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(bytes_from("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0})), 0x8A9136AAu);
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0xFF})), 0x62A8AB43u);
  Bytes rising(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  for (std::size_t cut = 0; cut <= 32; ++cut)
    EXPECT_EQ(crc32c(std::span(rising).subspan(cut), crc32c(std::span(rising).first(cut))), 0x46DD794Eu);
}

TEST(Utf8, WhatIsAndWhatIsNot) {
  for (const char* good : {"", "a", "größe", "\u20ac", "\U0001F600", "\uD7FF", "\uE000", "\U0010FFFF"})
    EXPECT_TRUE(is_utf8(good));
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "a\xFF", "\xC3(", "\xE2(\xA1"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
  // Eight characters of ASCII are looked at together: what is between them is not.
  for (int before = 0; before < 20; ++before)
    for (int after = 0; after < 20; ++after) {
      const std::string begin(static_cast<std::size_t>(before), 'x'), end(static_cast<std::size_t>(after), 'y');
      EXPECT_TRUE(is_utf8(begin + "\u20ac" + end));
      EXPECT_FALSE(is_utf8(begin + "\xE2\x82" + end));
    }
}

TEST(Utf8, NamesInErrors) {
  EXPECT_EQ(quoted_name("größe"), "'größe'");
  EXPECT_EQ(quoted_name("a\x1b[31m\n\x7f\xC2\x9B"
                        "b"),
            "'a\\x1b[31m\\x0a\\x7f\\xc2\\x9bb'");
  EXPECT_EQ(quoted_name("\xFF\xC3"), "'\\xff\\xc3'");
  EXPECT_EQ(quoted_name(std::string(1000, 'x')), "'" + std::string(120, 'x') + "…'");
  EXPECT_EQ(quoted_name(std::string(119, 'x') + "öö"), "'" + std::string(119, 'x') + "ö…'");
}

TEST(BytesOf, SizesTimesAnElement) {
  std::uint64_t bytes = 7;
  auto of = [&](std::vector<std::int64_t> sizes, std::uint64_t element) { return bytes_of(sizes, element, bytes); };
  EXPECT_TRUE(of({}, 4) && bytes == 4);
  EXPECT_TRUE(of({2, 3}, 4) && bytes == 24);
  EXPECT_TRUE(of({2, 0, 3}, 4) && bytes == 0);
  EXPECT_FALSE(of({-1}, 4));
  EXPECT_FALSE(of({std::int64_t{1} << 62}, 4));
  EXPECT_FALSE(of({0, std::int64_t{1} << 62}, 4));
  EXPECT_TRUE(of({std::int64_t{1} << 60}, 4));
  // A tensor could not have so many elements.
  EXPECT_FALSE(of({(std::int64_t{1} << 62) + 1}, 1));
  EXPECT_FALSE(of({0, (std::int64_t{1} << 62) + 1}, 1));
}

}  // namespace
}  // namespace stet::files

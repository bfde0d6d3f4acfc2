#include "stet/files/zip.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <thread>

#include "stet/base/text.h"
#include "stet/files/inflate.h"
#include "tests/files/files.h"

namespace stet::files {
namespace {

std::string unpacked(const ZipReader& zip, std::string_view name) {
  const ZipEntry* entry = zip.find(name);
  return entry ? text_of(zip.read(*entry)) : "no entry";
}

/// An archive of the entries, as the writer writes it.
std::string archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  TemporaryFolder folder;
  Output output(folder / "a.zip", "save", Where{});
  ZipWriter zip(output);
  for (const auto& [name, contents] : entries) zip.add(name, contents);
  zip.finish();
  output.commit();
  return contents_of(folder / "a.zip");
}
std::string error_of_archive(const std::string& bytes, ZipLimits limits = {}) {
  return user_error_of([&] {
    ZipReader zip(in_memory(bytes, "a.zip"), limits);
    for (const ZipEntry& entry : zip.entries()) zip.read(entry);
  });
}
std::string refused(const std::string& reason,
                    const std::string& advice = "the file is damaged: fetch or write it again") {
  return "load: 'a.zip': " + reason + "\n  fix: " + advice;
}

/// Where the end record, and the directory, of an archive without a comment begin.
std::size_t end_of(const std::string& bytes) { return bytes.size() - 22; }
std::size_t directory_of(const std::string& bytes) { return peek<std::uint32_t>(bytes, end_of(bytes) + 16); }

TEST(Zip, ReadsWhatPythonStores) {
  Input input(stored("stored.zip"), "load", Where{});
  ZipReader zip(input);
  ASSERT_EQ(zip.entries().size(), 5u);
  EXPECT_EQ(zip.entries()[0].name, "metadata.json");
  EXPECT_EQ(zip.entries()[2].name, "assets");
  EXPECT_TRUE(zip.entries()[2].folder);
  EXPECT_EQ(unpacked(zip, "metadata.json"), "{\"keras_version\": \"3.0.0\"}");
  EXPECT_EQ(unpacked(zip, "assets/größe/wörter.txt"), "eins\nzwei\n");
  EXPECT_EQ(unpacked(zip, "empty"), "");
  EXPECT_EQ(zip.find("none"), nullptr);
  // In place: the entry's bytes are where it says.
  const ZipEntry& config = *zip.find("config.json");
  EXPECT_TRUE(config.stored);
  EXPECT_EQ(contents_of(stored("stored.zip")).substr(config.offset, config.size), "{}");
  Source inside = zip.open(*zip.find("metadata.json"));
  EXPECT_EQ(inside.size(), 26u);
  EXPECT_EQ(text_of(inside.read(2, 5, "word")), "keras");
  EXPECT_EQ(user_error_of([&] { inside.read(20, 7, "word"); }),
            "load: 'tests/oracle/files/stored.zip/metadata.json': ends in its word, at byte 26\n"
            "  fix: the file is damaged: fetch or write it again");
}

TEST(Zip, ReadsWhatPythonDeflates) {
  Input input(stored("deflated.zip"), "load", Where{});
  ZipReader zip(input);
  EXPECT_EQ(unpacked(zip, "zeros"), std::string(1'000'000, '\0'));
  EXPECT_EQ(unpacked(zip, "nothing"), "");
  Source count = zip.open(*zip.find("count"));
  ASSERT_EQ(count.size(), 8000u);
  for (std::uint32_t i = 0; i < 2000; ++i) {
    std::uint32_t value;
    count.read(i * 4, &value, 4, "number");
    ASSERT_EQ(value, i * i % 99991);
  }
}

TEST(Zip, ReadsZip64RecordsAndSizesThatFollow) {
  Input zip64(stored("zip64.zip"), "load", Where{});
  EXPECT_EQ(unpacked(ZipReader(zip64), "arr_0.npy"), "\x93NUMPY and so on");
  Input streamed(stored("streamed.zip"), "load", Where{});
  ZipReader zip(streamed);
  EXPECT_EQ(unpacked(zip, "a"), "first");
  EXPECT_EQ(unpacked(zip, "b").size(), 140u);
}

TEST(Zip, WhatIsWrittenReadsBack) {
  std::string many;
  for (int i = 0; i < 300'000; ++i) many += static_cast<char>(i % 1000 * (i % 1000) % 251);
  std::string bytes = archive({{"config.json", "{}"}, {"a/b/größe", many}, {"empty", ""}, {"w:0.npy", "x"}});
  ZipReader zip(in_memory(bytes));
  ASSERT_EQ(zip.entries().size(), 4u);
  EXPECT_EQ(unpacked(zip, "a/b/größe"), many);
  EXPECT_EQ(unpacked(zip, "empty"), "");
  EXPECT_EQ(unpacked(zip, "w:0.npy"), "x");
  EXPECT_EQ(bytes, archive({{"config.json", "{}"}, {"a/b/größe", many}, {"empty", ""}, {"w:0.npy", "x"}}));
  EXPECT_EQ(ZipReader(in_memory(archive({}))).entries().size(), 0u);
}

TEST(Zip, EntriesComeInParts) {
  TemporaryFolder folder;
  {
    Output output(folder / "a.zip", "save", Where{});
    ZipWriter zip(output);
    zip.add("first", std::string_view("1"));
    zip.begin("parts", 700'000);
    Bytes part(70'000);
    for (int i = 0; i < 10; ++i) {
      std::fill(part.begin(), part.end(), static_cast<std::byte>(i));
      zip.write(part);
    }
    zip.end();
    zip.finish();
    output.commit();
  }
  Input input(folder / "a.zip", "load", Where{});
  ZipReader zip(input);
  std::string contents = unpacked(zip, "parts");
  ASSERT_EQ(contents.size(), 700'000u);
  for (std::size_t i = 0; i < contents.size(); i += 7'000) ASSERT_EQ(contents[i], static_cast<char>(i / 70'000));
  // Several threads, one reader.
  std::vector<std::thread> threads;
  std::vector<std::size_t> sizes(4);
  for (std::size_t& size : sizes) threads.emplace_back([&] { size = unpacked(zip, "parts").size(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sizes, std::vector<std::size_t>(4, 700'000));
}

TEST(Zip, WriterRefusesWhatAReaderWould) {
  TemporaryFolder folder;
  Output output(folder / "a.zip", "save", Where{});
  ZipWriter zip(output);
  zip.add("a", std::string_view("1"));
  EXPECT_EQ(internal_error_of([&] { zip.begin("a", 1); }), "the entry 'a' comes twice in a ZIP archive");
  EXPECT_EQ(internal_error_of([&] { zip.begin("../a", 1); }),
            "the name '../a' of an entry of a ZIP archive leads out of the archive");
  EXPECT_CONTAINS(internal_error_of([&] { zip.begin(std::string(70'000, 'a'), 1); }), "is too long");
  zip.begin("b", 3);
  EXPECT_EQ(internal_error_of([&] { zip.begin("c", 1); }),
            "an entry of a ZIP archive begins before the one before it has ended");
  EXPECT_EQ(internal_error_of([&] { zip.end(); }), "a ZIP entry ends 3 bytes too early");
  EXPECT_EQ(internal_error_of([&] { zip.write(bytes_from("1234")); }),
            "more bytes of a ZIP entry than it was begun with");
  EXPECT_EQ(internal_error_of([&] { zip.finish(); }), "a ZIP archive ends inside of an entry");
}

/// Above 65535 entries the counts, and above 4 GiB the places, stand in zip64 records.
TEST(Zip, ManyEntries) {
  TemporaryFolder folder;
  Output output(folder / "a.zip", "save", Where{});
  ZipWriter zip(output);
  for (int i = 0; i < 70'000; ++i) zip.add(text("n", i), text(i));
  zip.finish();
  output.commit();
  Input input(folder / "a.zip", "load", Where{});
  ZipReader back(input);
  ASSERT_EQ(back.entries().size(), 70'000u);
  EXPECT_EQ(unpacked(back, "n69999"), "69999");
}

TEST(Zip, LargeEntriesAndFarOnes) {
  // Holes cost no room on the disk: the large entry is one.
  TemporaryFolder folder;
  const std::uint64_t large = (std::uint64_t{1} << 32) + 5;
  std::string head, tail;
  auto put = [](std::string& to, auto value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); };
  auto entry = [&](bool central, std::uint64_t size, std::uint64_t at, std::string_view name, std::string_view data) {
    std::string out;
    auto crc = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(data.data()), data.size()));
    put(out, central ? 0x02014b50u : 0x04034b50u);
    if (central) put(out, std::uint16_t{45});
    put(out, std::uint16_t{45});
    for (int i = 0; i < 3; ++i) put(out, std::uint16_t{0});
    put(out, std::uint16_t{33});
    put(out, crc);
    const bool is_large = size > 0xFFFFFFFE, is_far = central && at > 0xFFFFFFFE;
    for (int i = 0; i < 2; ++i) put(out, is_large ? 0xFFFFFFFFu : static_cast<std::uint32_t>(size));
    put(out, static_cast<std::uint16_t>(name.size()));
    auto extra = static_cast<std::uint16_t>((is_large ? 16 : 0) + (is_far ? 8 : 0));
    put(out, static_cast<std::uint16_t>(extra ? extra + 4 : 0));
    if (central) {
      for (int i = 0; i < 3; ++i) put(out, std::uint16_t{0});
      put(out, std::uint32_t{0});
      put(out, is_far ? 0xFFFFFFFFu : static_cast<std::uint32_t>(at));
    }
    out += name;
    if (extra) put(out, std::uint16_t{1}), put(out, extra);
    if (is_large) put(out, size), put(out, size);
    if (is_far) put(out, at);
    return out;
  };
  head = entry(false, large, 0, "large", "");
  const std::uint64_t far = head.size() + large;
  tail = entry(false, 2, 0, "far", "hi") + "hi";
  const std::uint64_t directory = far + tail.size();
  std::string central = entry(true, large, 0, "large", "") + entry(true, 2, far, "far", "hi");
  tail += central;
  const std::uint64_t end64 = far + tail.size();
  put(tail, 0x06064b50u), put(tail, std::uint64_t{44}), put(tail, std::uint32_t{45 | 45 << 16});
  put(tail, std::uint64_t{0}), put(tail, std::uint64_t{2}), put(tail, std::uint64_t{2});
  put(tail, std::uint64_t{central.size()}), put(tail, directory);
  put(tail, 0x07064b50u), put(tail, std::uint32_t{0}), put(tail, end64), put(tail, std::uint32_t{1});
  put(tail, 0x06054b50u), put(tail, std::uint32_t{0}), put(tail, std::uint32_t{2 | 2 << 16});
  put(tail, static_cast<std::uint32_t>(central.size())), put(tail, 0xFFFFFFFFu), put(tail, std::uint16_t{0});
  int file = ::open((folder / "large.zip").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_EQ(::pwrite(file, head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  ASSERT_EQ(::pwrite(file, tail.data(), tail.size(), static_cast<off_t>(far)), static_cast<ssize_t>(tail.size()));
  ::close(file);
  Input input(folder / "large.zip", "load", Where{});
  ZipReader zip(input);
  EXPECT_EQ(zip.find("large")->size, large);
  EXPECT_EQ(unpacked(zip, "far"), "hi");
}

TEST(Zip, RefusesNames) {
  const std::pair<std::string, const char*> names[] = {{"/etc/passwd", "is absolute"},
                                                       {"C:/x", "is absolute"},
                                                       {"../up", "leads out of the archive"},
                                                       {"a/../b", "leads out of the archive"},
                                                       {"a/..", "leads out of the archive"},
                                                       {"a//b", "has an empty part"},
                                                       {"./a", "has an empty part"},
                                                       {"a\\b", "has a '\\'"},
                                                       {"a\xFF"
                                                        "b",
                                                        "is not UTF-8"}};
  for (const auto& [name, why] : names) {
    std::string shown = name == "a\xFF"
                                "b"
                            ? "a\\xffb"
                            : name;
    std::string plain(name.size(), 'n');
    std::string bytes = archive({{plain, "1"}});
    for (std::size_t at; (at = bytes.find(plain)) != std::string::npos;) bytes.replace(at, name.size(), name);
    EXPECT_EQ(error_of_archive(bytes),
              refused(text("the name '", shown, "' of an entry ", why, ", at byte ", directory_of(bytes))));
  }
  std::string control = archive({{"nnn", "1"}});
  for (std::size_t at; (at = control.find("nnn")) != std::string::npos;)
    control.replace(at, 3,
                    "a\x1b"
                    "b");
  EXPECT_EQ(error_of_archive(control), refused("the name 'a\\x1bb' of an entry has a control character, at byte 34"));
  std::string twice = archive({{"na", "1"}, {"nb", "2"}});
  for (std::size_t at; (at = twice.find("nb")) != std::string::npos;) twice.replace(at, 2, "na");
  EXPECT_EQ(error_of_archive(twice), refused("the entry 'na' comes twice, at byte 114"));
  std::string folder = archive({{"na", ""}, {"nab", ""}});
  for (std::size_t at; (at = folder.find("nab")) != std::string::npos;) folder.replace(at, 3, "na/");
  EXPECT_EQ(error_of_archive(folder), refused("the entry 'na/' comes twice, at byte 113"));
}

TEST(Zip, RefusesWhatItIsNot) {
  const char* advice = "the file is no ZIP archive, or was cut off: fetch or write it again";
  EXPECT_EQ(error_of_archive(""), refused("is no ZIP archive", advice));
  EXPECT_EQ(error_of_archive(std::string(100'000, 'x')), refused("is no ZIP archive", advice));
  std::string bytes = archive({{"a", "contents"}, {"b", "more"}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_EQ(error_of_archive(bytes.substr(0, size)), refused("is no ZIP archive", advice));
  EXPECT_CONTAINS(error_of_archive("before" + bytes), "does not end where the end record begins");
}

/// One archive of two entries of 8 and 4 bytes; a field is changed.
class ZipFields : public testing::Test {
 protected:
  std::string bytes = archive({{"a", "contents"}, {"b", "more"}});
  std::size_t directory = directory_of(bytes), end = end_of(bytes);
  template <class T>
  std::string with(std::size_t at, T value) {
    std::string changed = bytes;
    poke(changed, at, value);
    return error_of_archive(changed);
  }
};

TEST_F(ZipFields, OfTheDirectory) {
  EXPECT_EQ(error_of_archive(bytes), "no error");
  EXPECT_EQ(with(directory + 8, std::uint16_t{1}),
            refused(text("the entry 'a' is encrypted, at byte ", directory), "write it without a password"));
  EXPECT_EQ(with(directory + 8, std::uint16_t{1 << 5}),
            refused(text("the entry 'a' is a patch, at byte ", directory), "write it whole"));
  EXPECT_EQ(with(directory + 10, std::uint16_t{12}),
            refused(text("the entry 'a' is packed with method 12, which is not supported, at byte ", directory),
                    "write it stored or deflated"));
  EXPECT_EQ(with(directory + 38, 0120777u << 16),
            refused(text("the entry 'a' is a link, at byte ", directory), "write the file that it names instead"));
  EXPECT_EQ(with(directory + 34, std::uint16_t{1}),
            refused(text("an archive of several parts, at byte ", directory), "join its parts to one file"));
  EXPECT_EQ(with(directory + 24, std::uint32_t{9}),
            refused(text("the entry 'a' of 9 bytes cannot come from the 8 bytes in the file, at byte ", directory)));
  EXPECT_EQ(with(directory, std::uint32_t{7}),
            refused(text("entry 0 of its directory is missing, at byte ", directory)));
  EXPECT_EQ(with(directory + 42, std::uint32_t{1 << 30}),
            refused(text("the entry 'a' would begin at byte 1073741824, behind the end, at byte ", bytes.size())));
  EXPECT_EQ(with(directory + 42, std::uint32_t{1}), refused("the local header of 'a' is missing, at byte 1"));
  EXPECT_EQ(with(directory + 24, 0xFFFFFFFFu),
            refused(text("an entry's zip64 record is missing, at byte ", directory + 47)));
  EXPECT_EQ(with(directory + 16, std::uint32_t{5}),
            refused("the local header of 'a' has another checksum than the directory, at byte 0"));
  // The directory's name of b is a's with another local header: found by the name.
  EXPECT_EQ(with(directory + 47 + 42, std::uint32_t{0}),
            refused("the local header of 'b' has another name than the directory, at byte 0"));
}

TEST_F(ZipFields, OfTheEnd) {
  EXPECT_EQ(with(end + 8, std::uint16_t{1}),
            refused(text("an archive of several parts, at byte ", end), "join its parts to one file"));
  EXPECT_EQ(with(end + 12, std::uint32_t{1}),
            refused(text("its directory of 1 bytes would begin at byte ", directory,
                         ", and does not end where the end record begins, at byte ", end)));
  std::string fewer = bytes;
  poke(fewer, end + 8, std::uint16_t{1});
  poke(fewer, end + 10, std::uint16_t{1});
  EXPECT_EQ(error_of_archive(fewer),
            refused(text("more bytes in its directory than its entries have, at byte ", directory + 47)));
  std::string more = bytes;
  poke(more, end + 8, std::uint16_t{900});
  poke(more, end + 10, std::uint16_t{900});
  EXPECT_EQ(error_of_archive(more), refused(text("a directory of 94 bytes cannot have 900 entries, at byte ", end)));
}

TEST_F(ZipFields, OfFolders) {
  bytes = archive({{"ab", "contents"}});
  directory = directory_of(bytes);
  EXPECT_EQ(with(directory + 47, '/'), refused(text("the folder 'a/' has contents, at byte ", directory)));
}

/// The same archive with a zip64 end record of 56 bytes and its locator, as if it had too many entries for the old one.
TEST_F(ZipFields, OfTheZip64End) {
  std::string large(76, 0);
  poke(large, 0, std::uint32_t{0x06064b50});
  poke(large, 4, std::uint64_t{44});
  for (std::size_t at : {24u, 32u}) poke(large, at, std::uint64_t{2});
  poke(large, 40, std::uint64_t{end - directory});
  poke(large, 48, std::uint64_t{directory});
  poke(large, 56, std::uint32_t{0x07064b50});
  poke(large, 64, std::uint64_t{end});
  poke(large, 72, std::uint32_t{1});
  bytes.insert(end, large);
  for (std::size_t at : {8u, 10u}) poke(bytes, end + 76 + at, std::uint16_t{0xFFFF});
  EXPECT_EQ(error_of_archive(bytes), "no error");
  EXPECT_EQ(with(end, std::uint32_t{7}), refused(text("its zip64 end record is missing, at byte ", end + 4)));
  EXPECT_EQ(with(end + 4, std::uint64_t{45}),
            refused(text("its zip64 end record has a wrong size, at byte ", end + 12)));
  const char* join = "join its parts to one file";
  for (std::size_t at : {60u, 72u})
    EXPECT_EQ(with(end + at, std::uint32_t{2}), refused(text("an archive of several parts, at byte ", end + 76), join));
  for (std::size_t at : {16u, 20u})
    EXPECT_EQ(with(end + at, std::uint32_t{1}), refused(text("an archive of several parts, at byte ", end + 76), join));
  EXPECT_EQ(with(end + 24, std::uint64_t{1}), refused(text("an archive of several parts, at byte ", end + 76), join));
  EXPECT_EQ(with(end + 64, std::uint64_t{end + 1}),
            refused(text("its zip64 end record is not before its end, at byte ", end + 76)));
}

TEST_F(ZipFields, OfLocalHeaders) {
  EXPECT_EQ(with(6, std::uint16_t{8}),
            refused("the local header of 'a' has another kind than the directory, at byte 0"));
  EXPECT_EQ(with(8, std::uint16_t{8}),
            refused("the local header of 'a' has another method than the directory, at byte 0"));
  EXPECT_EQ(with(18, std::uint32_t{3}),
            refused("the local header of 'a' has another size than the directory, at byte 0"));
  EXPECT_EQ(with(30, 'x'), refused("the local header of 'a' has another name than the directory, at byte 0"));
  EXPECT_EQ(with(31, 'x'),
            "load: 'a.zip': the entry 'a' has a wrong checksum, at byte 31\n  fix: the file is damaged: fetch or write "
            "it again");
  std::string changed = bytes;
  poke(changed, 31, 'x');
  EXPECT_EQ(user_error_of([&] {
              ZipReader zip(in_memory(changed, "a.zip"));
              zip.open(*zip.find("a"));
            }),
            "load: 'a.zip': the entry 'a' has a wrong checksum, at byte 31\n  fix: the file is damaged: fetch or write "
            "it again");
  // Longer than to the next one.
  std::string longer = bytes;
  for (std::size_t at : {std::size_t{18}, std::size_t{22}, directory + 20, directory + 24})
    poke(longer, at, std::uint32_t{9});
  EXPECT_EQ(error_of_archive(longer), refused("the entry 'a' overlaps with 'b', at byte 0"));
  std::size_t b = 39;
  longer = bytes;
  for (std::size_t at : {b + 18, b + 22, directory + 47 + 20, directory + 47 + 24}) poke(longer, at, std::uint32_t{5});
  EXPECT_EQ(error_of_archive(longer), refused("the entry 'b' overlaps with the directory, at byte 39"));
  for (std::size_t at : {b + 18, b + 22, directory + 47 + 20, directory + 47 + 24})
    poke(longer, at, std::uint32_t{5000});
  EXPECT_EQ(error_of_archive(longer),
            refused(text("the entry 'b' of 5000 bytes is larger than the file, at byte ", directory + 47)));
}

TEST(Zip, RefusesBombs) {
  std::string bytes = contents_of(stored("deflated.zip"));
  EXPECT_EQ(error_of_archive(bytes, {.floor = 2'000'000}), "no error");
  EXPECT_EQ(error_of_archive(bytes, {.floor = 900'000, .ratio = 1000}), "no error");
  std::size_t directory = bytes.find("PK\x01\x02");
  EXPECT_EQ(error_of_archive(bytes, {.floor = 900'000, .ratio = 100}),
            refused(text("its entries would unpack to 1000000 bytes and more, beyond 100 times the file, at byte ",
                         directory),
                    "do not trust it: archives like this are made to fill memory"));
  // Sizes that deflate cannot reach, and lies about sizes that it could.
  std::string lie = bytes;
  std::uint32_t packed = peek<std::uint32_t>(bytes, directory + 20);
  for (std::size_t at : {std::size_t{22}, directory + 24}) poke(lie, at, 1032 * (packed + 1));
  EXPECT_EQ(error_of_archive(lie),
            refused(text("the entry 'zeros' of ", 1032 * (packed + 1), " bytes cannot come from the ", packed,
                         " bytes in the file, at byte ", directory)));
  for (std::size_t at : {std::size_t{22}, directory + 24}) poke(lie, at, 1'000'001u);
  EXPECT_CONTAINS(error_of_archive(lie), "load: 'a.zip': the entry 'zeros' unpacks to less than it says, at byte ");
  for (std::size_t at : {std::size_t{22}, directory + 24}) poke(lie, at, 999'999u);
  EXPECT_CONTAINS(error_of_archive(lie), "load: 'a.zip': the entry 'zeros' unpacks to more than it says, at byte ");
}

TEST(Inflated, ExactlyWhatWasPacked) {
  const std::string plain(100'000, 'x');
  std::string packed(compressBound(plain.size()), 0);
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
                     plain.size()),
            Z_OK);
  packed.resize(size);
  auto of = [&](const std::string& bytes, std::uint64_t expected) {
    return user_error_of([&] {
      Source source = in_memory(bytes, "a");
      EXPECT_EQ(text_of(inflated(source, expected, Wrapped::zlib,
                                 [&](const char* reason, std::uint64_t at) { source.reading().fail(reason, at); })),
                plain);
    });
  };
  EXPECT_EQ(of(packed, plain.size()), "no error");
  EXPECT_CONTAINS(of(packed, plain.size() + 1), text("unpacks to less than it says, at byte ", size));
  EXPECT_CONTAINS(of(packed, plain.size() - 1), "unpacks to more than it says");
  EXPECT_CONTAINS(of(packed, 10), "unpacks to more than it says");
  EXPECT_CONTAINS(of(packed + "x", plain.size()), text("has more bytes behind its packed data, at byte ", size));
  EXPECT_CONTAINS(of(packed.substr(0, size - 1), plain.size()),
                  text("has packed data that is cut off, at byte ", size - 1));
  EXPECT_CONTAINS(of("", 0), "has packed data that is cut off, at byte 0");
}

TEST(Zip, RefusesDamagedPackedData) {
  std::string bytes = contents_of(stored("deflated.zip"));
  for (std::size_t at = 35; at < 35 + 900; at += 7) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(~changed[at]);
    EXPECT_CONTAINS(error_of_archive(changed), "load: 'a.zip': the entry 'zeros' ");
  }
}

}  // namespace
}  // namespace stet::files

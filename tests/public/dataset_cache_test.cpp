// Caches in memory and in files: the elements of the first pass, and files that are whole or not there.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "expect_error.h"
#include "forks.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

/// A folder that is gone with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("stet-cache-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

Floats all_of(const data::Dataset<Tensor>& dataset) {
  Floats out;
  for (Tensor x : dataset)
    for (float v : cast(x, f32).to_vector<float>()) out.push_back(v);
  return out;
}
std::string error_of_all(const data::Dataset<Tensor>& dataset) {
  return error_of([&] { all_of(dataset); });
}

struct Counted {
  std::shared_ptr<std::atomic<int>> made = std::make_shared<std::atomic<int>>(0);
  data::Dataset<Tensor> noise(std::int64_t count) const {
    return data::range(count).map_host([made = made](Tensor i) {
      ++*made;
      return random::uniform({2}) + i;
    });
  }
};

TEST(DatasetCache, KeepsTheFirstPass) {
  Folder folder;
  for (bool in_file : {false, true}) {
    Counted counted;
    auto dataset = in_file ? counted.noise(6).cache(folder.file("a")) : counted.noise(6).cache();
    EXPECT_EQ(dataset.cardinality(), 6);
    random::seed(1);
    const Floats first = all_of(dataset);
    EXPECT_EQ(*counted.made, 6);
    EXPECT_EQ(all_of(dataset), first);
    EXPECT_EQ(all_of(dataset.repeat(2)).size(), 24u);
    EXPECT_EQ(all_of(dataset.skip(4)), Floats(first.begin() + 8, first.end()));
    EXPECT_EQ(*counted.made, 6);
    EXPECT_EQ(all_of(dataset.shuffle(6, {.seed = 1}).batch(4).prefetch(1)).size(), 12u);
    EXPECT_EQ(*counted.made, 6);
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(DatasetCache, APassThatWasGivenUpKeepsNothingAndTheNextMakesTheSame) {
  Folder folder;
  for (bool in_file : {false, true}) {
    Counted counted;
    auto dataset = in_file ? counted.noise(6).cache(folder.file("a")) : counted.noise(6).cache();
    random::seed(1);
    Floats some = all_of(dataset.take(2));
    EXPECT_EQ(folder.files(), 0u);
    {
      auto it = dataset.begin();
      ++it;
      EXPECT_EQ(folder.files(), in_file ? 1u : 0u);  // under another name
      EXPECT_FALSE(std::filesystem::exists(folder.file("a")));
    }
    EXPECT_EQ(folder.files(), 0u);
    const Floats all = all_of(dataset);
    EXPECT_EQ(Floats(all.begin(), all.begin() + 4), some);
    EXPECT_EQ(*counted.made, 2 + 2 + 6);
    EXPECT_EQ(all_of(dataset), all);
    EXPECT_EQ(*counted.made, 10);
  }
  // What throws keeps nothing, either.
  auto fails = std::make_shared<bool>(true);
  auto dataset = data::range(4).map_host([fails](Tensor i) {
    if (*fails && i.item<int>() == 3) throw std::runtime_error("disk");
    return i;
  });
  auto cached = dataset.cache(folder.file("b"));
  EXPECT_THROW(all_of(cached), std::runtime_error);
  *fails = false;
  EXPECT_EQ(all_of(cached), (Floats{0, 1, 2, 3}));
  EXPECT_TRUE(std::filesystem::exists(folder.file("b")));
}

TEST(DatasetCache, PositionsKnowTheFirstPass) {
  Counted counted;
  auto make = [&] { return counted.noise(6).shuffle(6).cache().shuffle(3).batch(2); };
  random::seed(1);
  auto dataset = make();
  all_of(data::Dataset<Tensor>(dataset));
  data::Iteration iteration = dataset.iterate();
  iteration.next();
  const data::IterationPosition position = iteration.position();
  Floats rest;
  while (iteration.next())
    for (float v : iteration.tensors()[0].to_vector<float>()) rest.push_back(v);
  random::seed(99);
  auto again = make();  // as another process would
  data::Iteration resumed = again.iterate_from(position);
  Floats resumed_rest;
  while (resumed.next())
    for (float v : resumed.tensors()[0].to_vector<float>()) resumed_rest.push_back(v);
  EXPECT_EQ(resumed_rest, rest);
}

TEST(DatasetCache, FilesHoldEveryKindOfElement) {
  Folder folder;
  std::vector<Tensor> given{tensor(true),           tensor({1, 2, 3}),       ones({0, 3}, f16),
                            zeros({2, 2}, bf16),    transpose(ones({3, 2})), tensor(1.5),
                            data::from_string("ü"), cast(arange(300), i16)};
  auto dataset = data::from_range(given, [](const Tensor& t) {
                   return std::tuple{t, t.rank()};
                 }).cache(folder.file("a"));
  for (int round = 0; round < 2; ++round) {
    std::size_t at = 0;
    for (auto [x, rank] : dataset) {
      EXPECT_EQ(x.dtype(), given[at].dtype());
      EXPECT_EQ(x.shape().str(), given[at].shape().str());
      EXPECT_EQ(cast(x, f64).to_vector<double>(), cast(given[at], f64).to_vector<double>());
      EXPECT_EQ(rank.item<int>(), given[at].rank());
      ++at;
    }
    EXPECT_EQ(at, given.size());
  }
  EXPECT_EQ(all_of(data::range(0).cache(folder.file("empty"))), Floats{});
  EXPECT_EQ(all_of(data::range(0).cache(folder.file("empty"))), Floats{});
}

TEST(DatasetCache, AnotherProcessReadsTheFile) {
  SKIP_WITHOUT_FORK();
  Folder folder;
  pid_t child = fork();
  if (child == 0) {
    random::seed(17);
    _exit(all_of(Counted().noise(9).cache(folder.file("a"))).size() == 18 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  Counted counted;
  EXPECT_EQ(all_of(counted.noise(9).cache(folder.file("a"))).size(), 18u);
  EXPECT_EQ(*counted.made, 0);
}

TEST(DatasetCache, AChildOfForkLeavesTheParentsFileAlone) {
  SKIP_WITHOUT_FORK();
  Folder folder;
  auto dataset = data::range(5).cache(folder.file("a"));
  data::Iteration iteration = dataset.iterate();
  iteration.next();
  pid_t child = fork();
  if (child == 0) {
    std::string error = error_of([&] { iteration.next(); });
    { data::Iteration gone = std::move(iteration); }
    _exit(error.find("': was begun before fork(), and is the parent's to write") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  while (iteration.next()) {
  }
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(all_of(dataset), (Floats{0, 1, 2, 3, 4}));
}

TEST(DatasetCache, ManyAtOnceWriteOneFile) {
  Folder folder;
  auto dataset = data::range(500).map([](Tensor x) { return x * 2; }).cache(folder.file("a"));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Floats all = all_of(dataset);
      right += all.size() == 500 && all[499] == 998;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(all_of(dataset).size(), 500u);
}

TEST(DatasetCache, ForeignFilesAreLeftAlone) {
  Folder folder;
  const std::string path = folder.file("letter.txt");
  write_bytes(path, "Dear Sir or Madam, this is no cache.");
  std::string error = error_of_all(data::range(3).cache(path));
  EXPECT_CONTAINS(error,
                  "cache: the file '" + path + "' is none of a cache: it does not begin with \"stet cache 1\"\n  at ");
  EXPECT_CONTAINS(error, "dataset_cache_test.cpp:");
  EXPECT_CONTAINS(error, "fix: give the name of another file, or delete this one");
  EXPECT_EQ(bytes_of(path), "Dear Sir or Madam, this is no cache.");
  write_bytes(folder.file("short"), "abc");
  EXPECT_CONTAINS(error_of_all(data::range(3).cache(folder.file("short"))), "is none of a cache: it has 3 bytes");
  EXPECT_CONTAINS(error_of_all(data::range(3).cache(folder.file(""))), "is no ordinary file");
  // The file of another pipeline.
  const std::string other = folder.file("other");
  all_of(data::range(3).cache(other));
  error = error_of_all(data::range(4).cache(other));
  EXPECT_CONTAINS(error, "cache: the file '" + other +
                             "' holds the elements of another pipeline, range(from 0, step 1, 3 values); this one is "
                             "range(from 0, step 1, 4 values)\n  at ");
  EXPECT_EQ(all_of(data::range(3).prefetch(1).cache(other)).size(), 3u);  // a prefetch changes nothing
}

TEST(DatasetCache, DamageIsFoundWhereverItIs) {
  Folder folder;
  const std::string path = folder.file("a");
  auto dataset = data::from_tensor_slices(reshape(arange(12), {4, 3}), ones({4})).cache(path);
  auto flat = [&] {
    double total = 0;
    for (auto [x, y] : dataset) total += sum(x).item<double>() + sum(y).item<double>();
    return total;
  };
  const double expected = flat();
  const std::string whole = bytes_of(path);
  ASSERT_GT(whole.size(), 500u);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    write_bytes(path, bytes);
    std::string error = error_of([&] { flat(); });
    ASSERT_TRUE(error.find("cache: the file '" + path + "' is damaged at byte ") == 0 ||
                (at < 16 && error.find("is none of a cache") != std::string::npos))
        << at << ": " << error;
    EXPECT_EQ(bytes_of(path), bytes);  // left as it is
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path, whole.substr(0, length));
    ASSERT_NE(error_of([&] { flat(); }), "no error") << length;
  }
  write_bytes(path, whole + "x");
  EXPECT_CONTAINS(error_of([&] { flat(); }), "is damaged at byte ");
  EXPECT_CONTAINS(error_of([&] { flat(); }), "fix: delete it: the next iteration makes it again");
  write_bytes(path, whole);
  EXPECT_EQ(flat(), expected);
  std::filesystem::remove(path);
  EXPECT_EQ(flat(), expected);
}

TEST(DatasetCache, PlacesThatCannotBeWritten) {
  Folder folder;
  std::string error = error_of_all(data::range(3).cache(folder.file("no/such/folder")));
  EXPECT_CONTAINS(error, "cannot be written: No such file or directory\n  at ");
  EXPECT_CONTAINS(error, "fix: the folder must exist, and be yours to write to");
  {
    // Where there is no room: what was written goes away with the iteration, and no file has the name.
    const std::string path = folder.file("full");
    auto dataset = data::range(3).map([](Tensor) { return zeros({1 << 18}); }).cache(path);
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit small{1000, before.rlim_max};
    auto old = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    error = error_of_all(dataset);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old);
    EXPECT_CONTAINS(error, "cache: '" + path + "': cannot be written: File too large\n  at ");
    EXPECT_EQ(folder.files(), 0u);
  }
  EXPECT_CONTAINS(error_of([] { data::range(3).cache(""); }),
                  "cache: the name of the file is empty or has a zero byte");
  EXPECT_CONTAINS(error_of([] { data::range(3).cache(std::string("a\0b", 3)); }), "cache: the name of the file");
  EXPECT_CONTAINS(error_of([] { data::range(3).repeat().cache(); }), "cache: the dataset never ends\n  at ");
}

}  // namespace

// Checkpoint and CheckpointManager, their files, and what damage to them comes to.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <random>
#include <set>
#include <thread>

#include "expect_error.h"
#include "resumed.h"

namespace stet {
namespace {

using resumed::Folder;

/// A loop of one's own.
struct Loop {
  keras::Sequential model{keras::Input({3}), keras::Dense(4, {.activation = "tanh"}), keras::Dense(1)};
  keras::Adam optimizer{0.05};
  keras::Metric mean = keras::metrics::Mean("mean");
  Variable steps{zeros({}, i64), {.trainable = false, .name = "steps"}};
  keras::Checkpoint checkpoint;
  Function<Tensor(Tensor)> step;

  explicit Loop(std::uint64_t seed = 1)
      : model((random::seed(seed),
               keras::Sequential{keras::Input({3}), keras::Dense(4, {.activation = "tanh"}), keras::Dense(1)})),
        checkpoint(
            {.model = model, .optimizer = optimizer, .metrics = {{"mean", mean}}, .variables = {{"steps", steps}}}),
        step(function("step(x)", [*this](Tensor x) {
          GradientTape tape;
          Tensor loss =
              stet::mean(square(model(x + random::normal({3}, {.stddev = 0.1})) - sum(x, {1}, {.keepdims = true})));
          std::vector<Variable> weights = model.trainable_variables();
          optimizer.apply_gradients(tape.gradient(loss, weights), weights);
          steps.assign_add(1);
          mean.update_state(loss);
          return loss;
        })) {}
  Loop(const Loop& other)
      : model(other.model),
        optimizer(other.optimizer),
        mean(other.mean),
        steps(other.steps),
        checkpoint(other.checkpoint),
        step(function("none(x)", [](Tensor x) { return x; })) {}

  std::vector<double> run(int count) {
    std::vector<double> losses;
    for (int i = 0; i < count; ++i) losses.push_back(step(random::normal({8, 3})).item<double>());
    return losses;
  }
};

TEST(Checkpoint, GoesOnInALoopOfOnesOwn) {
  Loop whole;
  const std::vector<double> first = whole.run(5), wanted = whole.run(5);
  Folder folder;
  Loop one;
  EXPECT_EQ(one.checkpoint.restore(folder / "none"), std::nullopt);
  EXPECT_EQ(one.run(5), first);
  keras::SavedState notes;
  notes.set("epoch", 3);
  notes.set("rate", 0.1);
  notes.set("nan", std::nan(""));
  notes.set("done", false);
  notes.set("where", "here: \"é\"\n");
  notes.set("table", tensor({1.f, -0.f}));
  notes.set("several", std::vector<Tensor>{tensor({1, 2}), zeros({0, 3}, bf16)});
  EXPECT_EQ(one.checkpoint.save(folder / "run", notes), folder / "run/ckpt-1");
  // Before its first step, in what could be another process: slots are made.
  Loop other(99);
  const std::optional<keras::SavedState> read = other.checkpoint.restore(folder / "run");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->integer("epoch"), 3);
  EXPECT_EQ(read->number("epoch"), 3);
  EXPECT_EQ(read->number("rate"), 0.1);
  EXPECT_TRUE(std::isnan(read->number("nan")));
  EXPECT_FALSE(read->boolean("done"));
  EXPECT_EQ(read->string("where"), "here: \"é\"\n");
  EXPECT_TRUE(std::signbit(read->tensor("table").item<float>({1})));
  EXPECT_EQ(read->tensors("several")[1].shape(), (Shape{0, 3}));
  EXPECT_EQ(read->tensors("several")[1].dtype(), bf16);
  EXPECT_EQ(other.steps.read().item<std::int64_t>(), 5);
  EXPECT_EQ(other.run(5), wanted);
  EXPECT_EQ(other.mean.result().item<float>(), whole.mean.result().item<float>());
  EXPECT_EQ(other.optimizer.variables().size(), whole.optimizer.variables().size());
  // And afterwards; by the path of the file, too.
  other.checkpoint.restore(folder / "run/ckpt-1");
  EXPECT_EQ(other.run(5), wanted);
}

/// All layers that may have a seed, each in a model of its own.
TEST(Checkpoint, KeepsTheGeneratorsOfLayersWithASeed) {
  using Make = std::function<keras::Layer()>;
  struct Case {
    const char* name;
    Shape input;
    Make make;
  };
  const Shape row{6}, steps{5, 4}, image{8, 8, 3}, volume{4, 4, 4, 2}, frames{3, 6, 6, 2};
  auto attention = [](auto layer, const Shape& shape) -> keras::Layer {
    keras::Input x(ShapeSpec{shape[0].value(), shape[1].value()});
    return keras::Model(x, layer({x, x}));
  };
  const std::vector<Case> cases = {
      {"Dropout", row, [] { return keras::Dropout(0.5, {.seed = 1}); }},
      {"SpatialDropout1D", steps, [] { return keras::SpatialDropout1D(0.5, {.seed = 1}); }},
      {"SpatialDropout2D", image, [] { return keras::SpatialDropout2D(0.5, {.seed = 1}); }},
      {"SpatialDropout3D", volume, [] { return keras::SpatialDropout3D(0.5, {.seed = 1}); }},
      {"GaussianNoise", row, [] { return keras::GaussianNoise(0.5, {.seed = 1}); }},
      {"GaussianDropout", row, [] { return keras::GaussianDropout(0.5, {.seed = 1}); }},
      {"AlphaDropout", row, [] { return keras::AlphaDropout(0.5, {.seed = 1}); }},
      {"SimpleRNN", steps, [] { return keras::SimpleRNN(3, {.dropout = 0.5, .seed = 1}); }},
      {"LSTM", steps, [] { return keras::LSTM(3, {.recurrent_dropout = 0.5, .seed = 1}); }},
      {"GRU", steps, [] { return keras::GRU(3, {.dropout = 0.5, .seed = 1}); }},
      {"Bidirectional", steps, [] { return keras::Bidirectional(keras::GRU(3, {.dropout = 0.5, .seed = 1})); }},
      {"TimeDistributed", steps, [] { return keras::TimeDistributed(keras::Dropout(0.5, {.seed = 1})); }},
      {"ConvLSTM2D", frames, [] { return keras::ConvLSTM2D(2, 3, {.dropout = 0.5, .seed = 1}); }},
      {"Attention", steps, [&] { return attention(keras::Attention({.dropout = 0.5, .seed = 1}), steps); }},
      {"AdditiveAttention", steps,
       [&] { return attention(keras::AdditiveAttention({.dropout = 0.5, .seed = 1}), steps); }},
      {"MultiHeadAttention", steps,
       [&] { return attention(keras::MultiHeadAttention(2, 3, {.dropout = 0.5, .seed = 1}), steps); }},
      {"GroupQueryAttention", steps,
       [&] { return attention(keras::GroupQueryAttention(3, 2, 1, {.dropout = 0.5, .seed = 1}), steps); }},
      {"RandomFlip", image, [] { return keras::RandomFlip("horizontal", {.seed = 1}); }},
      {"RandomContrast", image, [] { return keras::RandomContrast(0.5, {.seed = 1}); }},
      {"RandomBrightness", image, [] { return keras::RandomBrightness(0.5, {.seed = 1}); }},
      {"RandomRotation", image, [] { return keras::RandomRotation(0.5, {.seed = 1}); }},
      {"RandomTranslation", image, [] { return keras::RandomTranslation(0.5, 0.5, {.seed = 1}); }},
      {"RandomZoom", image, [] { return keras::RandomZoom(0.5, {.seed = 1}); }},
      {"RandomCrop", image, [] { return keras::RandomCrop(3, 3, {.seed = 1}); }},
      {"a Sequential in a Sequential", row,
       [] {
         return keras::Sequential{keras::Sequential{keras::Dense(6), keras::Dropout(0.5, {.seed = 1})}};
       }},
  };
  for (const Case& one : cases) {
    std::vector<DimSpec> sizes;
    Shape batch({4});
    for (const Dim& dim : one.input) {
      sizes.emplace_back(dim.value());
      batch.push_back(dim);
    }
    auto make = [&] {
      random::seed(3);
      return keras::Sequential{keras::Input(ShapeSpec(sizes)), one.make()};
    };
    const Tensor x = random::stateless_uniform(batch, {1, 2}, {.minval = 1, .maxval = 2});
    auto draw = [&](const keras::Layer& model) { return model(x, {.training = true}).to_vector<float>(); };
    Folder folder;
    keras::Sequential model = make();
    const std::vector<float> first = draw(model);
    keras::Checkpoint({.model = model}).save(folder / "run");
    const std::vector<float> second = draw(model);
    keras::Sequential other = make();
    keras::Checkpoint({.model = other}).restore(folder / "run");
    EXPECT_EQ(draw(other), second) << one.name;
    // Without it, a model begins anew: the comparison says something.
    EXPECT_EQ(draw(make()), first) << one.name;
  }
  // Of a model without seeds.
  Folder folder;
  keras::Sequential seeded{keras::Input({3}), keras::Dropout(0.5, {.seed = 1})};
  keras::Sequential plain{keras::Input({3}), keras::Dropout(0.5)};
  keras::Checkpoint({.model = seeded}).save(folder / "run");
  EXPECT_CONTAINS(error_of([&] { keras::Checkpoint({.model = plain}).restore(folder / "run"); }),
                  "it holds Variables of 'model', 'model/generators', 'random', and here there are 'model', 'random'");
}

/// Two that know nothing of each other, in one process.
TEST(Checkpoint, ThreadsThatWriteToOneFolderGetANumberEach) {
  Folder folder;
  Variable number(tensor(0));
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> paths(4);
  for (std::size_t thread = 0; thread < paths.size(); ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10; ++i)
        paths[thread].push_back(keras::Checkpoint({.variables = {{"number", number}}}).save(folder / "run"));
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const std::vector<std::string>& some : paths) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), 40U);
  EXPECT_EQ(resumed::names_in(folder / "run").size(), 40U);
}

TEST(Checkpoint, TextsThatCouldNotBeReadAgainAreRefused) {
  Folder folder;
  keras::SavedState notes;
  notes.set("log", std::string((100U << 20) + 1, 'x'));
  const std::string error = error_of([&] { keras::Checkpoint({}).save(folder / "run", notes); });
  EXPECT_CONTAINS(error, "Checkpoint: what is no tensor takes 104857");
  EXPECT_CONTAINS(error, "bytes in '" + (folder / "run/ckpt-1") + "', at most 104857600 are read again");
  EXPECT_CONTAINS(error, "fix: keep large texts as tensors of bytes: data::from_string");
  EXPECT_EQ(resumed::names_in(folder / "run"), std::vector<std::string>());
}

TEST(Checkpoint, ManagersKeepTheLast) {
  Folder folder;
  Loop loop;
  keras::CheckpointManager manager(loop.checkpoint, folder / "a/b", {.max_to_keep = 2});
  EXPECT_EQ(manager.latest_checkpoint(), std::nullopt);
  EXPECT_EQ(manager.restore(), std::nullopt);
  for (int i = 0; i < 4; ++i) {
    loop.run(1);
    manager.save();
  }
  EXPECT_EQ(manager.checkpoints(), (std::vector<std::string>{folder / "a/b/ckpt-3", folder / "a/b/ckpt-4"}));
  EXPECT_EQ(manager.latest_checkpoint(), folder / "a/b/ckpt-4");
  const std::vector<double> wanted = loop.run(3);
  ASSERT_TRUE(manager.restore());
  EXPECT_EQ(loop.run(3), wanted);
  keras::CheckpointManager all(loop.checkpoint, folder / "a/b", {.max_to_keep = 0});
  for (int i = 0; i < 3; ++i) all.save();
  EXPECT_EQ(all.checkpoints().size(), 5U);
}

TEST(Checkpoint, SaysWhatDoesNotFit) {
  Folder folder;
  Loop loop;
  loop.run(1);
  const std::string path = loop.checkpoint.save(folder.path());
  const std::vector<Tensor> before = loop.model.get_weights();
  auto error = [&](keras::CheckpointOptions options) {
    keras::Checkpoint checkpoint(options);
    return error_of([&] { checkpoint.restore(folder.path()); });
  };
  const std::map<std::string, keras::Metric> metrics{{"mean", loop.mean}};
  const std::map<std::string, Variable> variables{{"steps", loop.steps}};
  keras::Sequential wider{keras::Input({3}), keras::Dense(5, {.activation = "tanh"}), keras::Dense(1)};
  std::string told = error({.model = wider, .optimizer = keras::Adam(), .metrics = metrics, .variables = variables});
  EXPECT_CONTAINS(told, "Checkpoint: '" + path + "': Variable 0 of 'model' is 'sequential");
  EXPECT_CONTAINS(told, "/kernel' f32[3,4] in it, and 'sequential");
  EXPECT_CONTAINS(told, "/kernel' f32[3,5] here");
  EXPECT_CONTAINS(told, "fix: it is of another model or training");
  keras::Sequential longer{keras::Input({3}), keras::Dense(4), keras::Dense(1), keras::Dense(1)};
  EXPECT_CONTAINS(error({.model = longer, .optimizer = keras::Adam(), .metrics = metrics, .variables = variables}),
                  "it has 4 Variables of 'model', and here there are 6");
  EXPECT_CONTAINS(error({.model = loop.model, .optimizer = keras::Adam(), .metrics = metrics}),
                  "it holds Variables of 'metrics/mean', 'model', 'random', 'variables/steps', and here there are "
                  "'metrics/mean', 'model', 'random'");
  EXPECT_CONTAINS(error({.model = loop.model, .metrics = metrics, .variables = variables}),
                  "it holds optimizers of 'optimizer', and here there are none");
  EXPECT_CONTAINS(error({.model = loop.model,
                         .optimizer = keras::Adam(keras::schedules::ExponentialDecay(0.1, 10, 0.5)),
                         .metrics = metrics,
                         .variables = variables}),
                  "'optimizer' has a learning rate in it, and a schedule here");
  // Nothing was changed.
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(loop.model.get_weights()[i].to_vector<float>(), before[i].to_vector<float>());
  keras::Sequential unbuilt{keras::Dense(1)};
  EXPECT_CONTAINS(error({.model = unbuilt}), "is not built: it has no weights yet");
  EXPECT_CONTAINS(error_of([&] {
                    keras::Checkpoint({.variables = {{"v", Variable()}}});
                  }),
                  "Checkpoint: Variable 'v' is undefined");
  EXPECT_CONTAINS(error_of([&] { loop.checkpoint.save(""); }), "Checkpoint: the path is empty");
  EXPECT_CONTAINS(error_of([&] { keras::Checkpoint({.optimizer = loop.optimizer}).save(folder.path()); }),
                  "of a Variable that is not in the checkpoint");
}

TEST(Checkpoint, SavedStatesSayWhatTheyDoNotHave) {
  keras::SavedState state;
  EXPECT_CONTAINS(error_of([&] { state.number("x"); }), "SavedState: there is no 'x'");
  state.set("a", 1);
  state.set("b", "text");
  EXPECT_CONTAINS(error_of([&] { state.number("x"); }), "fix: it has a, b");
  EXPECT_CONTAINS(error_of([&] { state.number("b"); }), "SavedState: 'b' is a text, not a number");
  EXPECT_CONTAINS(error_of([&] { state.boolean("a"); }), "SavedState: 'a' is an integer, not a bool");
  EXPECT_CONTAINS(error_of([&] { state.set("c", "\xff"); }), "SavedState: the text of 'c' is not UTF-8");
  EXPECT_CONTAINS(error_of([&] { state.set("\xff", 1); }), "SavedState: a name is not UTF-8");
  EXPECT_CONTAINS(error_of([&] { state.set("d", Tensor()); }), "SavedState: a tensor of 'd' is undefined");
}

// --- damage

/// Two checkpoints, the last of which can be damaged.
struct Damage {
  Folder folder;
  Loop loop;
  std::string last;
  std::vector<char> whole;
  std::size_t head = 0;
  Damage() {
    loop.run(1);
    loop.checkpoint.save(folder.path());
    loop.run(1);
    keras::SavedState notes;
    notes.set("flags", tensor({true, false, true}));
    last = loop.checkpoint.save(folder.path(), notes);
    whole = resumed::bytes_of(last);
    std::uint64_t bytes;
    std::memcpy(&bytes, whole.data() + 16, 8);
    head = 24 + bytes;
  }
  /// The first one is used, and that is told; of the last one alone there is an error. Gives what was said of it.
  std::string expect_noticed(const std::vector<char>& bytes, const std::string& how) {
    resumed::put(last, bytes);
    std::string error = error_of([&] { loop.checkpoint.restore(last); });
    EXPECT_NE(error, "no error") << how;
    EXPECT_EQ(error.find("Checkpoint: '" + last + "': "), 0U) << how << "\n" << error;
    ::testing::internal::CaptureStderr();
    loop.checkpoint.restore(folder.path());
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(told, "stet: " + error.substr(0, error.find('\n')) + "; '" + (folder / "ckpt-1") + "' is used instead\n")
        << how;
    EXPECT_EQ(loop.steps.read().item<std::int64_t>(), 1) << how;
    return error;
  }
};

TEST(Checkpoint, CutAnywhereTheOneBeforeIsUsed) {
  Damage damage;
  for (std::size_t length = 0; length < damage.whole.size(); length += length < damage.head ? 1 : 97) {
    std::vector<char> cut(damage.whole.begin(), damage.whole.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string error = damage.expect_noticed(cut, "cut at " + std::to_string(length));
    EXPECT_CONTAINS(error, "at byte ");
    if (length < 24) {
      EXPECT_CONTAINS(error, "ends in its first bytes, at byte " + std::to_string(length));
    }
    if (length >= damage.head) {
      EXPECT_CONTAINS(error, "ends in its ");
    }
  }
  std::vector<char> longer = damage.whole;
  longer.push_back(0);
  EXPECT_CONTAINS(damage.expect_noticed(longer, "longer"), "has more behind its last part");
}

TEST(Checkpoint, OneBitTurnedAnywhereIsNoticed) {
  Damage damage;
  std::mt19937 random(3);
  for (std::size_t at = 0; at < damage.whole.size(); at += at < 24 ? 1 : 1 + random() % 5) {
    std::vector<char> turned = damage.whole;
    turned[at] = static_cast<char>(turned[at] ^ (1 << random() % 8));
    const std::string error = damage.expect_noticed(turned, "turned at " + std::to_string(at));
    if (at < 8) {
      EXPECT_CONTAINS(error, "is not a checkpoint, at byte 0");
    }
    if (at >= 8 && at < 12) {
      EXPECT_CONTAINS(error, "is a checkpoint of version ");
    }
    if (at >= 24 && at < damage.head) {
      EXPECT_CONTAINS(error, "its head does not have its checksum");
    }
  }
}

TEST(Checkpoint, NoneThatIsWholeIsAnError) {
  Damage damage;
  for (const char* name : {"ckpt-1", "ckpt-2"}) resumed::put(damage.folder / name, {'x'});
  const std::string error = error_of([&] { damage.loop.checkpoint.restore(damage.folder.path()); });
  EXPECT_EQ(
      error.find("Checkpoint: none of the 2 checkpoints in '" + damage.folder.path() + "' is whole\n  Checkpoint: '" +
                 (damage.folder / "ckpt-2") + "': ends in its first bytes, at byte 1\n"),
      0U)
      << error;
  EXPECT_CONTAINS(error, "fix: bring back a copy of one; to begin anew, take them away");
  // The next ones have numbers of their own, and what is damaged goes when there is a better one.
  keras::CheckpointManager manager(damage.loop.checkpoint, damage.folder.path(), {.max_to_keep = 2});
  EXPECT_NE(error_of([&] { manager.restore(); }), "no error");
  EXPECT_EQ(manager.save(), damage.folder / "ckpt-3");
  EXPECT_EQ(manager.checkpoints(), std::vector<std::string>{damage.folder / "ckpt-3"});
}

/// A head with its checksum, and something after it.
std::vector<char> made(const std::string& head, const std::string& rest = {});

TEST(Checkpoint, HeadsThatLieAreRefused) {
  Damage damage;
  const std::string before = "{\"parts\": [", after = "], \"state\": {}}";
  const std::string fine =
      "{\"name\": \"a\", \"dtype\": \"f32\", \"shape\": [], \"at\": 128, \"bytes\": 4, \"crc32c\": 0}";
  auto with = [&](const std::string& from, const std::string& to) {
    std::string one = fine;
    one.replace(one.find(from), from.size(), to);
    return before + one + after;
  };
  const std::pair<std::string, const char*> heads[] = {
      {"", "JSON"},
      {"[]", "its head has no \"parts\""},
      {"{\"parts\": {}, \"state\": {}}", "an object where there must be a list"},
      {"{\"parts\": [], \"state\": {}}", "has more behind its last part"},
      {with("\"f32\"", "\"f33\""), "an unknown type 'f33'"},
      {with("\"f32\"", "7"), "where there must be a string"},
      {with("[]", "[4000000000, 4000000000, 4000000000]"), "does not have the bytes of its shape"},
      {with("[]", "[-1]"), "where there must be a count"},
      {with("[]", "[1.5]"), "where there must be a count"},
      {with("[]", "[1,1,1,1,1,1,1,1,1]"), "has 9 axes"},
      {with("128", "64"), "lies at byte 64"},
      {with("128", "9000000000000000000"), "lies at byte 9000000000000000000"},
      {with("\"bytes\": 4", "\"bytes\": 8"), "does not have the bytes of its shape"},
      {fine, "its head has no \"parts\""},
      {std::string(100'000, '['), "JSON"},
  };
  for (const auto& [head, reason] : heads) {
    const std::string error = damage.expect_noticed(made(head, std::string(200, '\0')), head.substr(0, 200));
    EXPECT_CONTAINS(error, reason);
  }
  EXPECT_CONTAINS(damage.expect_noticed(made("{\"parts\": []}"), "no state"), "its head has no \"state\"");
  // A head that says it is larger than any memory.
  std::vector<char> huge = damage.whole;
  const std::uint64_t bytes = UINT64_MAX - 10;
  std::memcpy(huge.data() + 16, &bytes, 8);
  EXPECT_CONTAINS(damage.expect_noticed(huge, "huge"), "has a head of 18446744073709551605 bytes");
}

std::uint32_t crc32c(const std::string& bytes) {
  std::uint32_t sum = ~0U;
  for (const char c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum & 1 ? 0x82F63B78U : 0);
  }
  return ~sum;
}
std::vector<char> made(const std::string& head, const std::string& rest) {
  auto number = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  const std::string first = "stetckpt" + number(std::uint32_t{1}), second = number(std::uint64_t{head.size()}) + head;
  const std::string all = first + number(crc32c(first + second)) + second + rest;
  return {all.begin(), all.end()};
}

// --- disks

TEST(Checkpoint, AFullDiskLeavesTheLastOne) {
  Damage damage;
  const std::vector<std::string> before = resumed::names_in(damage.folder.path());
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{damage.whole.size() / 2, limit.rlim_max};
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = error_of([&] { damage.loop.checkpoint.save(damage.folder.path()); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_CONTAINS(error, "Checkpoint: '" + (damage.folder / "ckpt-3") + "': cannot be written: File too large");
  EXPECT_CONTAINS(error, "fix: what stood there before is as it was; make room, or write to another disk");
  EXPECT_EQ(resumed::names_in(damage.folder.path()), before);
  EXPECT_TRUE(damage.loop.checkpoint.restore(damage.folder.path()));
  EXPECT_EQ(damage.loop.checkpoint.save(damage.folder.path()), damage.folder / "ckpt-3");
}

TEST(Checkpoint, FoldersThatCannotBe) {
  Folder folder;
  Loop loop;
  resumed::put(folder / "file", {'x'});
  EXPECT_CONTAINS(error_of([&] { loop.checkpoint.save(folder / "file/below"); }),
                  "Checkpoint: the folder '" + (folder / "file/below") + "' cannot be made: Not a directory");
  EXPECT_CONTAINS(error_of([&] { loop.checkpoint.save(folder / "file"); }), "cannot be read: Not a directory");
  EXPECT_CONTAINS(error_of([&] { loop.checkpoint.save("/proc/none"); }),
                  "Checkpoint: the folder '/proc/none' cannot be made");
  EXPECT_CONTAINS(error_of([&] { loop.checkpoint.save("/proc/self/task"); }), "cannot be written");
  EXPECT_CONTAINS(error_of([&] { loop.checkpoint.restore(folder / "file"); }), "ends in its first bytes, at byte 1");
  // Names that are none of ours are let alone.
  Folder other;
  for (const char* name : {"ckpt-", "ckpt-01", "ckpt-x", "ckpt-99999999999999999999", "ckpt-1.part", "other"})
    resumed::put(other / name, {'x'});
  EXPECT_EQ(loop.checkpoint.restore(other.path()), std::nullopt);
  keras::CheckpointManager(loop.checkpoint, other.path(), {.max_to_keep = 1}).save();
  EXPECT_EQ(resumed::names_in(other.path()),
            (std::vector<std::string>{"ckpt-", "ckpt-01", "ckpt-1", "ckpt-1.part", "ckpt-99999999999999999999",
                                      "ckpt-x", "other"}));
  // What a process that was killed has left is taken away; what one that lives writes is not.
  const std::string dead = "ckpt-7.999999999-0.part", mine = "ckpt-7." + std::to_string(::getpid()) + "-123.part",
                    alive = "ckpt-7." + std::to_string(::getppid()) + "-0.part";
  for (const std::string& name : {dead, mine, alive}) resumed::put(other / name, {'x'});
  keras::CheckpointManager(loop.checkpoint, other.path(), {.max_to_keep = 1}).save();
  const std::vector<std::string> names = resumed::names_in(other.path());
  EXPECT_EQ(std::count(names.begin(), names.end(), dead), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), mine), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), alive), 1);
  if (::geteuid() != 0) {  // for whom all folders are open
    ASSERT_EQ(::chmod(folder.path().c_str(), 0500), 0);
    EXPECT_CONTAINS(error_of([&] { loop.checkpoint.save(folder.path()); }), "cannot be written: Permission denied");
    ::chmod(folder.path().c_str(), 0700);
  }
}

}  // namespace
}  // namespace stet

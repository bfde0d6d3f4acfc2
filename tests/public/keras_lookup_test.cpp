// Categories, lookups and texts: numbers as Keras gives them (make_lookup.py), eagerly, traced and in models.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasLookup : public LayerTest {
 protected:
  static LayerCases& cases() {
    static LayerCases all("lookup");
    return all;
  }
};

std::vector<std::string> parted(const Tensor& bytes) {
  std::vector<std::string> out(1);
  for (std::uint8_t byte : bytes.to_vector<std::uint8_t>()) {
    if (byte == 0)
      out.emplace_back();
    else
      out.back() += static_cast<char>(byte);
  }
  return out;
}
keras::Strings texts_of(const KerasCase& one) {
  const std::vector<std::string> all = parted(one["texts"]);
  if (!one.has("lengths")) return all;
  std::vector<std::vector<std::string>> rows;
  auto at = all.begin();
  for (std::int64_t length : one["lengths"].to_vector<std::int64_t>()) {
    rows.emplace_back(at, at + length);
    at += length;
  }
  return rows;
}
template <class L>
void expect_numbers(const KerasCase& one, const L& layer) {
  SCOPED_TRACE(one.name());
  expect_close(layer(texts_of(one)), one["y"], 1e-6, "y");
  if constexpr (requires { layer.get_vocabulary(); }) {
    if (one.has("vocabulary")) {
      EXPECT_EQ(layer.get_vocabulary(), parted(one["vocabulary"]));
    }
  }
}

TEST_F(KerasLookup, HashesAreTensorFlows) {
  expect_numbers(cases().at("hash_none"), keras::Hashing(1000003));
  expect_numbers(cases().at("hash_133"), keras::Hashing(1000003, {.salt = 133}));
  expect_numbers(cases().at("hash_133_137"), keras::Hashing(1000003, {.salt = keras::Salt(133, 137)}));
  expect_numbers(cases().at("hash_4611686018427387909_1"),
                 keras::Hashing(1000003, {.salt = keras::Salt(4611686018427387909U, 1)}));
  expect_numbers(cases().at("hash_rows"), keras::Hashing(3, {.mask_value = "b"}));
  expect_numbers(cases().at("hash_rows_count"), keras::Hashing(3, {.mask_value = "", .output_mode = "count"}));
  cases().check("hash_integers", keras::Hashing(1000003), any_length);
  cases().check("hash_integers_salt", keras::Hashing(97, {.salt = keras::Salt(1, 2)}), any_length);
  cases().check("hash_mask", keras::Hashing(5, {.mask_value = 7}), any_length);
  cases().check("hash_one_hot", keras::Hashing(4, {.output_mode = "one_hot"}));
  cases().check("hash_one_hot_column", keras::Hashing(4, {.output_mode = "one_hot"}));
  cases().check("hash_multi_hot", keras::Hashing(4, {.output_mode = "multi_hot"}), any_length);
  cases().check("hash_count", keras::Hashing(4, {.mask_value = 0, .output_mode = "count"}), any_length);
  EXPECT_EQ(keras::Hashing(3)({"A", "B"}).dtype(), i64);
}

TEST_F(KerasLookup, CrossesFeatures) {
  const KerasCase& one = cases().at("cross_strings");
  keras::HashedCrossing crossing(100003);
  expect_close(crossing.cross({parted(one["texts"]), one["codes"]}), one["y"], 0, "y");
  cases().check("cross_integers", crossing);
  cases().check("cross_one_hot", keras::HashedCrossing(5, {.output_mode = "one_hot"}));
}

TEST_F(KerasLookup, Bins) {
  for (const char* mode : {"int", "one_hot", "multi_hot", "count"})
    cases().check(std::string("bins_") + mode,
                  keras::Discretization({.bin_boundaries = {0, 1, 2}, .output_mode = mode}),
                  {.lengths = std::string(mode) != "one_hot"});
  cases().check("bins_one_hot_column", keras::Discretization({.bin_boundaries = {0, 1}, .output_mode = "one_hot"}));
  keras::Discretization bins({.bin_boundaries = {0, 1, 2}});
  EXPECT_EQ(bins(tensor({0.5f})).dtype(), i32);
  EXPECT_EQ(bins.bin_boundaries(), (std::vector<double>{0, 1, 2}));
}

TEST_F(KerasLookup, FindsBins) {
  struct {
    std::int64_t bins;
    double epsilon;
    std::int64_t parts;
  } const all[] = {{4, 0.01, 1}, {10, 0.01, 3}, {7, 0.05, 4}, {50, 0.001, 2}, {1, 0.01, 1}, {300, 0.01, 1}};
  const Tensor data = cases().at("quantiles_data")["data"];
  for (const auto& [bins, epsilon, parts] : all) {
    const std::string name = "quantiles_" + std::to_string(bins) + "_" + std::to_string(parts);
    SCOPED_TRACE(name);
    keras::Discretization layer({.num_bins = bins, .epsilon = epsilon});
    if (parts == 1)
      layer.adapt(data);
    else  // as NumPy cuts it
      layer.adapt(data::from_tensor_slices(data).batch((2000 + parts - 1) / parts));
    const Tensor expected = cases().at(name)["found"];
    const std::vector<double> found = layer.bin_boundaries();
    ASSERT_EQ(static_cast<std::int64_t>(found.size()), expected.dim(0));
    if (!found.empty()) expect_close(tensor(found), expected, 1e-6, name);
    const Tensor counts = bincount(layer(data), static_cast<std::int64_t>(found.size()) + 1);
    if (bins > 1 && bins < 100) {
      EXPECT_LT(max(abs(counts - 2000 / bins)).item<std::int64_t>(), 2000 * epsilon * 2 + 8);
    }
  }
  const KerasCase& few = cases().at("quantiles_few");
  keras::Discretization layer({.num_bins = 3});
  layer.adapt(few["data"]);
  expect_close(tensor(layer.bin_boundaries()), few["found"], 1e-6, "few");
}

TEST_F(KerasLookup, Codes) {
  for (const char* mode : {"one_hot", "multi_hot", "count"})
    cases().check(std::string("codes_") + mode, keras::CategoryEncoding(5, {.output_mode = mode}),
                  {.lengths = std::string(mode) != "one_hot"});
  cases().check("codes_one_hot_column", keras::CategoryEncoding(5, {.output_mode = "one_hot"}));
  cases().check("codes_vector", keras::CategoryEncoding(5, {.output_mode = "one_hot"}));
  cases().check("codes_weights", keras::CategoryEncoding(5, {.output_mode = "count"}));
  EXPECT_EQ(keras::CategoryEncoding(5)(tensor({{1, 2}})).dtype(), f32);
  EXPECT_EQ(keras::CategoryEncoding(5)(zeros({0, 3}, i64)).shape().sizes(), (std::vector<std::int64_t>{0, 5}));
  expect_close(keras::CategoryEncoding(2)(zeros({2, 0}, i64)), zeros({2, 2}), 0, "nothing in a sample");
}

TEST_F(KerasLookup, Integers) {
  const std::vector<std::int64_t> known = {12, 36, 1138, 42};
  for (const std::string mode : {"int", "one_hot", "multi_hot", "count"}) {
    const LayerCheck how{.lengths = mode != "one_hot"};
    cases().check("integer_" + mode, keras::IntegerLookup({.vocabulary = known, .output_mode = mode}), how);
    cases().check(
        "integer_mask_" + mode,
        keras::IntegerLookup({.num_oov_indices = 2, .mask_token = 0, .vocabulary = known, .output_mode = mode}), how);
  }
  cases().check("integer_special", keras::IntegerLookup({.mask_token = 0, .vocabulary = {0, -1, 12, 36, 1138, 42}}),
                any_length);
  cases().check("integer_oov_4", keras::IntegerLookup({.num_oov_indices = 4, .vocabulary = known}), any_length);
  cases().check("integer_farmhash",
                keras::IntegerLookup({.num_oov_indices = 4, .vocabulary = known, .oov_method = "farmhash"}),
                any_length);
  cases().check("integer_salt",
                keras::IntegerLookup(
                    {.num_oov_indices = 4, .vocabulary = known, .oov_method = "farmhash", .salt = keras::Salt(5, 6)}));
  cases().check("integer_no_oov", keras::IntegerLookup({.num_oov_indices = 0, .vocabulary = known}), any_length);
  cases().check(
      "integer_padded",
      keras::IntegerLookup({.max_tokens = 9, .vocabulary = known, .output_mode = "count", .pad_to_max_tokens = true}));
  cases().check(
      "integer_tf_idf",
      keras::IntegerLookup({.vocabulary = known, .idf_weights = {0.25, 0.75, 0.6, 0.4}, .output_mode = "tf_idf"}));
  cases().check("integer_tf_idf_padded", keras::IntegerLookup({.max_tokens = 8,
                                                               .vocabulary = {-1, 12, 36, 1138, 42},
                                                               .idf_weights = {0.1, 0.25, 0.75, 0.6, 0.4},
                                                               .output_mode = "tf_idf",
                                                               .pad_to_max_tokens = true}));
  cases().check("integer_invert", keras::IntegerLookup({.vocabulary = known, .invert = true}), any_length);
  cases().check("integer_invert_mask",
                keras::IntegerLookup({.mask_token = 0, .oov_token = -5, .vocabulary = known, .invert = true}),
                any_length);
}

TEST_F(KerasLookup, AdaptsToIntegers) {
  for (const std::string mode : {"int", "tf_idf"})
    for (const bool limited : {false, true}) {
      const KerasCase& one = cases().at("integer_adapt_" + mode + (limited ? "_4" : "_all"));
      SCOPED_TRACE(one.name());
      keras::IntegerLookupOptions options{.mask_token = 0, .output_mode = mode};
      if (limited) options.max_tokens = 4;
      keras::IntegerLookup whole(options), batches(options);
      whole.adapt(one["data"]);
      batches.adapt(data::from_tensor_slices(one["data"]).batch(2));
      for (const keras::IntegerLookup& layer : {whole, batches}) {
        EXPECT_EQ(layer.get_vocabulary(), one["found"].to_vector<std::int64_t>());
        EXPECT_EQ(layer.vocabulary_size(), one["found"].dim(0));
        expect_close(layer(one["x0"]), one["y"], 1e-6, "y");
      }
    }
  keras::IntegerLookup layer;
  layer.adapt(tensor({3, 3, 5}));
  EXPECT_EQ(layer.get_vocabulary({.include_special_tokens = false}), (std::vector<std::int64_t>{3, 5}));
  layer.adapt(tensor({-1}));  // only what stands for others: every token is out of the vocabulary
  EXPECT_EQ(layer(tensor({3, 5})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 0}));
}

TEST_F(KerasLookup, Strings) {
  const std::vector<std::string> fruit = {"apple", "pear", "fig"};
  for (const std::string mode : {"int", "one_hot", "multi_hot", "count"}) {
    expect_numbers(cases().at("string_" + mode), keras::StringLookup({.vocabulary = fruit, .output_mode = mode}));
    expect_numbers(
        cases().at("string_mask_" + mode),
        keras::StringLookup({.num_oov_indices = 3, .mask_token = "", .vocabulary = fruit, .output_mode = mode}));
  }
  expect_numbers(cases().at("string_list"), keras::StringLookup({.vocabulary = fruit, .output_mode = "one_hot"}));
  expect_numbers(cases().at("string_salt"),
                 keras::StringLookup({.num_oov_indices = 7, .vocabulary = fruit, .salt = keras::Salt(3, 4)}));
  keras::StringLookup documents({.output_mode = "tf_idf"});
  documents.adapt({{"b", "a", "b"}, {"c", "a", "[UNK]"}, {"d", "é", "d"}});
  expect_numbers(cases().at("string_adapt"), documents);
  keras::StringLookup list({.max_tokens = 4, .num_oov_indices = 2});
  list.adapt({"b", "a", "b", "z", "Z", "é", "a"});
  expect_numbers(cases().at("string_adapt_list"), list);
  // Rows of any lengths, where they are taken together.
  keras::StringLookup counts({.vocabulary = fruit, .output_mode = "count"});
  expect_close(counts({{"fig", "fig"}, {"pear"}, {}}), tensor({{0, 0, 0, 2}, {0, 0, 1, 0}, {0, 0, 0, 0}}), 0, "ragged");
  EXPECT_EQ(counts(keras::Strings("fig")).shape().sizes(), (std::vector<std::int64_t>{4}));
}

TEST_F(KerasLookup, StringsOfNumbers) {
  keras::StringLookup lookup({.mask_token = "", .vocabulary = {"a", "b", "ü"}});
  keras::StringLookup back({.mask_token = "", .vocabulary = lookup.get_vocabulary(), .invert = true});
  const keras::Strings given{{"a", "x"}, {"ü", ""}};
  const Tensor numbers = lookup(given);
  EXPECT_EQ(numbers.to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 1, 4, 0}));
  EXPECT_EQ(back(numbers), (keras::Strings{{"a", "[UNK]"}, {"ü", ""}}));
  EXPECT_EQ(back(tensor({2, 99, -3})), (keras::Strings{"a", "[UNK]", "[UNK]"}));
  EXPECT_EQ(back(numbers[0][0]), keras::Strings("a"));
  std::ostringstream shown;
  shown << back(numbers);
  EXPECT_EQ(shown.str(), "[[\"a\" \"[UNK]\"]\n [\"ü\" \"\"]]");
}

TEST_F(KerasLookup, Texts) {
  const std::vector<std::string> corpus = {"The quick brown fox, the LAZY dog!",
                                           "  It's a dog's life.\tÄPFEL\nund Birnen_", "", "the end - of it",
                                           "日本語 text \x0b here\u00a0too 🙂"};
  auto check = [&](const std::string& name, keras::TextVectorizationOptions options) {
    keras::TextVectorization layer(std::move(options));
    layer.adapt(corpus);
    expect_numbers(cases().at("text_" + name), layer);
  };
  for (const std::string standardize : {"lower_and_strip_punctuation", "lower", "strip_punctuation", "none"})
    for (const std::string split : {"whitespace", "character"})
      check(standardize + "_" + split,
            {.standardize = standardize == "none" ? keras::Standardize(nullptr) : standardize, .split = split});
  check("bigrams", {.ngrams = 2});
  check("ngrams_3_1", {.ngrams = {3, 1}});
  check("short", {.output_sequence_length = 2});
  check("long", {.output_sequence_length = 9});
  check("limited", {.max_tokens = 5});
  check("multi_hot", {.output_mode = "multi_hot"});
  check("count", {.output_mode = "count"});
  check("tf_idf", {.output_mode = "tf_idf"});
  check("tf_idf_padded", {.max_tokens = 40, .output_mode = "tf_idf", .pad_to_max_tokens = true});
  check("count_bigrams", {.ngrams = {2}, .output_mode = "count"});
  keras::TextVectorization unsplit({.standardize = "lower", .split = nullptr});
  unsplit.adapt({"New York", "Rome", "rome"});
  expect_numbers(cases().at("text_unsplit"), unsplit);
  expect_numbers(cases().at("text_unsplit_rows"), unsplit);
  keras::TextVectorization given({.output_sequence_length = 4, .vocabulary = {"earth", "wind", "and", "fire"}});
  expect_numbers(cases().at("text_given"), given);
  EXPECT_EQ(given("wind and").to_vector<std::int64_t>(), (std::vector<std::int64_t>{3, 4, 0, 0}));
}

TEST_F(KerasLookup, FunctionsOfTexts) {
  keras::TextVectorization layer({.standardize = [](const std::string& text) { return text + "!"; },
                                  .split =
                                      [](const std::string& text) {
                                        return std::vector<std::string>{text.substr(0, 1), text.substr(1)};
                                      }});
  layer.adapt({"ab", "ac"});
  EXPECT_EQ(layer.get_vocabulary(), (std::vector<std::string>{"", "[UNK]", "a", "c!", "b!"}));
  EXPECT_EQ(layer({"ab", "xb"}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 4, 1, 4}));
}

TEST_F(KerasLookup, NothingToLookUp) {
  using Sizes = std::vector<std::int64_t>;
  const keras::Strings none(std::vector<std::string>{});
  keras::StringLookup strings({.vocabulary = {"a"}}), codes({.vocabulary = {"a"}, .output_mode = "one_hot"});
  EXPECT_EQ(strings(none).shape().sizes(), (Sizes{0}));
  EXPECT_EQ(strings(none).dtype(), i64);
  EXPECT_EQ(codes(none).shape().sizes(), (Sizes{0, 2}));
  keras::TextVectorization texts({.output_sequence_length = 4, .vocabulary = {"a"}});
  keras::TextVectorization counts({.output_mode = "count", .vocabulary = {"a"}});
  EXPECT_EQ(texts(none).shape().sizes(), (Sizes{0, 4}));
  EXPECT_EQ(counts(none).shape().sizes(), (Sizes{0, 2}));
  EXPECT_EQ(texts({"", " "}).to_vector<std::int64_t>(), Sizes(8));
  const Tensor nothing = zeros({0, 3}, i64);
  keras::IntegerLookup integers({.vocabulary = {1}}), closed({.num_oov_indices = 0, .vocabulary = {1}});
  EXPECT_EQ(integers(nothing).shape().sizes(), (Sizes{0, 3}));
  EXPECT_EQ(closed(nothing).shape().sizes(), (Sizes{0, 3}));
  EXPECT_EQ(keras::Hashing(3)(nothing).shape().sizes(), (Sizes{0, 3}));
  EXPECT_EQ(keras::Discretization({.bin_boundaries = {1}})(zeros({0, 3})).shape().sizes(), (Sizes{0, 3}));
  EXPECT_EQ(keras::HashedCrossing(3)({zeros({0}, i64), zeros({0}, i64)}).shape().sizes(), (Sizes{0}));
}

/// A file that is there as long as this is.
class TestFile {
 public:
  explicit TestFile(const std::string& content)
      : path(std::filesystem::temp_directory_path() / ("stet_vocabulary_" + std::to_string(::getpid()) + ".txt")) {
    std::ofstream(path, std::ios::binary) << content;
  }
  ~TestFile() { std::filesystem::remove(path); }
  const std::string path;
};

TEST_F(KerasLookup, VocabulariesFromFiles) {
  TestFile words("apple\r\npear\nfig");
  keras::StringLookup lookup({.vocabulary = words.path});
  EXPECT_EQ(lookup.get_vocabulary(), (std::vector<std::string>{"[UNK]", "apple", "pear", "fig"}));
  keras::TextVectorization texts({.vocabulary = words.path});
  EXPECT_EQ(texts({"a fig"}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 4}));
  {
    TestFile numbers("12\n-36\n");
    EXPECT_EQ(keras::IntegerLookup({.vocabulary = numbers.path}).get_vocabulary(),
              (std::vector<std::int64_t>{-1, 12, -36}));
    auto said = [&](const std::string& content, auto make) {
      TestFile file(content);
      std::string text = error_of([&] { make(file.path); });
      if (auto at = text.find(file.path); at != std::string::npos) text.replace(at, file.path.size(), "F");
      if (auto at = text.find(file.path); at != std::string::npos) text.replace(at, file.path.size(), "F");
      return text;
    };
    auto strings = [](const std::string& path) { keras::StringLookup({.vocabulary = path}); };
    auto integers = [](const std::string& path) { keras::IntegerLookup({.vocabulary = path}); };
    EXPECT_CONTAINS(said("12\nx3\n", integers), "IntegerLookup: line 2 of 'F' is no token: \"x3\"");
    EXPECT_CONTAINS(said("12\n99999999999999999999\n", integers), "line 2 of 'F' is no token");
    EXPECT_CONTAINS(said("a\nb\na\n", strings),
                    "StringLookup: the vocabulary has \"a\" twice, in line 1 of 'F' and in line 3 of 'F'");
    EXPECT_CONTAINS(said("a\n\nb\n", strings), "StringLookup: line 2 of 'F' is empty");
    EXPECT_CONTAINS(said("a\nb\xff\n", strings), "StringLookup: line 2 of 'F' is no token");
    EXPECT_CONTAINS(said("", strings), "StringLookup: 'F' is empty");
  }
  EXPECT_CONTAINS(error_of([] { keras::StringLookup({.vocabulary = "no/such/file"}); }),
                  "StringLookup: there is no vocabulary file 'no/such/file' that can be read");
  EXPECT_CONTAINS(error_of([] { keras::StringLookup({.vocabulary = "/"}); }), "StringLookup: ");
}

TEST_F(KerasLookup, InPipelinesAndModels) {
  keras::IntegerLookup lookup({.vocabulary = {30, 10, 20}});
  std::vector<std::int64_t> numbers;
  for (Tensor x : data::from_tensor_slices(tensor({10, 20, 99, 30})).map([=](Tensor x) { return lookup(x); }))
    numbers.push_back(x.item<std::int64_t>());
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{2, 3, 0, 1}));

  keras::Discretization bins({.num_bins = 2, .output_mode = "one_hot"});
  bins.adapt(tensor({0.f, 1.f, 2.f, 3.f}));
  keras::Sequential model{keras::Input({1}), bins, keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.5), .loss = "mean_squared_error"});
  const Tensor x = tensor({{0.f}, {3.f}, {0.5f}, {2.5f}}), y = tensor({{1.f}, {5.f}, {1.f}, {5.f}});
  model.fit(x, y, {.batch_size = 3, .epochs = 40, .verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  expect_close(model.predict(x), y, 0.05, "learned");
}

TEST_F(KerasLookup, AnotherVocabularyIsUsedByModelsAndFunctions) {
  keras::IntegerLookup lookup;
  lookup.adapt(tensor({7, 7, 8}));
  Function f = function("f(layer, x)", [](keras::IntegerLookup layer, Tensor x) { return layer(x); });
  EXPECT_EQ(f(lookup, tensor({7, 8, 9})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2, 0}));
  keras::Sequential model{keras::Input({1}, {.dtype = i64}), lookup};
  EXPECT_EQ(model.predict(tensor({{7}, {9}})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 0}));
  lookup.adapt(tensor({9, 9, 9, 8}));
  EXPECT_EQ(f(lookup, tensor({7, 8, 9})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 2, 1}));
  EXPECT_EQ(model.predict(tensor({{7}, {9}})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1}));
}

TEST_F(KerasLookup, SaysWhatIsWrongWithVocabularies) {
  using keras::StringLookup;
  EXPECT_CONTAINS(error_of([] { StringLookup({.vocabulary = std::vector<std::string>{}}); }),
                  "StringLookup: an empty vocabulary\n  at ");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.vocabulary = {"a", "b", "a"}});
                  }),
                  "StringLookup: the vocabulary has \"a\" twice, at position 0 and at position 2");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.mask_token = "m", .vocabulary = {"a", "m"}});
                  }),
                  "StringLookup: the mask token \"m\" stands at position 1 of the vocabulary");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.mask_token = "m", .vocabulary = {"a", "m"}});
                  }),
                  "fix: leave it out, or begin with \"m\", \"[UNK]\"");
  EXPECT_CONTAINS(error_of([] {
                    keras::IntegerLookup({.vocabulary = {4, -1}, .invert = true});
                  }),
                  "IntegerLookup: the out-of-vocabulary token -1 stands at position 1");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.max_tokens = 2, .vocabulary = {"a", "b"}});
                  }),
                  "StringLookup: a vocabulary of 3 tokens, and max_tokens is 2");
  EXPECT_CONTAINS(error_of([] { StringLookup({.vocabulary = {"ok", "\xc3("}}); }), "string 1 is not UTF-8: byte 0");
  EXPECT_CONTAINS(error_of([] { StringLookup({.max_tokens = 1}); }), "StringLookup: max_tokens is 1");
  EXPECT_CONTAINS(error_of([] { StringLookup({.max_tokens = 3, .num_oov_indices = 4}); }),
                  "StringLookup: max_tokens is 3, and there are 4 special tokens");
  EXPECT_CONTAINS(error_of([] { StringLookup({.num_oov_indices = -1}); }), "StringLookup: num_oov_indices is -1");
  EXPECT_CONTAINS(error_of([] { StringLookup({.pad_to_max_tokens = true}); }),
                  "StringLookup: pad_to_max_tokens without max_tokens");
  EXPECT_CONTAINS(error_of([] { StringLookup({.invert = true, .output_mode = "count"}); }),
                  "StringLookup: invert with output_mode \"count\"");
  EXPECT_CONTAINS(error_of([] { StringLookup({.output_mode = "binary"}); }), "StringLookup: output_mode is \"binary\"");
  EXPECT_CONTAINS(error_of([] { StringLookup({.encoding = "latin-1"}); }), "StringLookup: encoding is \"latin-1\"");
  EXPECT_CONTAINS(error_of([] { StringLookup({.vocabulary = {"a"}, .output_mode = "tf_idf"}); }),
                  "StringLookup: a vocabulary for \"tf_idf\" without idf_weights");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.vocabulary = {"a"}, .idf_weights = {1, 2}, .output_mode = "tf_idf"});
                  }),
                  "StringLookup: 2 idf_weights for 1 tokens");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.idf_weights = {1, 2}});
                  }),
                  "StringLookup: idf_weights with output_mode \"int\"");
  EXPECT_CONTAINS(error_of([] {
                    StringLookup({.idf_weights = {1, 2}, .output_mode = "tf_idf"});
                  }),
                  "StringLookup: idf_weights without a vocabulary");
  EXPECT_CONTAINS(error_of([] { keras::IntegerLookup({.salt = 5}); }),
                  "IntegerLookup: a salt with oov_method \"floormod\"");
  EXPECT_CONTAINS(error_of([] { keras::IntegerLookup({.oov_method = "crc"}); }), "oov_method is \"crc\"");
  // A lookup that was refused another vocabulary keeps its own.
  StringLookup lookup({.vocabulary = {"a", "b"}});
  EXPECT_CONTAINS(error_of([&] { lookup.set_vocabulary({"c", "c"}); }), "twice");
  EXPECT_EQ(lookup.vocabulary_size(), 3);
  lookup.set_vocabulary({"c"});
  EXPECT_EQ(lookup.get_vocabulary(), (std::vector<std::string>{"[UNK]", "c"}));
}

TEST_F(KerasLookup, SaysWhatIsWrongWithData) {
  keras::StringLookup strings({.vocabulary = {"a", "b"}, .name = "words"});
  keras::IntegerLookup integers({.num_oov_indices = 0, .vocabulary = {1, 2}, .name = "codes"});
  EXPECT_CONTAINS(error_of([] { keras::StringLookup({.name = "words"})({"a"}); }),
                  "StringLookup 'words' has no vocabulary yet\n  at ");
  EXPECT_CONTAINS(error_of([] { keras::IntegerLookup()(tensor({1})); }),
                  "IntegerLookup 'integer_lookup' has no vocabulary yet");
  EXPECT_CONTAINS(error_of([] { keras::TextVectorization().vocabulary_size(); }),
                  "TextVectorization 'text_vectorization' has no vocabulary yet");
  EXPECT_CONTAINS(error_of([&] { strings.adapt({"a"}); }), "adapt: StringLookup 'words' was given its vocabulary");
  EXPECT_CONTAINS(error_of([&] {
                    strings(keras::Strings(std::vector<std::vector<std::string>>{{"a", "b"}, {"a"}}));
                  }),
                  "StringLookup 'words': row 1 has 1 strings, and the longest 2");
  EXPECT_CONTAINS(error_of([&] {
                    strings({"a", "\xed\xa0\x80"});
                  }),
                  "StringLookup 'words': string 1 is not UTF-8: byte 0");
  EXPECT_CONTAINS(error_of([&] { strings(tensor({1})); }), "StringLookup 'words' takes strings and was given i32[1]");
  keras::StringLookup back({.vocabulary = {"a"}, .invert = true, .name = "back"});
  EXPECT_CONTAINS(error_of([&] { back({"a"}); }), "StringLookup 'back' is inverted and was given strings");
  EXPECT_CONTAINS(error_of([&] { back(tensor({1.5f})); }), "StringLookup 'back': its input f32[1] holds no integers");
  EXPECT_CONTAINS(error_of([&] { back(zeros({1, 1, 1}, i64)); }), "have more than two axes");
  keras::StringLookup closed({.num_oov_indices = 0, .vocabulary = {"a"}, .name = "closed"});
  EXPECT_CONTAINS(error_of([&] {
                    closed({"a", "z"});
                  }),
                  "StringLookup 'closed': \"z\" at flat position 1 is not in the vocabulary, and num_oov_indices is 0");
  const std::string missing =
      "IntegerLookup 'codes': 5 at flat position 2 is not in the vocabulary, and "
      "num_oov_indices is 0";
  EXPECT_CONTAINS(error_of([&] { integers(tensor({1, 2, 5})); }), missing);
  Function f = function("f(x)", [=](Tensor x) { return integers(x); });
  f(tensor({1, 2}));
  EXPECT_CONTAINS(error_of([&] { f(tensor({1, 2, 5})); }), missing);
  EXPECT_EQ(f(tensor({2, 1, 1})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 0, 0}));
  EXPECT_CONTAINS(error_of([&] { integers(tensor({1.f})); }),
                  "IntegerLookup 'codes': its input f32[1] holds no integers");
  EXPECT_CONTAINS(error_of([&] {
                    keras::IntegerLookup().adapt(data::from_tensor_slices(tensor({1, 2})).repeat());
                  }),
                  "adapt: the dataset has no end");
}

TEST_F(KerasLookup, SaysWhatIsWrongWithCategories) {
  EXPECT_CONTAINS(error_of([] { keras::Discretization(keras::DiscretizationOptions{}); }), "Discretization: no bins");
  EXPECT_CONTAINS(error_of([] { keras::Discretization({.bin_boundaries = {1}, .num_bins = 2}); }),
                  "Discretization: bin_boundaries and num_bins");
  EXPECT_CONTAINS(error_of([] {
                    keras::Discretization({.bin_boundaries = {1, 0}});
                  }),
                  "Discretization: bin_boundaries[1] is 0 after 1");
  EXPECT_CONTAINS(error_of([] { keras::Discretization({.num_bins = 0}); }), "Discretization: num_bins is 0");
  EXPECT_CONTAINS(error_of([] { keras::Discretization({.num_bins = 3, .epsilon = 0}); }),
                  "Discretization: an epsilon of 0");
  EXPECT_CONTAINS(error_of([] { keras::Discretization({.num_bins = 3})(tensor({1.f})); }),
                  "Discretization 'discretization' has no bins yet");
  EXPECT_CONTAINS(error_of([] { keras::Discretization({.bin_boundaries = {1}}).adapt(tensor({1.f})); }),
                  "was given its bin_boundaries");
  EXPECT_CONTAINS(error_of([] {
                    keras::Discretization({.num_bins = 3}).adapt(tensor({1.f, NAN}));
                  }),
                  "the data f32[2] has NaN in it");
  EXPECT_CONTAINS(error_of([] { keras::Discretization({.num_bins = 3}).adapt(zeros({0})); }), "there is no data");
  EXPECT_CONTAINS(error_of([] { keras::CategoryEncoding(0); }), "CategoryEncoding: num_tokens is 0");
  EXPECT_CONTAINS(error_of([] { keras::CategoryEncoding(4, {.output_mode = "int"}); }),
                  "CategoryEncoding: output_mode is \"int\"");
  keras::CategoryEncoding codes(4, {.name = "codes"});
  EXPECT_CONTAINS(error_of([&] {
                    codes(tensor({{0, 4}}));
                  }),
                  "CategoryEncoding: token 4 at flat position 1 is not one of the 4 tokens");
  EXPECT_CONTAINS(error_of([&] { codes(tensor({{-1, 0}})); }), "CategoryEncoding: token -1 at flat position 0");
  Function f = function("f(x)", [=](Tensor x) { return codes(x); });
  f(tensor({{1, 2}}));
  EXPECT_CONTAINS(error_of([&] { f(tensor({{1, 9}, {0, 0}})); }), "CategoryEncoding: token 9 at flat position 1");
  EXPECT_CONTAINS(error_of([&] { codes(tensor({{0.5f}})); }), "CategoryEncoding: its input f32[1,1] holds no integers");
  EXPECT_CONTAINS(error_of([&] {
                    codes({tensor({{1}}), tensor({{1.f}})});
                  }),
                  "CategoryEncoding: 2 tensors with output_mode \"multi_hot\"");
  EXPECT_CONTAINS(error_of([] {
                    keras::CategoryEncoding(4, {.output_mode = "count"})({tensor({{1, 2}}), tensor({{1.f}})});
                  }),
                  "CategoryEncoding: weights f32[1,1] for tokens i64[1,2]");
  EXPECT_CONTAINS(error_of([] { keras::Hashing(0); }), "Hashing: num_bins is 0");
  EXPECT_CONTAINS(error_of([] { keras::Hashing(3, {.mask_value = 1})({"a"}); }),
                  "strings, with an integer as mask_value");
  EXPECT_CONTAINS(error_of([] { keras::Hashing(3, {.mask_value = ""})(tensor({1})); }),
                  "integers, with a string as mask_value");
  EXPECT_CONTAINS(error_of([] {
                    keras::HashedCrossing(3)({tensor({1, 2}), tensor({1})});
                  }),
                  "HashedCrossing 'hashed_crossing': features i32[2] and i32[1]");
  EXPECT_CONTAINS(error_of([] { keras::HashedCrossing(3).cross({tensor({1, 2})}); }), "1 features to cross");
  EXPECT_CONTAINS(error_of([] {
                    keras::HashedCrossing(3).cross({tensor({1, 2}), std::vector<std::string>{"a"}});
                  }),
                  "feature 1 is [1], and the first [2]");
}

TEST_F(KerasLookup, SaysWhatIsWrongWithTexts) {
  EXPECT_CONTAINS(error_of([] { keras::TextVectorization({.standardize = "upper"}); }),
                  "TextVectorization: standardize is \"upper\"");
  EXPECT_CONTAINS(error_of([] { keras::TextVectorization({.split = "words"}); }),
                  "TextVectorization: split is \"words\"");
  EXPECT_CONTAINS(error_of([] { keras::TextVectorization({.ngrams = 0}); }), "TextVectorization: ngrams is 0");
  EXPECT_CONTAINS(error_of([] { keras::TextVectorization({.output_mode = "count", .output_sequence_length = 3}); }),
                  "TextVectorization: output_sequence_length with output_mode \"count\"");
  keras::TextVectorization layer({.vocabulary = {"a"}, .name = "text"});
  EXPECT_CONTAINS(error_of([&] { layer({{"a b", "c"}, {"d", "e"}}); }), "TextVectorization 'text': row 0 has 2 texts");
  EXPECT_CONTAINS(error_of([&] { layer({"a", "b\x80"}); }), "TextVectorization 'text': string 1 is not UTF-8: byte 1");
  keras::TextVectorization breaks({.standardize = [](const std::string& text) { return text.substr(0, 1); },
                                   .vocabulary = {"a"},
                                   .name = "breaks"});
  EXPECT_CONTAINS(error_of([&] { breaks({"é"}); }),
                  "TextVectorization 'breaks': after standardize: string 0 is not UTF-8");
  EXPECT_CONTAINS(error_of([] {
                    keras::TextVectorization({.split = nullptr, .ngrams = 2, .vocabulary = {"a"}})({"a", "b"});
                  }),
                  "a list of tokens without rows");
}

TEST_F(KerasLookup, NoCaseIsLeft) {
  if (::testing::UnitTest::GetInstance()->test_to_run_count() < 20) GTEST_SKIP() << "some tests were left out";
  EXPECT_EQ(cases().left(), std::vector<std::string>{});
}

}  // namespace
}  // namespace stet

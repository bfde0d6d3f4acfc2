// CSV: what RFC 4180 has and what files have besides, as datasets and as tables.
#include <cmath>
#include <sstream>

#include "data_files.h"
#include "little_memory.h"

namespace stet {
namespace {

using CsvTest = FilesTest;

const char* const iris =
    "length,width,species\n"
    "5.1,3.5,setosa\n"
    "7.0,3.2,versicolor\n"
    "6.3,3.3,virginica\n"
    "4.9,3,setosa\n";

TEST_F(CsvTest, IsADatasetOfFeaturesAndLabels) {
  auto dataset = data::csv(write("a.csv", iris), {.features = {"width", "length"}, .label = "species"});
  EXPECT_EQ(dataset.class_names(), (std::vector<std::string>{"setosa", "versicolor", "virginica"}));
  EXPECT_EQ(dataset.cardinality(), 4);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<float> x;
    std::vector<std::int64_t> y;
    for (auto [features, label] : dataset) {
      EXPECT_EQ(type_text(features), "f32[2]");
      EXPECT_EQ(type_text(label), "i64[]");
      for (float v : features.to_vector<float>()) x.push_back(v);
      y.push_back(label.item<std::int64_t>());
    }
    EXPECT_EQ(x, (std::vector<float>{3.5f, 5.1f, 3.2f, 7.0f, 3.3f, 6.3f, 3.f, 4.9f}));
    EXPECT_EQ(y, (std::vector<std::int64_t>{0, 1, 2, 0}));
  }
  for (auto [features, label] : dataset.shuffle(4).batch(3).take(1)) EXPECT_EQ(type_text(features), "f32[3,2]");
}

TEST_F(CsvTest, LabelsThatAreNumbersStayNumbers) {
  auto integers = data::csv(write("a.csv", "x,y\n1,10\n2,-3\n"), {.label = "y"});
  EXPECT_TRUE(integers.class_names().empty());
  std::vector<std::int64_t> y;
  for (auto [features, label] : integers) {
    EXPECT_EQ(type_text(label), "i64[]");
    y.push_back(label.item<std::int64_t>());
  }
  EXPECT_EQ(y, (std::vector<std::int64_t>{10, -3}));
  for (auto [features, label] : data::csv(write("b.csv", "x,y\n1,10\n2,0.5\n"), {.label = "y"}))
    EXPECT_EQ(type_text(label), "f32[]");
  // The last one decides: all are names then.
  auto names = data::csv(write("c.csv", "x,y\n1,10\n2,9\n3,many\n"), {.label = "y"});
  EXPECT_EQ(names.class_names(), (std::vector<std::string>{"10", "9", "many"}));
}

TEST_F(CsvTest, TrainsAModel) {
  random::seed(1);
  keras::Sequential model{keras::Input({2}), keras::Dense(3)};
  model.compile(
      {.optimizer = keras::Adam(), .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true})});
  auto history =
      model.fit(data::csv(write("a.csv", iris), {.features = {"length", "width"}, .label = "species"}).batch(2),
                {.epochs = 2, .verbose = 0});
  EXPECT_EQ(history["loss"].size(), 2u);
}

TEST_F(CsvTest, MissingFeaturesAreNaNOrWhatIsGiven) {
  const std::string file = write("a.csv", "x,y\n,1\nNA,2\n 3 ,3\n");
  std::vector<float> x;
  for (auto [features, label] : data::csv(file, {.label = "y"})) x.push_back(features.item<float>());
  EXPECT_TRUE(std::isnan(x[0]) && std::isnan(x[1]));
  EXPECT_EQ(x[2], 3);
  x.clear();
  for (auto [features, label] : data::csv(file, {.label = "y", .missing_value = -1}))
    x.push_back(features.item<float>());
  EXPECT_EQ(x, (std::vector<float>{-1, -1, 3}));
}

TEST_F(CsvTest, ReadsWhatPythonWrites) {
  // Fields and rows of wild.txt stand between unit and record separators.
  std::string expected = bytes_of(stored("wild.txt"));
  data::Table table = data::read_csv(stored("wild.csv"), {.strings = {"a", "b", "c", "d"}, .missing = {}});
  EXPECT_EQ(table.names(), (std::vector<std::string>{"a", "b", "c", "d"}));
  std::int64_t row = 0;
  std::istringstream rows(expected);
  for (std::string line; std::getline(rows, line, '\x1e'); ++row) {
    std::size_t column = 0, begin = 0;
    for (;; ++column) {
      std::size_t end = line.find('\x1f', begin);
      std::string field = line.substr(begin, end == std::string::npos ? end : end - begin);
      std::string got = table.strings(table.names()[column])[static_cast<std::size_t>(row)];
      // Spaces alone are a missing value.
      if (field.find_first_not_of(" \t") == std::string::npos) field.clear();
      EXPECT_EQ(got, field) << "row " << row << " column " << column;
      if (end == std::string::npos) break;
      begin = end + 1;
    }
    EXPECT_EQ(column, 3u);
  }
  EXPECT_EQ(table.rows(), row);
}

TEST_F(CsvTest, LinesEndInAnyWay) {
  for (const char* end : {"\n", "\r\n", "\r"})
    for (bool last : {false, true}) {
      std::string text = std::string("\xEF\xBB\xBF") + "a,b" + end + "1,2" + end + end + "3,\"4\"" + (last ? end : "");
      data::Table table = data::read_csv(write("a.csv", text));
      EXPECT_EQ(table.names(), (std::vector<std::string>{"a", "b"}));
      EXPECT_EQ(table.numbers("a").to_vector<int>(), (std::vector<int>{1, 3}));
      EXPECT_EQ(table.numbers("b").to_vector<int>(), (std::vector<int>{2, 4}));
    }
}

TEST_F(CsvTest, OptionsSayHowItIsWritten) {
  data::Table table = data::read_csv(write("a.csv", "# made by hand\n'a;b';1\n# not the end\nc;2\n"),
                                     {.header = false, .separator = ';', .quote = '\'', .comment = '#'});
  EXPECT_EQ(table.names(), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(table.strings("0"), (std::vector<std::string>{"a;b", "c"}));
  EXPECT_EQ(table.numbers("1").to_vector<int>(), (std::vector<int>{1, 2}));
  table = data::read_csv(path("a.csv"),
                         {.header = false, .columns = {"word", "n"}, .separator = ';', .quote = '\'', .comment = '#'});
  EXPECT_EQ(table.names(), (std::vector<std::string>{"word", "n"}));
  // Quotes are plain characters.
  table = data::read_csv(write("b.csv", "a,b\n\"x,1\n"), {.quote = 0});
  EXPECT_EQ(table.strings("a"), (std::vector<std::string>{"\"x"}));
}

TEST_F(CsvTest, ColumnsAreWhatAllTheirFieldsAre) {
  data::Table table = data::read_csv(write("a.csv",
                                           "i,f,m,s,e,big,zip\n"
                                           "1,1,1,a,,9223372036854775807,00123\n"
                                           "+2,2.5,,NA,,9223372036854775808,00456\n"
                                           "-3,1e-3,7,\"\",,1,7\n"),
                                     {.strings = {"zip"}});
  EXPECT_EQ(table.rows(), 3);
  EXPECT_EQ(type_text(table.numbers("i")), "i64[3]");
  EXPECT_EQ(table.numbers("i").to_vector<int>(), (std::vector<int>{1, 2, -3}));
  EXPECT_EQ(type_text(table.numbers("f")), "f64[3]");
  EXPECT_EQ(table.numbers("f").to_vector<double>(), (std::vector<double>{1, 2.5, 1e-3}));
  EXPECT_EQ(type_text(table.numbers("m")), "f64[3]");
  EXPECT_TRUE(std::isnan(table.numbers("m").item<double>({1})));
  EXPECT_EQ(table.missing("m"), 1);
  EXPECT_EQ(table.strings("s"), (std::vector<std::string>{"a", "", ""}));
  EXPECT_EQ(table.missing("s"), 2);
  EXPECT_EQ(table.missing("e"), 3);
  EXPECT_TRUE(table.is_number("e"));
  EXPECT_EQ(type_text(table.numbers("big")), "f64[3]");
  EXPECT_EQ(table.strings("zip"), (std::vector<std::string>{"00123", "00456", "7"}));
  EXPECT_FALSE(table.is_number("zip"));
  EXPECT_TRUE(table.has("zip") && !table.has("zap"));
  // With a whole number for what is missing, integers stay integers.
  data::Table filled = data::read_csv(path("a.csv"), {.missing_value = 0});
  EXPECT_EQ(type_text(filled.numbers("m")), "i64[3]");
  EXPECT_EQ(filled.numbers("m").to_vector<int>(), (std::vector<int>{1, 0, 7}));
  EXPECT_EQ(type_text(table.matrix({"i", "f"})), "f32[3,2]");
  EXPECT_EQ(type_text(table.matrix({"i", "f"}, f64)), "f64[3,2]");
  EXPECT_EQ(table.matrix({"i", "f"}).to_vector<float>(), (std::vector<float>{1, 1, 2, 2.5f, -3, 1e-3f}));
  data::Table some = table.select({"s", "i"});
  EXPECT_EQ(some.names(), (std::vector<std::string>{"s", "i"}));
  EXPECT_EQ(some.rows(), 3);
  for (auto [i, f] : data::from_tensor_slices(table.numbers("i"), table.numbers("f")).batch(3))
    EXPECT_EQ(type_text(i), "i64[3]");
}

TEST_F(CsvTest, NumbersAreReadExactly) {
  std::mt19937_64 draw(7);
  std::string text = "x\n";
  std::vector<double> numbers;
  for (int i = 0; i < 2000; ++i) {
    std::uint64_t bits = draw();
    double value;
    std::memcpy(&value, &bits, 8);
    if (!std::isfinite(value)) continue;
    char written[40];
    snprintf(written, sizeof written, "%.17g\n", value);
    text += written;
    numbers.push_back(value);
  }
  text += "1e999\n-1e999\n1e-999\ninf\n";
  for (double value : {INFINITY * 1., -INFINITY * 1., 0., INFINITY * 1.}) numbers.push_back(value);
  EXPECT_EQ(data::read_csv(write("a.csv", text)).numbers("x").to_vector<double>(), numbers);
}

TEST_F(CsvTest, IsReadInPiecesOfAnySize) {
  // Larger than the buffer, with quotes, separators and line ends wherever its pieces end.
  std::string text = "a,b\r\n";
  std::vector<std::string> words;
  std::mt19937 draw(5);
  std::int64_t rows = 0;
  for (; text.size() < 1'000'000; ++rows) {
    std::string word;
    for (unsigned n = draw() % 30; n > 0; --n) word += "a\",\r\nb"[draw() % 6];
    word += "|";
    words.push_back(word);
    std::string doubled;
    for (char c : word) doubled += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += "\"" + doubled + "\"," + std::to_string(rows) + (draw() % 2 ? "\n" : "\r\n");
  }
  data::Table table = data::read_csv(write("a.csv", text));
  EXPECT_EQ(table.rows(), rows);
  EXPECT_TRUE(table.strings("a") == words);
  expect_same(table.numbers("b"), arange(rows));
}

TEST_F(CsvTest, EmptyOnes) {
  data::Table table = data::read_csv(write("a.csv", "a,b\n"));
  EXPECT_EQ(table.rows(), 0);
  EXPECT_EQ(type_text(table.numbers("a")), "i64[0]");
  EXPECT_EQ(data::read_csv(write("b.csv", ""), {.header = false}).names().size(), 0u);
  EXPECT_CONTAINS(error_of([&] { data::read_csv(write("b.csv", "\n\n")); }),
                  "b.csv': has no header: it is empty, at byte 2");
  int count = 0;
  for (auto [x, y] : data::csv(path("a.csv"), {.label = "b"})) count += x.defined() && y.defined();
  EXPECT_EQ(count, 0);
}

TEST_F(CsvTest, ErrorsNameLineColumnAndByte) {
  auto of = [&](const std::string& text, data::CsvOptions options = {}) {
    std::string file = write("a.csv", text);
    return error_of([&] { data::read_csv(file, options); });
  };
  EXPECT_CONTAINS(of("a,b\n1,2\n\n3\n"), "a.csv': the row has 1 field, not 2, in line 4, at byte 9");
  EXPECT_CONTAINS(of("a,b\n1,2,3,4\n"), "the row has 4 fields, not 2, in line 2, at byte 4");
  EXPECT_CONTAINS(of("a,b\n1,\"2\n3\n"), "a quote is not closed, in line 2, at byte 6");
  EXPECT_CONTAINS(of("a,b\n1,\"2\"x\n"), "something follows a closing quote, in field 2, in line 2, at byte 9");
  EXPECT_CONTAINS(of("a,a\n"), "has two columns called 'a', in line 1, at byte 2");
  EXPECT_CONTAINS(of("\xFF\xFE"
                     "a,b\n"),
                  "is UTF-16, at byte 0");
  EXPECT_CONTAINS(of("a,b\n\"" + std::string(1000, 'x') + "\",1\n", {.max_row_bytes = 100}),
                  "the row is longer than 100 bytes");
  EXPECT_CONTAINS(of("a\n" + std::string(300'000, 'x'), {.max_row_bytes = 100'000}),
                  "the row is longer than 100000 bytes, in line 2, at byte 2");
  EXPECT_CONTAINS(of(std::string(300'000, ',')), "there are more than 262144 columns, in line 1, at byte 262144");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.strings = {"c"}}), "a.csv': has no column 'c', which strings names");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.strings = {"c"}}), "its columns are 'a', 'b'");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.columns = {"c"}}),
                  "has 2 columns, the option columns names 1, in line 1, at byte 0");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.separator = '"'}),
                  "read_csv: separator, quote and comment are not three different");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.label = "b"}), "read_csv: the options features and label are csv()'s");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.max_row_bytes = 0}), "read_csv: max_row_bytes is 0");
  EXPECT_CONTAINS(error_of([&] { data::read_csv(path("none.csv")); }), "none.csv': cannot be opened: No such file");
  EXPECT_CONTAINS(of("a,b\n1\n"), "data_csv_test.cpp:");

  data::Table table = data::read_csv(write("b.csv", "n,s\n1,\n2,tw\x1Bo\n"));
  EXPECT_CONTAINS(error_of([&] { table.numbers("s"); }), "numbers: column 's' of '");
  EXPECT_CONTAINS(error_of([&] { table.numbers("s"); }), "is strings: 'tw\\x1bo' in line 3 is no number");
  EXPECT_CONTAINS(error_of([&] { table.strings("n"); }), "is numbers, i64[2]");
  EXPECT_CONTAINS(error_of([&] { table.strings("x"); }), "strings: the table of '");
  EXPECT_CONTAINS(error_of([&] { table.strings("x"); }), "has no column 'x'");
  EXPECT_CONTAINS(error_of([&] { table.select({"n", "n"}); }), "select: names names 'n' twice");
  EXPECT_CONTAINS(error_of([&] { table.matrix({}); }), "matrix: no column is named");
}

TEST_F(CsvTest, ErrorsOfDatasets) {
  auto of = [&](const std::string& text, data::CsvOptions options) {
    std::string file = write("a.csv", text);
    return error_of([&] {
      for (auto [x, y] : data::csv(file, options)) (void)x, (void)y;
    });
  };
  EXPECT_CONTAINS(of("a,b\n1,2\n", {}), "csv: label is not given");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.label = "c"}), "has no column 'c', which label names");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.features = {"d"}, .label = "b"}), "has no column 'd', which features names");
  EXPECT_CONTAINS(of("a,b\n1,2\n", {.features = {"a", "a"}, .label = "b"}), "csv: features names 'a' twice");
  EXPECT_CONTAINS(of("a,b\n1,2\nx,3\n", {.label = "b"}), "'x' is no number, in column 'a' of line 3, at byte 8");
  EXPECT_CONTAINS(of("a,b\n1,\n", {.label = "b"}), "a label is missing, in column 'b' of line 2, at byte 6");
  auto dataset = data::csv(write("c.csv", "a,b\n1,x\n"), {.label = "b"});
  write("c.csv", "a,b\n1,y\n");
  EXPECT_CONTAINS(error_of([&] {
                    for (auto [x, y] : dataset) (void)x, (void)y;
                  }),
                  "label 'y' was not there when the dataset was made, in column 'b' of line 2");
}

/// What was found out when the dataset was made holds, or there is an error: columns are taken by their positions, and
/// the number of rows was told to those who asked.
TEST_F(CsvTest, AFileThatChangesUnderADataset) {
  auto dataset = data::csv(write("a.csv", "a,b\n1,2\n3,4\n"), {.label = "b"});
  auto after = [&](const std::string& text) {
    write("a.csv", text);
    return error_of([&] {
      for (auto [x, y] : dataset) (void)x, (void)y;
    });
  };
  const std::string columns = "csv: '" + path("a.csv") + "': has other columns than when the dataset was made";
  EXPECT_CONTAINS(after("b,a\n1,2\n3,4\n"), columns);
  EXPECT_CONTAINS(after("a\n1\n3\n"), columns);
  EXPECT_CONTAINS(after("a,b,c\n1,2,3\n3,4,5\n"), columns);
  EXPECT_CONTAINS(after("a,b\n1,2\n"), "has fewer rows than the 2 that were there when the dataset was made");
  EXPECT_CONTAINS(after("a,b\n1,2\n3,4\n5,6\n"), "has more rows than the 2 that were there when the dataset was made");
  EXPECT_CONTAINS(after("a,b\n1,2\n3,4\n5,6\n"), "make the dataset anew after the file has changed");
  EXPECT_EQ(after("a,b\n5,6\n7,8\n"), "no error");
}

TEST_F(CsvTest, WithoutMemoryIsAnErrorOfTheFile) {
  SKIP_WITHOUT_LIMITS();
  const std::string file = write("a.csv", "a,b\n1,");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 32);  // zeros
  const std::size_t little = std::size_t{64} << 20;
  EXPECT_CONTAINS(error_with_memory(little, [&] { data::read_csv(file, {.max_row_bytes = INT64_MAX}); }),
                  "read_csv: '" + file + "': there is no memory for what is in it");
  EXPECT_CONTAINS(error_with_memory(little, [&] { data::csv(file, {.label = "b", .max_row_bytes = INT64_MAX}); }),
                  "csv: '" + file + "': there is no memory for what is in it");
}

TEST_F(CsvTest, TextThatIsNotUtf8) {
  auto of = [&](const std::string& text) {
    const std::string file = write("a.csv", text);
    return error_of([&] { data::read_csv(file); });
  };
  EXPECT_CONTAINS(of("a,b\n1,x\n2,\"caf\xE9\"\n"),
                  "a.csv': 'caf\\xe9' is not UTF-8, in column 'b' of line 3, at byte 10");
  EXPECT_CONTAINS(of("a,caf\xE9\n1,x\n"), "'caf\\xe9' is not UTF-8, in column 'caf\\xe9' of line 1, at byte 2");
  EXPECT_CONTAINS(of("a,caf\xE9\n1,x\n"), "save the file as UTF-8");
  EXPECT_EQ(of("a,café\n1,日本\n"), "no error");
}

TEST_F(CsvTest, ErrorsNameTheFirstOfManyColumns) {
  std::string names = "c0";
  for (int i = 1; i < 30; ++i) names += ",c" + std::to_string(i);
  data::Table table = data::read_csv(write("a.csv", names + "\n"));
  const std::string error = error_of([&] { table.numbers("x"); });
  EXPECT_CONTAINS(error, "has no column 'x'");
  EXPECT_CONTAINS(error, "its columns are 'c0', 'c1', ");
  EXPECT_CONTAINS(error, "'c19', …");
}

TEST_F(CsvTest, MutatedFilesAreReadOrRefused) {
  std::mt19937 draw(11);
  const std::string wild = bytes_of(stored("wild.csv"));
  int read = 0;
  for (int i = 0, count = mutations(400); i < count; ++i) {
    const std::string file = write("a.csv", mutated(i % 2 ? wild : iris, draw));
    try {
      data::Table table = data::read_csv(file, {.max_row_bytes = 1 << 16});
      for (const std::string& name : table.names())
        read += table.is_number(name) ? table.numbers(name).defined() : static_cast<int>(table.strings(name).size());
      for (auto [x, y] : data::csv(file, {.features = {"length"}, .label = "species"}))
        read += x.defined() && y.defined();
    } catch (const UserError& error) {
      EXPECT_CONTAINS(std::string(error.what()), "csv: '");
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace stet

// NPY and NPZ, as NumPy writes them and for NumPy to read.
#include "data_files.h"

namespace stet {
namespace {

using NpyTest = FilesTest;

Tensor expected(const std::string& numpy) {
  std::vector<double> numbers;
  for (int i = 0; i < 6; ++i)
    numbers.push_back(numpy == "bool"                     ? i % 2
                      : numpy.starts_with("int")          ? i - 2
                      : numpy.find("float") != numpy.npos ? i * 0.75
                                                          : i);
  static const std::map<std::string, DType> types = {
      {"bool", bool_},  {"int8", i8},     {"int16", i16},    {"int32", i32},  {"int64", i64},
      {"uint8", u8},    {"uint16", i32},  {"uint32", i64},   {"uint64", i64}, {"float16", f16},
      {"float32", f32}, {"float64", f64}, {"bfloat16", bf16}};
  return cast(reshape(tensor(numbers), {2, 3}), types.at(numpy));
}

TEST_F(NpyTest, ReadsWhatNumPyWrites) {
  for (const char* type : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                           "float32", "float64", "bfloat16"}) {
    expect_same(data::read_npy(stored(std::string(type) + ".npy")), expected(type), type);
    if (std::string big = stored(std::string(type) + "_big.npy"); std::filesystem::exists(big))
      expect_same(data::read_npy(big), expected(type), big);
  }
  for (const char* version : {"version2.npy", "version3.npy"})
    expect_same(data::read_npy(stored(version)), expected("float32"));
  Tensor columns_first = data::read_npy(stored("fortran.npy"));
  EXPECT_TRUE(columns_first.is_dense());
  expect_same(columns_first, cast(reshape(arange(24), {2, 3, 4}), f32));
  // In a trace what is read is a constant, in any order.
  Function f = function("f", [](Tensor x) { return x + data::read_npy(stored("fortran.npy")); });
  expect_same(f(tensor(1.f)), columns_first + 1);
  EXPECT_EQ(type_text(data::read_npy(stored("scalar.npy"))), "f32[]");
  EXPECT_EQ(data::read_npy(stored("scalar.npy")).item<float>(), 2.5f);
  EXPECT_EQ(type_text(data::read_npy(stored("empty.npy"))), "f32[0,3]");
}

TEST_F(NpyTest, WritesWhatItReads) {
  for (const char* type :
       {"bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "bfloat16"}) {
    const std::string file = path(type);
    data::write_npy(file, expected(type));
    expect_same(data::read_npy(file), expected(type), type);
    // As NumPy wrote it, byte for byte.
    EXPECT_TRUE(bytes_of(file) == bytes_of(stored(std::string(type) + ".npy"))) << type;
  }
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
    Tensor x = random::normal(shape);
    data::write_npy(path("x.npy"), x);
    expect_same(data::read_npy(path("x.npy")), x);
  }
  Tensor view = cast(reshape(arange(24), {4, 6}), f32).T()[{Range{.step = 2}, Range{.begin = 1}}];
  data::write_npy(path("view.npy"), view);
  expect_same(data::read_npy(path("view.npy")), view);
}

TEST_F(NpyTest, Archives) {
  for (const char* name : {"plain.npz", "compressed.npz"})
    expect_same(data::read_npz(stored(name)).at("weights"), expected("float32"));
  auto plain = data::read_npz(stored("plain.npz"));
  EXPECT_EQ(plain.size(), 3u);
  EXPECT_EQ(plain.at("steps").item<int>(), 7);
  EXPECT_EQ(type_text(plain.at("empty")), "f64[0,2]");
  expect_same(data::read_npz(stored("compressed.npz")).at("zeros"), zeros({100, 100}, i32));
  std::map<std::string, Tensor> tensors = {
      {"a", random::normal({3, 4})}, {"layer/kernel", arange(5)}, {"ß", tensor(true)}};
  data::write_npz(path("x.npz"), tensors);
  auto back = data::read_npz(path("x.npz"));
  ASSERT_EQ(back.size(), 3u);
  for (const auto& [name, value] : tensors) expect_same(back.at(name), value, name);
  data::write_npz(path("none.npz"), {});
  EXPECT_TRUE(data::read_npz(path("none.npz")).empty());
}

std::string npy(const std::string& header, const std::string& body) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + body;
}

TEST_F(NpyTest, RefusesByName) {
  auto of = [](const std::string& file) { return error_of([&] { data::read_npy(stored(file)); }); };
  EXPECT_CONTAINS(of("objects.npy"), "objects.npy': is an array of Python objects (dtype object, stored by pickle)");
  EXPECT_CONTAINS(of("complex.npy"), "is an array of complex numbers, dtype '<c8'");
  EXPECT_CONTAINS(of("strings.npy"), "is an array of strings, dtype '<U2'");
  EXPECT_CONTAINS(of("dates.npy"), "is an array of dates or times, dtype '<M8[D]'");
  EXPECT_CONTAINS(of("records.npy"), "is an array of records (a structured dtype)");
  EXPECT_CONTAINS(of("gray.png"), "is not an NPY file, at byte 0");
  EXPECT_CONTAINS(of("none.npy"), "cannot be opened: No such file");
}

TEST_F(NpyTest, ErrorsHaveTheByte) {
  auto of = [&](const std::string& bytes) {
    std::string file = write("a.npy", bytes);
    return error_of([&] { data::read_npy(file); });
  };
  const std::string good = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", std::string(8, 0));
  EXPECT_EQ(of(good), "no error");
  EXPECT_CONTAINS(of(good.substr(0, 9)), "read_npy: '");
  EXPECT_CONTAINS(of(good.substr(0, 9)), "a.npy': ends in its header, at byte 9");
  EXPECT_CONTAINS(of(good.substr(0, 40)), "ends in its header, at byte 40");
  EXPECT_CONTAINS(of(good.substr(0, good.size() - 1)), "ends in its data, of which 1 bytes are missing, at byte 74");
  EXPECT_CONTAINS(of(good + "x"), "has 1 bytes behind its data, at byte 75");
  std::string version = good;
  version[6] = 4;
  EXPECT_CONTAINS(of(version), "is of version 4.0 of the format, at byte 6");
  auto head = [&](const std::string& header) { return of(npy(header, std::string(8, 0))); };
  EXPECT_CONTAINS(head("['descr']"), "its header is not as NumPy writes it: '{' is missing, at byte 10");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'shape': (2,), }"), "its header has no 'fortran_order', at byte 43");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'descr': '<f4', }"), "its header has 'descr' twice");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'code': 'x', }"), "its header has 'code', which NPY headers do not have");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"),
                  "fortran_order is neither True nor False");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': True, 'shape': (-2,)}"), "a size is missing");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999999999999,)}"),
                  "declares a size that is too large");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': True, 'shape': (9999999999,9999999999)}"),
                  "declares sizes whose product is too large");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': True, 'shape': (0,9999999999,9999999999)}"),
                  "declares sizes whose product is too large");
  EXPECT_CONTAINS(head("{'descr': '|u1', 'fortran_order': True, 'shape': (0,4611686018427387905)}"),
                  "declares sizes whose product is too large");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': True, 'shape': (1,1,1,1,1,1,1,1,1)}"),
                  "has more than 8 axes");
  EXPECT_CONTAINS(head("{'descr': '<f4', 'fortran_order': True, 'shape': (1000000000000,)}"), "ends in its data");
  EXPECT_CONTAINS(head("{'descr': 'f\x1B', 'fortran_order': True, 'shape': ()}"),
                  "is an array of a type that there is none for, dtype 'f\\x1b'");
  EXPECT_CONTAINS(of(npy("{'descr': '<u8', 'fortran_order': True, 'shape': (1,)}", std::string(8, '\xFF'))),
                  "has the number 18446744073709551615, which i64 does not hold, at byte 64");
  // Python 2 wrote its long numbers so.
  EXPECT_EQ(head("{'descr': '<f4', 'fortran_order': False, 'shape': (2L,)}"), "no error");
  // Any byte that is not 0 is true.
  EXPECT_EQ(data::read_npy(write("b.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}",
                                              std::string("\0\2\1", 3))))
                .to_vector<int>(),
            (std::vector<int>{0, 1, 1}));
}

TEST_F(NpyTest, ErrorsOfWritingAndOfArchives) {
  EXPECT_CONTAINS(error_of([&] { data::write_npy(path("x.npy"), Tensor()); }), "the tensor is undefined");
  EXPECT_CONTAINS(error_of([&] { data::write_npy(path("no/x.npy"), tensor(1)); }),
                  "no/x.npy': cannot be written: No such file or directory");
  EXPECT_CONTAINS(error_of([&] {
                    data::write_npz(path("x.npz"), {{"../a", tensor(1)}});
                  }),
                  "x.npz': '../a' is no name of an array in a file");
  EXPECT_CONTAINS(error_of([&] {
                    data::write_npz(path("x.npz"), {{"a\n", tensor(1)}});
                  }),
                  "'a\\x0a' is no name of an array");
  EXPECT_FALSE(std::filesystem::exists(path("x.npz")));
  EXPECT_CONTAINS(error_of([&] { data::read_npz(stored("gray.png")); }), "read_npz: '");
  data::write_npz(path("x.npz"), {{"a", ones({3})}});
  std::string bytes = bytes_of(path("x.npz"));
  bytes[bytes.find("NUMPY") + 125] ^= 1;
  EXPECT_CONTAINS(error_of([&] { data::read_npz(write("y.npz", bytes)); }), "has a wrong checksum");
  Function f = function("f", [&](Tensor x) {
    data::write_npy(path("traced.npy"), x);
    return x;
  });
  EXPECT_THROW(f(tensor(1.f)), TraceError);
}

TEST_F(NpyTest, MutatedFilesAreReadOrRefused) {
  std::mt19937 draw(3);
  const std::string seeds[] = {bytes_of(stored("float32.npy")), bytes_of(stored("fortran.npy")),
                               bytes_of(stored("uint64_big.npy")), bytes_of(stored("plain.npz")),
                               bytes_of(stored("compressed.npz"))};
  int read = 0;
  for (int i = 0, count = mutations(500); i < count; ++i) {
    const bool archive = i % 5 >= 3;
    const std::string file = write("a", mutated(seeds[i % 5], draw));
    try {
      if (archive)
        read += static_cast<int>(data::read_npz(file).size());
      else
        read += data::read_npy(file).defined();
    } catch (const UserError& error) {
      EXPECT_CONTAINS(std::string(error.what()), archive ? "read_npz: '" : "read_npy: '");
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace stet

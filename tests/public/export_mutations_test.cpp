// Exported files with anything changed in them, checksums put right: an error or a function, never a crash, never more
// memory than the file has.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>

#include "exported_files.h"

using namespace stet;

namespace {

struct Named {
  std::string name, bytes;
};

Tensor sample(std::initializer_list<Dim> sizes) { return random::stateless_normal(Shape(sizes), {1, 7}); }

template <class F, class... Specs>
Named made(const Folder& folder, const char* name, F body, Specs... specs) {
  const std::string path = folder / name;
  export_function(path, function(name, body), ArgumentSpec(specs)...);
  return {name, bytes_of(path)};
}

/// Files that have all kinds of nodes.
std::vector<Named> seeds(const Folder& folder) {
  std::vector<Named> out;
  const TensorSpec rows{f32, {dyn("n"), 4}}, images{f32, {dyn("n"), 6, 6, 2}}, line{f32, {dyn("n")}};
  Variable w(sample({4, 3}), {.name = "w"}), count(tensor(std::int64_t{0}), {.trainable = false, .name = "count"});
  out.push_back(made(
      folder, "dense",
      [=](Tensor x) {
        count.assign_add(std::int64_t{1});
        return softmax(matmul(x, w) + 1);
      },
      rows));
  out.push_back(made(
      folder, "branches",
      [](Tensor x) {
        if (any(x > 100)) throw UserError("too large");
        return sum(x) > 0 ? reshape(x, {x.dim(0) * 2, 2}) : reshape(-x, {x.dim(0) * 2, 2});
      },
      rows));
  out.push_back(made(
      folder, "loops",
      [](Tensor x) {
        auto [last, all] = scan([](Tensor s, Tensor row) { return std::pair(tanh(s + row), s * row); }, zeros({4}), x);
        return std::tuple(for_loop(
                              3, [](Tensor, Tensor s) { return s / 2; }, last),
                          all);
      },
      rows));
  out.push_back(made(
      folder, "images",
      [](Tensor x) {
        Tensor y = conv2d(x, ones({3, 3, 2, 3}), {.padding = "same"});
        return max_pool(pad(y, {{0, 0}, {1, 1}, {1, 1}, {0, 0}}), {2, 2});
      },
      images));
  out.push_back(made(
      folder, "indices",
      [](Tensor x) {
        Tensor order = argsort(x), chosen = gather(x, order);
        return std::tuple(scatter_add(zeros({9}), cast(clip(chosen, 0, 8), i64), x), nonzero(x > 0), top_k(x, 1).values,
                          one_hot(tensor({1, 2}), 3), cumsum(x, 0), concat({x, x[{Range{.step = -1}}]}, 0),
                          x[{range(0, (x.dim(0) + 1) / 2)}]);
      },
      line));
  out.push_back(made(
      folder, "gradients",
      [=](Tensor x) {
        GradientTape tape;
        Tensor loss = mean(square(matmul(x, w)));
        w.assign_sub(0.1f * tape.gradient(loss, w));
        print("loss", loss);
        assert_that(loss < 1e6f, "finite");
        return loss + random::uniform({}) + sum(linalg::svd(matmul(x, w)).s);
      },
      rows));
  auto own = custom_gradient([](Tensor x) { return std::pair(x * 3, [x](Tensor d) { return d * x; }); });
  out.push_back(made(
      folder, "custom", [=](Tensor x) { return own(x) * 2; }, line));
  return out;
}

/// Where texts stand: a length of 4 bytes, and as many characters that can be read.
std::vector<std::pair<std::size_t, std::size_t>> texts_in(const std::string& file, std::size_t end) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (std::size_t at = 128; at + 5 < end; ++at) {
    std::uint32_t length = 0;
    std::memcpy(&length, file.data() + at, 4);
    if (length == 0 || length > 40 || at + 4 + length > end) continue;
    bool readable = true;
    for (std::size_t i = 0; i < length; ++i) {
      const char c = file[at + 4 + i];
      readable = readable && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
    }
    if (readable) out.push_back({at, length});
  }
  return out;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::string changed(std::string file) {
    std::uint64_t head = 0;
    std::memcpy(&head, file.data() + 16, 8);
    std::size_t end = 128 + head;
    for (int i = 1 + below(3); i > 0; --i) {
      const std::size_t at = 128 + below(end - 128);
      switch (below(11)) {
        case 0:
          file[at] = static_cast<char>(below(256));
          break;
        case 1:
          file[at] = static_cast<char>(file[at] + (below(2) ? 1 : -1));
          break;
        case 2:
          put(file, at, end, interesting_);
          break;
        case 3:
          put(file, at, end, std::vector<std::uint32_t>{static_cast<std::uint32_t>(below(40))});
          break;
        case 4: {  // a text for another one of the file
          auto texts = texts_in(file, end);
          if (texts.size() < 2) break;
          auto [to, length] = texts[below(texts.size())];
          auto [from, other] = texts[below(texts.size())];
          const std::string text = file.substr(from, other + 4);
          file.replace(to, length + 4, text);
          end = end + text.size() - (length + 4);
          break;
        }
        case 8: {  // another op, primitive or dtype
          auto texts = texts_in(file, end);
          if (texts.empty()) break;
          auto [to, length] = texts[below(below(2) ? texts.size() : std::min<std::size_t>(texts.size(), 40))];
          const std::string word = words_[below(words_.size())];
          const auto count = static_cast<std::uint32_t>(word.size());
          file.replace(to, length + 4, std::string(reinterpret_cast<const char*>(&count), 4) + word);
          end = end + word.size() - length;
          break;
        }
        case 9: {  // a small number for a small number
          const std::size_t place = next_small(file, at, end);
          if (place < end) file[place] = static_cast<char>(below(8));
          break;
        }
        case 5: {  // a piece for another one, of the same length
          const std::size_t length = 1 + below(24), from = 128 + below(end - 128);
          if (std::max(at, from) + length > end) break;
          file.replace(at, length, file.substr(from, length));
          break;
        }
        case 6: {  // gone
          const std::size_t length = std::min<std::size_t>(1 + below(12), end - at);
          if (end - 128 <= length) break;
          file.erase(at, length);
          end -= length;
          break;
        }
        case 7: {  // twice
          const std::size_t length = std::min<std::size_t>(1 + below(60), end - at);
          file.insert(at, file.substr(at, length));
          end += length;
          break;
        }
        default: {  // elements, and what lies behind them
          const std::size_t place = below(file.size());
          if (place >= end) file[place] = static_cast<char>(below(256));
          break;
        }
      }
    }
    // The elements stay where they were aligned to, as far as may be.
    const std::uint64_t now = end - 128;
    std::memcpy(file.data() + 16, &now, 8);
    align(file, end);
    put_checksums_right(file);
    return file;
  }

  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

 private:
  void put(std::string& file, std::size_t at, std::size_t end, const std::vector<std::uint32_t>& values) {
    if (at + 4 > end) return;
    const std::uint32_t value = values[below(values.size())];
    std::memcpy(file.data() + at, &value, 4);
  }
  /// The next byte that may be the first of a small number.
  static std::size_t next_small(const std::string& file, std::size_t at, std::size_t end) {
    while (at + 4 < end && !(file[at] > 0 && file[at] < 16 && file[at + 1] == 0)) ++at;
    return at + 4 < end ? at : end;
  }
  /// Zeros between the head and the elements, up to the next multiple of 64.
  static void align(std::string& file, std::size_t end) {
    std::size_t next = end;
    while (next < file.size() && next < end + 64 && file[next] == 0) ++next;
    const std::size_t wanted = (end + 63) / 64 * 64;
    file.replace(end, next - end, std::string(wanted - end, '\0'));
  }

  std::mt19937_64 random_;
  const std::vector<std::string> words_ = {"sum",
                                           "mean",
                                           "max",
                                           "argmax",
                                           "any",
                                           "prod",
                                           "cumsum",
                                           "cummax",
                                           "cumprod",
                                           "sort",
                                           "top_k",
                                           "searchsorted",
                                           "gather",
                                           "take_along_axis",
                                           "scatter_add",
                                           "scatter_max",
                                           "put_along_axis",
                                           "reshape",
                                           "broadcast_to",
                                           "slice",
                                           "transpose",
                                           "reverse",
                                           "concat",
                                           "pad",
                                           "conv",
                                           "conv_input",
                                           "conv_filter",
                                           "max_pool",
                                           "pool_pick",
                                           "pool_place",
                                           "average_pool",
                                           "pool_spread",
                                           "svd",
                                           "svd_full",
                                           "qr",
                                           "lu",
                                           "eigh",
                                           "eigvalsh",
                                           "cholesky",
                                           "det",
                                           "slogdet",
                                           "solve",
                                           "pinv",
                                           "matmul",
                                           "nonzero",
                                           "one_hot",
                                           "uniform",
                                           "normal",
                                           "randint",
                                           "random_bits",
                                           "random_gamma",
                                           "dynamic_slice",
                                           "dynamic_update_slice",
                                           "extract_patches",
                                           "band_part",
                                           "add",
                                           "subtract",
                                           "divide",
                                           "modulo",
                                           "power",
                                           "floor",
                                           "exp",
                                           "erfinv",
                                           "digamma",
                                           "fma",
                                           "less",
                                           "equal",
                                           "logical_and",
                                           "logical_not",
                                           "shift_left",
                                           "select",
                                           "cast",
                                           "bitcast",
                                           "select_rarely",
                                           "operand",
                                           "index",
                                           "alias",
                                           "part",
                                           "size",
                                           "map",
                                           "cond",
                                           "loop",
                                           "input",
                                           "constant",
                                           "print",
                                           "assert_that",
                                           "custom_gradient",
                                           "bool",
                                           "u8",
                                           "i8",
                                           "i16",
                                           "i32",
                                           "i64",
                                           "f16",
                                           "bf16",
                                           "f32",
                                           "f64"};
  const std::vector<std::uint32_t> interesting_ = {0,    1,      2,          8,          9,         0x7f,
                                                   0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
};

/// Calls with small tensors of the types that it says; nothing if they are not small.
std::vector<Tensor> small_arguments(const ExportedFunction& f) {
  std::vector<Tensor> out;
  for (const TensorSpec& input : f.inputs()) {
    std::vector<Dim> sizes;
    std::int64_t count = 1;
    for (const DimSpec& dim : input.shape.dims) {
      const std::int64_t size = dim.size.value_or(3);
      if (size > 1000 || (count *= std::max<std::int64_t>(size, 1)) > 10000) return {};
      sizes.push_back(size);
    }
    out.push_back(cast(ones(Shape(sizes)), input.dtype));
  }
  return out;
}

TEST(ExportMutations, AreErrorsOrFunctions) {
  const char* given = std::getenv("STET_MUTATIONS");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const int usual = 500;
#else
  const int usual = 1500;
#endif
  const int count = given ? std::atoi(given) : usual;
  const char* from = std::getenv("STET_MUTATION_SEED");
  const std::uint64_t first =
      from ? std::strtoull(from, nullptr, 10)
           : static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1000000000;
  std::cout << "seed " << first << ", " << count << " files (STET_MUTATION_SEED, STET_MUTATIONS)\n";
  on_retrace([](const RetraceEvent&) {});
  on_print([](const std::string&) {});
  Folder folder;
  const std::vector<Named> files = seeds(folder);
  for (const Named& file : files) {
    write_bytes(folder / "same", file.bytes);
    ASSERT_NO_THROW(load_function(folder / "same")) << file.name;
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // What is asked for beyond that is refused, and would fail the test where it is taken without being asked for.
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit limited = before;
  limited.rlim_cur = std::min<rlim_t>(before.rlim_cur, rlim_t{6} << 30);
  setrlimit(RLIMIT_AS, &limited);
#endif
  int loaded = 0, called = 0;
  std::map<std::string, int> reasons;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    Mutator mutate(seed);
    const Named& file = files[mutate.below(files.size())];
    SCOPED_TRACE(text("STET_MUTATION_SEED=", seed, " STET_MUTATIONS=1, of ", file.name));
    write_bytes(folder / "mutated", mutate.changed(file.bytes));
    try {
      ExportedFunction f = load_function(folder / "mutated");
      ++loaded;
      // A loop may have been told to go on for ever, as a program may.
      if (f.graph().find("= loop") != std::string::npos) continue;
      std::vector<Tensor> arguments = small_arguments(f);
      if (arguments.size() != f.inputs().size()) continue;
      GradientTape tape;
      for (const Tensor& argument : arguments)
        if (is_floating(argument.dtype())) tape.watch(argument);
      std::vector<Tensor> given = f(arguments);
      ++called;
      if (!given.empty() && is_floating(given[0].dtype()) && !arguments.empty() && is_floating(arguments[0].dtype()))
        tape.gradient(sum(given[0]), arguments[0]);
    } catch (const UserError& error) {
      const std::string what = error.what();
      if (what.find("load_function: '") == 0) ++reasons[what.substr(what.find("': ") + 3, 24)];
    } catch (const VerifyError& error) {
      // What a changed program gives may be nothing but rounding errors, the gradient of sum(softmax(x)) say, which are
      // others when it runs eagerly.
      const std::string what = error.what();
      auto number = [&](const char* side) {
        const std::size_t at = what.find(side);
        return at == std::string::npos ? std::nan("") : std::atof(what.c_str() + at + std::string(side).size());
      };
      EXPECT_LT(std::abs(number("\n  eager ") - number("\n  traced ")), 1e-5) << what;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "another exception: " << error.what();
    }
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  setrlimit(RLIMIT_AS, &before);
#endif
  on_print({});
  on_retrace({});
  std::cout << loaded << " loaded, " << called << " were called, errors of " << reasons.size() << " kinds\n";
  if (count >= 500) {
    EXPECT_GT(reasons.size(), 15u);
  }
}

TEST(ExportMutations, ChecksumsFindEveryChange) {
  Folder folder;
  Variable w(sample({4, 3}), {.name = "w"});
  export_function(folder / "f.stet", function("f(x)", [=](Tensor x) { return matmul(x, w); }), {f32, {dyn, 4}});
  const std::string good = bytes_of(folder / "f.stet");
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    write_bytes(folder / "bad", bad);
    EXPECT_NE(error_of([&] { load_function(folder / "bad"); }), "no error") << "byte " << at;
  }
  for (std::size_t length = 0; length < good.size(); length += length < 200 ? 1 : 37) {
    write_bytes(folder / "bad", good.substr(0, length));
    EXPECT_NE(error_of([&] { load_function(folder / "bad"); }), "no error") << length << " bytes";
  }
  write_bytes(folder / "bad", good + "x");
  EXPECT_CONTAINS(error_of([&] { load_function(folder / "bad"); }), "but should have");
}

TEST(ExportMutations, SizesBeyondTheFile) {
  Folder folder;
  Tensor large = sample({64, 64});
  export_function(folder / "f.stet", function("f(x)", [=](Tensor x) { return x + large; }), {f32, {64, 64}});
  const std::string good = bytes_of(folder / "f.stet");
  // The one tensor of 64 times 64: sizes, place and bytes as they are written.
  const std::int64_t sizes[] = {64, 64};
  const std::size_t at = good.find(std::string(reinterpret_cast<const char*>(sizes), sizeof sizes));
  ASSERT_NE(at, std::string::npos);
  for (std::int64_t size : {std::int64_t{1} << 20, std::int64_t{1} << 32, std::int64_t{1} << 40, std::int64_t{1} << 61,
                            std::int64_t{-1}, INT64_MAX}) {
    for (bool with_bytes : {false, true}) {
      std::string bad = good;
      std::memcpy(bad.data() + at, &size, 8);
      const std::uint64_t bytes = static_cast<std::uint64_t>(size) * 64 * 4;
      if (with_bytes) std::memcpy(bad.data() + at + 24, &bytes, 8);
      put_checksums_right(bad);
      write_bytes(folder / "bad", bad);
      const std::string error = error_of([&] { load_function(folder / "bad"); });
      EXPECT_CONTAINS(error, "load_function: '");
      EXPECT_CONTAINS(error, "a tensor");
    }
  }
}

TEST(ExportMutations, IndicesOutOfRangeAreErrorsOfTheCall) {
  Folder folder;
  auto body = [](Tensor x) { return gather(x, tensor({std::int64_t{1}, std::int64_t{7}, std::int64_t{2}})); };
  export_function(folder / "f.stet", function("f(x)", body), {f32, {dyn}});
  const std::string good = bytes_of(folder / "f.stet");
  const std::int64_t indices[] = {1, 7, 2};
  const std::size_t at = good.find(std::string(reinterpret_cast<const char*>(indices), sizeof indices));
  ASSERT_NE(at, std::string::npos);
  for (std::int64_t index : {std::int64_t{8}, std::int64_t{-1}, std::int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    std::string bad = good;
    std::memcpy(bad.data() + at + 8, &index, 8);
    put_checksums_right(bad);
    write_bytes(folder / "bad", bad);
    ExportedFunction f = load_function(folder / "bad");
    EXPECT_CONTAINS(error_of([&] { f({ones({8})}); }), text("'indices' holds index ", index, " at position 1"));
  }
}

}  // namespace

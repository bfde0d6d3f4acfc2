// A pipeline over 60,000 image files: decode, augment, shuffle, batch, prefetch. Its peers are in image_pipeline.py.
//
//   image_pipeline write FOLDER          Fashion-MNIST as PNG files in class folders
//   image_pipeline epochs FOLDER [n]     passes over them: seconds, and the mean of all pixels
//   image_pipeline train FOLDER [n]      epochs of fit, by turns, on the pipeline, on one that keeps what it
//                                        decoded, and on the same images in memory
//   image_pipeline same FOLDER           losses of a training with 0, 1 and 2 threads of the pipeline, with and without
//                                        prefetch: they must not differ
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/bench.h"
#include "stet/stet.h"

namespace {

using namespace stet;
namespace fs = std::filesystem;

constexpr std::int64_t batch_size = 64;

void write(const std::string& folder) {
  const std::string from = "/usr/share/datasets/fashion-mnist/train";
  Tensor images = data::read_idx(from + "-images-idx3-ubyte.gz"),
         labels = data::read_idx(from + "-labels-idx1-ubyte.gz");
  std::vector<int> classes = labels.to_vector<int>();
  for (int label = 0; label < 10; ++label) fs::create_directories(folder + "/" + std::to_string(label));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "/%d/%05zu.png", classes[i], i);
    data::write_png(folder + name, images[static_cast<std::int64_t>(i)]);
  }
}

/// A random part of the image after padding by 2, perhaps turned left to right; 0 to 1.
std::tuple<Tensor, Tensor> augment(Tensor image, Tensor label) {
  Tensor padded = pad(image, {{2, 2}, {2, 2}, {0, 0}});
  Tensor corner = concat({random::randint({2}, 0, 5), zeros({1}, i64)}, 0);
  Tensor part = dynamic_slice(padded, corner, {28, 28, 1});
  Tensor turned = where(random::uniform({}) < 0.5f, reverse(part, 1), part);
  return {cast(turned, f32) / 255, label};
}

auto pipeline(const std::string& folder, std::int64_t threads, std::int64_t ahead) {
  auto batches = data::image_folder(folder, {.color_mode = "grayscale", .image_size = {28, 28}, .seed = 7, .dtype = u8})
                     .map(augment, {.name = "augment", .num_parallel_calls = threads})
                     .batch(batch_size);
  return ahead > 0 ? batches.prefetch(ahead) : batches;
}

void epochs(const std::string& folder, int count) {
  auto train = pipeline(folder, 2, 2);
  for (int epoch = 0; epoch < count; ++epoch) {
    double begin = bench::now_ns(), total = 0;
    std::int64_t images = 0;
    for (auto [image, label] : train) {
      const std::int64_t size = image.dim(0).value();
      total += mean(image).item<double>() * static_cast<double>(size);
      images += size;
    }
    const double seconds = (bench::now_ns() - begin) * 1e-9;
    std::printf("epoch %d: %.3f s, %.0f images a second, mean %.5f\n", epoch + 1, seconds,
                static_cast<double>(images) / seconds, total / static_cast<double>(images));
    std::fflush(stdout);
  }
  std::printf("%s", train.explain().c_str());
}

keras::Sequential cnn() {
  keras::Sequential model{keras::Input({28, 28, 1})};
  for (int filters : {32, 64}) {
    model.add(keras::Conv2D(filters, 3, {.activation = relu}));
    model.add(keras::MaxPooling2D());
  }
  model.add(keras::Flatten());
  model.add(keras::Dense(128, {.activation = relu}));
  model.add(keras::Dense(10));
  model.compile({.optimizer = keras::Adam(1e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  return model;
}

void train(const std::string& folder, int count) {
  auto files = pipeline(folder, 2, 2);
  auto cached = data::image_folder(folder, {.color_mode = "grayscale", .image_size = {28, 28}, .dtype = u8})
                    .cache()
                    .shuffle(60'000, {.seed = 7})
                    .map(augment, {.name = "augment", .num_parallel_calls = 2})
                    .batch(batch_size)
                    .prefetch(2);
  std::vector<Tensor> images, labels;
  for (auto [image, label] : files) images.push_back(image), labels.push_back(label);
  auto memory =
      data::from_tensor_slices(concat(images, 0), concat(labels, 0)).shuffle(60'000, {.seed = 7}).batch(batch_size);
  auto model = cnn();
  auto seconds = [&](const auto& data) {
    double begin = bench::now_ns();
    model.fit(data, {.epochs = 1, .verbose = 0});
    return (bench::now_ns() - begin) * 1e-9;
  };
  seconds(memory.take(10));
  for (int epoch = 0; epoch < count; ++epoch) {
    const double of_files = seconds(files), of_cached = seconds(cached), of_memory = seconds(memory);
    std::printf(
        "epoch %d: %.2f s from files, %.2f s with a cache of what was decoded, %.2f s from memory: %.3f, %.3f\n",
        epoch + 1, of_files, of_cached, of_memory, of_files / of_memory, of_cached / of_memory);
    std::fflush(stdout);
  }
  std::printf("%s", files.explain().c_str());
}

void same(const std::string& folder) {
  for (std::int64_t threads : {0, 1, 2})
    for (std::int64_t ahead : {0, 2}) {
      keras::clear_session();
      random::seed(3);
      auto history = cnn().fit(pipeline(folder, threads, ahead).take(40), {.epochs = 2, .verbose = 0});
      std::printf("%d threads, prefetch %d: losses", static_cast<int>(threads), static_cast<int>(ahead));
      for (double loss : history["loss"]) std::printf(" %.9g", loss);
      std::printf("\n");
    }
}

}  // namespace

int main(int argc, char** argv) {
  set_thread_count(2);
  const std::string what = argc > 2 ? argv[1] : "";
  const int count = argc > 3 ? std::atoi(argv[3]) : 3;
  if (what == "write")
    write(argv[2]);
  else if (what == "epochs")
    epochs(argv[2], count);
  else if (what == "train")
    train(argv[2], count);
  else if (what == "same")
    same(argv[2]);
  else
    return std::fprintf(stderr, "image_pipeline write|epochs|train|same FOLDER [count]\n"), 2;
}

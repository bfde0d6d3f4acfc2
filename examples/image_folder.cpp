// A folder of pictures, one folder in it for each kind, as most people have their own data: read, decoded and resized
// while a small convolutional network is trained on it.
//
//   image_folder [--epochs 8] [folder]
//
// Without a folder the program draws one: circles, squares and triangles of many sizes and colours, as PNG and JPEG.
#include <stet/stet.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace stet;

namespace {

constexpr int side = 32;  // what pictures are resized to

/// A picture of one shape somewhere, in two colours with noise.
Tensor draw_shape(int shape, std::mt19937& draw) {
  auto between = [&](double low, double high) { return low + (high - low) * (draw() / 4294967296.0); };
  const int height = int(between(28, 60)), width = int(between(28, 60));
  const double radius = between(0.25, 0.4) * std::min(height, width);
  const double middle_y = between(radius, height - radius), middle_x = between(radius, width - radius);
  const double ground = between(0, 90), ink = between(150, 250),
               tint[] = {between(0.6, 1), between(0.6, 1), between(0.6, 1)};
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double dy = (y - middle_y) / radius, dx = (x - middle_x) / radius;
      const bool inside = shape == 0   ? dx * dx + dy * dy < 1
                          : shape == 1 ? std::max(std::abs(dx), std::abs(dy)) < 0.85
                                       : dy < 0.8 && std::abs(dx) < (dy + 1) * 0.55;
      for (double part : tint)
        pixels.push_back(std::uint8_t(std::clamp((inside ? ink : ground) * part + between(-20, 20), 0.0, 255.0)));
    }
  return tensor(pixels, {height, width, 3});
}

const std::vector<std::string> shapes = {"circle", "square", "triangle"};

/// Pictures to learn from, in a folder of the system's temporary ones.
std::string drawn_folder(int count) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("stet_shapes_" + std::to_string(std::random_device{}()));
  std::mt19937 draw(1);
  for (int shape = 0; shape < int(shapes.size()); ++shape) {
    fs::create_directories(folder / shapes[shape]);
    for (int i = 0; i < count; ++i) {
      const std::string name = folder / shapes[shape] / std::to_string(i);
      if (i % 2)
        data::write_png(name + ".png", draw_shape(shape, draw));
      else
        data::write_jpeg(name + ".jpg", draw_shape(shape, draw), {.quality = 90});
    }
  }
  return folder;
}

int train(const std::string& folder, int epochs, bool drawn) {
  random::seed(1);
  data::ImageFolderOptions options{
      .image_size = {side, side}, .seed = 7, .validation_split = 0.2, .subset = "training"};
  auto training = data::image_folder(folder, options);
  options.subset = "validation";
  auto validation = data::image_folder(folder, options);
  std::cout << training.file_paths().size() << " pictures to learn from, " << validation.file_paths().size()
            << " to test with:";
  for (const std::string& name : training.class_names()) std::cout << " " << name;
  std::cout << "\n";

  const auto kinds = std::int64_t(training.class_names().size());
  keras::Sequential model{keras::Input({side, side, 3}),
                          keras::Rescaling(1.0 / 255),
                          keras::Conv2D(16, 3, {.padding = "same", .activation = relu}),
                          keras::MaxPooling2D(),
                          keras::Conv2D(32, 3, {.padding = "same", .activation = relu}),
                          keras::MaxPooling2D(),
                          keras::Conv2D(32, 3, {.padding = "same", .activation = relu}),
                          keras::MaxPooling2D(),
                          keras::Flatten(),
                          keras::Dropout(0.2),
                          keras::Dense(kinds)};
  model.compile({.optimizer = keras::Adam(3e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  // Files are read and decoded while the step before is computed.
  auto history = model.fit(training.batch(32).prefetch(2),
                           {.epochs = epochs, .verbose = 2, .validation_data = validation.batch(32)});

  // One picture of each kind, read as the dataset reads it.
  std::vector<std::string> some;
  for (const std::string& name : validation.class_names())
    for (const std::string& file : validation.file_paths())
      if (file.find("/" + name + "/") != std::string::npos) {
        some.push_back(file);
        break;
      }
  for (Tensor batch : data::images(some, {.image_size = {side, side}}).batch(std::int64_t(some.size()))) {
    Tensor guess = argmax(model.predict(batch), 1);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::filesystem::path file = some[i];
      std::cout << "a " << file.parent_path().filename().string() << " (" << file.extension().string()
                << ") is taken for a " << validation.class_names()[guess.item<std::size_t>({std::int64_t(i)})] << "\n";
    }
  }
  const double accuracy = history["val_accuracy"].back();
  std::printf("accuracy on pictures that were not seen: %.1f %%\n", 100 * accuracy);
  if (!drawn) return 0;
  const bool fine = accuracy > 0.9;
  std::cout << (fine ? "as it should be: more than 90 % are recognised\n" : "expected were more than 90 %\n");
  return fine ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int epochs = 8;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--epochs" && i + 1 < argc)
      epochs = std::atoi(argv[++i]);
    else
      folder = argv[i];
  }
  const bool drawn = folder.empty();
  int status = 1;
  try {
    if (drawn) folder = drawn_folder(150);
    status = train(folder, epochs, drawn);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
  }
  if (drawn) std::filesystem::remove_all(folder);
  return status;
}

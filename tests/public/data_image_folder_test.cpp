// Folders of images, compared with Keras's image_dataset_from_directory on the same files.
#include <algorithm>
#include <set>
#include <sstream>

#include "data_files.h"

namespace stet {
namespace {

using ImageFolderTest = FilesTest;

std::string stem(const std::string& path) { return std::filesystem::path(path).stem(); }

void expect_like_keras(const std::string& name, data::ImageFolderOptions options, double tolerance) {
  options.shuffle = false;
  auto expected = data::read_npz(stored("folder_" + name + ".npz"));
  // By "nearest" Keras leaves them u8.
  Tensor images = cast(expected.at("x"), f32);
  auto dataset = data::image_folder(stored("folder"), options);
  EXPECT_EQ(dataset.class_names(), (std::vector<std::string>{"cat", "dog", "emu"}));
  EXPECT_EQ(dataset.cardinality(), 12);
  for (auto [x, y] : dataset.batch(100)) {
    ASSERT_EQ(type_text(x), type_text(images)) << name;
    EXPECT_LE(max(abs(x - images)).item<double>(), tolerance) << name;
    EXPECT_EQ(y.to_vector<double>(), expected.at("y").to_vector<double>()) << name;
  }
}

TEST_F(ImageFolderTest, IsWhatKerasReads) {
  expect_like_keras("bilinear", {.image_size = {6, 8}}, 2e-5);
  expect_like_keras("nearest", {.image_size = {6, 8}, .interpolation = "nearest"}, 0);
  // TensorFlow looks its weights up in a table of 1024.
  expect_like_keras("bicubic", {.image_size = {6, 8}, .interpolation = "bicubic"}, 0.02);
  expect_like_keras("cropped", {.image_size = {6, 8}, .crop_to_aspect_ratio = true}, 2e-5);
  expect_like_keras("padded", {.image_size = {6, 8}, .pad_to_aspect_ratio = true}, 2e-5);
  expect_like_keras("padded_wide", {.image_size = {5, 21}, .pad_to_aspect_ratio = true}, 2e-5);
  expect_like_keras("larger", {.image_size = {23, 17}}, 2e-5);
  expect_like_keras("rgba", {.color_mode = "rgba", .image_size = {6, 8}}, 2e-5);
  expect_like_keras("categorical", {.label_mode = "categorical", .image_size = {6, 8}}, 2e-5);
}

TEST_F(ImageFolderTest, ResizesAsTheOpDoes) {
  for (auto [height, width] : {std::pair{6, 8}, {23, 17}, {1, 1}, {9, 14}, {40, 3}})
    for (const char* method : {"bilinear", "nearest", "bicubic"}) {
      auto dataset =
          data::images(stored("folder/cat/cat0.png"), {.image_size = {height, width}, .interpolation = method});
      Tensor image = data::read_image(stored("folder/cat/cat0.png"));
      Tensor expected = cast(resize(reshape(image, {1, 9, 14, 3}), height, width, {.method = method})[0], f32);
      for (Tensor x : dataset) expect_same(x, expected.contiguous(), method);
      auto rounded = data::images(stored("folder/cat/cat0.png"),
                                  {.image_size = {height, width}, .interpolation = method, .dtype = u8});
      for (Tensor x : rounded) expect_same(x, cast(clip(round(expected), 0.f, 255.f), u8).contiguous(), method);
    }
}

TEST_F(ImageFolderTest, PutsAsideWhatKerasPutsAside) {
  std::istringstream lines(bytes_of(stored("folder_splits.txt")));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    std::istringstream words(line);
    std::uint64_t seed;
    double part;
    std::string subset;
    words >> seed >> part >> subset;
    std::multiset<std::string> expected, got;
    for (std::string name; words >> name;) expected.insert(name);
    auto dataset = data::image_folder(stored("folder"),
                                      {.image_size = {6, 8}, .seed = seed, .validation_split = part, .subset = subset});
    for (const std::string& file : dataset.file_paths()) got.insert(stem(file));
    EXPECT_EQ(got, expected) << line;
    EXPECT_EQ(dataset.cardinality(), static_cast<std::int64_t>(expected.size()));
  }
  EXPECT_EQ(count, 16);
  // Without a shuffle: the last ones.
  auto last =
      data::image_folder(stored("folder"), {.shuffle = false, .validation_split = 0.25, .subset = "validation"});
  for (const std::string& file : last.file_paths()) EXPECT_EQ(stem(file).substr(0, 3), "emu");
}

TEST_F(ImageFolderTest, OrderAndSeeds) {
  auto order = [](const data::ImageFolder& dataset) {
    std::vector<float> out;
    for (auto [x, y] : dataset) out.push_back(sum(x).item<float>());
    return out;
  };
  auto make = [&](std::optional<std::uint64_t> seed, bool shuffle = true) {
    return data::image_folder(stored("folder"), {.image_size = {6, 8}, .shuffle = shuffle, .seed = seed});
  };
  const std::vector<float> sorted = order(make({}, false));
  EXPECT_EQ(order(make({}, false)), sorted);
  auto one = make(3), two = make(3);
  const std::vector<float> first = order(one), second = order(one);
  EXPECT_NE(first, sorted);
  EXPECT_NE(first, second);
  EXPECT_EQ(order(two), first);
  EXPECT_EQ(order(two), second);
  std::vector<float> all = first, same = sorted;
  std::sort(all.begin(), all.end());
  std::sort(same.begin(), same.end());
  EXPECT_EQ(all, same);
}

TEST_F(ImageFolderTest, LabelsAndClasses) {
  auto turned = data::image_folder(stored("folder"),
                                   {.class_names = {"emu", "cat", "dog"}, .image_size = {2, 2}, .shuffle = false});
  std::vector<int> labels;
  for (auto [x, y] : turned) labels.push_back(y.item<int>());
  EXPECT_EQ(labels, (std::vector<int>{0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2}));
  std::vector<std::int64_t> list = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  auto listed = data::image_folder(stored("folder"), {.labels = list, .image_size = {2, 2}, .shuffle = false});
  EXPECT_EQ(listed.class_names(), (std::vector<std::string>{"0", "1", "2"}));
  labels.clear();
  for (auto [x, y] : listed) labels.push_back(y.item<int>());
  EXPECT_EQ(labels, (std::vector<int>(list.begin(), list.end())));
  for (const char* name : {"a/x.PNG", "b/y.jpeg"}) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    data::write_png(path(name), zeros({3, 3}, u8));  // what a file is shows its begin, not its name
  }
  std::filesystem::create_directory(path(".hidden"));
  for (auto [x, y] :
       data::image_folder(folder, {.label_mode = "binary", .color_mode = "grayscale", .image_size = {2, 2}}).batch(2)) {
    EXPECT_EQ(type_text(x), "f32[2,2,2,1]");
    EXPECT_EQ(type_text(y), "f32[2]");
    EXPECT_EQ(sum(y).item<float>(), 1);
  }
}

TEST_F(ImageFolderTest, FilesAreInTheOrderOfTheirFoldersPaths) {
  // As os.walk's roots sorted: "a-b" is before "a/x", because '-' is before '/'.
  const std::vector<std::string> names = {"k/9.png", "k/a/1.png", "k/a-b/0.png", "k/a/x/0.png"};
  for (const std::string& name : names) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    data::write_png(path(name), zeros({1, 1}, u8));
  }
  std::vector<std::string> expected;
  for (const std::string& name : names) expected.push_back(path(name));
  EXPECT_EQ(data::image_folder(folder, {.shuffle = false}).file_paths(), expected);
  EXPECT_EQ(data::image_folder(folder + "//", {.shuffle = false}).file_paths(), expected);
}

/// As Keras has it: a class may be a link to a folder, a link to a folder inside of a class is not followed.
TEST_F(ImageFolderTest, LinksToFolders) {
  for (const char* name : {"far", "photos", "photos/b"}) std::filesystem::create_directory(path(name));
  data::write_png(path("far/1.png"), zeros({2, 2}, u8));
  data::write_png(path("photos/b/2.png"), zeros({2, 2}, u8));
  std::filesystem::create_symlink("../far", path("photos/a"));
  std::filesystem::create_symlink("../../far", path("photos/b/inner"));
  std::filesystem::create_symlink("..", path("far/up"));
  std::filesystem::create_symlink("nowhere", path("photos/gone"));
  auto dataset = data::image_folder(path("photos"), {.image_size = {2, 2}, .shuffle = false});
  EXPECT_EQ(dataset.class_names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(dataset.file_paths(), (std::vector<std::string>{path("photos/a/1.png"), path("photos/b/2.png")}));
  auto linked = data::image_folder(path("far/up/photos"), {.image_size = {2, 2}});
  EXPECT_EQ(linked.class_names().size(), 2u);
}

TEST_F(ImageFolderTest, DamagedImagesAreErrorsInTheirPlace) {
  std::filesystem::create_directory(path("a"));
  for (int i = 0; i < 3; ++i) data::write_png(path("a/" + std::to_string(i) + ".png"), full({3, 3}, i, u8));
  write("a/1.png", "no picture");
  auto dataset = data::image_folder(folder, {.image_size = {2, 2}, .shuffle = false});
  for (bool ahead : {false, true}) {
    int count = 0;
    EXPECT_CONTAINS(error_of([&] {
                      if (ahead)
                        for (auto [x, y] : dataset.prefetch(2)) count += x.defined() && y.defined();
                      else
                        for (auto [x, y] : dataset) count += x.defined() && y.defined();
                    }),
                    "image_folder: '" + path("a/1.png") + "': is not a PNG or JPEG, at byte 0");
    EXPECT_EQ(count, 1);
  }
}

TEST_F(ImageFolderTest, Errors) {
  auto of = [&](data::ImageFolderOptions options, const std::string& where = stored("folder")) {
    return error_of([&] { data::image_folder(where, options); });
  };
  EXPECT_CONTAINS(of({}, path("none")), "image_folder: '" + path("none") + "': cannot be opened: No such file");
  EXPECT_CONTAINS(of({}), "no error");
  EXPECT_CONTAINS(of({}, folder), "': has no folders in it, which would be the classes");
  std::filesystem::create_directory(path("a"));
  EXPECT_CONTAINS(of({}, folder), "': has no images in it");
  write("a/x.gif", "");
  EXPECT_CONTAINS(of({}, folder), "/a/x.gif': is neither a PNG nor a JPEG by its name");
  EXPECT_CONTAINS(of({.labels = "none"}), "image_folder: labels is \"none\"");
  EXPECT_CONTAINS(of({.labels = std::vector<std::int64_t>{1}}),
                  "labels has 1 numbers, 'tests/oracle/readers/files/folder' 12 images");
  EXPECT_CONTAINS(of({.label_mode = "float"}), "label_mode \"float\" is not known");
  EXPECT_CONTAINS(of({.label_mode = "binary"}),
                  "label_mode \"binary\" is for two classes, 'tests/oracle/readers/files/folder' has 3");
  EXPECT_CONTAINS(of({.class_names = {"cat"}}), "class_names are 'cat', the folders 'cat', 'dog', 'emu'");
  EXPECT_CONTAINS(of({.color_mode = "hsv"}), "color_mode \"hsv\" is not known");
  EXPECT_CONTAINS(of({.image_size = {0, 3}}), "image_size is {0, 3}");
  EXPECT_CONTAINS(of({.validation_split = 1}), "validation_split is 1");
  EXPECT_CONTAINS(of({.validation_split = 0.5}), "subset is \"\", with a validation_split");
  EXPECT_CONTAINS(of({.subset = "training"}), "subset is given without validation_split");
  EXPECT_CONTAINS(of({.validation_split = 0.5, .subset = "training"}),
                  "validation_split and shuffle are given without a seed");
  EXPECT_CONTAINS(of({.seed = 1, .validation_split = 0.01, .subset = "validation"}), "leaves no images for validation");
  EXPECT_CONTAINS(of({.interpolation = "area"}), "interpolation \"area\" is not known");
  EXPECT_CONTAINS(of({.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}),
                  "crop_to_aspect_ratio and pad_to_aspect_ratio are both given");
  EXPECT_CONTAINS(of({.dtype = f64}), "dtype is f64");
  EXPECT_CONTAINS(of({.decode = {.bits = 16}}), "decode.bits is 16");
  EXPECT_CONTAINS(error_of([] { data::images("a.png", {.color_mode = "x"}); }),
                  "images: color_mode \"x\" is not known");
}

}  // namespace
}  // namespace stet

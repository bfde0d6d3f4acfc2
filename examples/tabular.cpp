// A table as people have them: numbers of several scales, words, values that are missing. From CSV to a network that
// predicts the rent of a flat.
//
//   tabular [--epochs 40] [file.csv]
//
// Without a file the program writes one. What is expected of a file: columns area, rooms, year, city, heating and rent.
#include <stet/stet.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using namespace stet;

namespace {

/// Flats whose rent follows from the rest, with noise; some of it is not known, and some words have commas in them.
void write_flats(const std::string& path, int count) {
  const std::vector<std::string> cities = {"Aachen", "Berlin", "\"Halle, Saale\"", "Jena"};
  const double level[] = {9.5, 13, 7, 8.5};
  const std::vector<std::string> heatings = {"gas", "\"district heating\"", "heat pump"};
  const double cost[] = {0, 40, -60};
  std::mt19937 draw(3);
  auto between = [&](double low, double high) { return low + (high - low) * (draw() / 4294967296.0); };
  std::ofstream out(path);
  out << "# flats, made up\narea,rooms,year,city,heating,rent\n";
  for (int i = 0; i < count; ++i) {
    const int rooms = 1 + int(draw() % 5), year = 1900 + int(draw() % 124);
    const double area = rooms * between(17, 30) + 10;
    const unsigned city = draw() % 4, heating = draw() % 3;
    const double rent = area * level[city] + (year > 1990 ? 150 : 0) + cost[heating] + between(-40, 40);
    char numbers[100];
    std::snprintf(numbers, sizeof numbers, "%.1f,%d,%d,", area, rooms, year);
    std::string row = numbers;
    if (draw() % 10 == 0)
      row = "," + std::to_string(rooms) + "," + std::to_string(year) + ",";  // an area nobody measured
    row += draw() % 20 ? cities[city] : "NA";
    row += "," + heatings[heating] + "," + std::to_string(int(std::lround(rent)));
    out << row << (i % 2 ? "\r\n" : "\n");
  }
}

/// Numbers in the place of those that are missing, and a second column that says where they were.
Tensor filled(const Tensor& column) {
  Tensor x = cast(column, f32), missing = isnan(x);
  Tensor known = where(missing, 0.f, x), count = sum(cast(~missing, f32));
  Tensor whole = where(missing, sum(known) / count, x);
  return stack({whole, cast(missing, f32)}, 1);
}

int run(const std::string& path, int epochs, bool made_up) {
  random::seed(1);
  data::Table flats = data::read_csv(path, {.comment = '#'});
  std::cout << flats.rows() << " flats\n";
  for (const std::string& name : flats.names())
    std::printf("  %-8s %-8s %lld missing\n", name.c_str(),
                flats.is_number(name) ? type_text(flats.numbers(name)).substr(0, 3).c_str() : "strings",
                static_cast<long long>(flats.missing(name)));

  // Words become columns with a 1; one that was not seen while adapting, and one that is missing, have a column too.
  keras::StringLookup city({.output_mode = "one_hot"}), heating({.output_mode = "one_hot"});
  city.adapt(flats.strings("city"));
  heating.adapt(flats.strings("heating"));
  std::cout << "cities:";
  for (const std::string& word : city.get_vocabulary()) std::cout << " '" << word << "'";
  std::cout << "\n";
  Tensor numbers = concat({filled(flats.numbers("area")), flats.matrix({"rooms", "year"})}, 1);
  Tensor words = concat({cast(city(flats.strings("city")), f32), cast(heating(flats.strings("heating")), f32)}, 1);
  Tensor x = concat({numbers, words}, 1), y = expand_dims(cast(flats.numbers("rent"), f32), 1);
  const std::int64_t known = flats.rows() * 4 / 5;
  Tensor train_x = x[Range{.end = known}], train_y = y[Range{.end = known}];
  Tensor test_x = x[Range{.begin = known}], test_y = y[Range{.begin = known}];

  keras::Normalization scaled(-1), rents(-1, {.invert = true});
  scaled.adapt(train_x);
  rents.adapt(train_y);
  keras::Sequential model{
      keras::Input({int(x.dim(1))}),          scaled,          keras::Dense(32, {.activation = relu}),
      keras::Dense(32, {.activation = relu}), keras::Dense(1), rents};
  model.compile({.optimizer = keras::Adam(5e-3), .loss = "mae"});
  auto history = model.fit(train_x, train_y, {.batch_size = 32, .epochs = epochs, .verbose = 0});

  const double error = mean(abs(model.predict(test_x) - test_y)).item<float>();
  const double guess = mean(abs(mean(train_y) - test_y)).item<float>();
  std::printf("error of the rent on %lld flats that were not seen: %.0f (with the mean of all: %.0f)\n",
              static_cast<long long>(flats.rows() - known), error, guess);
  if (!made_up) return 0;
  const bool fine = error < 0.4 * guess;
  std::cout << (fine ? "as it should be: less than 40 % of that\n" : "expected was less than 40 % of that\n");
  return fine ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int epochs = 40;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--epochs" && i + 1 < argc)
      epochs = std::atoi(argv[++i]);
    else
      path = argv[i];
  }
  const bool made_up = path.empty();
  int status = 1;
  try {
    if (made_up) {
      path = std::filesystem::temp_directory_path() / ("stet_flats_" + std::to_string(std::random_device{}()) + ".csv");
      write_flats(path, 1500);
    }
    status = run(path, epochs, made_up);
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
  }
  if (made_up) std::filesystem::remove(path);
  return status;
}

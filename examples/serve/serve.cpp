// Answers requests from eight threads with the model that train.cpp exported: no layer of it is known here.
//
//   serve [spirals.stet]
#include <stet/stet.h>

#include <atomic>
#include <iostream>
#include <thread>

using namespace stet;

int main(int count, char** arguments) {
  const ExportedFunction serve = load_function(count > 1 ? arguments[1] : "spirals.stet");
  std::atomic<int> requests = 0, points = 0, right = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number)
    threads.emplace_back([&, number] {
      for (int request = 0; request < 200; ++request) {
        const int size = 1 + (number + request) % 27;  // as many points as somebody asks for
        Tensor turn = random::stateless_uniform({size}, {number, request}, {.minval = 0.5, .maxval = 7});
        Tensor asked = stack({turn * cos(turn), turn * sin(turn)}, 1) / 7;  // of the spiral with label 1
        Tensor probability = serve({asked})[0];
        ++requests, points += size;
        right += sum(cast(probability > 0.5f, i32)).item<int>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::cout << requests << " requests of 27 sizes by 8 threads, " << serve.trace_count() << " trace\n"
            << 100 * right / points << " % of " << points << " answers are right\n";
}

// A stranger's program: sees only what is installed.
#include <stet/base/version.h>
#include <stet/stet.h>

#include <iostream>

using namespace stet;

int main() {
  std::cout << "stet " << STET_VERSION << "\n";
  Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  Tensor y = relu(matmul(x, x) * 2 + 1);
  std::cout << y << "\n";
  if (y.to_vector<float>() != std::vector<float>{15, 21, 31, 45}) return 1;
  try {
    matmul(x, tensor({{1.f, 2.f, 3.f}}));
  } catch (const UserError& error) {
    std::cout << error.what() << "\n";
    return std::string(error.what()).find("user.cpp:") == std::string::npos;
  }
  return 1;
}

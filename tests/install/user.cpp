// A stranger's program: sees only what is installed.
#include <stet/base/shape.h>
#include <stet/base/version.h>

#include <iostream>

int main() {
  stet::Shape shape{2, 3, 4};
  std::cout << "stet " << STET_VERSION << ", rank " << shape.rank() << "\n";
  return shape.element_count().value() == 24 ? 0 : 1;
}

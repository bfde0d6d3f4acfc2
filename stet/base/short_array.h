// An array whose length is known at run time, on the stack where it is short: calls on the way of every op do not
// allocate for their bookkeeping.
#pragma once
#include <cstddef>
#include <vector>

namespace stet {

/// `count` elements; numbers and pointers begin undefined.
template <class T, std::size_t Few>
class ShortArray {
 public:
  explicit ShortArray(std::size_t count) {
    if (count > Few) many_.resize(count);
  }
  T* data() { return many_.empty() ? few_ : many_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }

 private:
  T few_[Few];
  std::vector<T> many_;
};

}  // namespace stet

#include "stet/core/handle.h"

#include <atomic>

#include "stet/base/inside.h"

namespace stet {
namespace {
std::atomic<std::uint64_t> last_object{0};
}

Body::Body() : object_id_(++last_object) {}
Body::~Body() = default;

}  // namespace stet

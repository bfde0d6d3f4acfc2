// Everything is hidden unless it is part of the public surface.
#pragma once

#define STET_API __attribute__((visibility("default")))

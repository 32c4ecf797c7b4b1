// SPDX-License-Identifier: Apache-2.0
// Where the boxes and lines of a graph's picture go: layers from top to bottom, few crossings,
// lines as straight as they can be. It knows boxes and nets only; graph/svg.cc gives them meaning.
#pragma once

#include <cstddef>
#include <vector>

namespace anymps {

struct Drawing {
  struct Box {
    double width = 0, height = 0;
    double x = 0, y = 0;  // middle of the top edge
  };
  // One line that starts at a box and branches to others, all of which come later in `boxes`.
  struct Net {
    size_t from = 0;
    std::vector<size_t> to;
  };
  // A piece of a net between two neighbouring layers, and what it reaches.
  struct Segment {
    size_t net = 0;
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    bool first = false, last = false;  // starts at the net's box; ends at a box
  };

  std::vector<Box> boxes;
  std::vector<Net> nets;
  std::vector<Segment> segments;  // made by place()
  double width = 0, height = 0;   // made by place()

  void place();
};

}  // namespace anymps

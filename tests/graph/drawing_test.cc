// SPDX-License-Identifier: Apache-2.0
#include "graph/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace anymps {
namespace {

void expect_no_overlap(const Drawing& drawing) {
  for (size_t i = 0; i < drawing.boxes.size(); ++i) {
    const auto& a = drawing.boxes[i];
    EXPECT_GE(a.x - a.width / 2, -0.01);
    EXPECT_LE(a.x + a.width / 2, drawing.width + 0.01);
    EXPECT_LE(a.y + a.height, drawing.height + 0.01);
    for (size_t k = i + 1; k < drawing.boxes.size(); ++k) {
      const auto& b = drawing.boxes[k];
      const bool apart = std::abs(a.x - b.x) + 0.01 >= (a.width + b.width) / 2 ||
                         a.y + a.height <= b.y || b.y + b.height <= a.y;
      EXPECT_TRUE(apart) << i << " and " << k;
    }
  }
}

TEST(Drawing, AChainIsAStraightLine) {
  Drawing drawing;
  for (size_t i = 0; i < 5; ++i) {
    drawing.boxes.push_back({100, 30});
    if (i > 0) drawing.nets.push_back({i - 1, {i}});
  }
  drawing.place();
  for (const auto& piece : drawing.segments) EXPECT_NEAR(piece.x0, piece.x1, 0.01);
  EXPECT_EQ(drawing.segments.size(), 4u);
  expect_no_overlap(drawing);
}

TEST(Drawing, ASkipConnectionPassesBesideTheBoxes) {
  Drawing drawing;
  for (size_t i = 0; i < 5; ++i) drawing.boxes.push_back({100, 30});
  drawing.nets = {{0, {1, 4}}, {1, {2}}, {2, {3}}, {3, {4}}};
  drawing.place();
  expect_no_overlap(drawing);
  for (const auto& piece : drawing.segments) {
    if (piece.x0 != piece.x1) continue;  // the upright pieces
    for (size_t i = 1; i < 4; ++i) {
      const auto& box = drawing.boxes[i];
      const bool through = piece.y0 < box.y + box.height && piece.y1 > box.y &&
                           std::abs(piece.x0 - box.x) < box.width / 2 - 0.01;
      EXPECT_FALSE(through);
    }
  }
}

TEST(Drawing, OrderFollowsTheNets) {
  // Two chains whose boxes come interleaved and swapped must not cross.
  Drawing drawing;
  for (size_t i = 0; i < 6; ++i) drawing.boxes.push_back({80, 30});
  drawing.nets = {{0, {3}}, {1, {2}}, {2, {5}}, {3, {4}}};
  drawing.place();
  const bool left = drawing.boxes[0].x < drawing.boxes[1].x;
  EXPECT_EQ(drawing.boxes[3].x < drawing.boxes[2].x, left);
  EXPECT_EQ(drawing.boxes[4].x < drawing.boxes[5].x, left);
  expect_no_overlap(drawing);
}

TEST(Drawing, ManyBoxesDoNotOverlap) {
  Drawing drawing;
  for (size_t i = 0; i < 300; ++i) {
    drawing.boxes.push_back(
        {60.0 + static_cast<double>(i % 7) * 30, 30.0 + static_cast<double>(i % 3) * 12});
    if (i == 0) continue;
    drawing.nets.push_back({(i - 1) / 2, {i}});
    if (i > 20) drawing.nets.push_back({i - 17, {i}});
  }
  drawing.place();
  expect_no_overlap(drawing);
}

// Each box feeds the last: as many lines pass by a layer as there are boxes above it.
TEST(Drawing, PicturesThatNobodyCanLookAtAreRefused) {
  Drawing drawing;
  for (size_t i = 0; i < 20'000; ++i) {
    drawing.boxes.push_back({80, 30});
    if (i > 0) drawing.nets.push_back({i - 1, {i}});
    if (i > 0) drawing.nets.push_back({i - 1, {19'999}});
  }
  EXPECT_THROW(drawing.place(), Error);
}

}  // namespace
}  // namespace anymps

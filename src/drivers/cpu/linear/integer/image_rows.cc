// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/linear/integer/image_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "drivers/cpu/linear/integer/int_operands.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kSlack = 64;  // bytes behind a copy: whole words are read and written

template <typename T>
T* room(std::vector<T>& memory, int64_t count) {
  if (std::ssize(memory) < count) memory.resize(static_cast<size_t>(count));
  return memory.data();
}

}  // namespace

bool ImageRows::flips() const { return flips_to_unsigned(packing, dtype); }

void ImageRows::plan() {
  if (window.pixels()) {  // they are one line
    const Triple line{1, 1, rows()};
    window = {1, line, line, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {}};
  }
  const int64_t joined = window.dilations[2] == 1 ? window.taps[2] : 1;
  run_taps_ = groups == 1 ? joined : 1;
  in_place_ = window.stays_inside() && packing.bytes && !flips() && run_depth() % 4 == 0;
  if (!in_place_) run_taps_ = joined;  // copies are of one group
}

ImageRows::Place ImageRows::place_of(int64_t row) const {
  Place place;
  for (size_t i = 3; i-- > 0; row /= window.out[i]) place.at[i] = row % window.out[i];
  place.image = row;
  return place;
}

// Runs go through planes, lines and pixels of `size` of them. Copies have the planes of taps only.
void ImageRows::place_runs(const Triple& size, bool planes_of_taps, int64_t pixel,
                           int64_t* to) const {
  const int64_t plane = planes_of_taps ? 1 : window.dilations[0];
  for (int64_t d = 0; d < window.taps[0]; ++d)
    for (int64_t h = 0; h < window.taps[1]; ++h)
      for (int64_t w = 0; w < window.taps[2]; w += run_taps_)
        *to++ =
            ((d * plane * size[1] + h * window.dilations[1]) * size[2] + w * window.dilations[2]) *
            pixel;
}

void ImageRows::place(const uint8_t* x, int64_t row, int64_t count, int zero,
                      PlacedRows& to) const {
  room(to.runs, runs());
  room(to.at, count);
  if (!in_place_) return place_copies(x, row, count, zero, to);
  to.from = x;
  place_runs(window.in, false, all_channels(), to.runs.data());
  const int64_t step = window.strides[2] * all_channels();
  for (int64_t i = 0; i < count;) {
    const auto [image, at] = place_of(row + i);
    int64_t begin = ((image * window.in[0] + at[0] * window.strides[0]) * window.in[1] +
                     at[1] * window.strides[1]) *
                        window.in[2] * all_channels() +
                    at[2] * step;
    const int64_t end = std::min(count, i + window.out[2] - at[2]);
    for (; i < end; ++i, begin += step) to.at[i] = begin;
  }
}

// One copy for the places of each plane of the result: all of the same size, so that runs begin at
// the same places in all.
void ImageRows::place_copies(const uint8_t* x, int64_t row, int64_t count, int zero,
                             PlacedRows& to) const {
  const auto span = [&](size_t axis, int64_t places) {
    return (places - 1) * window.strides[axis] + (window.taps[axis] - 1) * window.dilations[axis] +
           1;
  };
  const int64_t pixel = channels * element(), plane = window.out[1] * window.out[2];
  const int64_t begin = row % plane / window.out[2], ahead = row % window.out[2];
  const int64_t lines = (ahead + count - 1) / window.out[2] + 1;  // touched
  const int64_t planes = (row % plane + count - 1) / plane + 1;
  const int64_t first = lines == 1 ? ahead : 0;
  Part part;
  part.size = {window.taps[0], span(1, std::min(lines, window.out[1])),
               span(2, lines == 1 ? count : window.out[2])};
  const int64_t line = part.size[2] * pixel;
  const int64_t bytes = part.size[0] * part.size[1] * line;
  place_runs(part.size, true, pixel, to.runs.data());
  uint8_t* copy = room(to.copy, planes * bytes + kSlack);
  to.from = copy;
  int64_t i = 0;
  for (int64_t p = 0; p < planes; ++p, copy += bytes) {
    const Place from = place_of(row + i);
    const int64_t y = p == 0 ? begin : 0;
    const int64_t end = std::min(count, i + plane - (from.at[1] * window.out[2] + from.at[2]));
    const int64_t here = (from.at[2] + end - i - 1) / window.out[2] + 1;  // lines
    part.image = from.image;
    part.first = {from.at[0] * window.strides[0] - window.pads[0],
                  y * window.strides[1] - window.pads[1],
                  first * window.strides[2] - window.pads[2]};
    copy_part(x, part, span(1, here), zero, copy);
    for (int64_t at = from.at[2], h = 0; i < end; ++i) {
      to.at[i] =
          p * bytes + h * window.strides[1] * line + (at - first) * window.strides[2] * pixel;
      if (++at == window.out[2]) at = 0, ++h;
    }
  }
}

// Whether a tap of some place looks at this line of a copy.
bool ImageRows::is_read(int64_t line) const {
  for (int64_t h = 0; h < window.taps[1]; ++h)
    if (line >= h * window.dilations[1] &&
        (line - h * window.dilations[1]) % window.strides[1] == 0)
      return true;
  return false;
}

void ImageRows::copy_part(const uint8_t* x, const Part& part, int64_t lines, int zero,
                          uint8_t* to) const {
  const int64_t line = part.size[2] * channels * element();
  const int64_t last = part.first[2] + part.size[2];
  const int64_t left = std::clamp<int64_t>(-part.first[2], 0, part.size[2]);
  const int64_t right = std::clamp<int64_t>(last - window.in[2], 0, part.size[2] - left);
  for (int64_t d = 0; d < part.size[0]; ++d) {
    const int64_t z = part.first[0] + d * window.dilations[0];
    uint8_t* at = to + d * part.size[1] * line;
    for (int64_t h = 0; h < lines; ++h, at += line) {
      if (!is_read(h)) continue;
      const int64_t y = part.first[1] + h;
      if (z < 0 || z >= window.in[0] || y < 0 || y >= window.in[1]) {
        fill_pixels(part.size[2], zero, at);
        continue;
      }
      const uint8_t* const from =
          x + (((part.image * window.in[0] + z) * window.in[1] + y) * window.in[2] + part.first[2] +
               left) *
                  all_channels();
      uint8_t* const end = fill_pixels(left, zero, at);
      fill_pixels(right, zero, copy_pixels(from, part.size[2] - left - right, end));
    }
  }
}

// Both return the end of what they wrote; a few bytes behind it may be written, too.
uint8_t* ImageRows::copy_pixels(const uint8_t* from, int64_t count, uint8_t* to) const {
  const int64_t run = groups == 1 ? count * channels : channels;
  for (int64_t left = count * channels; left > 0;
       left -= run, from += all_channels(), to += run * element())
    if (packing.bytes && !flips())
      std::memcpy(to, from, static_cast<size_t>(run));
    else
      pack_int_row(packing, dtype, flips(), from, run, 1, to);
  return to;
}

uint8_t* ImageRows::fill_pixels(int64_t count, int zero, uint8_t* to) const {
  const int64_t elements = count * channels;
  if (packing.bytes)
    std::memset(to, zero ^ (flips() ? 128 : 0), static_cast<size_t>(elements));
  else
    std::fill_n(reinterpret_cast<int16_t*>(to), elements, static_cast<int16_t>(zero));
  return to + elements * element();
}

void ImageRows::sum(const PlacedRows& rows, int64_t count, int zero, int32_t* sums) const {
  const int64_t run = run_depth(), moved = zero + (flips() ? 128 : 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t sum = -depth() * moved;
    for (int64_t r = 0; r < runs(); ++r) {
      const uint8_t* from = rows.from + rows.at[i] + rows.runs[r];
      if (packing.bytes) {
        sum += sum_bytes(DType::kU8, from, run, 1);
      } else {
        const auto* numbers = reinterpret_cast<const int16_t*>(from);
        sum = std::accumulate(numbers, numbers + run, sum);
      }
    }
    sums[i] = static_cast<int32_t>(sum);
  }
}

}  // namespace anymps::cpu

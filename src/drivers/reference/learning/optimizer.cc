// SPDX-License-Identifier: Apache-2.0
// Reference kernels of the steps of optimizers.
#include "drivers/reference/dense.h"
#include "drivers/reference/elementwise/elementwise.h"

namespace anymps {

REFERENCE(adam) {
  std::vector<double> values = read_dense<double>(args.in[0]);
  const std::vector<double> gradient = read_dense<double>(args.in[1]);
  std::vector<double> momentum = read_dense<double>(args.in[2]);
  std::vector<double> velocity = read_dense<double>(args.in[3]);
  const auto number = [&](size_t i) { return load_double(args.in[i], 0); };
  double rate = number(4);
  const double beta1 = number(5), beta2 = number(6), epsilon = number(7);
  if (args.has(9)) rate *= std::sqrt(1 - number(10)) / (1 - number(9));
  std::vector<double> highest = args.has(8) ? read_dense<double>(args.in[8]) : velocity;
  for (size_t i = 0; i < values.size(); ++i) {
    momentum[i] = beta1 * momentum[i] + (1 - beta1) * gradient[i];
    velocity[i] = beta2 * velocity[i] + (1 - beta2) * gradient[i] * gradient[i];
    highest[i] = args.has(8) ? scalar::max(highest[i], velocity[i], true) : velocity[i];
    values[i] -= rate * momentum[i] / (std::sqrt(highest[i]) + epsilon);
  }
  const std::vector<double>* results[] = {&values, &momentum, &velocity, &highest};
  for (size_t i = 0; i < args.out.size(); ++i) write_dense(args.out[i], *results[i]);
}

}  // namespace anymps

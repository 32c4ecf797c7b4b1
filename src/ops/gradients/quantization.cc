// SPDX-License-Identifier: Apache-2.0
// Quantized numbers and strings: steps have no slope.
#include "ops/gradient.h"

namespace anymps {

ZERO_GRADIENT(conv_integer, "gives integers");
ZERO_GRADIENT(matmul_integer, "gives integers");
ZERO_GRADIENT(quantize, "gives integers");
ZERO_GRADIENT(regex_full_match, "gives bool");
ZERO_GRADIENT(requantize, "gives integers");
ZERO_GRADIENT(string_concat, "gives strings");
ZERO_GRADIENT(string_normalizer, "gives strings");
ZERO_GRADIENT(string_split, "gives strings");
NO_GRADIENT(dynamic_quantize, "its scale follows the largest numbers only");
NO_GRADIENT(label_encode, "its values have none yet");
NO_GRADIENT(tfidf, "its weights have none yet");
NO_GRADIENT(dequantize, "quantized weights are not trained here: its scale has none yet");
NO_GRADIENT(dequantize_lut, "quantized weights are not trained here: its table has none yet");

}  // namespace anymps

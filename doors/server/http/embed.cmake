# SPDX-License-Identifier: Apache-2.0
# Writes a file as an array of bytes: cmake -DIN=status.html -DOUT=status_html.cc -P embed.cmake
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUT} "// Generated from ${IN}.
#include <cstddef>
namespace anymps::server::http {
extern const char kStatusHtml[];
extern const size_t kStatusHtmlBytes;
const char kStatusHtml[] = {${bytes}};
const size_t kStatusHtmlBytes = sizeof kStatusHtml;
}
")

// SPDX-License-Identifier: Apache-2.0
// Who may ask what over HTTP, decided by the head of a request, before its body is read: keys,
// restricted APIs, and web pages. A browser sends requests of any page to any server that it
// reaches, this machine's included; so those of other origins are refused unless they are allowed,
// and names that a page could have pointed at this machine (DNS rebinding) are not answered to.
#pragma once

#include <optional>

#include "server/core/options.h"
#include "server/http/routes.h"
#include "server/http/transport/message.h"

namespace anymps::server::http {

// A reply instead of the request, or nullopt if it may go on.
std::optional<Reply> check_access(const Options& options, const Head& head);
std::optional<Reply> check_metrics_access(const Options& options, const Head& head);

// What lets a page of an allowed origin see the reply.
void add_origin(const Options& options, const Head& head, Reply& reply);

}  // namespace anymps::server::http

// SPDX-License-Identifier: Apache-2.0
// Protobuf messages as JSON in Triton's form: proto field names, 64-bit integers as numbers, enums
// by name. What the HTTP side prints, what serving::Model reads as its configuration, and how the
// configuration of a load request becomes a message again.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace anymps::server {

enum class Defaults {
  kPrint,  // numbers, strings, enums, lists and maps also when they are empty; messages and members
           // of a oneof only when they are set
  kOmit,
};

// Fields are in the order of the .proto file.
nlohmann::ordered_json to_json(const google::protobuf::Message& message, Defaults defaults);
// Sets the fields that the JSON has. Field names may also be in lowerCamelCase, integers may be
// strings, enums numbers: what protobuf's own JSON accepts. Throws Error(kInvalidArgument) with the
// place: "input[0].dims[1]: ...". Lists and maps that are there are replaced, messages are merged.
void from_json(const nlohmann::json& json, google::protobuf::Message& message);
// The same from text.
void parse_json(std::string_view text, google::protobuf::Message& message);

}  // namespace anymps::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ojs_shm::json {

/// A value as RFC 8785 writes it, its texts in NFC. Integers beyond 2^53 keep their digits: as
/// doubles two different ids would be the same. The value has passed check().
void append_canonical(std::string& out, std::string_view value);
std::string canonical(std::string_view value);

/// A member of an object that is put together.
struct Named {
  std::string name;
  std::u16string order;  ///< the name's UTF-16 units, by which members are sorted
  std::string value;     ///< canonical
};
Named canonical_member(std::string_view name, std::string value);
void append_canonical_object(std::string& out, std::vector<Named> members);

}  // namespace ojs_shm::json

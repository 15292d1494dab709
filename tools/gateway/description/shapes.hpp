// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ojs_shm::gateway {

/// What a JSON text looks like, for the description of the endpoints.
///
///   "id: text, priority?: integer, ..."   an object: members, `?` if it may be missing; `...`
///                                         at the end: it may have more
///   "+Job", "+Job?"                       the members of another shape; `?`: they may be missing
///   "= 'first'|'second'"                  no object of its own, but one of these types
///
/// A type is text, time, integer, number, boolean, null, any, object, array, 'a constant', the name
/// of a shape, [TYPE] for an array of it or {TYPE} for an object whose members have it; `|` is or.
struct Shape {
  std::string_view name, text;
};

std::span<const Shape> shapes();
/// A JSON Schema. Shapes that it names are referred to in #/components/schemas.
std::string schema_of(const Shape& shape);

}  // namespace ojs_shm::gateway

// Saves and loads the variables of a generated class, as a NumPy archive.
//
//   std::string error;
//   if (!tfcompile::SaveVariables(computation, "state.npz", &error)) { /* error says why */ }
//   if (!tfcompile::LoadVariables(computation, "state.npz", &error)) {
//     // Nothing changed; error says why.
//   }
//
// Members have the names of the variables in the graph, such as `layer/kernel.npy`, so numpy.load
// and `tfcompile run --variables` and `--save` work with the same files. Header-only, C++17, needs
// only the standard library. This code does not throw.
//
// SaveVariables writes uncompressed members with checksums. LoadVariables reads such archives,
// including those of numpy.savez. It rejects compressed members (numpy.savez_compressed),
// encryption, archives or members of 4 GiB or more, column-major arrays, arrays in the other byte
// order, wrong checksums, and values whose type or shape differs from the variable's.

#ifndef TFCOMPILE_STATE_H_
#define TFCOMPILE_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <ios>
#include <map>
#include <string>
#include <vector>

#include "tfcompile/variable.h"

namespace tfcompile {
inline namespace tfcompile_v1 {

// Treatment of variables that are missing in a loaded file.
enum class Missing {
  kIsAnError,  // Reports their names and loads nothing.
  kIsKept      // Keeps their values.
};

namespace state_internal {

// Returns the zip checksum of bytes with the checksum `crc` followed by `size` bytes at `data`.
inline ::std::uint32_t Crc32(::std::uint32_t crc, const void* data, ::std::size_t size) {
  struct Table {
    ::std::uint32_t entries[256];
    constexpr Table() : entries() {
      for (::std::uint32_t byte = 0; byte < 256; ++byte) {
        ::std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value & 1u) != 0 ? (value >> 1) ^ 0xedb88320u : value >> 1;
        entries[byte] = value;
      }
    }
  };
  static constexpr Table kTable;
  const unsigned char* const bytes = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (::std::size_t i = 0; i < size; ++i) crc = kTable.entries[(crc ^ bytes[i]) & 0xffu] ^ (crc >> 8);
  return ~crc;
}

inline void Append(::std::string* out, ::std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>((value >> (8 * i)) & 0xffu));
}

inline ::std::uint32_t Number(const char* data, int bytes) {
  ::std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<::std::uint32_t>(static_cast<unsigned char>(data[i])) << (8 * i);
  }
  return value;
}

// Returns NumPy's name of the type for arrays of this machine.
inline ::std::string Descr(const VariableInfo& variable) {
  const ::std::uint16_t one = 1;
  unsigned char first;
  ::std::memcpy(&first, &one, 1);
  const char order = variable.type[1] == '1' && variable.type[2] == '\0' ? '|' : first == 1 ? '<' : '>';
  return order + ::std::string(variable.type);
}

// Formats a Python tuple.
inline ::std::string Shape(const ::std::int64_t* dims, ::std::int32_t rank) {
  ::std::string text = "(";
  for (::std::int32_t i = 0; i < rank; ++i) text += ::std::to_string(dims[i]) + (i + 1 < rank ? ", " : rank == 1 ? "," : "");
  return text + ")";
}

// Returns everything that precedes the elements in a .npy file.
inline ::std::string NpyHeader(const VariableInfo& variable) {
  ::std::string text = "{'descr': '" + Descr(variable) + "', 'fortran_order': False, 'shape': " +
                       Shape(variable.dims, variable.rank) + ", }";
  text.append((64 - (text.size() + 11) % 64) % 64, ' ');
  text += '\n';
  ::std::string header("\x93NUMPY\x01\x00", 8);
  Append(&header, text.size(), 2);
  return header + text;
}

// A member of an archive.
struct Member {
  ::std::uint32_t flags, method, crc, stored, size, offset;
};

constexpr ::std::uint32_t kLocal = 0x04034b50u, kCentral = 0x02014b50u, kEnd = 0x06054b50u;
constexpr ::std::uint64_t kMaxFile = 0xfffffffeu;
constexpr ::std::size_t kPiece = 1u << 16;

// Returns the fields common to local header and directory: from the version to the length of the
// name.
inline ::std::string Description(const ::std::string& name, ::std::uint32_t crc, ::std::uint64_t size) {
  ::std::string text;
  Append(&text, 20, 2);
  bool ascii = true;
  for (const char c : name) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  Append(&text, ascii ? 0 : 0x800, 2);  // Flag: the name is UTF-8.
  Append(&text, 0, 2);                  // Method: stored.
  Append(&text, 0, 2);
  Append(&text, 0x21, 2);  // The first day that the format can represent.
  Append(&text, crc, 4);
  Append(&text, size, 4);
  Append(&text, size, 4);
  Append(&text, name.size(), 2);
  return text;
}

// Reads a file. Methods return error messages.
class Reader {
 public:
  explicit Reader(const ::std::string& path) : file_(path.c_str(), ::std::ios::in | ::std::ios::binary) {}

  // Sets *members, keyed by name without ".npy". Returns "" or an error message.
  ::std::string Open(::std::map<::std::string, Member>* members) {
    if (!file_.is_open()) return "it cannot be opened";
    file_.seekg(0, ::std::ios::end);
    const ::std::streamoff end = file_.tellg();
    if (end < 0 || !file_) return "its size cannot be determined";
    if (static_cast<::std::uint64_t>(end) > kMaxFile) return "it has 4 GiB or more";
    size_ = static_cast<::std::uint64_t>(end);
    // The end record, which a comment may follow.
    ::std::string tail;
    const ::std::uint64_t length = ::std::min<::std::uint64_t>(size_, 22 + 0xffff);
    if (!Read(size_ - length, static_cast<::std::size_t>(length), &tail)) return "it cannot be read";
    ::std::size_t at = tail.size();
    for (::std::size_t i = tail.size() < 22 ? 0 : tail.size() - 21; i-- > 0;) {
      if (Number(&tail[i], 4) == kEnd && i + 22 + Number(&tail[i + 20], 2) == tail.size()) {
        at = i;
        break;
      }
    }
    if (at == tail.size()) return "it is not an .npz archive, or it is truncated";
    const ::std::uint32_t count = Number(&tail[at + 10], 2), bytes = Number(&tail[at + 12], 4);
    const ::std::uint32_t start = Number(&tail[at + 16], 4);
    if (start > size_ || bytes > size_ - start) return "its directory extends beyond its end, or it has 4 GiB or more";
    ::std::string directory;
    if (!Read(start, bytes, &directory)) return "its directory cannot be read";
    ::std::size_t place = 0;
    for (::std::uint32_t i = 0; i < count; ++i) {
      if (directory.size() - place < 46 || Number(&directory[place], 4) != kCentral) return "its directory is malformed";
      const char* const entry = &directory[place];
      const ::std::size_t name = Number(entry + 28, 2);
      const ::std::size_t rest = name + Number(entry + 30, 2) + Number(entry + 32, 2);
      if (directory.size() - place - 46 < rest) return "its directory is malformed";
      ::std::string text(entry + 46, name);
      if (text.size() > 4 && text.compare(text.size() - 4, 4, ".npy") == 0) text.resize(text.size() - 4);
      (*members)[text] = Member{Number(entry + 8, 2),  Number(entry + 10, 2), Number(entry + 16, 4),
                                Number(entry + 20, 4), Number(entry + 24, 4), Number(entry + 42, 4)};
      place += 46 + rest;
    }
    return ::std::string();
  }

  // Checks a member against a variable and sets the offset of its elements. Returns "" or an error
  // message.
  ::std::string Check(const Member& member, const VariableInfo& variable, ::std::uint64_t* elements) {
    if ((member.flags & 1u) != 0) return "it is encrypted";
    if (member.method != 0) return "it is compressed, which is not supported: write it with numpy.savez";
    if (member.stored != member.size || member.size == 0xffffffffu) return "it has 4 GiB or more, or its size is malformed";
    ::std::string local;
    if (!Read(member.offset, 30, &local) || Number(&local[0], 4) != kLocal) return "its header is malformed";
    const ::std::uint64_t start = static_cast<::std::uint64_t>(member.offset) + 30 + Number(&local[26], 2) + Number(&local[28], 2);
    if (start > size_ || member.size > size_ - start) return "it is truncated";
    ::std::string head;
    if (!Read(start, ::std::min<::std::size_t>(member.size, 12), &head)) return "it cannot be read";
    if (head.size() < 12 || ::std::memcmp(head.data(), "\x93NUMPY", 6) != 0) return "it is not a NumPy array";
    const bool first_version = head[6] == 1;
    const ::std::uint64_t prefix = first_version ? 10 : 12;
    const ::std::uint64_t length = Number(&head[8], first_version ? 2 : 4);
    if (length > kPiece || prefix + length > member.size) return "its NumPy header is truncated or too long";
    ::std::string text;
    if (!Read(start + prefix, static_cast<::std::size_t>(length), &text)) return "it cannot be read";
    const ::std::string descr = Value(text, "descr"), shape = Value(text, "shape");
    if (descr != "'" + Descr(variable) + "'") return "it has type " + descr + ", but the variable has '" + Descr(variable) + "'";
    ::std::string expected;
    for (const char c : Shape(variable.dims, variable.rank)) if (c != ' ') expected += c;
    if (shape != expected) return "it has shape " + shape + ", but the variable has " + expected;
    if (Value(text, "fortran_order") != "False" && variable.rank > 1) return "it is column-major: convert it with numpy.ascontiguousarray";
    if (member.size - prefix - length != variable.size) return "its size does not match its shape";
    *elements = start + prefix + length;
    // The checksum comes last because it requires reading the whole member.
    ::std::uint32_t crc = 0;
    for (::std::uint64_t at = 0; at < member.size; at += kPiece) {
      const ::std::size_t bytes = static_cast<::std::size_t>(::std::min<::std::uint64_t>(kPiece, member.size - at));
      if (!Read(start + at, bytes, &text)) return "it cannot be read";
      crc = Crc32(crc, text.data(), text.size());
    }
    return crc == member.crc ? "" : "its checksum is wrong: the file is damaged";
  }

  bool ReadInto(::std::uint64_t offset, ::std::size_t bytes, void* data) {
    file_.clear();
    file_.seekg(static_cast<::std::streamoff>(offset), ::std::ios::beg);
    file_.read(static_cast<char*>(data), static_cast<::std::streamsize>(bytes));
    return file_.good() && static_cast<::std::size_t>(file_.gcount()) == bytes;
  }

 private:
  bool Read(::std::uint64_t offset, ::std::size_t bytes, ::std::string* data) {
    if (offset > size_ || bytes > size_ - offset) return false;
    data->resize(bytes);
    return bytes == 0 || ReadInto(offset, bytes, &(*data)[0]);
  }

  // Returns the value of a key of NumPy's dictionary, without blanks.
  static ::std::string Value(const ::std::string& text, const char* key) {
    const ::std::string quoted = "'" + ::std::string(key) + "':";
    const ::std::size_t at = text.find(quoted);
    if (at == ::std::string::npos) return "unknown";
    ::std::string value;
    bool inside = false;
    for (::std::size_t i = at + quoted.size(); i < text.size(); ++i) {
      const char c = text[i];
      inside = c == '(' || (inside && c != ')');
      if ((c == ',' && !inside) || c == '}') break;
      if (c != ' ' && c != '\n') value += c;
    }
    return value.substr(0, 80);
  }

  ::std::ifstream file_;
  ::std::uint64_t size_ = 0;
};

// Returns the table of a class's variables, or null if the class has none.
template <class Model>
auto VariablesOf(int) -> decltype(Model::Variables()) {
  return Model::Variables();
}
template <class Model>
const VariableInfo* VariablesOf(long) {
  return nullptr;
}

inline bool Fail(const ::std::string& what, const ::std::string& path, const ::std::string& why, ::std::string* error) {
  if (error != nullptr) *error = what + " '" + path + "': " + why;
  return false;
}

inline ::std::string Write(::std::ofstream& file, const VariableInfo* variables, ::std::size_t count,
                           const ::std::vector<const void*>& data) {
  ::std::uint64_t offset = 0;
  ::std::string directory;
  const auto write = [&file, &offset](const void* bytes, ::std::size_t size) {
    file.write(static_cast<const char*>(bytes), static_cast<::std::streamsize>(size));
    offset += size;
  };
  for (::std::size_t i = 0; i < count; ++i) {
    const VariableInfo& variable = variables[i];
    const ::std::string name = ::std::string(variable.name) + ".npy";
    const ::std::string header = NpyHeader(variable);
    const ::std::uint64_t start = offset, size = static_cast<::std::uint64_t>(header.size()) + variable.size;
    if (name.size() > 0xffff || size > kMaxFile || start + size > kMaxFile - (1u << 26) || directory.size() > (1u << 25)) {
      return "the variables have 4 GiB or more, or a name is too long";
    }
    const ::std::uint32_t crc = Crc32(Crc32(0, header.data(), header.size()), data[i], variable.size);
    const ::std::string description = Description(name, crc, size);
    ::std::string local;
    Append(&local, kLocal, 4);
    local += description;
    Append(&local, 0, 2);
    local += name;
    local += header;
    write(local.data(), local.size());
    write(data[i], variable.size);
    Append(&directory, kCentral, 4);
    Append(&directory, 20, 2);
    directory += description;
    Append(&directory, 0, 8);  // No extra field, no comment, one disk, a binary file, ...
    Append(&directory, 0, 4);  // ... and no attributes.
    Append(&directory, start, 4);
    directory += name;
  }
  if (count > 0xffff) return "there are more than 65535 variables";
  const ::std::uint64_t start = offset, size = directory.size();
  Append(&directory, kEnd, 4);
  Append(&directory, 0, 4);
  Append(&directory, count, 2);
  Append(&directory, count, 2);
  Append(&directory, size, 4);
  Append(&directory, start, 4);
  Append(&directory, 0, 2);
  write(directory.data(), directory.size());
  file.flush();
  return file.good() ? "" : "it cannot be written";
}

}  // namespace state_internal

// Writes all variables of an object to a file atomically: it is written as `<path>.part` and then
// renamed. On failure, returns false and sets *error unless `error` is null.
template <class Model>
bool SaveVariables(const Model& model, const ::std::string& path, ::std::string* error) {
  const VariableInfo* const variables = state_internal::VariablesOf<Model>(0);
  const ::std::size_t count = variables == nullptr ? 0 : Model::kNumVariables;
  const auto fail = [&](const ::std::string& why) {
    return state_internal::Fail("cannot save variables to", path, why, error);
  };
  ::std::vector<const void*> data(count);
  for (::std::size_t i = 0; i < count; ++i) {
    data[i] = model.arg_data(variables[i].argument);
    if (data[i] == nullptr && variables[i].size > 0) {
      return fail("variable '" + ::std::string(variables[i].name) + "' has no memory: set its data first");
    }
  }
  const ::std::string part = path + ".part";
  ::std::string why = "it cannot be opened";
  {
    ::std::ofstream file(part.c_str(), ::std::ios::out | ::std::ios::binary | ::std::ios::trunc);
    if (file.is_open()) why = state_internal::Write(file, variables, count, data);
    file.close();
    if (why.empty() && file.fail()) why = "it cannot be written";
  }
#if defined(_WIN32)
  if (why.empty()) ::std::remove(path.c_str());
#endif
  if (why.empty() && ::std::rename(part.c_str(), path.c_str()) != 0) why = "the temporary file cannot be renamed";
  if (!why.empty()) {
    ::std::remove(part.c_str());
    return fail(why);
  }
  return true;
}

// Reads the variables of an object from a file. Ignores members that match no variable. Checks
// everything before changing anything. Values are stored at arg_data(), so buffers that the caller
// has set must be writable, even those of read-only variables. On failure, returns false and sets
// *error unless `error` is null.
template <class Model>
bool LoadVariables(Model& model, const ::std::string& path, ::std::string* error, Missing missing = Missing::kIsAnError) {
  const VariableInfo* const variables = state_internal::VariablesOf<Model>(0);
  const ::std::size_t count = variables == nullptr ? 0 : Model::kNumVariables;
  const auto fail = [&](const ::std::string& why) {
    return state_internal::Fail("cannot load variables from", path, why, error);
  };
  state_internal::Reader reader(path);
  ::std::map<::std::string, state_internal::Member> members;
  const ::std::string unreadable = reader.Open(&members);
  if (!unreadable.empty()) return fail(unreadable);
  ::std::vector<::std::uint64_t> elements(count);
  ::std::vector<bool> found(count);
  ::std::string absent;
  for (::std::size_t i = 0; i < count; ++i) {
    const VariableInfo& variable = variables[i];
    auto member = members.find(variable.name);
    if (member == members.end()) member = members.find(variable.config_name);
    if (member == members.end()) {
      absent += (absent.empty() ? "'" : ", '") + ::std::string(variable.name) + "'";
      continue;
    }
    found[i] = true;
    ::std::string why = reader.Check(member->second, variable, &elements[i]);
    if (why.empty() && variable.size > 0 && model.arg_data(variable.argument) == nullptr) {
      why = "the variable has no memory: set its data first";
    }
    if (!why.empty()) return fail("'" + member->first + "': " + why);
  }
  if (!absent.empty() && missing == Missing::kIsAnError) return fail("it has no value for " + absent);
  for (::std::size_t i = 0; i < count; ++i) {
    if (!found[i] || variables[i].size == 0) continue;
    unsigned char* const data = static_cast<unsigned char*>(model.arg_data(variables[i].argument));
    if (!reader.ReadInto(elements[i], variables[i].size, data)) return fail("it changed during reading");
    // In the file, any nonzero byte may represent true; here, only 1.
    if (variables[i].type[0] == 'b') {
      for (::std::size_t k = 0; k < variables[i].size; ++k) data[k] = data[k] != 0;
    }
  }
  return true;
}

}  // namespace tfcompile_v1
}  // namespace tfcompile

#endif  // TFCOMPILE_STATE_H_

// Constants in a file (--constants=file): loaded, shared and swapped at run time.
//
//   Model::LoadDefaultConstants("model.weights", &error);  // for all objects of the class
//   model.LoadConstants("other.weights");                  // for this object alone
//
// Every file of the layout that the code was compiled for will do, such as that of the same network trained again. A
// file is mapped, not read, so objects and processes share its memory. Replace a file that is in use by renaming a new
// one over it: bytes that change under a running program change its results, and a shorter file ends it.

#ifndef TFCOMPILE_CONSTANTS_FILE_H_
#define TFCOMPILE_CONSTANTS_FILE_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#elif defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <cstdio>
#endif

#include "tfcompile/constants_format.h"
#include "tfcompile/xla_compiled_cpu_function.h"

namespace tfcompile {
inline namespace tfcompile_v1 {

// The bytes of one constants file. Never changes; share it as you like.
class Constants {
 public:
  // Maps a file. Null if that fails, with the reason in *error unless that is null. Which code the file is for is
  // checked where it is used.
  static ::std::shared_ptr<const Constants> Load(const ::std::string& path, ::std::string* error) {
    const ::std::shared_ptr<Constants> constants(new (::std::nothrow) Constants);
    ::std::string reason = constants == nullptr ? "there is no memory" : constants->Map(path);
    if (reason.empty()) {
      constants->name_ = "'" + path + "'";
      return constants;
    }
    if (error != nullptr) *error = "cannot load constants from '" + path + "': " + reason;
    return nullptr;
  }

  // Uses the bytes of a file in memory, which must stay as they are while they are in use. Memory that is not aligned
  // to 64 bytes is copied.
  static ::std::shared_ptr<const Constants> FromMemory(const void* file, ::std::size_t size, ::std::string* error) {
    const ::std::shared_ptr<Constants> constants(new (::std::nothrow) Constants);
    if (constants != nullptr && constants->Refer(file, size)) {
      constants->name_ = "the constants in memory";
      return constants;
    }
    if (error != nullptr) *error = "there is no memory for a copy of the constants";
    return nullptr;
  }

  ~Constants() {
#if defined(_WIN32)
    if (mapped_) UnmapViewOfFile(file_);
#elif defined(__unix__) || defined(__APPLE__)
    if (mapped_) ::munmap(const_cast<void*>(file_), size_);
#endif
    ::operator delete(owned_);
  }

  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

  // The file, header included.
  const void* file() const { return file_; }
  ::std::size_t size() const { return size_; }

  // What the code is given. Only of constants that fit.
  const void* block() const {
    return static_cast<const unsigned char*>(file_) + TFCOMPILE_CONSTANTS_HEADER_BYTES;
  }

  // Whether code with this layout hash can use them; if not, says why in *error unless that is null.
  bool Fits(const unsigned char* layout_hash, ::std::string* error) const {
    const char* const reason = ::tfcompile_check_constants(file_, size_, layout_hash);
    if (reason != nullptr && error != nullptr) *error = name_ + ": " + reason;
    return reason == nullptr;
  }

 private:
  static constexpr ::std::size_t kAlign = 64;

  Constants() = default;

  // Room for `bytes`, aligned; null if there is none.
  unsigned char* Own(::std::size_t bytes) {
    owned_ = bytes > SIZE_MAX - kAlign ? nullptr : ::operator new(bytes + kAlign, ::std::nothrow);
    if (owned_ == nullptr) return nullptr;
    unsigned char* const start = static_cast<unsigned char*>(owned_);
    unsigned char* const place = start + (kAlign - reinterpret_cast<::std::uintptr_t>(start) % kAlign) % kAlign;
    file_ = place;
    size_ = bytes;
    return place;
  }

  bool Refer(const void* file, ::std::size_t size) {
    if (reinterpret_cast<::std::uintptr_t>(file) % kAlign != 0) {
      unsigned char* const copy = Own(size);
      if (copy != nullptr) ::std::memcpy(copy, file, size);
      return copy != nullptr;
    }
    file_ = file;
    size_ = size;
    return true;
  }

  // Sets file_ and size_; "" or what went wrong.
#if defined(_WIN32)
  ::std::string Map(const ::std::string& path) {
    const int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.c_str(), -1, nullptr, 0);
    if (length <= 0) return "the path is no UTF-8";
    ::std::wstring wide(static_cast<::std::size_t>(length), L'\0');
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.c_str(), -1, &wide[0], length);
    const HANDLE file = CreateFileW(wide.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                    FILE_ATTRIBUTE_NORMAL, nullptr);
    if (file == INVALID_HANDLE_VALUE) return WindowsError("it cannot be opened");
    ::std::string error;
    LARGE_INTEGER size;
    if (GetFileSizeEx(file, &size) == 0) {
      error = WindowsError("it has no size");
    } else if (static_cast<::std::uint64_t>(size.QuadPart) > SIZE_MAX) {
      error = "it is larger than the address space";
    } else if (size.QuadPart == 0) {
      error = "it is empty";
    } else {
      const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
      void* const view = mapping == nullptr ? nullptr : MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
      if (view == nullptr) error = WindowsError("it cannot be mapped");
      // The view keeps the mapping.
      if (mapping != nullptr) CloseHandle(mapping);
      file_ = view;
      size_ = static_cast<::std::size_t>(size.QuadPart);
      mapped_ = view != nullptr;
    }
    CloseHandle(file);
    return error;
  }

  static ::std::string WindowsError(const char* what) {
    return ::std::string(what) + " (Windows error " + ::std::to_string(GetLastError()) + ")";
  }
#elif defined(__unix__) || defined(__APPLE__)
  ::std::string Map(const ::std::string& path) {
#if defined(O_CLOEXEC)
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
#else
    const int file = ::open(path.c_str(), O_RDONLY);
#endif
    if (file < 0) return ::std::strerror(errno);
    ::std::string error;
    struct ::stat status;
    if (::fstat(file, &status) != 0) {
      error = ::std::strerror(errno);
    } else if (!S_ISREG(status.st_mode)) {
      error = "it is no regular file";
    } else if (static_cast<::std::uint64_t>(status.st_size) > SIZE_MAX) {
      error = "it is larger than the address space";
    } else if (status.st_size == 0) {
      error = "it is empty";
    } else {
      size_ = static_cast<::std::size_t>(status.st_size);
      void* const view = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      mapped_ = view != MAP_FAILED;
      if (mapped_) {
        file_ = view;
      } else {
        error = ::std::strerror(errno);
      }
    }
    ::close(file);
    return error;
  }
#else
  ::std::string Map(const ::std::string& path) {
    ::std::FILE* const file = ::std::fopen(path.c_str(), "rb");
    if (file == nullptr) return "it cannot be opened";
    ::std::string error;
    const long size = ::std::fseek(file, 0, SEEK_END) == 0 ? ::std::ftell(file) : -1;
    if (size < 0 || ::std::fseek(file, 0, SEEK_SET) != 0) {
      error = "it has no size";
    } else {
      unsigned char* const bytes = Own(static_cast<::std::size_t>(size));
      if (bytes == nullptr) {
        error = "there is no memory for it";
      } else if (::std::fread(bytes, 1, size_, file) != size_) {
        error = "it cannot be read";
      }
    }
    ::std::fclose(file);
    return error;
  }
#endif

  const void* file_ = nullptr;
  ::std::size_t size_ = 0;
  void* owned_ = nullptr;
  bool mapped_ = false;
  ::std::string name_;
};

// The constants of all objects of a class that have none of their own. May be used from several threads.
class DefaultConstants {
 public:
  void Set(::std::shared_ptr<const Constants> constants) {
    const ::std::lock_guard<::std::mutex> lock(mutex_);
    constants_ = ::std::move(constants);
    version_.fetch_add(1, ::std::memory_order_release);
  }

  // Counts the changes.
  ::std::uint64_t version() const { return version_.load(::std::memory_order_acquire); }

  // The constants and the version that they are.
  ::std::shared_ptr<const Constants> Get(::std::uint64_t* version) {
    const ::std::lock_guard<::std::mutex> lock(mutex_);
    *version = version_.load(::std::memory_order_relaxed);
    return constants_;
  }

 private:
  ::std::mutex mutex_;
  ::std::shared_ptr<const Constants> constants_;
  ::std::atomic<::std::uint64_t> version_{0};
};

}  // namespace tfcompile_v1
}  // namespace tfcompile

namespace tensorflow {
inline namespace tfcompile_v1 {

// The base of the generated classes whose constants are in a file.
class ConstantsFileFunction : public XlaCompiledCpuFunction {
 public:
  ConstantsFileFunction(const StaticData& static_data, const unsigned char* layout_hash,
                        ::tfcompile::DefaultConstants& defaults, AllocMode alloc_mode)
      : XlaCompiledCpuFunction(static_data, alloc_mode), layout_hash_(layout_hash), defaults_(&defaults) {}

  // Gives this object constants of its own, from now on, in place of those that it had. On false it keeps what it had,
  // and error_msg() says what went wrong. A file that several objects shall share is loaded once, with Constants::Load.
  bool LoadConstants(const ::std::string& path) {
    ::std::string error;
    return SetConstants(::tfcompile::Constants::Load(path, &error), &error);
  }
  bool SetConstants(const void* file, ::std::size_t size) {
    ::std::string error;
    return SetConstants(::tfcompile::Constants::FromMemory(file, size, &error), &error);
  }
  bool SetConstants(::std::shared_ptr<const ::tfcompile::Constants> constants) {
    ::std::string error = "there are no constants: the pointer is null";
    return SetConstants(::std::move(constants), &error);
  }

  // Back to those of the class.
  void UseDefaultConstants() {
    own_ = false;
    constants_ = defaults_->Get(&version_);
  }

  // Those of the last Run, or those just set. Null if there are none.
  const ::std::shared_ptr<const ::tfcompile::Constants>& constants() const { return constants_; }

  // Takes the class's constants, if the object has none of its own and they have changed, and computes.
  bool Run() override {
    if (failed_) {
      failed_ = false;
      set_error_msg(::std::string());
    }
    if (!own_ && defaults_->version() != version_) constants_ = defaults_->Get(&version_);
    if (constants_ == nullptr) {
      return Fail("the constants are not loaded: call LoadConstants or LoadDefaultConstants before Run");
    }
    set_constants(constants_->block());
    return XlaCompiledCpuFunction::Run();
  }

 protected:
  // For the static methods of the generated class.
  static bool SetDefault(::tfcompile::DefaultConstants& defaults, const unsigned char* layout_hash,
                         ::std::shared_ptr<const ::tfcompile::Constants> constants, ::std::string* error) {
    if (constants == nullptr || !constants->Fits(layout_hash, error)) return false;
    defaults.Set(::std::move(constants));
    return true;
  }

 private:
  bool SetConstants(::std::shared_ptr<const ::tfcompile::Constants> constants, ::std::string* error) {
    failed_ = constants == nullptr || !constants->Fits(layout_hash_, error);
    // The message of a Run would hide this one.
    Fail(nullptr);
    set_error_msg(failed_ ? *error : ::std::string());
    if (failed_) return false;
    own_ = true;
    constants_ = ::std::move(constants);
    return true;
  }

  const unsigned char* layout_hash_;
  ::tfcompile::DefaultConstants* defaults_;
  ::std::shared_ptr<const ::tfcompile::Constants> constants_;
  ::std::uint64_t version_ = 0;  // Of the defaults, when constants_ are those.
  bool own_ = false;
  bool failed_ = false;  // The error message is that of a method above.
};

}  // namespace tfcompile_v1
}  // namespace tensorflow

#endif  // TFCOMPILE_CONSTANTS_FILE_H_

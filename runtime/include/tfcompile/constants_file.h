// Constants in a file (--constants=file): loaded, shared, and replaced at run time.
//
//   Model::LoadDefaultConstants("model.weights", &error);  // for all objects of the class
//   model.LoadConstants("other.weights");                  // for this object only
//
// Any file with the layout that the code was compiled for is suitable, such as the file of the same
// network after another training. A file is mapped rather than read, so objects and processes share
// its memory. To replace a file that is in use, rename a new one over it. Modifying it in place
// changes the results of running programs, and truncating it crashes them.

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

// Contents of one constants file. Immutable and freely shareable.
class Constants {
 public:
  // Maps a file. Returns null on failure and stores the reason in *error unless `error` is null.
  // The layout is compared with the code's when the file is used.
  static ::std::shared_ptr<const Constants> Load(const ::std::string& path, ::std::string* error) {
    const ::std::shared_ptr<Constants> constants(new (::std::nothrow) Constants);
    ::std::string reason = constants == nullptr ? "out of memory" : constants->Map(path);
    if (reason.empty()) {
      constants->name_ = "'" + path + "'";
      return constants;
    }
    if (error != nullptr) *error = "cannot load constants from '" + path + "': " + reason;
    return nullptr;
  }

  // Uses the contents of a constants file in memory, which must stay unchanged while in use. Memory
  // that is not aligned to 64 bytes is copied.
  static ::std::shared_ptr<const Constants> FromMemory(const void* file, ::std::size_t size, ::std::string* error) {
    const ::std::shared_ptr<Constants> constants(new (::std::nothrow) Constants);
    if (constants != nullptr && constants->Refer(file, size)) {
      constants->name_ = "the constants in memory";
      return constants;
    }
    if (error != nullptr) *error = "out of memory for a copy of the constants";
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

  // The file, including its header.
  const void* file() const { return file_; }
  ::std::size_t size() const { return size_; }

  // Constants block for the compiled code. Requires that Fits() returned true.
  const void* block() const {
    return static_cast<const unsigned char*>(file_) + TFCOMPILE_CONSTANTS_HEADER_BYTES;
  }

  // True if code with this layout hash can use the constants. Otherwise stores the reason in *error
  // unless `error` is null.
  bool Fits(const unsigned char* layout_hash, ::std::string* error) const {
    const char* const reason = ::tfcompile_check_constants(file_, size_, layout_hash);
    if (reason != nullptr && error != nullptr) *error = name_ + ": " + reason;
    return reason == nullptr;
  }

 private:
  static constexpr ::std::size_t kAlign = 64;

  Constants() = default;

  // Allocates `bytes` aligned bytes. Returns null if out of memory.
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

  // Sets file_ and size_. Returns "" or an error message.
#if defined(_WIN32)
  ::std::string Map(const ::std::string& path) {
    const int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.c_str(), -1, nullptr, 0);
    if (length <= 0) return "the path is not valid UTF-8";
    ::std::wstring wide(static_cast<::std::size_t>(length), L'\0');
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.c_str(), -1, &wide[0], length);
    const HANDLE file = CreateFileW(wide.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                    FILE_ATTRIBUTE_NORMAL, nullptr);
    if (file == INVALID_HANDLE_VALUE) return WindowsError("it cannot be opened");
    ::std::string error;
    LARGE_INTEGER size;
    if (GetFileSizeEx(file, &size) == 0) {
      error = WindowsError("its size cannot be determined");
    } else if (static_cast<::std::uint64_t>(size.QuadPart) > SIZE_MAX) {
      error = "it is larger than the address space";
    } else if (size.QuadPart == 0) {
      error = "it is empty";
    } else {
      const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
      void* const view = mapping == nullptr ? nullptr : MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
      if (view == nullptr) error = WindowsError("it cannot be mapped");
      // The view keeps the mapping alive.
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
      error = "it is not a regular file";
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
      error = "its size cannot be determined";
    } else {
      unsigned char* const bytes = Own(static_cast<::std::size_t>(size));
      if (bytes == nullptr) {
        error = "out of memory";
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

// Constants of all objects of a class without constants of their own. Thread-safe.
class DefaultConstants {
 public:
  void Set(::std::shared_ptr<const Constants> constants) {
    const ::std::lock_guard<::std::mutex> lock(mutex_);
    constants_ = ::std::move(constants);
    version_.fetch_add(1, ::std::memory_order_release);
  }

  // Number of changes so far.
  ::std::uint64_t version() const { return version_.load(::std::memory_order_acquire); }

  // Returns the constants and stores their version.
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

// Base class of the generated classes whose constants are in a file.
class ConstantsFileFunction : public XlaCompiledCpuFunction {
 public:
  ConstantsFileFunction(const StaticData& static_data, const unsigned char* layout_hash,
                        ::tfcompile::DefaultConstants& defaults, AllocMode alloc_mode)
      : XlaCompiledCpuFunction(static_data, alloc_mode), layout_hash_(layout_hash), defaults_(&defaults) {}

  // Sets the constants of this object, replacing previous ones. On failure, returns false and keeps
  // the previous constants, and error_msg() returns the message. To share a file among several
  // objects, load it once with Constants::Load.
  bool LoadConstants(const ::std::string& path) {
    ::std::string error;
    return SetConstants(::tfcompile::Constants::Load(path, &error), &error);
  }
  bool SetConstants(const void* file, ::std::size_t size) {
    ::std::string error;
    return SetConstants(::tfcompile::Constants::FromMemory(file, size, &error), &error);
  }
  bool SetConstants(::std::shared_ptr<const ::tfcompile::Constants> constants) {
    ::std::string error = "the pointer to the constants is null";
    return SetConstants(::std::move(constants), &error);
  }

  // Reverts to the constants of the class.
  void UseDefaultConstants() {
    own_ = false;
    constants_ = defaults_->Get(&version_);
  }

  // Constants of the last Run, or those set since. Null if there are none.
  const ::std::shared_ptr<const ::tfcompile::Constants>& constants() const { return constants_; }

  // Updates the constants from the class, unless the object has its own, and computes.
  bool Run() override { return UpdateConstants() && XlaCompiledCpuFunction::Run(); }

 protected:
  bool UpdateConstants() {
    if (failed_) {
      failed_ = false;
      set_error_msg(::std::string());
    }
    if (!own_ && defaults_->version() != version_) constants_ = defaults_->Get(&version_);
    if (constants_ == nullptr) {
      return Fail("the constants are not loaded: call LoadConstants or LoadDefaultConstants before Run");
    }
    set_constants(constants_->block());
    return true;
  }
  const ::std::shared_ptr<const ::tfcompile::Constants>& constants_owner() const { return constants_; }

  // Used by the static methods of the generated class.
  static bool SetDefault(::tfcompile::DefaultConstants& defaults, const unsigned char* layout_hash,
                         ::std::shared_ptr<const ::tfcompile::Constants> constants, ::std::string* error) {
    if (constants == nullptr || !constants->Fits(layout_hash, error)) return false;
    defaults.Set(::std::move(constants));
    return true;
  }

 private:
  bool SetConstants(::std::shared_ptr<const ::tfcompile::Constants> constants, ::std::string* error) {
    failed_ = constants == nullptr || !constants->Fits(layout_hash_, error);
    // A message of Run would hide this one.
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
  ::std::uint64_t version_ = 0;  // Version of the defaults, if constants_ are the defaults.
  bool own_ = false;
  bool failed_ = false;  // True if the error message is from one of the methods above.
};

}  // namespace tfcompile_v1
}  // namespace tensorflow

#endif  // TFCOMPILE_CONSTANTS_FILE_H_

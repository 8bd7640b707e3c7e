// Calls of the handlers as XLA makes them, on memory whose ends a sanitizer watches.
#ifndef PHLOX_KERNELS_TESTS_HANDLERS_H_
#define PHLOX_KERNELS_TESTS_HANDLERS_H_

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "xla/ffi/api/c_api.h"

extern "C" {
XLA_FFI_Error* phlox_kernels_sort_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_argsort_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_top_k_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_argmax_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_argmin_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_max_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_min_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_sum_2(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_sine_2(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_scan_2(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_places_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_scatter_add_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_rows_times_matrix_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_conv_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_byte_products_1(XLA_FFI_CallFrame*);
XLA_FFI_Error* phlox_kernels_small_products_1(XLA_FFI_CallFrame*);
}

// The runtime's error is opaque to handlers.
struct XLA_FFI_Error {
  std::string message;
};

// An element type: its name, its number and its bytes.
struct Type {
  const char* name;
  XLA_FFI_DataType type;
  size_t bytes;
};

// An array whose memory ends with its last element, and begins `offset` bytes behind the start of an allocation.
class Memory {
 public:
  Memory(Type type, std::vector<int64_t> shape, size_t offset = 0) : shape_(std::move(shape)), offset_(offset) {
    size_t size = type.bytes;
    for (int64_t n : shape_) size *= size_t(n);
    bytes_.reset(new uint8_t[offset + size]);
    size_ = size;
    std::memset(bytes_.get(), 0xA5, offset + size);
    buffer_ = {XLA_FFI_Buffer_STRUCT_SIZE, nullptr, type.type, data(), int64_t(shape_.size()), shape_.data()};
  }
  Memory(const Memory&) = delete;

  uint8_t* data() { return bytes_.get() + offset_; }
  size_t size() const { return size_; }
  XLA_FFI_Buffer* buffer() { return &buffer_; }
  template <typename T>
  T at(size_t i) {
    T x;
    std::memcpy(&x, data() + i * sizeof(T), sizeof(T));
    return x;
  }

 private:
  std::vector<int64_t> shape_;
  size_t offset_, size_;
  std::unique_ptr<uint8_t[]> bytes_;
  XLA_FFI_Buffer buffer_;
};

// Threads that take tasks, as those of XLA do.
class Pool {
 public:
  static constexpr int64_t kThreads = 3;

  static Pool& get() {
    static Pool pool;
    return pool;
  }
  void schedule(std::function<void()> task) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  Pool() {
    for (int64_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return done_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool done_ = false;
  std::vector<std::thread> threads_;
};

// The functions of the runtime that the handlers call.
inline const XLA_FFI_Api* runtime() {
  static const XLA_FFI_Api api = [] {
    XLA_FFI_Api made{};
    made.struct_size = XLA_FFI_Api_STRUCT_SIZE;
    made.api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
    made.XLA_FFI_Error_Create = [](XLA_FFI_Error_Create_Args* args) { return new XLA_FFI_Error{args->message}; };
    made.XLA_FFI_Error_GetMessage = [](XLA_FFI_Error_GetMessage_Args* args) {
      args->message = args->error->message.c_str();
    };
    made.XLA_FFI_Error_Destroy = [](XLA_FFI_Error_Destroy_Args* args) { delete args->error; };
    made.XLA_FFI_ThreadPool_Schedule = [](XLA_FFI_ThreadPool_Schedule_Args* args) -> XLA_FFI_Error* {
      Pool::get().schedule([task = args->task, data = args->data] { (*task)(data); });
      return nullptr;
    };
    made.XLA_FFI_ThreadPool_NumThreads = [](XLA_FFI_ThreadPool_NumThreads_Args* args) -> XLA_FFI_Error* {
      *args->num_threads = Pool::kThreads;
      return nullptr;
    };
    return made;
  }();
  return &api;
}

// Calls a handler; returns the message of its error, which is empty if there is none. Attributes are sorted by name.
inline std::string call(XLA_FFI_Error* (*handler)(XLA_FFI_CallFrame*), const std::vector<Memory*>& operands,
                        const std::vector<Memory*>& results, std::map<std::string, int64_t> attributes = {}) {
  std::vector<XLA_FFI_ArgType> arg_types(operands.size(), XLA_FFI_ArgType_BUFFER);
  std::vector<void*> args;
  for (Memory* operand : operands) args.push_back(operand->buffer());
  std::vector<XLA_FFI_RetType> ret_types(results.size(), XLA_FFI_RetType_BUFFER);
  std::vector<void*> rets;
  for (Memory* result : results) rets.push_back(result->buffer());
  const size_t count = attributes.size();
  std::vector<XLA_FFI_AttrType> types(count, XLA_FFI_AttrType_SCALAR);
  std::vector<XLA_FFI_ByteSpan> spans;
  std::vector<XLA_FFI_Scalar> scalars;
  for (auto& [name, value] : attributes) {
    spans.push_back({name.data(), name.size()});
    scalars.push_back({XLA_FFI_DataType_S64, &value});
  }
  std::vector<XLA_FFI_ByteSpan*> names;
  std::vector<void*> values;
  for (size_t i = 0; i < count; ++i) {
    names.push_back(&spans[i]);
    values.push_back(&scalars[i]);
  }
  XLA_FFI_CallFrame frame{};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = runtime();
  frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, int64_t(args.size()), arg_types.data(), args.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, int64_t(rets.size()), ret_types.data(), rets.data()};
  frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE, nullptr, int64_t(count), types.data(), names.data(), values.data()};
  std::unique_ptr<XLA_FFI_Error> error(handler(&frame));
  return error ? error->message : "";
}

inline std::string call(XLA_FFI_Error* (*handler)(XLA_FFI_CallFrame*), Memory& operand,
                        const std::vector<Memory*>& results, std::map<std::string, int64_t> attributes = {}) {
  return call(handler, std::vector<Memory*>{&operand}, results, std::move(attributes));
}

#endif  // PHLOX_KERNELS_TESTS_HANDLERS_H_

// A recursive mutex of the C library: std::recursive_mutex throws, for which a static program would carry the means. Builds of
// one thread (RAWBPF_ONE_THREAD) have none.
#include "runtime/base/remembering.h"

#include <pthread.h>

namespace rawbpf::inline v0 {
namespace {

#ifdef RAWBPF_ONE_THREAD
void take() {}
void give() {}
#else
pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
void take() { pthread_mutex_lock(&lock); }
void give() { pthread_mutex_unlock(&lock); }
#endif

} // namespace

Remembering::Remembering() { take(); }
Remembering::~Remembering() { give(); }

} // namespace rawbpf::inline v0

// dlopen(3) counts who has a library open and returns the one that is loaded, so asking again costs a look-up.
#include "programs/library.h"

#include <dlfcn.h>

namespace rawbpf::inline v0 {

void *function_of(const char *library, const char *name) {
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return loaded ? dlsym(loaded, name) : nullptr;
}

} // namespace rawbpf::inline v0

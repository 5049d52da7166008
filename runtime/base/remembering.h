// One lock for what the library finds out once and keeps for the whole process: what this kernel can do, its types, where tracefs
// is.
//
// Two threads that load at the same time ask the same questions. The answer is asked for while the lock is held, so the second
// thread waits for it instead of asking again, and never sees half of it. One question may lead to another (does this kernel have
// a helper? then which program could call it?): a thread that has the lock may take it again, and as there is only one lock no
// two threads can wait for each other.
#pragma once

namespace rawbpf::inline v0 {

/// Holds the lock as long as it lives.
class Remembering {
  public:
    Remembering();
    ~Remembering();
    Remembering(const Remembering &) = delete;
    Remembering &operator=(const Remembering &) = delete;
};

} // namespace rawbpf::inline v0

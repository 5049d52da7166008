// What `./dev demo` profiles: a small particle world with a few clearly named places to spend time in, several calls deep, so
// that its flame graph has a shape to recognise. Built with frame pointers and optimisation, as a profiled program should be.
//
// Usage: demo-workload SECONDS
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif

namespace world {

struct Particle {
    float x, y, vx, vy;
    uint32_t cell;
};

using Particles = std::vector<Particle>;

// An empty asm after the last call keeps the compiler from turning it into a jump, which would take this frame off the stack.
#define STAY asm volatile("" ::: "memory")

KEEP void integrate(Particles &particles, float dt) {
    for (Particle &p : particles) {
        p.vy -= 9.81f * dt;
        p.x = std::fmod(p.x + p.vx * dt + 64.f, 64.f);
        p.y = std::fmod(p.y + p.vy * dt + 640.f, 64.f);
    }
    STAY;
}

KEEP void assign_cells(Particles &particles) {
    for (Particle &p : particles) p.cell = static_cast<uint32_t>(p.y) * 64 + static_cast<uint32_t>(p.x);
    STAY;
}

KEEP void sort_by_cell(Particles &particles) {
    std::sort(particles.begin(), particles.end(), [](const Particle &a, const Particle &b) { return a.cell < b.cell; });
    STAY;
}

KEEP float repel(Particle &a, Particle &b) {
    float dx = a.x - b.x, dy = a.y - b.y;
    float distance = std::sqrt(dx * dx + dy * dy) + 0.01f;
    float push = 0.001f / distance;
    a.vx += dx * push, a.vy += dy * push;
    b.vx -= dx * push, b.vy -= dy * push;
    return push;
}

KEEP float collide(Particles &particles) {
    float total = 0;
    for (size_t i = 0; i < particles.size(); ++i)
        for (size_t j = i + 1; j < particles.size() && j < i + 12 && particles[j].cell == particles[i].cell; ++j)
            total += repel(particles[i], particles[j]);
    STAY;
    return total;
}

KEEP float simulate(Particles &particles) {
    integrate(particles, 0.004f);
    assign_cells(particles);
    sort_by_cell(particles);
    float energy = collide(particles);
    STAY;
    return energy;
}

KEEP uint64_t checksum(const std::string &frame) {
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char c : frame) hash = (hash ^ c) * 0x100000001b3;
    return hash;
}

KEEP std::string draw(const Particles &particles) {
    std::string frame(64 * 64, ' ');
    for (const Particle &p : particles) {
        char &c = frame[p.cell % frame.size()];
        c = c == ' ' ? '.' : c == '.' ? 'o' : '@';
    }
    return frame;
}

KEEP uint64_t render(const Particles &particles) {
    uint64_t sum = 0;
    for (int i = 0; i < 6; ++i) sum += checksum(draw(particles));
    STAY;
    return sum;
}

KEEP void save(const std::string &path, uint64_t sum) {
    if (std::FILE *f = std::fopen(path.c_str(), "w")) {
        for (int i = 0; i < 40; ++i) {
            std::fprintf(f, "%016jx\n", uintmax_t{sum} + static_cast<uintmax_t>(i));
            std::fflush(f); // a system call a line: something for the kernel half of the picture
        }
        std::fclose(f);
    }
    STAY;
}

} // namespace world

KEEP static uint64_t run(double seconds) {
    world::Particles particles(4000);
    uint32_t seed = 1;
    for (world::Particle &p : particles) {
        auto next = [&] { return static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / 262144.f; };
        p = {next(), next(), next() - 32, next() - 32, 0};
    }
    uint64_t sum = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        sum += static_cast<uint64_t>(world::simulate(particles));
        sum += world::render(particles);
        world::save("/dev/null", sum);
    }
    STAY;
    return sum;
}

int main(int argc, char **argv) {
    uint64_t sum = run(argc > 1 ? std::atof(argv[1]) : 3);
    return sum == 42 ? 1 : 0;
}

#include "shapes.h"
#include <stdexcept>
namespace geo {
static inline double clamp(double x) { return x < 0 ? 0 : x; }
double Box::area() const {
    if (a > 1e9) throw std::runtime_error("large");
    return clamp(a) * clamp(b);
}
double sum(const std::vector<Shape *> &all) {
    double total = 0;
    auto add = [&total](const Shape *s) { total += s->twice() + square(s->area()); };
    for (auto *s : all) add(s);
    return total;
}
} // namespace geo

#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace geo {
template <class T> inline T square(T x) { return x * x; }
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
    double twice() const { return 2 * area(); }
};
struct Circle : Shape {
    double r;
    explicit Circle(double r) : r(r) {}
    double area() const override { return 3.14 * square(r); }
};
struct Box : Shape {
    double a, b;
    Box(double a, double b) : a(a), b(b) {}
    double area() const override;
};
class Counter {
  public:
    void count(const std::string &word) { ++seen_[normal(word)]; }
    size_t most() const {
        size_t best = 0;
        for (auto &[w, n] : seen_) best = std::max(best, n);
        return best;
    }

  private:
    static std::string normal(std::string w) {
        std::transform(w.begin(), w.end(), w.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
        return w;
    }
    std::map<std::string, size_t> seen_;
};
} // namespace geo

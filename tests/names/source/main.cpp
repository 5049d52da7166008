#include "shapes.h"
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <regex>
#include <sstream>
namespace geo {
double sum(const std::vector<Shape *> &all);
}
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv) {
    geo::Counter counter;
    std::istringstream in(argc > 1 ? argv[1] : "The the THE end");
    for (std::string w; in >> w;) counter.count(w);
    std::vector<std::unique_ptr<geo::Shape>> own;
    own.push_back(std::make_unique<geo::Circle>(argc));
    own.push_back(std::make_unique<geo::Box>(argc, 3));
    std::vector<geo::Shape *> all;
    for (auto &s : own) all.push_back(s.get());
    std::regex words("([a-z]+)[0-9]*");
    std::smatch m;
    std::string text = "abc123";
    std::vector<std::function<int(int)>> fs{fib, [](int x) { return x * 2; }};
    int r = 0;
    try {
        r += std::regex_match(text, m, words);
    } catch (const std::exception &e) {
        std::cerr << e.what();
    }
    for (auto &f : fs) r += f(argc + 10);
    std::sort(text.begin(), text.end(), std::greater<char>());
    std::cout << geo::sum(all) << counter.most() << r << text << "\n";
}

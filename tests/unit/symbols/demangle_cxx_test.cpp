// C++ names, against two other demanglers and hostile ones.
//
// What each vector reads as was compared with binutils 2.40 (c++filt) and LLVM 19 (llvm-cxxfilt): one of them says the same, but
// for spaces, for how parameters in expressions are called and for a return type in the middle of a name, which is left out. So
// were the 368,738 mangled names of one machine's libraries (libstdc++, LLVM, V8, absl ...): all are read.
#include "runtime/symbols/demangle.h"

#include "tests/support/test.h"

using namespace rawbpf::symbols;

namespace {

struct Vector {
    std::string_view mangled, readable;
};
constexpr Vector kNames[] = {
    {"_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::remove_reference<int&>::type&& std::move<int&>(int&)"},
    {"_ZN1ScvT_IiEEv", "S::operator int<int>()"},
    {"_ZNK1ScvPFivEEv", "S::operator int (*)()() const"},
    {"_ZN3FooC2IiEET_", "Foo::Foo<int>(int)"},
    {"_ZN3FooD0Ev", "Foo::~Foo()"},
    {"_ZTV3Foo", "vtable for Foo"},
    {"_ZThn16_N3Foo3barEv", "non-virtual thunk to Foo::bar()"},
    {"_ZTv0_n24_N1A1fEv", "virtual thunk to A::f()"},
    {"_ZTcv0_n24_v0_n24_N1A1fEv", "covariant return thunk to A::f()"},
    {"_ZTCN1A1BE0_N1C1DE", "construction vtable for C::D-in-A::B"},
    {"_ZGVZ3foovE1x", "guard variable for foo()::x"},
    {"_ZZ3foovE1x_0", "foo()::x"},
    {"_ZZ3foovEs", "foo()::string literal"},
    {"_ZZ3foovEs__12_", "foo()::string literal"},
    {"_Z1fPFivEPA3_iRA4_KcM1XFvvEM1Xi", "f(int (*)(), int (*) [3], char const (&) [4], void (X::*)(), int X::*)"},
    {"_Z1fIJidEEvDpOT_", "void f<int, double>(int&&, double&&)"},
    {"_Z1fIJEEvDpOT_", "void f<>()"},
    {"_Z1fIJiEEvDpPT_", "void f<int>(int*)"},
    {"_ZlsRSoRK1X", "operator<<(std::ostream&, X const&)"},
    {"_ZN1XixEi", "X::operator[](int)"},
    {"_ZN1XclEv", "X::operator()()"},
    {"_ZN1XaSEOS_", "X::operator=(X&&)"},
    {"_ZN1XpLIiEERS_T_", "X& X::operator+=<int>(int)"},
    {"_ZlsIiEvT_", "void operator<< <int>(int)"},
    {"_Znwm", "operator new(unsigned long)"},
    {"_ZdaPv", "operator delete[](void*)"},
    {"_Zli2_xy", "operator\"\" _x(unsigned long long)"},
    {"_ZNSsC1EPKcRKSaIcE", "std::string::basic_string(char const*, std::allocator<char> const&)"},
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev",
     "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>::~basic_string()"},
    {"_ZNSt6vectorIiSaIiEE9push_backERKi.isra.0.cold",
     "std::vector<int, std::allocator<int>>::push_back(int const&) [clone .isra.0] [clone .cold]"},
    {"_Z3foov.llvm.1234", "foo() [clone .llvm.1234]"},
    {"_Z1fILi3ELb1ELc97ELm5ELn1EEvv", "void f<3, true, (char)97, 5ul, (__int128)1>()"},
    {"_Z1fILin3EEvv", "void f<-3>()"},
    {"_Z1fILDn0EEvv", "void f<nullptr>()"},
    {"_Z3fooIXadL_Z3barvEEEvv", "void foo<&bar()>()"},
    {"_Z3fooIL_Z3barvEEvv", "void foo<bar()>()"},
    {"_ZNKR1X1fEv", "X::f() const &"},
    {"_ZNVKO1X1fEv", "X::f() const volatile &&"},
    {"_Z1fDv4_f", "f(float vector[4])"},
    {"_Z1fCd", "f(double _Complex)"},
    {"_Z1fU3AS1Pi", "f(int* AS1)"},
    {"_Z1fIXgtLi3ELi2EEEvv", "void f<(3 > 2)>()"},
    {"_Z1fIXplmlLi3ELi2ELi1EEEvv", "void f<3 * 2 + 1>()"},
    {"_Z1fIXmlplLi3ELi2ELi1EEEvv", "void f<(3 + 2) * 1>()"},
    {"_Z1fIiEDTplfp_fp0_ET_S0_", "decltype({parm#1} + {parm#2}) f<int>(int, decltype({parm#1} + {parm#2}))"},
    {"_Z1fIiEDTcl1gfp_EET_", "decltype(g({parm#1})) f<int>(int)"},
    {"_Z1fIiEDTcvT_fp_ES0_", "decltype((int)({parm#1})) f<int>(int)"},
    {"_Z1fIJiiEEDTcl1gspfp_EEDpT_", "decltype(g({parm#1}...)) f<int, int>(int, int)"},
    {"_Z1fIJiiEEvRA_sZT__i", "_Z1fIJiiEEvRA_sZT__i"},
    {"_Z1fIiEvRAstT__i", "void f<int>(int (&) [sizeof (int)])"},
    {"_Z1fIiEvDTcmcvvfp_quleLi1ELi2Eadfp_defp_ET_",
     "void f<int>(decltype((void)({parm#1}), 1 <= 2 ? &{parm#1} : *{parm#1}), int)"},
    {"_Z1fIiEDTnw_T_piLi1EEES0_", "decltype(new int(1)) f<int>(int)"},
    {"_Z1fI1AEDTdtfp_4nameET_", "decltype({parm#1}.name) f<A>(A)"},
    {"_Z1fI1AEDTptfp_4nameIiEET_", "decltype({parm#1}->name<int>) f<A>(A)"},
    {"_Z1fI1AEN8enable_ifIXsrT_5valueEvE4typeES2_", "_Z1fI1AEN8enable_ifIXsrT_5valueEvE4typeES2_"},
    {"_Z1fI1AEN8enable_ifIXsr3stdE5valueEvE4typeET_", "_Z1fI1AEN8enable_ifIXsr3stdE5valueEvE4typeET_"},
    {"_Z1fI1AEDTsrNT_1B1CE1dET_", "decltype(A::B::C::d) f<A>(A)"},
    {"_Z1fIiEDTscT_fp_ES0_", "decltype(static_cast<int>({parm#1})) f<int>(int)"},
    {"_Z1fIJLi1ELi2EEEN1XIXspplT_Li1EEE4typeEv", "X<1 + 1, 2 + 1>::type f<1, 2>()"},
    {"_Z1fIJLi1EEEvN1XIXflaaT_EEE", "void f<1>(X<(... && 1)>)"},
    {"_Z1fIJLi1EEEvN1XIXfLplLi0ET_EEE", "void f<1>(X<(0 + ... + 1)>)"},
    {"_Z4makeITk3FooiEvT_", "void make<int>(int)"},
    {"_ZN1X3fooEQ1CIiE", "X::foo() requires C<int>"},
    {"_Z1fDF16_DF16bDF32x", "f(_Float16, std::bfloat16_t, _Float32x)"},
    {"_Z1fDniDaDu", "f(decltype(nullptr), int, auto, char8_t)"},
    {"_Z1fPDoFvvE", "f(void (*)() noexcept)"},
    {"_Z1fPDOLb1EEFvvE", "f(void (*)() noexcept(true))"},
    {"_ZDC1a1bE", "[a, b]"},
    {"_ZNK3$_0clEv", "$_0::operator()() const"},
    {"_ZZN1AC1EvENKUlvE_clEv", "A::A()::{lambda()#1}::operator()() const"},
    {"_ZZN1A1fEiEd_NKUlvE_clEv", "A::f(int)::{default arg#1}::{lambda()#1}::operator()() const"},
    {"_ZZ4mainENKUliT_E0_clIcEEDaiS_", "auto main::{lambda(int, auto:1)#2}::operator()<char>(int, char) const"},
    {"_ZN5boost6detail1gIZ4mainEUlT_E_EEvS2_", "void boost::detail::g<main::{lambda(auto:1)#1}>(main::{lambda(auto:1)#1})"},
    {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()"},
    {"_ZN1A3fooB5cxx11Ev", "A::foo[abi:cxx11]()"},
    {"_ZN1AB2v23fooEv", "A[abi:v2]::foo()"},
    {"_ZTWN2ns1xE", "TLS wrapper function for ns::x"},
    {"_ZTH1x", "TLS init function for x"},
    {"_ZGR1x0_", "reference temporary for x"},
    {"_ZTAXtl1ALi1EEE", "template parameter object for A{1}"},
    {"_Z1fIN1AUt_EEvT_", "void f<A::{unnamed type#1}>(A::{unnamed type#1})"},
    {"_Z1fTs1A", "f(struct A)"},
    {"_ZNDTcl1gEE1fEv", "decltype(g())::f()"},
    {"_ZN4llvm15SmallPtrSetImplIPNS_10BasicBlockEE9remove_ifIZNS_13set_intersectINS_11SmallPtrSetIS2_Lj4EEES7_EEvRT_RKT0_EUlRKS8_"
     "E_EEbS8_",
     "bool llvm::SmallPtrSetImpl<llvm::BasicBlock*>::remove_if<llvm::set_intersect<llvm::SmallPtrSet<llvm::BasicBlock*, 4u>, "
     "llvm::SmallPtrSet<llvm::BasicBlock*, 4u>>(llvm::SmallPtrSet<llvm::BasicBlock*, 4u>&, llvm::SmallPtrSet<llvm::BasicBlock*, "
     "4u> const&)::{lambda(auto:1 const&)#1}>(llvm::set_intersect<llvm::SmallPtrSet<llvm::BasicBlock*, 4u>, "
     "llvm::SmallPtrSet<llvm::BasicBlock*, 4u>>(llvm::SmallPtrSet<llvm::BasicBlock*, 4u>&, llvm::SmallPtrSet<llvm::BasicBlock*, "
     "4u> const&)::{lambda(auto:1 const&)#1})"},
    {"_Z3barIJiEEvRZ3fooIJDpT_EEvvE1A", "void bar<int>(foo<int>()::A&)"},
    {"_Z1fRPFPFviEcE", "f(void (* (*&)(char))(int))"},
    {"_Z1fRKA2_A3_Ki", "f(int const const (&) [2][3])"},
    {"_Z1fIRiEvOT_", "void f<int&>(int&)"},
    {"_Z1fIOiEvRT_", "void f<int&&>(int&)"},
    {"_Z1fM1AKFvvRE", "f(void (A::*)() const &)"},
};

} // namespace

TEST_CASE("demangle: C++ names") {
    for (const Vector &v : kNames) {
        CAPTURE(v.mangled);
        CHECK(demangle(v.mangled) == v.readable);
    }
}

TEST_CASE("demangle: C++, what is malformed comes back unchanged") {
    for (std::string_view bad : {"_Z1fDpT_",
                                 "_Z",
                                 "_ZN",
                                 "_ZNE",
                                 "_ZN1A",
                                 "_Z99f",
                                 "_Z1fS_",
                                 "_Z1fS0_",
                                 "_Z1fi x",
                                 "_Z1f i",
                                 "_ZN1AIE",
                                 "_Z1fLi3E",
                                 "_ZT",
                                 "_ZTV",
                                 "_ZGR",
                                 "_ZNSsMEv",
                                 "_ZNStEv",

                                 "_Z1fIXE",
                                 "_Z1fA",
                                 "_Z1fA3",
                                 "_ZZ1fv",
                                 "_ZZ1fvE",
                                 "_ZN3St3fooEvE",
                                 "_Z1fIiEvT0_",
                                 "_Z1fIiEvT4294967296_",
                                 "_Z18446744073709551617f"}) {
        CAPTURE(bad);
        CHECK(demangle(bad) == bad);
    }
}

TEST_CASE("demangle: C++, cut at every byte") {
    for (const Vector &v : kNames)
        for (size_t cut = 0; cut < v.mangled.size(); ++cut) (void)demangle(v.mangled.substr(0, cut));
}

TEST_CASE("demangle: C++, depth, time and output are bounded") {
    std::string deep = "_Z1f" + std::string(30000, 'P') + "i";
    CHECK(demangle(deep) == deep);
    std::string fair = "_Z1f" + std::string(100, 'P') + "i";
    CHECK(demangle(fair) == "f(int" + std::string(100, '*') + ")");
    std::string nested = "_ZN";
    for (int i = 0; i < 10000; ++i) nested += "1a";
    nested += "E";
    CHECK(demangle(nested) == nested);

    // Each pair holds the one before it twice: the text doubles with every step. Beside the text, packs double too.
    auto reference = [](int n) {
        std::string digits;
        if (n == 0) return std::string("S_");
        for (--n;; n /= 36) {
            digits.insert(digits.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36]);
            if (n < 36) return "S" + digits + "_";
        }
    };
    std::string bomb = "_Z1fSt4pairIiiE";
    for (int i = 1; i < 60; ++i) bomb += "S_I" + reference(i - 1 + (i == 1)) + reference(i - 1 + (i == 1)) + "E";
    CHECK(demangle(bomb) == bomb);
    std::string packs = "_Z1fIJiiiiiiiiEEv";
    for (int i = 0; i < 100; ++i) packs += "Dp";
    packs += "T_";
    CHECK(demangle(packs).size() < (70 << 10));
}

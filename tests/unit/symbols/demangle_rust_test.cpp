// Rust names, against what rustc made and hostile ones.
//
// The vectors are symbols of a program written for this test that uses each kind of type, constant and path that can stand in a
// name, compiled by rustc 1.97 (nightly, for constants of structural types) with either -C symbol-mangling-version. What they
// should read as was checked by eye against the source; beside them, the 202,235 v0 names of librustc_driver and 23,498 legacy
// ones of Python extensions were compared with llvm-cxxfilt 19 and binutils: equal but for how clones are written.
#include <cstdint>

#include "runtime/symbols/demangle.h"

#include "runtime/symbols/punycode.h"
#include "tests/support/test.h"

using namespace rawbpf::symbols;

namespace {

struct Vector {
    std::string_view mangled, readable;
};

constexpr Vector kV0[] = {
    {"_RINvCskOGwlKjLXpR_1t1tmEB2_", "t::t::<u32>"},
    {"_RINvCskOGwlKjLXpR_1t2tyAhj4_EB2_", "t::ty::<[u8; 4]>"},
    {"_RINvCskOGwlKjLXpR_1t2tyDG_INtB2_2TrL0_Ep1Ahp2BbaEL_EB2_", "t::ty::<dyn for<'a> t::Tr<'a, A = u8, Bb = i8>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyDG_INtNtNtCs8NwYtU1Mohg_4core3ops8function2FnTRL0_hEEp6OutputhEL_EB2_",
     "t::ty::<dyn for<'a> core::ops::function::Fn<(&'a u8,), Output = u8>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyDINtNtNtCs8NwYtU1Mohg_4core3ops8function2FnThEEp6OutputuNtNtBt_6marker4SyncNtB1h_4SendEL_EB2_",
     "t::ty::<dyn core::ops::function::Fn<(u8,), Output = ()> + core::marker::Sync + core::marker::Send>"},
    {"_RINvCskOGwlKjLXpR_1t2tyDNtNtCs8NwYtU1Mohg_4core6marker4SendEL_EB2_", "t::ty::<dyn core::marker::Send>"},
    {"_RINvCskOGwlKjLXpR_1t2tyDNtNtNtNtCs8NwYtU1Mohg_4core4iter6traits8iterator8Iteratorp4ItemhNtNtBu_6marker4SendEL_EB2_",
     "t::ty::<dyn core::iter::traits::iterator::Iterator<Item = u8> + core::marker::Send>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFEuEB2_", "t::ty::<fn()>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFG0_RL1_hRL0_FG_RL0_RL2_hEuEuEB2_", "t::ty::<for<'a, 'b> fn(&'a u8, &'b for<'c> fn(&'c &'a u8))>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFG_RL0_hERL0_hEB2_", "t::ty::<for<'a> fn(&'a u8) -> &'a u8>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFK6systemEuEB2_", "t::ty::<extern \"system\" fn()>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFK6sysv64hEuEB2_", "t::ty::<extern \"sysv64\" fn(u8)>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFK8C_unwindEuEB2_", "t::ty::<extern \"C-unwind\" fn()>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFUKCPavElEB2_", "t::ty::<unsafe extern \"C\" fn(*const i8, ...) -> i32>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFUhEhEB2_", "t::ty::<unsafe fn(u8) -> u8>"},
    {"_RINvCskOGwlKjLXpR_1t2tyFhzEzEB2_", "t::ty::<fn(u8, !) -> !>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1BKb0_EEB2_", "t::ty::<t::B<false>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1BKb1_EEB2_", "t::ty::<t::B<true>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1CKc1_EEB2_", "t::ty::<t::C<'\\u{1}'>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1CKc2202_EEB2_", "t::ty::<t::C<'∂'>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1CKc22_EEB2_", "t::ty::<t::C<'\"'>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1CKc27_EEB2_", "t::ty::<t::C<'\\''>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1CKc78_EEB2_", "t::ty::<t::C<'x'>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1CKca_EEB2_", "t::ty::<t::C<'\\n'>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1NKn0_EEB2_", "t::ty::<t::N<0>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1NKnn5_EEB2_", "t::ty::<t::N<-5>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_1NKnn80000000000000000000000000000000_EEB2_",
     "t::ty::<t::N<-0x80000000000000000000000000000000>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2ARKAh1_h2_h3_EEEB2_", "t::ty::<t::AR<{[1, 2, 3]}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2EEKVNtNtB2_1E1SS1ac7a_1bln7_EEEB2_", "t::ty::<t::EE<{t::E::S { a: 'z', b: -7 }}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2EEKVNtNtB2_1E1TTh3_b1_EEEB2_", "t::ty::<t::EE<{t::E::T(3, true)}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2EEKVNtNtB2_1E1UUEEB2_", "t::ty::<t::EE<{t::E::U}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2I8Kan80_EEB2_", "t::ty::<t::I8<-128>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2RRKRh7_EEB2_", "t::ty::<t::RR<{&7}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2SLKRAh1_h2_EEEB2_", "t::ty::<t::SL<{&[1, 2]}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2SSKRe68c3a96c6c6f2022772220277127200a09005c_EEB2_",
     "t::ty::<t::SS<\"héllo \\\"w\\\" 'q' \\n\\t\\0\\\\\">>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2SSKRe_EEB2_", "t::ty::<t::SS<\"\">>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2T1KTh9_EEEB2_", "t::ty::<t::T1<{(9,)}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2TUKTh1_c61_EEEB2_", "t::ty::<t::TU<{(1, 'a')}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2UUKVNtB2_4UnitUEEB2_", "t::ty::<t::UU<{t::Unit}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2UnKo10000000000000000_EEB2_", "t::ty::<t::Un<0x10000000000000000>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2UnKoffffffffffffffff_EEB2_", "t::ty::<t::Un<18446744073709551615>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2UnKoffffffffffffffffffffffffffffffff_EEB2_",
     "t::ty::<t::Un<0xffffffffffffffffffffffffffffffff>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2UsKj7b_EEB2_", "t::ty::<t::Us<123>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtB2_2WWKVNtB2_1WTy4d_EEEB2_", "t::ty::<t::WW<{t::W(77)}>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyINtNtCsbEht8wFNRx7_5alloc5boxed3BoxDNtNtCs8NwYtU1Mohg_4core3any3AnyEL_EEB2_",
     "t::ty::<alloc::boxed::Box<dyn core::any::Any>>"},
    {"_RINvCskOGwlKjLXpR_1t2tyNtB2_u8Gdel_5qaEB2_", "t::ty::<t::Gödel>"},
    {"_RINvCskOGwlKjLXpR_1t2tyOStEB2_", "t::ty::<*mut [u16]>"},
    {"_RINvCskOGwlKjLXpR_1t2tyPhEB2_", "t::ty::<*const u8>"},
    {"_RINvCskOGwlKjLXpR_1t2tyQhEB2_", "t::ty::<&mut u8>"},
    {"_RINvCskOGwlKjLXpR_1t2tyRhEB2_", "t::ty::<&u8>"},
    {"_RINvCskOGwlKjLXpR_1t2tyShEB2_", "t::ty::<[u8]>"},
    {"_RINvCskOGwlKjLXpR_1t2tyThEEB2_", "t::ty::<(u8,)>"},
    {"_RINvCskOGwlKjLXpR_1t2tyThatsmlyxonjifdcbeEEB2_",
     "t::ty::<(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize, f32, f64, char, bool, str)>"},
    {"_RINvCskOGwlKjLXpR_1t2tyThsEEB2_", "t::ty::<(u8, i16)>"},
    {"_RINvCskOGwlKjLXpR_1t2tyaEB2_", "t::ty::<i8>"},
    {"_RINvCskOGwlKjLXpR_1t2tyhEB2_", "t::ty::<u8>"},
    {"_RINvCskOGwlKjLXpR_1t2tymEB2_", "t::ty::<u32>"},
    {"_RINvCskOGwlKjLXpR_1t2tyuEB2_", "t::ty::<()>"},
    {"_RINvCskOGwlKjLXpR_1t2tyyEB2_", "t::ty::<u64>"},
    {"_RINvNtCs8NwYtU1Mohg_4core4hint9black_boxNCNCNvXs_CskOGwlKjLXpR_1thNtBL_2Tr2go00EBL_",
     "core::hint::black_box::<<u8 as t::Tr>::go::{closure#0}::{closure#0}>"},
    {"_RINvNtCs8NwYtU1Mohg_4core4hint9black_boxNCNvXs_CskOGwlKjLXpR_1thNtBJ_2Tr2go0EBJ_",
     "core::hint::black_box::<<u8 as t::Tr>::go::{closure#0}>"},
    {"_RNCNCNvXs_CskOGwlKjLXpR_1thNtB8_2Tr2go00B8_", "<u8 as t::Tr>::go::{closure#0}::{closure#0}"},
    {"_RNCNvCskOGwlKjLXpR_1t4main0B3_", "t::main::{closure#0}"},
    {"_RNCNvCskOGwlKjLXpR_1t4mains_0B3_", "t::main::{closure#1}"},
    {"_RNCNvXs_CskOGwlKjLXpR_1thNtB6_2Tr2go0B6_", "<u8 as t::Tr>::go::{closure#0}"},
    {"_RNSNvYNCNvCskOGwlKjLXpR_1t4mains_0INtNtNtCs8NwYtU1Mohg_4core3ops8function6FnOnceuE9call_once6vtableB8_",
     "<t::main::{closure#1} as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}"},
    {"_RNvCskOGwlKjLXpR_1t4main", "t::main"},
    {"_RNvMCskOGwlKjLXpR_1tNtB2_u8Gdel_5qau8fe_gia9i", "<t::Gödel>::füße"},
    {"_RNvNtCskOGwlKjLXpR_1tu7_1lqs71du7i5wq75d", "t::東京::渋谷"},
    {"_RNvNvCskOGwlKjLXpR_1t4main5inner", "t::main::inner"},
    {"_RNvNvCskOGwlKjLXpR_1t4mains_5inner", "t::main::inner"},
    {"_RNvNvNvCskOGwlKjLXpR_1t4main5inner6inner2", "t::main::inner::inner2"},
    {"_RNvXs0_CskOGwlKjLXpR_1tARhj3_NtB5_2Tr2goB5_", "<[&u8; 3] as t::Tr>::go"},
    {"_RNvXs_CskOGwlKjLXpR_1thNtB4_2Tr2go", "<u8 as t::Tr>::go"},
    {"_RNvYhNtCskOGwlKjLXpR_1t2Tr3defB5_", "<u8 as t::Tr>::def"},
    // By hand, from the grammar of RFC 2603 and its extensions.
    {"_RNvC1a1b", "a::b"},
    {"_RNvCs4fqI2P2rA04_13const_generic3foo", "const_generic::foo"},
    {"_RNvC6_123foo3bar", "123foo::bar"},
    {"_RNKC1a3foo", "a::{K:foo#0}"},
    {"_RNSC1as_4drop", "a::{shim:drop#1}"},
    {"_RINvC1a1fL_L_E", "a::f::<'_, '_>"},
    {"_RINvC1a1fFG0_RL0_hRL1_tEuE", "a::f::<for<'a, 'b> fn(&'b u8, &'a u16)>"},
    {"_RINvC1a1fDG_INtC1b1TL0_EEL_E", "a::f::<dyn for<'a> b::T<'a>>"},
    {"_RMC1aINtC1a1TWjRj0_j5_E", "<a::T<usize is 0..=5>>"},
    {"_RINvC1a1fWPuNE", "a::f::<*const () is !null>"},
    {"_RINvC1a1fWcORc61_c7a_Rc30_c39_EE", "a::f::<char is 'a'..='z' | '0'..='9'>"},
    {"_RINvC1a1fKpE", "a::f::<_>"},
    {"_RINvC1a1fKe616263_E", "a::f::<{*\"abc\"}>"},
    {"_RINvC1a1fKQAh1_EE", "a::f::<{&mut [1]}>"},
    {"_RNvC1a1bC1c", "a::b"},
    {"_RNvC1a1b.llvm.77", "a::b [clone .llvm.77]"},
    {"_RNvC1a1b.cold.1", "a::b [clone .cold.1]"},
};

constexpr Vector kLegacy[] = {
    {"_ZN102_$LT$core..iter..adapters..map..Map$LT$I$C$F$GT$$u20$as$u20$core..iter..traits..iterator..Iterator$GT$"
     "4fold17ha35aaf5cf9873976E",
     "<core::iter::adapters::map::Map<I,F> as core::iter::traits::iterator::Iterator>::fold"},
    {"_ZN111_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$alloc..vec..spec_from_iter_nested..SpecFromIterNested$LT$T$C$I$GT$$GT$9from_"
     "iter17h8ba74500b964a41cE",
     "<alloc::vec::Vec<T> as alloc::vec::spec_from_iter_nested::SpecFromIterNested<T,I>>::from_iter"},
    {"_ZN1t15_$u6771$$u4eac$15_$u6e0b$$u8c37$17h7d35bc9f8ecdd465E", "t::東京::渋谷"},
    {"_ZN1t4main28_$u7b$$u7b$closure$u7d$$u7d$17h5e990ca2ba226c4eE", "t::main::{{closure}}"},
    {"_ZN1t4main28_$u7b$$u7b$closure$u7d$$u7d$17hd160377c2b371d56E", "t::main::{{closure}}"},
    {"_ZN1t9G$uf6$del12f$ufc$$udf$e17hb633c5366dc98fe9E", "t::Gödel::füße"},
    {"_ZN28_$LT$u8$u20$as$u20$t..Tr$GT$2go17h8ab894b459da572eE", "<u8 as t::Tr>::go"},
    {"_ZN28_$LT$u8$u20$as$u20$t..Tr$GT$2go28_$u7b$$u7b$closure$u7d$$u7d$17h1ef04d33eb12f522E", "<u8 as t::Tr>::go::{{closure}}"},
    {"_ZN28_$LT$u8$u20$as$u20$t..Tr$GT$2go28_$u7b$$u7b$closure$u7d$$u7d$28_$u7b$$u7b$closure$u7d$$u7d$17h3f0c0bb89bb14fefE",
     "<u8 as t::Tr>::go::{{closure}}::{{closure}}"},
    {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h688d39e2672ae183E", "std::rt::lang_start::{{closure}}"},
    {"_ZN47_$LT$u32$u20$as$u20$core..iter..range..Step$GT$13steps_between17h3e3194e24e6098d3E",
     "<u32 as core::iter::range::Step>::steps_between"},
    {"_ZN47_$LT$u32$u20$as$u20$core..iter..range..Step$GT$17forward_unchecked17hfe7168deb289ebc7E",
     "<u32 as core::iter::range::Step>::forward_unchecked"},
    {"_ZN52_$LT$$u5b$$RF$T$u3b$$u20$3$u5d$$u20$as$u20$t..Tr$GT$2go17h00bf3c07dfd4449eE", "<[&T; 3] as t::Tr>::go"},
    {"_ZN54_$LT$$LP$$RP$$u20$as$u20$std..process..Termination$GT$6report17h0e94edcecb4130b6E",
     "<() as std::process::Termination>::report"},
    {"_ZN54_$LT$u32$u20$as$u20$core..iter..traits..accum..Sum$GT$3sum17hdd39e43390a24efcE",
     "<u32 as core::iter::traits::accum::Sum>::sum"},
    {"_ZN54_$LT$u32$u20$as$u20$core..iter..traits..accum..Sum$GT$3sum28_$u7b$$u7b$closure$u7d$$u7d$17h710f216852c47451E",
     "<u32 as core::iter::traits::accum::Sum>::sum::{{closure}}"},
    {"_ZN60_$LT$$RF$u32$u20$as$u20$core..ops..arith..Mul$LT$u32$GT$$GT$3mul17haf93a341f3618ba7E",
     "<&u32 as core::ops::arith::Mul<u32>>::mul"},
    {"_ZN63_$LT$I$u20$as$u20$core..iter..traits..collect..IntoIterator$GT$9into_iter17h57c4a4b169a05d7aE",
     "<I as core::iter::traits::collect::IntoIterator>::into_iter"},
    {"_ZN63_$LT$alloc..alloc..Global$u20$as$u20$core..alloc..Allocator$GT$10deallocate17h972499db3d3960ffE",
     "<alloc::alloc::Global as core::alloc::Allocator>::deallocate"},
    {"_ZN70_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h4a2a5c6b59ac1019E",
     "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop"},
    {"_ZN72_$LT$alloc..boxed..Box$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17he8e8e8b71292956eE",
     "<alloc::boxed::Box<T,A> as core::ops::drop::Drop>::drop"},
    {"_ZN72_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..ops..deref..Deref$GT$5deref17hfdd0cbd679325e4cE",
     "<alloc::vec::Vec<T,A> as core::ops::deref::Deref>::deref"},
    {"_ZN77_$LT$alloc..raw_vec..RawVec$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h2f16359a4848eb68E",
     "<alloc::raw_vec::RawVec<T,A> as core::ops::drop::Drop>::drop"},
    {"_ZN83_$LT$alloc..vec..set_len_on_drop..SetLenOnDrop$u20$as$u20$core..ops..drop..Drop$GT$4drop17h8c3dc509f9954ba3E",
     "<alloc::vec::set_len_on_drop::SetLenOnDrop as core::ops::drop::Drop>::drop"},
    {"_ZN89_$LT$core..ops..range..Range$LT$T$GT$$u20$as$u20$core..iter..range..RangeIteratorImpl$GT$9spec_"
     "next17hefb4f000f3c3f62eE",
     "<core::ops::range::Range<T> as core::iter::range::RangeIteratorImpl>::spec_next"},
    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
    {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.99", "core::fmt::Write::write_fmt [clone .llvm.99]"},
    {"_ZN4test5$X$aa17h0123456789abcdefE", "test::$X$aa"},     // no escape of rustc's
    {"_ZN4test4$u7$17h0123456789abcdefE", "test::$u7$"},       // a control character
    {"_ZN4test7$ud800$17h0123456789abcdefE", "test::$ud800$"}, // no character
};

} // namespace

TEST_CASE("demangle: Rust v0, as rustc makes it") {
    for (const Vector &v : kV0) {
        CAPTURE(v.mangled);
        CHECK(demangle(v.mangled) == v.readable);
    }
}

TEST_CASE("demangle: Rust legacy, as rustc makes it") {
    for (const Vector &v : kLegacy) {
        CAPTURE(v.mangled);
        CHECK(demangle(v.mangled) == v.readable);
    }
}

TEST_CASE("demangle: Rust v0, what is malformed comes back unchanged") {
    for (std::string_view bad : {"_RB_",
                                 "_RNvB0_1a",
                                 "_RCs_",
                                 "_RC0",
                                 "_RNvC1au5abc",
                                 "_RNvC1a1bx",
                                 "_RINvC1a1fL0_E",
                                 "_RINvC1a1fFRL0_hEuE",
                                 "_RNvC99a1b",
                                 "_RNvC1a99b",
                                 "_RNvCszzzzzzzzzzzzzzzzzzzz_1a1b",
                                 "_R0NvC1a1b",
                                 "_RINvC1a1fKh_E",
                                 "_RINvC1a1fKb2_E",
                                 "_RINvC1a1fKcd800_E",
                                 "_RINvC1a1fKe6_E",
                                 "_RINvC1a1fDNtC1b1TE",
                                 "_RINvC1a1fFKC",
                                 "_RINvC1a1fFK1\nEuE",
                                 "_RNvC1a1\x01"}) {
        CAPTURE(bad);
        CHECK(demangle(bad) == bad);
    }
}

TEST_CASE("demangle: Rust, cut at every byte") {
    for (const Vector &v : kV0)
        for (size_t cut = 0; cut < v.mangled.size(); ++cut) (void)demangle(v.mangled.substr(0, cut));
    for (const Vector &v : kLegacy)
        for (size_t cut = 0; cut < v.mangled.size(); ++cut) (void)demangle(v.mangled.substr(0, cut));
}

TEST_CASE("demangle: Rust v0, depth, time and output are bounded") {
    std::string deep = "_RINvC1a1f" + std::string(100000, 'R') + "hE";
    CHECK(demangle(deep) == deep);
    std::string fair = "_RINvC1a1f" + std::string(150, 'R') + "hE";
    CHECK(demangle(fair) == "a::f::<" + std::string(150, '&') + "u8>");

    // Each tuple refers twice to the one before it: 2^40 letters, if one let it.
    std::string bomb = "_RINvC1a1fThhE";
    auto base_62 = [](uint64_t n) {
        if (n == 0) return std::string("_");
        std::string out;
        for (--n;; n /= 62) {
            out.insert(out.begin(), "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 62]);
            if (n < 62) return out + "_";
        }
    };
    size_t before = bomb.size() - 4 - 2;
    for (int i = 0; i < 40; ++i) {
        size_t here = bomb.size() - 2;
        bomb += "TB" + base_62(before) + "B" + base_62(before) + "E";
        before = here;
    }
    bomb += "E";
    CHECK(demangle(bomb) == bomb);

    std::string lifetimes = "_RINvC1a1fFGzzzzzzz_EuE";
    CHECK(demangle(lifetimes) == lifetimes);
}

TEST_CASE("punycode: the RFC's samples, and what isn't one") {
    CHECK(decode_punycode("gdel_5qa") == "g\u00f6del");
    CHECK(decode_punycode("3B_ww4c5e180e575a65lsy2b") ==
          "3\u5e74B\u7d44\u91d1\u516b\u5148\u751f");   // RFC 3492, 7.1 (L), with '_' for '-'
    CHECK(decode_punycode("egbpdaj6bu4bxfgehfvwxn") == // 7.1 (A)
          "\u0644\u064a\u0647\u0645\u0627\u0628\u062a\u0643\u0644\u0645\u0648\u0634\u0639\u0631\u0628\u064a\u061f");
    CHECK(!decode_punycode(""));
    CHECK(!decode_punycode("abc_"));
    CHECK(!decode_punycode("abc_!"));
    CHECK(!decode_punycode("99999999"));
    CHECK(!decode_punycode(std::string(1000, 'a') + "_5qa"));
}

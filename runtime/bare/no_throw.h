// Included in front of the core's files (-include): what the standard library's headers call to throw gets a name of its own
// here, so that it is ours (no_throw.cpp) in the core alone. Those names themselves can't be ours: a product in C++ that links
// the core may throw.
#pragma once

// NOLINTBEGIN: the standard library's names
#define __throw_bad_alloc rawbpf_throw_bad_alloc
#define __throw_bad_array_new_length rawbpf_throw_bad_array_new_length
#define __throw_bad_function_call rawbpf_throw_bad_function_call
#define __throw_invalid_argument rawbpf_throw_invalid_argument
#define __throw_length_error rawbpf_throw_length_error
#define __throw_logic_error rawbpf_throw_logic_error
#define __throw_out_of_range rawbpf_throw_out_of_range
#define __throw_out_of_range_fmt rawbpf_throw_out_of_range_fmt
#define __throw_system_error rawbpf_throw_system_error
// NOLINTEND

// SPDX-License-Identifier: MIT
// CO-RE: reading the kernel's structures as the running kernel lays them out. Part of <rawbpf/bpf.h>.
//
//     struct task_struct {                       declare the members that are needed, in any order,
//         struct mm_struct *mm;                  nothing else of the real structure
//         int pid;
//     } __attribute__((preserve_access_index));
//
//     pgd_t *pgd = BPF_CORE_READ(task, mm, pgd); task->mm->pgd, each step checked by bpf_probe_read_kernel
//
// Wherever a member's place, size or existence is asked, clang leaves a relocation in .BTF.ext that names it; the loader looks
// the member up in the running kernel's BTF and patches the instruction. The thirteen kinds of question are enum
// bpf_core_relo_kind in the kernel's uapi/linux/bpf.h; clang's side is __builtin_preserve_* (clang's BPF language extensions).
// A name ending in ___anything is the same structure under another name ("flavour"), for layouts that changed over time.
#pragma once

/// clang's numbers for what may be asked of a field, a type, an enumerator.
enum rawbpf_field_question {
    RAWBPF_FIELD_BYTE_OFFSET = 0,
    RAWBPF_FIELD_BYTE_SIZE = 1,
    RAWBPF_FIELD_EXISTS = 2,
    RAWBPF_FIELD_SIGNED = 3,
    RAWBPF_FIELD_LSHIFT_U64 = 4,
    RAWBPF_FIELD_RSHIFT_U64 = 5,
};
enum rawbpf_type_question { RAWBPF_TYPE_EXISTS = 0, RAWBPF_TYPE_SIZE = 1, RAWBPF_TYPE_MATCHES = 2 };
enum rawbpf_type_id_question { RAWBPF_TYPE_ID_LOCAL = 0, RAWBPF_TYPE_ID_TARGET = 1 };
enum rawbpf_enum_question { RAWBPF_ENUMVAL_EXISTS = 0, RAWBPF_ENUMVAL_VALUE = 1 };

// --- Questions ----------------------------------------------------------------------------------------------------------------

// A field is given as an expression, `task->mm`, or as a type and a member path, `struct task_struct, mm`.
#define RAWBPF_FIELD_1(expression) expression
#define RAWBPF_FIELD_2(type, member) ((typeof(type) *)0)->member
#define RAWBPF_FIELD(...) RAWBPF_JOIN(RAWBPF_FIELD_, RAWBPF_COUNT(__VA_ARGS__))(__VA_ARGS__)

/// Does the running kernel have this field? Its offset in bytes; its size in bytes.
#define bpf_core_field_exists(...) __builtin_preserve_field_info(RAWBPF_FIELD(__VA_ARGS__), RAWBPF_FIELD_EXISTS)
#define bpf_core_field_offset(...) __builtin_preserve_field_info(RAWBPF_FIELD(__VA_ARGS__), RAWBPF_FIELD_BYTE_OFFSET)
#define bpf_core_field_size(...) __builtin_preserve_field_info(RAWBPF_FIELD(__VA_ARGS__), RAWBPF_FIELD_BYTE_SIZE)

/// Does the type exist (with this name and kind); with compatible members too (clang 15); its size, 0 when there is none.
#define bpf_core_type_exists(type) __builtin_preserve_type_info(*(typeof(type) *)0, RAWBPF_TYPE_EXISTS)
#define bpf_core_type_matches(type) __builtin_preserve_type_info(*(typeof(type) *)0, RAWBPF_TYPE_MATCHES)
#define bpf_core_type_size(type) __builtin_preserve_type_info(*(typeof(type) *)0, RAWBPF_TYPE_SIZE)
/// The BTF id of a type: in the program's own BTF, in the kernel's.
#define bpf_core_type_id_local(type) __builtin_btf_type_id(*(typeof(type) *)0, RAWBPF_TYPE_ID_LOCAL)
#define bpf_core_type_id_kernel(type) __builtin_btf_type_id(*(typeof(type) *)0, RAWBPF_TYPE_ID_TARGET)

/// Is there such an enumerator; which value does it have.
#define bpf_core_enum_value_exists(type, enumerator)                                                                             \
    __builtin_preserve_enum_value(*(typeof(type) *)enumerator, RAWBPF_ENUMVAL_EXISTS)
#define bpf_core_enum_value(type, enumerator) __builtin_preserve_enum_value(*(typeof(type) *)enumerator, RAWBPF_ENUMVAL_VALUE)

// --- Reading through pointers -------------------------------------------------------------------------------------------------

/// bpf_probe_read_kernel (or _user, or of a string) whose source address is relocated.
#define bpf_core_read(to, size, from) bpf_probe_read_kernel(to, size, (const void *)__builtin_preserve_access_index(from))
#define bpf_core_read_str(to, size, from) bpf_probe_read_kernel_str(to, size, (const void *)__builtin_preserve_access_index(from))
#define bpf_core_read_user(to, size, from) bpf_probe_read_user(to, size, (const void *)__builtin_preserve_access_index(from))
#define bpf_core_read_user_str(to, size, from)                                                                                   \
    bpf_probe_read_user_str(to, size, (const void *)__builtin_preserve_access_index(from))
/// The same pointer as one that the verifier lets the program read through (the kfunc bpf_rdonly_cast, 6.2).
#define bpf_core_cast(pointer, type) ((typeof(type) *)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(type)))
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

// What a place holds, without const: clang 21 warns of a const variable that nothing is put into, and the value is written by a
// helper.
#if defined(__clang__) && __clang_major__ >= 19
#define RAWBPF_VALUE_OF(place) __typeof_unqual__(place)
#else
#define RAWBPF_VALUE_OF(place) typeof(place)
#endif
// One step, pointer->member, as an expression. `get` reads (to, size, address); a step that fails gives zero, as the helpers
// clear what they could not read.
#define RAWBPF_STEP(get, pointer, member)                                                                                        \
    ({                                                                                                                           \
        __auto_type rawbpf_pointer_ = (pointer);                                                                                 \
        RAWBPF_VALUE_OF(rawbpf_pointer_->member) rawbpf_value_;                                                                  \
        get((void *)&rawbpf_value_, sizeof(rawbpf_value_), &rawbpf_pointer_->member);                                            \
        rawbpf_value_;                                                                                                           \
    })
// All steps but the last one: the pointer that the last member hangs from.
#define RAWBPF_WALK_1(get, p, a) (p)
#define RAWBPF_WALK_2(get, p, a, ...) RAWBPF_WALK_1(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_3(get, p, a, ...) RAWBPF_WALK_2(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_4(get, p, a, ...) RAWBPF_WALK_3(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_5(get, p, a, ...) RAWBPF_WALK_4(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_6(get, p, a, ...) RAWBPF_WALK_5(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_7(get, p, a, ...) RAWBPF_WALK_6(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_8(get, p, a, ...) RAWBPF_WALK_7(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK_9(get, p, a, ...) RAWBPF_WALK_8(get, RAWBPF_STEP(get, p, a), __VA_ARGS__)
#define RAWBPF_WALK(get, p, ...) RAWBPF_JOIN(RAWBPF_WALK_, RAWBPF_COUNT(__VA_ARGS__))(get, p, __VA_ARGS__)
#define RAWBPF_LAST_1(a) a
#define RAWBPF_LAST_2(a, ...) RAWBPF_LAST_1(__VA_ARGS__)
#define RAWBPF_LAST_3(a, ...) RAWBPF_LAST_2(__VA_ARGS__)
#define RAWBPF_LAST_4(a, ...) RAWBPF_LAST_3(__VA_ARGS__)
#define RAWBPF_LAST_5(a, ...) RAWBPF_LAST_4(__VA_ARGS__)
#define RAWBPF_LAST_6(a, ...) RAWBPF_LAST_5(__VA_ARGS__)
#define RAWBPF_LAST_7(a, ...) RAWBPF_LAST_6(__VA_ARGS__)
#define RAWBPF_LAST_8(a, ...) RAWBPF_LAST_7(__VA_ARGS__)
#define RAWBPF_LAST_9(a, ...) RAWBPF_LAST_8(__VA_ARGS__)
#define RAWBPF_LAST(...) RAWBPF_JOIN(RAWBPF_LAST_, RAWBPF_COUNT(__VA_ARGS__))(__VA_ARGS__)

// `last` reads the final member; `get` all the pointers before it.
#define RAWBPF_READ(get, p, ...) RAWBPF_STEP(get, RAWBPF_WALK(get, p, __VA_ARGS__), RAWBPF_LAST(__VA_ARGS__))
#define RAWBPF_READ_INTO(get, last, to, p, ...)                                                                                  \
    ({                                                                                                                           \
        __auto_type rawbpf_end_ = RAWBPF_WALK(get, p, __VA_ARGS__);                                                              \
        last((void *)(to), sizeof(*(to)), &rawbpf_end_->RAWBPF_LAST(__VA_ARGS__));                                               \
    })

/// BPF_CORE_READ(task, mm, exe_file, f_inode): the value of task->mm->exe_file->f_inode, up to nine steps; zero where a read
/// fails.
#define BPF_CORE_READ(from, ...) RAWBPF_READ(bpf_core_read, from, __VA_ARGS__)
#define BPF_CORE_READ_USER(from, ...) RAWBPF_READ(bpf_core_read_user, from, __VA_ARGS__)
/// The last member into *to (arrays too); the helper's return value, negative when the last read failed.
#define BPF_CORE_READ_INTO(to, from, ...) RAWBPF_READ_INTO(bpf_core_read, bpf_core_read, to, from, __VA_ARGS__)
#define BPF_CORE_READ_USER_INTO(to, from, ...) RAWBPF_READ_INTO(bpf_core_read_user, bpf_core_read_user, to, from, __VA_ARGS__)
/// The last member is a character array: copies the string in it, always terminated.
#define BPF_CORE_READ_STR_INTO(to, from, ...) RAWBPF_READ_INTO(bpf_core_read, bpf_core_read_str, to, from, __VA_ARGS__)
#define BPF_CORE_READ_USER_STR_INTO(to, from, ...)                                                                               \
    RAWBPF_READ_INTO(bpf_core_read_user, bpf_core_read_user_str, to, from, __VA_ARGS__)
/// Without relocations: for structures whose layout is fixed, or the program's own.
#define BPF_PROBE_READ(from, ...) RAWBPF_READ(bpf_probe_read_kernel, from, __VA_ARGS__)
#define BPF_PROBE_READ_USER(from, ...) RAWBPF_READ(bpf_probe_read_user, from, __VA_ARGS__)
#define BPF_PROBE_READ_INTO(to, from, ...) RAWBPF_READ_INTO(bpf_probe_read_kernel, bpf_probe_read_kernel, to, from, __VA_ARGS__)
#define BPF_PROBE_READ_USER_INTO(to, from, ...) RAWBPF_READ_INTO(bpf_probe_read_user, bpf_probe_read_user, to, from, __VA_ARGS__)
#define BPF_PROBE_READ_STR_INTO(to, from, ...)                                                                                   \
    RAWBPF_READ_INTO(bpf_probe_read_kernel, bpf_probe_read_kernel_str, to, from, __VA_ARGS__)
#define BPF_PROBE_READ_USER_STR_INTO(to, from, ...)                                                                              \
    RAWBPF_READ_INTO(bpf_probe_read_user, bpf_probe_read_user_str, to, from, __VA_ARGS__)

// --- Bit fields: the loader tells offset and size of the storage, and two shifts that leave only the field
// ------------------------

#define RAWBPF_BITS(pointer, member, question) __builtin_preserve_field_info((pointer)->member, RAWBPF_FIELD_##question)
#define RAWBPF_UNPACK(pointer, member, bits)                                                                                     \
    ({                                                                                                                           \
        (bits) <<= RAWBPF_BITS(pointer, member, LSHIFT_U64);                                                                     \
        RAWBPF_BITS(pointer, member, SIGNED)                                                                                     \
        ? (unsigned long long)((long long)(bits) >> RAWBPF_BITS(pointer, member, RSHIFT_U64))                                    \
        : (bits) >> RAWBPF_BITS(pointer, member, RSHIFT_U64);                                                                    \
    })
/// A bit field of a structure that must be read with a helper.
#define BPF_CORE_READ_BITFIELD_PROBED(pointer, member)                                                                           \
    ({                                                                                                                           \
        unsigned long long rawbpf_bits_ = 0;                                                                                     \
        bpf_probe_read_kernel(&rawbpf_bits_, RAWBPF_BITS(pointer, member, BYTE_SIZE),                                            \
                              (const char *)(pointer) + RAWBPF_BITS(pointer, member, BYTE_OFFSET));                              \
        RAWBPF_UNPACK(pointer, member, rawbpf_bits_);                                                                            \
    })
/// A bit field of a structure that the program may read directly (fentry, tp_btf).
#define BPF_CORE_READ_BITFIELD(pointer, member)                                                                                  \
    ({                                                                                                                           \
        const void *rawbpf_place_ = (const char *)(pointer) + RAWBPF_BITS(pointer, member, BYTE_OFFSET);                         \
        unsigned long long rawbpf_bits_ = 0;                                                                                     \
        barrier_var(rawbpf_place_);                                                                                              \
        switch (RAWBPF_BITS(pointer, member, BYTE_SIZE)) {                                                                       \
        case 1: rawbpf_bits_ = *(const unsigned char *)rawbpf_place_; break;                                                     \
        case 2: rawbpf_bits_ = *(const unsigned short *)rawbpf_place_; break;                                                    \
        case 4: rawbpf_bits_ = *(const unsigned int *)rawbpf_place_; break;                                                      \
        case 8: rawbpf_bits_ = *(const unsigned long long *)rawbpf_place_; break;                                                \
        }                                                                                                                        \
        RAWBPF_UNPACK(pointer, member, rawbpf_bits_);                                                                            \
    })

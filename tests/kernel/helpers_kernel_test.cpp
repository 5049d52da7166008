// Every helper that the emulator has, with odd arguments, beside the kernel's: what it answers, and what it leaves in memory and
// maps.
//
//      row:   helper | maps and data | arguments ... arguments          one program each; `$` stands for the call
//
// A helper of the emulator without a row fails the test, so that a new one can't be forgotten. Some can't be compared, because
// their answers are clocks, numbers at random, or of whoever asks; their row says so. What the verifier refuses is counted: one
// program of each row must run.
#include <algorithm>

#include "asm/helpers.h"
#include "runtime/base/format.h"
#include "runtime/emulator/machine.h"
#include "tests/kernel/both.h"
#include "tests/kernel/engines.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::Both;
using test::both;
using test::spec_from;

namespace {

struct Row {
    std::string_view helper;
    std::string_view why_not; ///< it isn't compared; else empty
    std::string_view declarations;
    std::vector<std::string> calls; ///< texts around the `$`; r0 is their answer
    std::string_view answer = "number";
};

/// Texts with each of the values in the place of `@`.
std::vector<std::string> each(std::string_view text, std::initializer_list<std::string_view> values) {
    std::vector<std::string> out;
    for (std::string_view value : values) {
        std::string one(text);
        for (size_t at = 0; (at = one.find('@', at)) != std::string::npos; at += value.size()) one.replace(at, 1, value);
        out.push_back(std::move(one));
    }
    return out;
}
std::vector<std::string> both_of(std::vector<std::string> a, const std::vector<std::string> &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

constexpr std::string_view kTables = ".map a array key 4 value 8 entries 3\n.map h hash key 4 value 8 entries 2\n"
                                     ".map l lru_hash key 4 value 8 entries 4\n.map p percpu_array key 4 value 8 entries 2\n"
                                     ".map c percpu_hash key 4 value 8 entries 2\n"
                                     ".map n hash key 4 value 8 entries 2 flags 1\n";
constexpr std::string_view kQueues = ".map q queue value 8 entries 2\n.map s stack value 8 entries 2\n"
                                     ".map b bloom_filter value 8 entries 2 flags 64\n";
constexpr std::string_view kRing = ".map r ringbuf entries 4096\n";
/// The key at r10 - 8, the value at r10 - 16.
std::string table(std::string_view map, std::string_view key, std::string_view flags, std::string_view helper = "$") {
    return format(
        "*(u64 *)(r10 - 8) = {}\n*(u64 *)(r10 - 16) = 77\nr1 = {} ll\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -16\nr4 = {} ll\n{}\n",
        key, map, flags, helper);
}
/// A helper on each kind of table, with each key and flag; `before` an entry with key 1 is put there.
std::vector<std::string> tables(bool with_flags, std::string_view only = "ahlpcn") {
    std::vector<std::string> out;
    for (char map : only)
        for (const char *key : {"1", "2", "3", "-1"})
            for (const char *flags : {"0", "1", "2", "3", "4", "5", "8", "0x100000000", "0x8000000000000000"}) {
                if (!with_flags && flags[0] != '0') continue;
                if (key[0] == '3' && flags[0] != '0') continue;
                out.push_back(table({&map, 1}, "1", "0", "call bpf_map_update_elem") + table({&map, 1}, key, flags));
            }
    return out;
}
std::string text_at_32(std::string_view text) { // at r10 - 32, 24 bytes
    std::string out;
    char bytes[24] = {};
    text.copy(bytes, sizeof bytes);
    for (int n = 0; n < 3; ++n) {
        uint64_t word = 0;
        std::memcpy(&word, bytes + 8 * n, 8);
        append(out, "r1 = {} ll\n*(u64 *)(r10 - {}) = r1\n", word, 32 - 8 * n);
    }
    return out;
}
/// r1, r2: the text; r3: the base; the number goes to r10 - 40 and into the answer.
std::vector<std::string> numbers() {
    std::vector<std::string> out;
    using namespace std::string_view_literals;
    for (std::string_view text : {"-5"sv,
                                  "+5"sv,
                                  "0x"sv,
                                  "0xg"sv,
                                  "0x1F"sv,
                                  "0X1f"sv,
                                  " \n5"sv,
                                  "-0"sv,
                                  "010"sv,
                                  "08"sv,
                                  "5x"sv,
                                  "-"sv,
                                  "--5"sv,
                                  "- 5"sv,
                                  "0b11"sv,
                                  "\v7"sv,
                                  "\xa0"
                                  "7"sv,
                                  "18446744073709551615"sv,
                                  "18446744073709551616"sv,
                                  "9223372036854775807"sv,
                                  "9223372036854775808"sv,
                                  "-9223372036854775808"sv,
                                  "-9223372036854775809"sv,
                                  " "sv,
                                  "a"sv,
                                  "A"sv,
                                  "5\0006"sv,
                                  "\0005"sv,
                                  "0"sv,
                                  "00"sv,
                                  "0x0"sv,
                                  "000000000000000000000007"sv})
        for (const char *base : {"0", "8", "10", "16", "2", "32", "0x100000000"}) {
            if (std::string_view(base).size() != 1 && text.size() > 3 && base[0] != '1') continue;
            out.push_back("*(u64 *)(r10 - 40) = 99\n" + text_at_32(text) +
                          format("r1 = r10\nr1 += -32\nr2 = {}\nr3 = {} ll\nr4 = r10\nr4 += -40\n$\nr1 = *(u64 *)(r10 - 40)\n",
                                 text.size(), base) +
                          // What a refusal leaves there was nothing until 6.11, then zero.
                          "if r0 s> 0 goto +1\nr1 = 0\nr0 <<= 32\nr0 s>>= 32\nr0 *= 31\nr0 += r1\n");
        }
    return out;
}
/// bpf_snprintf() into r10 - 64 of so many bytes, with two arguments at r10 - 80.
std::vector<std::string> formats() {
    std::vector<std::string> out;
    for (const char *text : {"%d",     "%5d|%-5d", "%05lld %+i", "% x%%", "%X%u",    "%s",   "%-4s|", "%c%3c", "%lu", "%llx",
                             "%d%d%d", "%",        "%y",         "%lc",   "%.2s",    "%#x",  "%ld%",  "plain", "",    "%px",
                             "%pI4",   "%pi4",     "%pks",       "%99d",  "%d\\x01", "%ssx", "%si",   "%s!",   "%pz", "%lli%llu"})
        for (int size : {64, 5, 1}) {
            std::string one = format(".rodata f \"{}\"\n", text);
            append(one, "\nr1 = 0x64636261 ll\n*(u64 *)(r10 - 96) = r1\nr1 = r10\nr1 += -96\n{}",
                   std::string_view(text).find("s") != std::string_view::npos ||
                           std::string_view(text).find("I4") != std::string_view::npos ||
                           std::string_view(text).find("i4") != std::string_view::npos
                       ? ""
                       : "r1 = -3\n");
            append(one, "*(u64 *)(r10 - 80) = r1\n*(u64 *)(r10 - 72) = r1\n");
            for (int at = 64; at > 0; at -= 8) append(one, "*(u64 *)(r10 - {}) = -1\n", at);
            append(one, "r1 = r10\nr1 += -64\nr2 = {}\nr3 = f ll\nr4 = r10\nr4 += -80\nr5 = {}\n$\nr0 <<= 32\nr0 s>>= 32\n", size,
                   size == 5 ? 8 : 16);
            for (int at = 64; at > 0; at -= 8) append(one, "r1 = *(u64 *)(r10 - {})\nr0 *= 31\nr0 += r1\n", at);
            out.push_back(std::move(one));
        }
    for (const char *size : {"0", "7", "104"})
        out.push_back(format(
            ".rodata f \"x\"\n\n*(u64 *)(r10 - 8) = 0\nr1 = r10\nr1 += -8\nr2 = 8\nr3 = f ll\nr4 = r10\nr4 += -104\nr5 = {}\n$\n",
            size));
    return out;
}
std::vector<std::string> prints(bool by_array) {
    std::vector<std::string> out;
    for (const char *text : {"%d", "%d %d %d", "%d %d %d %d", "plain", "%y", "%s", "%px %lld", "%", "%300d", "line\\n", "%c%c"})
        for (int less : {0, 1}) {
            std::string bytes(text);
            size_t length = bytes.find('\\') == std::string::npos ? bytes.size() + 1 : bytes == "line\\n" ? 6 : 2;
            std::string one =
                format(".rodata f \"{}\"\n\n*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 16) = 65\n*(u64 *)(r10 - 24) = 66\n", text);
            append(one, "r1 = f ll\nr2 = {}\n", length - static_cast<size_t>(less));
            one += by_array ? "r3 = r10\nr3 += -24\nr4 = 24\n$\n" : "r3 = 65\nr4 = 66\nr5 = 0\n$\n";
            out.push_back(std::move(one));
        }
    return out;
}
/// Timers are in values whose type says so.
std::vector<std::string> timers(std::string_view which) {
    const std::string find =
        "*(u64 *)(r10 - 8) = 0\nr1 = m ll\nr2 = r10\nr2 += -8\ncall bpf_map_lookup_elem\nif r0 == 0 goto out\nr7 = r0\n";
    const std::string init = "r1 = r7\nr2 = m ll\nr3 = 1\ncall bpf_timer_init\n";
    const std::string end = "out:\n";
    const std::string aim = "r1 = r7\nr2 = cb ll\n";
    if (which == "init")
        return both_of(
            each(find + "r1 = r7\nr2 = m ll\nr3 = @ ll\n$\n" + end, {"0", "1", "7", "2", "3", "16", "17", "0x100000001"}),
            {find + init + "r1 = r7\nr2 = m ll\nr3 = 1\n$\n" + end});
    if (which == "aim") return {find + aim + "$\n" + end, find + init + aim + "$\n" + end};
    if (which == "start") {
        std::vector<std::string> out;
        for (const char *flags : {"0", "1", "2", "3", "4", "0x100000000"})
            for (const std::string &before : {std::string(), init, init + aim + "call bpf_timer_set_callback\n"})
                out.push_back(
                    find + before +
                    format("r1 = r7\nr2 = 1000000000000 ll\nr3 = {} ll\n$\nr6 = r0\nr1 = r7\ncall bpf_timer_cancel\nr0 = r6\n",
                           flags) +
                    end);
        return out;
    }
    const std::string start = "r1 = r7\nr2 = 1000000000000 ll\nr3 = 0\ncall bpf_timer_start\n";
    return {find + "r1 = r7\n$\n" + end, find + init + "r1 = r7\n$\n" + end,
            find + init + aim + "call bpf_timer_set_callback\n" + start + "r1 = r7\n$\n" + end,
            find + init + aim + "call bpf_timer_set_callback\n" + start + "r1 = r7\ncall bpf_timer_cancel\nr1 = r7\n$\n" + end};
}
constexpr std::string_view kTimers = ".struct bpf_timer\n a u64\n b u64\n.end\n.struct value\n t bpf_timer\n n u64\n.end\n.map m "
                                     "array key u32 value value entries 1\n";

const std::string kCallback = "r0 = 0\nexit\n";

const std::vector<Row> &rows() {
    static const std::vector<Row> all = {
        {"map_lookup_elem", "", kTables, tables(false), "address"},
        {"map_update_elem", "", kTables, tables(true)},
        {"map_delete_elem", "", kTables, tables(false, "hlcn")},
        {"map_lookup_percpu_elem", "", kTables,
         each("*(u64 *)(r10 - 8) = 1\nr1 = p ll\nr2 = r10\nr2 += -8\nr3 = @ ll\n$\n",
              {"0", "0xffffffff", "100000", "0x100000000"}),
         "address"},
        {"map_push_elem", "", kQueues,
         both_of(both_of(each("*(u64 *)(r10 - 8) = 5\nr1 = q ll\nr2 = r10\nr2 += -8\nr3 = @ ll\n$\n",
                              {"0", "1", "2", "3", "4", "0x100000000"}),
                         each("*(u64 *)(r10 - 8) = 5\nr1 = s ll\nr2 = r10\nr2 += -8\nr3 = @ ll\n$\n",
                              {"0", "1", "2", "3", "4", "0x100000002"})),
                 each("*(u64 *)(r10 - 8) = 5\nr1 = b ll\nr2 = r10\nr2 += -8\nr3 = @ ll\n$\n", {"0", "1", "2", "4"}))},
        {"map_pop_elem", "", kQueues,
         each("*(u64 *)(r10 - 8) = 5\nr1 = @ ll\nr2 = r10\nr2 += -8\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= 32\nr0 s>>= 32\nr0 *= "
              "31\nr0 += r1\n",
              {"q", "s"})},
        {"map_peek_elem", "", kQueues,
         each("*(u64 *)(r10 - 8) = 5\nr1 = @ ll\nr2 = r10\nr2 += -8\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= 32\nr0 s>>= 32\nr0 *= "
              "31\nr0 += r1\n",
              {"q", "s", "b"})},
        {"for_each_map_elem", "", kTables,
         each("r1 = @\nr3 = 0\n$\n", {"a ll\nr2 = cb ll\nr4 = 0", "h ll\nr2 = cb ll\nr4 = 0", "p ll\nr2 = cb ll\nr4 = 0",
                                      "a ll\nr2 = cb ll\nr4 = 1", "h ll\nr2 = cb ll\nr4 = 0x100000000 ll"})},
        {"loop", "", "",
         each("r1 = @\nr3 = 0\n$\n",
              {"0\nr2 = cb ll\nr4 = 0", "5\nr2 = cb ll\nr4 = 0", "5\nr2 = cb ll\nr4 = 1", "8388609\nr2 = cb ll\nr4 = 0",
               "-1\nr2 = cb ll\nr4 = 0", "0x100000003 ll\nr2 = cb ll\nr4 = 0", "8388609\nr2 = cb ll\nr4 = 1"})},
        {"tail_call", "random programs go through it: \"several programs\"", "", {}},
        {"ringbuf_output", "", kRing,
         both_of(each("*(u64 *)(r10 - 8) = 5\nr1 = r ll\nr2 = r10\nr2 += -8\nr3 = 8\nr4 = @ ll\n$\n",
                      {"0", "1", "2", "3", "4", "7", "0x100000000"}),
                 each("*(u64 *)(r10 - 8) = 5\nr1 = r ll\nr2 = r10\nr2 += -8\nr3 = @\nr4 = 0\n$\n", {"0", "1", "7", "8"}))},
        {"ringbuf_reserve", "", kRing,
         each("r1 = r ll\nr2 = @\n$\nr6 = 9\nif r0 == 0 goto +4\nr6 = 1\nr1 = r0\nr2 = 0\ncall bpf_ringbuf_submit\nr0 = r6\n",
              {"0\nr3 = 0", "8\nr3 = 0", "13\nr3 = 0", "4080\nr3 = 0", "4081\nr3 = 0", "4088\nr3 = 0", "4089\nr3 = 0",
               "0x3fffffff\nr3 = 0"})},
        {"ringbuf_submit", "", kRing,
         each("r1 = r ll\nr2 = 8\nr3 = 0\ncall bpf_ringbuf_reserve\nif r0 == 0 goto out\n*(u64 *)(r0 + 0) = 5\nr1 = r0\nr2 = "
              "@\n$\nr0 = 1\nout:\n",
              {"0", "1", "2", "99"})},
        {"ringbuf_discard", "", kRing,
         each("r1 = r ll\nr2 = @\nr3 = 0\ncall bpf_ringbuf_reserve\nif r0 == 0 goto out\nr1 = r0\nr2 = 0\n$\nr0 = 1\nout:\n",
              {"8", "0", "1"})},
        {"ringbuf_query", "", kRing,
         each("*(u64 *)(r10 - 8) = 5\nr1 = r ll\nr2 = r10\nr2 += -8\nr3 = 5\nr4 = 0\ncall bpf_ringbuf_output\nr1 = r ll\nr2 = @ "
              "ll\n$\n",
              {"0", "1", "2", "3", "9", "0x100000000"}),
         "whole"},
        {"perf_event_output", "needs an event in the map; its flags are in helpers_test.cpp", "", {}},
        {"trace_printk", "", "", prints(false)},
        {"trace_vprintk", "", "", prints(true)},
        {"snprintf", "", "", formats()},
        {"probe_read", "", ".program main \"kprobe\"\n",
         each("*(u64 *)(r10 - 8) = 5\n*(u64 *)(r10 - 16) = 7\nr1 = r10\nr1 += -8\nr2 = @\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= "
              "32\nr0 s>>= 32\nr0 += r1\n",
              {"0\nr3 = 0", "8\nr3 = 0", "3\nr3 = 0", "8\nr3 = r10\nr3 += -16", "3\nr3 = r10\nr3 += -16",
               "0\nr3 = r10\nr3 += -16"})},
        {"probe_read_kernel", "", "",
         each("*(u64 *)(r10 - 8) = 5\n*(u64 *)(r10 - 16) = 7\nr1 = r10\nr1 += -8\nr2 = @\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= "
              "32\nr0 s>>= 32\nr0 += r1\n",
              {"0\nr3 = 0", "8\nr3 = 0", "3\nr3 = 0", "8\nr3 = r10\nr3 += -16", "3\nr3 = r10\nr3 += -16",
               "0\nr3 = r10\nr3 += -16"})},
        {"probe_read_user", "", "",
         each("*(u64 *)(r10 - 8) = 5\nr1 = r10\nr1 += -8\nr2 = @\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= 32\nr0 s>>= 32\nr0 += r1\n",
              {"0\nr3 = 0", "8\nr3 = 0", "3\nr3 = 1"})},
        {"probe_read_str",
         "",
         ".program main \"kprobe\"\n",
         {each("*(u64 *)(r10 - 8) = -1\nr1 = r10\nr1 += -8\nr2 = @\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= 32\nr0 s>>= 32\nr0 += r1\n",
               {"8\nr3 = 0", "0\nr3 = 0"})}},
        {"probe_read_kernel_str", "", "",
         each("*(u64 *)(r10 - 8) = -1\n*(u64 *)(r10 - 16) = 0x616263\nr1 = r10\nr1 += -8\nr2 = @\n$\nr1 = *(u64 *)(r10 - 8)\nr0 "
              "<<= 32\nr0 s>>= 32\nr0 += r1\n",
              {"0\nr3 = 0", "8\nr3 = 0", "1\nr3 = r10\nr3 += -16", "2\nr3 = r10\nr3 += -16", "3\nr3 = r10\nr3 += -16",
               "4\nr3 = r10\nr3 += -16", "8\nr3 = r10\nr3 += -16"})},
        {"probe_read_user_str", "", "",
         each("*(u64 *)(r10 - 8) = -1\nr1 = r10\nr1 += -8\nr2 = @\n$\nr1 = *(u64 *)(r10 - 8)\nr0 <<= 32\nr0 s>>= 32\nr0 += r1\n",
              {"8\nr3 = 0", "0\nr3 = 0"})},
        {"skb_load_bytes", "the harness gives memory, not a packet; packets are in helpers_test.cpp", "", {}},
        {"strncmp", "", ".rodata f \"ab\"\n",
         each("r1 = 0x@ ll\n*(u64 *)(r10 - 8) = r1\nr1 = r10\nr1 += -8\nr2 = 8\nr3 = f ll\n$\n",
              {"6261", "626100", "636261", "61", "6361", "ff61", "0", "fe"})},
        {"strtol", "", "", numbers()},
        {"strtoul", "", "", numbers()},
        {"ktime_get_ns", "a clock", "", {}},
        {"ktime_get_boot_ns", "a clock", "", {}},
        {"ktime_get_coarse_ns", "a clock", "", {}},
        {"ktime_get_tai_ns", "a clock", "", {}},
        {"jiffies64", "a clock", "", {}},
        {"get_prandom_u32", "at random", "", {}},
        {"get_smp_processor_id", "the emulator has one processor", "", {}},
        {"get_numa_node_id", "the emulator has one processor", "", {}},
        {"spin_lock", "a value with a lock, of which one thread sees nothing", "", {}},
        {"spin_unlock", "a value with a lock, of which one thread sees nothing", "", {}},
        {"get_current_pid_tgid", "", "", {"$\n"}, "whole"},
        {"get_current_uid_gid", "", "", {"$\n"}, "whole"},
        {"get_current_comm", "", "",
         each("*(u64 *)(r10 - 8) = -1\n*(u64 *)(r10 - 16) = -1\nr1 = r10\nr1 += -16\nr2 = @\n$\nr1 = *(u64 *)(r10 - 16)\nr2 = "
              "*(u64 *)(r10 - 8)\nr0 += r1\nr0 *= 31\nr0 += r2\n",
              {"16", "8", "3", "1"})},
        {"timer_init", "", kTimers, timers("init")},
        {"timer_set_callback", "", kTimers, timers("aim")},
        {"timer_start", "", kTimers, timers("start")},
        {"timer_cancel", "", kTimers, timers("cancel")},
    };
    return all;
}

std::string program_of(const Row &row, std::string call) {
    const std::string name = "call bpf_" + std::string(row.helper);
    for (size_t at = 0; (at = call.find('$', at)) != std::string::npos;) call.replace(at, 1, name);
    std::string more; // a declaration of the program's own stands in front of an empty line
    if (const size_t end = call.find("\n\n"); end != std::string::npos) {
        more = call.substr(0, end + 1);
        call.erase(0, end + 2);
    }
    std::string text = ".license \"GPL\"\n" + std::string(row.declarations) + more;
    // r6 is the trie's or the row's own; the answer is in r0.
    text += call;
    if (row.answer == "number") text += "r0 <<= 32\nr0 s>>= 32\n"; // before 6.4 the upper half of an int is anything
    if (row.answer == "address") text += "if r0 == 0 goto +2\nr0 = *(u64 *)(r0 + 0)\nr0 += 1000\n";
    text += "exit\n";
    if (call.find("cb ll") != std::string::npos) text += ".function cb\n" + kCallback;
    return text;
}

} // namespace

TEST_CASE("emulator: every helper has a row here") {
    for (const HelperInfo &helper : all_helpers()) {
        const auto is_it = [&](const Row &row) { return row.helper == helper.name; };
        const auto count = std::count_if(rows().begin(), rows().end(), is_it);
        INFO(std::string(helper.name));
        CHECK(count == (emulator::find_emulated(static_cast<uint64_t>(helper.id)) ? 1 : 0));
    }
    for (const Row &row : rows()) CHECK_MESSAGE(row.why_not.empty() != row.calls.empty(), std::string(row.helper));
}

TEST_CASE("emulator: every helper with odd arguments, as in the kernel") {
    if (const std::string why = test::refusal("mov", {}); !why.empty()) SKIP("programs can't be run here: " + why);
    if (!test::has_newest()) SKIP("some answers were others before 6.15");
    for (const Row &row : rows()) {
        size_t ran = 0;
        std::string last;
        for (const std::string &call : row.calls) {
            const std::string text = program_of(row, call);
            const bool typed = text.find("bpf_timer") != std::string::npos; // which the kernel finds by its type
            const Both result = both(typed ? test::assembled_with_types(text) : spec_from(text));
            if (result.refused) {
                last = result.why;
                continue;
            }
            ++ran;
            INFO(text);
            CHECK(result.why == "");
        }
        if (!row.calls.empty() && ran == 0) MESSAGE(std::string(row.helper), ": the kernel runs none: ", last.substr(0, 300));
        CHECK_MESSAGE((row.calls.empty() || ran > 0), std::string(row.helper));
    }
}

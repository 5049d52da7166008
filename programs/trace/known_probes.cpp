// The table has no magic: what it says is in the projects' own probe definitions and manuals (PostgreSQL's "Dynamic Tracing",
// Python's "Instrumenting CPython with DTrace and SystemTap", Ruby's, HotSpot's and libvirt's .d files, libstdc++'s testsuite,
// the Go fork's sources).
#include "programs/trace/known_probes.h"

#include <algorithm>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr std::string_view kTable = R"(
# PostgreSQL
postgresql:transaction__start(u32 id)
postgresql:transaction__commit(u32 id)
postgresql:transaction__abort(u32 id)
postgresql:query__start(const char *query)
postgresql:query__done(const char *query)
postgresql:query__parse__start(const char *query)
postgresql:query__parse__done(const char *query)
postgresql:query__rewrite__start(const char *query)
postgresql:query__rewrite__done(const char *query)
postgresql:query__plan__start()
postgresql:query__plan__done()
postgresql:query__execute__start()
postgresql:query__execute__done()
postgresql:statement__status(const char *status)
postgresql:checkpoint__start(int flags)
postgresql:checkpoint__done(int written, int buffers, int added, int removed, int recycled)
postgresql:clog__checkpoint__start(bool shutdown)
postgresql:clog__checkpoint__done(bool shutdown)
postgresql:subtrans__checkpoint__start(bool shutdown)
postgresql:subtrans__checkpoint__done(bool shutdown)
postgresql:multixact__checkpoint__start(bool shutdown)
postgresql:multixact__checkpoint__done(bool shutdown)
postgresql:buffer__checkpoint__start(int flags)
postgresql:buffer__sync__start(int buffers, int dirty)
postgresql:buffer__sync__written(int buffer)
postgresql:buffer__sync__done(int buffers, int written, int dirty)
postgresql:buffer__read__start(int fork, u32 block, u32 tablespace, u32 database, u32 relation, int backend, bool extend)
postgresql:buffer__read__done(int fork, u32 block, u32 tablespace, u32 database, u32 relation, int backend, bool extend, bool hit)
postgresql:buffer__flush__start(int fork, u32 block, u32 tablespace, u32 database, u32 relation)
postgresql:buffer__flush__done(int fork, u32 block, u32 tablespace, u32 database, u32 relation)
postgresql:smgr__md__read__start(int fork, u32 block, u32 tablespace, u32 database, u32 relation, int backend)
postgresql:smgr__md__read__done(int fork, u32 block, u32 tablespace, u32 database, u32 relation, int backend, int bytes, int wanted)
postgresql:smgr__md__write__start(int fork, u32 block, u32 tablespace, u32 database, u32 relation, int backend)
postgresql:smgr__md__write__done(int fork, u32 block, u32 tablespace, u32 database, u32 relation, int backend, int bytes, int wanted)
postgresql:sort__start(int kind, bool unique, int keys, int memory_kb, bool random, int parallel)
postgresql:sort__done(bool external, long used)
postgresql:lwlock__acquire(const char *tranche, int mode)
postgresql:lwlock__release(const char *tranche)
postgresql:lwlock__wait__start(const char *tranche, int mode)
postgresql:lwlock__wait__done(const char *tranche, int mode)
postgresql:lwlock__condacquire(const char *tranche, int mode)
postgresql:lwlock__condacquire__fail(const char *tranche, int mode)
postgresql:lwlock__acquire__or__wait(const char *tranche, int mode)
postgresql:lwlock__acquire__or__wait__fail(const char *tranche, int mode)
postgresql:lock__wait__start(u32 field1, u32 field2, u32 field3, u32 field4, u32 type, int mode)
postgresql:lock__wait__done(u32 field1, u32 field2, u32 field3, u32 field4, u32 type, int mode)
# CPython
python:function__entry(const char *file, const char *function, int line)
python:function__return(const char *file, const char *function, int line)
python:line(const char *file, const char *function, int line)
python:gc__start(int generation)
python:gc__done(long collected)
python:import__find__load__start(const char *module)
python:import__find__load__done(const char *module, int found)
python:audit(const char *event, ptr arguments)
# Ruby
ruby:method__entry(const char *class, const char *method, const char *file, int line)
ruby:method__return(const char *class, const char *method, const char *file, int line)
ruby:cmethod__entry(const char *class, const char *method, const char *file, int line)
ruby:cmethod__return(const char *class, const char *method, const char *file, int line)
ruby:raise(const char *class, const char *file, int line)
ruby:object__create(const char *class, const char *file, int line)
ruby:array__create(long length, const char *file, int line)
ruby:hash__create(long length, const char *file, int line)
ruby:string__create(long length, const char *file, int line)
ruby:symbol__create(const char *symbol, const char *file, int line)
ruby:method__cache__clear(const char *class, const char *file, int line)
ruby:require__entry(const char *name, const char *file, int line)
ruby:require__return(const char *name, const char *file, int line)
ruby:find__require__entry(const char *name, const char *file, int line)
ruby:find__require__return(const char *name, const char *file, int line)
ruby:load__entry(const char *name, const char *file, int line)
ruby:load__return(const char *name, const char *file, int line)
ruby:parse__begin(const char *file, int line)
ruby:parse__end(const char *file, int line)
# PHP
php:compile__file__entry(const char *file, const char *translated)
php:compile__file__return(const char *file, const char *translated)
php:error(const char *message, const char *file, int line)
# PHP 7 and later give a zend_string here, not its text
php:exception__caught(ptr class)
php:exception__thrown(const char *class)
php:execute__entry(const char *file, int line)
php:execute__return(const char *file, int line)
php:function__entry(const char *function, const char *file, int line, const char *class, const char *scope)
php:function__return(const char *function, const char *file, int line, const char *class, const char *scope)
php:request__startup(const char *file, const char *uri, const char *method)
php:request__shutdown(const char *file, const char *uri, const char *method)
# libstdc++
libstdcxx:throw(ptr object, ptr type)
libstdcxx:rethrow(ptr object, ptr type)
libstdcxx:catch(ptr object, ptr type)
# HotSpot: texts have lengths; those with a thread need -XX:+ExtendedDTraceProbes
hotspot:class__loaded(const char *class, int class_len, ptr loader, bool shared)
hotspot:class__unloaded(const char *class, int class_len, ptr loader, bool shared)
hotspot:class__initialization__required(const char *class, int class_len, ptr loader, int thread_type)
hotspot:class__initialization__recursive(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:class__initialization__concurrent(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:class__initialization__erroneous(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:class__initialization__super__failed(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:class__initialization__clinit(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:class__initialization__error(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:class__initialization__end(const char *class, int class_len, ptr loader, int thread_type, bool wait)
hotspot:gc__begin(bool full)
hotspot:mem__pool__gc__begin(const char *manager, long manager_len, const char *pool, long pool_len, u64 initial, u64 used, u64 committed, u64 most)
hotspot:mem__pool__gc__end(const char *manager, long manager_len, const char *pool, long pool_len, u64 initial, u64 used, u64 committed, u64 most)
hotspot:method__compile__begin(const char *compiler, long compiler_len, const char *class, int class_len, const char *method, int method_len, const char *signature, int signature_len)
hotspot:method__compile__end(const char *compiler, long compiler_len, const char *class, int class_len, const char *method, int method_len, const char *signature, int signature_len, bool success)
hotspot:compiled__method__load(const char *class, int class_len, const char *method, int method_len, const char *signature, int signature_len, ptr code, int size)
hotspot:compiled__method__unload(const char *class, int class_len, const char *method, int method_len, const char *signature, int signature_len)
hotspot:thread__start(const char *name, int name_len, long id, u64 os_id, bool daemon)
hotspot:thread__stop(const char *name, int name_len, long id, u64 os_id, bool daemon)
hotspot:thread__sleep__begin(long time)
hotspot:thread__sleep__end(bool interrupted)
hotspot:thread__park__begin(ptr parker, bool absolute, long time)
hotspot:thread__park__end(ptr parker)
hotspot:thread__unpark(ptr parker)
hotspot:vmops__request(const char *operation, long operation_len, int mode)
hotspot:vmops__begin(const char *operation, long operation_len, int mode)
hotspot:vmops__end(const char *operation, long operation_len, int mode)
hotspot:method__entry(long thread, const char *class, int class_len, const char *method, int method_len, const char *signature, int signature_len)
hotspot:method__return(long thread, const char *class, int class_len, const char *method, int method_len, const char *signature, int signature_len)
hotspot:object__alloc(long thread, const char *class, int class_len, int size)
hotspot:monitor__contended__enter(long thread, ptr monitor, const char *class, int class_len)
hotspot:monitor__contended__entered(long thread, ptr monitor, const char *class, int class_len)
hotspot:monitor__contended__exit(long thread, ptr monitor, const char *class, int class_len)
hotspot:monitor__notify(long thread, ptr monitor, const char *class, int class_len)
hotspot:monitor__notifyAll(long thread, ptr monitor, const char *class, int class_len)
hotspot:monitor__waited(long thread, ptr monitor, const char *class, int class_len)
hotspot:monitor__wait(long thread, ptr monitor, const char *class, int class_len, long timeout_ms)
# libvirt
libvirt:object_new(ptr object, const char *class)
libvirt:object_ref(ptr object)
libvirt:object_unref(ptr object)
libvirt:object_dispose(ptr object)
libvirt:rpc_socket_new(ptr socket, int fd, int error_fd, int pid, const char *local, const char *remote)
libvirt:rpc_socket_dispose(ptr socket)
libvirt:rpc_socket_send_fd(ptr socket, int fd)
libvirt:rpc_socket_recv_fd(ptr socket, int fd)
libvirt:rpc_server_client_new(ptr client, ptr socket)
libvirt:rpc_server_client_dispose(ptr client)
libvirt:rpc_server_client_msg_tx_queue(ptr client, int length, int program, int version, int procedure, int type, int status, int serial)
libvirt:rpc_server_client_msg_rx(ptr client, int length, int program, int version, int procedure, int type, int status, int serial)
libvirt:rpc_client_new(ptr client, ptr socket)
libvirt:rpc_client_dispose(ptr client)
libvirt:rpc_client_msg_tx_queue(ptr client, int length, int program, int version, int procedure, int type, int status, int serial)
libvirt:rpc_client_msg_rx(ptr client, int length, int program, int version, int procedure, int type, int status, int serial)
# The Go fork, as its sources have it
net_http:server_request_start(const char *method, long method_len, const char *path, long path_len)
net_http:server_request_end(int status)
net_http:client_request_start(const char *method, long method_len, const char *url, long url_len)
net_http:client_response_received(int status)
sql:prepare(const char *query, long query_len)
sql:exec(const char *query, long query_len)
sql:query(const char *query, long query_len)
tls:handshake_start(s8 is_client)
tls:handshake_end(s8 is_client)
tls:handshake_error(s8 is_client)
# and as its documents have it
go:http_server_request_start(const char *method, long method_len, const char *path, long path_len, u64 timestamp)
go:http_server_request_end(const char *method, long method_len, const char *path, long path_len, int status, u64 duration)
go:sql_query_start(const char *query, long query_len, u64 timestamp)
go:sql_query_end(const char *query, long query_len, u64 duration, long error)
go:tls_handshake_start(const char *server_name, long server_name_len, u64 timestamp)
go:tls_handshake_end(const char *server_name, long server_name_len, u64 duration, long error)
go:net_dial_start(const char *network, long network_len, const char *address, long address_len, u64 timestamp)
go:net_dial_end(const char *network, long network_len, const char *address, long address_len, u64 duration, long error)
)";

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\r')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

} // namespace

const KnownProbes &KnownProbes::built_in() {
    static const KnownProbes known = [] {
        KnownProbes out;
        (void)out.add(kTable, "the table that is built in"); // a unit test reads it
        return out;
    }();
    return known;
}

Result<void> KnownProbes::add(std::string_view table, std::string_view name) {
    for (size_t number = 1; !table.empty(); ++number) {
        const size_t end = std::min(table.find('\n'), table.size());
        std::string_view line = trim(table.substr(0, end));
        table.remove_prefix(std::min(end + 1, table.size()));
        if (line.empty() || line.front() == '#') continue;
        const size_t colon = line.find(':'), open = line.find('(');
        if (colon == 0 || colon == std::string_view::npos || open == std::string_view::npos || colon + 1 >= open)
            return Unexpected(make_error(Errc::invalid_argument,
                                         format("{}:{}: \"{}\" isn't PROVIDER:NAME(ARGUMENTS)", name, number, line),
                                         "as in: python:function__entry(const char *file, const char *function, int line)"));
        Signature signature = TRY_IN(parse_signature(format("void {}", line.substr(open))), "{}:{}", name, number);
        by_name_.insert_or_assign(std::string(trim(line.substr(0, open))), std::move(signature));
    }
    return {};
}

const Signature *KnownProbes::find(std::string_view provider, std::string_view probe) const {
    const auto at = by_name_.find(format("{}:{}", provider, probe));
    return at == by_name_.end() ? nullptr : &at->second;
}

} // namespace rawbpf::inline v0::trace

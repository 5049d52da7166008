// OpenSSL between two buffers in memory, so that whoever has the socket keeps its time and its bounds.
//
//      socket --received()--> in  [ SSL ] --> plain
//      socket <--to_send()--- out [     ] <-- write()
//
// At least TLS 1.2; the certificate has to be for the host's name, or for its address where the URL has one, by what this system
// trusts: OpenSSL's own places, or $SSL_CERT_FILE and $SSL_CERT_DIR.
#include "programs/export/tls.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {
namespace {

template <auto Free> struct Freed {
    template <class T> void operator()(T *pointer) const { Free(pointer); }
};

bool is_address(const std::string &host) {
    in6_addr address{};
    return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// OpenSSL's words for what it has just refused.
std::string last_reason() {
    const unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    const char *words = code ? ERR_reason_error_string(code) : nullptr;
    return words ? format(": {}", words) : std::string();
}

class OpenSsl final : public Tls {
  public:
    Result<void> start(const std::string &host) {
        ERR_clear_error();
        context_.reset(SSL_CTX_new(TLS_client_method()));
        if (!context_ || SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION) != 1)
            return fail(Errc::io, "no TLS{}", last_reason());
        if (SSL_CTX_set_default_verify_paths(context_.get()) != 1)
            return fail(Errc::io, "the system's certificates can't be read{}", last_reason());
        SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
        ssl_.reset(SSL_new(context_.get()));
        if (!ssl_) return fail(Errc::io, "no TLS{}", last_reason());
        SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        const bool address = is_address(host);
        const int named = address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str())
                                  : SSL_set1_host(ssl_.get(), host.c_str());
        if (named != 1 || (!address && SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) != 1))
            return fail(Errc::io, "no TLS for that name{}", last_reason());
        BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
        if (!in || !out) {
            BIO_free(in);
            BIO_free(out);
            return fail(Errc::io, "no TLS{}", last_reason());
        }
        SSL_set_bio(ssl_.get(), in, out); // which owns them now
        SSL_set_connect_state(ssl_.get());
        std::string none;
        return advance(none);
    }

    void write(std::string_view plain) override {
        waiting_ += plain;
        std::string none;
        (void)advance(none); // what is wrong shows in received(), too
    }

    Result<void> received(std::string_view bytes, std::string &plain) override {
        if (BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size())) != static_cast<int>(bytes.size()))
            return fail(Errc::io, "no memory for TLS{}", last_reason());
        return advance(plain);
    }

    std::string to_send() override {
        std::string out(BIO_ctrl_pending(SSL_get_wbio(ssl_.get())), '\0');
        if (!out.empty())
            out.resize(
                static_cast<size_t>(std::max(BIO_read(SSL_get_wbio(ssl_.get()), out.data(), static_cast<int>(out.size())), 0)));
        return out;
    }

  private:
    // Goes as far as what has come allows.
    Result<void> advance(std::string &plain) {
        SSL *ssl = ssl_.get();
        ERR_clear_error();
        if (!SSL_is_init_finished(ssl)) {
            if (const int r = SSL_do_handshake(ssl); r != 1) return judge(r);
        }
        if (!waiting_.empty()) { // there is always room in memory
            if (const int r = SSL_write(ssl, waiting_.data(), static_cast<int>(waiting_.size())); r <= 0) return judge(r);
            std::string().swap(waiting_);
        }
        std::array<char, 16384> piece;
        for (;;) {
            const int n = SSL_read(ssl, piece.data(), piece.size());
            if (n <= 0) return judge(n);
            plain.append(piece.data(), static_cast<size_t>(n));
        }
    }

    Result<void> judge(int result) {
        const int error = SSL_get_error(ssl_.get(), result);
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_ZERO_RETURN) return {};
        if (const long verified = SSL_get_verify_result(ssl_.get()); verified != X509_V_OK) {
            ERR_clear_error();
            return fail(Errc::io, "its certificate isn't one that this system trusts: {}",
                        X509_verify_cert_error_string(verified));
        }
        return fail(Errc::io, "no TLS connection{}", last_reason());
    }

    std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
    std::unique_ptr<SSL, Freed<SSL_free>> ssl_;
    std::string waiting_; ///< plain, until the handshake is over
};

} // namespace

bool has_tls() { return true; }

Result<std::unique_ptr<Tls>> tls_client(const std::string &host) {
    auto out = std::make_unique<OpenSsl>();
    TRY(out->start(host));
    return std::unique_ptr<Tls>(std::move(out));
}

} // namespace rawbpf::inline v0::telemetry

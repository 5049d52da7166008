// Nothing that a user typed into a form leaves with a span.
#include "programs/export/redact.h"

#include "tests/support/test.h"

using namespace rawbpf::telemetry;

TEST_CASE("redact: literals of PostgreSQL") {
    const auto pg = [](std::string_view sql) { return redact_sql(sql, true); };
    CHECK(pg("select * from t where a = 'it''s' and b=12") == "select * from t where a = ? and b=?");
    CHECK(pg("select 1.5e-3, .5, 0x1f, 12_000, -7") == "select ?, ?, ?, ?, -?");
    CHECK(pg("select $1, t1.c2 from t1 where c2=$2") == "select $1, t1.c2 from t1 where c2=$2");
    CHECK(pg("select E'a\\'secret' , 'C:\\' , 'x'") == "select ? , ? , ?");
    CHECK(pg("select $$secret$$, $a1$ se$$cret $a1$, 3") == "select ?, ?, ?");
    CHECK(pg("select \"Col'umn 1\" from \"t\"\"2\"") == "select \"Col'umn 1\" from \"t\"\"2\"");
    CHECK(pg("select B'101', x'1F', U&'d\\0061', 'a'::text") == "select ?, ?, ?, ?::text");
    CHECK(pg("select /* user=bob /* nested */ */ 1 -- password\n, 2") == "select ? , ?");
    CHECK(pg("/*traceparent='00-1'*/ select a") == "select a");
    CHECK(pg("").empty());
}

TEST_CASE("redact: what was cut ends in a literal") {
    CHECK(redact_sql("insert into t values ('secr", true) == "insert into t values (?");
    CHECK(redact_sql("select $x$ secr", true) == "select ?");
    CHECK(redact_sql("select E'\\", true) == "select ?");
    CHECK(redact_sql("select 1 /* secr", true) == "select ? ");
    CHECK(redact_sql("select $", true) == "select $");
}

TEST_CASE("redact: every cut of a statement is safe") {
    const std::string_view sql = "insert /* s3cret */ into t values ('s3cret', E's3cret\\'s3cret', $q$s3cret$q$, 77) -- s3cret";
    for (bool postgres : {true, false})
        for (size_t n = 0; n <= sql.size(); ++n) {
            const std::string out = redact_sql(sql.substr(0, n), postgres);
            CHECK(out.find("s3") == std::string::npos);
            CHECK(out.find('7') == std::string::npos);
        }
}

TEST_CASE("redact: an unknown dialect gives nothing away") {
    CHECK(redact_sql("select \"secret\", `col` from t", false) == "select ?, `col` from t");
    // MySQL ends this literal after "secret", PostgreSQL after the first backslash: who knows?
    CHECK(redact_sql("select 'a\\' secret', 2 from t", false) == "select ?");
    CHECK(redact_sql("select 'C:\\dir' from t # secret", false) == "select ? from t ");
    CHECK(redact_sql("select _utf8'x', N'y' where a = :name and b = @p1 and c = ?", false) ==
          "select ?, ? where a = :name and b = @p1 and c = ?");
}

TEST_CASE("redact: the operation is one that SQL knows") {
    CHECK(sql_operation("  select 1") == "SELECT");
    CHECK(sql_operation("/* a */ -- b\n(Select 1)") == "SELECT");
    CHECK(sql_operation("with x as (select 1) select * from x") == "WITH");
    CHECK(sql_operation("hunter2").empty());
    CHECK(sql_operation("").empty());
    CHECK(sql_operation("/*").empty());
}

TEST_CASE("redact: URLs") {
    CHECK(redact_url("http://bob:pw@h.example:8080/a/b?token=1#frag", false) == "http://REDACTED:REDACTED@h.example:8080/a/b");
    CHECK(redact_url("http://h/a?q=1#f", true) == "http://h/a?q=1");
    CHECK(redact_url("http://[::1]:80/x", false) == "http://[::1]:80/x");
    CHECK(redact_url("/path?x=1", false) == "/path");
    for (std::string_view odd :
         {"", "?", "#", "://", "http://", "http://[", "http://[::1", "http://@", "http://h:", "http://h:99999/"})
        CHECK(redact_url(odd, false).size() <= odd.size() + 20);
    const UrlParts parts = split_url("https://u@h.example:443/p?q");
    CHECK(parts.scheme == "https");
    CHECK(parts.host == "h.example");
    CHECK(parts.port == 443);
    CHECK(parts.path == "/p");
    CHECK(parts.query == "q");
    CHECK(parts.credentials);
    CHECK(split_url("http://h:99999/").port == 0);
}

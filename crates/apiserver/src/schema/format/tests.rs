use super::*;

#[track_caller]
fn holds(format: &str, good: &[&str], bad: &[&str]) {
    let check = check_of(format).unwrap_or_else(|| panic!("{format} is not known"));
    for text in good {
        assert!(check(text), "{text:?} is a {format}");
    }
    for text in bad {
        assert!(!check(text), "{text:?} is no {format}");
    }
}

#[test]
fn formats_that_are_not_known_mean_nothing() {
    assert!(check_of("int32").is_none() && check_of("quantity").is_none());
}

#[test]
fn times() {
    let good = ["2024-02-29T23:59:59Z", "2024-01-01t00:00:00.123+02:00"];
    holds("date-time", &good, &["", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01 00:00:00Z", "now"]);
    holds("date", &["2024-02-29"], &["2023-02-29", "2024-13-01", "2024-1-1"]);
    holds("duration", &["1h30m", "-1.5h", "0", "22 ns", "3 days", "1w"], &["", "1", "h", "1x", ".s"]);
}

#[test]
fn addresses() {
    holds("ipv4", &["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"], &["", "10.0.0", "256.0.0.1", "1.2.3.4.5", "::1"]);
    holds("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "::g", "fe80::1%eth0"]);
    holds("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/-1"]);
    holds("mac", &["00:00:5e:00:53:01", "02-00-5e-10-00-00-00-01", "0000.5e00.5301"], &["00:00", "00:00:5e:00:53:zz"]);
    holds("hostname", &["localhost", "a-b.example.com"], &["", "-a.example.com", "a.b_c.com", "a..b"]);
    holds("email", &["a@b.c", "Ann <ann@example.com>"], &["a", "@b.c", "a@", "a b@c"]);
    holds("uri", &["https://a.example/b?c", "/path", "mailto:a@b", "*"], &["", "a/b", "://a", "http://[::1/", "/%zz"]);
}

#[test]
fn codes() {
    holds("byte", &["YQ==", "YWJj"], &["", "a", "YQ=", "Y*=="]);
    holds("uuid", &["123E4567-e89b-12d3-a456-426614174000"], &["123e4567", ""]);
    holds("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]);
    holds("isbn", &["0321751043", "978-0321751041"], &["0321751044", "123"]);
    holds("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112", "1"]);
    holds("ssn", &["111-11-1111"], &["11111111", "111-11-111a"]);
    holds("hexcolor", &["#FFF", "a0b1c2"], &["#FFFF", "red"]);
    holds("rgbcolor", &["rgb(0, 128,255)"], &["rgb(0,0,256)"]);
    holds("k8s-short-name", &["a-1"], &["", "A", "-a", "a.b"]);
    holds("k8s-long-name", &["a-1.b"], &["a..b", "A"]);
    holds("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77"]);
}

//! Times as people tell them: how long ago.

use k8s_openapi::jiff::Timestamp;

/// How long ago a time is, such as `3d4h`.
pub(super) fn since(time: Timestamp, now: Timestamp) -> String {
    let past = now.duration_since(time);
    human(past.as_secs())
}

/// How long ago a time is that is written down.
pub(super) fn since_text(time: &str, now: Timestamp) -> String {
    match time {
        "" | "null" => "<unknown>".to_owned(),
        time => time.parse().map_or_else(|_| "<invalid>".to_owned(), |time| since(time, now)),
    }
}

/// A number of seconds in the two largest units that matter.
pub(super) fn human(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match () {
        // Clocks differ by a second or so.
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => two(days, "d", hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{days}d"),
        () if hours < 24 * 365 * 8 => two(years, "y", days % 365, "d"),
        () => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::{human, since_text};

    #[test]
    fn the_longer_ago_the_less_exact() {
        let hour = 3600;
        let day = 24 * hour;
        for (seconds, told) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 61, "3h1m"),
            (8 * hour + 61, "8h"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (2 * day + hour, "2d1h"),
            (8 * day + hour, "8d"),
            (2 * 365 * day, "2y"),
            (2 * 365 * day + day, "2y1d"),
            (8 * 365 * day + day, "8y"),
        ] {
            assert_eq!(human(seconds), told);
        }
    }

    #[test]
    fn a_time_that_is_none_is_said_to_be() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(since_text("", now), "<unknown>");
        assert_eq!(since_text("yesterday", now), "<invalid>");
        assert_eq!(since_text("1969-12-31T23:59:30Z", now), "30s");
    }
}

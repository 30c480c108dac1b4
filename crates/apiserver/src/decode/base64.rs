//! Where data that is written in base64 is broken.

/// The first place at which a text is no base64, as it is counted by the real server.
pub(super) fn broken_at(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).collect();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let end = bytes.iter().position(|(_, byte)| !fits(*byte)).unwrap_or(bytes.len());
    match &bytes[end..] {
        [] if end % 4 == 0 => None,
        // What is left of the last four is missing something.
        [] => Some(text.len() - end % 4),
        [(_, b'=')] if end % 4 == 3 => None,
        [(_, b'='), (_, b'=')] if end % 4 == 2 => None,
        [(at, b'='), ..] if end % 4 < 2 => Some(*at),
        [(_, b'=')] => Some(text.len()),
        // What follows the end is too much; a half end is none.
        [(_, b'='), (at, _), ..] if end % 4 == 3 => Some(*at),
        [(_, b'='), (_, b'='), (at, _), ..] | [(at, _), ..] => Some(*at),
    }
}
